"""Which outputs need a gradient from the user, what was given, and what a second run repeats."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..error import MXNetError, ShapeError
from ..graph.graph import Graph
from ..graph.node import Node
from ..imperative.handle import wrap_plain
from ..ndarray import NDArray
from ..ndarray.sparse.dispatch import dense_of

NEEDS_HEAD_GRADIENT = (
    "Because the last operator is not Loss function, head_gradient is required when calling "
    "backward. If you are attempting to minimize the output as an objective, please modify your "
    "network and pass it through the make_loss symbol."
)


def needs_head_gradient(node: Node) -> bool:
    """Return whether backward from a node's outputs uses the gradients of those outputs."""
    return node.op is None or node.op.needs_head_gradient(node.typed)


def reaches_variable(head: Node, wanted: Collection[Node]) -> bool:
    """Return whether the gradient of an output flows on to a variable whose gradient is wanted.

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
            if node in wanted:
                return True
        elif needs_head_gradient(node):
            stack.extend(entry.node for entry in node.inputs)
    return False


def listed_out_grads(given: Any, graph: Graph) -> list[NDArray | None]:
    """Return what the user gave to backward, one for each output, None where there is nothing."""
    if given is None:
        given = ()
    elif isinstance(given, NDArray):
        given = [given]
    elif isinstance(given, Mapping):
        given = [given[name] for name in graph.output_names()]
    listed = [g if g is None or isinstance(g, NDArray) else _array(g) for g in given]
    count = len(graph.heads)
    return [*listed, *[None] * (count - len(listed))][:count]


def _array(value: Any) -> NDArray:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"backward: out_grads must be NDArrays, not {type(value)}.")
    return wrap_plain(NDArray, torch.as_tensor(value))


def head_gradients(
    graph: Graph,
    heads: Sequence[Tensor | None],
    given: Sequence[NDArray | None],
    wanted: Collection[Node],
) -> dict[int, Tensor]:
    """Return the gradients to start from, by the number of the output.

    `wanted` are the variables whose gradients are computed.
    Of an output that a Group shows several times the last gradient counts, as in MXNet.
    """
    found: dict[tuple, tuple[int, Tensor]] = {}
    for number, (entry, head, grad) in enumerate(zip(graph.heads, heads, given, strict=True)):
        if head is None or not head.requires_grad:
            continue
        if grad is not None:
            value = _fitting(dense_of(grad), head)
        elif reaches_variable(entry.node, wanted):
            raise MXNetError(
                f"backward: no out_grad was given for output {number}, "
                f"{entry.node.output_names()[entry.index]!r}. {NEEDS_HEAD_GRADIENT}"
            )
        else:
            value = torch.ones_like(head)
        found[entry.node, entry.index] = number, value
    return dict(found.values())


def _fitting(grad: Tensor, head: Tensor) -> Tensor:
    if grad.shape != head.shape:
        raise ShapeError(
            f"backward: an out_grad has shape {tuple(grad.shape)}, its output {tuple(head.shape)}."
        )
    return grad.to(device=head.device, dtype=head.dtype)


def draws_random_numbers(graph: Graph) -> bool:
    """Return whether a node of the graph may draw random numbers."""
    return any(n.op is not None and n.op.facts.random for n in graph.nodes)


def random_state(device: torch.device) -> Tensor:
    """Return where the random stream of a device stands."""
    if device.type == "cpu":
        return torch.get_rng_state()
    return getattr(torch, device.type).get_rng_state(device)


@contextmanager
def random_stream(device: torch.device, state: Tensor | None) -> Iterator[None]:
    """Draw from where the stream stood, and go on afterward as if nothing had been drawn."""
    if state is None:
        yield
        return
    module = torch if device.type == "cpu" else getattr(torch, device.type)
    place = () if device.type == "cpu" else (device,)
    before = random_state(device)
    module.set_rng_state(state, *place)
    try:
        yield
    finally:
        module.set_rng_state(before, *place)
