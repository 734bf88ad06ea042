"""oneDNN kernels of 8-bit layers, with weights packed once.

For signed data (``zero == 128``) oneDNN computes a correction in each call. Without padding that
correction is constant and added to the bias instead. Weights that would overflow on this processor
use float32 kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...ops.fused.prepared_values import Unchanged
from ...ops.nn.convolution import CONVOLUTIONS
from ...ops.quantization.int8 import (
    Weights,
    convolution_weights,
    dense_weights,
    int8_convolution,
    int8_dense,
    pack,
)
from ...torch_private import Int8Kernels, int8_kernels

Run = Callable[[Tensor, Tensor | None], Tensor]
MaybeTensor = Tensor | None
MAX_SHAPES = 4  # packed weights depend on the shape of data
CHANNELS_LAST = torch.channels_last


class _Prepared:
    """The specialized kernel of a node; subclasses pack and compute."""

    _plain: Callable[..., Tensor]
    _read: Callable[..., Weights]

    def __init__(self, attrs: dict[str, Any]) -> None:
        self._attrs = attrs
        self._step, self._zero = attrs["data_step"], attrs["data_zero"]
        is_float = attrs["out_type"] == "float32"
        self._dtype = torch.float32 if is_float else torch.uint8
        self._out = (1.0, 0) if is_float else (attrs["out_step"], attrs["out_zero"])
        # Numbers below an unsigned range saturate at zero.
        self._activation = "relu" if attrs["relu"] and (is_float or attrs["out_zero"]) else "none"
        self._source: Unchanged | None = None  # the parameters that were packed
        self._ready: dict[torch.Size, Run] = {}

    def run(self, data: Tensor, parameters: tuple[MaybeTensor, ...], other: MaybeTensor) -> Tensor:
        """Return the layer's result; parameters are packed again if they have changed."""
        if self._source is None or not self._source.holds_for(parameters):
            self._ready = {}  # a new array: another thread may use the old one
            self._source = Unchanged.of(parameters)
        ready = self._ready
        run = ready.get(data.shape)
        if run is None:
            run = None if self._source is None else self._choose(data, parameters)
            if run is None:
                return self._plain(data, *parameters, *self._others(other), **self._attrs)
            if len(ready) >= MAX_SHAPES:
                ready.clear()
            ready[data.shape] = run
        return run(data, other)

    def _choose(self, data: Tensor, parameters: tuple[MaybeTensor, ...]) -> Run | None:
        kernels = int8_kernels()
        if kernels is None or data.device.type != "cpu" or data.dtype is not torch.uint8:
            return None
        weights = self._read(*parameters, **self._attrs)
        if not data.numel() or not self._fits(data, weights):
            return None
        if not weights.are_exact:
            return self._by_floats(weights)
        return self._by_onednn(kernels, data, weights)

    def _shifted_bias(self, weights: Weights) -> Tensor:
        """Return the bias for data with zero point 0."""
        shift = weights.sums() * -(self._zero * self._step)
        return shift if weights.bias is None else weights.bias + shift

    def _finish(self, out: Tensor) -> Tensor:
        """Apply the activation to real numbers, and quantize them if the result has 8 bits."""
        out = out.relu_() if self._attrs["relu"] else out
        return out if self._dtype is torch.float32 else pack(out, *self._out)

    def _others(self, other: MaybeTensor) -> tuple[MaybeTensor, ...]:
        return ()

    def _fits(self, data: Tensor, weights: Weights) -> bool:
        raise NotImplementedError

    def _by_onednn(self, kernels: Int8Kernels, data: Tensor, weights: Weights) -> Run | None:
        raise NotImplementedError

    def _by_floats(self, weights: Weights) -> Run | None:
        raise NotImplementedError


