"""The functions of each element that fused operators apply to their results."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..families import torch_nn
from ..tensor.elementwise import clip

NONE = "none"
Function = Callable[[Tensor], Tensor]

# By name: the function as its own operator computes it, and the form that writes over its input;
# both take the constants.
PLAIN: dict[str, Callable[..., Tensor]] = {
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "clip": lambda x, low, high: clip.function(x, a_min=low, a_max=high),
    "leaky": lambda x, slope: torch_nn.leaky_relu(x, slope),
}
IN_PLACE: dict[str, Callable[..., Tensor]] = {
    "relu": torch.relu_,
    "sigmoid": torch.sigmoid_,
    "tanh": torch.tanh_,
    "clip": lambda x, low, high: x.clamp_(low, high),
    "leaky": lambda x, slope: torch_nn.leaky_relu_(x, slope),
}
# What oneDNN calls them.
ONEDNN = {
    "none": "none",
    "relu": "relu",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "clip": "hardtanh",
    "leaky": "leaky_relu",
}


def bind_epilogue(
    table: dict[str, Callable[..., Tensor]], name: str, constants: tuple[float, ...]
) -> Function | None:
    """Return a function of one tensor, None for no epilogue."""
    if name == NONE:
        return None
    function = table[name]
    return (lambda x: function(x, *constants)) if constants else function
