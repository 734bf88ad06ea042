"""Rows of `mx.np` that need a few nodes each: angles, bits, signs, averages, norms, choices."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from ..builder import INT64, UNKNOWN, Builder, Call, is_float, numpy_dtype
from ..table import row
from .numpy_math import axes_of

HALF_TURN, QUARTER = math.pi, math.pi / 2


def _arctan2(g: Builder, y: str, x: str, dtype: torch.dtype) -> str:
    """Return the angle of a point, in all four quadrants."""
    zero = g.scalar(0, dtype)
    is_axis = g.Equal(x, zero)
    ratio = g.Div(y, g.Where(is_axis, g.scalar(1, dtype), x))
    angle = g.Atan(ratio)
    half = g.Where(g.Less(y, zero), g.scalar(-HALF_TURN, dtype), g.scalar(HALF_TURN, dtype))
    angle = g.Where(g.Less(x, zero), g.Add(angle, half), angle)
    return g.Where(is_axis, g.Mul(g.Sign(y), g.scalar(QUARTER, dtype)), angle)


def _in_floats(name: str, compute: Callable[..., str]) -> None:
    """Register an operator that is computed in floats: ``compute(g, call, dtype, *inputs)``."""

    @row(name)
    def emit(g: Builder, call: Call, *xs: str) -> str:
        wanted = call.out_dtypes[0]
        dtype = wanted if is_float(wanted) else torch.float64
        values = [g.cast(x, t, dtype) for x, t in zip(xs, call.dtypes, strict=True)]
        return g.cast(compute(g, call, dtype, *values), dtype, wanted)


def _number(g: Builder, call: Call, dtype: torch.dtype, like: str) -> str:
    """Return the scalar of an operator as often as an array has elements."""
    return g.Expand(g.scalar(call.attrs["scalar"], dtype), g.Shape(like))


def _power_of_two(g: Builder, x: str, dtype: torch.dtype) -> str:
    return g.Pow(g.scalar(2, dtype), x)


def _signed(g: Builder, size: str, sign: str, dtype: torch.dtype) -> str:
    """Return sizes with the signs of other numbers; the sign of -0 is that of its reciprocal."""
    zero = g.scalar(0, dtype)
    is_zero = g.Equal(sign, zero)
    inverse = g.Reciprocal(g.Where(is_zero, sign, g.scalar(1, dtype)))
    is_negative = g.Or(g.Less(sign, zero), g.And(is_zero, g.Less(inverse, zero)))
    positive = g.Abs(size)
    return g.Where(is_negative, g.Neg(positive), positive)


def _polyval(g: Builder, call: Call, dtype: torch.dtype, p: str, x: str) -> str:
    """Return a polynomial by Horner's rule."""
    made = g.Mul(x, g.scalar(0, dtype))
    for i in range(call.shapes[0][0]):
        made = g.Add(g.Mul(made, x), g.reshape(g.slice(p, [i], [i + 1], [0]), []))
    return made


COMPUTED: dict[str, Callable[..., str]] = {
    "_npi_arctan2": lambda g, call, t, y, x: _arctan2(g, y, x, t),
    "_npi_arctan2_scalar": lambda g, call, t, y: _arctan2(g, y, _number(g, call, t, y), t),
    "_npi_rarctan2_scalar": lambda g, call, t, x: _arctan2(g, _number(g, call, t, x), x, t),
    "_npi_copysign": lambda g, call, t, a, b: _signed(g, a, b, t),
    "_npi_copysign_scalar": lambda g, call, t, x: _signed(g, x, _number(g, call, t, x), t),
    "_npi_rcopysign_scalar": lambda g, call, t, x: _signed(g, _number(g, call, t, x), x, t),
    "_npi_polyval": _polyval,
    "_npi_ldexp": lambda g, call, t, a, b: g.Mul(a, _power_of_two(g, b, t)),
    "_npi_ldexp_scalar": lambda g, call, t, x: g.Mul(x, g.scalar(2.0 ** call.attrs["scalar"], t)),
    "_npi_rldexp_scalar": lambda g, call, t, x: g.Mul(
        g.scalar(call.attrs["scalar"], t), _power_of_two(g, x, t)
    ),
}
for _operator, _compute in COMPUTED.items():
    _in_floats(_operator, _compute)


BITS = {"and": ("BitwiseAnd", "And"), "or": ("BitwiseOr", "Or"), "xor": ("BitwiseXor", "Xor")}


def _bits(name: str, on_numbers: str, on_truths: str) -> None:
    @row(f"_npi_bitwise_{name}", since=18)
    def emit(g: Builder, call: Call, a: str, b: str) -> str:
        dtype = torch.promote_types(*call.dtypes)
        left, right = (g.cast(x, t, dtype) for x, t in zip((a, b), call.dtypes, strict=True))
        made = g.add(on_truths if dtype is torch.bool else on_numbers, left, right)
        return g.cast(made, dtype, call.out_dtypes[0])

    @row(f"_npi_bitwise_{name}_scalar", since=18)
    def emit_scalar(g: Builder, call: Call, x: str) -> str:
        dtype = call.out_dtypes[0]
        wide = INT64 if dtype is torch.bool else dtype
        number = int(call.attrs["scalar"])
        number = g.scalar(int(bool(number)) if dtype is torch.bool else number, wide)
        return g.cast(g.add(on_numbers, g.cast(x, call.dtype, wide), number), wide, dtype)


