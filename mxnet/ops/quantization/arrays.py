"""Operators on 8-bit arrays with ranges, other than layers and conversions."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from ...error import MXNetError, ShapeError
from ..attributes import DType
from ..declare import OneAux, Op, ZeroAux, op
from ..nn.activation import activation
from ..nn.pooling import pooling, pooling_output
from ..shapes import Shape, Shapes, TypePattern, unify
from ..tensor.arithmetic import elemwise_add
from ..tensor.indexing import embedding, embedding_shape
from ..tensor.joining import concat
from ..tensor.shape_changing import flatten, flatten_shape
from ..tracing import is_traced
from .conversions import (
    HALF_STEPS,
    INT32_STEPS,
    LAYER_STEPS,
    STEPS,
    EightBit,
    _check_dtype,
    _check_ranges,
    _larger_end,
    _round,
    range_step,
)
from .layers import OUTPUTS

Ranged = tuple[Tensor, Tensor, Tensor]


def _same_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    arrays = len(ins) // 3  # each array comes with two ends of its range
    shape = outs[0]
    for other in ins[:arrays]:
        shape = unify(shape, other, "8-bit arrays")
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
    """Apply ``relu`` to an 8-bit array; the range is unchanged.

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
    """Max or average pooling of 8-bit images; the range is unchanged.

    Parameters
    ----------
    data
        8-bit integers of shape ``(batch, channels, height, width)``.
    pool_type
        Type of pooling: ``max`` or ``avg``.
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
    """Infer the shapes of the pooled output and of its minimum and maximum."""
    out = pooling_output(data, **attrs)
    return None if out is None else [out, (1,), (1,)]


@quantized_pooling.infer_inputs
def quantized_pooling_inputs(*_: Shape | None, **attrs: object) -> dict[str, Shape]:
    """Each end of a range has one element."""
    return {"min_data": (1,), "max_data": (1,)}


@op(
    "_contrib_quantized_flatten",
    outputs=OUTPUTS,
    types="T float32 -> T float32",
    quantizes=flatten,
)
def quantized_flatten(data: Tensor, min_data: Tensor, max_data: Tensor) -> Ranged:
    """Flatten all axes but the first; the range is unchanged.

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
    """Each end of a range has one element."""
    return {"min_data": (1,), "max_data": (1,)}


