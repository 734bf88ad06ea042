"""`GroupNorm` with one scale for each group."""

import torch.nn.functional as F
from torch import Tensor


def group_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Normalize groups of channels, each with its own scale and shift."""
    groups, size = len(weight), x.shape[1] // len(weight)
    scales = [t.repeat_interleave(size) for t in (weight, bias)]
    return F.group_norm(x, groups, *scales, eps=eps)
