"""Passes on single nodes.

    x -> Dropout -> f            =>   x -> f                       (`remove_identities`, inference)
    zeros(shape=(0, 4)) + x      =>   zeros(shape=(2, 4)) + x      (`resolve_sources`, x is (2, 4))
    x -> amp_cast -> op          =>   x -> op                      (`without_casts`)
    exp(x) + exp(x)              =>   e + e of e = exp(x)          (`merge_equal_nodes`)

Operators without effect in inference have the fact `identity`. Outputs of the graph are kept: users
may write into them, so each needs its own memory. Unknown sizes are 0 in MXNet's classic shapes and
-1 with `np_shape`; `arange` may have an inferred length.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base import is_np_shape
from ...error import ShapeError
from ...ops.shapes import UNKNOWN, is_known
from ...ops.tensor.identity import amp_cast, amp_multicast, identity
from ..graph import Graph, interpret
from ..node import Entry, Node
from ..rewrite import Match, Pattern, Rule, Table, make_node, rewrite
from ..typed_graph import TypedGraph


def _pass_value(match: Match) -> Entry | None:
    root = match.root
    if match.is_output or not root.operator.facts.is_identity(root.typed):
        return None
    return root.inputs[0]


# Remove identities: their consumers read the original value.
remove_identities = Table(
    "remove_identities",
    Rule("remove_identity", Pattern(lambda op: bool(op.facts.identity)), _pass_value),
)


def is_open(node: Node) -> bool:
    """Return whether a node's shape is inferred from its consumers."""
    if node.op is None or node.inputs:
        return False
    typed = node.typed
    if typed.get("infer_range"):
        return True
    shape = typed.get("shape", (1,))
    if isinstance(shape, float):  # the shape parameter of a gamma distribution
        return False
    if is_np_shape():
        return bool(shape) and min(shape) < 0
    return not shape or 0 in shape or UNKNOWN in shape


def open_sources(graph: Graph) -> list[Node]:
    """Return the nodes whose shape is inferred from their consumers."""
    return [node for node in graph.nodes if is_open(node)]


def _resolve(match: Match) -> Node:
    node = match.root
    shape = match.graph.types[node][0].shape
    if not is_known(shape):
        match.graph.infer_shapes()  # conflicts raise their own error
        raise ShapeError(
            f"The shape of {node.name!r} ({node.operator.name}) cannot be inferred from the inputs "
            f"{dict(match.graph.inputs.shapes)}: pass all its sizes."
        )
    attrs = node.typed
    if "shape" in attrs:
        resolved = {"shape": shape}
    else:  # an arange
        steps = shape[0] / attrs["repeat"]
        resolved = {"stop": attrs["start"] + steps * attrs["step"], "infer_range": False}
    return make_node(node.operator, node.name, {}, {**attrs, **resolved})


SOURCES = [
    Rule("resolve_source", Pattern(lambda op: not op.inputs, when=is_open), _resolve),
]


def resolve_sources(graph: TypedGraph) -> TypedGraph:
    """Replace open shapes by inferred ones."""
    return rewrite(graph, SOURCES)


_CASTS = (amp_cast, amp_multicast)


def without_casts(graph: Graph) -> Sequence[Entry]:
    """``x -> amp_cast -> op``  =>  ``x -> op``; a cast that is itself a head stays."""
    if not any(n.op in _CASTS for n in graph.nodes):
        return graph.heads

    def apply(node: Node, inputs: list[Entry]) -> list[Entry]:
        if node.op in _CASTS:
            return inputs
        pairs = list(zip(inputs, node.inputs, strict=True))
        entries = [old if new[:2] == old[:2] else new for new, old in pairs]
        copy = node if entries == list(node.inputs) else node.copy(entries)
        return [Entry(copy, i) for i in range(node.outputs)]

    heads = interpret(graph, Entry, apply)
    return [
        old if old.node.op in _CASTS else new for old, new in zip(graph.heads, heads, strict=True)
    ]


def merge_equal_nodes(graph: Graph) -> Graph:
    """Merge nodes with equal operators, attributes and inputs.

    Heads keep their own memory: merged ones become copies of the first.
    """
    first: dict[tuple, list[Entry]] = {}

    def apply(node: Node, inputs: list[Entry]) -> list[Entry]:
        pairs = zip(inputs, node.inputs, strict=True)
        copy = node.copy([Entry(e.node, e.index, old.version) for e, old in pairs])
        outputs = [Entry(copy, i) for i in range(node.outputs)]
        if not _is_function_of_inputs(node):
            return outputs
        texts = (tuple(sorted(node.attrs.items())), tuple(sorted(node.extra.items())))
        return first.setdefault((node.op, *texts, *(e[:2] for e in inputs)), outputs)

    heads: list[Entry] = []
    latest: dict[Entry, Entry] = {}
    for entry in interpret(graph, Entry, apply):
        last = latest.get(entry)
        name = "" if last is None else f"{last.node.name}_{last.index}{identity.name}"
        latest[entry] = entry if last is None else Entry(Node(identity, name, {}, [last]))
        heads.append(latest[entry])
    return Graph(heads)


def _is_function_of_inputs(node: Node) -> bool:
    """Return whether a node is deterministic and has no side effects."""
    op = node.operator
    changes = op.mutates or op.has_aux or op.has_memory
    return bool(node.inputs) and not (op.facts.random or changes or node.subgraphs)
