"""`NDArray`: a torch tensor with MXNet's semantics.

Operator methods are generated in `codegen`, operator overloads in `operator_overloads`; `indexing`
has the rules of views and copies.
"""

from __future__ import annotations

import ctypes
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import torch
import torch.utils.dlpack
from torch import Tensor

from .. import accelerator, dtypes
from .._process.memory import expose
from ..base import integer_types, is_np_shape, mx_real_t, numeric_types
from ..context import CPU_0, Context, context_of, cpu, torch_device
from ..error import InvalidValue, MXNetError, ShapeError
from ..formats import params_file
from ..ops.interpreters import active
from ..ops.tensor.broadcasting import broadcast_to
from ..ops.tensor.identity import cast
from ..ops.tensor.shape_changing import expand_dims, flatten, resolve_reshape, squeeze, transpose
from ..runtime.apply import stored_context
from ..runtime.array import (
    Handle,
    NoDenseOperand,
    current,
    exported,
    new_object,
    plain,
    set_empty,
    set_member,
    set_plain,
    shared_tensor,
    wrap,
    wrap_plain,
    writable,
)
from ..runtime.calls import make_call_function
from ..runtime.gradients import attach, run_backward
from ..runtime.integers import derive
from ..runtime.recording import (
    COPYING,
    INDEXING,
    RESHAPING,
    backward_mode,
    call_step,
    graph_tensor,
    is_constant_now,
    node_of,
    record_step,
    state,
)
from . import indexing
from .indexing import is_basic
from .printing import convertible, html, text

if TYPE_CHECKING:
    from ._stubs.methods import NDArrayMethods
else:
    NDArrayMethods = Handle  # codegen adds the methods

# MXNet's names; the package adds its creation functions and arithmetic.
__all__ = ["NDArray", "integer_types", "mx_real_t", "numeric_types"]

py_slice = slice
_FULL = slice(None)
_BFLOAT16 = torch.bfloat16
_DTYPE_NP_TO_MX = {None: -1, **{row.numpy: row.code for row in dtypes.TABLE}}
_DTYPE_MX_TO_NP = {-1: None, **{row.code: row.numpy for row in dtypes.TABLE}}
_GRAD_REQ_MAP = {"null": 0, "write": 1, "add": 3}
_STORAGE_TYPE_UNDEFINED, _STORAGE_TYPE_DEFAULT, _STORAGE_TYPE_ROW_SPARSE, _STORAGE_TYPE_CSR = range(
    -1, 3
)
_STORAGE_TYPE_STR_TO_ID = {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}
_STORAGE_TYPE_ID_TO_STR = {v: k for k, v in _STORAGE_TYPE_STR_TO_ID.items()}


def _either(array: NDArray) -> Tensor:
    """Return the array's plain or tracked tensor, for its shape and dtype."""
    data = array._data
    if data is not None:
        return data
    return graph_tensor(array)  # pyright: ignore[reportReturnType] (an array has one of the two)


# Arrays by the ctypes pointer made from them; a pointer is valid while its array lives.
_handed_out: WeakValueDictionary[int, NDArray] = WeakValueDictionary()


def _array_at(pointer: ctypes.c_void_p) -> NDArray:
    array = _handed_out.get(pointer.value or 0)
    if array is None:
        raise InvalidValue(
            f"NDArray: {pointer} does not point at a living array. Pass the array itself."
        )
    return array