class PreparedConvolution(_Prepared):
    """The specialized kernel of `_fused_int8_convolution`."""

    _plain = staticmethod(int8_convolution.function)
    _read = staticmethod(convolution_weights)

    def __init__(self, attrs: dict[str, Any]) -> None:
        super().__init__(attrs)
        self._stride = list(attrs["stride"] or (1, 1))
        self._pad = list(attrs["pad"] or (0, 0))
        self._dilate = list(attrs["dilate"] or (1, 1))
        self._groups = attrs["num_group"]

    def __call__(self, data: Tensor, *inputs: MaybeTensor) -> Tensor:
        """Return the 8-bit or float result."""
        return self.run(data, inputs[:-1], inputs[-1])

    def _others(self, other: MaybeTensor) -> tuple[MaybeTensor, ...]:
        return (other,)

    def _fits(self, data: Tensor, weights: Weights) -> bool:
        shape = (self._attrs["num_filter"], data.shape[1] // self._groups, *self._attrs["kernel"])
        return data.ndim == 4 and weights.integers.shape == shape

    def _by_onednn(self, kernels: Int8Kernels, data: Tensor, weights: Weights) -> Run | None:
        windows = (self._stride, self._pad, self._dilate, self._groups)
        zero, bias, steps = self._zero, weights.bias, weights.steps
        if zero and not any(self._pad):
            zero, bias = 0, self._shifted_bias(weights)
        packed = kernels.pack_convolution(
            weights.integers, steps, self._step, zero, *windows, list(data.shape)
        )
        zeros = torch.zeros(len(steps), dtype=torch.int32)
        layer = (self._step, zero, packed, steps, zeros)
        end = (*windows, *self._out, self._dtype)
        if not self._attrs["adds"]:
            last = (self._activation, [], "")
            convolve = kernels.convolve
            return lambda data, other: convolve(_channels_last(data), *layer, bias, *end, *last)
        if self._dtype is not torch.uint8:
            return self._by_floats(weights)
        owns, relu = self._attrs["owns_other"], self._activation
        sum_of = (self._attrs["other_step"], self._attrs["other_zero"], "sum", 1.0)
        last = (None if relu == "none" else relu, [], None)

        def run(data: Tensor, other: Tensor | None) -> Tensor:
            assert other is not None
            # oneDNN writes the sum into the added array.
            other = _channels_last(other) if owns else other.clone(memory_format=CHANNELS_LAST)
            data = _channels_last(data)
            return kernels.convolve_and_add(data, *layer, other, bias, *end, *sum_of, *last)

        return run

    def _by_floats(self, weights: Weights) -> Run:
        attrs = self._attrs
        real = _channels_last(weights.real() * self._step)
        windows = (self._stride, self._pad, self._dilate, self._groups)

        def run(data: Tensor, other: Tensor | None) -> Tensor:
            data = data.float()
            out = CONVOLUTIONS[2](data.sub_(self._zero) if self._zero else data, real,
                                  weights.bias, *windows)  # fmt: skip
            if other is not None:
                out += (other.float() - attrs["other_zero"]) * attrs["other_step"]
            return self._finish(out)

        return run


class PreparedDense(_Prepared):
    """The specialized kernel of `_fused_int8_dense`."""

    _plain = staticmethod(int8_dense.function)
    _read = staticmethod(dense_weights)

    def __call__(self, data: Tensor, *inputs: MaybeTensor) -> Tensor:
        """Return the 8-bit or float result."""
        return self.run(data, inputs, None)

    def _fits(self, data: Tensor, weights: Weights) -> bool:
        if data.ndim < 2:
            return False
        width = data[0].numel() if self._attrs["flatten"] else data.shape[-1]
        return weights.integers.shape == (self._attrs["num_hidden"], width)

    def _by_onednn(self, kernels: Int8Kernels, data: Tensor, weights: Weights) -> Run:
        packed = kernels.pack_dense(weights.integers, None)
        bias = self._shifted_bias(weights) if self._zero else weights.bias
        zeros = torch.zeros(len(weights.steps), dtype=torch.int32)
        layer = (self._step, 0, packed, weights.steps, zeros, bias, *self._out, self._dtype)
        last, flatten = (self._activation, [], ""), self._attrs["flatten"]

        def run(data: Tensor, other: Tensor | None) -> Tensor:
            data = data.flatten(1) if flatten else data
            return kernels.transform(data.contiguous(), *layer, *last)

        return run

    def _by_floats(self, weights: Weights) -> Run:
        real, flatten = weights.real() * self._step, self._attrs["flatten"]

        def run(data: Tensor, other: Tensor | None) -> Tensor:
            data = (data.flatten(1) if flatten else data).float()
            data = data.sub_(self._zero) if self._zero else data
            return self._finish(torch.nn.functional.linear(data, real, weights.bias))

        return run


def _channels_last(data: Tensor) -> Tensor:
    return data.contiguous(memory_format=CHANNELS_LAST)


@int8_convolution.variant("node")
def prepare_convolution(attrs: dict, differentiable: bool) -> Callable | None:
    """Return a kernel with packed weights."""
    return None if differentiable else PreparedConvolution(attrs)


@int8_dense.variant("node")
def prepare_dense(attrs: dict, differentiable: bool) -> Callable | None:
    """Return a kernel with packed weights."""
    return None if differentiable else PreparedDense(attrs)
