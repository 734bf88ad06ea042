"""Functions that create arrays."""

from __future__ import annotations

import operator
from contextlib import suppress
from typing import Any

import numpy as np
import torch
import torch.utils.dlpack
from torch import Tensor

from .. import accelerator, dtypes
from ..base import is_np_shape
from ..context import Context, current_context, torch_device
from ..error import AttributeConversionError, InvalidValue, MXNetError, reporting_memory
from ..ops.declare import Op
from ..ops.tensor import creation as operators
from ..runtime.apply import apply, parse_context, stored_context
from ..runtime.array import plain, wrap_foreign, wrap_plain, wrap_shared
from ..runtime.calls import make_call_function
from .ndarray import NDArray

__all__ = [
    "arange",
    "array",
    "empty",
    "eye",
    "from_dlpack",
    "from_numpy",
    "from_torch",
    "full",
    "linspace",
    "ones",
    "to_dlpack_for_read",
    "to_dlpack_for_write",
    "zeros",
]


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """Create an array from nested lists, NumPy, torch, scipy.sparse or another NDArray.

    The default `dtype` is float32, or that of an NDArray.

    Parameters
    ----------
    source_array
        The values.
    ctx
        Device of the array; by default the current one.
    dtype
        Data type of the array; by default float32, or that of an NDArray.

    >>> mx.nd.array(np.array([1, 2])).dtype
    <class 'numpy.float32'>
    """
    ctx = ctx or current_context()
    device = torch_device(ctx)
    if _is_scipy_sparse(source_array):
        from .sparse import array as sparse_array

        return sparse_array(source_array, ctx=ctx, dtype=dtype)
    if isinstance(source_array, NDArray):
        if getattr(source_array, "stype", "default") != "default":
            return source_array.copyto(ctx) if dtype is None else source_array.astype(dtype)
        source, implied = plain(source_array), plain(source_array).dtype
    elif isinstance(source_array, Tensor):
        source, implied = source_array.detach(), torch.float32
    else:
        implied = torch.float32 if dtype is None else dtypes.to_torch(dtype)
        source = _host_tensor(source_array, implied)
    target_dtype = implied if dtype is None else dtypes.to_torch(dtype)
    accelerator.check_dtype(target_dtype, device)
    with reporting_memory(f"array of shape {tuple(source.shape)}"):
        tensor = torch.empty(source.shape, dtype=target_dtype, device=device)
    output = wrap_plain(NDArray, tensor, stored_context(ctx))
    if isinstance(source_array, NDArray):
        output[:] = source_array  # recorded: gradients flow to the source
    else:
        tensor.copy_(source)
    return output


def _host_tensor(source: Any, target_dtype: torch.dtype) -> Tensor:
    """Convert the source by NumPy."""
    if isinstance(source, list | tuple) and any(isinstance(s, NDArray) for s in source):
        source = [s.asnumpy() if isinstance(s, NDArray) else s for s in source]
    try:
        values = np.asarray(source)
        if values.dtype.kind not in "biufc" and not dtypes.is_bfloat16(values.dtype):
            values = np.asarray(source, dtype=dtypes.to_numpy(target_dtype))
    except (ValueError, TypeError, OverflowError):
        raise TypeError(
            "source_array must be array like object: numbers in nested lists of equal lengths, "
            f"not {type(source).__name__}"
        ) from None
    if values.dtype.kind in "u" and values.dtype.itemsize > 1:
        values = values.astype(np.int64 if values.dtype.itemsize < 8 else np.float64)
    return dtypes.from_numpy(np.ascontiguousarray(values).reshape(values.shape))


def _is_scipy_sparse(source: Any) -> bool:
    return type(source).__module__.startswith("scipy.sparse")


def _context(ctx: Any) -> Context:
    """Return a context from a Context, its string form, or the current one for None."""
    if isinstance(ctx, Context):
        return ctx
    return current_context() if ctx is None else parse_context(str(ctx))


def _sizes(name: str, shape: Any) -> tuple[int, ...]:
    try:
        sizes = (shape,) if isinstance(shape, int | np.integer) else shape
        return tuple([operator.index(n) for n in sizes])
    except TypeError:
        raise AttributeConversionError(
            f"Invalid Parameter format for shape expect Shape(tuple) but value={shape!r}, "
            f"in operator {name}."
        ) from None


