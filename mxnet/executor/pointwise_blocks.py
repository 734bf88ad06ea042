"""The kernel of `_pointwise_blocks`: run a graph on one block of its inputs after another.

Results equal those of the whole arrays up to rounding. Torch computes the last elements of a call,
which do not fill a vector, with other instructions than the rest, and it divides a call among its
threads wherever that comes out even; so a last bit may depend on where a call ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..graph.graph import Graph
from ..graph.node import Entry, Node
from ..graph.typed import Mode
from ..ops.declare import OpContext
from ..ops.fused.pointwise_blocks import pointwise_blocks
from .program import Program
from .recomputation import infer_by_graph

# Elements for each of torch's threads: a few blocks of them stay in the cache, and a call of an
# operator costs little compared with its work. A power of two, so that vectors fill a block.
BLOCK = 1 << 17


class _Call(NamedTuple):
    """One operator on a block: which buffers it reads, and which one it writes."""

    kernel: Callable[..., Tensor]
    inputs: tuple[int, ...]
    output: int


class _Region:
    """One node's graph, prepared once for each dtype."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._whole: Program | None = None  # for arrays that are small, or not alike
        self._plans: dict[torch.dtype, tuple[list[_Call], int]] = {}

    def __call__(self, *tensors: Tensor, run: OpContext, **_: Any) -> tuple[Tensor, ...]:
        first = tensors[0]
        block = BLOCK * torch.get_num_threads()
        if first.numel() <= 2 * block or not all(_is_alike(t, first) for t in tensors):
            return self._run_whole(tensors, run)
        if first.dtype not in self._plans:
            self._plans[first.dtype] = _plan(self._graph, first.dtype, run)
        calls, scratch = self._plans[first.dtype]
        made = [torch.empty_like(first) for _ in self._graph.heads]
        rest = [torch.empty(block, dtype=first.dtype) for _ in range(scratch)]
        flat = [t.view(-1).split(block) for t in (*tensors, *made)]
        with torch.no_grad():  # kernels that write into memory refuse tensors with gradients
            for buffers in zip(*flat, strict=True):
                size = len(buffers[0])
                own = rest if size == block else [r[:size] for r in rest]
                values = [*buffers, *own]
                for kernel, inputs, output in calls:
                    kernel(*[values[i] for i in inputs], out=values[output])
        return tuple(made)

    def _run_whole(self, tensors: Sequence[Tensor], run: OpContext) -> tuple[Tensor, ...]:
        if self._whole is None:
            mode = Mode(run.training, False)
            self._whole = Program(self._graph, mode, run.device, keeps_layout=True)
        return tuple(self._whole.run(tensors))


def _is_alike(tensor: Tensor, first: Tensor) -> bool:
    same = tensor.shape == first.shape and tensor.dtype is first.dtype
    return same and tensor.is_cpu and tensor.is_contiguous() and tensor.is_floating_point()


def _plan(graph: Graph, dtype: torch.dtype, run: OpContext) -> tuple[list[_Call], int]:
    """Return the calls and how many buffers they need besides inputs and outputs.

    A buffer is free again, for the very operator too, after its last reader.
    """
    places = {Entry(node)[:2]: i for i, node in enumerate(graph.variables)}
    shown = {e[:2]: len(places) + i for i, e in enumerate(graph.heads)}
    nodes = [n for n in graph.nodes if n.op is not None]
    last = {e[:2]: i for i, n in enumerate(nodes) for e in n.inputs}
    taken = fixed = len(places) + len(shown)
    free: list[int] = []
    calls = []
    for i, node in enumerate(nodes):
        read = [e[:2] for e in node.inputs]
        inputs = tuple(places[e] for e in read)
        free += {places[e] for e in read if last[e] == i and places[e] >= fixed}
        output = shown.get((node, 0))
        if output is None:
            output = free.pop() if free else taken
            taken = max(taken, output + 1)
        places[node, 0] = output
        calls.append(_Call(_kernel_into(node, dtype, run), inputs, output))
    return calls, taken - fixed


def _kernel_into(node: Node, dtype: torch.dtype, run: OpContext) -> Callable[..., Tensor]:
    """Return the form of an operator that writes into a buffer."""
    op = node.operator
    found = op.find_variant("out", node.typed, dtype)
    if found is not None:
        return found
    kernel, attrs = op.kernel, {**node.typed, **op.context_for(run.training, run.device)}

    def copy(*tensors: Tensor, out: Tensor) -> Tensor:
        return out.copy_(kernel(*tensors, **attrs))

    return copy


def _make_kernel(graphs: Sequence[Graph], attrs: dict) -> Callable:
    return _Region(graphs[0])


pointwise_blocks.runner = _make_kernel
pointwise_blocks.subgraph_rule = infer_by_graph
