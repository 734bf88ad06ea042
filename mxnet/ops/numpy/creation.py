"""NumPy's creation operators; the shape ``()`` creates a scalar.

The caller handles the attribute ``ctx``; kernels use `run.device`.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from ...error import MXNetError, ShapeError
from ..attributes import Count, DType, Shape
from ..declare import OpContext, op
from ..families import number
from ..shapes import Shapes, same, unify
from ..tensor.creation import filled_directly, sequence
from .families import AttributeTypes

_F32 = torch.float32


def _by_attribute(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    return ins, [unify(attrs["shape"], outs[0], "the output")]


def _known(name: str, shape: Shape) -> Shape:
    if min(shape, default=0) < 0:
        raise ShapeError(f"{name}: the shape {shape} has a negative size.")
    return shape


@op("_npi_zeros", types="-> @dtype", shape=_by_attribute)
def zeros(*, shape: Shape = (), ctx: str = "", dtype: DType = _F32, run: OpContext) -> Tensor:
    """Create an array of zeros.

    >>> mx.nd._internal._npi_zeros(shape=(2,)).asnumpy()
    array([0., 0.], dtype=float32)
    """
    return torch.zeros(_known("_npi_zeros", shape), dtype=dtype, device=run.device)


@op("_npi_ones", types="-> @dtype", shape=_by_attribute)
def ones(*, shape: Shape = (), ctx: str = "", dtype: DType = _F32, run: OpContext) -> Tensor:
    """Create an array of ones.

    >>> mx.nd._internal._npi_ones(shape=(2,)).asnumpy()
    array([1., 1.], dtype=float32)
    """
    return torch.ones(_known("_npi_ones", shape), dtype=dtype, device=run.device)


zeros.variant("call")(partial(filled_directly, torch.zeros))
ones.variant("call")(partial(filled_directly, torch.ones))


@op("_npi_identity", types="-> @dtype", shape=_by_attribute)
def identity(*, shape: Shape = (), ctx: str = "", dtype: DType = _F32, run: OpContext) -> Tensor:
    """Create an array with ones at equal indices (the identity).

    Parameters
    ----------
    shape
        Shape of the result, such as ``(n, n)``.

    >>> mx.nd._internal._npi_identity(shape=(2, 2)).asnumpy()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    output = torch.zeros(_known("_npi_identity", shape), dtype=dtype, device=run.device)
    if shape and output.numel():
        diagonal = torch.arange(min(shape), device=run.device)
        output[(diagonal,) * (len(shape) if len(shape) > 1 else 1)] = 1
        if len(shape) == 1:
            output[1:] = 0
    return output


@op("_npi_full_like", shape=same)
def full_like(a: Tensor, *, fill_value: float, ctx: str = "", dtype: DType | None = None) -> Tensor:
    """Create a filled array with the shape of another; without a gradient.

    Parameters
    ----------
    a
        Array whose shape is used.
    fill_value
        Value of all elements.
    dtype
        Data type of the result; by default that of `a`.

    >>> mx.nd._internal._npi_full_like(mx.nd.array([1, 2]), fill_value=3).asnumpy()
    array([3., 3.], dtype=float32)
    """
    target = dtype or a.dtype
    return number(fill_value, target).to(a.device).expand(a.shape).clone()


full_like.type_pattern = AttributeTypes(lambda dtype: dtype)


def _arange_count(start: float, stop: float | None, step: float) -> int:
    if not step:
        raise MXNetError("_npi_arange does not support step=0.")
    if stop is None:
        start, stop = 0.0, start
    return max(math.ceil((stop - start) / step), 0)


@op("_npi_arange", types="-> @dtype")
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
    """Return evenly spaced numbers in ``[start, stop)``; an empty range gives an empty array.

    Parameters
    ----------
    start
        First number.
    stop
        End of the interval, excluded. If None, the interval is ``[0, start)``.

    >>> mx.nd._internal._npi_arange(start=0, stop=4, step=2).asnumpy()
    array([0., 2.], dtype=float32)
    """
    count = _arange_count(start, stop, step)
    first = 0.0 if stop is None else start
    return sequence(count, first, step, 1, dtype, run.device)


@arange.infer_outputs
def arange_shape(*, start: float, stop: float | None, step: float, **_: object) -> Shape:
    """Compute the number of elements."""
    return (_arange_count(start, stop, step),)


