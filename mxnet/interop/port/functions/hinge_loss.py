"""The loss of `SVMOutput`."""

import torch.nn.functional as F
from torch import Tensor


def hinge_loss(
    scores: Tensor, label: Tensor, margin: float = 1.0, squared: bool = True
) -> Tensor:
    """Return how far scores miss the margin: up for the class, down for others."""
    sign = 2 * F.one_hot(label.long(), scores.shape[1]) - 1
    losses = F.relu(margin - sign * scores)
    return losses.square().sum() if squared else losses.sum()
