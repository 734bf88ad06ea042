"""Split a batch over devices, and copy the parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from ..error import ShapeError
from ..ndarray import NDArray
from ..runtime.array import plain, writable
from ..runtime.recording import state

Targets = Sequence[tuple[slice | None, NDArray]]  # the part of the batch for each device


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


def copy_into(target: NDArray, source: Any, what: str = "array") -> None:
    """Copy an array into another one of the same shape, on any device and of any type."""
    if isinstance(source, NDArray) and state.session is None:  # else a graph may need the values
        memory, data = target._data, source._data
        if memory is not None and data is not None and memory.shape == data.shape:
            memory.copy_(data, non_blocking=not memory.is_cpu)
            return
    if source.shape != target.shape:
        raise ShapeError(f"Shape inconsistent: {what} is {source.shape}, but needs {target.shape}.")
    if target.stype != "default" or source.stype != "default":
        target[:] = source
        return
    tensor = writable(target)
    tensor.copy_(plain(source), non_blocking=tensor.device.type != "cpu")


def sliced(array: NDArray, axis: int, part: slice) -> NDArray:
    """Return one device's part of a batch; rows of a csr matrix stay csr."""
    if array.stype == "csr" and axis == 0:
        return array[part]
    return array.slice_axis(axis, part.start, part.stop)


def _load_general(
    data: Sequence[Any],
    targets: Sequence[Targets | NDArray],
    major_axis: Iterable[int] | None = None,
) -> None:
    """Copy the parts of each array to the devices.

    `major_axis` is the batch axis of each array: 0 by default, -1 for none.
    """
    major_axis = repeat(0) if major_axis is None else major_axis
    for source, slots, axis in zip(data, targets, major_axis, strict=False):
        if isinstance(slots, NDArray):
            copy_into(slots, source)
            continue
        if isinstance(source, list | tuple):  # one part for each device already
            for part, (_, target) in zip(source, slots, strict=True):
                copy_into(target, part)
            continue
        for part, target in slots:
            if axis < 0 or part is None or len(slots) == 1:
                copy_into(target, source)
            else:
                copy_into(target, sliced(source, axis, part))


def _load_data(
    batch: Any, targets: Sequence[Targets], major_axis: Sequence[int] | None = None
) -> None:
    _load_general(batch.data, targets, major_axis)


def _load_label(
    batch: Any, targets: Sequence[Targets], major_axis: Sequence[int] | None = None
) -> None:
    _load_general(batch.label, targets, major_axis)
