"""Operators that create arrays.

The caller handles the attribute ``ctx``; kernels use `run.device`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ... import dtypes
from ...base import is_np_shape
from ...error import DTypeError, MXNetError, ShapeError
from ..attributes import Count, DType, Shape
from ..declare import OpContext, op
from ..families import number
from ..shapes import UNKNOWN, Shapes, same, unify
from .shape_changing import axis_within

_F32, _CPU = torch.float32, torch.device("cpu")


def _by_attribute(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """The shape is the attribute; its unknown sizes may be inferred from the graph."""
    shape = attrs["shape"]
    shape = shape if shape or (is_np_shape() and shape is not None) else None
    return ins, [unify(shape, outs[0], "the output")]


def _known(name: str, shape: Shape | None) -> Shape:
    if shape is None or not (shape or is_np_shape()):
        raise ShapeError(f"{name}: shape must be given, but is {shape}.")
    if shape and min(shape) < 0:
        raise ShapeError(f"{name}: sizes cannot be negative, but shape is {shape}.")
    return shape


def filled_directly(
    function: Callable[..., Tensor], attrs: dict[str, Any], dtype: torch.dtype | None
) -> Callable[[], Tensor] | None:
    """Return the function that creates a filled array; torch parses numbers faster than a tuple."""
    shape = attrs.get("shape")
    if not shape or min(shape) < 0:
        return None
    return partial(function, *shape, dtype=attrs.get("dtype", _F32), device=_CPU)


@op("_zeros", types="-> @dtype", shape=_by_attribute)
def zeros(*, shape: Shape = (), ctx: str = "", dtype: DType = _F32, run: OpContext) -> Tensor:
    """Create an array of zeros.

    >>> mx.nd._internal._zeros(shape=(2,)).asnumpy()
    array([0., 0.], dtype=float32)
    """
    return torch.zeros(_known("_zeros", shape), dtype=dtype, device=run.device)


@op("_ones", types="-> @dtype", shape=_by_attribute)
def ones(*, shape: Shape = (), ctx: str = "", dtype: DType = _F32, run: OpContext) -> Tensor:
    """Create an array of ones.

    >>> mx.nd._internal._ones(shape=(2,)).asnumpy()
    array([1., 1.], dtype=float32)
    """
    return torch.ones(_known("_ones", shape), dtype=dtype, device=run.device)


zeros.variant("call")(partial(filled_directly, torch.zeros))
ones.variant("call")(partial(filled_directly, torch.ones))


@op("_full", "_npi_full", types="-> @dtype", shape=_by_attribute)
def full(
    *,
    shape: Shape | None = None,
    ctx: str = "",
    dtype: DType = _F32,
    value: float,
    run: OpContext,
) -> Tensor:
    """Create an array filled with a number.

    Parameters
    ----------
    value
        The value of all elements.

    >>> mx.nd._internal._full(shape=(2,), value=3).asnumpy()
    array([3., 3.], dtype=float32)
    """
    fill = number(value, dtype).item()
    return torch.full(_known("_full", shape), fill, dtype=dtype, device=run.device)


def _dtype_of_code(code: int) -> torch.dtype:
    if code == -1:
        return _F32
    if code not in dtypes.BY_CODE:
        raise DTypeError(f"_zeros_without_dtype: {code} is not the code of a data type.")
    return dtypes.BY_CODE[code].torch


@op("_zeros_without_dtype", types="-> T", shape=_by_attribute)
def zeros_without_dtype(
    *, shape: Shape | None = None, ctx: str = "", dtype: int = -1, run: OpContext
) -> Tensor:
    """Create an array of zeros; the data type is given by its code.

    Parameters
    ----------
    dtype
        Code of the data type; -1 is float32.

    >>> mx.nd._internal._zeros_without_dtype(shape=(2,)).asnumpy()
    array([0., 0.], dtype=float32)
    """
    target = _known("_zeros_without_dtype", shape)
    return torch.zeros(target, dtype=_dtype_of_code(dtype), device=run.device)


def sequence(
    count: int, start: float, step: float, repeat: int, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Return ``start + step * (i // repeat)`` for ``count`` elements, computed in `dtype`."""
    line = torch.arange(count, device=device)
    if repeat > 1:
        line = line.div_(repeat, rounding_mode="floor")
    line = line.to(dtype)
    # Integer arrays truncate start and step first, as MXNet does.
    if step != 1:
        line = line.mul_(number(step, dtype))
    return line.add_(number(start, dtype)) if start else line


