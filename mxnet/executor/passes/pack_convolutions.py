"""Convolutions keep their weights in the form that oneDNN computes with.

Before: every call of `Convolution` brings its weight into oneDNN's blocked order again.
After: the call is a `PreparedConvolution`, which does that once and again when the weight has
changed; its results lie with channels last, and so do those of everything that follows. The next
passes let it also do what comes after it.
"""

from __future__ import annotations

from ...ops.nn.layouts import CHANNELS_LAST
from ..plan import ABSENT, Plan
from ..prepared_convolution import PreparedConvolution


def pack_convolutions(plan: Plan) -> None:
    """Prepare the convolutions whose weights are inputs of the graph."""
    for call in plan.calls:
        if call.node.op.name != "Convolution" or call.attrs["layout"] in CHANNELS_LAST:
            continue
        data, weight, bias = call.inputs
        if not plan.is_variable(weight) or not (bias == ABSENT or plan.is_variable(bias)):
            continue
        call.kernel = PreparedConvolution(call.kernel, call.attrs)
        call.inputs = (data, ABSENT, weight, bias, ABSENT, ABSENT, ABSENT, ABSENT)
        call.attrs = {}
        plan.rearranged = True
    plan.index()
