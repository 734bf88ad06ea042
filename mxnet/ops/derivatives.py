"""Formulas of derivatives, for graphs whose backward runs as prepared calls.

Torch's autograd differentiates every kernel; building its graph and walking it costs more than the
work itself in small networks. `Op.derivative` adds formulas, one for each input that gets a
gradient. A formula is a function of what it reads: ``grad``, the gradient of the result, ``out``,
the result, and inputs under their names. One that takes ``into`` writes its gradient there and
returns it, unless `into` is None.

The formulas of an operator give what torch gives. Where MXNet's gradient is another one
(`Op.gradient`), there are none.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["Formulas", "of_relu", "of_sigmoid", "of_tanh", "reshaped", "summed_to"]

Formulas = dict[str, Callable[..., Tensor]]

_threshold = torch.ops.aten.threshold_backward.default
_sigmoid = torch.ops.aten.sigmoid_backward.default
_tanh = torch.ops.aten.tanh_backward.default


def of_relu(grad: Tensor, out: Tensor) -> Tensor:
    """Return the gradient where the result is positive."""
    return _threshold(grad, out, 0)


def of_sigmoid(grad: Tensor, out: Tensor) -> Tensor:
    """Return ``grad y (1 - y)``."""
    return _sigmoid(grad, out)


def of_tanh(grad: Tensor, out: Tensor) -> Tensor:
    """Return ``grad (1 - y^2)``."""
    return _tanh(grad, out)


def reshaped(grad: Tensor, data: Tensor) -> Tensor:
    """Return the gradient in the shape of the data."""
    return grad.reshape(data.shape)


def summed_to(grad: Tensor, like: Tensor) -> Tensor:
    """Return a gradient summed over the axes along which an operand was broadcast."""
    return grad if grad.shape == like.shape else grad.sum_to_size(like.shape)
