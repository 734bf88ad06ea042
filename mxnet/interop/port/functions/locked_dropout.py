"""Dropout with one mask along an axis (`axes`)."""

import torch.nn.functional as F
from torch import Tensor, nn


class LockedDropout(nn.Dropout):
    """Dropout with one mask for all positions along some axes."""

    def __init__(self, p: float = 0.5, dim: tuple[int, ...] = (0,)) -> None:
        super().__init__(p)
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        shape = [1 if i in self.dim else n for i, n in enumerate(input.shape)]
        return input * F.dropout(input.new_ones(shape), self.p, self.training)
