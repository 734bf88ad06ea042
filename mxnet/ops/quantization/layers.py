"""Convolution and fully connected layers on 8-bit integers with 32-bit results.

Data may be int8 or uint8, weights are int8, a bias is int8 or int32. Weights have one range, or one
for each filter; then the 32-bit results have one for each channel. Torch's float kernels compute
the sums of 8-bit products, in a type in which these are exact; `mxnet/graph/quantization` has
faster kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..declare import Op, op
from ..nn.convolution import convolution, convolution_inputs
from ..nn.dense import fully_connected, fully_connected_inputs
from ..shapes import Shape, Shapes, TypePattern
from .conversions import (
    INT32_STEPS,
    LAYER_STEPS,
    QUANTIZED_STEPS,
    _check_dtype,
    _check_ranges,
    range_step,
)

OUTPUTS = ("output", "min_output", "max_output")
RANGES = ("min_data", "max_data", "min_weight", "max_weight", "min_bias", "max_bias")
TYPES = "A int8 float32 -> int32 float32"


class _LayerTypes(TypePattern):
    """8-bit data, weights and bias, with 32-bit sums; a bias may have 32 bits as well."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer a bias of 8 bits unless another type is known."""
        if not attrs["no_bias"] and ins[2] is None:
            ins = [*ins[:2], torch.int8, *ins[3:]]
        return super().infer(op, ins, outs, attrs)


def bias_steps(bias: Tensor, low: Tensor, high: Tensor, step: Tensor, data: torch.dtype) -> Tensor:
    """Return a bias in steps of the 32-bit sums, with the steps that `quantize_v2` has for data."""
    step = step.double() * (LAYER_STEPS[data] / QUANTIZED_STEPS[data])
    scaled = bias.to(torch.float64) * (range_step(bias, low, high).double() / step)
    limit = INT32_STEPS / 2
    return torch.nan_to_num(scaled, 0.0).round_().clamp_(-limit, limit)


def _layer_shapes(ins: Shapes, outs: Shapes, attrs: dict, layer: Op) -> tuple[Shapes, Shapes]:
    assert layer.shape_rule is not None
    arrays = 2 if attrs["no_bias"] else 3
    shapes, out = layer.shape_rule(ins[:arrays], outs[:1], attrs)
    ranges = [r or (1,) for r in ins[arrays:]]
    return [*shapes, *ranges], [out[0], ranges[2], ranges[3]]


def _range_shapes(shapes: Sequence[Shape | None]) -> dict[str, Shape]:
    """Return the shapes of ranges; those that are not given are one number."""
    return {name: shape or (1,) for name, shape in zip(RANGES, shapes, strict=False)}


def _exact_type(weight: Tensor) -> torch.dtype:
    """Return the float type that holds every sum of a filter's products exactly."""
    largest = weight[0].numel() * 255 * 128
    return torch.float32 if largest < 2**24 else torch.float64


