"""How a batch is split over devices, and copied into arrays that are bound already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .error import ShapeError
from .ndarray import NDArray
from .ndarray.storage import plain, writable
from .symbol import Symbol

Targets = Sequence[tuple[slice, NDArray]]  # which part of the batch goes where


def _split_input_slice(batch_size: int, work_load_list: Sequence[float]) -> list[slice]:
    """Return each device's part of the batch, in proportion to its work load.

    >>> _split_input_slice(8, [1, 3])
    [slice(0, 2, None), slice(2, 8, None)]
    """
    total = sum(work_load_list)
    sizes = [round(load * batch_size / total) for load in work_load_list]
    sizes[-1] += max(0, batch_size - sum(sizes))
    slices, end = [], 0
    for size in sizes:
        begin, end = min(end, batch_size), min(end + size, batch_size)
        if begin >= end:
            raise ValueError("Too many slices. Some splits are empty.")
        slices.append(slice(begin, end))
    return slices


def _check_arguments(symbol: Symbol) -> None:
    """Raise if a name of an argument or of an auxiliary state occurs twice."""
    for what, names in (
        ("argument", symbol.list_arguments()),
        ("auxiliary param", symbol.list_auxiliary_states()),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"Find duplicated {what} name, please make the weight name non-duplicated: "
                f"{', '.join(twice)} among {', '.join(names)}"
            )


def copy_into(target: NDArray, source: Any, what: str = "array") -> None:
    """Copy an array into another one of the same shape, on whatever device and of whatever type."""
    if source.shape != target.shape:
        raise ShapeError(f"Shape inconsistent: {what} is {source.shape}, but needs {target.shape}.")
    place = writable(target)
    place.copy_(plain(source), non_blocking=place.device.type != "cpu")


def _load_general(
    data: Sequence[Any], targets: Sequence[Targets | NDArray], major_axis: Iterable[int]
) -> None:
    """Copy the parts of each array to the devices; `major_axis` is the batch axis, -1 for none."""
    for source, places, axis in zip(data, targets, major_axis, strict=False):
        if isinstance(places, NDArray):
            copy_into(places, source)
            continue
        if isinstance(source, list | tuple):  # one part for each device already
            for part, (_, target) in zip(source, places, strict=True):
                copy_into(target, part)
            continue
        for part, target in places:
            whole = axis < 0 or len(places) == 1
            copy_into(target, source if whole else source.slice_axis(axis, part.start, part.stop))


def _load_data(batch: Any, targets: Sequence[Targets], major_axis: Sequence[int]) -> None:
    """Copy the data of a batch to the devices."""
    _load_general(batch.data, targets, major_axis)


def _load_label(batch: Any, targets: Sequence[Targets], major_axis: Sequence[int]) -> None:
    """Copy the labels of a batch to the devices."""
    _load_general(batch.label, targets, major_axis)
