"""Branches side by side."""

import torch
from torch import Tensor, nn


class Concat(nn.ModuleList):
    """Applies modules to the same input and concatenates their outputs."""

    def __init__(self, *modules: nn.Module, dim: int = 1) -> None:
        super().__init__(modules)
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([module(x) for module in self], dim=self.dim)
