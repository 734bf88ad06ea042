"""8-bit convolution and linear transformation with everything that follows them.

Weights are 8-bit integers with a range (of all, or of each filter), or float32 numbers, which are
normalized and quantized when a kernel is prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from torch import Tensor

from ...attributes import Count, Positive, PositiveCount
from ...attributes import Shape as ShapeAttribute
from ...declare import Attrs, OneAux, ZeroAux, op
from ...nn.convolution import convolution, convolution_work
from ...nn.dense import fully_connected, fully_connected_inputs, fully_connected_work
from ...shapes import Shape, Shapes
from ..convolution import NORM, fused_convolution_inputs, fused_shapes
from .arrays import pack, unpack
from .prepared import PreparedConvolution, PreparedDense
from .weights import Weights, folded_weights, quantized_weights, stored_weights

OutType = Literal["float32", "uint8"]
RANGES: Mapping[str, Callable[[Attrs], bool]] = {
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
    """Return the integers, steps and bias that a convolution computes with."""
    if attrs["stored"]:
        assert min_weight is not None and max_weight is not None
        return stored_weights(weight, bias, min_weight, max_weight, min_bias, max_bias)
    if attrs["normalized"]:
        assert beta is not None and mean is not None and var is not None
        scale = None if attrs["fix_gamma"] else gamma
        weight, bias = folded_weights(weight, bias, scale, beta, mean, var, attrs["eps"])
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
    """Return the integers, steps and bias that a linear transformation computes with."""
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
        **RANGES,
        **dict.fromkeys(NORM, lambda a: a["normalized"]),
        "other": lambda a: a["adds"],
    },
    types="uint8 A float32 -> @out_type",
    shape=fused_shapes,
    layout="channels_last",
    fresh=True,  # or an array that it owns, which nothing reads any more
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
    """Convolve 8-bit images, add others to the result, activate it and round it to 8 bits.

    `owns_other` says that nothing reads the array that is added afterward, so that it may be
    written over.

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


@int8_convolution.variant("node")
def prepare_convolution(attrs: dict, differentiable: bool) -> Callable | None:
    """Return a kernel that keeps its weights in the form that oneDNN computes with."""
    if differentiable:
        return None
    return PreparedConvolution(int8_convolution.function, convolution_weights, attrs)


def _dense_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    assert fully_connected.shape_rule is not None
    _, outs = fully_connected.shape_rule(ins[: 2 if attrs["no_bias"] else 3], outs, attrs)
    return ins, outs


@op(
    "_fused_int8_dense",
    optional=RANGES,
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
    """Apply a linear transformation to 8-bit data, activate the result and round it to 8 bits.

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


@int8_dense.variant("node")
def prepare_dense(attrs: dict, differentiable: bool) -> Callable | None:
    """Return a kernel that keeps its weights in the form that oneDNN computes with."""
    return None if differentiable else PreparedDense(int8_dense.function, dense_weights, attrs)
