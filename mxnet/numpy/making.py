"""Functions that make arrays from values; those that fill them are composites."""

from __future__ import annotations

from typing import Any

import numpy as onp
import torch
from torch import Tensor

from .. import dtypes
from ..context import Context, current_context, torch_device
from ..imperative.apply import stored_context
from ..imperative.handle import Handle, plain, wrap_plain
from .array import ndarray
from .composites.creation import check_order


def array(object: Any, dtype: Any = None, ctx: Context | None = None) -> ndarray:
    """Return a new array with the values of lists, NumPy arrays or arrays of `mx.np`.

    Arrays keep their data type; everything else becomes float32 unless `dtype` is given.

    Parameters
    ----------
    object
        The values.
    dtype
        Data type of the array; by default float32, or that of an array.
    ctx
        Device of the array; by default the current one.

    >>> mx.np.array([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    ctx = current_context() if ctx is None else ctx
    device = torch_device(ctx)
    if isinstance(object, Handle):
        if not isinstance(object, ndarray):
            raise ValueError(
                "To make an mx.np.ndarray of an mx.nd.NDArray, use the zero-copy method "
                "as_np_ndarray()."
            )
        source = plain(object)
    elif isinstance(object, Tensor):
        source = object.detach()
    else:
        source = _from_host(object, dtype)
    wanted = source.dtype if dtype is None else dtypes.to_torch(dtype)
    tensor = torch.empty(source.shape, dtype=wanted, device=device)
    made = wrap_plain(ndarray, tensor, stored_context(ctx))
    if isinstance(object, Handle):
        made[:] = object  # recorded: gradients flow to the source
    else:
        tensor.copy_(source)
    return made


def _from_host(values: Any, dtype: Any) -> Tensor:
    keeps_dtype = isinstance(values, onp.ndarray | onp.generic)
    implied = onp.float32 if dtype is None else dtypes.to_numpy(dtypes.to_torch(dtype))
    try:
        host = onp.asarray(_without_arrays(values), dtype=None if keeps_dtype else implied)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"array: {error}. Give numbers in nested lists of equal lengths, or an array."
        ) from None
    if host.dtype.kind == "u" and host.dtype.itemsize > 1:
        host = host.astype(onp.int64)
    elif host.dtype.name not in dtypes.BY_NAME and not dtypes.is_bfloat16(host.dtype):
        host = host.astype(implied)
    return dtypes.from_numpy(onp.ascontiguousarray(host).reshape(host.shape))


def _without_arrays(values: Any) -> Any:
    """Return nested lists with arrays replaced by NumPy's."""
    if isinstance(values, Handle):
        return values.asnumpy()
    if isinstance(values, list | tuple):
        return [_without_arrays(v) for v in values]
    return values


def empty(
    shape: Any, dtype: Any = onp.float32, order: str = "C", ctx: Context | None = None
) -> ndarray:
    """Return a new array whose values are not to be relied on.

    Parameters
    ----------
    shape
        Shape of the array: a number or a tuple.
    dtype
        Data type of the array; float32 by default.
    order
        Order in memory; only ``'C'``, the last axis fastest.
    ctx
        Device of the array; by default the current one.

    >>> mx.np.empty((2, 3)).shape
    (2, 3)
    """
    check_order(order)
    ctx = current_context() if ctx is None else ctx
    sizes = (shape,) if isinstance(shape, int | onp.integer) else tuple(shape)
    wanted = dtypes.to_torch(onp.float32 if dtype is None else dtype)
    tensor = torch.empty(sizes, dtype=wanted, device=torch_device(ctx))
    return wrap_plain(ndarray, tensor, stored_context(ctx))