@op("_npi_eye", types="-> @dtype")
def eye(
    *, N: int, M: int | None = None, k: int = 0, ctx: str = "", dtype: DType = _F32, run: OpContext
) -> Tensor:
    """Create a matrix with ones on the ``k``-th diagonal and zeros elsewhere.

    Parameters
    ----------
    M
        Number of columns; by default as many as rows.

    >>> mx.nd._internal._npi_eye(N=2, M=3, k=1).asnumpy()
    array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    columns = N if M is None else M
    output = torch.zeros(_known("_npi_eye", (N, columns)), dtype=dtype, device=run.device)
    if -N < k < columns:
        output.diagonal(k).fill_(1)
    return output


@eye.infer_outputs
def eye_shape(*, N: int, M: int | None, **_: object) -> Shape:
    """The given rows and columns."""
    return N, N if M is None else M


@op("_npi_indices", types="-> @dtype")
def indices(
    *, dimensions: Shape, dtype: DType = torch.int32, ctx: str = "", run: OpContext
) -> Tensor:
    """Return the indices of an array of these dimensions, one array per axis.

    Parameters
    ----------
    dimensions
        Shape of the indexed array.

    >>> mx.nd._internal._npi_indices(dimensions=(2, 2)).asnumpy()
    array([[[0, 0],
            [1, 1]],
    <BLANKLINE>
           [[0, 1],
            [0, 1]]], dtype=int32)
    """
    if not dimensions:
        return torch.zeros(0, dtype=dtype, device=run.device)
    lines = [torch.arange(n, dtype=dtype, device=run.device) for n in dimensions]
    return torch.stack(torch.meshgrid(*lines, indexing="ij"))


@indices.infer_outputs
def indices_shape(*, dimensions: Shape, **_: object) -> Shape:
    """One array per axis."""
    return (len(dimensions), *dimensions)


@op("_npi_logspace", types="-> @dtype")
def logspace(
    *,
    start: float,
    stop: float,
    num: Count,
    endpoint: bool = True,
    base: float = 10.0,
    ctx: str = "",
    dtype: DType = _F32,
    run: OpContext,
) -> Tensor:
    """Return ``num`` powers of ``base`` with evenly spaced exponents.

    Parameters
    ----------
    start
        Exponent of the first number.
    stop
        Exponent of the last number.
    base
        Base of the powers.

    >>> mx.nd._internal._npi_logspace(start=0, stop=2, num=3).asnumpy()
    array([  1.,  10., 100.], dtype=float32)
    """
    gaps = num - 1 if endpoint else num
    step = (stop - start) / gaps if gaps > 0 else 0.0
    line = torch.arange(num, dtype=torch.float64, device=run.device)
    return torch.pow(base, line.mul_(step).add_(start)).to(dtype)


@logspace.infer_outputs
def logspace_shape(*, num: int, **_: object) -> Shape:
    """The output has `num` elements."""
    return (num,)


# Cosine windows: the coefficients of cos(0), cos(t), cos(2 t).
WINDOWS = {
    "hanning": ((0.5, -0.5), "[0., 1., 0.]"),
    "hamming": ((0.54, -0.46), "[0.08, 1.  , 0.08]"),
    "blackman": ((0.42, -0.5, 0.08), "[0., 1., 0.]"),
}


def window(short: str, coefficients: tuple[float, ...], result: str) -> None:
    """Declare a window function by the coefficients of its cosines."""
    name = f"_npi_{short}"

    def function(
        *, M: int | None = None, ctx: str = "", dtype: DType = _F32, run: OpContext
    ) -> Tensor:
        if M is None:
            raise MXNetError(f"{name}: missing 1 required positional argument: 'M'.")
        if M <= 1:
            return torch.ones(max(M, 0), dtype=dtype, device=run.device)
        angle = torch.arange(M, dtype=torch.float64, device=run.device) * (2 * math.pi / (M - 1))
        output = torch.zeros_like(angle)
        for i, c in enumerate(coefficients):
            output += c * torch.cos(i * angle)
        return output.to(dtype)

    function.__name__ = function.__qualname__ = short
    function.__doc__ = f"""Make the {short.capitalize()} window of ``M`` points.

    >>> mx.nd._internal.{name}(M=3).asnumpy().round(4) + 0
    array({result}, dtype=float32)
    """
    operator = op(name, types="-> @dtype")(function)
    operator.infer_outputs(lambda *, M, **_: (max(M or 0, 0),))


for _short, (_coefficients, _result) in WINDOWS.items():
    window(_short, _coefficients, _result)