def real_values(data: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return the real numbers that an 8-bit array represents."""
    steps = HALF_STEPS["uint8" if data.dtype is torch.uint8 else "int8"]
    return data.to(torch.float32).mul_(_larger_end(low, high) / steps)


def _narrow(real: Tensor, kind: EightBit, low: float, high: float) -> Ranged:
    """Quantize real numbers to 8 bits with a calibrated range."""
    end = max(abs(low), abs(high))
    integers = _round(real * (STEPS[kind] / end if end else 0.0), kind)
    ends = (-end, end) if kind == "int8" else (low, high)
    first, last = (real.new_tensor([e]) for e in ends)
    return integers, first, last


class _SumTypes(TypePattern):
    """32 bits; 8 bits with a calibrated range, unsigned if both arrays are."""

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
    """Add 8-bit arrays; the result has 32 bits, or 8 bits with a calibrated range.

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
        Not supported; must be None.
    max_calib_range
        Not supported; must be None.

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
        return _narrow(total, kind, min_calib_range, max_calib_range)
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
    """Multiply 8-bit arrays; the result has 32 bits, 8 bits with a calibrated range, or is float32.

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
        # As in 1.9.1, fractions are truncated.
        integers = (product * (HALF_STEPS["int8"] / end if end else 0.0)).trunc_().clamp_(-128, 127)
        return integers.to(torch.int8), product.new_tensor([-end]), product.new_tensor([end])
    end = range_step(lhs, lhs_min, lhs_max) * range_step(rhs, rhs_min, rhs_max) * INT32_STEPS
    return lhs.to(torch.int32) * rhs.to(torch.int32), -end, end


def _product_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    ins, shapes = _same_shapes(ins, outs, attrs)
    return ins, shapes[: len(outs)]


class _ProductTypes(TypePattern):
    """32 bits; 8 bits with a calibrated range; or float32."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the result from the attributes."""
        ends = [torch.float32] * 2
        if attrs["enable_float_output"]:
            return [*ins[:2], *ends, *ends], [torch.float32]
        is_calibrated = None not in (attrs["min_calib_range"], attrs["max_calib_range"])
        return [*ins[:2], *ends, *ends], [torch.int8 if is_calibrated else torch.int32, *ends]


quantized_elemwise_mul.type_pattern = _ProductTypes(None)


def _joined_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    assert concat.shape_rule is not None
    count = len(ins) // 3
    shapes, out = concat.shape_rule(ins[:count], outs[:1], attrs)
    return [*shapes, *[(1,)] * (2 * count)], [out[0], (1,), (1,)]


class _JoinedTypes(TypePattern):
    """Unsigned if all arrays are; ranges are float32."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        count = len(ins) // 3
        types = ins[:count]
        joined = torch.int8 if torch.int8 in types else torch.uint8
        joined = outs[0] if None in types else joined
        ends = [torch.float32] * 2
        return [*types, *ends * count], [joined, *ends]


def _joined_inputs(attrs: dict) -> list[str]:
    """Return MXNet's input names: the arrays, then both ends of each range."""
    count = attrs["num_args"]
    ends = [f"arg{i}_{end}" for i in range(count) for end in ("min", "max")]
    return [*(f"arg{i}" for i in range(count)), *ends]


@op(
    "_contrib_quantized_concat",
    outputs=OUTPUTS,
    shape=_joined_shapes,
    input_names=_joined_inputs,
    quantizes=concat,
)
def quantized_concat(*data: Tensor, num_args: int, dim: int = 1) -> Ranged:
    """Concatenate 8-bit arrays; the range of the result covers all of them.

    Parameters
    ----------
    data
        The arrays, then both ends of the first one's range, of the second one's and so on.
    num_args
        Number of arrays.
    dim
        The axis to join along.

    >>> x, one = mx.nd.array([[127, 10]], dtype="int8"), mx.nd.ones(1)
    >>> made, _, high = mx.nd.contrib.quantized_concat(x, x, -one, one, -2 * one, 2 * one, num_args=2)
    >>> made.asnumpy(), high.asnumpy()
    (array([[ 64,   5, 127,  10]], dtype=int8), array([2.], dtype=float32))
    """  # noqa: E501 (one line of input)
    name = "_contrib_quantized_concat"
    arrays, ends = data[:num_args], data[num_args:]
    if len(ends) != 2 * num_args or not arrays:
        raise ShapeError(
            f"{name}: {num_args} arrays need both ends of their ranges, {3 * num_args} inputs in "
            f"all; got {len(data)}."
        )
    for array in arrays:
        _check_dtype(name, array, torch.int8, torch.uint8)
    _check_ranges(name, *ends)
    low = torch.stack(ends[::2]).amin(0)
    high = torch.stack(ends[1::2]).amax(0)
    is_unsigned = all(a.dtype is torch.uint8 for a in arrays)
    dtype = torch.uint8 if is_unsigned else torch.int8
    step = _larger_end(low, high) / LAYER_STEPS[dtype]
    parts = [
        _rescale(array, range_step(array, *ends[2 * i : 2 * i + 2]), step, dtype)
        for i, array in enumerate(arrays)
    ]
    return torch.cat(parts, dim), low, high


quantized_concat.type_pattern = _JoinedTypes(None)


def _rescale(array: Tensor, old: Tensor, new: Tensor, dtype: torch.dtype) -> Tensor:
    if array.dtype is dtype and not is_traced() and torch.equal(old, new):
        return array
    limits = torch.iinfo(dtype)
    ratio = torch.where(new > 0, old / new, 0.0)
    return (array.float() * ratio).round_().clamp_(limits.min, limits.max).to(dtype)


@op(
    "_contrib_quantized_embedding",
    outputs=OUTPUTS,
    types="I int8 float32 -> int8 float32",
)
def quantized_embedding(
    data: Tensor,
    weight: Tensor,
    min_weight: Tensor,
    max_weight: Tensor,
    *,
    input_dim: int,
    output_dim: int,
    dtype: DType = torch.float32,
    sparse_grad: bool = False,
) -> Ranged:
    """Look up rows of 8-bit weights; the range is unchanged.

    Parameters
    ----------
    data
        Indices; those out of range are clipped.
    weight
        8-bit rows of shape ``(input_dim, output_dim)``.
    input_dim
        Number of rows.
    output_dim
        Size of a row.
    dtype, sparse_grad
        Accepted for compatibility; has no effect.

    >>> w, one = mx.nd.array([[1, 2], [3, 4]], dtype="int8"), mx.nd.ones(1)
    >>> mx.nd.contrib.quantized_embedding(mx.nd.array([1, 0]), w, -one, one, input_dim=2,
    ...                                   output_dim=2)[0].asnumpy()
    array([[3, 4],
           [1, 2]], dtype=int8)
    """
    name = "_contrib_quantized_embedding"
    _check_dtype(name, weight, torch.int8)
    _check_ranges(name, min_weight, max_weight)
    rows = embedding.function(data, weight, input_dim=input_dim, output_dim=output_dim)
    return rows, min_weight.clone(), max_weight.clone()


@quantized_embedding.infer_inputs
def quantized_embedding_inputs(
    *_: Shape | None, input_dim: int, output_dim: int, **__: object
) -> dict[str, Shape]:
    """Infer the rows from the attributes."""
    return {"weight": (input_dim, output_dim), "min_weight": (1,), "max_weight": (1,)}


@quantized_embedding.infer_outputs
def quantized_embedding_outputs(
    data: Shape | None, *_: Shape | None, **attrs: object
) -> list[Shape] | None:
    """Infer a row for each index."""
    out = embedding_shape(data, None, **attrs)
    return None if out is None else [out, (1,), (1,)]


NORM_NAME = "_contrib_quantized_batch_norm"


@op(NORM_NAME, outputs=OUTPUTS, types="T float32 -> int8 float32")
def quantized_batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: ZeroAux,
    moving_var: OneAux,
    min_data: Tensor,
    max_data: Tensor,
    *,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    axis: int = 1,
    cudnn_off: bool = False,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize 8-bit images by the running statistics, with a calibrated result range.

    Parameters
    ----------
    gamma
        Scale of each channel.
    beta
        Shift of each channel.
    moving_mean
        Mean of each channel.
    moving_var
        Variance of each channel.
    fix_gamma
        Whether gamma is fixed at 1.
    axis
        The axis of the channels.
    momentum, use_global_stats, output_mean_var
        Accepted for compatibility; has no effect.
    min_calib_range, max_calib_range
        The calibrated range of the result; required.

    >>> x, one = mx.nd.array([[[[127, 10]]]], dtype="int8"), mx.nd.ones(1)
    >>> mx.nd.contrib.quantized_batch_norm(x, one, one, 0 * one, one, -one, one,
    ...     min_calib_range=-2, max_calib_range=2)[0].asnumpy()
    array([[[[127,  68]]]], dtype=int8)
    """
    _check_dtype(NORM_NAME, data, torch.int8, torch.uint8)
    _check_ranges(NORM_NAME, min_data, max_data)
    if min_calib_range is None or max_calib_range is None:
        raise MXNetError(
            f"{NORM_NAME}: min_calib_range and max_calib_range are required; calibrate it."
        )
    real = data.float() * range_step(data, min_data, max_data)
    shape = [1] * data.ndim
    shape[axis] = -1
    scale = (moving_var + eps).rsqrt()
    scale = scale if fix_gamma else scale * gamma
    real = (real - moving_mean.reshape(shape)) * scale.reshape(shape) + beta.reshape(shape)
    end = max(abs(min_calib_range), abs(max_calib_range))
    high = real.new_tensor([end])
    return _round(real * (STEPS["int8"] / end if end else 0.0), "int8"), -high, high


@quantized_batch_norm.infer_inputs
def quantized_batch_norm_inputs(
    data: Shape | None, *_: Shape | None, axis: int, **__: object
) -> dict[str, Shape]:
    """Infer a number for each channel."""
    ends = {"min_data": (1,), "max_data": (1,)}
    if data is None:
        return ends
    channels = (data[axis],)
    return {**ends, **dict.fromkeys(("gamma", "beta", "moving_mean", "moving_var"), channels)}


@quantized_batch_norm.infer_outputs
def quantized_batch_norm_outputs(
    data: Shape | None, *_: Shape | None, **__: object
) -> list[Shape] | None:
    """The output has the shape of the data."""
    return None if data is None else [data, (1,), (1,)]
