"""Batch normalization by the running statistics alone (`use_global_stats`)."""

from torch import nn


class FrozenBatchNorm1d(nn.BatchNorm1d):
    """Normalizes by the running statistics, in training too."""

    def train(self, mode: bool = True) -> "FrozenBatchNorm1d":
        return super().train(False)


class FrozenBatchNorm2d(nn.BatchNorm2d):
    """Normalizes by the running statistics, in training too."""

    def train(self, mode: bool = True) -> "FrozenBatchNorm2d":
        return super().train(False)


class FrozenBatchNorm3d(nn.BatchNorm3d):
    """Normalizes by the running statistics, in training too."""

    def train(self, mode: bool = True) -> "FrozenBatchNorm3d":
        return super().train(False)
