"""Builds the parts of a ported file from a model."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ... import symbol as sym
from ...error import InvalidValue
from ...gluon import HybridBlock
from ...gluon.parameter import Constant
from ...libinfo import mxnext_version
from ..source import Model, Shapes, as_model, group_outputs
from .classes import fold_sequences, plan_classes
from .scopes import BlockTracer, Scope
from .steps import Port
from .symbol_scopes import nest_symbol_blocks, scope_of_graph
from .text.file import FileParts
from .text.losses import LossWriter, split_losses
from .weights import Layout, lay_out


@dataclass
class Draft:
    """A model with the parts of its file, not yet compared.

    `trainer` is the model with its output layers, if it has some.
    """

    model: Model
    parts: FileParts
    trainer: Model | None = None
    labels: list[str] = field(default_factory=list)
    frozen: list[str] = field(default_factory=list)  # MXNet's names of parameters without gradient


def draft_block(
    block: HybridBlock, shapes: Shapes | None, dtypes: Any = None, name: str | None = None
) -> Draft:
    """Return a block's model and the parts of its file."""
    model = as_model(block, shapes=shapes, dtypes=dtypes)
    names = [n.name for n in model.inputs]
    output, scope = BlockTracer(block).run(*(sym.var(n) for n in names))
    symbol = group_outputs(output)
    variables = {n.name: n for n in symbol._graph.variables}
    model.symbol, model.inputs = symbol, [variables[n] for n in names if n in variables]
    if scope.kind == "inline":
        scope = Scope("", "unit", "Model", items=[scope])
    scope.title = name or scope.title or "Model"
    nest_symbol_blocks(scope, symbol._graph, set(model.params))
    parameters = block.collect_params()
    states = {n.name for n in symbol._graph.auxiliary}
    frozen = [n for n, p in parameters.items() if p.grad_req == "null" and n not in states]
    constants = {n for n, p in parameters.items() if isinstance(p, Constant)}
    frozen = [n for n in frozen if n not in constants]
    parts = _parts(model, scope, type(block).__name__, frozen, constants)
    return Draft(model, parts, frozen=[*frozen, *constants])


def draft_symbol(
    symbol: Any, params: Any, shapes: Shapes | None, dtypes: Any = None, name: str | None = None
) -> Draft:
    """Return a symbol's model and the parts of its file."""
    trainer = as_model(symbol, params, shapes, dtypes)
    split = split_losses(trainer.symbol)
    variables = {n.name: n for n in split.symbol._graph.variables}
    free = [n for n in variables if n not in trainer.arrays and n not in split.labels]
    model = replace(
        trainer,
        symbol=split.symbol,
        inputs=[variables[n] for n in free],
        shapes=_complete_shapes(trainer, free),
        dtypes={n: trainer.dtypes.get(n, torch.float32) for n in free},
    )
    title = name or "Model"
    scope = scope_of_graph(model.graph, title, set(model.params))
    parts = _parts(model, scope, "a symbol")
    if not split.losses:
        return Draft(model, parts)
    port = Port(model)
    names = ["scores"] if len(model.graph.heads) == 1 else [
        f"output{i + 1}" for i in range(len(model.graph.heads))
    ]  # fmt: skip
    parts.extra.append(LossWriter(split, port.shapes, parts.functions).text(names))
    return Draft(model, parts, trainer, split.labels)


def _complete_shapes(model: Model, names: list[str]) -> dict[str, tuple]:
    """Return the shapes of all inputs. Infer those that are not given."""
    arguments = model.symbol.list_arguments()
    known = {n: tuple(a.shape) for n, a in model.arrays.items() if n in arguments}
    known |= {n: s for n, s in model.shapes.items() if n in arguments}
    result, _, _ = model.symbol.infer_shape_partial(**known)
    shapes = dict(zip(arguments, result, strict=True))
    missing = [n for n in names if not shapes.get(n) or 0 in shapes[n]]
    if missing:
        raise InvalidValue(f"the shapes of inputs do not follow: give {', '.join(missing)}.")
    return {n: tuple(shapes[n]) for n in names}


def _parts(
    model: Model,
    scope: Scope,
    source: str,
    frozen: Sequence[str] = (),
    constants: Container[str] = (),
) -> FileParts:
    """Return the parts of the file of a model whose nodes are in scopes."""
    port = Port(model, constants)
    root = fold_sequences(port.build_root(scope))
    classes = plan_classes(root, scope.title, _count_classes(port))
    layout = lay_out(root)
    return FileParts(
        scope.title,
        source,
        classes,
        layout,
        port.functions,
        version=mxnext_version,
        skeletons=port.skeletons,
        factors=_factors(model, layout),
        suppressions=port.suppressions,
        frozen=[p for p, s in layout.sources.items() if s.names and set(s.names) <= set(frozen)],
    )


def _factors(model: Model, layout: Layout) -> dict[str, tuple[float, float]]:
    """Return `lr_mult` and `wd_mult` of the parameters that have them, by their torch names."""
    factors: dict[str, tuple[float, float]] = {}
    extra = {n.name: n.extra for n in model.graph.arguments}
    for path, source in layout.sources.items():
        for name in source.names[:1]:
            pair = [float(extra.get(name, {}).get(k, 1)) for k in ("__lr_mult__", "__wd_mult__")]
            if pair != [1.0, 1.0]:
                factors[path] = (pair[0], pair[1])
    return factors


def _count_classes(port: Port) -> int | None:
    """Return the number of classes, if the model returns a row of scores for each sample."""
    heads = port.model.graph.heads
    shape = port.shapes[heads[0].node][heads[0].index]
    return shape[1] if len(heads) == 1 and len(shape) == 2 else None
