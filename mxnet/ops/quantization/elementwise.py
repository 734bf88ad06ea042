"""Activation, pooling, reshaping and addition of 8-bit arrays with ranges."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from ...error import MXNetError
from ..declare import Op, op
from ..nn.activation import activation
from ..nn.pooling import pooling, pooling_output
from ..shapes import Shape, Shapes, TypePattern, unify
from ..tensor.arithmetic import elemwise_add
from ..tensor.shape_changing import flatten, flatten_shape
from .conversions import (
    HALF_STEPS,
    INT32_STEPS,
    STEPS,
    EightBit,
    _check_dtype,
    _check_ranges,
    _larger_end,
    _rounded,
    range_step,
)
from .layers import OUTPUTS

Ranged = tuple[Tensor, Tensor, Tensor]


def _same_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    arrays = len(ins) // 3  # each array comes with two ends of its range
    shape = outs[0]
    for given in ins[:arrays]:
        shape = unify(shape, given, "8-bit arrays")
    return [*[shape] * arrays, *[(1,)] * (2 * arrays)], [shape, (1,), (1,)]


def _is_relu(attrs: dict) -> bool:
    return attrs["act_type"] == "relu"


@op(
    "_contrib_quantized_act",
    outputs=OUTPUTS,
    types="T float32 -> T float32",
    shape=_same_shapes,
    quantizes=activation,
    quantizes_when=_is_relu,
)
def quantized_act(
    data: Tensor,
    min_data: Tensor,
    max_data: Tensor,
    *,
    act_type: Literal["relu", "sigmoid", "softrelu", "softsign", "tanh"],
) -> Ranged:
    """Apply ``relu`` to an 8-bit array; the range stays.

    Parameters
    ----------
    data
        8-bit integers.
    act_type
        The function; only ``'relu'``.

    >>> x, end = mx.nd.array([-3, 4], dtype="int8"), mx.nd.ones(1)
    >>> mx.nd.contrib.quantized_act(x, -end, end, act_type="relu")[0].asnumpy()
    array([0, 4], dtype=int8)
    """
    _check_dtype("_contrib_quantized_act", data, torch.int8, torch.uint8)
    _check_ranges("_contrib_quantized_act", min_data, max_data)
    if act_type != "relu":
        raise MXNetError(
            f"_contrib_quantized_act: only act_type='relu' runs on 8-bit integers, got "
            f"{act_type!r}; leave this layer in float32 (exclude_layers)."
        )
    return data.clamp_min(0), min_data.clone(), max_data.clone()


def _is_max_or_mean(attrs: dict) -> bool:
    return attrs["pool_type"] in ("max", "avg") and attrs["layout"] in (None, "NCHW")


@op(
    "_contrib_quantized_pooling",
    attributes_of=pooling,
    outputs=OUTPUTS,
    types="T float32 -> T float32",
    quantizes=pooling,
    quantizes_when=_is_max_or_mean,
)
def quantized_pooling(
    data: Tensor,
    min_data: Tensor,
    max_data: Tensor,
    **attrs: Any,
) -> Ranged:
    """Pool 8-bit images by their maximum or mean; the range stays.

    Parameters
    ----------
    data
        8-bit integers of shape ``(batch, channels, height, width)``.
    pool_type
        What to take of each window: ``max`` or ``avg``.
    p_value
        Exponent of ``lp`` pooling; not used here.

    >>> x, end = mx.nd.array([[[[-3, 4, 6, 7]]]], dtype="int8"), mx.nd.ones(1)
    >>> mx.nd.contrib.quantized_pooling(x, -end, end, kernel=(1, 2), stride=(1, 2))[0].asnumpy()
    array([[[[4, 7]]]], dtype=int8)
    """
    name = "_contrib_quantized_pooling"
    _check_dtype(name, data, torch.int8, torch.uint8)
    _check_ranges(name, min_data, max_data)
    pool_type = pooling.complete(attrs)["pool_type"]
    if pool_type not in ("max", "avg"):
        raise MXNetError(f"{name}: pool_type must be 'max' or 'avg', got {pool_type!r}.")
    out = pooling.function(data.float(), **attrs)
    return out.round_().to(data.dtype), min_data.clone(), max_data.clone()


@quantized_pooling.infer_outputs
def quantized_pooling_outputs(
    data: Shape | None, *_: Shape | None, **attrs: object
) -> list[Shape] | None:
    """Infer how many windows there are."""
    out = pooling_output(data, **attrs)
    return None if out is None else [out, (1,), (1,)]


@quantized_pooling.infer_inputs
def quantized_pooling_inputs(*_: Shape | None, **attrs: object) -> dict[str, Shape]:
    """Infer that a range has one number at each end."""
    return {"min_data": (1,), "max_data": (1,)}


@op(
    "_contrib_quantized_flatten",
    outputs=OUTPUTS,
    types="T float32 -> T float32",
    quantizes=flatten,
)
def quantized_flatten(data: Tensor, min_data: Tensor, max_data: Tensor) -> Ranged:
    """Make all axes but the first one; the range stays.

    Parameters
    ----------
    data
        8-bit integers.

    >>> x, end = mx.nd.ones((2, 3, 4), dtype="int8"), mx.nd.ones(1)
    >>> mx.nd.contrib.quantized_flatten(x, -end, end)[0].shape
    (2, 12)
    """
    _check_dtype("_contrib_quantized_flatten", data, torch.int8, torch.uint8)
    _check_ranges("_contrib_quantized_flatten", min_data, max_data)
    return flatten.function(data).clone(), min_data.clone(), max_data.clone()


@quantized_flatten.infer_outputs
def quantized_flatten_outputs(data: Shape | None, *_: Shape | None) -> list[Shape] | None:
    """Infer the product of all axes but the first."""
    out = flatten_shape(data)
    return None if out is None else [out, (1,), (1,)]


@quantized_flatten.infer_inputs
def quantized_flatten_inputs(*_: Shape | None) -> dict[str, Shape]:
    """Infer that a range has one number at each end."""
    return {"min_data": (1,), "max_data": (1,)}


def real_values(data: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return the real numbers that an 8-bit array represents."""
    steps = HALF_STEPS["uint8" if data.dtype is torch.uint8 else "int8"]
    return data.to(torch.float32).mul_(_larger_end(low, high) / steps)


