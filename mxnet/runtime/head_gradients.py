"""Backward through a graph: where gradients start, which outputs go together, what is repeated.

A prepared graph is one step of a recorded computation: its inputs get gradients together. When
backward starts from some of the outputs, MXNet gives the others gradients of zero, so a parameter
that only an unused output depends on gets zeros too, and a `Trainer` does not call it stale. Torch
would stop at the unused output and leave that parameter's gradient as it was.

MXNet's output layers make their gradients whatever the gradients of their outputs are, so
``BlockGrad(SoftmaxOutput(x))`` trains ``x``; see `ops/gradients`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .. import dtypes
from ..accelerator import get_rng_state, set_rng_state
from ..error import MXNetError, ShapeError
from ..graph.graph import Graph, topological
from ..graph.node import Entry, Node
from ..ndarray import NDArray
from ..ndarray.sparse.dispatch import dense_of
from ..ops.gradients import keep_path
from .array import wrap_plain

if TYPE_CHECKING:
    from .program import Value

NEEDS_HEAD_GRADIENT = (
    "Because the last operator is not Loss function, head_gradient is required when calling "
    "backward. If you are attempting to minimize the output as an objective, please modify your "
    "network and pass it through the make_loss symbol."
)


def needs_head_gradient(node: Node) -> bool:
    """Return whether backward from a node's outputs uses the gradients of those outputs."""
    return node.op is None or node.op.needs_head_gradient(node.typed)


def reaches_variable(head: Node, variables: Collection[Node]) -> bool:
    """Return whether the gradient of an output flows on to a variable whose gradient is asked for.

    It ends at loss layers, which define their own, and at `BlockGrad`: nobody needs to give a
    gradient of ``Reshape(SoftmaxOutput(x))``.
    """
    seen, stack = set(), [head]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op is None:
            if node in variables:
                return True
        elif needs_head_gradient(node):
            stack.extend(entry.node for entry in node.inputs)
    return False


class HeadGradients:
    """From which gradients a backward through a graph starts.

    `variables` are those whose gradients are computed.
    """

    def __init__(self, graph: Graph, variables: Collection[Node]) -> None:
        self._graph = graph
        # Of an output that a Group shows several times the last gradient counts, as in MXNet.
        last = {entry[:2]: number for number, entry in enumerate(graph.heads)}
        chosen = set(last.values())
        self._rows = [
            (number in chosen, reaches_variable(entry.node, variables))
            for number, entry in enumerate(graph.heads)
        ]

    def list_given(self, out_grads: Any) -> list[NDArray | None]:
        """Return what the user gave to backward, one for each output, None where nothing is."""
        if out_grads is None:
            return [None] * len(self._rows)
        if isinstance(out_grads, NDArray):
            out_grads = [out_grads]
        elif isinstance(out_grads, Mapping):
            out_grads = [out_grads[name] for name in self._graph.output_names()]
        listed = [g if g is None or isinstance(g, NDArray) else _array(g) for g in out_grads]
        count = len(self._rows)
        return [*listed, *[None] * (count - len(listed))][:count]

    def starts(
        self, heads: Sequence[Tensor | None], given: Sequence[NDArray | None]
    ) -> dict[int, Tensor]:
        """Return the gradients to start from, by the number of the output; None has none."""
        starts: dict[int, Tensor] = {}
        for number, (is_chosen, is_needed) in enumerate(self._rows):
            head, grad = heads[number], given[number]
            if head is None:
                continue
            if grad is not None and (is_needed or grad.shape == tuple(head.shape)):
                value = _fit(dense_of(grad), head)
            elif not is_needed:
                value = torch.ones_like(head)  # nobody looks at it, whatever shape was given
            else:
                raise self._missing(number)
            if is_chosen:
                starts[number] = value
        return starts

    def _missing(self, number: int) -> MXNetError:
        entry = self._graph.heads[number]
        return MXNetError(
            f"backward: no out_grad was given for output {number}, "
            f"{entry.node.output_names()[entry.index]!r}. {NEEDS_HEAD_GRADIENT}"
        )


def _array(value: Any) -> NDArray:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"backward: out_grads must be NDArrays, not {type(value)}.")
    return wrap_plain(NDArray, dtypes.from_numpy(value))


def _fit(grad: Tensor, head: Tensor) -> Tensor:
    if grad.shape != head.shape:
        raise ShapeError(
            f"backward: an out_grad has shape {tuple(grad.shape)}, its output {tuple(head.shape)}."
        )
    return grad.to(device=head.device, dtype=head.dtype)


def draws_random_numbers(graph: Graph) -> bool:
    """Return whether a node of the graph may draw random numbers."""
    return any(n.op is not None and n.op.facts.random for n in graph.nodes)


@contextmanager
def random_stream(device: torch.device, state: Tensor | None) -> Iterator[None]:
    """Draw from where the stream stood, and continue afterward as if nothing had been drawn."""
    if state is None:
        yield
        return
    before = get_rng_state(device)
    set_rng_state(device, state)
    try:
        yield
    finally:
        set_rng_state(device, before)


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


def nodes_behind_output_layers(graph: Graph) -> dict[Node, set[Node]]:
    """Return the nodes that read results of output layers, and which of their inputs do so."""
    layers = {n for n in graph.nodes if n.op is not None and not needs_head_gradient(n)}
    behind: dict[Node, set[Node]] = {}
    for node in graph.nodes if layers else ():
        sources = {e.node for e in node.inputs if e.node in layers or e.node in behind}
        if sources:
            behind[node] = sources
    return behind


def keep_paths(
    kernel: Callable, entries: Sequence[Entry | None], sources: set[Node]
) -> Callable[..., Any]:
    """Return a kernel whose results stay in the graph of those inputs."""
    positions = [
        i for i, entry in enumerate(entries) if entry is not None and entry.node in sources
    ]

    def keeping(*arguments: Any, **attrs: Any) -> Any:
        output = kernel(*arguments, **attrs)
        inputs = [arguments[i] for i in positions if type(arguments[i]) is Tensor]
        inputs = [t for t in inputs if t.requires_grad]
        if not inputs:
            return output
        if isinstance(output, tuple | list):
            return tuple(_keep_member(each, inputs) for each in output)
        return _keep_member(output, inputs)

    return keeping


def _keep_member(output: Any, inputs: Sequence[Tensor]) -> Any:
    if type(output) is not Tensor or output.requires_grad or not output.is_floating_point():
        return output
    return keep_path(output, inputs)
