"""Reductions (sums, products, extrema, norms, moments), sorting, top k and histograms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ...error import MXNetError, ShapeError
from ..attributes import DType, Floats, Shape
from ..declare import Op, op
from ..families import BOOL, axes_of, reduction, refuse_bool, shown
from ..shapes import UNKNOWN, TypePattern, reduced
from ..tracing import is_traced
from .products import vector_norm
from .shape_changing import axis_within, product

Axes = tuple[int, ...]


def total(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """Sum; integers wrap around in their own type."""
    if len(axes) == 1:  # torch parses a single axis faster than a tuple
        return torch.sum(x, axes[0], keepdims)
    return torch.sum(x) if len(axes) == x.ndim and not keepdims else torch.sum(x, axes, keepdims)


def average(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """Mean; for integers the sum with wraparound, then truncating division."""
    count = math.prod([x.shape[a] for a in axes])
    if x.dtype.is_floating_point:
        if count == 1:  # losses with one element per sample
            return x.clone() if keepdims else x.squeeze(axes).clone()
        return torch.mean(x, axes[0] if len(axes) == 1 else axes, keepdims)
    return torch.div(torch.sum(x, axes, keepdims).to(x.dtype), count)


def product_over(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """Multiply over axes; torch supports one axis, so they are flattened."""
    if len(axes) == 1:
        return torch.prod(x, axes[0], keepdims)
    others = [a for a in range(x.ndim) if a not in axes]
    joined = x.permute(*others, *axes).flatten(len(others))
    out = torch.prod(joined, -1)
    return out.reshape([1 if a in axes else n for a, n in enumerate(x.shape)]) if keepdims else out


def nan_total(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """Sum with NaN as 0."""
    if not x.dtype.is_floating_point:
        return total(x, axes, keepdims)
    return torch.nansum(x, axes, keepdims)


def nan_product(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """Product with NaN as 1."""
    return product_over(x.masked_fill(x.isnan(), 1), axes, keepdims)


def total_of_squares(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """Sum of squares."""
    return torch.sum(torch.square(x), axes, keepdims)


def to_every_extreme(grad: Tensor, out: Tensor, data: Tensor) -> Tensor:
    """Return the full gradient for each element that equals the extremum."""
    return torch.where(data == out, grad, 0)


def over_axes(
    name: str,
    kernel: Callable[[Tensor, Axes, bool], Tensor],
    *aliases: str,
    doc: str,
    given: str,
    result: str,
    **options: Any,
) -> Op:
    """Declare a reduction with an example along axis 1."""
    example = shown(f"mx.nd.{name}(mx.nd.array({given}), axis=1)", result)
    return reduction(name, kernel, *aliases, doc=doc, example=example, **options)


TABLE = "[[1, 2], [3, 4]]"

sum_ = over_axes(
    "sum",
    total,
    "sum_axis",
    "_sparse_sum",
    doc="Sum over axes; by default over all, with result shape ``(1,)``.",
    given=TABLE,
    result="[3., 7.]",
    direct=torch.sum,
    precision="full",
)
mean = over_axes(
    "mean",
    average,
    "_sparse_mean",
    doc="Mean over axes.",
    given=TABLE,
    result="[1.5, 3.5]",
    direct=torch.mean,
    precision="full",
)
over_axes(
    "prod",
    product_over,
    doc="Product over axes.",
    given=TABLE,
    result="[ 2., 12.]",
    precision="full",
    repeatable=False,  # torch's gradient depends on values
)
over_axes(
    "nansum",
    nan_total,
    doc="Sum over axes with NaN as 0.",
    given="[[1, np.nan], [3, 4]]",
    result="[1., 7.]",
    precision="full",
)
over_axes(
    "nanprod",
    nan_product,
    doc="Product over axes with NaN as 1.",
    given="[[1, np.nan], [3, 4]]",
    result="[ 1., 12.]",
    precision="full",
    repeatable=False,  # torch's gradient depends on values
)
over_axes(
    "max",
    torch.amax,
    "max_axis",
    doc="Maximum over axes; the gradient goes to every element that equals it.",
    given=TABLE,
    result="[2., 4.]",
    gradient=to_every_extreme,
)
over_axes(
    "min",
    torch.amin,
    "min_axis",
    doc="Minimum over axes; the gradient goes to every element that equals it.",
    given=TABLE,
    result="[1., 3.]",
    gradient=to_every_extreme,
)
square_sum = reduction(
    "_square_sum",
    total_of_squares,
    doc="Sum of squares over axes.",
    example=shown("mx.nd._internal._square_sum(mx.nd.array([[1, 2]]), axis=1)", "[5.]"),
    method=False,
    precision="full",
)


@op("norm", "_sparse_norm", shape=reduced, method=True, types="T -> @out_dtype", precision="full")
def norm(
    data: Tensor,
    *,
    ord: int = 2,
    axis: Shape | None = None,
    out_dtype: DType | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Compute the L1 norm ``sum |x|`` or the L2 norm ``sqrt(sum x^2)`` over axes.

    Parameters
    ----------
    ord
        Order of the norm, 1 or 2.
    axis
        Axis of vectors, or two axes of matrices; None: over all elements.
    out_dtype
        Data type of the result; by default that of the array.

    >>> mx.nd.norm(mx.nd.array([[3, 4], [6, 8]]), axis=1).asnumpy()
    array([ 5., 10.], dtype=float32)
    """
    if ord not in (1, 2):
        raise MXNetError(f"norm only supports ord=1 and ord=2, but ord={ord} was given.")
    axes = axes_of(axis or None, data.ndim)
    wide = data if data.dtype.is_floating_point else data.double()
    if out_dtype is not None and out_dtype.is_floating_point:
        wide = data.to(torch.promote_types(wide.dtype, out_dtype))
    out = vector_norm(wide, ord, axes, keepdims)
    if ord == 2 and data.numel() and (is_traced() or (not out.is_meta and not _squares_fit(out))):
        out = _scaled_norm(wide, axes, keepdims)
    out = out.to(out_dtype or data.dtype)
    return out if out.ndim else out.reshape(1)


