"""Batch normalization with only the running statistics (`use_global_stats`)."""

import torch.nn.functional as F
from torch import Tensor, nn


class FrozenBatchNorm1d(nn.BatchNorm1d):
    """Normalizes by the running statistics, in training too."""

    def forward(self, input: Tensor) -> Tensor:
        mean, var = self.running_mean, self.running_var
        return F.batch_norm(input, mean, var, self.weight, self.bias, eps=self.eps)


class FrozenBatchNorm2d(nn.BatchNorm2d):
    """Normalizes by the running statistics, in training too."""

    def forward(self, input: Tensor) -> Tensor:
        mean, var = self.running_mean, self.running_var
        return F.batch_norm(input, mean, var, self.weight, self.bias, eps=self.eps)


class FrozenBatchNorm3d(nn.BatchNorm3d):
    """Normalizes by the running statistics, in training too."""

    def forward(self, input: Tensor) -> Tensor:
        mean, var = self.running_mean, self.running_var
        return F.batch_norm(input, mean, var, self.weight, self.bias, eps=self.eps)