for _name, _ops in BITS.items():
    _bits(_name, *_ops)


@row("_npi_bitwise_not", since=18)
def bitwise_not(g: Builder, call: Call, x: str) -> str:
    """All bits inverted."""
    return g.Not(x) if call.dtype is torch.bool else g.BitwiseNot(x)


@row("_npi_rint")
def rint(g: Builder, call: Call, x: str) -> str:
    """Round halves down, as MXNet does."""
    if not is_float(call.dtype):
        return g.cast(x, call.dtype, call.out_dtypes[0])
    return g.Ceil(g.Sub(x, g.scalar(0.5, call.dtype)))


@row("_npi_nan_to_num")
def nan_to_num(g: Builder, call: Call, x: str) -> str:
    """Replace what is no finite number."""
    if not is_float(call.dtype):
        return g.Identity(x)
    a, limits = call.attrs, torch.finfo(call.dtype)
    wide = x if call.dtype is not torch.float16 else g.cast(x, call.dtype, torch.float32)
    high = limits.max if a["posinf"] is None else a["posinf"]
    low = limits.min if a["neginf"] is None else a["neginf"]
    made = g.Where(g.IsNaN(x), g.scalar(a["nan"], call.dtype), x)
    made = g.Where(g.IsInf(wide, detect_negative=0), g.scalar(high, call.dtype), made)
    return g.Where(g.IsInf(wide, detect_positive=0), g.scalar(low, call.dtype), made)


@row("_npi_where_lscalar")
def where_lscalar(g: Builder, call: Call, condition: str, x: str) -> str:
    """A number where the condition holds."""
    dtype = call.dtypes[1]
    chosen = g.cast(condition, call.dtype, torch.bool)
    made = g.Where(chosen, g.scalar(call.attrs["scalar"], dtype), x)
    return g.cast(made, dtype, call.out_dtypes[0])


@row("_npi_where_rscalar")
def where_rscalar(g: Builder, call: Call, condition: str, y: str) -> str:
    """A number where the condition does not hold."""
    dtype = call.dtypes[1]
    chosen = g.cast(condition, call.dtype, torch.bool)
    made = g.Where(chosen, y, g.scalar(call.attrs["scalar"], dtype))
    return g.cast(made, dtype, call.out_dtypes[0])


@row("_npi_where_scalar2")
def where_scalar2(g: Builder, call: Call, condition: str) -> str:
    """One of two numbers."""
    chosen = g.cast(condition, call.dtype, torch.bool)
    numbers = [g.scalar(call.attrs[k], call.out_dtypes[0]) for k in ("x", "y")]
    return g.Where(chosen, *numbers)


@row("_npi_average")
def average(g: Builder, call: Call, x: str, *weights: str) -> list[str]:
    """Mean with weights, and their sum: one number unless each element has its own."""
    axes, dtype = axes_of(call), call.out_dtypes[0]
    data = g.cast(x, call.dtype, dtype)
    if not weights:
        sizes = [call.shape[a] for a in axes]
        if UNKNOWN in sizes:
            raise call.unsupported("needs the reduced sizes as numbers.")
        total = g.scalar(math.prod(sizes), dtype)
        sums = g.reduce("ReduceSum", data, axes, False)
    else:
        shares = g.cast(weights[0], call.dtypes[1], dtype)
        is_vector = call.shapes[1] != call.shape
        if is_vector:
            shares = g.reshape(shares, [-1 if i == axes[0] else 1 for i in range(call.ndim)])
        total = g.reduce("ReduceSum", shares, None if is_vector else axes, False)
        sums = g.reduce("ReduceSum", g.Mul(data, shares), axes, False)
    return [g.Div(sums, total), g.Identity(total)][: len(call.out_shapes)]


@row("_npi_blackman", "_npi_hamming", "_npi_hanning")
def window(g: Builder, call: Call) -> str:
    """Factors of a window, which are constants."""
    extra = call.op.context_for(False, torch.device("cpu"))
    made = call.op.kernel(**call.attrs, **extra)
    return g.Identity(g.array(made.numpy().astype(numpy_dtype(call.out_dtypes[0]))))


@row("_npi_diag_indices_from")
def diag_indices_from(g: Builder, call: Call, x: str) -> str:
    """Indices of the diagonal, which follow from the shape."""
    line = np.arange(call.shape[0])
    made = np.stack([line] * call.ndim).astype(numpy_dtype(call.out_dtypes[0]))
    return g.Identity(g.array(made))


