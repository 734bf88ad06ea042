"""Rewrites a graph to compute layers in 8-bit integers.

Before: ``data -> Convolution -> Activation -> softmax``. After: ``data -> quantize_v2 ->
quantized_conv -> requantize -> quantized_act -> dequantize -> softmax``. Operators declare their
8-bit form by `Facts.quantizes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from ...ops import registry
from ...ops.declare import Epilogue, Op
from ...ops.fused.convolution import fold_batch_norm
from ...ops.nn.convolution import CHANNELS_LAST, convolution
from ...ops.nn.normalization import batch_norm
from ...ops.quantization.conversions import INT32_STEPS, dequantize, quantize_v2, requantize
from ...ops.quantization.int8 import EIGHT_BITS, WEIGHT_STEPS
from ...ops.quantization.subgraph_layers import (
    fused_attention_scores,
    fused_attention_values,
    fused_convolution_layer,
    fused_dense_layer,
)
from .. import Entry
from ..graph import Graph, interpret
from ..node import Node
from ..passes.convolutions import normalizes_channels
from ..rewrite import Match, Pattern, Rule, rewrite
from ..typed_graph import INFERENCE, TypedGraph

ATTENTION = (fused_attention_scores, fused_attention_values)
FUSED = (fused_convolution_layer, fused_dense_layer, *ATTENTION)
REQUANTIZE, QUANTIZE, QUANTIZED = "requantize_", "_quantize", "quantized_"


@cache
def quantized_operators() -> dict[Op, Op]:
    """Return the 8-bit operator of each float operator that has one."""
    pairs = ((op.facts.quantizes, op) for op in registry.operators())
    return {source: op for source, op in pairs if source is not None}


def operator_names(op: Op) -> frozenset[str]:
    """Return all public names of an operator."""
    return frozenset(name for name in registry.names() if registry.find(name) is op)


class EightBits(NamedTuple):
    """An 8-bit entry and the two ends of its range."""

    data: Entry
    low: Entry
    high: Entry


@dataclass
class Value:
    """A value of the new graph as floats, as 8-bit integers, or both."""

    origin: Entry
    real: Entry | None = None
    integers: EightBits | None = None

    @property
    def is_computed(self) -> bool:
        """Whether a layer computes the integers; otherwise they are quantized for a consumer."""
        return self.integers is not None and self.integers.data.node.op not in (quantize_v2, None)


@dataclass
class Quantization:
    """A conversion of a graph.

    Parameters
    ----------
    parameters
        Names of the variables to quantize offline.
    out_type
        The type of quantized data, or "auto".
    full
        Whether layers that do not compute, such as pooling, also quantize their inputs.
    fuse_relu
        Whether a layer's unsigned result replaces the following relu.
    excluded
        Names of nodes to keep in float.
    excluded_ops
        Names of operators to keep in float.
    is_calibrated
        Whether ranges of results will be set, so that fused layers can return 8 bits.
    """

    parameters: Collection[str]
    out_type: str
    full: bool
    fuse_relu: bool
    excluded: Collection[str] = ()
    excluded_ops: Collection[str] = ()
    is_calibrated: bool = True
    quantized: set[str] = field(default_factory=set)
    _uses: Counter = field(default_factory=Counter)

    def convert(self, graph: Graph) -> list[Entry]:
        """Return the heads of the quantized graph; outputs are floats."""
        self._uses = Counter((e.node, e.index) for n in graph.nodes for e in n.inputs)
        self._uses.update((e.node, e.index) for e in graph.heads)
        values = interpret(graph, self._variable, self._apply)
        return [self._real(value) for value in values]

    # -- values -------------------------------------------------------------------------------

    def _variable(self, node: Node) -> Value:
        return Value(Entry(node), real=Entry(node))

    def _real(self, value: Value) -> Entry:
        if value.real is None:
            assert value.integers is not None  # at least one exists
            name = f"{value.origin.node.name}_dequantize"
            value.real = Entry(Node(dequantize, name, {}, list(value.integers)))
        return value.real

    def _integers(self, value: Value) -> EightBits:
        if value.integers is None:
            node = value.origin.node
            name = f"{_output_name(value.origin)}{QUANTIZE}"
            if node.op is None and node.name in self.parameters:
                self.quantized.add(node.name)
                ends = (Entry(Node(None, f"{name}_{end}")) for end in ("min", "max"))
                value.integers = EightBits(Entry(Node(None, name)), *ends)
            else:
                attrs = {"out_type": self.out_type}
                rounding = Node(quantize_v2, name, attrs, [self._real(value)])
                value.integers = EightBits(*(Entry(rounding, i) for i in range(3)))
        return value.integers

    # -- nodes --------------------------------------------------------------------------------

    def _apply(self, node: Node, inputs: list[Value]) -> list[Value]:
        if self._follows_layer(node, inputs):
            return [self._rename(node, inputs[0])]
        if node.op in FUSED and not node.typed["quantized"] and node.name not in self.excluded:
            return [self._fused(node, inputs)]
        op = quantized_operators().get(node.operator)
        if op is None or not self._wants(node, op, inputs):
            new = node.copy(self._reals(node, inputs))
            return [Value(Entry(node, i), real=Entry(new, i)) for i in range(node.outputs)]
        arrays = [self._integers(value) for value in inputs]
        entries = [a.data for a in arrays] + [end for a in arrays for end in (a.low, a.high)]
        new = Node(op, f"{QUANTIZED}{node.name}", dict(node.attrs), entries)
        if op.facts.accumulates:
            sums = [Entry(new, i) for i in range(3)]
            new = Node(requantize, f"{REQUANTIZE}{node.name}", {"out_type": self.out_type}, sums)
        return [Value(Entry(node), integers=EightBits(*(Entry(new, i) for i in range(3))))]

    def _fused(self, node: Node, inputs: list[Value]) -> Value:
        """Pass 8-bit data and an 8-bit summand to a fused layer; its weights stay floats."""
        is_all = node.op in ATTENTION or node.typed["with_sum"]
        positions = sorted({0, len(inputs) - 1}) if is_all else [0]
        arrays = {i: self._integers(inputs[i]) for i in positions}
        entries = [arrays[i].data if i in arrays else self._real(v) for i, v in enumerate(inputs)]
        entries += [end for a in arrays.values() for end in (a.low, a.high)]
        attrs = {**node.attrs, "quantized": "true"}
        if node.op is fused_dense_layer:
            attrs["channel_wise_quantize"] = "True"  # weights are still floats
        new = Node(node.op, f"{QUANTIZED}{node.name}", attrs, entries, subgraphs=node.subgraphs)
        if not self.is_calibrated:
            sums = [Entry(new, i) for i in range(3)]
            new = Node(requantize, f"{REQUANTIZE}{node.name}", {"out_type": "int8"}, sums)
        return Value(Entry(node), integers=EightBits(*(Entry(new, i) for i in range(3))))

    def _reals(self, node: Node, inputs: list[Value]) -> list[Entry]:
        """Return float inputs; mutated variables keep their versions."""
        pairs = zip(inputs, node.inputs, strict=True)
        return [e if v.origin.node.op is None else self._real(v) for v, e in pairs]

    def _wants(self, node: Node, op: Op, inputs: list[Value]) -> bool:
        if node.name in self.excluded or operator_names(node.operator) & set(self.excluded_ops):
            return False
        fits = op.facts.quantizes_when
        if node.outputs != 1 or (fits is not None and not fits(node.typed)):
            return False
        layer = [v for v in inputs[1:] if v.origin.node.op is None]
        if op.facts.accumulates and layer:  # weights must be known before
            return all(v.origin.node.name in self.parameters for v in layer)
        return self.full or all(v.is_computed for v in inputs)

    def _follows_layer(self, node: Node, inputs: list[Value]) -> bool:
        """Return whether a node is a relu that a layer's unsigned result replaces.

        The range ends at the largest value in calibration, so a clip from 0 is one too.
        """
        if not self.fuse_relu or self.out_type == "int8" or node.name in self.excluded:
            return False
        if not _is_relu(node) or inputs[0].integers is None or inputs[0].real is not None:
            return False
        maker, entry = inputs[0].integers.data.node, node.inputs[0]
        alone = self._uses[entry.node, entry.index] == 1
        return alone and maker.op is requantize and "min_calib_range" not in maker.attrs

    def _rename(self, node: Node, value: Value) -> Value:
        """Make a requantization unsigned, and name it after the relu."""
        sums = self._integers(value).data.node.inputs
        narrowing = Node(requantize, f"{REQUANTIZE}{node.name}", {"out_type": "uint8"}, sums)
        return Value(Entry(node), integers=EightBits(*(Entry(narrowing, i) for i in range(3))))


def _output_name(entry: Entry) -> str:
    """Return MXNet's name of an output here; outputs without names are numbered."""
    node = entry.node
    if node.op is None or node.op.names_of_outputs(node.typed) is not None:
        return node.output_names()[entry.index]
    return f"{node.name}_{entry.index}"


