"""`TypedGraph`: a graph for one mode of execution, with the types of all values.

Types are used for optimization and reports, not for correctness. A compiled graph also runs on
different shapes, because every fused operator is a complete operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import NamedTuple

import torch

from ..base import is_np_shape
from ..error import MXNetError
from ..ops.shapes import Shape, is_known
from .graph import Graph, topological
from .node import Entry, Node
from .passes.infer import Inferred, infer_shapes, infer_types

DEFAULT = "default"
CHANNELS_LAST = "channels_last"


class TensorType(NamedTuple):
    """The static type of a value; None is unknown.

    `layout` is the order in memory ("default" or "channels_last"), `storage` is MXNet's storage
    type ("default", "csr" or "row_sparse").
    """

    shape: Shape | None = None
    dtype: torch.dtype | None = None
    layout: str = DEFAULT
    storage: str = DEFAULT
    device: torch.device | None = None

    @property
    def size(self) -> int | None:
        """The number of elements."""
        return prod(self.shape) if is_known(self.shape) else None

    @property
    def nbytes(self) -> int | None:
        """The number of bytes of a dense value."""
        if self.size is None or self.dtype is None:
            return None
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        shape = (
            "?" if self.shape is None else "x".join("?" if n < 0 else str(n) for n in self.shape)
        )
        dtype = "?" if self.dtype is None else str(self.dtype).removeprefix("torch.")
        notes = [n for n in (self.layout, self.storage) if n != DEFAULT]
        return " ".join([f"{dtype}[{shape}]", *notes])


class Mode(NamedTuple):
    """The mode of execution.

    `training` is the mode of operators; `differentiable` tells whether gradients may be computed,
    which is possible in inference too.
    """

    training: bool
    differentiable: bool


INFERENCE, TRAINING = Mode(False, False), Mode(True, True)


class Inputs(NamedTuple):
    """The types of a graph's variables by name, and the device."""

    shapes: Mapping[str, Shape | None] = {}
    dtypes: Mapping[str, torch.dtype | None] = {}
    storage: Mapping[Node, Sequence[str]] = {}
    device_of: Callable[[Node], torch.device | None] = lambda node: None


