"""Functions that combine samples into a batch, for `DataLoader(batchify_fn=...)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch

from ...context import current_context
from ...dtypes import to_torch
from ...error import DTypeError, MXNetError, ShapeError
from ...ndarray import NDArray
from ...runtime.array import plain, wrap_plain
from ...torch_private import collate_functions
from ...util import is_np_array

__all__ = ["Append", "AsList", "Group", "Pad", "Stack", "default_batchify_fn"]

LARGE = 1 << 16  # size in bytes from which a batch is allocated by `allocating`
Allocate = Callable[[tuple[int, ...], torch.dtype], torch.Tensor | None]
_allocation: ContextVar[Allocate | None] = ContextVar("allocation", default=None)


def default_batchify_fn(data: Sequence[Any]) -> Any:
    """Stack samples along a new first axis; tuples become a list of stacked parts.

    Arrays keep their type, Python integers become int64 and floats float64.

    Parameters
    ----------
    data
        The samples.

    >>> images, labels = default_batchify_fn([(nd.ones((2,)), 3), (nd.zeros((2,)), 4)])
    >>> images.shape, labels.asnumpy()
    ((2, 2), array([3, 4]))
    """
    if not len(data):
        raise ValueError("There is no sample to make a batch of")
    first = data[0]
    if isinstance(first, NDArray):
        return _stacked(data)
    if isinstance(first, tuple):
        return [default_batchify_fn(part) for part in zip(*data, strict=True)]
    if isinstance(first, torch.Tensor):
        return _stacked([_array(sample.detach()) for sample in data])
    return _from_values(data)


def _stacked(arrays: Sequence[NDArray]) -> NDArray:
    first = arrays[0]
    if any(a.shape != first.shape for a in arrays):
        raise _different(a.shape for a in arrays)
    try:
        stacked = _stack([plain(a) for a in arrays])
    except (RuntimeError, TypeError) as error:
        raise MXNetError(f"Samples cannot be stacked into a batch: {error}") from error
    return wrap_plain(type(first), stacked, first._ctx)


def _collate(arrays: Sequence[NDArray], *, collate_fn_map: Any = None) -> torch.Tensor:
    return plain(_stacked(arrays))


collate_functions()[NDArray] = _collate  # accept Gluon's data sets


def _stack(tensors: list[torch.Tensor]) -> torch.Tensor:
    first, allocate = tensors[0], _allocation.get()
    if allocate is None or first.device.type != "cpu" or first.requires_grad:
        return torch.stack(tensors)
    if any(t.dtype is not first.dtype for t in tensors) or first.nbytes * len(tensors) < LARGE:
        return torch.stack(tensors)
    target = allocate((len(tensors), *first.shape), first.dtype)
    return torch.stack(tensors) if target is None else torch.stack(tensors, out=target)


@contextmanager
def allocating(allocate: Allocate) -> Iterator[None]:
    """Allocate large batches by a function, which may return None."""
    token = _allocation.set(allocate)
    try:
        yield
    finally:
        _allocation.reset(token)


def _from_values(data: Sequence[Any]) -> NDArray:
    try:
        arrays = isinstance(data[0], np.ndarray) and data[0].ndim > 0
        values = np.stack(data) if arrays else np.array(data)
    except ValueError:
        raise _different(np.shape(sample) for sample in data) from None
    return from_numpy(values)


def from_numpy(values: np.ndarray) -> NDArray:
    """Return a new NumPy array as an NDArray of the same type in the current context."""
    try:
        to_torch(values.dtype)
    except DTypeError:
        raise DTypeError(
            f"Samples of NumPy type {values.dtype} cannot become an array. Convert them to numbers "
            "with transform(), or give the DataLoader a function that makes batches: batchify_fn."
        ) from None
    array = _array(torch.from_numpy(np.ascontiguousarray(values)).reshape(values.shape))
    return array.as_in_context(current_context())


def _array(tensor: torch.Tensor) -> NDArray:
    if not is_np_array():
        return wrap_plain(NDArray, tensor)
    from ...numpy import ndarray as np_ndarray

    return wrap_plain(np_ndarray, tensor)


def _different(shapes: Any) -> ShapeError:
    shown = ", ".join(map(str, sorted(set(shapes))[:5]))
    return ShapeError(
        f"Samples of different shapes cannot be stacked into a batch: {shown}. Crop or resize them "
        "with transform(), or use batchify_fn=mx.gluon.data.batchify.Pad()."
    )


def gathered(data: Any, indices: Sequence[int]) -> Any:
    """Return the batch of some elements of an array or list."""
    if type(data) is np.ndarray:
        return from_numpy(np.take(data, np.asarray(indices, np.int64), axis=0))
    if isinstance(data, NDArray) and data.ndim > 1 and data.stype == "default":
        tensor = plain(data)
        rows = torch.tensor(indices, device=tensor.device)
        # Several times as fast as tensor[rows], which supports negative indices.
        chosen = tensor.index_select(0, rows) if min(indices) >= 0 else tensor[rows]
        return wrap_plain(type(data), chosen, data._ctx)
    return default_batchify_fn([data[i] for i in indices])


# -- batchify functions ------------------------------------------------------------------


class Stack:
    """Stack samples along a new first axis, the default of `DataLoader`.

    >>> mx.gluon.data.batchify.Stack()([1, 2]).asnumpy()
    array([1, 2])
    """

    def __call__(self, data: Sequence[Any]) -> Any:
        """Return the batch."""
        return default_batchify_fn(data)


class Pad:
    """Stack arrays of different lengths, padded to the longest.

    Parameters
    ----------
    axis : int
        The axis along which lengths differ; -1 is the last. All others must agree.
    val : number
        Value of the padding.
    dtype : str or type, optional
        Data type of the batch; by default that of the samples.
    round_to : int, optional
        Pad to a multiple of this number.

    >>> mx.gluon.data.batchify.Pad(val=-1)([[1, 2], [3]]).asnumpy()
    array([[ 1,  2],
           [ 3, -1]])
    """

    def __init__(
        self, axis: int = 0, val: float = 0, dtype: Any = None, round_to: int | None = None
    ) -> None:
        self._axis = axis
        self._val = val
        self._dtype = dtype
        self._round_to = round_to

    def __call__(self, data: Sequence[Any]) -> NDArray:
        """Return the batch."""
        arrays = [a.asnumpy() if isinstance(a, NDArray) else np.asarray(a) for a in data]
        shapes = [list(a.shape) for a in arrays]
        axis = self._axis
        longest = max(shape[axis] for shape in shapes)
        if self._round_to is not None:
            longest = -(-longest // self._round_to) * self._round_to
        for shape in shapes:
            shape[axis] = longest
        if any(shape != shapes[0] for shape in shapes):
            raise ShapeError(
                f"Pad(axis={axis}) makes only that axis equal, and the samples have shapes "
                f"{[a.shape for a in arrays[:5]]}."
            )
        dtype = np.result_type(*arrays) if self._dtype is None else self._dtype
        batch = np.full((len(arrays), *shapes[0]), self._val, dtype)
        for row, array in zip(batch, arrays, strict=True):
            row[tuple(slice(size) for size in array.shape)] = array
        return from_numpy(batch)


class Group:
    """Combine each part of the samples by its own batchify function.

    Parameters
    ----------
    fns
        One function for each part, or a list of them.

    >>> group = mx.gluon.data.batchify.Group(mx.gluon.data.batchify.Pad(), list)
    >>> tokens, names = group([([1, 2], "a"), ([3], "b")])
    >>> tokens.shape, names
    ((2, 2), ['a', 'b'])
    """

    def __init__(self, *fns: Any) -> None:
        if len(fns) == 1 and isinstance(fns[0], list | tuple):
            fns = tuple(fns[0])
        if not all(callable(fn) for fn in fns):
            raise ValueError(f"Group takes functions, not {fns!r}")
        self._fns: tuple[Callable[[Sequence[Any]], Any], ...] = fns

    def __call__(self, data: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
        """Return the batch."""
        if len(data[0]) != len(self._fns):
            raise ValueError(
                f"Group has {len(self._fns)} functions, and the samples {len(data[0])} parts"
            )
        parts = zip(*data, strict=True)
        return tuple(fn(list(part)) for fn, part in zip(self._fns, parts, strict=True))


class AsList:
    """Keep the samples as a list, for strings and other values that are not arrays.

    >>> mx.gluon.data.batchify.AsList()(("a", "b"))
    ['a', 'b']
    """

    def __call__(self, data: Sequence[Any]) -> list[Any]:
        """Return the batch."""
        return list(data)


class Append:
    """Convert each sample to an array, in a list.

    Parameters
    ----------
    expand : bool
        Add a batch axis of size 1 to each one.
    batch_axis : int
        Position of that axis.

    >>> [a.shape for a in mx.gluon.data.batchify.Append()([[1, 2], [3]])]
    [(1, 2), (1, 1)]
    """

    def __init__(self, expand: bool = True, batch_axis: int = 0) -> None:
        self._expand = expand
        self._batch_axis = batch_axis

    def __call__(self, data: Sequence[Any]) -> list[NDArray]:
        """Return the batch."""
        arrays = [a if isinstance(a, NDArray) else from_numpy(np.array(a)) for a in data]
        if not self._expand:
            return arrays
        return [a.expand_dims(axis=self._batch_axis) for a in arrays]