def _is_relu(node: Node) -> bool:
    epilogue = node.epilogue
    if epilogue is not None and epilogue.name == "clip":
        low, high = epilogue.constants
        return low == 0 < high
    return epilogue == Epilogue("relu")


def calibrated_outputs(nodes: Iterable[Node]) -> dict[Node, str]:
    """Return the nodes that need a calibrated range, and the float output of each range.

    The range of `quantize_v2` is that of its input, of `requantize` that of its layer.
    """
    nodes, outputs = list(nodes), {}
    widened = {e.node for node in nodes if node.op is requantize for e in node.inputs}
    for node in nodes:
        if node.op is quantize_v2:
            entry = node.inputs[0]
            outputs[node] = entry.node.output_names()[entry.index]
        elif node.op is requantize:
            outputs[node] = f"{node.name.removeprefix(REQUANTIZE)}_output"
        elif node.op in FUSED and node.typed["quantized"] and node not in widened:
            outputs[node] = f"{node.name.removeprefix(QUANTIZED)}_output"
    return outputs


def set_ranges(graph: Graph, ranges: Mapping[str, tuple[float, float]]) -> list[Entry]:
    """Return the heads of a quantized graph with calibrated ranges, given by output name."""
    outputs = calibrated_outputs(graph.nodes)

    def apply(node: Node, inputs: list[Entry]) -> list[Entry]:
        copy = node.copy(inputs)
        ends = ranges.get(outputs.get(node, ""))
        if ends is not None:
            copy.set_attribute("min_calib_range", f"{ends[0]:.9g}")
            copy.set_attribute("max_calib_range", f"{ends[1]:.9g}")
        return [Entry(copy, i) for i in range(node.outputs)]

    return interpret(graph, Entry, apply)


