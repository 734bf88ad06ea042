"""8-bit operators with constant ranges.

An 8-bit array of these operators is always uint8 and represents ``(q - zero) * step``; both numbers
are attributes. `zero` is 0 for nonnegative arrays, else 128. Images are channels-last. Weights are
8-bit integers with a range (joint, or per filter), or float32 numbers, which are normalized and
quantized when a kernel is prepared (`mxnet/graph/quantization/kernels.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from ...error import MXNetError
from ..attributes import Count, Floats, Positive, PositiveCount
from ..attributes import Shape as ShapeAttribute
from ..declare import Attrs, OneAux, ZeroAux, op
from ..fused.convolution import NORM, fold_batch_norm, fused_convolution_inputs, fused_shapes
from ..nn.convolution import convolution, convolution_work
from ..nn.dense import fully_connected, fully_connected_inputs, fully_connected_work
from ..nn.pooling import Convention, pooling, pooling_output
from ..shapes import Shape, Shapes, same
from ..tensor.joining import concat
from .conversions import range_step

EIGHT_BITS, SEVEN_BITS = 127.0, 63.0
# Values of oneDNN's environment variable that disable VNNI.
LIMITS_WITHOUT_VNNI = {"SSE41", "AVX", "AVX2", "AVX512_CORE"}


def has_vnni() -> bool:
    """Return whether oneDNN's 8-bit kernels use VNNI."""
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA") or os.environ.get("DNNL_MAX_CPU_ISA", "")
    is_supported = getattr(torch.cpu, "_is_vnni_supported", lambda: False)  # before torch 2.6
    return limit.upper() not in LIMITS_WITHOUT_VNNI and bool(is_supported())


# Without VNNI two products are added in 16 bits, which cannot overflow for 7-bit weights.
HAS_VNNI = has_vnni()
WEIGHT_STEPS = EIGHT_BITS if HAS_VNNI else SEVEN_BITS
MAX_EXACT_WEIGHT = 128 if HAS_VNNI else 64


class Weights(NamedTuple):
    """The weights of a layer."""

    integers: Tensor
    steps: Tensor
    bias: Tensor | None

    @property
    def are_exact(self) -> bool:
        """Whether oneDNN's sums cannot overflow on this processor."""
        return bool(self.integers.short().abs().amax() <= MAX_EXACT_WEIGHT)

    def real(self) -> Tensor:
        """Return the weights as real numbers."""
        return self.integers.float() * self.steps.reshape(-1, *(1,) * (self.integers.ndim - 1))

    def sums(self) -> Tensor:
        """Return the sum of each filter, as a real number."""
        return self.integers.flatten(1).sum(1, dtype=torch.float32) * self.steps


def stored_weights(
    weight: Tensor,
    bias: Tensor | None,
    min_weight: Tensor,
    max_weight: Tensor,
    min_bias: Tensor | None = None,
    max_bias: Tensor | None = None,
) -> Weights:
    """Return integer weights, with a joint range or one per filter."""
    steps = range_step(weight, min_weight, max_weight).expand(weight.shape[0]).contiguous()
    if bias is None:
        return Weights(weight, steps, None)
    assert min_bias is not None and max_bias is not None
    return Weights(weight, steps, (bias.double() * range_step(bias, min_bias, max_bias)).float())


def quantized_weights(weight: Tensor, bias: Tensor | None, channel_wise: bool = True) -> Weights:
    """Quantize float weights by ranges per filter or a joint range."""
    largest = weight.abs().flatten(1).amax(1)
    if not channel_wise:
        largest = largest.amax().expand_as(largest)
    steps = torch.where(largest > 0, largest / WEIGHT_STEPS, 1.0).contiguous()
    scaled = weight / steps.reshape(-1, *(1,) * (weight.ndim - 1))
    return Weights(scaled.round_().to(torch.int8), steps, bias)


SIGNED_ZERO = 128
MAX_VALUE = 255
try:
    _max_pool = torch.ops.quantized.max_pool2d
except (AttributeError, RuntimeError):  # a torch without it
    _max_pool = None


def pack(real: Tensor, step: float, zero: int) -> Tensor:
    """Quantize real numbers."""
    scaled = real.mul(1 / step).round_()
    if zero != SIGNED_ZERO:
        scaled.add_(zero - SIGNED_ZERO)
    # Conversion to int8 is much faster than to uint8.
    signed = scaled.clamp_(-SIGNED_ZERO, MAX_VALUE - SIGNED_ZERO).to(torch.int8)
    return signed.view(torch.uint8).bitwise_xor_(SIGNED_ZERO)


