"""Compute attention in one call.

    scores = Q K^T -> softmax -> times V        =>      attention(Q, K, V)

The matrices of scores, one for each head, are never written: less time, and memory that grows with
the length of sequences instead of its square. Found are interleaved projections of transformers
and products of batches of matrices, with scores perhaps scaled by a number.
"""

from __future__ import annotations

from ...ops.fused.attention import fused_attention, fused_self_attention
from ...ops.nn.activation import softmax
from ...ops.nn.sequence import interleaved_matmul_selfatt_qk, interleaved_matmul_selfatt_valatt
from ...ops.tensor.arithmetic import div_scalar, mul_scalar
from ...ops.tensor.products import batch_dot
from ..node import Node
from ..patterns import Match, Pattern, Rule, make_node, rewrite
from ..typed import TypedGraph

LEAST_SCORES = 32 * 32  # of one head; smaller matrices stay in the cache
DIMENSIONS = 3


def fuse_attention(graph: TypedGraph) -> TypedGraph:
    """Replace scores, softmax and weighted sums by attention."""
    return rewrite(graph, RULES)


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
    if "scaled" in match.named:
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
    known = len(shape) == DIMENSIONS and min(shape) > 0 and types[0].dtype.is_floating_point
    return known and shape[1] * shape[2] >= LEAST_SCORES


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
RULES = [
    Rule(
        "fuse_attention",
        Pattern(interleaved_matmul_selfatt_valatt, attention=_weights(SELF_SCORES)),
        _attend_to_self,
    ),
    Rule("fuse_attention", Pattern(batch_dot, when=_multiplies, lhs=_weights(SCORES)), _attend),
    Rule("fuse_attention", Pattern(batch_dot, when=_multiplies, lhs=_weights(SCALED)), _attend),
]
