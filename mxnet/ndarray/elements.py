"""Elements of arrays: reading and writing parts, iteration, truth."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..error import MXNetError
from ..imperative.freed_graphs import IntegerInGraph, is_constant_now
from ..imperative.handle import Handle, current, new_object, plain, set_member, wrap, writable
from ..imperative.history import COPYING, INDEXING, Call, graph_tensor, node_of, record_step
from ..imperative.integers import derive
from ..imperative.state import state
from ..ops.interpreters import active
from ..ops.tensor.shaping.broadcasting import broadcast_to
from ..shape_mode import is_np_shape
from . import indexing
from .indexing import is_basic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .ndarray import NDArray

_FULL = slice(None)


class Elements(Handle):
    """The methods of an array that read or write some of its elements."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> NDArray:
        kind = type(key)
        if kind is slice:
            if key.start is None and key.stop is None:
                return self._read(key)  # x[:] is the array itself
        elif kind is not int and not is_basic(key):
            return self._read(key)
        data = self._data
        try:
            if active or data is None:
                data = current(self)
            part = data[key]
        except (IndexError, TypeError, ValueError, MXNetError):  # torch has no negative steps
            return self._read(key)
        if kind is not slice and not part.ndim and not self.is_numpy:
            return self._read(key)
        if not part.is_contiguous():
            part = part.contiguous()
        if active:
            array = wrap(type(self), part, self._ctx)
            if array._member is not None:
                array._member.node = (INDEXING, node_of(self), key, part.shape)
            return array
        array = new_object(type(self))
        array._data = part
        array._dtype = self._dtype
        array._ctx = self._ctx
        array._grad = array._member = None
        return array

    def _read(self, key: Any) -> NDArray:
        """Return the part that any key selects."""
        if (
            key is Ellipsis
            or (type(key) is slice and key == _FULL)
            or (type(key) is tuple and not key)
        ):
            return self
        keeps_scalar = self.is_numpy or is_np_shape()
        try:
            made = wrap(type(self), indexing.read(current(self), key, keeps_scalar), self._ctx)
        except IntegerInGraph:
            made = derive(self, lambda t: indexing.read(t, key, keeps_scalar))
        if made._member is not None:
            made._member.node = indexing.node_of_part(self, key, made.shape)
        return made

    def __setitem__(self, key: Any, value: Any) -> None:
        data, kind = self._data, type(value)
        if data is not None and not active and (type(key) is int or type(key) is slice):
            try:
                if kind is type(self):
                    if value._dtype is self._dtype and value._data is not None:
                        data[key] = value._data
                        return
                elif (kind is float or kind is int) and self._dtype.is_floating_point:
                    data[key].fill_(value)
                    return
            except (IndexError, TypeError, ValueError, RuntimeError):
                pass  # torch has no negative steps; other errors are explained below
        self._write(key, value)

    def _write(self, key: Any, value: Any) -> None:
        """Write into the part that any key selects."""
        place = writable(self)
        if self._take_member(key, value):
            return
        if type(key) is slice and key == _FULL and isinstance(value, Handle):
            source = plain(value)
            if source.shape == place.shape:
                if source is not place:
                    place.copy_(indexing.apart(source, place))
                return
        indexing.write(place, key, value)

    def _take_member(self, key: Any, value: Any) -> bool:
        """Write an array of the graph that is being recorded, with its place in the graph.

        Return whether the value is such an array.
        """
        if state.session is None or not _is_member(value) or not self._dtype.is_floating_point:
            return False
        if not indexing.selects_all(self.shape, key):
            raise MXNetError(
                "Inplace operations (+=, -=, x[:]=, etc) are not supported when recording with "
                "autograd: no gradient would flow back from a part of an array. Use mx.nd.concat, "
                "mx.nd.stack or mx.nd.where, or write y.detach()."
            )
        place = plain(self)
        if not indexing.fits(value.shape, place.shape):
            return False  # the caller explains it
        made = value._view(lambda t: t.to(place.device, place.dtype).expand(place.shape).clone())
        place.copy_(plain(made))
        set_member(self, made._member.tensor, made._member.session)
        step = COPYING if value.shape == self.shape else Call(broadcast_to, {"shape": self.shape})
        record_step(self, step, (value,))
        return True

    @staticmethod
    def _basic_indexing_slice_is_contiguous(
        slc_key: tuple[slice, ...], shape: tuple[int, ...]
    ) -> bool:
        """Return whether slices, one for each axis, select one block of memory."""
        sizes = [len(range(*key.indices(n))) for key, n in zip(slc_key, shape, strict=True)]
        whole = True  # of all axes that follow
        for key, size, full in reversed(list(zip(slc_key, sizes, shape, strict=True))):
            if size != 1 and (not whole or key.step not in (None, 1)):
                return False
            whole = whole and size == full
        return True

    @staticmethod
    def _basic_indexing_contiguous_flat_begin_end(
        slc_key: tuple[slice, ...], shape: tuple[int, ...]
    ) -> tuple[int, int]:
        """Return where the block that slices select begins and ends in memory."""
        begin = end = 0
        for key, n in zip(slc_key, shape, strict=True):
            places = range(*key.indices(n))
            begin, end = begin * n + places[0], end * n + places[-1]
        return begin, end + 1

    def _at(self, idx: int) -> NDArray:
        """Return the part at one index of the first axis; it shares memory."""
        return self[operator.index(idx)]

    def _slice(self, start: int | None, stop: int | None) -> NDArray:
        """Return the part [start, stop) of the first axis; it shares memory."""
        return self[start:stop]

    def _sync_copyfrom(self, source_array: Any) -> None:
        """Fill the array from anything array-like of the same shape."""
        source = np.asarray(source_array)
        if source.shape != self.shape:
            raise ValueError(f"Shape inconsistent: expected {source.shape} vs got {self.shape}")
        self[:] = source

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray]:
        for i in range(len(self)):
            yield self[i]

    def __bool__(self) -> bool:
        if self.size == 0:
            return False
        if self.size == 1:
            return bool(plain(self).item())
        raise ValueError(
            "The truth value of an NDArray with multiple elements is ambiguous. Compare one "
            "number: x.sum(), x.min() or x.max()."
        )

    __nonzero__ = __bool__
    __hash__ = object.__hash__

    def __contains__(self, value: Any) -> bool:
        return bool((plain(self) == value).any())

    def slice_assign(self, rhs: NDArray, begin: Any, end: Any, step: Any = None) -> NDArray:
        """Write an array into the part [begin, end) and return this array.

        Parameters
        ----------
        rhs
            The array to write.
        begin
            First index for each axis; None begins at the end where the step starts.
        end
            Index to stop before, for each axis; None goes all the way.
        step
            Step along each axis; 1 by default.
        """
        self[_slices(begin, end, step)] = rhs
        return self

    def slice_assign_scalar(self, value: float, begin: Any, end: Any, step: Any = None) -> NDArray:
        """Write a number into the part [begin, end) and return this array.

        Parameters
        ----------
        value
            The number to write.
        begin
            First index for each axis; None begins at the end where the step starts.
        end
            Index to stop before, for each axis; None goes all the way.
        step
            Step along each axis; 1 by default.
        """
        self[_slices(begin, end, step)] = value
        return self


def _is_member(value: Any) -> bool:
    """Return whether a value is an array in the graph of the present recording."""
    if not isinstance(value, Handle) or graph_tensor(value) is None:
        return False
    return not is_constant_now(value, state.session)


def _slices(begin: Any, end: Any, step: Any) -> tuple[slice, ...]:
    steps = step or (None,) * len(begin)
    return tuple(slice(b, e, s) for b, e, s in zip(begin, end, steps, strict=True))