def unpack(data: Tensor, step: float, zero: int) -> Tensor:
    """Dequantize an 8-bit array."""
    real = data.float()
    return (real.sub_(zero) if zero else real).mul_(step)


@op(
    "_fused_int8_quantize",
    types="float32 -> uint8",
    shape=same,
    layout="channels_last",
    fresh=True,
)
def int8_quantize(data: Tensor, *, step: float, zero: int) -> Tensor:
    """Quantize real numbers to ``round(x / step) + zero``.

    >>> x = mx.nd.array([-1, 0, 0.5])
    >>> mx.nd._internal._fused_int8_quantize(x, step=0.01, zero=128).asnumpy()
    array([ 28, 128, 178], dtype=uint8)
    """
    order = torch.channels_last if data.ndim == 4 else torch.contiguous_format
    return pack(data.contiguous(memory_format=order), step, zero)


@op("_fused_int8_dequantize", types="uint8 -> float32", shape=same, keeps_layout=True, fresh=True)
def int8_dequantize(data: Tensor, *, step: float, zero: int) -> Tensor:
    """Dequantize an 8-bit array.

    >>> x = mx.nd.array([28, 128, 178], dtype="uint8")
    >>> mx.nd._internal._fused_int8_dequantize(x, step=0.5, zero=128).asnumpy()
    array([-50.,   0.,  25.], dtype=float32)
    """
    return unpack(data, step, zero)


