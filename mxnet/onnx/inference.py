"""Shapes and dtypes of a graph for export; a size of -1 is known only when the model runs.

Shapes are inferred with numbers, twice where sizes are dynamic: what differs follows from a
dynamic size. That also works where an operator has no rule for unknown sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ..base import is_np_shape
from ..error import MXNetError, ShapeError
from ..graph import Graph, Node
from ..graph.passes.infer import infer_shapes, infer_types
from .builder import UNKNOWN, Shape

__all__ = ["Facts", "infer_facts", "probe_sizes"]

# Stand in for sizes that are not given: of axis 0, and of the others. The second run takes larger
# ones, of the others by multiples of a number that strides divide.
BATCH, SIZE, MULTIPLE = 4, 64, 32


class Facts(NamedTuple):
    """Shapes and dtypes of the outputs of each node."""

    shapes: dict[Node, list[Shape]]
    dtypes: dict[Node, list[torch.dtype]]


def probe_sizes(
    shape: Sequence[int | str | None], example: Sequence[int | str | None] | None, add: int
) -> Shape:
    """Return a shape with numbers for its dynamic sizes: the example's, enlarged by `add`."""
    sizes = []
    for axis, size in enumerate(shape):
        if isinstance(size, int) and (size > 0 or (size == 0 and is_np_shape())):
            sizes.append(size)
            continue
        given = None if example is None else example[axis]
        if isinstance(given, int) and given > 0:
            sizes.append(given + (add if axis == 0 else MULTIPLE * add))
        else:
            sizes.append(BATCH + add if axis == 0 else SIZE + MULTIPLE * add)
    return tuple(sizes)


def infer_facts(
    graph: Graph,
    shapes: Mapping[str, Shape],
    other_shapes: Mapping[str, Shape] | None,
    types: Mapping[str, torch.dtype],
    default: torch.dtype,
) -> Facts:
    """Infer everything; `other_shapes` differ from `shapes` where sizes are dynamic."""
    exact = is_np_shape()
    first = infer_shapes(graph, shapes, zero_is_unknown=not exact)
    open_nodes = _after_values(graph)
    found = {
        node: [_complete(node, s, node in open_nodes) for s in values]
        for node, values in first.values.items()
    }
    if other_shapes is not None:
        second = infer_shapes(graph, other_shapes, zero_is_unknown=not exact)
        found = {
            node: [_merged(a, b) for a, b in zip(values, second.values[node], strict=True)]
            for node, values in found.items()
        }
    inferred = infer_types(graph, types, default)
    return Facts(found, {n: [t or default for t in v] for n, v in inferred.values.items()})


def _after_values(graph: Graph) -> set[Node]:
    """Return the nodes whose shapes may depend on values: such operators, loops, what follows."""
    found: set[Node] = set()
    for node in graph.nodes:
        is_open = node.op is not None and (node.op.value_dependent or bool(node.subgraphs))
        if is_open or any(e.node in found for e in node.inputs):
            found.add(node)
    return found


def _complete(node: Node, shape: Any, is_open: bool) -> Shape:
    if shape is None or UNKNOWN in shape:
        if is_open and shape is not None:
            return tuple(shape)
        if node.op is not None and node.op.value_dependent:
            return ()
        raise ShapeError(
            f"ONNX export: the shape of {node.name!r} cannot be inferred (found {shape}). Give "
            "the shape of every input in in_shapes."
        )
    return tuple(shape)


def _merged(first: Shape, second: Any) -> Shape:
    if second is None or len(first) != len(second):
        raise MXNetError("ONNX export: the rank of an array depends on the dynamic sizes.")
    return tuple(a if a == b else UNKNOWN for a, b in zip(first, second, strict=True))
