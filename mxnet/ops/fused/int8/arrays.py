"""8-bit arrays with a known step and zero: made, read, pooled, added and joined."""

from __future__ import annotations

import torch
from torch import Tensor

from ....error import MXNetError
from ...attributes import Floats
from ...attributes import Shape as ShapeAttribute
from ...declare import op
from ...nn.pooling import Convention, pooling, pooling_output
from ...shapes import Shape, Shapes, same
from ...tensor.joining import concat

SIGNED_ZERO = 128
LARGEST = 255
try:
    _max_pool = torch.ops.quantized.max_pool2d
except (AttributeError, RuntimeError):  # a torch without it
    _max_pool = None


def pack(real: Tensor, step: float, zero: int) -> Tensor:
    """Round real numbers to steps."""
    scaled = real.mul(1 / step).round_()
    if zero != SIGNED_ZERO:
        scaled.add_(zero - SIGNED_ZERO)
    # Torch converts to int8 much faster than to uint8.
    signed = scaled.clamp_(-SIGNED_ZERO, LARGEST - SIGNED_ZERO).to(torch.int8)
    return signed.view(torch.uint8).bitwise_xor_(SIGNED_ZERO)


def unpack(data: Tensor, step: float, zero: int) -> Tensor:
    """Return the real numbers of an 8-bit array."""
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
    """Return the real numbers of an 8-bit array.

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
    data: Tensor, *, end: float, zero: int, out_type: str = "int8"
) -> tuple[Tensor, Tensor, Tensor]:
    """Return an 8-bit array as MXNet's operators take it: int8 or uint8, and its range.

    >>> x = mx.nd.array([1, 128, 255], dtype="uint8")
    >>> [y.asnumpy() for y in mx.nd._internal._fused_int8_with_range(x, end=2, zero=128)]
    [array([-127,    0,  127], dtype=int8), array([-2.], dtype=float32), array([2.], dtype=float32)]
    """
    high = data.new_tensor([end], dtype=torch.float32)
    if zero:
        return data.bitwise_xor(SIGNED_ZERO).view(torch.int8), -high, high
    return data.clone(), torch.zeros_like(high), high


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
    """Pool 8-bit images by their maximum or mean; step and zero stay.

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
    made = pooling.function(
        real.sub_(zero) if zero else real, kernel=kernel, pool_type=pool_type,
        global_pool=global_pool, pooling_convention=pooling_convention, stride=stride, pad=pad,
        count_include_pad=count_include_pad,
    )  # fmt: skip
    return (made.round_().add_(zero) if zero else made.round_()).to(torch.uint8)


@int8_pooling.infer_outputs
def int8_pooling_output(data: Shape | None, **attrs: object) -> Shape | None:
    """Infer how many windows there are."""
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


def _joined(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    assert concat.shape_rule is not None
    return concat.shape_rule(ins, outs, attrs)


@op("_fused_int8_concat", count="num_args", types="uint8 -> uint8", shape=_joined, fresh=True)
def int8_concat(
    *data: Tensor,
    dim: int = 1,
    steps: Floats,
    zeros: ShapeAttribute,
    step: float,
    zero: int,
) -> Tensor:
    """Join 8-bit arrays; those with other steps than the result's are rounded to it.

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