# -- parameters -------------------------------------------------------------------------------


def fold_parameters(
    graph: Graph, params: Mapping[str, Tensor]
) -> tuple[list[Entry], dict[str, Tensor]]:
    """Fold normalizations into convolutions; return the graph and the changed parameters.

    The convolution gets the position and name of the normalization.
    """
    folded: dict[str, Tensor] = {}

    def fold(match: Match) -> Node | None:
        node, conv = match.root, match["conv"]
        entries = [*conv.inputs[1:], *node.inputs[1:]]
        if match.origin(conv).op is not convolution:  # already folded
            return None
        if not all(e.node.op is None and e.node.name in params for e in entries):
            return None
        if any(match.graph.uses[e.node, 0] != 1 for e in conv.inputs[1:]):
            return None
        arrays = [params[e.node.name] for e in entries]
        weight, bias = arrays[0], None if conv.typed["no_bias"] else arrays[1]
        gamma, beta, mean, var = arrays[-4:]
        scale = None if node.typed["fix_gamma"] else gamma
        inputs = list(conv.inputs[:3])
        if bias is None:
            inputs.append(Entry(Node(None, f"{conv.name}_bias")))
        new = fold_batch_norm(weight, bias, scale, beta, mean, var, node.typed["eps"])
        folded.update(zip((e.node.name for e in inputs[1:]), new, strict=True))
        attrs = {key: value for key, value in conv.attrs.items() if key != "no_bias"}
        return Node(convolution, node.name, attrs, inputs, extra=dict(conv.extra))

    conv = Pattern(convolution, "conv", alone=True, when=_has_channels_first)
    norm = Pattern(batch_norm, when=normalizes_channels, data=conv)
    rules = [Rule("fold_batch_norm", norm, fold)]
    return rewrite(TypedGraph(graph.heads, INFERENCE), rules).heads, folded


def _has_channels_first(node: Node) -> bool:
    return node.typed["layout"] not in CHANNELS_LAST


@dataclass(frozen=True)
class Storage:
    """Ranges and data types of a model's integers.

    Parameters
    ----------
    filters : whether each filter of a convolution has its own range.
    rows : whether each row of a dense layer's weight has its own range; by default as `filters`.
    wide_bias : whether a bias has 32 bits instead of 8.
    exact : whether weights use only the bits for which this processor's kernels are exact.

    >>> import torch
    >>> Storage().store(torch.tensor([-1, 0.5]))
    (tensor([-127,   64], dtype=torch.int8), tensor([-1.]), tensor([1.]))
    """

    filters: bool = False
    rows: bool | None = None
    wide_bias: bool = False
    exact: bool = False

    def store(self, array: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Quantize an array; return integers and both ends of the range."""
        real = array.detach().float()
        if real.ndim == 1:
            steps = INT32_STEPS if self.wide_bias else EIGHT_BITS
            return _quantize_rows(real, steps, steps, self.wide_bias)
        apart = self.filters if real.ndim > 2 or self.rows is None else self.rows
        steps = WEIGHT_STEPS if self.exact else EIGHT_BITS
        rows = real if apart else real.unsqueeze(0)
        integers, low, high = _quantize_rows(rows, steps, EIGHT_BITS, False)
        return integers.reshape(real.shape), low, high


def _quantize_rows(
    real: Tensor, steps: float, all_steps: float, is_wide: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Quantize each row to `steps`; the range covers all steps of the type."""
    rows = real.flatten(1) if real.ndim > 1 else real.unsqueeze(0)
    largest = rows.abs().amax(1).double()
    scale = torch.where(largest > 0, steps / largest, 0.0)
    integers = (rows.double() * scale.unsqueeze(1)).round_()
    integers = integers.to(torch.int32 if is_wide else torch.int8).reshape(real.shape)
    end = (largest * (all_steps / steps)).float()
    return integers, -end, end
