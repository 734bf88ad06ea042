"""Converts the history of a recorded array to a graph, for `autograd.get_symbol`."""

from __future__ import annotations

from typing import Any

from ..error import MXNetError
from ..graph.graph import Graph
from ..graph.node import Entry, Node
from ..ops.attributes import to_string
from ..ops.declare import FunctionCall, Op
from ..ops.numpy.shaping import reshape as numpy_reshape
from ..ops.tensor.creation import copyto
from ..ops.tensor.indexing import gather_nd
from ..ops.tensor.shape_changing import reshape
from ..ops.tensor.slicing import slice_
from .recording import (
    HistoryNode,
    Source,
    Step,
    StepKind,
    details_of,
    inputs_of,
    numbers_of,
)

__all__ = ["traced_entry"]


def traced_entry(node: HistoryNode) -> Entry:
    """Return the graph of a recorded array from its node; see `history`.

    Arrays with gradients become the variables ``var0``, ``var1`` and so on, other arrays
    ``null0``, results of operators ``node_0``.
    """
    builder, waiting = _Builder(), [node]
    while waiting:  # no recursion: recordings are deeper than Python's stack
        missing = [n for n in inputs_of(waiting[-1]) if id(n) not in builder.made]
        if missing:
            waiting += reversed(missing)
        else:
            builder.make(waiting.pop())
    return builder.made[id(node)][0]


class _Builder:
    """Builds graphs from recorded steps."""

    def __init__(self) -> None:
        self.made: dict[int, list[Entry]] = {}  # the results of steps, by id of their nodes
        self._leaves = self._constants = self._nodes = 0

    def make(self, node: HistoryNode) -> None:
        """Add the graph node for a history node whose inputs have been added."""
        if id(node) in self.made:
            return
        if type(node) is not tuple:
            self.made[id(node)] = [Entry(self._variable(node))]
            return
        inputs = [self.made[id(n)] for n in inputs_of(node)]
        if node[0].kind is StepKind.RESULT:
            (number,) = details_of(node)
            self.made[id(node)] = [inputs[0][number]]
            return
        self.made[id(node)] = self._results(node, [entries[0] for entries in inputs])

    def _variable(self, node: HistoryNode) -> Node:
        if type(node) is Source:
            name, self._constants = f"null{self._constants}", self._constants + 1
        else:
            name, self._leaves = f"var{self._leaves}", self._leaves + 1
        return Node(None, name)

    def _results(self, node: tuple, inputs: list[Entry]) -> list[Entry]:
        step: Step = node[0]
        match step.kind:
            case StepKind.CALL:
                return self._called(step, inputs, numbers_of(node))
            case StepKind.GRAPH:
                return self._run(step.what, inputs)
            case StepKind.FUNCTION:
                return self._add(FunctionCall(step.what), {}, inputs)
            case StepKind.INDEXING:
                return self._part(inputs, *details_of(node))
            case StepKind.RESHAPING:
                return self._reshaped(inputs, *details_of(node))
            case StepKind.COPYING:
                return self._add(copyto, {}, inputs)
            case StepKind.GATHERING:
                return self._add(gather_nd, {}, inputs[:2])
        raise MXNetError(
            "autograd.get_symbol: a part of this computation is no operator: a gradient of "
            "autograd.grad(create_graph=True), or lists beside other indices (use mx.nd.take or "
            "mx.nd.gather_nd)."
        )

    def _add(self, op: Op, attrs: dict[str, Any], inputs: list[Entry]) -> list[Entry]:
        text = {k: to_string(v) for k, v in attrs.items()}
        if op.count is not None and op.count not in text:
            text[op.count] = str(len(inputs))
        node = Node(op, self._name(), text, inputs)
        return [Entry(node, i) for i in range(node.signature.total)]

    def _name(self) -> str:
        self._nodes += 1
        return f"node_{self._nodes - 1}"

    def _called(self, call: Step, inputs: list[Entry], numbers: list[float]) -> list[Entry]:
        attrs = dict(call.attrs)
        for number in numbers:
            attrs |= call.what.parse({"scalar": number})
        decompose = call.what.decomposition_rule
        if decompose is None:
            return self._add(call.what, attrs, inputs)
        return [decompose(self._apply, *inputs, **call.what.complete(attrs))]

    def _apply(self, op: Op, *inputs: Entry, **attrs: Any) -> Entry:
        return self._add(op, attrs, list(inputs))[0]

    def _run(self, graph: Graph, inputs: list[Entry]) -> list[Entry]:
        inputs_of_variables = dict(zip(graph.variables, inputs, strict=True))
        copies: dict[Node, Node] = {}

        def entry(old: Entry) -> Entry:
            if old.node in inputs_of_variables:
                return inputs_of_variables[old.node]._replace(version=old.version)
            return old._replace(node=copies[old.node])

        for node in graph.nodes:
            if not node.is_variable:
                copies[node] = copy = node.copy([entry(e) for e in node.inputs])
                copy.name = self._name()
        return [entry(head) for head in graph.heads]

    def _reshaped(self, inputs: list[Entry], shape: tuple[int, ...]) -> list[Entry]:
        if not shape:
            return self._add(numpy_reshape, {"newshape": ()}, inputs)
        return self._add(reshape, {"shape": tuple(shape)}, inputs)

    def _part(self, inputs: list[Entry], key: Any, shape: tuple[int, ...]) -> list[Entry]:
        items = key if type(key) is tuple else (key,)
        parts = [i if type(i) is slice else _one(i) for i in items if i is not None]
        if any(part != slice(None) for part in parts):
            attrs = {"begin": tuple(p.start for p in parts), "end": tuple(p.stop for p in parts)}
            if any(p.step is not None for p in parts):
                attrs["step"] = tuple(p.step for p in parts)
            inputs = self._add(slice_, attrs, inputs)
        if all(type(item) is slice for item in items):
            return inputs
        return self._reshaped(inputs, shape)


def _one(index: int) -> slice:
    """Return the part of size 1 at an index; -1 is the last.

    >>> _one(2), _one(-1)
    (slice(2, 3, None), slice(-1, None, None))
    """
    return slice(index, None if index == -1 else index + 1)