def _squares_fit(norms: Tensor) -> bool:
    """Return whether no square can have overflowed or underflowed for these norms."""
    lowest, highest = norms.detach().aminmax()
    info = torch.finfo(norms.dtype)
    # The comparison is false for NaN too.
    return bool((lowest > info.tiny**0.5 / info.eps) & (highest < info.max**0.5))


def _scaled_norm(data: Tensor, axes: tuple[int, ...] | None, keepdims: bool) -> Tensor:
    """Return the L2 norm with scaling, for squares that overflow or underflow."""
    dims = tuple(range(data.ndim)) if axes is None else axes
    scale = data.detach().abs().amax(dims, keepdim=True)
    scale = torch.where((scale > 0) & scale.isfinite(), scale, torch.ones_like(scale))
    out = vector_norm(data / scale, 2, axes, keepdims)
    return out * scale.reshape(out.shape)


def located(name: str, find: Callable, data: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    """Return argmax or argmin in the input's dtype; with `axis=None`, of the flattened input."""
    if data.dtype is BOOL:
        raise refuse_bool(name)
    if axis is None:
        return find(data).to(data.dtype).reshape([1] * data.ndim if keepdims else 1)
    if not -data.ndim <= axis < data.ndim:
        raise ShapeError(f"{name}: axis {axis} exceeds the input dimension of {data.ndim}")
    out = find(data, axis, keepdims).to(data.dtype)
    return out if out.ndim else out.reshape(1)


# Twice as fast as ``Tensor.to``.
_FLOATS = {
    torch.float16: Tensor.half,
    torch.bfloat16: Tensor.bfloat16,
    torch.float32: Tensor.float,
    torch.float64: Tensor.double,
}


def _locate_directly(
    find: Callable, attrs: dict[str, Any], dtype: torch.dtype
) -> Callable[[Tensor], Tensor] | None:
    """Return argmax or argmin along one axis; torch raises if the axis does not exist."""
    axis, keepdims = attrs.get("axis"), attrs.get("keepdims", False)
    if axis is None or dtype not in _FLOATS:
        return None
    cast = _FLOATS[dtype]

    def search(data: Tensor) -> Tensor:
        out = cast(find(data, axis, keepdims))
        return out if out.ndim else out.reshape(1)

    return search


@op("argmax", shape=reduced, method=True)
def argmax(data: Tensor, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the first maximum along an axis, in the array's dtype.

    Parameters
    ----------
    axis
        Axis to search; None: the flattened array.

    >>> mx.nd.argmax(mx.nd.array([[1, 5, 5], [4, 2, 3]]), axis=1).asnumpy()
    array([1., 0.], dtype=float32)
    """
    return located("argmax", torch.argmax, data, axis, keepdims)


@argmax.variant("call")
def _argmax_of_floats(attrs: dict[str, Any], dtype: torch.dtype) -> Callable | None:
    return _locate_directly(torch.argmax, attrs, dtype)


@op("argmin", shape=reduced, method=True)
def argmin(data: Tensor, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the first minimum along an axis, in the array's dtype.

    Parameters
    ----------
    axis
        Axis to search; None: the flattened array.

    >>> mx.nd.argmin(mx.nd.array([[1, 5, 5], [4, 2, 3]]), axis=1).asnumpy()
    array([0., 1.], dtype=float32)
    """
    return located("argmin", torch.argmin, data, axis, keepdims)


@argmin.variant("call")
def _argmin_of_floats(attrs: dict[str, Any], dtype: torch.dtype) -> Callable | None:
    return _locate_directly(torch.argmin, attrs, dtype)


@op("argmax_channel", method=True)
def argmax_channel(data: Tensor) -> Tensor:
    """Return the index of the maximum along axis 1, the channels.

    >>> mx.nd.argmax_channel(mx.nd.array([[1, 5, 5], [4, 2, 3]])).asnumpy()
    array([1., 0.], dtype=float32)
    """
    return located("argmax_channel", torch.argmax, data, 1, False)


@argmax_channel.infer_outputs
def argmax_channel_outputs(data: tuple | None) -> tuple | None:
    """Return the shape without axis 1."""
    return None if data is None else data[:1] + data[2:]


@op("moments", outputs=2, precision="full", names_single_input=True)
def moments(
    data: Tensor, *, axes: Shape | None = None, keepdims: bool = False
) -> tuple[Tensor, Tensor]:
    """Compute mean and population variance over axes.

    Parameters
    ----------
    axes
        The axes to reduce; negative ones count from the last.

    >>> mean, var = mx.nd.moments(mx.nd.array([[1, 2], [3, 5]]), axes=1)
    >>> mean.asnumpy(), var.asnumpy()
    (array([1.5, 4. ], dtype=float32), array([0.25, 1.  ], dtype=float32))
    """
    if not axes:
        raise MXNetError("moments: axes is required; for the whole array pass all axes.")
    dims = axes_of(axes, data.ndim)
    if data.dtype.is_floating_point:
        var, mean = torch.var_mean(data, dims, correction=0, keepdim=keepdims)
    else:
        mean = average(data, dims, True).to(data.dtype)
        var = average(torch.square(data - mean), dims, keepdims).to(data.dtype)
        mean = mean if keepdims else mean.reshape(var.shape)
    return (mean, var) if mean.ndim else (mean.reshape(1), var.reshape(1))


@moments.infer_outputs
def moments_outputs(data: tuple | None, *, axes: Shape | None, keepdims: bool) -> list | None:
    """Return the reduced shape for both outputs."""
    if data is None:
        return None
    _, shapes = reduced([data], [None], {"axis": axes, "keepdims": keepdims})
    return shapes * 2


class RunningTypes(TypePattern):
    """Data types of cumulative sums: ``dtype``, else the array's; int64 for bool."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the output from the attribute or the input."""
        counted = torch.int64 if ins[0] is BOOL else ins[0]
        return ins, [attrs["dtype"] or counted or outs[0]]


class _HalfPrecisionCumsum(torch.autograd.Function):
    """Cumulative sum that rounds to float16 at every step, as MXNet does; torch uses float32."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, axis: int) -> Tensor:
        ctx.axis = axis
        return torch.from_numpy(np.add.accumulate(data.detach().numpy(), axis, np.float16))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        flipped = grads[0].to(torch.float16).flip(ctx.axis)
        return _HalfPrecisionCumsum.apply(flipped, ctx.axis).flip(ctx.axis), None


def _running_sum(a: Tensor, axis: int, dtype: torch.dtype) -> Tensor:
    if dtype is torch.float16 and a.device.type == "cpu" and a.numel() and not is_traced():
        return _HalfPrecisionCumsum.apply(a.to(dtype), axis)
    return torch.cumsum(a, axis, dtype=dtype)


@op("_np_cumsum", "cumsum", casts=True)
def cumsum(a: Tensor, *, axis: int | None = None, dtype: DType | None = None) -> Tensor:
    """Compute the cumulative sum along an axis, or of the flattened array.

    Parameters
    ----------
    axis
        Axis to sum along; None: the flattened array.
    dtype
        Data type of the result; by default that of the array.

    >>> mx.nd.cumsum(mx.nd.array([[1, 2], [3, 4]])).asnumpy()
    array([ 1.,  3.,  6., 10.], dtype=float32)
    """
    target = dtype or (torch.int64 if a.dtype is BOOL else a.dtype)
    if not target.is_floating_point:
        a = a.detach()  # integers cannot require grad in torch
    if axis is None:
        return _running_sum(a.flatten(), 0, target)
    if not -a.ndim <= axis < a.ndim:
        raise ShapeError(f"cumsum: axis value {axis} out of range for {a.ndim} dimensions")
    return _running_sum(a, axis, target)


cumsum.type_pattern = RunningTypes(None)


@cumsum.infer_outputs
def cumsum_outputs(a: tuple | None, *, axis: int | None, **_: DType | None) -> tuple | None:
    """Return the shape, flattened if there is no axis."""
    if a is None or axis is not None:
        return a
    return (-1 if -1 in a else math.prod(a),)


# Up to this length MXNet's sort is stable.
STABLE_LENGTH = 16


def _line(data: Tensor, axis: int | None, name: str) -> tuple[Tensor, int]:
    """Return the tensor to sort and the axis; None flattens it."""
    return (data.reshape(-1), 0) if axis is None else (data, axis_within(axis, data.ndim, name))


def _sort(data: Tensor, axis: int | None, is_ascend: bool, name: str) -> tuple[Tensor, Tensor]:
    data, axis = _line(data, axis, name)
    return torch.sort(data, dim=axis, descending=not is_ascend, stable=True)


@op("sort", "_npi_sort", total=2, method=True)
def sort(data: Tensor, *, axis: int | None = -1, is_ascend: bool = True) -> Tensor:
    """Sort along an axis, or the flattened array.

    Parameters
    ----------
    axis
        Axis to sort along; None: the flattened array.

    >>> mx.nd.sort(mx.nd.array([3, 1, 2])).asnumpy()
    array([1., 2., 3.], dtype=float32)
    """
    return _sort(data, axis, is_ascend, "sort")[0]


@op("argsort", "_npi_argsort", types="T -> @dtype", method=True, precision="full")
def argsort(
    data: Tensor, *, axis: int | None = -1, is_ascend: bool = True, dtype: DType = torch.float32
) -> Tensor:
    """Return the indices that would sort along an axis, as float32 unless specified otherwise.

    Parameters
    ----------
    axis
        Axis to sort along; None: the flattened array.
    dtype
        Data type of the indices.

    >>> mx.nd.argsort(mx.nd.array([3, 1, 2])).asnumpy()
    array([1., 2., 0.], dtype=float32)
    """
    return _sort(data.detach(), axis, is_ascend, "argsort")[1].to(dtype)


@sort.infer_outputs
@argsort.infer_outputs
def sort_shape(data: Shape | None, *, axis: int | None, **_: object) -> Shape | None:
    """The output has the shape of the data, or is flattened."""
    if data is None or axis is not None:
        return data
    return (product(data),)


class TopkTypes(TypePattern):
    """Values and masks have the data's type, indices that of the attribute ``dtype``."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the outputs; the type of values is that of the data."""
        kind, dtype = attrs["ret_typ"], ins[0]
        if kind == "indices":
            return ins, [attrs["dtype"]]
        dtype = dtype if dtype is not None else outs[0]
        return [dtype], [dtype, attrs["dtype"]][: len(outs)]


def _count(size: int, k: int) -> int:
    """Return the number of elements to find; k < 1 means all."""
    if k > size:
        raise ShapeError(f"topk: k must be smaller than {size} or equal, get k = {k}")
    return size if k < 1 else k


@op(
    "topk",
    "_npx_topk",
    outputs=lambda a: 2 if a["ret_typ"] == "both" else 1,
    total=lambda a: 2 if a["ret_typ"] in ("both", "value") else 1,
    method=True,
    precision="full",
)
def topk(
    data: Tensor,
    *,
    axis: int | None = -1,
    k: int = 1,
    ret_typ: Literal["both", "indices", "mask", "value"] = "indices",
    is_ascend: bool = False,
    dtype: DType = torch.float32,
) -> Tensor | tuple[Tensor, Tensor]:
    """Find the ``k`` largest (or smallest) elements along an axis.

    Parameters
    ----------
    axis
        Axis to search; None: the flattened array.
    k
        Number of elements; 0 means all.
    ret_typ
        Whether to return ``indices``, ``value`` (the elements), ``both``, or a ``mask`` of 0 and 1.
    is_ascend
        Whether to find the smallest elements.
    dtype
        Data type of the indices.

    >>> mx.nd.topk(mx.nd.array([3, 1, 2]), k=2).asnumpy()
    array([0., 2.], dtype=float32)
    """
    line, axis = _line(data, axis, "topk")
    size = line.shape[axis]
    k = _count(size, k)
    if ret_typ in ("indices", "mask"):
        line = line.detach()
    if k == size or size <= STABLE_LENGTH:
        values, indices = torch.sort(line, dim=axis, descending=not is_ascend, stable=True)
        if k < size:
            values, indices = values.narrow(axis, 0, k), indices.narrow(axis, 0, k)
            values = values.clone() if ret_typ in ("both", "value") else values
    else:
        values, indices = torch.topk(line, k, dim=axis, largest=not is_ascend)
    if ret_typ == "value":
        return values
    if ret_typ == "mask":
        return torch.zeros_like(line).scatter_(axis, indices, 1).reshape(data.shape)
    indices = indices.to(dtype)
    return indices if ret_typ == "indices" else (values, indices)


topk.type_pattern = TopkTypes(None)


@topk.infer_outputs
def topk_shape(
    data: Shape | None, *, axis: int | None, k: int, ret_typ: str, **_: object
) -> Shape | None:
    """Change the size of the axis to ``k``; a mask has the shape of the data."""
    if data is None or ret_typ == "mask":
        return data
    line = (product(data),) if axis is None else data
    at = 0 if axis is None else axis_within(axis, len(data), "topk")
    count = _count(line[at], k) if line[at] != UNKNOWN else k if k > 0 else UNKNOWN
    return (*line[:at], count, *line[at + 1 :])


@op(
    "_histogram",
    "_npi_histogram",
    outputs=2,
    optional={"bins": lambda a: a["bin_cnt"] is None},
    types="T T -> int64 T",
)
def histogram(
    data: Tensor,
    bins: Tensor | None = None,
    *,
    bin_cnt: int | None = None,
    range: Floats | None = None,
) -> tuple[Tensor, Tensor]:
    """Count elements in bins, given by edges or as equal parts of a range.

    Parameters
    ----------
    bins
        Edges of the bins, ascending.
    bin_cnt
        Number of equal bins, instead of `bins`.
    range
        Lower and upper limit of the equal bins.

    >>> x = mx.nd.array([0, 1, 2, 2, 5])
    >>> counts, edges = mx.nd._internal._histogram(x, bin_cnt=2, range=(0, 4))
    >>> counts.asnumpy(), edges.asnumpy()
    (array([2, 2]), array([0., 2., 4.], dtype=float32))
    """
    if (bin_cnt is None) != (range is None) or (bins is None) == (bin_cnt is None):
        raise MXNetError(
            "_histogram: bin_cnt and range must be given together, or an array of bins instead."
        )
    if bins is None:
        assert bin_cnt is not None and range is not None
        low, high = range
        steps = torch.arange(bin_cnt + 1, dtype=torch.float64, device=data.device)
        bins = (low + steps * ((high - low) / bin_cnt)).to(data.dtype)
    else:
        bins = bins.clone()
    flat, count = data.detach().reshape(-1), len(bins) - 1
    flat = flat[(flat >= bins[0]) & (flat <= bins[-1])]
    # The last bin includes its right edge.
    positions = (torch.searchsorted(bins.detach(), flat, right=True) - 1).clamp(max=count - 1)
    return torch.bincount(positions, minlength=count), bins


@histogram.infer_outputs
def histogram_shapes(
    data: Shape | None, bins: Shape | None, *, bin_cnt: int | None, **_: object
) -> list[Shape] | None:
    """One count per bin, and one more edge."""
    if bin_cnt is not None:
        return [(bin_cnt,), (bin_cnt + 1,)]
    if bins is None or UNKNOWN in bins:
        return None
    return [(bins[0] - 1,), bins]
