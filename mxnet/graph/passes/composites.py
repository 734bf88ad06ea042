"""Fusion of several operators into one kernel: attention, and the classification loss.

    scores = Q K^T -> softmax -> times V        =>      attention(Q, K, V)
    mean(-pick(x, label))                       =>      _likelihood_loss(x, label)

The score matrices of the heads are never stored: memory grows linearly with the sequence length.
Patterns are interleaved projections of transformers and batched matrix products, with optionally
scaled scores. The loss is one number per row, without the intermediate column of `pick`.
"""

from __future__ import annotations

from ...ops.fused.attention import fused_attention, fused_self_attention
from ...ops.fused.log_likelihood import likelihood_loss
from ...ops.nn.activation import softmax
from ...ops.nn.sequence import interleaved_matmul_selfatt_qk, interleaved_matmul_selfatt_valatt
from ...ops.tensor.arithmetic import div_scalar, mul_scalar
from ...ops.tensor.indexing import pick
from ...ops.tensor.products import batch_dot
from ...ops.tensor.reduce import mean
from ..node import Node
from ..rewrite import Match, Pattern, Rule, make_node, named_inputs, rewrite
from ..typed_graph import TypedGraph

MIN_SCORES = 32 * 32  # elements per head; smaller matrices stay in the cache
DIMENSIONS = 3


def fuse_attention(graph: TypedGraph) -> TypedGraph:
    """Replace scores, softmax and weighted sums by attention."""
    return rewrite(graph, ATTENTION)


def _attend_to_self(match: Match) -> Node | None:
    root, scores = match.root, match["scores"]
    projected = root.inputs[0]
    if scores.inputs[0][:2] != projected[:2] or scores.typed["heads"] != root.typed["heads"]:
        return None
    if not _is_large(match, scores):
        return None
    inputs = {"queries_keys_values": projected}
    return make_node(fused_self_attention, root.name, inputs, root.typed)


def _attend(match: Match) -> Node | None:
    root, scores = match.root, match["scores"]
    if not _is_large(match, scores):
        return None
    scale = 1.0
    if "scaled" in match.entries:
        scaled = match["scaled"]
        number = scaled.typed["scalar"]
        if scaled.op is div_scalar and not number:
            return None
        scale = 1.0 / number if scaled.op is div_scalar else number
    queries, keys = scores.inputs
    inputs = {"queries": queries, "keys": keys, "values": root.inputs[1]}
    return make_node(fused_attention, root.name, inputs, {"scale": scale})


def _is_large(match: Match, scores: Node) -> bool:
    types = match.graph.types.get(match.origin(scores))
    if types is None or types[0].shape is None or types[0].dtype is None:
        return False
    shape = types[0].shape
    is_known = len(shape) == DIMENSIONS and min(shape) > 0 and types[0].dtype.is_floating_point
    return is_known and shape[1] * shape[2] >= MIN_SCORES


def _is_plain(node: Node) -> bool:
    attrs = node.typed
    options = (attrs["temperature"], attrs["dtype"], attrs["use_length"])
    return attrs["axis"] in (-1, DIMENSIONS - 1) and not any(options)


def _multiplies_by_transpose(node: Node) -> bool:
    return node.typed["transpose_b"] and not node.typed["transpose_a"]


def _multiplies(node: Node) -> bool:
    return not (node.typed["transpose_a"] or node.typed["transpose_b"])


def _weights(scores: Pattern) -> Pattern:
    return Pattern(softmax, alone=True, when=_is_plain, data=scores)


SELF_SCORES = Pattern(interleaved_matmul_selfatt_qk, "scores", alone=True)
SCORES = Pattern(batch_dot, "scores", alone=True, when=_multiplies_by_transpose)
SCALED = Pattern((mul_scalar, div_scalar), "scaled", alone=True, data=SCORES)
ATTENTION = [
    Rule(
        "fuse_attention",
        Pattern(interleaved_matmul_selfatt_valatt, attention=_weights(SELF_SCORES)),
        _attend_to_self,
    ),
    Rule("fuse_attention", Pattern(batch_dot, when=_multiplies, lhs=_weights(SCORES)), _attend),
    Rule("fuse_attention", Pattern(batch_dot, when=_multiplies, lhs=_weights(SCALED)), _attend),
]


def fuse_likelihood(graph: TypedGraph) -> TypedGraph:
    """Fuse the picked log probabilities, their scale and the mean of each row."""
    picked = Pattern(pick, "pick", alone=True, when=_keeps_last_axis)
    scaled = Pattern(mul_scalar, "scaled", alone=True, data=picked)
    return rewrite(graph, [Rule("likelihood", Pattern(mean, when=_is_by_row, data=scaled), _fuse)])


def _keeps_last_axis(node: Node) -> bool:
    attrs = node.typed
    return attrs["axis"] == -1 and attrs["keepdims"] and attrs["mode"] == "clip"


def _is_by_row(node: Node) -> bool:
    attrs = node.typed
    return attrs["axis"] == (0,) and attrs["exclude"] and not attrs["keepdims"]


def _fuse(match: Match) -> Node | None:
    inputs = named_inputs(match["pick"])
    shape = match.shape_of(inputs["data"])
    if shape is None or len(shape) != 2:
        return None
    entries = {"data": inputs["data"], "label": inputs["index"]}
    scale = {"scale": match["scaled"].typed["scalar"]}
    return make_node(likelihood_loss, match.root.name, entries, scale)
