"""Convolutions of compiled graphs.

In inference a convolution includes the following normalization, addition and activation. One of
three implementations is selected for each shape of data: oneDNN with packed weights and fused
steps, torch's convolution with folded weights (small data, other types), or the original operators,
which raise errors for invalid arguments. oneDNN's relu and clip convert NaN to a number, so weights
that are not finite raise `Fallback`, and so does data, which is checked at the start of a chain of
convolutions.

In training a convolution uses channels-last memory format.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ..._process.memory import return_gaps
from ...error import ShapeError
from ...torch_private import convolution_kernels
from ..attributes import Count, Floats, PositiveCount
from ..attributes import Shape as ShapeAttribute
from ..declare import OneAux, Op, ZeroAux, op
from ..nn.convolution import (
    CONVOLUTIONS,
    convolution,
    convolution_inputs,
    convolution_shapes,
    convolution_work,
)
from ..nn.normalization import WideParameters
from ..shapes import Shape, Shapes
from ..tensor.elementwise import clip
from .prepared_values import Unchanged, require_finite

NONE = "none"
Function = Callable[[Tensor], Tensor]

# By name: the function and its in-place form; both take the constants.
PLAIN: dict[str, Callable[..., Tensor]] = {
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "clip": lambda x, low, high: clip.function(x, a_min=low, a_max=high),
    "leaky": lambda x, slope: F.leaky_relu(x, slope),
}
IN_PLACE: dict[str, Callable[..., Tensor]] = {
    "relu": torch.relu_,
    "sigmoid": torch.sigmoid_,
    "tanh": torch.tanh_,
    "clip": lambda x, low, high: x.clamp_(low, high),
    "leaky": lambda x, slope: F.leaky_relu_(x, slope),
}
# oneDNN's names.
ONEDNN = {
    "none": "none",
    "relu": "relu",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "clip": "hardtanh",
    "leaky": "leaky_relu",
}


def bind_epilogue(
    table: dict[str, Callable[..., Tensor]], name: str, constants: tuple[float, ...]
) -> Function | None:
    """Return a function of one tensor, None for no epilogue."""
    if name == NONE:
        return None
    function = table[name]
    return (lambda x: function(x, *constants)) if constants else function


# Minimum number of multiplications for packed weights: a call of oneDNN costs 30 to 50 µs more than
# torch's convolution (they break even at 2 million with AVX2, at 5 million with AVX-512). Grouped
# convolutions of any size are faster packed.
MIN_MULTIPLICATIONS = 5_000_000
MAX_SHAPES = 4  # packed weights depend on the shape of data
MAX_CHANGES = 16  # number of consecutive changes after which weights are not prepared again


Run = Callable[[Tensor, Tensor | None], Tensor]
MaybeTensor = Tensor | None
# weight, bias, gamma, beta, mean, var
Parameters = tuple[Tensor, MaybeTensor, MaybeTensor, MaybeTensor, MaybeTensor, MaybeTensor]


class _Weights:
    """The source arrays of prepared weights, and the implementation for each shape of data."""

    __slots__ = ("are_current", "dtype", "folded", "parameters", "ready")

    def __init__(
        self, parameters: Parameters, source: Unchanged, dtype: torch.dtype | None
    ) -> None:
        self.parameters, self.are_current = parameters, source.holds_for
        self.dtype = dtype  # None: cannot be folded
        self.folded: tuple[Tensor, Tensor | None] | None = None  # kept if there are too many shapes
        self.ready: dict[torch.Size, Run | None] = {}


class PreparedConvolution:
    """The specialized kernel of `_fused_convolution` at one node.

    It takes the operator's inputs, None if absent.
    """

    def __init__(self, plain: Callable, attrs: dict[str, Any]) -> None:
        self._plain, self._attrs = plain, attrs
        kernel = attrs["kernel"]
        self._kernel, self._groups = tuple(kernel), attrs["num_group"]
        self._stride = list(attrs["stride"] or (1,) * len(kernel))
        self._pad = list(attrs["pad"] or (0,) * len(kernel))
        self._dilate = list(attrs["dilate"] or (1,) * len(kernel))
        self._adds = attrs["addition"] != NONE
        self._check_data = attrs["check_data"]
        self._check_other = self._adds and attrs["check_other"]
        self._weights: _Weights | None = None
        self._changes = 0  # consecutive changes of weights

    def __call__(
        self,
        data: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        gamma: Tensor | None = None,
        beta: Tensor | None = None,
        mean: Tensor | None = None,
        var: Tensor | None = None,
        other: Tensor | None = None,
    ) -> Tensor:
        """Return the result of the convolution and all fused operators."""
        parameters = (weight, bias, gamma, beta, mean, var)
        weights = self._weights
        if weights is None or not weights.are_current(parameters):
            self._weights = None
            source = Unchanged.of(parameters)
            if source is None or self._changes > MAX_CHANGES:
                out = self._run_plain(data, other, parameters)
                require_finite(out)
                return out
            self._changes += 1
            weights = self._weights = _Weights(parameters, source, self._foldable(parameters))
        else:
            self._changes = 0
        shape = data.shape
        ready = weights.ready
        run = ready[shape] if shape in ready else self._choose(data, weights)
        if run is None or data.dtype is not weights.dtype:
            return self._run_plain(data, other, parameters)
        if self._check_data:
            require_finite(data)
        if self._check_other:
            assert other is not None
            require_finite(other)
        return run(data, other)

    def _run_plain(self, data: Tensor, other: Tensor | None, parameters: Parameters) -> Tensor:
        return self._plain(data, *parameters, other, **self._attrs)

    # -- folding ------------------------------------------------------------------------------

    def _foldable(self, parameters: Parameters) -> torch.dtype | None:
        """Return the common type of the parameters, or None."""
        weight, *vectors = parameters
        filters, dtype = self._attrs["num_filter"], weight.dtype
        fits = dtype in (torch.float32, torch.float64)
        fits = fits and weight.shape[0] == filters and weight.shape[2:] == self._kernel
        for vector in vectors:
            if vector is not None:
                fits = fits and vector.shape == (filters,) and vector.dtype is dtype
                fits = fits and vector.device == weight.device
        return dtype if fits else None

    def _fold(self, parameters: Parameters) -> tuple[Tensor, Tensor | None]:
        """Fold the normalization into weight and bias."""
        weight, bias, gamma, beta, mean, var = parameters
        if self._attrs["normalized"]:
            assert beta is not None and mean is not None and var is not None
            scale = None if self._attrs["fix_gamma"] else gamma
            weight, bias = fold_batch_norm(weight, bias, scale, beta, mean, var, self._attrs["eps"])
        require_finite(weight)
        if bias is not None:
            require_finite(bias)
        return weight, bias

    # -- selection of the implementation
    # -----------------------------------------------------------------------

    def _choose(self, data: Tensor, weights: _Weights) -> Run | None:
        """Return the implementation for this shape of data; None: the original operators."""
        shape, weight = data.shape, weights.parameters[0]
        if data.dtype is not weights.dtype or len(shape) != weight.ndim or 0 in shape:
            return None
        if shape[1] != weight.shape[1] * self._groups:
            return None
        windows = zip(shape[2:], self._pad, self._dilate, self._kernel, self._stride, strict=True)
        sizes = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in windows]
        if min(sizes) < 1:
            return None
        out = torch.Size((shape[0], weight.shape[0], *sizes))
        if len(weights.ready) >= MAX_SHAPES:
            weights.folded = weights.folded or self._fold(weights.parameters)
            return self._by_torch(*weights.folded, weights, out)
        folded = self._fold(weights.parameters)
        if self._is_packing_profitable(data, weight, out):
            run = self._by_onednn(*folded, weights, out, shape)
        else:
            run = self._by_torch(*folded, weights, out)
        weights.ready[shape] = run
        return_gaps()  # loops over many shapes fragment the memory
        return run

    def _is_packing_profitable(self, data: Tensor, weight: Tensor, out: torch.Size) -> bool:
        if len(self._kernel) != 2 or convolution_kernels() is None:
            return False
        if data.dtype is not torch.float32 or data.device.type != "cpu":
            return False
        if self._adds and out[2:].numel() == 1:  # torch 2.8 fails on these
            return False
        return self._groups > 1 or out.numel() * math.prod(weight.shape[1:]) >= MIN_MULTIPLICATIONS

    def _by_torch(
        self, weight: Tensor, bias: Tensor | None, weights: _Weights, out_shape: torch.Size
    ) -> Run:
        convolve = CONVOLUTIONS[len(self._kernel)]
        stride, pad, dilate, groups = self._stride, self._pad, self._dilate, self._groups
        activate = bind_epilogue(IN_PLACE, self._attrs["epilogue"], self._attrs["constants"])

        def run(data: Tensor, other: Tensor | None) -> Tensor:
            out = convolve(data, weight, bias, stride, pad, dilate, groups)
            if other is not None:
                if other.shape != out_shape or other.dtype is not out.dtype:
                    return self._run_plain(data, other, weights.parameters)
                out += other
            return out if activate is None else activate(out)

        return run

    def _by_onednn(
        self,
        weight: Tensor,
        bias: Tensor | None,
        weights: _Weights,
        out_shape: torch.Size,
        shape: torch.Size,
    ) -> Run:
        windows = (self._pad, self._stride, self._dilate, self._groups)
        kernels = convolution_kernels()
        assert kernels is not None  # else packing is not profitable
        packed = kernels.pack(weight, *windows, list(shape))
        name, constants = ONEDNN[self._attrs["epilogue"]], list(self._attrs["constants"])
        after_sum = None if name == NONE else name

        def run(data: Tensor, other: Tensor | None) -> Tensor:
            if other is None:
                return kernels.fused(data, packed, bias, *windows, name, constants, "")
            if other.shape != out_shape or other.dtype is not data.dtype:
                return self._run_plain(data, other, weights.parameters)
            return kernels.fused_with_sum(
                data, other, packed, bias, *windows, "add", 1.0, after_sum, [], ""
            )

        return run


NORM = ("gamma", "beta", "moving_mean", "moving_var")


def fused_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """Infer the output from the data and the window; images are (N, C, H, W)."""
    _, outs = convolution_shapes(ins, outs, {**attrs, "layout": None})
    return ins, outs


@op(
    "_fused_convolution",
    optional={
        "bias": lambda a: not a["no_bias"],
        "other": lambda a: a["addition"] != "none",
        **dict.fromkeys(NORM, lambda a: a["normalized"]),
    },
    shape=fused_shapes,
    layout="channels_last",
    keeps_finite=True,
    overwritable=True,
)
def fused_convolution(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
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
    normalized: bool = False,
    eps: float = 1e-3,
    fix_gamma: bool = True,
    addition: Literal["broadcast", "none", "same_shape"] = "none",
    epilogue: Literal["clip", "leaky", "none", "relu", "sigmoid", "tanh"] = "none",
    constants: Floats = (),
    check_data: bool = True,
    check_other: bool = True,
) -> Tensor:
    """Compute a convolution, normalization by running statistics, addition and activation.

    All steps but the first are optional. `check_data`, `check_other`: check this input for NaN and
    infinity on each call and fall back to the plain operators, because the specialized kernel would
    lose them.

    >>> x, w = mx.nd.array([[[[1, -2]]]]), mx.nd.array([[[[3]]]])
    >>> mx.nd._internal._fused_convolution(x, w, kernel=(1, 1), num_filter=1, no_bias=True,
    ...                                    epilogue="relu").asnumpy()
    array([[[[3., 0.]]]], dtype=float32)
    """
    out = convolution.function(
        data,
        weight,
        bias,
        kernel=kernel,
        stride=stride,
        dilate=dilate,
        pad=pad,
        num_filter=num_filter,
        num_group=num_group,
    )
    if normalized:
        scale = None if fix_gamma else gamma
        out = torch.batch_norm(out, scale, beta, moving_mean, moving_var, False, 0.0, eps, True)
    if other is not None:
        if addition == "same_shape" and other.shape != out.shape:
            raise ShapeError(
                f"Incompatible attr in node _fused_convolution at the input other: expected "
                f"{list(out.shape)}, got {list(other.shape)}."
            )
        out = out + other
    activate = bind_epilogue(PLAIN, epilogue, constants)
    return out if activate is None else activate(out)


def fold_batch_norm(
    weight: Tensor,
    bias: Tensor | None,
    gamma: Tensor | None,
    beta: Tensor,
    mean: Tensor,
    var: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """Fold the normalization into weight and bias.

    >>> import torch
    >>> one = torch.ones(1)
    >>> fold_batch_norm(torch.full((1, 1, 1, 1), 6.0), None, None, one, 2 * one, 4 * one, 0.0)
    (tensor([[[[3.]]]]), tensor([0.]))
    """
    scale = (var + eps).rsqrt()
    if gamma is not None:
        scale = scale * gamma
    shifted = -mean if bias is None else bias - mean
    return weight * scale.reshape(-1, *(1,) * (weight.ndim - 1)), shifted * scale + beta


class _Types(WideParameters):
    """Weight, bias and result have the data's type; the normalization's may be wider."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer all types from that of the data (or of the output)."""
        names = op.names_of_inputs(attrs)
        norm = [i for i, name in enumerate(names) if name in NORM]
        wide, _ = super().infer(op, [ins[0], *(ins[i] for i in norm)], outs, attrs)
        data = wide[0]
        types = [data] * len(ins)
        for i, dtype in zip(norm, wide[1:], strict=True):
            types[i] = dtype
        return types, [data]


