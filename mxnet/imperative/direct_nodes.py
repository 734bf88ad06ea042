"""Recorded runs of whole graphs: one node each, and backward through chains of them.

Torch's engine calls such a node like any other. If backward meets nothing but these nodes on its
way to arrays with gradients, as in a network and its loss, they run without the engine, which
takes longer than a small network's products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from .state import BackwardRun, state

if TYPE_CHECKING:
    from ..ndarray.ndarray import NDArray
    from .gradient import Gradient

__all__ = ["Differentiable", "record_run", "run_chain"]

_version = Tensor._version.__get__  # type: ignore[attr-defined]
_FREED = "Trying to backward through a recorded graph a second time."
_CHANGED = "An input has been modified by an inplace operation."


class Differentiable(Protocol):
    """What runs a graph forward, and its gradients backward."""

    def forward(self, feed: Sequence[Tensor]) -> tuple[Tensor, Sequence[Tensor]]:
        """Return the result, and what backward needs: the inputs first."""
        ...

    def gradients(
        self,
        grad: Tensor,
        saved: Sequence[Tensor],
        wanted: tuple[bool, ...],
        into: Sequence[Tensor | None],
    ) -> list[Tensor | None]:
        """Return gradients of the inputs, computed into given memory where possible."""
        ...

    def recorded_gradients(
        self, grad: Tensor, feed: Sequence[Tensor], wanted: tuple[bool, ...]
    ) -> list[Tensor | None]:
        """Return gradients that can be differentiated again."""
        ...


def record_run(graph: Differentiable, feed: Sequence[Tensor], args: Sequence[NDArray]) -> Tensor:
    """Run a graph on the tensors of arrays, as one node of the recorded graph."""
    return _apply(graph, args, *feed)


class _Node(torch.autograd.Function):
    """A recorded run.

    It keeps tensors itself, which takes less time than torch's `save_for_backward`.
    """

    @staticmethod
    def forward(ctx: Any, graph: Differentiable, args: Sequence[NDArray], *feed: Tensor) -> Tensor:
        head, saved = graph.forward(feed)
        ctx.graph, ctx.saved, ctx.is_freed = graph, saved, False
        ctx.versions = list(map(_version, saved))
        ctx.wanted = ctx.needs_input_grad[2:]
        _find_targets(ctx, args, feed)
        return head

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:  # type: ignore[override]
        if torch.is_grad_enabled():  # create_graph
            feed = _saved(ctx)[: len(ctx.wanted)]
            return None, None, *ctx.graph.recorded_gradients(grad, feed, ctx.wanted)
        run = state.backward_run
        stored = ctx.leaves if run is not None and run.stores else ()
        return None, None, *_gradients(ctx, grad, [s for s in stored if _is_alone(*s)], run)


# Past what `Function.apply` does for functorch, whose transforms never come here.
_apply = super(torch.autograd.Function, _Node).apply  # type: ignore[misc]


def _find_targets(ctx: Any, args: Sequence[NDArray], feed: Sequence[Tensor]) -> None:
    """Note where gradients go: to arrays that have some, and to one node below at most."""
    leaves, below = [], []
    for i, is_wanted in enumerate(ctx.wanted):
        if not is_wanted:
            continue
        array = args[i]
        record = array._grad
        if array._session is None and record is not None and record.is_direct:
            leaves.append((i, record, feed[i]))
        else:
            below.append(i)
    ctx.leaves = leaves
    ctx.below_at, ctx.below = (below[0], feed[below[0]].grad_fn) if below else (-1, None)
    ctx.is_chain = not below or (len(below) == 1 and ctx.below is not None)


def _is_alone(place: int, record: Gradient, leaf: Tensor) -> bool:
    """Return whether nothing but the record watches what a leaf gets."""
    return len(leaf._post_accumulate_grad_hooks) == 1  # type: ignore[attr-defined]


def _saved(ctx: Any) -> Sequence[Tensor]:
    if ctx.is_freed:
        raise RuntimeError(_FREED)
    if list(map(_version, ctx.saved)) != ctx.versions:
        raise RuntimeError(_CHANGED)
    return ctx.saved


def _gradients(
    ctx: Any, grad: Tensor, stored: Sequence[tuple], run: BackwardRun | None
) -> list[Tensor | None]:
    """Return gradients of a node's inputs; None for those that went to their arrays."""
    saved = _saved(ctx)
    into: list[Tensor | None] = [None] * len(ctx.wanted)
    taken = set(map(id, saved))  # an input is not written while it is read
    for i, record, _ in stored:
        place = record.place(run)
        if id(place) not in taken:  # an array may be two inputs
            taken.add(id(place))
            into[i] = place
    found = ctx.graph.gradients(grad, saved, ctx.wanted, into)
    for i, record, _ in stored:
        gradient = found[i]
        if gradient is not None:
            record.store(gradient, run)
            found[i] = None
    if run is not None and not run.retains:
        ctx.saved, ctx.is_freed = (), True
    return found


def run_chain(node: Any, grad: Tensor, run: BackwardRun) -> bool:
    """Run backward through a chain of these nodes; return False if it is no such chain."""
    nodes = []
    while not nodes or node is not None:
        if not getattr(node, "is_chain", False):
            return False
        for leaf in node.leaves:
            if not _is_alone(*leaf):
                return False
        nodes.append(node)
        node = node.below
    enabled = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    try:
        for node in nodes:
            found = _gradients(node, grad, node.leaves, run)
            if node.below is None or (grad := found[node.below_at]) is None:
                break
    finally:
        torch._C._set_grad_enabled(enabled)
    return True
