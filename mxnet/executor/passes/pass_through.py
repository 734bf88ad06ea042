"""Operators that change nothing in prediction are passed through.

Before: ``y = Dropout(x); z = f(y)``, where Dropout, BlockGrad, identity and make_loss copy.
After: ``z = f(x)``. Outputs of the graph stay copies, because users write into them.
"""

from __future__ import annotations

from ..plan import Call, Plan

UNCHANGED = frozenset({"BlockGrad", "_copy", "make_loss"})


def pass_through(plan: Plan) -> None:
    """Let users of an unchanged value read the value itself."""
    instead: dict[int, int] = {}
    gone: set[Call] = set()
    for call in plan.calls:
        call.inputs = tuple(instead.get(slot, slot) for slot in call.inputs)
        if _changes_nothing(call) and call.first not in plan.shown:
            instead[call.first] = call.inputs[0]
            gone.add(call)
    plan.remove(gone)


def _changes_nothing(call: Call) -> bool:
    name, attrs = call.node.op.name, call.attrs
    if name == "Dropout":
        return attrs["mode"] != "always" and 0.0 <= attrs["p"] <= 1.0
    return name in UNCHANGED
