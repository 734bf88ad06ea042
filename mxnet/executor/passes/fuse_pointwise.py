"""What is done to each number of a convolution's result is done while it is computed.

Before: ``y = relu(Convolution(x, w) + shortcut)`` writes and reads the result three times.
After: oneDNN adds the shortcut and cuts at zero before it stores a number. Activations: relu,
sigmoid, tanh, clip and leaky relu; behind an addition only relu. Where values come in that may not
be finite, the convolution looks at them first (see `PreparedConvolution`).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..plan import ABSENT, Call, Plan
from ..prepared_convolution import Pointwise, PreparedConvolution

ADDITIONS = frozenset({"broadcast_add", "elemwise_add"})


def fuse_pointwise(plan: Plan) -> None:
    """Let prepared convolutions add what is added to them, then apply their activation."""
    _absorb(plan, _addition)
    _absorb(plan, _activation)
    _watch(plan)


def _absorb(plan: Plan, match: Callable[[Call, Call], bool]) -> None:
    """Move matching calls into the convolution before them, which then runs in their place."""
    gone: set[Call] = set()
    for call in plan.calls:
        if not isinstance(call.kernel, PreparedConvolution) or call in gone:
            continue
        follower = plan.sole_user(call.first)
        if follower is None or not match(call, follower):
            continue
        gone.add(call)
        follower.kernel, follower.node, follower.attrs = call.kernel, call.node, {}
    plan.remove(gone)


def _addition(call: Call, follower: Call) -> bool:
    if follower.node.op.name not in ADDITIONS or isinstance(follower.kernel, PreparedConvolution):
        return False
    if "sum" in call.kernel.steps:  # a sum of three: the second addition stays
        return False
    left, right = follower.inputs
    other = right if left == call.first else left
    call.kernel.add(follower.kernel, follower.attrs, first=left == call.first)
    follower.inputs = (call.inputs[0], other, *call.inputs[2:])
    return True


def _activation(call: Call, follower: Call) -> bool:
    pointwise = _pointwise(follower)
    if pointwise is None or "activation" in call.kernel.steps:
        return False
    if "sum" in call.kernel.steps and pointwise.name != "relu":
        return False
    call.kernel.activate(pointwise, follower.kernel, follower.attrs)
    follower.inputs = call.inputs
    return True


# Operators without numbers of their own, whose results are finite if their inputs are.
HARMLESS = frozenset({"Activation", "Concat", "Flatten", "Pooling", "relu", "clip", *ADDITIONS})


def _watch(plan: Plan) -> None:
    """Let convolutions look at inputs that neither they nor harmless operators have made."""
    finite: set[int] = {ABSENT}
    for call in plan.calls:
        kernel = call.kernel
        if isinstance(kernel, PreparedConvolution):
            kernel.watches_data = call.inputs[0] not in finite
            kernel.watches_other = call.inputs[1] not in finite
            finite.add(call.first)
        elif call.node.op.name in HARMLESS and finite.issuperset(call.inputs):
            finite.add(call.first)


SIMPLE = {
    "relu": Pointwise("relu", torch.relu_),
    "sigmoid": Pointwise("sigmoid", torch.sigmoid_),
    "tanh": Pointwise("tanh", torch.tanh_),
}


def _pointwise(call: Call) -> Pointwise | None:
    """Return what oneDNN and torch call an activation."""
    name, attrs = call.node.op.name, call.attrs
    if isinstance(call.kernel, PreparedConvolution):
        return None
    if name == "Activation":
        return SIMPLE.get(attrs["act_type"])
    if name == "clip":
        low, high = attrs["a_min"], attrs["a_max"]

        def clip(x: Tensor) -> Tensor:
            return x.clamp_(low, high)

        return Pointwise("hardtanh", clip, (low, high))
    if name == "LeakyReLU" and attrs["act_type"] == "leaky":
        slope = attrs["slope"]

        def leaky(x: Tensor) -> Tensor:
            return torch._C._nn.leaky_relu_(x, slope)

        return Pointwise("leaky_relu", leaky, (slope,))
    return SIMPLE.get(name)
