"""Batch normalization without a trained scale (`fix_gamma`)."""

from typing import TypeVar

from torch import nn

Norm = TypeVar("Norm", nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def fixed_scale(norm: Norm) -> Norm:
    """Fix the scale of a batch normalization to one."""
    nn.init.ones_(norm.weight)
    norm.weight.requires_grad_(False)
    return norm
