"""NumPy's differences, counts, percentiles and polynomials."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor

from ....error import DTypeError, InvalidValue, MXNetError, ShapeError
from ...attributes import Shape
from ...declare import Op, op
from ...families import BOOL, check_same_dtype, number, refuse_bool
from ...shapes import UNKNOWN, Shapes, TypePattern, unify
from ...tensor.shaping.shape_changing import axis_within
from .reduce import axes_over, reduced_shape

Interpolation = Literal["higher", "linear", "lower", "midpoint", "nearest"]


@op("_npi_diff")
def diff(a: Tensor, *, n: int = 1, axis: int = -1) -> Tensor:
    """Difference of neighbors along an axis, taken ``n`` times.

    Parameters
    ----------
    n
        How many times differences are taken.
    axis
        The axis to work along; a negative one counts from the last.

    >>> mx.nd._internal._npi_diff(mx.nd.array([1, 3, 2])).asnumpy()
    array([ 2., -1.], dtype=float32)
    """
    if a.dtype is BOOL:
        raise refuse_bool("_npi_diff")
    diff_shape(tuple(a.shape), n=n, axis=axis)
    return torch.diff(a, n, axis) if n else a.clone()


@diff.infer_outputs
def diff_shape(a: Shape | None, *, n: int, axis: int) -> Shape | None:
    """One element fewer each time."""
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
    """Difference of neighbors in the flattened array, between numbers or arrays put around it.

    Parameters
    ----------
    input1
        The input array.
    input2
        Array to put in front, or at the end if nothing stands in front.
    input3
        Array to put at the end.
    to_begin_arr_given
        Whether an array stands in front.
    to_end_arr_given
        Whether an array stands at the end.
    to_begin_scalar
        Number to put in front.
    to_end_scalar
        Number to put at the end.

    >>> mx.nd._internal._npi_ediff1d(mx.nd.array([1, 3]), to_end_scalar=9).asnumpy()
    array([2., 9.], dtype=float32)
    """
    given = iter(x.reshape(-1) for x in (input2, input3) if x is not None)

    def edge(is_array: bool, value: float | None) -> list[Tensor]:
        if is_array:
            return [next(given)]
        return [] if value is None else [number(value, input1.dtype).to(input1.device).reshape(1)]

    begin = edge(to_begin_arr_given, to_begin_scalar)
    end = edge(to_end_arr_given, to_end_scalar)
    return torch.cat([*begin, torch.diff(input1.reshape(-1)), *end])


@ediff1d.infer_outputs
def ediff1d_shape(*ins: Shape | None, **attrs: Any) -> Shape | None:
    """Count the differences and what is put around them."""
    known = [s for s in ins if s is not None]
    wanted = 1 + attrs["to_begin_arr_given"] + attrs["to_end_arr_given"]
    if len(known) < wanted or any(UNKNOWN in s for s in known):
        return None
    numbers = sum(
        attrs[f"{side}_scalar"] is not None and not attrs[f"{side}_arr_given"]
        for side in ("to_begin", "to_end")
    )
    edges = sum(math.prod(s) for s in known[1:])
    return (max(math.prod(known[0]) - 1, 0) + edges + numbers,)


class CountTypes(TypePattern):
    """The output has the dtype of the last input: the weights, or what is counted."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the output by the last input."""
        return ins, [ins[-1] or outs[0]]


@op("_npi_bincount", optional={"weights": lambda a: a["has_weights"]}, value_dependent=True)
def bincount(
    data: Tensor, weights: Tensor | None = None, *, minlength: int = 0, has_weights: bool = False
) -> Tensor:
    """Count how often each non-negative integer occurs, or sum the weights of each.

    Parameters
    ----------
    data
        Non-negative integers.
    weights
        Weight of each integer.
    minlength
        Least length of the result.
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
    """How many is known only when it runs."""
    return (UNKNOWN,)


@op("_npi_polyval")
def polyval(p: Tensor, x: Tensor) -> Tensor:
    """Value of a polynomial, whose coefficients start at the highest power.

    Parameters
    ----------
    p
        The coefficients, from the highest power down.
    x
        Where to evaluate.

    >>> mx.nd._internal._npi_polyval(mx.nd.array([1, 2, 3]), mx.nd.array([0, 2])).asnumpy()
    array([ 3., 11.], dtype=float32)
    """
    check_same_dtype("_npi_polyval", p, x)
    if p.ndim != 1:
        raise InvalidValue(f"_npi_polyval: p has to be an 1-D array, got shape {list(p.shape)}.")
    made = torch.zeros_like(x)
    for coefficient in p.unbind():
        made = made * x + coefficient
    return made


@polyval.infer_outputs
def polyval_shape(p: Shape | None, x: Shape | None) -> Shape | None:
    """As the argument."""
    return x


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype is torch.float64 else torch.float32


class PercentileTypes(TypePattern):
    """float64 of float64, float32 of everything else."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the output by the data."""
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
    """Percentiles over axes; those of an array ``q`` become the first axis.

    Parameters
    ----------
    q
        Percentiles between 0 and 100 as an array.
    interpolation
        What to take between two elements: ``linear``, ``lower``, ``higher``, ``midpoint`` or
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
        raise ShapeError(f"_npi_percentile: q has at most one axis, got {list(share.shape)}.")
    if not a.is_meta and not bool(((share >= 0) & (share <= 100)).all()):
        raise InvalidValue("_npi_percentile: percentile exceeds the valid range of 0 to 100.")
    axes = axes_over(axis, a.ndim)
    kept = [i for i in range(a.ndim) if i not in axes]
    rows = a.to(_wide(a.dtype)).permute(*kept, *axes).flatten(len(kept)) if axes else a[..., None]
    out = _between(rows.to(_wide(a.dtype)).sort(-1).values, share, interpolation)
    return out.reshape((*share.shape, *reduced_shape(a.shape, axes, keepdims)))


def _between(rows: Tensor, share: Tensor, interpolation: str) -> Tensor:
    """Read sorted rows at shares of their length; the shares become the first axis."""
    size = rows.shape[-1]
    place = (share.double() / 100 * (size - 1)).reshape(-1)
    place = {
        "lower": torch.floor,
        "higher": torch.ceil,
        "nearest": lambda x: torch.floor(x + 0.5),
        "midpoint": lambda x: (torch.floor(x) + torch.ceil(x)) / 2,
        "linear": lambda x: x,
    }[interpolation](place)
    low = place.floor().long()
    high = (low + 1).clamp(max=size - 1)
    weight = (place - low).to(rows.dtype)
    out = rows[..., low] * (1 - weight) + rows[..., high] * weight
    # NaN sorts to the end and is the answer wherever it occurs.
    out = torch.where(rows[..., -1:].isnan(), rows[..., -1:], out)
    return out.movedim(-1, 0)


percentile.type_pattern = PercentileTypes(None)