def _with_range(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    return ins, [ins[0], (1,), (1,)]


@op(
    "_fused_int8_with_range",
    outputs=3,
    types="uint8 -> @out_type float32",
    shape=_with_range,
    keeps_layout=True,
    fresh=True,
)
def int8_with_range(
    data: Tensor, *, end: float, zero: int, out_type: str = "int8", low: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Convert an 8-bit array to the form of MXNet's operators: int8 or uint8, and its range.

    >>> x = mx.nd.array([1, 128, 255], dtype="uint8")
    >>> [y.asnumpy() for y in mx.nd._internal._fused_int8_with_range(x, end=2, zero=128)]
    [array([-127,    0,  127], dtype=int8), array([-2.], dtype=float32), array([2.], dtype=float32)]
    """
    high = data.new_tensor([end], dtype=torch.float32)
    if zero:
        return data.bitwise_xor(SIGNED_ZERO).view(torch.int8), -high, high
    return data.clone(), torch.full_like(high, low), high


@op("_fused_int8_relu", types="uint8 -> uint8", shape=same, keeps_layout=True, fresh=True)
def int8_relu(data: Tensor, *, zero: int) -> Tensor:
    """Replace negative numbers by zero.

    >>> x = mx.nd.array([100, 128, 255], dtype="uint8")
    >>> mx.nd._internal._fused_int8_relu(x, zero=128).asnumpy()
    array([128, 128, 255], dtype=uint8)
    """
    return data.clamp_min(zero)


@op("_fused_int8_pooling", types="uint8 -> uint8", keeps_layout=True, fresh=True)
def int8_pooling(
    data: Tensor,
    *,
    kernel: ShapeAttribute = (),
    pool_type: str = "max",
    global_pool: bool = False,
    pooling_convention: Convention = "valid",
    stride: ShapeAttribute = (),
    pad: ShapeAttribute = (),
    count_include_pad: bool | None = None,
    zero: int,
) -> Tensor:
    """Max or average pooling of 8-bit images; step and zero are unchanged.

    >>> x = mx.nd.array([[[[3, 4, 6, 7]]]], dtype="uint8")
    >>> mx.nd._internal._fused_int8_pooling(x, kernel=(1, 2), stride=(1, 2), zero=0).asnumpy()
    array([[[[4, 7]]]], dtype=uint8)
    """
    is_plain = pooling_convention == "valid" and not global_pool and data.ndim == 4
    if pool_type == "max" and is_plain and _max_pool is not None and data.device.type == "cpu":
        return _max_pool(data, kernel, stride or (1, 1), pad or (0, 0), (1, 1), False)
    if pool_type not in ("max", "avg"):
        raise MXNetError(f"_fused_int8_pooling: pool_type must be max or avg, got {pool_type!r}.")
    real = data.float()
    pooled = pooling.function(
        real.sub_(zero) if zero else real, kernel=kernel, pool_type=pool_type,
        global_pool=global_pool, pooling_convention=pooling_convention, stride=stride, pad=pad,
        count_include_pad=count_include_pad,
    )  # fmt: skip
    return (pooled.round_().add_(zero) if zero else pooled.round_()).to(torch.uint8)


@int8_pooling.infer_outputs
def int8_pooling_output(data: Shape | None, **attrs: object) -> Shape | None:
    """Infer the number of windows."""
    return pooling_output(data, **{**attrs, "layout": None})


@op("_fused_int8_add", types="uint8 -> uint8", shape=same, keeps_layout=True, fresh=True)
def int8_add(
    lhs: Tensor,
    rhs: Tensor,
    *,
    lhs_step: float,
    lhs_zero: int,
    rhs_step: float,
    rhs_zero: int,
    step: float,
    zero: int,
) -> Tensor:
    """Add 8-bit arrays; the sum has its own step and zero.

    >>> x = mx.nd.array([100, 128, 255], dtype="uint8")
    >>> mx.nd._internal._fused_int8_add(x, x, lhs_step=1, lhs_zero=128, rhs_step=2, rhs_zero=128,
    ...                                 step=3, zero=128).asnumpy()
    array([100, 128, 255], dtype=uint8)
    """
    total = unpack(lhs, lhs_step, lhs_zero).add_(rhs.float(), alpha=rhs_step)
    return pack(total.sub_(rhs_zero * rhs_step) if rhs_zero else total, step, zero)


def _join_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    assert concat.shape_rule is not None
    return concat.shape_rule(ins, outs, attrs)


@op("_fused_int8_concat", count="num_args", types="uint8 -> uint8", shape=_join_shapes, fresh=True)
def int8_concat(
    *data: Tensor,
    dim: int = 1,
    steps: Floats,
    zeros: ShapeAttribute,
    step: float,
    zero: int,
) -> Tensor:
    """Concatenate 8-bit arrays; those with a different step are requantized.

    >>> x = mx.nd.array([[128, 130]], dtype="uint8")
    >>> mx.nd._internal._fused_int8_concat(x, x, num_args=2, dim=1, steps=(1, 0.5), zeros=(128, 128),
    ...                                    step=1, zero=128).asnumpy()
    array([[128, 130, 128, 129]], dtype=uint8)
    """  # noqa: E501 (one line of input)
    parts = [
        part if (s, z) == (step, zero) else pack(unpack(part, s, z), step, zero)
        for part, s, z in zip(data, steps, zeros, strict=True)
    ]
    return torch.cat(parts, dim)


OutType = Literal["float32", "uint8"]
STORED_RANGES: Mapping[str, Callable[[Attrs], bool]] = {
    "bias": lambda a: not a["no_bias"],
    "min_weight": lambda a: a["stored"],
    "max_weight": lambda a: a["stored"],
    "min_bias": lambda a: a["stored"] and not a["no_bias"],
    "max_bias": lambda a: a["stored"] and not a["no_bias"],
}


def convolution_weights(
    weight: Tensor,
    bias: Tensor | None,
    min_weight: Tensor | None,
    max_weight: Tensor | None,
    min_bias: Tensor | None,
    max_bias: Tensor | None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    mean: Tensor | None = None,
    var: Tensor | None = None,
    **attrs: Any,
) -> Weights:
    """Return the integers, steps and bias of a convolution."""
    if attrs["stored"]:
        assert min_weight is not None and max_weight is not None
        return stored_weights(weight, bias, min_weight, max_weight, min_bias, max_bias)
    if attrs["normalized"]:
        assert beta is not None and mean is not None and var is not None
        scale = None if attrs["fix_gamma"] else gamma
        weight, bias = fold_batch_norm(weight, bias, scale, beta, mean, var, attrs["eps"])
    return quantized_weights(weight, bias)


def dense_weights(
    weight: Tensor,
    bias: Tensor | None,
    min_weight: Tensor | None,
    max_weight: Tensor | None,
    min_bias: Tensor | None,
    max_bias: Tensor | None,
    **attrs: Any,
) -> Weights:
    """Return the integers, steps and bias of a linear transformation."""
    if attrs["stored"]:
        assert min_weight is not None and max_weight is not None
        return stored_weights(weight, bias, min_weight, max_weight, min_bias, max_bias)
    return quantized_weights(weight, bias, attrs["channel_wise"])


def _finish(real: Tensor, relu: bool, out_type: str, step: float, zero: int) -> Tensor:
    real = real.relu_() if relu else real
    return real if out_type == "float32" else pack(real, step, zero)


@op(
    "_fused_int8_convolution",
    optional={
        **STORED_RANGES,
        **dict.fromkeys(NORM, lambda a: a["normalized"]),
        "other": lambda a: a["adds"],
    },
    types="uint8 A float32 -> @out_type",
    shape=fused_shapes,
    layout="channels_last",
    fresh=True,  # or an owned array without later consumers
)
def int8_convolution(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    min_weight: Tensor | None = None,
    max_weight: Tensor | None = None,
    min_bias: Tensor | None = None,
    max_bias: Tensor | None = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    moving_mean: ZeroAux | None = None,
    moving_var: OneAux | None = None,
    other: Tensor | None = None,
    *,
    kernel: ShapeAttribute,
    stride: ShapeAttribute = (),
    dilate: ShapeAttribute = (),
    pad: ShapeAttribute = (),
    num_filter: PositiveCount,
    num_group: Count = 1,
    no_bias: bool = False,
    stored: bool = True,
    normalized: bool = False,
    eps: float = 1e-3,
    fix_gamma: bool = True,
    data_step: float,
    data_zero: int = 0,
    adds: bool = False,
    other_step: float = 1.0,
    other_zero: int = 0,
    owns_other: bool = False,
    relu: bool = False,
    out_type: OutType = "uint8",
    out_step: float = 1.0,
    out_zero: int = 0,
) -> Tensor:
    """Compute an 8-bit convolution with optional addition, activation and quantized result.

    `owns_other`: the added array has no later consumers and may be overwritten.

    >>> x, w = mx.nd.array([[[[100, 2]]]], dtype="uint8"), mx.nd.array([[[[64]]]], dtype="int8")
    >>> one = mx.nd.ones(1)
    >>> mx.nd._internal._fused_int8_convolution(x, w, min_weight=-one, max_weight=one,
    ...     kernel=(1, 1), num_filter=1, no_bias=True, data_step=0.1, out_step=0.1).asnumpy()
    array([[[[50,  1]]]], dtype=uint8)
    """
    weights = convolution_weights(
        weight, bias, min_weight, max_weight, min_bias, max_bias, gamma, beta, moving_mean,
        moving_var, stored=stored, normalized=normalized, eps=eps, fix_gamma=fix_gamma,
    )  # fmt: skip
    real = convolution.function(
        unpack(data, data_step, data_zero), weights.real(), weights.bias,
        kernel=kernel, stride=stride, dilate=dilate, pad=pad, num_filter=num_filter,
        num_group=num_group, no_bias=weights.bias is None,
    )  # fmt: skip
    if other is not None:
        real = real + unpack(other, other_step, other_zero)
    return _finish(real, relu, out_type, out_step, out_zero)


int8_convolution.infer_inputs(fused_convolution_inputs)
int8_convolution.work(convolution_work)


def _dense_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    assert fully_connected.shape_rule is not None
    _, outs = fully_connected.shape_rule(ins[: 2 if attrs["no_bias"] else 3], outs, attrs)
    return ins, outs


@op(
    "_fused_int8_dense",
    optional=STORED_RANGES,
    types="uint8 A float32 -> @out_type",
    shape=_dense_shapes,
    fresh=True,
)
def int8_dense(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    min_weight: Tensor | None = None,
    max_weight: Tensor | None = None,
    min_bias: Tensor | None = None,
    max_bias: Tensor | None = None,
    *,
    num_hidden: Positive,
    no_bias: bool = False,
    flatten: bool = True,
    stored: bool = True,
    channel_wise: bool = False,
    data_step: float,
    data_zero: int = 0,
    relu: bool = False,
    out_type: OutType = "uint8",
    out_step: float = 1.0,
    out_zero: int = 0,
) -> Tensor:
    """Compute an 8-bit linear transformation with activation and quantized result.

    >>> x, w = mx.nd.array([[100, 2]], dtype="uint8"), mx.nd.array([[127, 0]], dtype="int8")
    >>> one = mx.nd.ones(1)
    >>> mx.nd._internal._fused_int8_dense(x, w, min_weight=-one, max_weight=one, num_hidden=1,
    ...                                   no_bias=True, data_step=0.1, out_type="float32").asnumpy()
    array([[10.]], dtype=float32)
    """
    weights = dense_weights(
        weight, bias, min_weight, max_weight, min_bias, max_bias, stored=stored,
        channel_wise=channel_wise,
    )  # fmt: skip
    real = fully_connected.function(
        unpack(data, data_step, data_zero), weights.real(), weights.bias, num_hidden=num_hidden,
        no_bias=weights.bias is None, flatten=flatten,
    )  # fmt: skip
    return _finish(real, relu, out_type, out_step, out_zero)


@int8_dense.infer_inputs
def int8_dense_inputs(
    data: Shape | None,
    weight: Shape | None,
    bias: Shape | None,
    *_: Shape | None,
    num_hidden: int,
    flatten: bool,
    **__: object,
) -> dict[str, Shape]:
    """Infer weight and bias from data."""
    return fully_connected_inputs(data, weight, bias, num_hidden=num_hidden, flatten=flatten)


int8_dense.work(fully_connected_work)