def _arange_count(start: float, stop: float | None, step: float, repeat: int) -> int:
    if stop is None:
        start, stop = 0.0, start
    if not step or (start >= stop if step > 0 else start <= stop) or repeat < 1:
        raise MXNetError(
            f"_arange: Invalid range (start, stop, step) = ({start}, {stop}, {step}), "
            f"repeat={repeat}."
        )
    return math.ceil((stop - start) / step) * repeat


@op("_arange", types="-> @dtype")
def arange(
    *,
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    ctx: str = "",
    dtype: DType = _F32,
    run: OpContext,
) -> Tensor:
    """Return evenly spaced numbers in ``[start, stop)``, each repeated ``repeat`` times.

    Parameters
    ----------
    stop
        End of the interval, excluded. If None, the interval is ``[0, start)``.

    >>> mx.nd._internal._arange(start=0, stop=4, step=2, repeat=2).asnumpy()
    array([0., 0., 2., 2.], dtype=float32)
    """
    if infer_range and stop is None:
        raise ShapeError(
            "_arange: infer_range=True needs a graph that determines the output's shape."
        )
    count = _arange_count(start, stop, step, repeat)
    first = 0.0 if stop is None else start
    return sequence(count, first, step, repeat, dtype, run.device)


@arange.infer_outputs
def arange_shape(
    *, start: float, stop: float | None, step: float, repeat: int, infer_range: bool, **_: object
) -> Shape | None:
    """Compute the number of elements, unless it is inferred from the graph."""
    if infer_range and stop is None:
        return (UNKNOWN,)
    return (_arange_count(start, stop, step, repeat),)


@op("_linspace", "_npi_linspace", types="-> @dtype")
def linspace(
    *,
    start: float,
    stop: float,
    num: Count,
    endpoint: bool = True,
    ctx: str = "",
    dtype: DType = _F32,
    run: OpContext,
) -> Tensor:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``.

    Parameters
    ----------
    stop
        End of the interval; excluded with ``endpoint=False``.

    >>> mx.nd._internal._linspace(start=0, stop=1, num=3).asnumpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    gaps = num - 1 if endpoint else num
    step = (stop - start) / gaps if gaps > 0 else 0.0
    line = torch.arange(num, dtype=torch.float64, device=run.device)
    return line.mul_(step).add_(start).to(dtype)


@linspace.infer_outputs
def linspace_shape(*, num: int, **_: object) -> Shape:
    """The output has `num` elements."""
    return (num,)


@op("_eye", types="-> @dtype")
def eye(
    *, N: int, M: int = 0, k: int = 0, ctx: str = "", dtype: DType = _F32, run: OpContext
) -> Tensor:
    """Create a matrix with ones on the ``k``-th diagonal and zeros elsewhere.

    Parameters
    ----------
    M
        Number of columns; 0 means ``N``.

    >>> mx.nd._internal._eye(N=2, M=3, k=1).asnumpy()
    array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    output = torch.zeros(N, M or N, dtype=dtype, device=run.device)
    if -N < k < (M or N):
        output.diagonal(k).fill_(1)
    return output


@eye.infer_outputs
def eye_shape(*, N: int, M: int, **_: object) -> Shape:
    """The output has the given rows and columns."""
    return N, M or N


@op("_contrib_arange_like", "_npx_arange_like")
def arange_like(
    data: Tensor,
    *,
    start: float = 0.0,
    step: float = 1.0,
    repeat: int = 1,
    ctx: str = "",
    axis: int | None = None,
) -> Tensor:
    """Return consecutive numbers: one per element of an array, or of one of its axes.

    Parameters
    ----------
    data
        The array whose shape is used; its values are ignored.
    axis
        The axis whose size is the length of the result. None: the result has the array's shape.

    >>> mx.nd.contrib.arange_like(mx.nd.zeros((2, 3)), axis=1).asnumpy()
    array([0., 1., 2.], dtype=float32)
    """
    if axis is None:
        line = sequence(data.numel(), start, step, repeat, data.dtype, data.device)
        return line.reshape(data.shape)
    size = data.shape[axis_within(axis, data.ndim, "_contrib_arange_like")]
    return sequence(size, start, step, repeat, data.dtype, data.device)


@arange_like.infer_outputs
def arange_like_shape(data: Shape | None, *, axis: int | None, **_: object) -> Shape | None:
    """The output has the shape of the data, or one axis of it."""
    if data is None or axis is None:
        return data
    return (data[axis_within(axis, len(data), "_contrib_arange_like")],)


@op("_copyto", "_npi_copyto", shape=same, precision="own")
def copyto(data: Tensor) -> Tensor:
    """Copy an array, usually into ``out=``.

    >>> mx.nd._internal._copyto(mx.nd.array([1, 2])).asnumpy()
    array([1., 2.], dtype=float32)
    """
    return data.clone()