class TypedGraph(Graph):
    """A graph, its mode, and the types of its values, which are inferred on demand.

    Optimization passes map a `TypedGraph` to a new one; variables are not copied.

    Parameters
    ----------
    heads : the output entries. mode : the mode of execution. inputs : the types of variables.
    parent : the graph that this one was rewritten from. replaced : nodes of this graph -> nodes of
    `parent` whose outputs they compute. anchors : new nodes -> nodes of `parent` at whose positions
    they run. types : known types of new nodes. history : number of applications of each rule so
    far.
    """

    def __init__(
        self,
        heads: Sequence[Entry],
        mode: Mode,
        inputs: Inputs = Inputs(),  # noqa: B008 (immutable)
        *,
        parent: TypedGraph | None = None,
        replaced: Mapping[Node, Node] | None = None,
        anchors: Mapping[Node, Node] | None = None,
        types: Mapping[Node, tuple[TensorType, ...]] | None = None,
        history: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(heads)
        self.mode = mode
        self.inputs = inputs
        self._parent = parent
        self._replaced = replaced or {}
        self._anchors = anchors or {}
        self._given_types = types or {}
        self.history = dict(history or {})

    @cached_property
    def nodes(self) -> list[Node]:
        """All nodes, inputs first; replacements run at the positions of the replaced nodes.

        This keeps the order of random draws, changes of states, and variables.
        """
        nodes = topological(self.heads)
        if self._parent is None:
            return nodes
        before, anchors = self._parent.position, {**self._replaced, **self._anchors}
        positions: dict[Node, int] = {}
        for node in nodes:
            # New nodes run as soon as their inputs are available.
            position = before.get(anchors.get(node, node), -1)
            for entry in node.inputs:
                position = max(position, positions[entry[0]])
            positions[node] = position
        return sorted(nodes, key=positions.__getitem__)

    def origin(self, node: Node) -> Node:
        """Return the node of the original graph whose outputs this node computes."""
        graph: TypedGraph | None = self
        while graph is not None:
            node = graph._replaced.get(node, node)
            graph = graph._parent
        return node

    @cached_property
    def uses(self) -> Counter[tuple[Node, int]]:
        """The number of uses of each entry, by nodes or as a head."""
        uses: Counter[tuple[Node, int]] = Counter()
        uses.update([(e[0], e[1]) for node in self.nodes for e in node.inputs])
        uses.update([(e[0], e[1]) for e in self.heads])
        return uses

    @cached_property
    def shown(self) -> frozenset[tuple[Node, int]]:
        """The entries that are visible outputs of the graph."""
        return frozenset((e.node, e.index) for e in self.heads)

    @cached_property
    def is_rearranged(self) -> bool:
        """Whether memory formats of results may differ from the users' expectation."""
        return _is_rearranged(self)

    # -- types --------------------------------------------------------------------------------

    def type_of(self, entry: Entry) -> TensorType:
        """Return the type of an entry."""
        return self.types[entry.node][entry.index]

    @cached_property
    def types(self) -> dict[Node, tuple[TensorType, ...]]:
        """The types of all nodes' outputs."""
        if self._parent is None:
            return self._infer()
        before = self._parent.types
        types: dict[Node, tuple[TensorType, ...]] = {}
        for node in self.nodes:
            old = self._given_types.get(node) or before.get(self._replaced.get(node, node))
            if old is None:
                old = _infer_node(node, [types[e.node][e.index] for e in node.inputs])
            types[node] = old
        return _fill_layouts(self.nodes, types)

    def infer_shapes(self) -> Inferred:
        """Infer shapes from those of the inputs; raise for conflicts."""
        return infer_shapes(self, self.inputs.shapes, zero_is_unknown=not is_np_shape())

    def _infer(self) -> dict[Node, tuple[TensorType, ...]]:
        shapes = _infer_leniently(lambda: self.infer_shapes().values)
        dtypes = _infer_leniently(lambda: infer_types(self, self.inputs.dtypes).values)
        device_of, storage = self.inputs.device_of, self.inputs.storage
        types = {}
        for node in self.nodes:
            device, count = device_of(node), node.outputs
            unknown = [None] * count
            rows = zip(
                shapes.get(node, unknown),
                dtypes.get(node, unknown),
                storage.get(node) or [DEFAULT] * count,
                strict=True,
            )
            types[node] = tuple([TensorType(s, d, DEFAULT, kind, device) for s, d, kind in rows])
        return _fill_layouts(self.nodes, types)

    # -- totals -------------------------------------------------------------------------------

    @property
    def result_bytes(self) -> int:
        """The total memory of all results with known types."""
        nodes = [n for n in self.nodes if n.op is not None]
        return sum(t.nbytes or 0 for n in nodes for t in self.types[n])

    def multiply_adds(self, node: Node) -> int:
        """Return the number of multiply-adds of a node; 0 for all but products."""
        if node.op is None or node.op.work_rule is None:
            return 0
        ins = [s for e in node.inputs if is_known(s := self.type_of(e).shape)]
        outs = [t.shape for t in self.types[node] if is_known(t.shape)]
        if len(ins) < len(node.inputs) or len(outs) < len(self.types[node]):
            return 0
        return node.op.work_rule(ins, outs, node.typed)


def _is_rearranged(graph: Graph) -> bool:
    for node in graph.nodes:
        if node.op is not None and node.op.facts.layout is not None:
            return True
        if any(map(_is_rearranged, node.subgraphs)):
            return True
    return False


def _infer_leniently(infer: Callable[[], dict]) -> dict:
    """Infer without raising: a graph with conflicting types fails when it runs."""
    try:
        return infer()
    except MXNetError:
        return {}


def _infer_node(node: Node, ins: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """Infer the outputs of a new node from its inputs."""
    unknown: list = [None] * node.outputs
    try:
        shapes = node.operator.infer_shapes([t.shape for t in ins], unknown, node.typed)[1]
        dtypes = node.operator.infer_types([t.dtype for t in ins], unknown, node.typed)[1]
    except MXNetError:
        shapes = dtypes = unknown
    device = ins[0].device if ins else None
    return tuple(
        TensorType(s, d, DEFAULT, DEFAULT, device) for s, d in zip(shapes, dtypes, strict=True)
    )


def _fill_layouts(
    nodes: Sequence[Node], types: dict[Node, tuple[TensorType, ...]]
) -> dict[Node, tuple[TensorType, ...]]:
    """Fill in layouts: some operators set one, pointwise operators propagate it."""
    for node in nodes:
        if node.op is None:
            continue
        facts = node.op.facts
        layout = facts.layout
        if layout is None and node.inputs and (facts.pointwise or facts.keeps_layout):
            layout = types[node.inputs[0].node][node.inputs[0].index].layout
        layout = layout or DEFAULT
        if any(t.layout != layout for t in types[node]):
            types[node] = tuple(
                t._replace(layout=layout) if t.shape is not None and len(t.shape) == 4 else t
                for t in types[node]
            )
    return types
