"""Rows of arithmetic and comparison, of two arrays or of an array and a number."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ..builder import Builder, Call, is_float
from ..table import row

Binary = Callable[[Builder, torch.dtype, str, str], str]


def _plain(op_type: str) -> Binary:
    return lambda g, dtype, a, b: g.add(op_type, a, b)


def _through_bool(op_type: str) -> Binary:
    """Compare, which gives bool; the row casts to MXNet's type."""
    return lambda g, dtype, a, b: g.add(op_type, a, b)


def _not_equal(g: Builder, dtype: torch.dtype, a: str, b: str) -> str:
    return g.Not(g.Equal(a, b))


def _logical(op_type: str) -> Binary:
    def emit(g: Builder, dtype: torch.dtype, a: str, b: str) -> str:
        return g.add(op_type, g.cast(a, dtype, torch.bool), g.cast(b, dtype, torch.bool))

    return emit


def _modulo(g: Builder, dtype: torch.dtype, a: str, b: str) -> str:
    """Remainder with the sign of the divisor; 0 where the divisor is 0."""
    zero, one = g.scalar(0, dtype), g.scalar(1, dtype)
    is_zero = g.Equal(b, zero)
    safe = g.Where(is_zero, one, b)
    if not is_float(dtype):
        return g.Where(is_zero, zero, g.Mod(a, safe))
    return g.Where(is_zero, zero, g.Sub(a, g.Mul(g.Floor(g.Div(a, safe)), safe)))


def _hypot(g: Builder, dtype: torch.dtype, a: str, b: str) -> str:
    return g.Sqrt(g.Add(g.Mul(a, a), g.Mul(b, b)))


BINARY: dict[str, tuple[Binary, bool]] = {
    "add": (_plain("Add"), False),
    "sub": (_plain("Sub"), False),
    "mul": (_plain("Mul"), False),
    "div": (_plain("Div"), False),
    "power": (_plain("Pow"), False),
    "maximum": (_plain("Max"), False),
    "minimum": (_plain("Min"), False),
    "mod": (_modulo, False),
    "hypot": (_hypot, False),
    "equal": (_through_bool("Equal"), True),
    "not_equal": (_not_equal, True),
    "greater": (_through_bool("Greater"), True),
    "greater_equal": (_through_bool("GreaterOrEqual"), True),
    "lesser": (_through_bool("Less"), True),
    "lesser_equal": (_through_bool("LessOrEqual"), True),
    "logical_and": (_logical("And"), True),
    "logical_or": (_logical("Or"), True),
    "logical_xor": (_logical("Xor"), True),
}
# Every spelling of a pair of arrays and of an array and a number, by idea.
ARRAYS = {
    "add": ("broadcast_add", "elemwise_add", "_grad_add"),
    "sub": ("broadcast_sub", "elemwise_sub"),
    "mul": ("broadcast_mul", "elemwise_mul"),
    "div": ("broadcast_div", "elemwise_div", "_scatter_elemwise_div"),
    "power": ("broadcast_power", "_power"),
    "maximum": ("broadcast_maximum", "_maximum"),
    "minimum": ("broadcast_minimum", "_minimum"),
    "mod": ("broadcast_mod", "_mod"),
    "hypot": ("broadcast_hypot", "_hypot"),
    "equal": ("broadcast_equal", "_equal"),
    "not_equal": ("broadcast_not_equal", "_not_equal"),
    "greater": ("broadcast_greater", "_greater"),
    "greater_equal": ("broadcast_greater_equal", "_greater_equal"),
    "lesser": ("broadcast_lesser", "_lesser"),
    "lesser_equal": ("broadcast_lesser_equal", "_lesser_equal"),
    "logical_and": ("broadcast_logical_and", "_logical_and"),
    "logical_or": ("broadcast_logical_or", "_logical_or"),
    "logical_xor": ("broadcast_logical_xor", "_logical_xor"),
}
SCALARS = {
    "add": ("_plus_scalar", "_scatter_plus_scalar"),
    "sub": ("_minus_scalar", "_scatter_minus_scalar"),
    "mul": ("_mul_scalar",),
    "div": ("_div_scalar",),
    "power": ("_power_scalar",),
    "maximum": ("_maximum_scalar",),
    "minimum": ("_minimum_scalar",),
    "mod": ("_mod_scalar",),
    "hypot": ("_hypot_scalar",),
    "equal": ("_equal_scalar",),
    "not_equal": ("_not_equal_scalar",),
    "greater": ("_greater_scalar",),
    "greater_equal": ("_greater_equal_scalar",),
    "lesser": ("_lesser_scalar",),
    "lesser_equal": ("_lesser_equal_scalar",),
    "logical_and": ("_logical_and_scalar",),
    "logical_or": ("_logical_or_scalar",),
    "logical_xor": ("_logical_xor_scalar",),
}
REVERSED = {
    "sub": ("_rminus_scalar",),
    "div": ("_rdiv_scalar",),
    "mod": ("_rmod_scalar",),
    "power": ("_rpower_scalar",),
}


