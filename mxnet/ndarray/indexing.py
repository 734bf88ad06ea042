"""Indexing and assignment, by MXNet's rules for views and copies.

A contiguous basic slice shares memory with its array; everything else is a copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import dtypes
from ..error import InvalidValue
from ..runtime.array import Handle, plain
from ..runtime.recording import (
    GATHERING,
    INDEXING,
    UNKNOWN_STEP,
    HistoryNode,
    Source,
    graph_tensor,
    is_constant_now,
    node_of,
    state,
    step_node,
)


def index_error(index: int, axis: int, size: int) -> IndexError:
    """Return the error for an index that is out of range."""
    return IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")


def is_basic(key: Any) -> bool:
    """Return whether a key has only numbers and non-empty slices, which torch handles like MXNet.

    ``x[:]`` and ``x[()]`` are excluded: they return the legacy array itself.
    """
    if type(key) is slice:
        return key.start is not None or key.stop is not None
    if type(key) is not tuple:
        return type(key) is int
    for item in key:
        if type(item) is not int and type(item) is not slice:
            return False
    return len(key) > 0


def selected_shape(shape: Sequence[int], key: Any) -> tuple[int, ...] | None:
    """Return the result shape if a key selects the whole array in order, else None.

    >>> selected_shape((2, 3), (None, slice(0, 2))), selected_shape((2, 3), (slice(None), 0))
    ((1, 2, 3), None)
    """
    items = _without_ellipsis(key if type(key) is tuple else (key,), len(shape))
    if sum(item is not None for item in items) > len(shape):
        return None
    selected: list[int] = []
    sizes = iter(shape)
    for item in items:
        size = 1 if item is None else next(sizes)
        if item is not None and (type(item) is not slice or range(size)[item] != range(size)):
            return None
        selected.append(size)
    return (*selected, *sizes)


def without_leading_ones(shape: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Return a shape without extra leading axes of size 1, down to `ndim` axes.

    >>> without_leading_ones((1, 1, 3), 2)
    (1, 3)
    """
    shape = tuple(shape)
    while len(shape) > ndim and shape[0] == 1:
        shape = shape[1:]
    return shape