fused_convolution.type_pattern = _Types(None)


@fused_convolution.infer_inputs
def fused_convolution_inputs(
    data: Shape | None,
    weight: Shape | None,
    bias: Shape | None,
    *_: Shape | None,
    kernel: Shape,
    num_filter: int,
    num_group: int,
    **__: object,
) -> dict[str, Shape]:
    """Infer the parameters from the channels of the data; the added array is not inferred."""
    shapes = convolution_inputs(
        data, weight, bias, kernel=kernel, num_filter=num_filter, num_group=num_group, layout=None
    )
    return {**shapes, **dict.fromkeys(NORM, (num_filter,))}


fused_convolution.work(convolution_work)


@fused_convolution.variant("node")
def prepare_convolution(attrs: dict, differentiable: bool) -> Callable | None:
    """Return a kernel with weights packed for oneDNN."""
    return None if differentiable else PreparedConvolution(fused_convolution.function, attrs)


LAST = torch.channels_last
Pair = tuple[int, ...]

# Minimum ratio of elements in data to elements in the copied weight: if the data is copied too, and
# if it already has channels last.
MIN_RATIO, MIN_RATIO_OF_LAST = 2, 0.5
MAX_ROWS, MIN_MATRIX = 256, 1_000_000  # elements of a large weight