SMALL = (torch.bool, torch.int8, torch.uint8)


def computed_in(call: Call, idea: str) -> torch.dtype:
    """Return the type to compute in; ONNX has no arithmetic of small integers."""
    dtype = call.dtypes[0]
    if len(call.dtypes) > 1:
        dtype = torch.promote_types(dtype, call.dtypes[1])
    if is_float(dtype):
        return dtype
    if is_float(call.out_dtypes[0]):
        return call.out_dtypes[0]
    if idea == "hypot":
        return torch.float32
    return torch.int32 if dtype in SMALL else dtype


def _number(call: Call, dtype: torch.dtype) -> float:
    """Return the scalar as MXNet takes it: in the type of the array."""
    number = float(call.attrs["scalar"])
    if is_float(dtype):
        return number if is_float(call.dtype) or is_float(call.out_dtypes[0]) else int(number)
    if not math.isfinite(number) or abs(number) >= 2**31:
        raise call.unsupported(f"has scalar={number}, which integers cannot hold.")
    whole = int(number)
    return whole & 0xFF if call.dtype is torch.uint8 else whole


def _finish(g: Builder, call: Call, value: str, dtype: torch.dtype, gives_bool: bool) -> str:
    return g.cast(value, torch.bool if gives_bool else dtype, call.out_dtypes[0])


def _arrays(idea: str) -> None:
    compute, gives_bool = BINARY[idea]

    @row(*ARRAYS[idea])
    def emit(g: Builder, call: Call, a: str, b: str) -> str:
        dtype = computed_in(call, idea)
        left, right = (
            g.cast(x, given, dtype) for x, given in zip((a, b), call.dtypes, strict=True)
        )
        return _finish(g, call, compute(g, dtype, left, right), dtype, gives_bool)


def _scalar(idea: str, names: tuple[str, ...], is_reversed: bool) -> None:
    compute, gives_bool = BINARY[idea]

    @row(*names)
    def emit(g: Builder, call: Call, x: str) -> str:
        dtype = computed_in(call, idea)
        value, other = g.cast(x, call.dtype, dtype), g.scalar(_number(call, dtype), dtype)
        pair = (other, value) if is_reversed else (value, other)
        return _finish(g, call, compute(g, dtype, *pair), dtype, gives_bool)


for _idea in BINARY:
    _arrays(_idea)
    _scalar(_idea, SCALARS[_idea], False)
for _idea, _names in REVERSED.items():
    _scalar(_idea, _names, True)


@row("add_n")
def add_n(g: Builder, call: Call, *xs: str) -> str:
    """Sum of all inputs."""
    if is_float(call.dtype):
        return g.Sum(*xs)
    total = xs[0]
    for x in xs[1:]:
        total = g.Add(total, x)
    return total


@row("where")
def where(g: Builder, call: Call, condition: str, x: str, y: str) -> str:
    """Choose by a condition, which may have one number for each row."""
    chosen = g.cast(condition, call.dtypes[0], torch.bool)
    rank = len(call.shapes[1])
    if call.ndim == 1 and rank > 1:
        chosen = g.unsqueeze(chosen, *range(1, rank))
    return g.Where(chosen, x, y)
