"""Recurrent layers take their weights as they are.

Before: a Gluon layer's graph flattens all weights, joins them to the one vector that MXNet's
operator `RNN` wants, and the operator takes the vector apart again, on every call.
After: the operator gets the weights themselves. Gradients flow straight to them as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...ops.nn.recurrent import unpacked
from ..plan import Call, Plan

JOINING = frozenset({"Concat", "_rnn_param_concat"})


def unpack_rnn(plan: Plan) -> None:
    """Give weights to recurrent operators without packing them."""
    gone: set[Call] = set()
    for call in plan.calls:
        if call.node.op.name != "RNN":
            continue
        joining = plan.makers.get(call.inputs[1])
        if joining is None or joining.node.op.name not in JOINING:
            continue
        if plan.sole_user(joining.first) is not call or not _joins_vectors(joining, plan):
            continue
        flat = [plan.makers[slot] for slot in joining.inputs]
        data, _, *states = call.inputs
        call.kernel = _on_weights(call.kernel, len(states))
        call.inputs = (data, *states, *(f.inputs[0] for f in flat))
        gone.add(joining)
        gone.update(f for f in flat if plan.sole_user(f.first) is joining)
    plan.remove(gone)


def _joins_vectors(joining: Call, plan: Plan) -> bool:
    makers = [plan.makers.get(slot) for slot in joining.inputs]
    return joining.attrs["dim"] == 0 and all(
        m is not None and m.node.op.name == "Reshape" and m.attrs["shape"] == (-1,) for m in makers
    )


def _on_weights(rnn: Callable, states: int) -> Callable:
    """Return the operator as a function of data, states and separate weights."""

    def run(data: Tensor, *rest: Tensor | None, **attrs: Any) -> Any:
        packed = rest[states:]
        weights = unpacked(packed, data.shape[-1], attrs)
        if weights is None:  # another order of sizes than Gluon's, or a mistake
            weights = torch.cat([w.reshape(-1) for w in packed])
        return rnn(data, weights, *rest[:states], **attrs)

    return run