def _shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    return convolution_shapes(ins, outs, {**attrs, "layout": None})


@op(
    "_convolution_channels_last",
    optional={"bias": lambda a: not a["no_bias"]},
    shape=_shapes,
    layout="channels_last",
    overwritable=True,
)
def convolution_channels_last(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    kernel: ShapeAttribute,
    stride: ShapeAttribute = (),
    dilate: ShapeAttribute = (),
    pad: ShapeAttribute = (),
    num_filter: PositiveCount,
    num_group: Count = 1,
    no_bias: bool = False,
) -> Tensor:
    """Compute a convolution in channels-last memory format if profitable.

    The weight is copied into that format on every call, unless it is large compared with its data.

    >>> x, w = mx.nd.array([[[[1, -2]]]]), mx.nd.array([[[[3]]]])
    >>> mx.nd._internal._convolution_channels_last(x, w, kernel=(1, 1), num_filter=1,
    ...                                            no_bias=True).asnumpy()
    array([[[[ 3., -6.]]]], dtype=float32)
    """
    if data.ndim == 4 and weight.ndim == 4:
        windows = (tuple(stride) or (1, 1), tuple(pad) or (0, 0), tuple(dilate) or (1, 1))
        is_plain = num_group == 1 and weight.shape == (num_filter, data.shape[1], *kernel)
        if is_plain and _is_small_product(data, weight, *windows):
            return _multiply_windows(data, weight, bias, *windows)
        if _is_profitable(data, weight):
            data, weight = _channels_last(data), weight.contiguous(memory_format=LAST)
        else:
            data = data.contiguous()
    return convolution.function(
        data,
        weight,
        bias,
        kernel=kernel,
        stride=stride,
        dilate=dilate,
        pad=pad,
        num_filter=num_filter,
        num_group=num_group,
    )


