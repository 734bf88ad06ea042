"""Fused convolutions on weights that are packed once.

    Convolution(x, w, b)                        =>  F(x, w, b)
    BatchNorm(F(x, w, b), gamma, beta, ..)      =>  F(x, w, b, gamma, beta, ..)
    F(x, w, ..) + y   or   y + F(x, w, ..)      =>  F(x, w, .., y)
    relu(F(..))                                 =>  F(.., epilogue="relu")
    F(x, check_data) -> relu -> F(check_data)   =>  F(x, check_data) -> relu -> F

F is `_fused_convolution`, for inference. Its kernel folds the normalization into weight and bias,
caches them in oneDNN's format until one of the arrays changes, and fuses the addition and
activation. The result of a fused convolution is finite, or the program falls back to plain kernels.
Results of operators with the fact `keeps_finite` are then finite too and not checked again.

In training, two-dimensional convolutions compute with channels last in memory (`channels_last`).
Otherwise oneDNN would reorder the data and result of every convolution; here only the data of the
first one is copied, and later operators keep the memory format.
"""

from __future__ import annotations

from ...ops.fused.convolution import convolution_channels_last, fused_convolution
from ...ops.nn.convolution import CHANNELS_LAST, convolution
from ...ops.nn.normalization import batch_norm, batch_norm_v1, sync_batch_norm
from ...ops.tensor.arithmetic import broadcast_add, elemwise_add
from ..node import Node
from ..rewrite import Match, Pattern, Rule, Table, make_node, named_inputs, rewrite
from ..typed_graph import TypedGraph

AFTER_ADDITION = frozenset({"relu"})  # activations that oneDNN can apply after a sum


def _prepare(match: Match) -> Node | None:
    node = match.root
    inputs, attrs = named_inputs(node), node.typed
    if any(e.node.op is not None for name, e in inputs.items() if name != "data"):
        return None  # computed weights change with every call
    if attrs["layout"] in CHANNELS_LAST:
        return None
    return make_node(fused_convolution, node.name, inputs, attrs)


def _normalize(match: Match) -> Node | None:
    node, conv = match.root, match["conv"]
    inputs, attrs = named_inputs(node), node.typed
    parameters = {name: e for name, e in inputs.items() if name != "data"}
    if any(e.node.op is not None for e in parameters.values()):
        return None
    more = {"normalized": True, "eps": attrs["eps"], "fix_gamma": attrs["fix_gamma"]}
    inputs = {**named_inputs(conv), **parameters}
    return make_node(fused_convolution, node.name, inputs, {**conv.typed, **more})


def _add(match: Match) -> Node | None:
    node, conv = match.root, match["conv"]
    lhs, rhs = node.inputs
    first, other = (lhs, rhs) if lhs.node is conv else (rhs, lhs)
    shape, other_shape = match.shape_of(first), match.shape_of(other)
    if shape is not None and other_shape is not None and shape != other_shape:
        return None
    kind = "same_shape" if node.op is elemwise_add else "broadcast"
    inputs = {**named_inputs(conv), "other": other}
    return make_node(fused_convolution, node.name, inputs, {**conv.typed, "addition": kind})


def _activate(match: Match) -> Node | None:
    node, conv = match.root, match["conv"]
    epilogue = node.epilogue
    if epilogue is None or node.outputs != 1:
        return None
    if conv.typed["addition"] != "none" and epilogue.name not in AFTER_ADDITION:
        return None
    more = {"epilogue": epilogue.name, "constants": epilogue.constants}
    return make_node(fused_convolution, node.name, named_inputs(conv), {**conv.typed, **more})


def _is_bare(node: Node) -> bool:
    attrs = node.typed
    return not attrs["normalized"] and attrs["addition"] == attrs["epilogue"] == "none"


def _takes_addition(node: Node) -> bool:
    return node.typed["addition"] == node.typed["epilogue"] == "none"


def _takes_epilogue(node: Node) -> bool:
    return node.typed["epilogue"] == "none"


def normalizes_channels(node: Node) -> bool:
    """Return whether a normalization is over channels of images, with one output."""
    return node.outputs == 1 and node.typed.get("axis", 1) == 1


NORMS = (batch_norm, batch_norm_v1, sync_batch_norm)
ADDITIONS = (broadcast_add, elemwise_add)
BARE = Pattern(fused_convolution, "conv", alone=True, when=_is_bare)
OPEN_TO_ADDITION = Pattern(fused_convolution, "conv", alone=True, when=_takes_addition)
OPEN_TO_EPILOGUE = Pattern(fused_convolution, "conv", alone=True, when=_takes_epilogue)

CONVOLUTIONS = (convolution, fused_convolution)
# Convolutions whose weights are inputs of the graph are prepared.
pack_convolutions = Table(
    "pack_convolutions",
    Rule("pack_convolution", Pattern(convolution), _prepare),
    around=CONVOLUTIONS,
)
# Normalizations whose parameters are inputs of the graph are folded into the weights.
fold_batch_norm = Table(
    "fold_batch_norm",
    Rule("fold_batch_norm", Pattern(NORMS, when=normalizes_channels, data=BARE), _normalize),
    around=CONVOLUTIONS,
)
# Additions and activations run while convolving.
fuse_pointwise = Table(
    "fuse_pointwise",
    Rule("fuse_addition", Pattern(ADDITIONS, lhs=OPEN_TO_ADDITION), _add),
    Rule("fuse_addition", Pattern(ADDITIONS, rhs=OPEN_TO_ADDITION), _add),
    Rule(
        "fuse_activation",
        Pattern(lambda op: op.epilogue_rule is not None, data=OPEN_TO_EPILOGUE),
        _activate,
    ),
    around=CONVOLUTIONS,
)


def _is_suitable(node: Node) -> bool:
    return len(node.typed["kernel"]) == 2 and node.typed["layout"] not in CHANNELS_LAST


def _lay_out(match: Match) -> Node:
    node = match.root
    return make_node(convolution_channels_last, node.name, named_inputs(node), node.typed)


LAY_OUT = [Rule("channels_last", Pattern(convolution, when=_is_suitable), _lay_out)]


def channels_last(graph: TypedGraph) -> TypedGraph:
    """Convert the data and weights of convolutions to channels-last memory format."""
    return rewrite(graph, LAY_OUT)


def _finite_nodes(graph: TypedGraph) -> set[Node]:
    """Return the nodes whose results are known to be finite."""
    finite: set[Node] = set()
    for node in graph.nodes:
        if node.op is None or node.subgraphs:
            continue
        is_kept = node.op.facts.keeps_finite and all(e.node in finite for e in node.inputs)
        if node.op is fused_convolution or is_kept:
            finite.add(node)
    return finite


def drop_finite_checks(graph: TypedGraph) -> TypedGraph:
    """Remove the checks of inputs that are known to be finite."""
    if not any(node.op is fused_convolution for node in graph.nodes):
        return graph
    finite = _finite_nodes(graph)

    def drop(match: Match) -> Node | None:
        node = match.root
        inputs = named_inputs(node)
        needed = {
            f"check_{name}": node.typed[f"check_{name}"] and match.origin(e.node) not in finite
            for name, e in inputs.items()
            if name in ("data", "other")
        }
        attrs = {**node.typed, **needed}
        if attrs == node.typed:
            return None
        return make_node(fused_convolution, node.name, inputs, attrs)

    return rewrite(graph, [Rule("drop_finite_check", Pattern(fused_convolution), drop)])
