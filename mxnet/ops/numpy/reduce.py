"""NumPy's reductions, differences, counts, percentiles and polynomials.

A full reduction returns a 0-d array; ``dtype=`` is the type of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Literal

import torch
from torch import Tensor

from ...dtypes import to_name
from ...error import DTypeError, InvalidValue, MXNetError, ShapeError
from ..attributes import DType, Shape
from ..declare import Op, op
from ..families import BOOL, check_same_dtype, document, number, refuse_bool, truncate
from ..shapes import UNKNOWN, Shapes, TypePattern, reduced_axes, unify
from ..tensor.reduce import product_over, to_every_extreme
from ..tensor.shape_changing import axis_within
from .families import AttributeTypes, shown, to_countable, to_float

Axes = tuple[int, ...]


@lru_cache(maxsize=4096)
def axes_over(axis: Shape | int | None, ndim: int) -> Axes:
    """Return the reduced axes: None means all, an empty tuple none.

    A scalar may be reduced over axis 0 or -1, as if it had one.

    >>> axes_over(None, 2), axes_over((), 2), axes_over((-1,), 2), axes_over(0, 0)
    ((0, 1), (), (1,), ())
    """
    is_scalar = not ndim and axis in (0, -1, (0,), (-1,))
    return () if axis == () or is_scalar else reduced_axes(axis, ndim)


def reduced_shape(data: Shape, axes: Axes, keepdims: bool) -> Shape:
    """Return the shape of a reduction."""
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(data))
    return tuple(n for i, n in enumerate(data) if i not in axes)


def reduced(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """The axes in ``axis`` are removed or become 1; a full reduction has shape ``()``."""
    if ins[0] is None:
        return ins, outs
    axes = axes_over(attrs["axis"], len(ins[0]))
    shape = reduced_shape(ins[0], axes, attrs.get("keepdims", False))
    return ins, [unify(shape, o, "the output") for o in outs]


def total(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """Sum over axes, in the array's own dtype."""
    if len(axes) == x.ndim and not keepdims:
        return torch.sum(x, dtype=x.dtype)
    return torch.sum(x, axes[0] if len(axes) == 1 else axes, keepdims, dtype=x.dtype)


