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

__all__ = ["Differentiable", "record_run", "run_chain"]

_version = Tensor._version.__get__  # type: ignore[attr-defined]
# Torch's calls go past its autograd then: it would ask of every tensor whether it wants a gradient.
_below_autograd = torch._C._AutoDispatchBelowAutograd
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
        alone = [s for s in stored if len(s[2]._post_accumulate_grad_hooks) == 1]
        with _below_autograd():
            return None, None, *_gradients(ctx, grad, alone, run)


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
        if record.req == "add" or record.stored_in is run:
            continue  # this gradient is added to what is there
        place = record.array._data
        if place is not None and place.is_contiguous() and id(place) not in taken:
            taken.add(id(place))  # an array may be two inputs
            into[i] = place
    found = ctx.graph.gradients(grad, saved, ctx.wanted, into)
    for i, record, _ in stored:
        gradient = found[i]
        if gradient is None:
            continue
        if gradient is into[i]:  # it was computed into its place
            record.fresh, record.stored_in = True, run
        else:
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
        for _, _, leaf in node.leaves:
            if len(leaf._post_accumulate_grad_hooks) != 1:  # others watch what it gets
                return False
        nodes.append(node)
        node = node.below
    with _below_autograd():
        for node in nodes:
            found = _gradients(node, grad, node.leaves, run)
            if node.below is None or (grad := found[node.below_at]) is None:
                break
    return True