def _fill(op: Op, shape: Any, ctx: Context | None, dtype: Any, **kwargs: Any) -> NDArray:
    """Create a filled array; in legacy mode a size of 0 means unknown."""
    shape = _sizes(op.name, shape)
    if not shape or 0 in shape:
        if is_np_shape():  # the operators only have the legacy semantics
            return full(shape, 1 if op is operators.ones else 0, ctx, dtype)
        raise MXNetError(
            f"Operator {op.name} inferring shapes failed: shape {shape} has an unknown size; "
            "in legacy mode 0 and () mean unknown. Pass sizes of at least 1, or use mx.np_shape()."
        )
    dtype = torch.float32 if dtype is None else dtype
    if ctx is None:
        return _FILL[op](shape, dtype=dtype, **kwargs)
    return apply(op, (), {"shape": shape, "dtype": dtype, **kwargs}, cls=NDArray, ctx=_context(ctx))


_FILL = {op: make_call_function(op, NDArray) for op in (operators.zeros, operators.ones)}


def zeros(
    shape: Any,
    ctx: Context | None = None,
    dtype: Any = None,
    stype: str | None = None,
    **kwargs: Any,
) -> NDArray:
    """Create an array of zeros, dense or sparse.

    Parameters
    ----------
    shape
        Shape of the array: a number or a tuple.
    ctx
        Device of the array; by default the current one.
    dtype
        Data type of the array; float32 by default.
    stype
        Storage type: ``'default'`` (dense), ``'csr'`` or ``'row_sparse'``.

    >>> mx.nd.zeros((1, 2)).asnumpy()
    array([[0., 0.]], dtype=float32)
    """
    if stype not in (None, "default"):
        from .sparse import zeros as sparse_zeros

        return sparse_zeros(stype, shape, ctx=ctx, dtype=dtype, **kwargs)
    kwargs.pop("name", None)
    return _fill(operators.zeros, shape, ctx, dtype, **kwargs)


def ones(shape: Any, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """Create an array of ones.

    Parameters
    ----------
    shape
        Shape of the array: a number or a tuple.
    ctx
        Device of the array; by default the current one.
    dtype
        Data type of the array; float32 by default.

    >>> mx.nd.ones(2, dtype='int32').asnumpy()
    array([1, 1], dtype=int32)
    """
    kwargs.pop("name", None)
    return _fill(operators.ones, shape, ctx, dtype, **kwargs)


def empty(
    shape: Any, ctx: Context | None = None, dtype: Any = None, stype: str | None = None
) -> NDArray:
    """Create an uninitialized array.

    Parameters
    ----------
    shape
        Shape of the array: a number or a tuple.
    ctx
        Device of the array; by default the current one.
    dtype
        Data type of the array; float32 by default.
    stype
        Storage type: ``'default'`` (dense), ``'csr'`` or ``'row_sparse'``.

    >>> mx.nd.empty((2, 3)).shape
    (2, 3)
    """
    if stype not in (None, "default"):
        from .sparse import empty as sparse_empty

        return sparse_empty(stype, shape, ctx=ctx, dtype=dtype)
    ctx = ctx or current_context()
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    with reporting_memory(f"empty(shape={shape})"):
        tensor = torch.empty(shape, dtype=dtypes.to_torch(dtype), device=torch_device(ctx))
    return wrap_plain(NDArray, tensor, stored_context(ctx))


def full(
    shape: Any,
    val: float,
    ctx: Context | None = None,
    dtype: Any = np.float32,
    out: NDArray | None = None,
) -> NDArray:
    """Create an array filled with a value, or fill `out`.

    Parameters
    ----------
    shape
        Shape of the array: a number or a tuple.
    val
        Value of all elements.
    ctx
        Device of the array; by default the current one.
    dtype
        Data type of the array; float32 by default.
    out
        Array to fill instead of a new one.

    >>> mx.nd.full((2,), 7).asnumpy()
    array([7., 7.], dtype=float32)
    """
    output = empty(shape, ctx, dtype) if out is None else out
    output[...] = val
    return output


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool | None = None,
    ctx: Context | None = None,
    dtype: Any = np.float32,
) -> NDArray:
    """Return evenly spaced values in [start, stop), each repeated `repeat` times.

    Parameters
    ----------
    start
        Start of the interval, included. If `stop` is None, the interval is ``[0, start)``.
    stop
        End of the interval, excluded.
    step
        Distance between neighboring values; it may be negative.
    repeat
        Number of repetitions of each value.
    infer_range
        Accepted for compatibility with `mx.sym`; has no effect.
    ctx
        Device of the array; by default the current one.
    dtype
        Data type of the array; float32 by default.

    >>> mx.nd.arange(0, 3, repeat=2).asnumpy()
    array([0., 0., 1., 1., 2., 2.], dtype=float32)
    """
    raw = {"start": start, "stop": stop, "step": step, "repeat": repeat, "dtype": dtype}
    return apply(operators.arange, (), raw, cls=NDArray, ctx=_context(ctx))


