"""A BatchNorm behind a convolution becomes a part of its weights.

Before: ``y = BatchNorm(Convolution(x, w, b), gamma, beta, mean, var)`` in prediction.
After: one convolution with ``w * s`` and ``(b - mean) * s + beta``, where ``s`` is
``gamma / sqrt(var + eps)``: normalizing costs nothing. The products are kept until one of the six
arrays changes.
"""

from __future__ import annotations

from ..plan import Call, Plan
from ..prepared_convolution import PreparedConvolution

FOLDABLE = frozenset({"BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm"})


def fold_batch_norm(plan: Plan) -> None:
    """Fold normalizations whose parameters are inputs of the graph into prepared convolutions."""
    gone: set[Call] = set()
    for call in plan.calls:
        if not isinstance(call.kernel, PreparedConvolution) or "norm" in call.kernel.steps:
            continue
        follower = plan.sole_user(call.first)
        if follower is None or not _foldable(follower, plan) or follower.inputs[0] != call.first:
            continue
        call.kernel.fold(follower.kernel, follower.attrs)
        follower.kernel, follower.node, follower.attrs = call.kernel, call.node, {}
        follower.inputs = (*call.inputs[:4], *follower.inputs[1:])
        gone.add(call)
    plan.remove(gone)


def _foldable(call: Call, plan: Plan) -> bool:
    if call.node.op.name not in FOLDABLE or call.count != 1 or call.attrs.get("axis", 1) != 1:
        return False
    return all(plan.is_variable(slot) for slot in call.inputs[1:])
