"""Planning of recomputation, to train with less memory.

`search_plan` marks the nodes of a symbol with ``__force_mirroring__``; executors and hybridized
blocks recompute them in backward. ``MXNET_BACKWARD_DO_MIRROR=1`` and
``net.hybridize(recompute=...)`` do the same without a symbol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import dtypes
from ..graph.graph import Graph, compose
from ..graph.passes.infer import infer_shapes
from ..graph.passes.recompute import MARK, STAGE, marked_plan, plan_segments
from ..graph.typed_graph import TRAINING, Inputs, TypedGraph
from ..ops.shapes import is_known
from ..symbol import Symbol

__all__ = ["get_cost", "search_plan"]
MEGABYTE = 2**20


def search_plan(
    sym: Symbol,
    ntrial: int = 6,
    type_dict: Mapping[str, Any] | None = None,
    limit: int | None = None,
    **shapes: tuple[int, ...],
) -> Symbol:
    """Return the symbol with nodes marked for recomputation, to reduce the memory of training.

    Parameters
    ----------
    sym : Symbol
        The network; it is not changed.
    ntrial : int
        Accepted for compatibility: all plans are compared.
    type_dict : dict
        Data types by argument.
    limit : int
        Maximum memory of results in megabytes; by default minimized.
    shapes
        Shapes of inputs, enough to infer all others.

    >>> net = mx.sym.Variable("data")
    >>> for i in range(16):
    ...     net = mx.sym.exp(mx.sym.FullyConnected(net, num_hidden=64, name=f"fc{i}"))
    >>> planned = mx.memonger.search_plan(net, data=(4096, 64))
    >>> mx.memonger.get_cost(net, data=(4096, 64)), mx.memonger.get_cost(planned, data=(4096, 64))
    (32, 10)
    """
    typed = _infer_types(sym, type_dict, shapes)
    bytes_kept = None if limit is None else limit * MEGABYTE
    plan = plan_segments(typed, bytes_kept)
    stage_of = {node: i for i, segment in enumerate(plan.segments) for node in segment}
    heads = compose(sym._graph)
    for old, new in zip(typed.nodes, Graph(heads).nodes, strict=True):
        if old in stage_of:
            new.extra = {**new.extra, MARK: "True", STAGE: str(stage_of[old])}
    return Symbol(heads)


def get_cost(
    sym: Symbol, type_dict: Mapping[str, Any] | None = None, **shapes: tuple[int, ...]
) -> int:
    """Return the megabytes of results stored in training, without those marked for recomputation.

    Parameters
    ----------
    sym
        The network.
    type_dict
        Data types by argument; float32 by default.

    >>> net = mx.sym.relu(mx.sym.relu(mx.sym.var("data")))
    >>> mx.memonger.get_cost(net, data=(1024, 1024)) > 0
    True
    """
    return marked_plan(_infer_types(sym, type_dict, shapes)).total // MEGABYTE


def _infer_types(
    sym: Symbol, type_dict: Mapping[str, Any] | None, shapes: Mapping[str, tuple[int, ...]]
) -> TypedGraph:
    graph = sym._graph
    inferred = infer_shapes(graph, shapes)
    known_shapes = {node.name: inferred.values[node][0] for node in graph.variables}
    unknown = [name for name, shape in known_shapes.items() if not is_known(shape)]
    if unknown:
        raise ValueError(
            f"The shapes of {', '.join(shapes) or 'no inputs'} are not enough to infer those of "
            f"{', '.join(unknown)}: pass more of them."
        )
    types = dict.fromkeys(known_shapes, dtypes.to_torch("float32"))
    types.update({n: dtypes.to_torch(t) for n, t in (type_dict or {}).items()})
    return TypedGraph(graph.heads, TRAINING, Inputs(known_shapes, types))
