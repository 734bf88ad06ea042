"""8-bit layers with the narrowing of their results to a calibrated range, as one operator."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ..attributes import Count, Positive, PositiveCount
from ..attributes import Shape as ShapeAttribute
from ..declare import Attrs, op
from ..quantization.conversions import EightBitOrAuto, _EightBitTypes, requantize
from ..quantization.layers import (
    OUTPUTS,
    quantized_conv,
    quantized_conv_inputs,
    quantized_fully_connected,
    quantized_fully_connected_inputs,
)
from ..shapes import Shapes
from .prepared_quantized import CAN_PACK, PreparedConvolution, PreparedDense

BIAS: dict[str, Callable[[Attrs], bool]] = dict.fromkeys(
    ("bias", "min_bias", "max_bias"), lambda a: not a["no_bias"]
)


def _fused_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    assert quantized_conv.shape_rule is not None
    return quantized_conv.shape_rule(ins, outs, {**attrs, "layout": None})


@op(
    "_fused_quantized_conv",
    optional=BIAS,
    outputs=OUTPUTS,
    shape=_fused_shapes,
)
def fused_quantized_conv(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    min_data: Tensor | None = None,
    max_data: Tensor | None = None,
    min_weight: Tensor | None = None,
    max_weight: Tensor | None = None,
    min_bias: Tensor | None = None,
    max_bias: Tensor | None = None,
    *,
    kernel: ShapeAttribute,
    stride: ShapeAttribute = (),
    dilate: ShapeAttribute = (),
    pad: ShapeAttribute = (),
    num_filter: PositiveCount,
    num_group: Count = 1,
    no_bias: bool = False,
    out_type: EightBitOrAuto = "int8",
    min_calib_range: float,
    max_calib_range: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Convolve 8-bit data with 8-bit weights and narrow the sums to 8 bits.

    >>> x, w = mx.nd.array([[[[127, 2]]]], dtype="int8"), mx.nd.array([[[[127]]]], dtype="int8")
    >>> one = mx.nd.ones(1)
    >>> mx.nd._internal._fused_quantized_conv(x, w, min_data=-one, max_data=one, min_weight=-one,
    ...     max_weight=one, kernel=(1, 1), num_filter=1, no_bias=True, min_calib_range=-1,
    ...     max_calib_range=1)[0].asnumpy()
    array([[[[127,   2]]]], dtype=int8)
    """
    ranges = (min_data, max_data, min_weight, max_weight, min_bias, max_bias)
    place = {"kernel": kernel, "stride": stride, "dilate": dilate, "pad": pad}
    sums = quantized_conv.function(
        data, weight, bias, *ranges, **place, num_filter=num_filter, num_group=num_group
    )
    return requantize.function(
        *sums, out_type=out_type, min_calib_range=min_calib_range, max_calib_range=max_calib_range
    )


fused_quantized_conv.type_pattern = _EightBitTypes("A int8 float32 -> @out_type float32")


@fused_quantized_conv.infer_inputs
def fused_quantized_conv_inputs(*shapes: object, **attrs: object) -> dict:
    """Infer weight and bias from the channels of data."""
    return quantized_conv_inputs(*shapes, **attrs, layout=None)


@fused_quantized_conv.specialize
def prepare_quantized_conv(attrs: dict, differentiable: bool) -> Callable | None:
    """Return a kernel that keeps its weights in the form that oneDNN computes with."""
    if differentiable or not CAN_PACK:
        return None
    return PreparedConvolution(fused_quantized_conv.function, attrs)


@op(
    "_fused_quantized_fully_connected",
    optional=BIAS,
    outputs=OUTPUTS,
    shape=quantized_fully_connected.shape_rule,
)
def fused_quantized_fully_connected(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    min_data: Tensor | None = None,
    max_data: Tensor | None = None,
    min_weight: Tensor | None = None,
    max_weight: Tensor | None = None,
    min_bias: Tensor | None = None,
    max_bias: Tensor | None = None,
    *,
    num_hidden: Positive,
    no_bias: bool = False,
    flatten: bool = True,
    out_type: EightBitOrAuto = "int8",
    min_calib_range: float,
    max_calib_range: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Apply a linear transformation to 8-bit data and narrow the sums to 8 bits.

    >>> x, w = mx.nd.array([[127, 0]], dtype="int8"), mx.nd.array([[127, 5]], dtype="int8")
    >>> one = mx.nd.ones(1)
    >>> mx.nd._internal._fused_quantized_fully_connected(x, w, min_data=-one, max_data=one,
    ...     min_weight=-one, max_weight=one, num_hidden=1, no_bias=True, min_calib_range=-1,
    ...     max_calib_range=1)[0].asnumpy()
    array([[127]], dtype=int8)
    """
    ranges = (min_data, max_data, min_weight, max_weight, min_bias, max_bias)
    sums = quantized_fully_connected.function(
        data, weight, bias, *ranges, num_hidden=num_hidden, flatten=flatten
    )
    return requantize.function(
        *sums, out_type=out_type, min_calib_range=min_calib_range, max_calib_range=max_calib_range
    )


fused_quantized_fully_connected.type_pattern = _EightBitTypes("A int8 float32 -> @out_type float32")
fused_quantized_fully_connected.infer_inputs(quantized_fully_connected_inputs)


@fused_quantized_fully_connected.specialize
def prepare_quantized_dense(attrs: dict, differentiable: bool) -> Callable | None:
    """Return a kernel that keeps its weights in the form that oneDNN computes with."""
    if differentiable or not CAN_PACK:
        return None
    return PreparedDense(fused_quantized_fully_connected.function, attrs)
