"""The weights of an 8-bit layer: integers, a step for each filter, and a bias in real numbers."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ...quantization.conversions import range_step

EIGHT_BITS, SEVEN_BITS = 127.0, 63.0
# Processors without VNNI add two products in 16 bits, which cannot overflow with 7-bit weights.
_is_vnni_supported = getattr(torch.cpu, "_is_vnni_supported", lambda: False)  # before torch 2.6
HAS_VNNI = bool(_is_vnni_supported())
WEIGHT_STEPS = EIGHT_BITS if HAS_VNNI else SEVEN_BITS
LARGEST_EXACT = 128 if HAS_VNNI else 64


class Weights(NamedTuple):
    """What a layer computes with."""

    integers: Tensor
    steps: Tensor
    bias: Tensor | None

    @property
    def are_exact(self) -> bool:
        """Whether oneDNN's sums cannot overflow on this processor."""
        return bool(self.integers.short().abs().amax() <= LARGEST_EXACT)

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
    """Return weights that are integers already, with a range for all or for each filter."""
    steps = range_step(weight, min_weight, max_weight).expand(weight.shape[0]).contiguous()
    if bias is None:
        return Weights(weight, steps, None)
    assert min_bias is not None and max_bias is not None
    return Weights(weight, steps, (bias.double() * range_step(bias, min_bias, max_bias)).float())


def quantized_weights(weight: Tensor, bias: Tensor | None, channel_wise: bool = True) -> Weights:
    """Quantize float weights, each filter by its own range or all by one."""
    largest = weight.abs().flatten(1).amax(1)
    if not channel_wise:
        largest = largest.amax().expand_as(largest)
    steps = torch.where(largest > 0, largest / WEIGHT_STEPS, 1.0).contiguous()
    scaled = weight / steps.reshape(-1, *(1,) * (weight.ndim - 1))
    return Weights(scaled.round_().to(torch.int8), steps, bias)


def folded_weights(
    weight: Tensor,
    bias: Tensor | None,
    gamma: Tensor | None,
    beta: Tensor,
    mean: Tensor,
    var: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """Return weight and bias of the convolution that normalizes as well."""
    scale = (var + eps).rsqrt()
    if gamma is not None:
        scale = scale * gamma
    shifted = -mean if bias is None else bias - mean
    return weight * scale.reshape(-1, *(1,) * (weight.ndim - 1)), shifted * scale + beta
