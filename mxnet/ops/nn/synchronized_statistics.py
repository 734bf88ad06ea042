"""Normalization by the statistics of all workers; a job sets the function that sums tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# Sums a tensor in place over all workers; None if this process is not part of a job.
sum_in_place: Callable[[Tensor], Tensor] | None = None


class _Sum(torch.autograd.Function):
    """Sum over workers; its gradient is the sum of all workers' gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        assert sum_in_place is not None
        return sum_in_place(x.clone())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        assert sum_in_place is not None
        (grad,) = grads
        return sum_in_place(grad.clone())


def normalize(
    data: Tensor, gamma: Tensor, beta: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return data normalized by channel over all workers, and the mean and variance used.

    The mean is computed first, then the variance, because batch sizes may differ between workers.
    """
    dims = [d for d in range(data.ndim) if d != 1]
    shape = [1, -1] + [1] * (data.ndim - 2)
    count = data.numel() // data.shape[1]
    sums = _Sum.apply(torch.cat([data.sum(dims), data.new_tensor([count])]))
    mean, total = sums[:-1] / sums[-1], sums[-1].detach()
    centered = data - mean.view(shape)
    variance = _Sum.apply(centered.square().sum(dims)) / total
    scale = (variance + eps).rsqrt() * gamma
    out = centered * scale.view(shape) + beta.view(shape)
    return out, mean.detach(), variance.detach()
