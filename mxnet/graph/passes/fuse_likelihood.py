"""Run the loss of classification in one kernel.

    mean(-pick(x, label))  =>  _likelihood_loss(x, label)

The kernel gives one number for each row, without the column that `pick` makes and `mean` removes.
"""

from __future__ import annotations

from ...ops.fused.likelihood import likelihood_loss
from ...ops.tensor.arithmetic import mul_scalar
from ...ops.tensor.indexing import pick
from ...ops.tensor.reduce import mean
from ..node import Node
from ..patterns import Match, Pattern, Rule, make_node, named_inputs, rewrite
from ..typed import TypedGraph


def fuse_likelihood(graph: TypedGraph) -> TypedGraph:
    """Fuse the picked logarithms, their scale and the mean of each row."""
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
    given = {"data": inputs["data"], "label": inputs["index"]}
    scale = {"scale": match["scaled"].typed["scalar"]}
    return make_node(likelihood_loss, match.root.name, given, scale)