def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    ctx: Context | None = None,
    dtype: Any = np.float32,
) -> NDArray:
    """Return `num` evenly spaced values from start to stop.

    Parameters
    ----------
    start
        First value.
    stop
        End of the interval; excluded with ``endpoint=False``.
    num
        Number of values.
    endpoint
        Whether to include `stop`.
    ctx
        Device of the array; by default the current one.
    dtype
        Data type of the array; float32 by default.

    >>> mx.nd.linspace(0, 1, 3).asnumpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    raw = {"start": start, "stop": stop, "num": num, "endpoint": endpoint, "dtype": dtype}
    return apply(operators.linspace, (), raw, cls=NDArray, ctx=_context(ctx))


def eye(
    N: int,
    M: int = 0,
    k: int = 0,
    ctx: Context | None = None,
    dtype: Any = None,
    **kwargs: Any,
) -> NDArray:
    """Create a matrix with ones on the k-th diagonal and zeros elsewhere.

    Parameters
    ----------
    N
        Number of rows.
    M
        Number of columns; 0 means `N`.
    k
        Index of the diagonal: 0 is the main diagonal, positive ones are above it, negative ones
        below.
    ctx
        Device of the array; by default the current one.
    dtype
        Data type of the array; float32 by default.

    >>> mx.nd.eye(2).asnumpy()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    raw = {"N": N, "M": M, "k": k, "dtype": "float32" if dtype is None else dtype}
    return apply(operators.eye, (), raw, cls=NDArray, ctx=_context(ctx))


def from_numpy(ndarray: np.ndarray, zero_copy: bool = True, array_cls: type = NDArray) -> NDArray:
    """Create an array from a NumPy array, by default in the same memory.

    A shared NumPy array becomes read-only, to prevent accidental changes. Read-only arrays are
    shared too, unless NumPy does not own their memory.

    Parameters
    ----------
    ndarray
        The NumPy array; it must be contiguous to be shared.
    zero_copy
        Whether to share the memory; otherwise values are copied.
    array_cls
        Class of the result.

    >>> mx.nd.from_numpy(np.arange(3)).asnumpy()
    array([0, 1, 2])
    """
    if not zero_copy:
        return wrap_plain(array_cls, dtypes.from_numpy(np.ascontiguousarray(ndarray).copy()))
    if not ndarray.flags["C_CONTIGUOUS"]:
        raise ValueError("Only c-contiguous arrays are supported for zero-copy")
    with suppress(ValueError):  # read-only memory, such as that of bytes
        ndarray.flags["WRITEABLE"] = True
    output = wrap_foreign(array_cls, dtypes.from_numpy(ndarray))
    ndarray.flags["WRITEABLE"] = False
    return output


def from_torch(tensor: Tensor, grad: bool | None = None) -> NDArray:
    """Create an array on the memory of a torch tensor; a non-contiguous tensor is copied.

    Parameters
    ----------
    tensor
        The tensor.
    grad
        Whether the array stays attached to the tensor's graph, so that gradients flow back to the
        tensor; by default only inside `mx.autograd.record()`.

    >>> import torch
    >>> t = torch.ones(2, requires_grad=True)
    >>> with mx.autograd.record():
    ...     y = mx.nd.from_torch(t) * 3
    >>> y.backward()
    >>> t.grad
    tensor([3., 3.])
    """
    return wrap_shared(NDArray, tensor, grad)


def from_dlpack(dlpack: Any) -> NDArray:
    """Create an array on the memory of a DLPack capsule or an object with ``__dlpack__``.

    Parameters
    ----------
    dlpack
        A DLPack capsule, or an object with ``__dlpack__``.

    >>> mx.nd.from_dlpack(mx.nd.ones(2).to_dlpack_for_read()).asnumpy()
    array([1., 1.], dtype=float32)
    """
    try:
        return wrap_foreign(NDArray, torch.utils.dlpack.from_dlpack(dlpack))
    except RuntimeError as error:
        raise InvalidValue(f"Invalid DLPack Tensor: {error}") from error


def to_dlpack_for_read(data: NDArray) -> Any:
    """Return a DLPack capsule that shares the array's memory, for reading.

    Parameters
    ----------
    data
        The array.

    >>> mx.nd.from_dlpack(mx.nd.to_dlpack_for_read(mx.nd.ones(2))).shape
    (2,)
    """
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: NDArray) -> Any:
    """Return a DLPack capsule that shares the array's memory, for writing.

    Parameters
    ----------
    data
        The array.

    >>> x = mx.nd.ones(2)
    >>> mx.nd.from_dlpack(mx.nd.to_dlpack_for_write(x))[:] = 3
    >>> x.asnumpy()
    array([3., 3.], dtype=float32)
    """
    return data.to_dlpack_for_write()
