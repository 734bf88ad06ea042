"""Checks of labels and indices in the first training batches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..graph.node import Node
from ..io.range_check import RangeCheck
from ..symbol import Symbol

__all__ = ["InputCheck"]


class InputCheck:
    """Warns once if labels of output layers or indices of embeddings are out of range.

    Parameters
    ----------
    symbol : Symbol
        The network.
    names : list of str
        Names of its inputs: data and labels.
    """

    def __init__(self, symbol: Symbol, names: list[str]) -> None:
        self._heads: list[tuple[int, str, dict[str, Any], RangeCheck]] = []
        self._tables: list[tuple[str, int, RangeCheck]] = []
        heads = {head.node: i for i, head in enumerate(symbol._heads)}
        for node in symbol._graph.nodes:
            name = _index_input(node)
            if name is None or name not in names:
                continue
            op = node.operator
            settings, layer = op.complete(op.parse(node.attrs)), f"{op.name} {node.name!r}"
            if not op.facts.loss:
                check = RangeCheck(layer, "indices", "rows", allow_negative=True)
                self._tables.append((name, settings["input_dim"], check))
            elif node in heads:
                effect = "belongs to no class"
                check = RangeCheck(layer, "labels", "classes", allow_negative=True, effect=effect)
                self._heads.append((heads[node], name, settings, check))

    @property
    def is_active(self) -> bool:
        """Whether the next batch is checked."""
        return any(check.is_active for *_, check in (*self._heads, *self._tables))

    def __call__(self, inputs: Mapping[str, Any], output_shapes: list[tuple[int, ...]]) -> None:
        """Check a batch."""
        for i, name, settings, check in self._heads:
            shape, label = output_shapes[i], inputs.get(name)
            if label is None or label.shape == shape or not check.is_active:
                continue  # no labels, or probabilities
            ignore = settings["ignore_label"] if settings["use_ignore"] else None
            check(label, _count_classes(shape, settings), ignore)
        for name, rows, check in self._tables:
            if name in inputs and check.is_active:
                check(inputs[name], rows)


def _index_input(node: Node) -> str | None:
    """Return the name of a node's variable of indices, or None."""
    if node.op is None or node.operator.facts.index_input is None:
        return None
    by_name = dict(zip(node.input_names, node.inputs, strict=True))
    return by_name[node.operator.facts.index_input].node.name


def _count_classes(shape: tuple[int, ...], settings: dict[str, Any]) -> int:
    if settings["multi_output"]:
        return shape[1]
    return shape[-1] if settings["preserve_shape"] else math.prod(shape[1:])