def multiplied(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """Multiply over axes; 0 for an empty array, as in MXNet 1.9.1."""
    if not x.ndim:
        return x.clone()
    out = product_over(x, axes, keepdims).to(x.dtype)
    return torch.zeros_like(out) if not x.numel() else out


def accumulate(
    name: str,
    kernel: Callable[[Tensor, Axes, bool], Tensor],
    a: Tensor,
    axis: Shape | None = None,
    dtype: torch.dtype | None = None,
    keepdims: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Compute a sum or product in the wider of the array's dtype and the result's."""
    if initial is not None:
        raise MXNetError(f"{name}: initial is not supported, but initial={initial} was given.")
    target = dtype or to_countable(a.dtype)
    axes = axes_over(axis, a.ndim)
    wide = torch.promote_types(to_countable(a.dtype), target if target is not BOOL else a.dtype)
    data = a if a.dtype is wide else a.to(wide)
    out = data.clone() if not axes and a.ndim else kernel(data, axes, keepdims)
    return out if out.dtype is target else out.to(target)


@op("_np_sum", shape=reduced, casts=True)
def sum_(
    a: Tensor,
    *,
    axis: Shape | None = None,
    dtype: DType | None = None,
    keepdims: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Sum over axes, by default over all; int64 for bool.

    >>> mx.nd._internal._np_sum(mx.nd.array([[1, 2], [3, 4]]), axis=1).asnumpy()
    array([3., 7.], dtype=float32)
    """
    return accumulate("_np_sum", total, a, axis, dtype, keepdims, initial)


@op("_np_prod", "_np_product", attributes_of=sum_, shape=reduced, casts=True)
def prod(a: Tensor, **attrs: Any) -> Tensor:
    """Product over axes, by default over all.

    >>> mx.nd._internal._np_prod(mx.nd.array([[1, 2], [3, 4]]), axis=1).asnumpy()
    array([ 2., 12.], dtype=float32)
    """
    return accumulate("_np_prod", multiplied, a, **attrs)


@op("_npi_mean", shape=reduced, casts=True)
def mean(
    a: Tensor,
    *,
    axis: Shape | None = None,
    dtype: DType | None = None,
    keepdims: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Mean over axes; float32 for integers, 0 for an empty array.

    With an integer ``dtype`` the sum has that type and may wrap around.

    >>> mx.nd._internal._npi_mean(mx.nd.array([[1, 2], [3, 4]]), axis=1).asnumpy()
    array([1.5, 3.5], dtype=float32)
    """
    axes = axes_over(axis, a.ndim)
    if dtype is None and a.dtype.is_floating_point and a.numel() and axes:
        return torch.mean(a, axes[0] if len(axes) == 1 else axes, keepdims)
    target = dtype or to_float(a.dtype)
    count = math.prod(a.shape[i] for i in axes)
    wide = _sum_type(a.dtype, target)
    out = accumulate("_npi_mean", total, a, axis, wide, keepdims, initial)
    if not count or target is BOOL:
        return out.to(target)
    if target.is_floating_point:
        return (out / count).to(target)
    return torch.div(out, count, rounding_mode="trunc")


def _sum_type(dtype: torch.dtype, target: torch.dtype) -> torch.dtype:
    """Return the type of a mean's sum."""
    if not target.is_floating_point:
        return target
    return torch.promote_types(target, dtype if dtype.is_floating_point else torch.float32)


def _reduce_directly(function: Callable, attrs: dict, dtype: torch.dtype) -> Callable | None:
    """Return torch's reduction if equivalent: for floats in their own dtype."""
    axis, keepdims = attrs.get("axis"), attrs.get("keepdims", False)
    has_options = attrs.get("dtype") is not None or attrs.get("initial") is not None
    if not dtype.is_floating_point or has_options or axis == ():
        return None
    if axis is None:
        return function if not keepdims else None
    axes = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
    return lambda x: function(x, axes, keepdims)


def _mean_of_some(*args: Any) -> Tensor:
    """Return torch's mean; raise for an empty array, whose mean differs in MXNet."""
    if not args[0].numel():
        raise ValueError("the mean of an empty array")
    return torch.mean(*args)


sum_.variant("call")(partial(_reduce_directly, torch.sum))
mean.variant("call")(partial(_reduce_directly, _mean_of_some))

for _op in (sum_, prod):
    _op.type_pattern = AttributeTypes(to_countable)
mean.type_pattern = AttributeTypes(to_float)


def spread(
    name: str,
    a: Tensor,
    root: bool,
    axis: Shape | None = None,
    dtype: torch.dtype | None = None,
    ddof: int = 0,
    keepdims: bool = False,
) -> Tensor:
    """Return the variance or its root; truncated for integers unless `dtype` is given."""
    if a.dtype is BOOL or dtype is BOOL:
        raise refuse_bool(name)
    target = dtype or a.dtype
    axes = axes_over(axis, a.ndim)
    data = a if a.dtype.is_floating_point and a.dtype.itemsize >= target.itemsize else a.double()
    average = data.mean(axes, keepdim=True) if axes else data
    if not a.dtype.is_floating_point:
        average = average.trunc()  # MXNet's mean has the array's dtype
    squares = torch.square(data - average)
    count = max(math.prod(a.shape[i] for i in axes) - ddof, 0)
    out = (squares.sum(axes, keepdim=keepdims) if axes else squares) / count
    out = _root(out) if root else out
    return out.to(target) if target.is_floating_point else truncate(out, target)


def _root(x: Tensor) -> Tensor:
    """Return the square root, with gradient 0 at 0."""
    positive = x > 0
    return torch.where(positive, torch.sqrt(torch.where(positive, x, 1)), torch.sqrt(x.detach()))


@op("_npi_std", shape=reduced, outputs=("std",), total=2)
def std(
    a: Tensor,
    *,
    axis: Shape | None = None,
    dtype: DType | None = None,
    ddof: int = 0,
    keepdims: bool = False,
) -> Tensor:
    """Standard deviation over axes, with the divisor number of elements minus ``ddof``.

    >>> mx.nd._internal._npi_std(mx.nd.array([[1, 3], [3, 9]]), axis=1).asnumpy()
    array([1., 3.], dtype=float32)
    """
    return spread("_npi_std", a, True, axis, dtype, ddof, keepdims)


@op("_npi_var", attributes_of=std, shape=reduced, outputs=("var",), total=2)
def var(a: Tensor, **attrs: Any) -> Tensor:
    """Variance over axes, with the divisor number of elements minus ``ddof``.

    >>> mx.nd._internal._npi_var(mx.nd.array([[1, 3], [3, 9]]), axis=1).asnumpy()
    array([1., 9.], dtype=float32)
    """
    return spread("_npi_var", a, False, **attrs)


std.type_pattern = var.type_pattern = AttributeTypes(lambda dtype: dtype)


def extreme(name: str, kernel: Callable, *aliases: str, word: str, result: str) -> Op:
    """Declare a maximum or minimum; all ties get the full gradient."""

    def function(
        a: Tensor,
        *,
        axis: Shape | None = None,
        keepdims: bool = False,
        initial: float | None = None,
    ) -> Tensor:
        if initial is not None:
            raise MXNetError(f"{name}: initial is not supported, but initial={initial} was given.")
        axes = axes_over(axis, a.ndim)
        if not a.numel() and any(a.shape[i] == 0 for i in axes):
            raise MXNetError(
                f"{name}: zero-size array to reduction operation {word} which has no identity "
                f"(shape {list(a.shape)}, axis {axis})."
            )
        return kernel(a, axes, keepdims) if axes else a.clone()

    def rule(grad: Tensor, out: Tensor, a: Tensor, *, axis: Shape | None, **_: Any) -> Tensor:
        axes = axes_over(axis, a.ndim)
        reduced = reduced_shape(a.shape, axes, True)
        return to_every_extreme(grad.reshape(reduced), out.reshape(reduced), a)

    doc = f"{word.capitalize()} over axes; the gradient goes to every element that equals it."
    example = shown(name.replace("_np_", "_npi_"), "mx.np.array([[1, 2], [3, 4]]), axis=1", result)
    record = op(name, *aliases, shape=reduced)(document(function, name, doc, example))
    record.gradient(rule)
    return record


extreme("_np_max", torch.amax, "_np_amax", word="maximum", result="[2., 4.]")
extreme("_np_min", torch.amin, "_np_amin", word="minimum", result="[1., 3.]")


def _truth(kernel: Callable, data: Tensor, axis: Shape | None, keepdims: bool) -> Tensor:
    axes = axes_over(axis, data.ndim)
    out = data != 0 if data.dtype is not BOOL else data
    if len(axes) == data.ndim and not keepdims:
        return kernel(out)
    for i in axes:
        out = kernel(out, i, keepdim=True)
    return out.reshape(reduced_shape(data.shape, axes, keepdims)) if axes else out.clone()


@op("_np_all", shape=reduced, types="T -> bool", names_single_input=True)
def all_(data: Tensor, *, axis: Shape | None = None, keepdims: bool = False) -> Tensor:
    """Whether no element along the axes is 0.

    >>> mx.nd._internal._np_all(mx.nd.array([[1, 0], [3, 4]]), axis=1).asnumpy()
    array([False,  True])
    """
    return _truth(torch.all, data, axis, keepdims)


@op("_np_any", "_np_sometrue", shape=reduced, types="T -> bool", names_single_input=True)
def any_(data: Tensor, *, axis: Shape | None = None, keepdims: bool = False) -> Tensor:
    """Whether any element along the axes is not 0.

    >>> mx.nd._internal._np_any(mx.nd.array([[1, 0], [0, 0]]), axis=1).asnumpy()
    array([ True, False])
    """
    return _truth(torch.any, data, axis, keepdims)


def _locate(name: str, find: Callable, data: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    if data.dtype is BOOL:
        raise refuse_bool(name)
    if not data.numel() and (axis is None or not data.shape[axis]):
        raise MXNetError(f"{name}: attempt to search an empty sequence, {list(data.shape)}.")
    if axis is None:
        return find(data).reshape([1] * data.ndim if keepdims else [])
    axes_over(axis, max(data.ndim, 1))
    return find(data, axis, keepdims)


@op("_npi_argmax", shape=reduced, types="T -> int64")
def argmax(data: Tensor, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the first maximum along an axis, or in the flattened array.

    >>> mx.nd._internal._npi_argmax(mx.nd.array([[1, 5, 5], [4, 2, 3]]), axis=1).asnumpy()
    array([1, 0])
    """
    return _locate("_npi_argmax", torch.argmax, data, axis, keepdims)


@op("_npi_argmin", shape=reduced, types="T -> int64")
def argmin(data: Tensor, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the first minimum along an axis, or in the flattened array.

    >>> mx.nd._internal._npi_argmin(mx.nd.array([[1, 5, 5], [4, 2, 3]]), axis=1).asnumpy()
    array([0, 1])
    """
    return _locate("_npi_argmin", torch.argmin, data, axis, keepdims)


def _average_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    data, weights = ins[0], ins[1] if len(ins) > 1 else ()
    if data is None or weights is None:
        return ins, outs
    axes = axes_over(attrs["axis"], len(data))
    shape = reduced_shape(data, axes, False)
    shapes = (shape, shape if len(weights) == len(data) else ())
    return ins, [unify(s, o) for s, o in zip(shapes, outs, strict=False)]


@op(
    "_npi_average",
    optional={"weights": lambda a: a["weighted"]},
    outputs=lambda a: ("output0", "output1") if a["returned"] else ("output0",),
    total=2,
    shape=_average_shapes,
)
def average(
    a: Tensor,
    weights: Tensor | None = None,
    *,
    axis: Shape | None = None,
    returned: bool = False,
    weighted: bool = True,
) -> Tensor | tuple[Tensor, Tensor]:
    """Weighted mean over axes; with ``returned`` also the sum of the weights.

    Parameters
    ----------
    weights
        Weight of each element, or of each position along the axis.
    returned
        Whether to also return the sum of the weights.
    weighted
        Whether `weights` is given.

    >>> x = mx.nd.array([[1, 2], [3, 5]])
    >>> mx.nd._internal._npi_average(x, mx.nd.array([1, 3]), axis=1).asnumpy()
    array([1.75, 4.5 ], dtype=float32)
    """
    if a.dtype is BOOL:
        raise refuse_bool("_npi_average")
    axes = axes_over(axis, a.ndim)
    if weights is None:
        count = math.prod(a.shape[i] for i in axes)
        scale = torch.full((), count, dtype=a.dtype, device=a.device)
        sums = total(a, axes, False) if axes or not a.ndim else a
    else:
        weights = _aligned_weights(a, weights, axis)
        is_vector = weights.ndim != a.ndim or weights.shape != a.shape
        scale = total(weights, tuple(range(a.ndim)) if is_vector else axes, False)
        sums = total(a * weights, axes, False) if axes or not a.ndim else a * weights
    out = (sums / scale).to(a.dtype)
    return (out, scale) if returned else out


def _aligned_weights(a: Tensor, weights: Tensor, axis: Shape | None) -> Tensor:
    if weights.dtype is not a.dtype:
        raise DTypeError(
            f"_npi_average: weights are {to_name(weights.dtype)}, but the array is "
            f"{to_name(a.dtype)}. Convert one of them: w.astype({to_name(a.dtype)!r})."
        )
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise ShapeError(
            "_npi_average: axis must be specified when shapes of a and weights differ."
        )
    axes = axes_over(axis, a.ndim)
    if len(axes) != 1 or weights.ndim != 1 or weights.shape[0] != a.shape[axes[0]]:
        raise ShapeError(
            f"_npi_average: weights of shape {list(weights.shape)} do not match axis {axis} of "
            f"{list(a.shape)}."
        )
    return weights.reshape([-1 if i in axes else 1 for i in range(a.ndim)])


Interpolation = Literal["higher", "linear", "lower", "midpoint", "nearest"]


@op("_npi_diff")
def diff(a: Tensor, *, n: int = 1, axis: int = -1) -> Tensor:
    """Difference of neighbors along an axis, taken ``n`` times.

    Parameters
    ----------
    n
        Order of the differences.
    axis
        Axis; a negative value counts from the last.

    >>> mx.nd._internal._npi_diff(mx.nd.array([1, 3, 2])).asnumpy()
    array([ 2., -1.], dtype=float32)
    """
    if a.dtype is BOOL:
        raise refuse_bool("_npi_diff")
    diff_shape(tuple(a.shape), n=n, axis=axis)
    return torch.diff(a, n, axis) if n else a.clone()


@diff.infer_outputs
def diff_shape(a: Shape | None, *, n: int, axis: int) -> Shape | None:
    """One element less per order."""
    if n < 0:
        raise MXNetError(f"_npi_diff: n must be non-negative, got {n}.")
    if a is None:
        return None
    at = axis_within(axis, len(a), "_npi_diff")
    size = UNKNOWN if a[at] == UNKNOWN else max(a[at] - n, 0)
    return (*a[:at], size, *a[at + 1 :])


_EDGES = {
    "input2": lambda a: a["to_begin_arr_given"] or a["to_end_arr_given"],
    "input3": lambda a: a["to_begin_arr_given"] and a["to_end_arr_given"],
}


@op("_npi_ediff1d", optional=_EDGES)
def ediff1d(
    input1: Tensor,
    input2: Tensor | None = None,
    input3: Tensor | None = None,
    *,
    to_begin_arr_given: bool = False,
    to_end_arr_given: bool = False,
    to_begin_scalar: float | None = None,
    to_end_scalar: float | None = None,
) -> Tensor:
    """Differences of neighbors in the flattened array, with optional values at both ends.

    Parameters
    ----------
    input1
        The input array.
    input2
        Array to prepend, or to append if none is prepended.
    input3
        Array to append.
    to_begin_arr_given
        Whether an array is prepended.
    to_end_arr_given
        Whether an array is appended.
    to_begin_scalar
        Number to prepend.
    to_end_scalar
        Number to append.

    >>> mx.nd._internal._npi_ediff1d(mx.nd.array([1, 3]), to_end_scalar=9).asnumpy()
    array([2., 9.], dtype=float32)
    """
    edges = iter(x.reshape(-1) for x in (input2, input3) if x is not None)

    def edge(is_array: bool, value: float | None) -> list[Tensor]:
        if is_array:
            return [next(edges)]
        return [] if value is None else [number(value, input1.dtype).to(input1.device).reshape(1)]

    begin = edge(to_begin_arr_given, to_begin_scalar)
    end = edge(to_end_arr_given, to_end_scalar)
    return torch.cat([*begin, torch.diff(input1.reshape(-1)), *end])


@ediff1d.infer_outputs
def ediff1d_shape(*ins: Shape | None, **attrs: Any) -> Shape | None:
    """The number of differences and added values."""
    shapes = [s for s in ins if s is not None]
    target = 1 + attrs["to_begin_arr_given"] + attrs["to_end_arr_given"]
    if len(shapes) < target or any(UNKNOWN in s for s in shapes):
        return None
    numbers = sum(
        attrs[f"{side}_scalar"] is not None and not attrs[f"{side}_arr_given"]
        for side in ("to_begin", "to_end")
    )
    edges = sum(math.prod(s) for s in shapes[1:])
    return (max(math.prod(shapes[0]) - 1, 0) + edges + numbers,)


class CountTypes(TypePattern):
    """The output has the dtype of the last input: the weights or the data."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the output from the last input."""
        return ins, [ins[-1] or outs[0]]


@op(
    "_npi_bincount",
    optional={"weights": lambda a: a["has_weights"]},
    value_dependent=True,
    names_single_input=True,
)
def bincount(
    data: Tensor, weights: Tensor | None = None, *, minlength: int = 0, has_weights: bool = False
) -> Tensor:
    """Count each nonnegative integer, or sum its weights.

    Parameters
    ----------
    data
        Non-negative integers.
    weights
        Weight of each integer.
    minlength
        Minimum length of the result.
    has_weights
        Whether `weights` is given.

    >>> mx.nd._internal._npi_bincount(mx.nd.array([0, 2, 2], dtype="int64")).asnumpy()
    array([1, 0, 2])
    """
    if data.dtype.is_floating_point or data.dtype is BOOL:
        raise DTypeError("_npi_bincount: input data should be int type. Use x.astype('int64').")
    if data.ndim != 1:
        raise ShapeError(f"_npi_bincount: needs a vector, got shape {list(data.shape)}.")
    if data.numel() and data.min() < 0:
        raise MXNetError("_npi_bincount: input should be nonnegative number.")
    if weights is None:
        return torch.bincount(data.long(), minlength=minlength).to(data.dtype)
    if weights.shape != data.shape:
        raise ShapeError(
            f"_npi_bincount: weights {list(weights.shape)} do not fit {list(data.shape)}."
        )
    size = max(minlength, int(data.max()) + 1 if data.numel() else 0)
    return weights.new_zeros(size).index_add(0, data.long(), weights)


bincount.type_pattern = CountTypes(None)


@bincount.infer_outputs
def bincount_shape(*ins: Shape | None, **_: Any) -> Shape:
    """The length depends on values."""
    return (UNKNOWN,)


@op("_npi_polyval")
def polyval(p: Tensor, x: Tensor) -> Tensor:
    """Evaluate a polynomial with coefficients from the highest power down.

    Parameters
    ----------
    p
        The coefficients, from the highest power down.
    x
        Points to evaluate at.

    >>> mx.nd._internal._npi_polyval(mx.nd.array([1, 2, 3]), mx.nd.array([0, 2])).asnumpy()
    array([ 3., 11.], dtype=float32)
    """
    check_same_dtype("_npi_polyval", p, x)
    if p.ndim != 1:
        raise InvalidValue(f"_npi_polyval: p has to be an 1-D array, got shape {list(p.shape)}.")
    output = torch.zeros_like(x)
    for coefficient in p.unbind():
        output = output * x + coefficient
    return output


@polyval.infer_outputs
def polyval_shape(p: Shape | None, x: Shape | None) -> Shape | None:
    """The output has the shape of the points."""
    return x


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype is torch.float64 else torch.float32


class PercentileTypes(TypePattern):
    """float64 for float64, float32 for other types."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the output from the data."""
        return ins, outs if ins[0] is None else [_wide(ins[0])]


def _percentile_shape(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    data, several = ins[0], ins[1] if len(ins) > 1 else ()
    if data is None or several is None:
        return ins, outs
    axes = axes_over(attrs["axis"], len(data))
    shape = (*several, *reduced_shape(data, axes, attrs["keepdims"]))
    return ins, [unify(shape, outs[0], "the output")]


@op(
    "_npi_percentile",
    optional={"q": lambda a: a["q_scalar"] is None},
    shape=_percentile_shape,
    without_gradient=("q",),
)
def percentile(
    a: Tensor,
    q: Tensor | None = None,
    *,
    axis: Shape | None = None,
    interpolation: Interpolation = "linear",
    keepdims: bool = False,
    q_scalar: float | None = None,
) -> Tensor:
    """Percentiles over axes; with an array ``q`` they are the first axis.

    Parameters
    ----------
    q
        Percentiles between 0 and 100 as an array.
    interpolation
        Interpolation between two elements: ``linear``, ``lower``, ``higher``, ``midpoint`` or
        ``nearest``.
    q_scalar
        One percentile between 0 and 100.

    >>> mx.nd._internal._npi_percentile(mx.nd.array([1, 2, 4]), q_scalar=25).asnumpy()
    array(1.5, dtype=float32)
    """
    if a.dtype is BOOL:
        raise refuse_bool("_npi_percentile")
    if q is None:
        q = torch.tensor(q_scalar, dtype=torch.float64, device=a.device)
    share = q.detach()
    if share.ndim > 1:
        raise ShapeError(f"_npi_percentile: q must have at most one axis, got {list(share.shape)}.")
    if not a.is_meta and not bool(((share >= 0) & (share <= 100)).all()):
        raise InvalidValue("_npi_percentile: percentile exceeds the valid range of 0 to 100.")
    axes = axes_over(axis, a.ndim)
    others = [i for i in range(a.ndim) if i not in axes]
    rows = (
        a.to(_wide(a.dtype)).permute(*others, *axes).flatten(len(others)) if axes else a[..., None]
    )
    out = _between(rows.to(_wide(a.dtype)).sort(-1).values, share, interpolation)
    return out.reshape((*share.shape, *reduced_shape(a.shape, axes, keepdims)))


def _between(rows: Tensor, share: Tensor, interpolation: str) -> Tensor:
    """Interpolate sorted rows at fractions of their length, which become the first axis."""
    size = rows.shape[-1]
    position = (share.double() / 100 * (size - 1)).reshape(-1)
    position = {
        "lower": torch.floor,
        "higher": torch.ceil,
        "nearest": lambda x: torch.floor(x + 0.5),
        "midpoint": lambda x: (torch.floor(x) + torch.ceil(x)) / 2,
        "linear": lambda x: x,
    }[interpolation](position)
    low = position.floor().long()
    high = (low + 1).clamp(max=size - 1)
    weight = (position - low).to(rows.dtype)
    out = rows[..., low] * (1 - weight) + rows[..., high] * weight
    # NaN sorts last, and is the result of rows that contain it.
    out = torch.where(rows[..., -1:].isnan(), rows[..., -1:], out)
    return out.movedim(-1, 0)


percentile.type_pattern = PercentileTypes(None)