class NDArray(NDArrayMethods):
    """A multi-dimensional array on a device.

    Create arrays with `mx.nd.array`, `mx.nd.zeros` and similar functions.

    Parameters
    ----------
    handle
        A torch tensor, or another array, whose memory the new array shares.
    writable
        Accepted for compatibility; has no effect.

    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> (x * 2).asnumpy()
    array([[2., 4.],
           [6., 8.]], dtype=float32)
    """

    __slots__ = ()
    __array_priority__ = 1000.0

    def __init__(
        self, handle: Tensor | Handle | ctypes.c_void_p | None, writable: bool = True
    ) -> None:
        if handle is None:  # empty before __setstate__
            set_empty(self)
        elif isinstance(handle, Tensor):
            expose(handle)
            set_plain(self, handle.detach(), None)
        else:
            source = _array_at(handle) if isinstance(handle, ctypes.c_void_p) else handle
            set_plain(self, plain(source).detach(), source._ctx)

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        """The handle for ``ctypes.cast(array, NDArrayHandle)``, as in monitor callbacks."""
        _handed_out[id(self)] = self
        return ctypes.c_void_p(id(self))

    # -- properties --------------------------------------------------------------------------------

    @property
    def handle(self) -> Tensor:
        """The underlying torch tensor, detached."""
        return exported(self)

    @property
    def writable(self) -> bool:
        """Whether the array is writable; always True."""
        return True

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        data = self._data
        return tuple((_either(self) if data is None else data).shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return _either(self).ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return _either(self).numel()

    @property
    def dtype(self) -> Any:
        """The data type, as NumPy's scalar type."""
        return dtypes.to_numpy(self._dtype)

    @property
    def __numpy_dtype__(self) -> np.dtype:
        """The result of ``np.dtype(x)``; NumPy 2.4 requires it because `dtype` is a scalar type."""
        return np.dtype(self.dtype)

    @property
    def stype(self) -> str:
        """The storage type: 'default' for dense arrays."""
        return "default"

    @property
    def context(self) -> Context:
        """The device of the array."""
        ctx = self._ctx
        if ctx is not None:
            return ctx
        data = self._data
        if data is None:
            data = _either(self)
        return CPU_0 if data.is_cpu else context_of(data)

    ctx = context

    @property
    def T(self) -> NDArray:
        """The transposed array (a copy); a vector itself."""
        if self.ndim < 2:
            return self
        return _transpose(self)

    @property
    def grad(self) -> NDArray | None:
        """The gradient array of `attach_grad`, or None."""
        record = self._grad
        return None if record is None else record.array

    @property
    def _fresh_grad(self) -> bool:
        """Whether backward has written the gradient since this flag was set to False."""
        record = self._grad
        return record is not None and record.fresh

    @_fresh_grad.setter
    def _fresh_grad(self, value: bool) -> None:
        if self.grad is not None:
            self._grad.fresh = bool(value)

    # -- elements -----------------------------------------------------------------------------

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
        except (
            IndexError,
            TypeError,
            ValueError,
            MXNetError,
        ):  # negative steps
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
        if (
            key is Ellipsis
            or (type(key) is slice and key == _FULL)
            or (type(key) is tuple and not key)
        ):
            return self
        keeps_scalar = self.is_numpy or is_np_shape()
        part = derive(self, lambda t: indexing.read(t, key, keeps_scalar))
        if part._member is not None:
            part._member.node = indexing.node_of_part(self, key, part.shape)
        return part

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
                pass  # negative steps; other errors are explained below
        self._write(key, value)

    def _write(self, key: Any, value: Any) -> None:
        memory = writable(self)
        if self._take_member(key, value):
            return
        if type(key) is slice and key == _FULL and isinstance(value, Handle):
            source = plain(value)
            if source.shape == memory.shape:
                if source is not memory:
                    memory.copy_(indexing.apart(source, memory))
                return
        indexing.write(memory, key, value)

    def _take_member(self, key: Any, value: Any) -> bool:
        """Assign an array of the recorded graph, with its node.

        Return whether the value is such an array.
        """
        if state.session is None or not _is_member(value):
            return False
        selected = indexing.selected_shape(self.shape, key)
        if selected is None:
            raise MXNetError(
                "Inplace operations (+=, -=, x[:]=, etc) are not supported when recording with "
                "autograd: gradients would not flow back from a slice. Use mx.nd.concat, "
                "mx.nd.stack or mx.nd.where, or assign to y.detach()."
            )
        memory = plain(self)
        shape = indexing.without_leading_ones(value.shape, len(selected))
        if not indexing.fits(shape, selected):
            return False  # the caller raises the error
        if value._dtype is not self._dtype:
            value = value.astype(self.dtype)
        if shape != value.shape:
            value = value._view(lambda t: t.reshape(shape))
        if selected != self.shape:  # the key adds axes
            value = value._view(lambda t: t.expand(selected).reshape(self.shape))
        member = value._view(lambda t: t.to(memory.device).expand(memory.shape).clone())
        memory.copy_(plain(member))
        set_member(self, member._member.tensor, member._member.session)
        step = (
            COPYING if value.shape == self.shape else call_step(broadcast_to, {"shape": self.shape})
        )
        record_step(self, step, (value,))
        return True

    @staticmethod
    def _basic_indexing_slice_is_contiguous(
        slc_key: tuple[slice, ...], shape: tuple[int, ...]
    ) -> bool:
        """Return whether slices, one for each axis, select a contiguous block."""
        sizes = [len(range(*key.indices(n))) for key, n in zip(slc_key, shape, strict=True)]
        whole = True  # product of the following axes
        for key, size, full in reversed(list(zip(slc_key, sizes, shape, strict=True))):
            if size != 1 and (not whole or key.step not in (None, 1)):
                return False
            whole = whole and size == full
        return True

    @staticmethod
    def _basic_indexing_contiguous_flat_begin_end(
        slc_key: tuple[slice, ...], shape: tuple[int, ...]
    ) -> tuple[int, int]:
        """Return begin and end of the contiguous block that slices select."""
        begin = end = 0
        for key, n in zip(slc_key, shape, strict=True):
            positions = range(*key.indices(n))
            begin, end = begin * n + positions[0], end * n + positions[-1]
        return begin, end + 1

    def _at(self, idx: int) -> NDArray:
        """Return the part at one index of the first axis; it shares memory."""
        return self[operator.index(idx)]

    def _slice(self, start: int | None, stop: int | None) -> NDArray:
        """Return the part [start, stop) of the first axis; it shares memory."""
        return self[start:stop]

    def _sync_copyfrom(self, source_array: Any) -> None:
        """Copy an array-like of the same shape into this array."""
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
            "The truth value of an NDArray with multiple elements is ambiguous. Reduce it first: "
            "x.sum(), x.min() or x.max()."
        )

    __nonzero__ = __bool__
    __hash__: Any = object.__hash__  # by identity, although == compares elements

    def __contains__(self, value: Any) -> bool:
        return bool((plain(self) == value).any())

    def slice_assign(self, rhs: NDArray, begin: Any, end: Any, step: Any = None) -> NDArray:
        """Assign an array to the slice [begin, end) and return self.

        Parameters
        ----------
        rhs
            The array to write.
        begin
            First index of each axis; None: the first element, or the last for a negative step.
        end
            Index to stop before, for each axis; None: through the end.
        step
            Step along each axis; 1 by default.
        """
        self[_slices(begin, end, step)] = rhs
        return self

    def slice_assign_scalar(self, value: float, begin: Any, end: Any, step: Any = None) -> NDArray:
        """Assign a number to the slice [begin, end) and return self.

        Parameters
        ----------
        value
            The number to write.
        begin
            First index of each axis; None: the first element, or the last for a negative step.
        end
            Index to stop before, for each axis; None: through the end.
        step
            Step along each axis; 1 by default.
        """
        self[_slices(begin, end, step)] = value
        return self

    # -- type and shape -----------------------------------------------------------------------

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """Return the array converted to a data type.

        Parameters
        ----------
        dtype
            The data type.
        copy
            Whether to copy if the data type is unchanged.

        >>> mx.nd.array([1.7]).astype('int32').asnumpy()
        array([1], dtype=int32)
        """
        target_dtype = dtypes.to_torch(dtype if dtype is not None else "float32")
        if not copy and self._dtype is target_dtype:
            return self
        return _cast(self, target_dtype)

    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray:
        """Return a view with a new shape; 0, -1, -2, -3 and -4 are MXNet's reshape codes.

        Parameters
        ----------
        shape
            The new shape.

        >>> mx.nd.zeros((2, 3, 4)).reshape((-1, 0), reverse=True).shape
        (6, 4)
        """
        sizes = shape[0] if len(shape) == 1 else None
        if type(sizes) is tuple and sizes and not kwargs and 0 not in sizes:
            # torch supports -1, raises for other codes, and parses numbers faster than a tuple.
            try:
                data = self._data
                if active or data is None:
                    array = wrap(type(self), current(self).reshape(*sizes), self._ctx)
                    if array._member is not None:
                        array._member.node = (RESHAPING, node_of(self), sizes)
                    return array
                data = data.view(*sizes)  # non-contiguous tensors are handled below
            except (NoDenseOperand, RuntimeError, TypeError):
                pass
            else:
                array = new_object(type(self))
                array._data = data
                array._dtype = self._dtype
                array._ctx = self._ctx
                array._grad = array._member = None
                return array
        reverse = kwargs.pop("reverse", False)
        requested: Any = shape
        if not shape:
            requested = kwargs.pop("shape", None)
            if requested is None:
                raise InvalidValue("Shape must be provided.")
        elif isinstance(sizes, tuple | list):
            requested = sizes
        if kwargs:
            raise TypeError(f"Got unknown keywords in reshape: {', '.join(kwargs)}.")
        shape = (requested,) if isinstance(requested, int) else tuple(int(n) for n in requested)
        new_shape = resolve_reshape(self.shape, shape, bool(reverse))
        if new_shape is None:
            raise ShapeError(f"Cannot reshape array of size {self.size} into shape {shape}")
        return self._view(lambda t: t.reshape(new_shape))

    def _view(self, function: Callable[[Tensor], Tensor]) -> NDArray:
        """Return a view by a torch function, attached to the graph."""
        view = derive(self, function)
        record_step(view, RESHAPING, (self,), view.shape)
        return view

    def expand_dims(self, axis: int, inplace: bool = False) -> NDArray:
        """Return a copy (a view with `inplace`) with a new axis of size 1.

        Parameters
        ----------
        axis
            The axis; a negative one counts from the last.
        inplace
            Whether to return a view.
        """
        if inplace:
            return self._view(lambda t: t.unsqueeze(axis))
        return _expand_dims(self, axis)

    def squeeze(self, axis: Any = None, inplace: bool = False) -> NDArray:
        """Return a copy (a view with `inplace`) without axes of size 1.

        Parameters
        ----------
        axis
            The axes to remove; None: all axes of size 1.
        inplace
            Whether to return a view.
        """
        output = _squeeze(self, axis)
        return self.reshape(output.shape) if inplace else output

    def flatten(self, inplace: bool = False) -> NDArray:
        """Return a copy (a view with `inplace`) with all axes but the first flattened.

        Parameters
        ----------
        inplace
            Whether to return a view.
        """
        if inplace:
            return self._view(lambda t: t.flatten(1))
        return _flatten(self)

    def broadcast_to(self, shape: Any) -> NDArray:
        """Return a copy broadcast to a shape; a size of 0 is kept.

        Parameters
        ----------
        shape
            The new shape.
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if self.ndim < len(shape):  # NumPy's rule, as in MXNet's method
            lifted = self.reshape((1,) * (len(shape) - self.ndim) + self.shape)
            return _broadcast_to(lifted, shape)
        return _broadcast_to(self, shape)

    def broadcast_like(self, other: Any) -> NDArray:
        """Return a copy broadcast to the shape of another array, which may have more axes.

        Parameters
        ----------
        other
            The array whose shape the result has.
        """
        return self.broadcast_to(other.shape)

    def split_v2(
        self, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False
    ) -> NDArray | list[NDArray]:
        """Split into equal sections, or at the given indices.

        Parameters
        ----------
        indices_or_sections
            Number of equal parts, or the start indices of the parts.
        axis
            The axis; a negative one counts from the last.
        squeeze_axis
            Whether to remove the split axis, which must have size 1 in the parts.
        """
        from .functions import split_v2

        return split_v2(self, indices_or_sections, axis, squeeze_axis)

    def transpose(self, *axes: Any, **kwargs: Any) -> NDArray:
        """Return a copy with the axes permuted; without axes, reversed.

        Parameters
        ----------
        axes
            The new order of the axes; by default reversed.
        """
        if "axes" in kwargs:
            axes = kwargs["axes"]
        elif len(axes) == 1 and not isinstance(axes[0], int):
            axes = axes[0]
        return _transpose(self, tuple(axes)) if axes else _transpose(self)

    # -- to other libraries -------------------------------------------------------------------

    def asnumpy(self) -> np.ndarray:
        """Return a NumPy copy.

        >>> mx.nd.ones((2,)).asnumpy()
        array([1., 1.], dtype=float32)
        """
        tensor = self._data
        if tensor is None:
            tensor = plain(self)
        if self._dtype is _BFLOAT16:
            bits = tensor.contiguous().view(torch.int16).cpu().numpy()
            return bits.copy().view(dtypes.bfloat16)
        array = tensor.numpy().copy() if tensor.is_cpu else tensor.cpu().numpy()
        return convertible(array) if array.size == 1 else array

    def numpy(self) -> np.ndarray:
        """Same as `asnumpy`; the name in other frameworks."""
        return self.asnumpy()

    def asscalar(self) -> Any:
        """Return the only element as a NumPy scalar.

        >>> float(mx.nd.array([3]).asscalar())
        3.0
        """
        data = plain(self)
        if data.numel() != 1:
            raise ValueError(
                f"The current array is not a scalar: it has {data.numel()} elements. Index it, "
                "or use asnumpy()."
            )
        kind = dtypes.to_numpy(data.dtype)
        if kind is np.float32:  # the common case
            return kind(data.item())
        return self.asnumpy().reshape(-1)[0]

    def item(self) -> Any:
        """Return the only element as a Python number."""
        return self.asscalar().item()

    def tolist(self) -> list:
        """Return the elements as nested Python lists."""
        return plain(self).tolist()

    def to_torch(self) -> Tensor:
        """Return a torch tensor that shares this array's memory.

        >>> mx.nd.ones((2,)).to_torch()
        tensor([1., 1.])
        """
        return exported(self)

    def as_torch(self, grad: bool | None = None) -> Tensor:
        """Return a torch tensor on this array's memory and, while recording, in its graph.

        Gradients of torch's computations flow back into this array's gradient, whether `backward`
        is called on an array or a tensor. While recording, write into the array only: torch records
        a write into the tensor.

        Parameters
        ----------
        grad
            Whether the tensor stays attached to the array's graph; by default only inside
            `mx.autograd.record()`.

        >>> import torch
        >>> x = mx.nd.array([1, 2])
        >>> x.attach_grad()
        >>> with mx.autograd.record():
        ...     y = torch.sin(x.as_torch()).sum()
        >>> y.backward()
        >>> bool((x.grad == x.cos()).min())
        True
        """
        return shared_tensor(self, grad)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = exported(self).cpu().numpy() if copy is False else self.asnumpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return exported(self).__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return plain(self).__dlpack_device__()

    def to_dlpack_for_read(self) -> Any:
        """Return a DLPack capsule that shares memory, to be read."""
        return torch.utils.dlpack.to_dlpack(exported(self))

    def to_dlpack_for_write(self) -> Any:
        """Return a DLPack capsule that shares memory, to be written."""
        writable(self)  # raises for tensors of a graph
        return torch.utils.dlpack.to_dlpack(exported(self))

    def wait_to_read(self) -> None:
        """Wait for pending work on this array."""
        accelerator.synchronize(plain(self).device)

    wait_to_write = wait_to_read

    # -- copies -------------------------------------------------------------------------------

    def copy(self) -> NDArray:
        """Return a copy on the same device."""
        return self.copyto(self.context)

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copy into another array of the same shape, or to a context.

        Parameters
        ----------
        other
            The target array, or a device.
        """
        if isinstance(other, Handle):
            if other is self:
                warnings.warn(
                    "You are attempting to copy an array to itself", RuntimeWarning, stacklevel=2
                )
                return other
            if other.stype != "default":
                other[:] = self
                return other
            if writable(other).shape != plain(self).shape:
                raise MXNetError(
                    f"copyto: the arrays have shapes {self.shape} and {other.shape}; "
                    "they must be equal."
                )
            other._write(_FULL, self)
            return other
        if isinstance(other, Context):
            device = torch_device(other)
            accelerator.check_dtype(plain(self).dtype, device)
            output = derive(self, lambda t: t.clone() if t.device == device else t.to(device))
            output._ctx = stored_context(other)
            record_step(output, COPYING, (self,))
            return output
        raise TypeError(f"copyto does not support type {type(other)}")

    def as_in_context(self, context: Context) -> NDArray:
        """Return the array on a context: itself if it is already there, else a copy.

        Parameters
        ----------
        context
            The device.
        """
        return self if self.context == context else self.copyto(context)

    as_in_ctx = as_in_context

    def as_nd_ndarray(self) -> NDArray:
        """Return a legacy NDArray that shares this memory."""
        return self

    def as_np_ndarray(self) -> NDArray:
        """Return an `mx.np.ndarray` that shares this memory."""
        from ..numpy import ndarray  # lazy import: numpy builds on this module

        return self._as(ndarray)

    def _as(self, cls: type[NDArray]) -> NDArray:
        array = cls.__new__(cls)
        array._data = None if self._data is None else self._data.detach()
        array._member, array._grad = self._member, self._grad
        array._dtype, array._ctx = self._dtype, self._ctx
        return array

    def tostype(self, stype: str) -> NDArray:
        """Return the array in another storage type ('default', 'row_sparse', 'csr').

        Parameters
        ----------
        stype
            Storage type.
        """
        if stype == "default":
            return self.copy()
        from .sparse import cast_storage

        return cast_storage(self, stype)

    def detach(self) -> NDArray:
        """Return an array on the same memory, detached from the recorded graph."""
        return wrap_plain(type(self), plain(self).detach(), self._ctx)

    # -- pickles ------------------------------------------------------------------------------

    def __reduce__(self) -> tuple:
        return type(self), (None,), self.__getstate__()

    def __getstate__(self) -> dict[str, Any]:
        """Return the pickled state, as in MXNet: a record of a params file."""
        if self._dtype is None:  # not yet unpickled
            return {"handle": None}
        ctx = self.context
        record = params_file.dump_record(plain(self), (ctx.device_typeid, ctx.device_id))
        return {"handle": bytearray(record)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled array; on the CPU if its GPU does not exist."""
        set_empty(self)
        if state["handle"] is None:
            return
        stored, offset = params_file.load_record(state["handle"], "pickled array")
        if not isinstance(stored, Tensor):
            from .sparse import from_stored

            stored = from_stored(stored)._dense()
        ctx = Context(Context.devtype2str.get(offset[0], "cpu"), offset[1])
        try:
            device = torch_device(ctx)
        except MXNetError:
            ctx = cpu()
            device = torch_device(ctx)
        self._data, self._dtype = stored.to(device), stored.dtype
        self._ctx = stored_context(ctx)

    def __copy__(self) -> NDArray:
        return self.copy()

    def __deepcopy__(self, memo: dict) -> NDArray:
        copied = wrap_plain(type(self), plain(self).clone(), self._ctx)
        if self.grad is not None:
            attach(copied, self._grad.req)
        return copied

    # -- gradients ----------------------------------------------------------------------------

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Allocate a gradient array and make this array a leaf of the graph.

        Parameters
        ----------
        grad_req : {'write', 'add', 'null'}
            How backward stores the gradient.
        stype
            Storage type.

        >>> x = mx.nd.array([3.0])
        >>> x.attach_grad()
        >>> with mx.autograd.record():
        ...     y = x * x
        >>> y.backward()
        >>> x.grad.asscalar()
        np.float32(6.0)
        """
        attach(self, grad_req, stype=stype)

    def backward(
        self, out_grad: NDArray | None = None, retain_graph: bool = False, train_mode: bool = True
    ) -> None:
        """Compute the gradients of this array with respect to all arrays with `attach_grad`.

        `train_mode` applies to user-defined gradients (`autograd.Function`); operators use the mode
        of the recording.

        Parameters
        ----------
        out_grad
            Gradient of this array; by default ones.
        retain_graph
            Whether to keep the graph for another backward pass.
        train_mode
            Mode of `autograd.Function.backward`.
        """
        if train_mode == state.backward_training:
            run_backward([self], None if out_grad is None else [out_grad], retain_graph)
            return
        with backward_mode(train_mode):
            run_backward([self], None if out_grad is None else [out_grad], retain_graph)

    # -- other methods -----------------------------------------------------------------------------

    def __repr__(self) -> str:
        return text(self)

    def _repr_html_(self) -> str:
        return html(self)

    def __format__(self, spec: str) -> str:
        """Format an array of one element as a number: ``f"{loss:.3f}"``."""
        if not spec:
            return str(self)
        if self.size != 1:
            raise TypeError(
                f"The format {spec!r} needs an array of one element; this one has shape "
                f"{self.shape}. Format loss.mean(), or single elements."
            )
        return format(self.item(), spec)

    def __matmul__(self, other: Any) -> NDArray:
        """Matrix product of two matrices, or of batches of matrices."""
        if not isinstance(other, NDArray):
            return NotImplemented
        from .. import ndarray  # the functions are generated after this class

        if self.ndim == other.ndim == 3:
            return ndarray.batch_dot(self, other)
        if self.ndim > 2 or other.ndim > 2:
            raise ShapeError(
                f"@ multiplies matrices and stacks of them, not {self.shape} and {other.shape}."
            )
        return ndarray.dot(self, other)


_broadcast_to = make_call_function(broadcast_to, NDArray)
_cast = make_call_function(cast, NDArray)
_expand_dims = make_call_function(expand_dims, NDArray)
_flatten = make_call_function(flatten, NDArray)
_squeeze = make_call_function(squeeze, NDArray)
_transpose = make_call_function(transpose, NDArray)


def _is_member(value: Any) -> bool:
    """Return whether a value is an array in the graph of the current recording."""
    if not isinstance(value, NDArray) or graph_tensor(value) is None:
        return False
    return not is_constant_now(value, state.session)


def _slices(begin: Any, end: Any, step: Any) -> tuple[slice, ...]:
    steps = step or (None,) * len(begin)
    return tuple(slice(b, e, s) for b, e, s in zip(begin, end, steps, strict=True))


def from_host(values: np.ndarray) -> Tensor:
    """Return a new tensor with the values of a NumPy array; uint16 may be bfloat16."""
    return dtypes.from_numpy(np.ascontiguousarray(values).copy())