def _narrowed(real: Tensor, kind: EightBit, low: float, high: float) -> Ranged:
    """Return real numbers as 8-bit ones of a calibrated range."""
    end = max(abs(low), abs(high))
    made = _rounded(real * (STEPS[kind] / end if end else 0.0), kind)
    ends = (-end, end) if kind == "int8" else (low, high)
    first, last = (real.new_tensor([e]) for e in ends)
    return made, first, last


class _SumTypes(TypePattern):
    """32 bits; with a calibrated range 8 bits, unsigned if both arrays are."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the result from both arrays."""
        ends = [torch.float32] * 2
        total = torch.int32
        if attrs["min_calib_range"] is not None and attrs["max_calib_range"] is not None:
            is_unsigned = ins[0] is ins[1] is torch.uint8
            total = torch.uint8 if is_unsigned else torch.int8
        return [*ins[:2], *ends, *ends], [total, *ends]


@op(
    "_contrib_quantized_elemwise_add",
    outputs=OUTPUTS,
    shape=_same_shapes,
    quantizes=elemwise_add,
    accumulates=True,
)
def quantized_elemwise_add(
    lhs: Tensor,
    rhs: Tensor,
    lhs_min: Tensor,
    lhs_max: Tensor,
    rhs_min: Tensor,
    rhs_max: Tensor,
    *,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
) -> Ranged:
    """Add 8-bit arrays; the sum has 32 bits and a range that holds both, or 8 calibrated ones.

    Parameters
    ----------
    lhs_min
        Smallest number that `lhs` represents.
    lhs_max
        Largest number that `lhs` represents.
    rhs_min
        Smallest number that `rhs` represents.
    rhs_max
        Largest number that `rhs` represents.
    min_calib_range
        Not supported: leave it None.
    max_calib_range
        Not supported: leave it None.

    >>> x, end = mx.nd.array([127], dtype="int8"), mx.nd.ones(1)
    >>> total, low, high = mx.nd.contrib.quantized_elemwise_add(x, x, -end, end, -end, end)
    >>> (total.astype("float64") / 2**31 * high.asscalar()).asnumpy().round(2), high.asnumpy()
    (array([1.99]), array([2.], dtype=float32))
    """
    name = "_contrib_quantized_elemwise_add"
    for data in (lhs, rhs):
        _check_dtype(name, data, torch.int8, torch.uint8)
    _check_ranges(name, lhs_min, lhs_max, rhs_min, rhs_max)
    total = real_values(lhs, lhs_min, lhs_max) + real_values(rhs, rhs_min, rhs_max)
    if min_calib_range is not None and max_calib_range is not None:
        kind = "uint8" if lhs.dtype is rhs.dtype is torch.uint8 else "int8"
        return _narrowed(total, kind, min_calib_range, max_calib_range)
    end = _larger_end(lhs_min, lhs_max) + _larger_end(rhs_min, rhs_max)
    scale = torch.where(end > 0, INT32_STEPS / end.double(), 0.0)
    sums = (total.double() * scale).round_().clamp_(-INT32_STEPS, INT32_STEPS)
    return sums.to(torch.int32), -end, end