def _finish(sums: Tensor, step: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    end = step * INT32_STEPS
    return sums.to(torch.int32), -end, end


def _layer_step(name: str, data: Tensor, weight: Tensor, *ranges: Tensor | None) -> Tensor:
    """Check the inputs; return the real number that one step of the sums represents."""
    _check_dtype(name, data, torch.int8, torch.uint8)
    _check_dtype(name, weight, torch.int8)
    low, high, low_weight, high_weight, *_ = ranges
    assert low is not None and high is not None
    assert low_weight is not None and high_weight is not None
    _check_ranges(name, *(r for r in (low, high, *ranges[4:]) if r is not None))
    _check_ranges(name, low_weight, high_weight, channels=weight.shape[0])
    return range_step(data, low, high) * range_step(weight, low_weight, high_weight)


def _is_plain_convolution(attrs: dict) -> bool:
    return len(attrs["kernel"]) == 2 and attrs["layout"] in (None, "NCHW")


@op(
    "_contrib_quantized_conv",
    attributes_of=convolution,
    optional=dict.fromkeys(("bias", "min_bias", "max_bias"), lambda a: not a["no_bias"]),
    outputs=OUTPUTS,
    types=TYPES,
    shape=lambda ins, outs, attrs: _layer_shapes(ins, outs, attrs, convolution),
    quantizes=convolution,
    quantizes_when=_is_plain_convolution,
    accumulates=True,
)
def quantized_conv(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    min_data: Tensor | None = None,
    max_data: Tensor | None = None,
    min_weight: Tensor | None = None,
    max_weight: Tensor | None = None,
    min_bias: Tensor | None = None,
    max_bias: Tensor | None = None,
    **attrs: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Convolve 8-bit data with 8-bit weights; return 32-bit sums and the range of 32 bits.

    Parameters
    ----------
    data
        8-bit integers of shape ``(batch, channels, height, width)``.
    weight
        8-bit integers of shape ``(num_filter, channels / num_group, *kernel)``.

    >>> x, w = mx.nd.array([[[[100, 2]]]], dtype="uint8"), mx.nd.array([[[[-3]]]], dtype="int8")
    >>> one = mx.nd.ones(1)
    >>> mx.nd.contrib.quantized_conv(x, w, min_data=0 * one, max_data=one, min_weight=-one,
    ...     max_weight=one, kernel=(1, 1), num_filter=1, no_bias=True)[0].asnumpy()
    array([[[[-300,   -6]]]], dtype=int32)
    """
    name = "_contrib_quantized_conv"
    ranges = (min_data, max_data, min_weight, max_weight, min_bias, max_bias)
    step = _layer_step(name, data, weight, *ranges)
    exact = _exact_type(weight)
    sums = convolution.function(data.to(exact), weight.to(exact), **attrs)
    if bias is not None and min_bias is not None and max_bias is not None:
        wide = step * _spread(data, *ranges[:2])
        added = bias_steps(bias, min_bias, max_bias, wide, data.dtype)
        sums = sums + added.reshape(-1, *(1,) * len(attrs["kernel"]))
    return _finish(sums, step)


def _spread(data: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor | float:
    """Return the width of an unsigned range that also has negative numbers, in its larger end."""
    if data.dtype is not torch.uint8 or low is None or high is None:
        return 1.0
    end = torch.maximum(low.abs(), high.abs())
    return torch.where(end > 0, (high - low.clamp(max=0)) / end, 1.0).clamp(min=1.0)


quantized_conv.type_pattern = _LayerTypes(TYPES)


@quantized_conv.infer_inputs
def quantized_conv_inputs(
    data: Shape | None,
    weight: Shape | None,
    bias: Shape | None,
    *ranges: Shape | None,
    kernel: Shape,
    num_filter: int,
    num_group: int,
    layout: str | None,
    **_: object,
) -> dict[str, Shape]:
    """Infer weight and bias from the channels of data."""
    shapes = convolution_inputs(
        data, weight, bias, kernel=kernel, num_filter=num_filter, num_group=num_group, layout=layout
    )
    return {**shapes, **_range_shapes(ranges)}


@op(
    "_contrib_quantized_fully_connected",
    attributes_of=fully_connected,
    optional=dict.fromkeys(("bias", "min_bias", "max_bias"), lambda a: not a["no_bias"]),
    outputs=OUTPUTS,
    types=TYPES,
    shape=lambda ins, outs, attrs: _layer_shapes(ins, outs, attrs, fully_connected),
    quantizes=fully_connected,
    accumulates=True,
)
def quantized_fully_connected(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    min_data: Tensor | None = None,
    max_data: Tensor | None = None,
    min_weight: Tensor | None = None,
    max_weight: Tensor | None = None,
    min_bias: Tensor | None = None,
    max_bias: Tensor | None = None,
    **attrs: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Apply a linear transformation to 8-bit data; return 32-bit sums and the range of 32 bits.

    Parameters
    ----------
    data
        8-bit integers.
    weight
        8-bit integers of shape ``(num_hidden, features)``.

    >>> x, w = mx.nd.array([[100, 2]], dtype="uint8"), mx.nd.array([[-3, 1]], dtype="int8")
    >>> one = mx.nd.ones(1)
    >>> mx.nd.contrib.quantized_fully_connected(x, w, min_data=0 * one, max_data=one,
    ...     min_weight=-one, max_weight=one, num_hidden=1, no_bias=True)[0].asnumpy()
    array([[-298]], dtype=int32)
    """
    name = "_contrib_quantized_fully_connected"
    ranges = (min_data, max_data, min_weight, max_weight, min_bias, max_bias)
    step = _layer_step(name, data, weight, *ranges)
    exact = _exact_type(weight)
    sums = fully_connected.function(data.to(exact), weight.to(exact), **attrs)
    if bias is not None and min_bias is not None and max_bias is not None:
        sums = sums + bias_steps(bias, min_bias, max_bias, step, data.dtype)
    return _finish(sums, step)


quantized_fully_connected.type_pattern = _LayerTypes(TYPES)


@quantized_fully_connected.infer_inputs
def quantized_fully_connected_inputs(
    data: Shape | None,
    weight: Shape | None,
    bias: Shape | None,
    *ranges: Shape | None,
    num_hidden: int,
    flatten: bool,
    **_: object,
) -> dict[str, Shape]:
    """Infer weight and bias from data."""
    shapes = fully_connected_inputs(data, weight, bias, num_hidden=num_hidden, flatten=flatten)
    return {**shapes, **_range_shapes(ranges)}