def _is_profitable(data: Tensor, weight: Tensor) -> bool:
    """Return whether channels-last format outweighs the copy of the weight."""
    if not data.is_contiguous(memory_format=LAST):
        return data.numel() >= MIN_RATIO * weight.numel()
    # The weight of a 1x1 kernel has both formats.
    return weight[0, 0].numel() == 1 or data.numel() >= MIN_RATIO_OF_LAST * weight.numel()


def _output_sizes(data: Tensor, weight: Tensor, stride: Pair, pad: Pair, dilate: Pair) -> Pair:
    windows = zip(data.shape[2:], weight.shape[2:], stride, pad, dilate, strict=True)
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in windows)


def _is_small_product(data: Tensor, weight: Tensor, stride: Pair, pad: Pair, dilate: Pair) -> bool:
    """Return whether there are few windows and a large weight, as in the last layers.

    For such a weight and its gradient, oneDNN's reordering takes longer than the convolution.
    """
    if weight.numel() < MIN_MATRIX or weight[0, 0].numel() == 1 or not data.is_cpu:
        return False
    if data.dtype is not weight.dtype:
        return False
    height, width = _output_sizes(data, weight, stride, pad, dilate)
    return height > 0 < width and 0 < len(data) * height * width <= MAX_ROWS


def _multiply_windows(
    data: Tensor, weight: Tensor, bias: Tensor | None, stride: Pair, pad: Pair, dilate: Pair
) -> Tensor:
    """Compute the convolution as a matrix product with one row per window."""
    sizes = _output_sizes(data, weight, stride, pad, dilate)
    windows = F.unfold(data, weight.shape[2:], dilate, pad, stride)
    rows = windows.transpose(1, 2).flatten(0, 1)
    out = F.linear(rows, weight.flatten(1), bias)
    return out.view(len(data), *sizes, len(weight)).permute(0, 3, 1, 2)


def _channels_last(data: Tensor) -> Tensor:
    if data.shape[1] > 1:
        return data.contiguous(memory_format=LAST)
    # The format of a single channel differs in strides only.
    n, c, h, w = data.shape
    return data.contiguous().as_strided((n, c, h, w), (h * w, 1, w, 1))


@convolution_channels_last.infer_inputs
def convolution_channels_last_inputs(*shapes: tuple | None, **attrs: object) -> dict:
    """Infer weight and bias from the channels of data."""
    return convolution_inputs(*shapes, **{**attrs, "layout": None})


convolution_channels_last.work(convolution_work)
