"""Nodes that hold the graph of one layer (`Facts.holds_layer`), taken apart.

The files of MXNet's oneDNN backend have them: a convolution or a linear transformation, then
perhaps a normalization, an activation, the addition of another array, one more activation. Inputs
are those of the graph, then both ends of the range of each that is an integer array.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from ...ops.declare import Epilogue
from ...ops.fused.int8.layers import int8_convolution, int8_dense
from ...ops.nn.convolution import convolution
from ...ops.nn.dense import fully_connected
from ...ops.nn.normalization import batch_norm
from ...ops.quantization.conversions import STEPS
from ...ops.tensor.arithmetic import elemwise_add
from ..node import Entry, Node
from ..patterns import named_inputs
from .lower_int8 import NORMALIZED_ORDERS, Lowering, Made, Scale, calibrated_scale

HELD = {convolution: int8_convolution, fully_connected: int8_dense}
NORM = ("gamma", "beta", "moving_mean", "moving_var")
RANGED = ("data", "weight", "bias")  # the order of stored ranges


class HeldLayer(NamedTuple):
    """A layer, the normalization of its result, and the functions that follow.

    `outer` has the entry that each variable of the inner graph stands for, `ends` the ranges.
    """

    layer: Node
    norm: Node | None
    rest: list[Node]
    outer: dict[Node, Entry]
    ends: list[Entry]

    def inputs(self) -> dict[str, Entry]:
        """Return the inputs of layer and normalization by name, with the ranges of weights."""
        found = {name: self.outer[e.node] for name, e in named_inputs(self.layer).items()}
        if self.norm is not None:
            names = named_inputs(self.norm)
            found.update({name: self.outer[names[name].node] for name in NORM})
        if self.has_integers:
            for i, name in enumerate(name for name in RANGED if name in found):
                found[f"min_{name}"], found[f"max_{name}"] = self.ends[2 * i : 2 * i + 2]
        return found

    @property
    def has_integers(self) -> bool:
        """Whether weights are integers with ranges: then all inputs of the layer have one."""
        return self.layer.op is fully_connected and len(self.ends) == 2 * len(self.layer.inputs)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of layer and normalization."""
        found = {**self.layer.typed, "stored": self.has_integers}
        if self.norm is not None:
            found.update(normalized=True, eps=self.norm.typed["eps"])
            found["fix_gamma"] = self.norm.typed["fix_gamma"]
        return found

    def added(self, addition: Node) -> Entry:
        """Return what an addition adds to the result."""
        return next(self.outer[e.node] for e in addition.inputs if e.node in self.outer)


def held_layer(node: Node) -> HeldLayer | None:
    """Take a node apart; None if its graph is not the chain that it should be."""
    if len(node.subgraphs) != 1 or len(node.subgraphs[0].heads) != 1:
        return None
    body = node.subgraphs[0]
    count, chain = len(body.variables), [n for n in body.nodes if n.op is not None]
    if not chain or chain[0].op not in HELD or body.heads[0][:2] != (chain[-1], 0):
        return None
    if len(node.inputs) < count or not all(_reads_once(b, a) for a, b in pairwise(chain)):
        return None
    norm = next((n for n in chain[1:2] if n.op is batch_norm), None)
    if not _is_complete(chain[0]) or (norm is not None and not _normalizes(norm, chain[0])):
        return None
    outer = dict(zip(body.variables, node.inputs, strict=False))
    rest = chain[1 if norm is None else 2 :]
    return HeldLayer(chain[0], norm, rest, outer, list(node.inputs[count:]))


def _is_complete(layer: Node) -> bool:
    return len(layer.inputs) == (2 if layer.typed["no_bias"] else 3)


def _normalizes(norm: Node, layer: Node) -> bool:
    """Return whether a normalization is that of a layer's channels."""
    is_first = len(norm.inputs) == 5 and norm.inputs[0].node is layer
    return is_first and norm.typed["axis"] == 1


def _reads_once(node: Node, before: Node) -> bool:
    """Return whether a node reads variables and, once, the result before it."""
    return [e[:2] for e in node.inputs if e.node.op is not None] == [(before, 0)]


def rectifies(node: Node, end: float | None = None) -> bool:
    """Return whether a node only sets negative numbers to 0; numbers from `end` on do not count."""
    epilogue = node.epilogue
    if epilogue is not None and epilogue.name == "clip":
        low, high = epilogue.constants
        return low == 0 and end is not None and high >= end * (1 - 1e-6)
    return epilogue == Epilogue("relu")


def lower_held(walk: Lowering, node: Node) -> Made:
    """Take a layer out of the node that holds it, if its data and its result have known ranges."""
    parts = held_layer(node)
    if parts is None or not node.typed["quantized"]:
        return None
    is_real = node.typed["enable_float_output"]
    scale = None if is_real else calibrated_scale(node.typed, STEPS, "auto")
    data = walk.value_at(parts.outer[parts.layer.inputs[0].node])
    if data is None or (scale is None and not is_real):
        return None
    if parts.layer.typed.get("layout") not in NORMALIZED_ORDERS:
        return None
    attrs = {**parts.attributes(), "data_step": data.step, "data_zero": data.zero}
    attrs["channel_wise"] = node.typed["channel_wise_quantize"] is not False
    given = {k: e for k, e in parts.inputs().items() if k not in ("data", "min_data", "max_data")}
    inputs = {"data": data.entry, **{k: walk.mapped(e) for k, e in given.items()}}
    return _finish(walk, node, parts, inputs, attrs, scale)


def _finish(
    walk: Lowering,
    node: Node,
    parts: HeldLayer,
    inputs: dict[str, Entry],
    attrs: dict[str, Any],
    scale: Scale | None,
) -> Made:
    """Fold into a layer what its kernel computes; the rest runs on real numbers."""
    op, rest = HELD[parts.layer.operator], list(parts.rest)
    end = None if scale is None else scale.end
    relu = bool(rest) and rectifies(rest[-1], end)
    inner = rest[:-1] if relu else rest
    if not inner:
        attrs["relu"] = relu
    elif scale is not None and [n.op for n in inner] == [elemwise_add] and op is int8_convolution:
        other = walk.value_at(parts.added(inner[0]))
        if other is not None:
            attrs.update(relu=relu, adds=True, other_step=other.step, other_zero=other.zero)
            inputs["other"], inner = other.entry, []
    if inner:
        real = _run_rest(walk, node, parts, walk.real_layer(op, inputs, attrs, node))
        return real if scale is None else walk.rounded(real, scale, node)
    if scale is None:
        return walk.real_layer(op, inputs, attrs, node)
    return walk.layer(op, inputs, attrs, scale, node)


def _run_rest(walk: Lowering, node: Node, parts: HeldLayer, real: Entry) -> Entry:
    """Return the result of the functions after a layer."""
    for each in parts.rest:
        inputs = []
        for entry in each.inputs:
            outer = parts.outer.get(entry.node)
            value = None if outer is None else walk.value_at(outer)
            if value is not None:
                inputs.append(walk.real(value, node))
            else:
                inputs.append(real if outer is None else walk.mapped(outer))
        real = walk.place(each.copy(inputs), node)
    return real