def fits(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Return whether one shape can be broadcast to another."""
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(n in (1, m) for n, m in pairs)


def read(tensor: Tensor, key: Any, keep_scalar: bool) -> Tensor:
    """Return the part of a tensor that a key selects.

    With `keep_scalar` one element has shape (), as in NumPy; otherwise (1,), MXNet's legacy.
    """
    if type(key) is int:
        return read_row(tensor, key, keep_scalar)
    if type(key) is slice and key.step is None and tensor.ndim and _are_plain(key):
        part = tensor[key]
        return part if part.is_contiguous() else part.contiguous()
    key, flips = normalize(tensor, key)
    part = tensor[key]
    if flips:
        part = part.flip(flips)
    if not part.ndim and not keep_scalar:
        part = part.reshape(1)
    return part if part.is_contiguous() else part.contiguous()


def _are_plain(key: slice) -> bool:
    return (key.start is None or type(key.start) is int) and (
        key.stop is None or type(key.stop) is int
    )


def read_row(tensor: Tensor, index: int, keep_scalar: bool) -> Tensor:
    """Return the slice at one index of the first axis."""
    if not tensor.ndim:
        raise IndexError("a 0-dimensional array cannot be indexed by a number")
    size = tensor.shape[0]
    if not -size <= index < size:
        raise index_error(index, 0, size)
    if tensor.ndim == 1 and not keep_scalar:
        index %= size
        return tensor[index : index + 1]
    part = tensor[index]
    return part if part.is_contiguous() else part.contiguous()


def node_of_part(array: Any, key: Any, shape: tuple) -> HistoryNode:
    """Return the recorded step of a slicing: its key, unless it contains lists."""
    items = _without_ellipsis(key if isinstance(key, tuple) else (key,), len(array.shape))
    numbers = [int(i) if _is_number(i) else i for i in items]
    if all(i is None or type(i) is int or (type(i) is slice and _are_plain(i)) for i in numbers):
        return step_node(INDEXING, (array,), tuple(numbers), shape)
    arrays: list[Any] = [i for i in items if isinstance(i, Handle) and graph_tensor(i) is not None]
    for index in arrays:  # behind the result, but not in torch's graph
        is_constant_now(index, state.session)
    members = [node_of(index) for index in arrays]
    if all(_is_list(i) or type(i) is int for i in numbers):
        return step_node(GATHERING, (array,), Source(), *members)
    return step_node(UNKNOWN_STEP, (array,), *members)


def _is_list(item: Any) -> bool:
    return isinstance(item, list | np.ndarray | Handle) and not _is_mask(item)


def _is_number(item: Any) -> bool:
    return isinstance(item, int | np.integer) and not isinstance(item, bool)


def _is_mask(item: Any) -> bool:
    return (np.asarray(item) if isinstance(item, list) else item).dtype == np.bool_


def write(tensor: Tensor, key: Any, value: Any) -> None:
    """Write a number, an array or a nested list into the part that a key selects."""
    write_part(tensor, *normalize(tensor, key), value)


def _without_leading_ones(value: Tensor, part: torch.Size) -> Tensor:
    """Remove leading axes of size 1 that the target of an assignment does not have."""
    while value.ndim > len(part) and value.shape[0] == 1:
        value = value[0]
    return value


def write_part(tensor: Tensor, key: tuple, flips: list[int], value: Any) -> None:
    """Write into the part that a normalized key selects, with some axes flipped."""
    if isinstance(value, Handle):
        value = plain(value)
    elif not isinstance(value, int | float | bool):
        value = dtypes.from_numpy(_host_values(value, tensor.dtype))
    elif not tensor.dtype.is_floating_point:
        value = _fitting(value, tensor.dtype)
    if isinstance(value, Tensor):
        value = value.to(tensor.device, tensor.dtype)  # index lists need the same data type
        value = apart(value, tensor)
    try:
        if flips and isinstance(value, Tensor) and value.ndim:
            value = _without_leading_ones(value, part := tensor[key].shape).expand(part).flip(flips)
        tensor[key] = value
    except RuntimeError as error:
        shape = tuple(value.shape) if isinstance(value, Tensor) else ()
        part = tuple(tensor[key].shape)
        if 0 in shape and 0 in part:  # nothing to write, whatever the other sizes
            return
        try:
            torch.broadcast_shapes(shape, part)
        except RuntimeError:
            reason = "it cannot be broadcast."
        else:
            reason = f"{error}" if len(shape) <= len(part) else "it has more axes."
        raise InvalidValue(
            "operands could not be broadcast together: cannot assign an array of shape "
            f"{shape} to a slice of shape {part}: {reason}"
        ) from None


def apart(source: Tensor, target: Tensor) -> Tensor:
    """Return the value to write, copied if it overlaps the target."""
    shares = source.untyped_storage().data_ptr() == target.untyped_storage().data_ptr()
    return source.clone() if shares else source


def _host_values(value: Any, dtype: torch.dtype) -> np.ndarray:
    """Convert array-like values to numbers; None among floats becomes NaN."""
    values = np.asarray(value)
    if values.dtype != object:
        return values
    try:
        return values.astype(dtypes.to_numpy(dtype))
    except (TypeError, ValueError):
        raise TypeError(
            f"An array of {dtypes.to_name(dtype)} does not support assignment with "
            f"{value!r} of type {type(value)}: use numbers or an array."
        ) from None


def _fitting(value: float, dtype: torch.dtype) -> float:
    """Convert a number to an integer type like MXNet's C code, with wraparound."""
    if dtype is torch.bool:
        return value
    limits = torch.iinfo(dtype)
    if limits.min <= value <= limits.max:
        return value
    if limits.bits > 8:
        return limits.min
    wrapped = int(value) % 256 if math.isfinite(value) else 0
    return wrapped if wrapped <= limits.max else wrapped - 256


def normalize(tensor: Tensor, key: Any) -> tuple[tuple, list[int]]:
    """Return a key for torch, and the result axes to flip for negative steps."""
    items = key if isinstance(key, tuple) else (key,)
    items = _without_ellipsis(items, tensor.ndim)
    normalized: list[Any] = []
    backward: list[int] = []  # positions in the key
    axis = 0
    for item in items:
        if item is None:
            normalized.append(None)
            continue
        if axis >= tensor.ndim:
            raise IndexError(
                f"too many indices for array: array is {tensor.ndim}-dimensional, "
                f"but {len([i for i in items if i is not None])} were indexed"
            )
        size = tensor.shape[axis]
        if isinstance(item, slice):
            item, flip = _forward_slice(item, size)
            if flip:
                backward.append(len(normalized))
            normalized.append(item)
        elif _is_number(item):
            index = int(item)
            if not -size <= index < size:
                raise index_error(index, axis, size)
            normalized.append(index)
        else:
            normalized.append(_index_tensor(item, tensor.device, axis, size))
        axis += 1
    lists = [part for part in normalized if isinstance(part, Tensor)]
    if lists:
        normalized = _with_lists_alone(normalized, lists)
    return tuple(normalized), [_result_axis(normalized, position) for position in backward]


def _with_lists_alone(key: list, lists: list[Tensor]) -> list:
    """Convert numbers beside index lists to lists, as NumPy does; torch applies them first."""
    if not any(isinstance(part, int) for part in key):
        return key
    shape = _common_shape(lists)
    device = lists[0].device
    return [
        torch.full(shape, part, device=device) if isinstance(part, int) else part for part in key
    ]


def _common_shape(lists: list[Tensor]) -> torch.Size:
    try:
        return torch.broadcast_shapes(*(part.shape for part in lists))
    except RuntimeError:
        shapes = " ".join(str(tuple(part.shape)) for part in lists)
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        ) from None


