"""A prepared graph is one step of a recorded computation: its inputs get gradients together.

When backward starts from some of the outputs, MXNet gives the others gradients of zero, so a
parameter that only an unused output depends on gets zeros too, and a `Trainer` does not call it
stale. Torch would stop at the unused output and leave that parameter's gradient as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..graph.graph import Graph, topological
from .schedule import Value

INLINE_LIMIT = 2  # MXNet records graphs with so few operators one by one, by default


def has_partial_outputs(graph: Graph, inline_limit: int = INLINE_LIMIT) -> bool:
    """Return whether some output does not depend on all inputs, in a graph that is one step."""
    variables = len(graph.variables)
    if len(graph.heads) < 2 or len(graph.nodes) - variables <= inline_limit:
        return False
    return any(
        sum(node.op is None for node in topological([head])) < variables for head in graph.heads
    )


def join_gradients(heads: Sequence[Value]) -> list[Value]:
    """Return the same values, where a gradient of one is a gradient of all that have any.

    Integers with gradients, which are arrays, stay apart: torch knows no gradients of theirs.
    """
    tracked = [i for i, h in enumerate(heads) if isinstance(h, Tensor) and h.requires_grad]
    if len(tracked) < 2:
        return list(heads)
    joined = list(heads)
    for i, head in zip(tracked, _JoinGradients.apply(*(heads[i] for i in tracked)), strict=True):
        joined[i] = head
    return joined


class _JoinGradients(torch.autograd.Function):
    """Passes values and gradients on; torch fills in zeros for those that are missing."""

    @staticmethod
    def forward(ctx: Any, *heads: Tensor) -> tuple[Tensor, ...]:
        return heads

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        return grads
