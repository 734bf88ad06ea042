"""Keeps which operators made a recorded result, so that it can be shown as a graph.

Torch's graph has no names of operators, and keeping them with every result would slow all
recording down, by a tenth for small arrays; so this is an interpreter, active only for whoever
asks for it. Indexing, `reshape` and copies are read from torch's graph itself.
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
from ..ops.tensor.creation import copyto
from ..ops.tensor.selection.slicing import slice_
from ..ops.tensor.shaping.shape_changing import reshape

__all__ = ["OperatorTrace", "traced_entry"]

_KEY = "mxnet"  # in the metadata of torch's nodes


class _Call(NamedTuple):
    """One call of an operator; the results of a call share it."""

    op: Op
    inputs: list[Any]  # see `_source`
    attrs: dict[str, Any]


class OperatorTrace(Interpreter):
    """Notes each operator with the results that it makes."""

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


class _Result(NamedTuple):
    """One result of a call that torch's graph does not show by itself."""

    call: _Call
    index: int = 0


def _call_of(source: Any) -> tuple[_Call, int] | None:
    """Return the call that made something and which of its results it is; None of variables."""
    if type(source) is _Result:
        return source
    if not isinstance(source, GradientEdge):
        return None
    noted = source.node.metadata.get(_KEY)
    if noted is not None and source.output_nr in noted:
        return noted[source.output_nr]
    if source.node.name() == "torch::autograd::AccumulateGrad":
        return None
    read = _STEPS.get(source.node.name())
    if read is None:
        raise MXNetError(
            "autograd.get_symbol: the operators of this computation were not kept. Record it "
            "inside mx.autograd.trace_operators(), as in `with mx.autograd.trace_operators(), "
            "mx.autograd.record(): ...`, or set MXNET_AUTOGRAD_TRACE=1 before importing mxnet. "
            "Lists of indices (use mx.nd.take or mx.nd.gather_nd) and autograd.Function cannot be "
            f"shown (torch: {source.node.name()})."
        )
    made = _Result(read(source.node, GradientEdge(*source.node.next_functions[0])))
    source.node.metadata[_KEY] = {source.output_nr: made}  # the same one next time
    return made


# -- views and copies, from torch's graph -----------------------------------------------------


def _reshaped(node: Any, source: Any) -> _Call:
    return _Call(reshape, [source], {"shape": tuple(node._input_metadata[0].shape)})


def _copied(node: Any, source: Any) -> _Call:
    return _Call(copyto, [source], {})


def _sliced(node: Any, source: Any) -> _Call:
    sizes = node._saved_self_sym_sizes
    axis = node._saved_dim % len(sizes)
    step = node._saved_step
    begin, end, step = slice(node._saved_start, node._saved_end, step).indices(sizes[axis])
    before = (None,) * axis
    attrs = {"begin": (*before, begin), "end": (*before, end)}
    return _Call(slice_, [source], attrs if step == 1 else {**attrs, "step": (*before, step)})


def _selected(node: Any, source: Any) -> _Call:
    sizes = node._saved_self_sym_sizes
    axis = node._saved_dim % len(sizes)
    begin, before = node._saved_index % sizes[axis], (None,) * axis
    part = _Call(slice_, [source], {"begin": (*before, begin), "end": (*before, begin + 1)})
    return _reshaped(node, _Result(part))


_STEPS = {
    "CloneBackward0": _copied,
    "SelectBackward0": _selected,
    "SliceBackward0": _sliced,
    "SqueezeBackward1": _reshaped,
    "UnsafeViewBackward0": _reshaped,
    "UnsqueezeBackward0": _reshaped,
    "ViewBackward0": _reshaped,
}
