"""Elementwise steps write over values that nobody else reads.

Before: ``h = FullyConnected(x, ..); y = relu(h)`` makes two arrays.
After: ``y`` takes the memory of ``h``. This is done only in prediction, and only where ``h`` is
the new array of an operator that never returns a part of its input.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ...ops.nn.activation import ACTIVATIONS
from ..plan import Call, Plan

# Operators whose result is always memory of its own.
FRESH = frozenset(
    {
        *("BatchNorm", "BatchNorm_v1", "Convolution", "Deconvolution", "FullyConnected"),
        *("batch_dot", "broadcast_add", "broadcast_mul", "broadcast_sub", "elemwise_add"),
        *("elemwise_mul", "elemwise_sub", "LayerNorm"),
    }
)
IN_PLACE: dict[Callable, Callable[[Tensor], Tensor]] = {
    torch.relu: torch.relu_,
    torch.sigmoid: torch.sigmoid_,
    torch.tanh: torch.tanh_,
}
NAMED = {"relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh}


def in_place(plan: Plan) -> None:
    """Let activations write into their input where it is theirs alone."""
    for call in plan.calls:
        kernel = IN_PLACE.get(_activation(call))
        if kernel is None:
            continue
        maker = plan.makers.get(call.inputs[0])
        if maker is None or maker.node.op.name not in FRESH or maker.count != 1:
            continue
        if plan.sole_user(call.inputs[0]) is call:
            call.kernel, call.attrs = _floating(kernel, call), {}


def _activation(call: Call) -> Callable | None:
    if call.node.op.name == "Activation":
        return ACTIVATIONS[call.attrs["act_type"]]
    return NAMED.get(call.node.op.name)


def _floating(kernel: Callable[[Tensor], Tensor], call: Call) -> Callable[[Tensor], Tensor]:
    """Return the kernel for floating-point data; other types go the general way."""
    general, attrs = call.kernel, call.attrs

    def run(data: Tensor) -> Tensor:
        return kernel(data) if data.dtype.is_floating_point else general(data, **attrs)

    return run
