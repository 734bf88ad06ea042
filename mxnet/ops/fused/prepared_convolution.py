"""A convolution in prediction with all that follows it, on weights prepared once.

The work is done in one of three ways, chosen for each shape of data: by oneDNN with packed weights
and fused steps, by torch's convolution on folded weights (small data, other types), or, when
something does not fit together, by the original operators, which then say what is wrong.

oneDNN's relu and clip turn NaN into a number. A graph must not hide it: weights that are not
finite raise `Fallback`, and so does data, which is checked where it enters a chain of convolutions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..nn.convolution import CONVOLUTIONS
from .epilogues import IN_PLACE, NONE, ONEDNN, bind_epilogue
from .fallback import require_finite
from .unchanged import Unchanged

# Torch computes a convolution of fewer multiplications than this as one product of matrices, at
# half the cost of a call of oneDNN. Grouped convolutions are faster packed, however small.
LEAST_WORK = 600_000
SHAPES_KEPT = 4  # packed weights depend on the shape of data
MAX_CHANGES = 16  # weights that changed so often in a row are not worth preparing

try:
    _fused = torch.ops.mkldnn._convolution_pointwise.default
    _fused_with_sum = torch.ops.mkldnn._convolution_pointwise.binary
    _pack = torch.ops.mkldnn._reorder_convolution_weight.default
    CAN_PACK = torch.backends.mkldnn.is_available()
except (AttributeError, RuntimeError):  # a torch without oneDNN
    CAN_PACK = False


Run = Callable[[Tensor, Tensor | None], Tensor]
MaybeTensor = Tensor | None
# weight, bias, gamma, beta, mean, var
Parameters = tuple[Tensor, MaybeTensor, MaybeTensor, MaybeTensor, MaybeTensor, MaybeTensor]


class _Weights:
    """The arrays that results were prepared from, and how data is computed by its shape."""

    __slots__ = ("are_current", "dtype", "folded", "parameters", "ready")

    def __init__(
        self, parameters: Parameters, source: Unchanged, dtype: torch.dtype | None
    ) -> None:
        self.parameters, self.are_current = parameters, source.holds_for
        self.dtype = dtype  # None: these cannot be folded
        self.folded: tuple[Tensor, Tensor | None] | None = None  # kept when shapes are too many
        self.ready: dict[torch.Size, Run | None] = {}


class PreparedConvolution:
    """The specialized kernel of `_fused_convolution` at one node.

    It takes the operator's inputs, None where they are absent.
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
        self._changes = 0  # of weights, without a call that could use them again

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
        """Return the result of the convolution and of all that was fused into it."""
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
        """Return the type of parameters that fit together, None if they do not."""
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
        """Return weight and bias of the convolution that normalizes as well."""
        weight, bias, gamma, beta, mean, var = parameters
        if self._attrs["normalized"]:
            attrs = self._attrs
            assert beta is not None and mean is not None and var is not None
            scale = (var + attrs["eps"]).rsqrt_()
            if not attrs["fix_gamma"]:
                scale *= gamma
            weight = weight * scale.reshape(-1, *(1,) * (weight.ndim - 1))
            bias = beta - mean * scale if bias is None else (bias - mean) * scale + beta
        require_finite(weight)
        if bias is not None:
            require_finite(bias)
        return weight, bias

    # -- choosing a way -----------------------------------------------------------------------

    def _choose(self, data: Tensor, weights: _Weights) -> Run | None:
        """Return how data of this shape is computed, None for the original operators."""
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
        if len(weights.ready) >= SHAPES_KEPT:
            weights.folded = weights.folded or self._fold(weights.parameters)
            return self._by_torch(*weights.folded, weights, out)
        folded = self._fold(weights.parameters)
        if self._worth_packing(data, weight, out):
            run = self._by_onednn(*folded, weights, out, shape)
        else:
            run = self._by_torch(*folded, weights, out)
        weights.ready[shape] = run
        return run

    def _worth_packing(self, data: Tensor, weight: Tensor, out: torch.Size) -> bool:
        if not CAN_PACK or len(self._kernel) != 2:
            return False
        if data.dtype is not torch.float32 or data.device.type != "cpu":
            return False
        if self._adds and out[2:].numel() == 1:  # torch 2.8 fails on these
            return False
        return self._groups > 1 or out.numel() * math.prod(weight.shape[1:]) >= LEAST_WORK

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
        place = (self._pad, self._stride, self._dilate, self._groups)
        packed = _pack(weight, *place, list(shape))
        name, constants = ONEDNN[self._attrs["epilogue"]], list(self._attrs["constants"])
        after_sum = None if name == NONE else name

        def run(data: Tensor, other: Tensor | None) -> Tensor:
            if other is None:
                return _fused(data, packed, bias, *place, name, constants, "")
            if other.shape != out_shape or other.dtype is not data.dtype:
                return self._run_plain(data, other, weights.parameters)
            return _fused_with_sum(data, other, packed, bias, *place, "add", 1.0, after_sum, [], "")

        return run
