"""From a model to the parts of its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import symbol as sym
from ...convert.source import Model, Shapes, as_model
from ...gluon import HybridBlock
from ...libinfo import mxnext_version
from ...symbol import Symbol
from .classes import fold_sequences, plan_classes
from .file import FileParts
from .scopes import BlockTracer, Scope
from .steps import Port
from .weights import lay_out


@dataclass
class Draft:
    """A model with the parts of its file, not yet compared."""

    model: Model
    parts: FileParts
    labels: dict[str, tuple] = field(default_factory=dict)
    has_loss: bool = False


def draft_block(
    block: HybridBlock, shapes: Shapes | None, dtypes: Any = None, name: str | None = None
) -> Draft:
    """Return a block's model and the parts of its file."""
    model = as_model(block, shapes=shapes, dtypes=dtypes)
    names = [n.name for n in model.inputs]
    output, scope = BlockTracer(block).run(*(sym.var(n) for n in names))
    symbol = output if isinstance(output, Symbol) else sym.Group(list(output))
    variables = {n.name: n for n in symbol._graph.variables}
    model.symbol, model.inputs = symbol, [variables[n] for n in names if n in variables]
    if scope.kind == "inline":
        scope = Scope("", "unit", "Model", items=[scope])
    scope.title = name or scope.title or "Model"
    return draft(model, scope, type(block).__name__)


def draft_symbol(
    symbol: Any, params: Any, shapes: Shapes | None, dtypes: Any = None, name: str | None = None
) -> Draft:
    """Return a symbol's model and the parts of its file."""
    raise NotImplementedError


def draft(model: Model, scope: Scope, source: str) -> Draft:
    """Return the parts of the file of a model whose nodes are in scopes."""
    port = Port(model)
    root = fold_sequences(port.build(scope))
    classes = plan_classes(root, scope.title, _count_classes(port))
    parts = FileParts(
        scope.title, source, classes, lay_out(root), port.functions, version=mxnext_version
    )
    return Draft(model, parts)


def _count_classes(port: Port) -> int | None:
    """Return the number of scores, if the model gives a row of them for each sample."""
    heads = port.model.graph.heads
    shape = port.shapes[heads[0].node][heads[0].index]
    return shape[1] if len(heads) == 1 and len(shape) == 2 else None


__all__ = ["Draft", "Mapping", "Sequence", "draft", "draft_block"]
