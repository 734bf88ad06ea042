"""Training convolutions compute with channels last where that pays.

Before: oneDNN brings the data of every convolution into its own order and the result back.
After: data and weight of a convolution are laid out with channels last; what follows keeps that
order, so that only the first layer's data is copied. Weights stay as they are outside: their
copy is made on every call, so a convolution with large weights on little data goes the old way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...ops.nn.layouts import CHANNELS_LAST
from ..plan import Plan

LAST = torch.channels_last
LEAST_RATIO = 2  # of numbers in data to numbers in weights


def channels_last(plan: Plan) -> None:
    """Lay out the data and weights of 2-d convolutions with channels last."""
    for call in plan.calls:
        attrs = call.attrs
        if call.node.op.name != "Convolution" or attrs["layout"] in CHANNELS_LAST:
            continue
        if len(attrs["kernel"]) == 2:
            call.kernel = _laid_out(call.kernel)
            plan.rearranged = True


def _laid_out(convolution: Callable) -> Callable:
    def run(data: Tensor, weight: Tensor, bias: Tensor | None, **attrs: Any) -> Tensor:
        if data.ndim == 4 and weight.ndim == 4:
            if data.numel() >= LEAST_RATIO * weight.numel():
                data, weight = _channels_last(data), weight.contiguous(memory_format=LAST)
            else:
                data = data.contiguous()
        return convolution(data, weight, bias, **attrs)

    return run


def _channels_last(data: Tensor) -> Tensor:
    if data.shape[1] > 1:
        return data.contiguous(memory_format=LAST)
    # Strides alone tell torch the order of a single channel.
    n, c, h, w = data.shape
    return data.contiguous().as_strided((n, c, h, w), (h * w, 1, w, 1))
