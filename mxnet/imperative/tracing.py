"""Keeps which operators made a recorded result, so that it can be shown as a graph.

Torch's graph has no names of operators, and keeping them with every result would slow all
recording down; so this is an interpreter, active only for whoever asks for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge

from ..error import MXNetError
from ..graph.node import Entry, Node
from ..ops.attributes import to_string
from ..ops.declare import Op, OpContext
from ..ops.interpreters import Attrs, Interpreter, Proceed, Tensors

__all__ = ["OperatorTrace", "traced_entry"]

_KEY = "mxnet"  # in the metadata of torch's nodes


class _Call(NamedTuple):
    """One call of an operator; the results of a call share it."""

    op: Op
    inputs: list[Any]  # see `_source`
    attrs: dict[str, Any]


class OperatorTrace(Interpreter):
    """Notes each operator with the results that it makes."""

    covers_graphs = False

    def run(self, op: Op, tensors: Tensors, attrs: Attrs, proceed: Proceed) -> Any:
        """Run an operator, and note it with its results if they are recorded."""
        sources = [_source(t) for t in tensors]  # now: an operator may write over its input
        result = proceed(tensors, attrs)
        call = _Call(op, sources, _given(attrs))
        for index, tensor in enumerate((result,) if isinstance(result, Tensor) else result):
            if tensor.grad_fn is not None:
                edge = get_gradient_edge(tensor)
                edge.node.metadata.setdefault(_KEY, {})[edge.output_nr] = (call, index)
        return result


def _source(tensor: Tensor | None) -> Any:
    """Return what identifies an input: its place in torch's graph, or the constant itself."""
    if tensor is None or not tensor.requires_grad:
        return tensor
    return get_gradient_edge(tensor)


def _given(attrs: Attrs) -> dict[str, Any]:
    return {k: v for k, v in attrs.items() if not isinstance(v, OpContext)}


def traced_entry(tensor: Tensor) -> Entry:
    """Return the graph of a recorded tensor; its leaves and constants are variables.

    Leaves are called ``var0``, ``var1`` and so on, constants ``null0``, results ``node_0``.
    """
    builder = _Builder()
    return builder.entry_of(_source(tensor))


class _Builder:
    """Makes nodes of a graph from noted calls."""

    def __init__(self) -> None:
        self._variables: dict[Any, Node] = {}
        self._nodes: dict[int, Node] = {}  # by the identity of calls
        self._leaves = self._constants = 0

    def entry_of(self, source: Any) -> Entry:
        """Return what stands for an input or a result."""
        waiting = [source]
        while waiting:  # no recursion: graphs are deeper than Python's stack
            call = _call_of(waiting[-1])
            missing = [] if call is None else self._missing(call[0])
            if missing:
                waiting += missing
                continue
            self._made(waiting.pop())
        return self._made(source)

    def _missing(self, call: _Call) -> list:
        """Return the inputs whose own calls have no nodes yet."""
        if id(call) in self._nodes:
            return []
        found = []
        for source in call.inputs:
            made_by = _call_of(source)
            if made_by is not None and id(made_by[0]) not in self._nodes:
                found.append(source)
        return found

    def _made(self, source: Any) -> Entry:
        noted = _call_of(source)
        if noted is None:
            return Entry(self._variable(source), 0)
        call, index = noted
        node = self._nodes.get(id(call))
        if node is None:
            entries = [self._made(s) for s in call.inputs if s is not None]
            attrs = {k: to_string(v) for k, v in call.attrs.items()}
            if call.op.count is not None and call.op.count not in attrs:
                attrs[call.op.count] = str(len(entries))
            node = Node(call.op, f"node_{len(self._nodes)}", attrs, entries)
            self._nodes[id(call)] = node
        return Entry(node, index)

    def _variable(self, source: Any) -> Node:
        is_leaf = isinstance(source, GradientEdge)
        key = (source.node, source.output_nr) if is_leaf else id(source)
        node = self._variables.get(key)
        if node is None:
            if is_leaf:
                name, self._leaves = f"var{self._leaves}", self._leaves + 1
            else:
                name, self._constants = f"null{self._constants}", self._constants + 1
            node = self._variables[key] = Node(None, name)
        return node


def _call_of(source: Any) -> tuple[_Call, int] | None:
    """Return the call that made something and which of its results it is; None of variables."""
    if not isinstance(source, GradientEdge):
        return None
    noted = source.node.metadata.get(_KEY)
    if noted is not None and source.output_nr in noted:
        return noted[source.output_nr]
    if source.node.name() == "torch::autograd::AccumulateGrad":
        return None
    raise MXNetError(
        f"autograd.get_symbol: a step of the recording is no traced operator (torch: "
        f"{source.node.name()}). Record with mx.autograd.trace_operators(), "
        "mx.autograd.record(): ..., without hybridized blocks, and write indexing and reshape as "
        "functions, such as mx.nd.slice and mx.nd.reshape."
    )