def _result_axis(key: list, index: int) -> int:
    """Return the result axis of a slice in the key.

    The joint axes of index lists are at their position if adjacent, else first.
    """
    lists = [i for i, part in enumerate(key) if isinstance(part, Tensor)]
    others = [i for i, part in enumerate(key) if part is None or isinstance(part, slice)]
    axis = others.index(index)
    if lists:
        together = lists[-1] - lists[0] + 1 == len(lists)
        if not together or index > lists[0]:
            axis += len(_common_shape([key[i] for i in lists]))
    return axis


def _without_ellipsis(items: tuple, ndim: int) -> tuple:
    positions = [i for i, item in enumerate(items) if item is Ellipsis]
    if not positions:
        return items
    if len(positions) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    first = positions[0]
    used = sum(item is not None for item in items) - 1
    fill = (slice(None),) * max(ndim - used, 0)
    return items[:first] + fill + items[first + 1 :]


def _forward_slice(item: slice, size: int) -> tuple[slice, bool]:
    """Convert a slice with a negative step to a forward slice, whose result is flipped."""
    parts = [None if p is None else _whole(p) for p in (item.start, item.stop, item.step)]
    item = slice(*parts)
    if item.step is None or item.step > 0:
        return item, False
    if item.step == 0:
        raise ValueError("slice step cannot be zero")
    picked = range(*item.indices(size))
    if not picked:
        return slice(0, 0), False
    if len(picked) == 1:  # a view, like any other part of one row
        return slice(picked[0], picked[0] + 1), False
    return slice(picked[-1], picked[0] + 1, -item.step), True


def _whole(value: Any) -> int:
    if isinstance(value, Handle):
        return int(plain(value).item())
    return value.__index__()


def _index_tensor(item: Any, device: torch.device, axis: int, size: int) -> Tensor:
    if isinstance(item, Handle):
        index = plain(item)
    elif isinstance(item, list | tuple | np.ndarray | range | bool | Tensor):
        index = dtypes.from_numpy(np.asarray(item)) if not isinstance(item, Tensor) else item
    else:
        raise ValueError(f"NDArray does not support slicing with key {item} of type {type(item)}.")
    index = index.to(device=device, dtype=torch.int64)  # a mask is treated as numbers 0 and 1
    if index.numel():
        low, high = int(index.min()), int(index.max())
        if low < -size or high >= size:
            raise index_error(low if low < -size else high, axis, size)
    return index