quantized_elemwise_add.type_pattern = _SumTypes(None)


@op(
    "_contrib_quantized_elemwise_mul",
    outputs=lambda a: 1 if a["enable_float_output"] else OUTPUTS,
    shape=lambda ins, outs, attrs: _product_shapes(ins, outs, attrs),
)
def quantized_elemwise_mul(
    lhs: Tensor,
    rhs: Tensor,
    lhs_min: Tensor,
    lhs_max: Tensor,
    rhs_min: Tensor,
    rhs_max: Tensor,
    *,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    enable_float_output: bool = False,
) -> Ranged | Tensor:
    """Multiply 8-bit arrays; the product has 32 bits, 8 calibrated ones, or is float32.

    Parameters
    ----------
    min_calib_range, max_calib_range
        The calibrated range of an 8-bit result; by default it has 32 bits.
    enable_float_output
        Whether the result is float32, without a range.

    >>> x, end = mx.nd.array([100], dtype="int8"), mx.nd.ones(1)
    >>> mx.nd.contrib.quantized_elemwise_mul(x, x, -end, end, -end, end)[0].asnumpy()
    array([10000], dtype=int32)
    """
    name = "_contrib_quantized_elemwise_mul"
    for data in (lhs, rhs):
        _check_dtype(name, data, torch.int8, torch.uint8)
    _check_ranges(name, lhs_min, lhs_max, rhs_min, rhs_max)
    product = real_values(lhs, lhs_min, lhs_max) * real_values(rhs, rhs_min, rhs_max)
    if enable_float_output:
        return product
    if min_calib_range is not None and max_calib_range is not None:
        end = max(abs(min_calib_range), abs(max_calib_range))
        # Like 1.9.1, this one drops fractions.
        made = (product * (HALF_STEPS["int8"] / end if end else 0.0)).trunc_().clamp_(-128, 127)
        return made.to(torch.int8), product.new_tensor([-end]), product.new_tensor([end])
    end = range_step(lhs, lhs_min, lhs_max) * range_step(rhs, rhs_min, rhs_max) * INT32_STEPS
    return lhs.to(torch.int32) * rhs.to(torch.int32), -end, end


def _product_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    ins, found = _same_shapes(ins, outs, attrs)
    return ins, found[: len(outs)]


class _ProductTypes(TypePattern):
    """32 bits; with a calibrated range 8 bits; or float32."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the result from the attributes."""
        ends = [torch.float32] * 2
        if attrs["enable_float_output"]:
            return [*ins[:2], *ends, *ends], [torch.float32]
        is_calibrated = None not in (attrs["min_calib_range"], attrs["max_calib_range"])
        return [*ins[:2], *ends, *ends], [torch.int8 if is_calibrated else torch.int32, *ends]


quantized_elemwise_mul.type_pattern = _ProductTypes(None)