@row("_npi_unique")
def unique(g: Builder, call: Call, x: str) -> list[str]:
    """Distinct elements in order, with indices and counts on demand."""
    a = call.attrs
    options = {} if a["axis"] is None else {"axis": a["axis"]}
    found = g.Unique(x, sorted=1, outputs=4, **options)
    wanted = [True, a["return_index"], a["return_inverse"], a["return_counts"]]
    return [name for name, is_wanted in zip(found, wanted, strict=True) if is_wanted]


@row("_npi_norm")
def norm(g: Builder, call: Call, x: str) -> str:
    """Norms of vectors, and of matrices where no singular values are needed."""
    a = call.attrs
    order, kept, flag = a["ord"], a["keepdims"], a["flag"]
    if a["axis"]:
        axes = [i % call.ndim for i in a["axis"]]
    else:
        axes = list(range(call.ndim))[-2 if flag == -1 else 0 :]
    dtype = call.out_dtypes[0]
    if not is_float(dtype):
        raise call.unsupported("of integers has no ONNX form.")
    value = g.cast(x, call.dtype, dtype)
    if flag in (0, 2) or (flag == -1 and len(axes) == 2):
        return _matrix_norm(g, call, value, order, axes, kept)
    return _vector_norm(g, call, value, order if flag == -1 else 2, axes, kept)


def _matrix_norm(g: Builder, call: Call, x: str, order: float, axes: list, kept: bool) -> str:
    if call.attrs["flag"] == 2 or abs(order) == 2:
        raise call.unsupported("of matrices needs singular values, which ONNX has not.")
    first, second = axes if abs(order) == 1 else axes[::-1]
    sums = g.reduce("ReduceSum", g.Abs(x), [first], True)
    most = g.reduce("ReduceMax" if order > 0 else "ReduceMin", sums, [second], True)
    return g.Identity(most) if kept else g.squeeze(most, *axes)


def _vector_norm(g: Builder, call: Call, x: str, order: float, axes: list, kept: bool) -> str:
    size, dtype = g.Abs(x), call.out_dtypes[0]
    if not axes:
        return size
    if order == 0:
        is_on = g.cast(g.Greater(size, g.scalar(0, dtype)), torch.bool, dtype)
        return g.reduce("ReduceSum", is_on, axes, kept)
    if math.isinf(order):
        return g.reduce("ReduceMax" if order > 0 else "ReduceMin", size, axes, kept)
    if order == 2:
        return g.Sqrt(g.reduce("ReduceSum", g.Mul(x, x), axes, kept))
    powers = g.Pow(size, g.scalar(order, dtype))
    return g.Pow(g.reduce("ReduceSum", powers, axes, kept), g.scalar(1 / order, dtype))


@row("all_finite", "multi_all_finite")
def all_finite(g: Builder, call: Call, *xs: str) -> str:
    """1 if all elements of all arrays are finite numbers."""
    found = []
    for x, dtype in zip(xs, call.dtypes, strict=True):
        wide = x if dtype is not torch.float16 else g.cast(x, dtype, torch.float32)
        is_bad = g.cast(g.Or(g.IsInf(wide), g.IsNaN(wide)), torch.bool, torch.float32)
        found.append(g.reduce("ReduceMax", g.reshape(is_bad, [-1]), [0], True))
    worst = g.Max(*found) if len(found) > 1 else found[0]
    return g.cast(g.Sub(g.scalar(1, torch.float32), worst), torch.float32, call.out_dtypes[0])


@row("multi_sum_sq")
def multi_sum_sq(g: Builder, call: Call, *xs: str) -> str:
    """Sum of squares of each array."""
    sums = []
    for x, dtype in zip(xs, call.dtypes, strict=True):
        wide = g.reshape(g.cast(x, dtype, torch.float32), [-1])
        sums.append(g.reduce("ReduceSum", g.Mul(wide, wide), [0], True))
    return g.Concat(*sums, axis=0)


@row("_linalg_trmm")
def trmm(g: Builder, call: Call, a: str, b: str) -> str:
    """Product with a triangular matrix."""
    o, rank = call.attrs, call.ndim
    made = g.Trilu(a, upper=int(not o["lower"])) if g.opset >= 14 else _triangle(g, call, a)
    if o["transpose"]:
        made = g.Transpose(made, perm=[*range(rank - 2), rank - 1, rank - 2])
    pair = (b, made) if o["rightside"] else (made, b)
    return g.Mul(g.MatMul(*pair), g.scalar(o["alpha"], call.dtype))


def _triangle(g: Builder, call: Call, a: str) -> str:
    mask = np.tri(*call.shape[-2:]) if call.attrs["lower"] else np.tri(*call.shape[-2:]).T
    return g.Where(g.array(mask > 0), a, g.scalar(0, call.dtype))


@row("_linalg_slogdet")
def slogdet(g: Builder, call: Call, a: str) -> list[str]:
    """Sign and logarithm of determinants."""
    found = g.Det(a)
    parts = g.Sign(found), g.Log(g.Abs(found))
    shape = call.out_shapes[0]
    return [g.reshape(p, [1]) if call.ndim == 2 and shape == (1,) else p for p in parts]
