"""A look at the labels and indices of the first training batches, which MXNet takes as they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..ops import registry
from ..range_check import RangeCheck
from ..symbol import Symbol

__all__ = ["InputCheck"]


class InputCheck:
    """Warns once of labels of `SoftmaxOutput` heads, and indices of `Embedding`, out of range.

    Parameters
    ----------
    symbol : Symbol
        The network.
    names : list of str
        Its inputs: data and labels.
    """

    def __init__(self, symbol: Symbol, names: list[str]) -> None:
        self._heads: list[tuple[int, str, dict[str, Any], RangeCheck]] = []
        self._tables: list[tuple[str, int, RangeCheck]] = []
        loss, table = registry.get("SoftmaxOutput"), registry.get("Embedding")
        for i, head in enumerate(symbol._heads):
            node = head.node
            if node.op is loss and node.inputs[1].node.name in names:
                settings = loss.complete(loss.parse(node.attrs))
                check = RangeCheck(
                    f"SoftmaxOutput {node.name!r}",
                    "labels",
                    "classes",
                    allow_negative=True,
                    effect="belongs to no class",
                )
                self._heads.append((i, node.inputs[1].node.name, settings, check))
        for node in symbol._graph.nodes:
            if node.op is table and node.inputs[0].node.name in names:
                rows = table.parse(node.attrs)["input_dim"]
                check = RangeCheck(
                    f"Embedding {node.name!r}", "indices", "rows", allow_negative=True
                )
                self._tables.append((node.inputs[0].node.name, rows, check))

    @property
    def is_active(self) -> bool:
        """Whether the next batch is checked."""
        return any(each[-1].is_active for each in (*self._heads, *self._tables))

    def __call__(self, inputs: Mapping[str, Any], output_shapes: list[tuple[int, ...]]) -> None:
        """Check a batch."""
        for i, name, settings, check in self._heads:
            shape, label = output_shapes[i], inputs.get(name)
            if label is None or label.shape == shape or not check.is_active:
                continue  # there are none, or they are probabilities
            ignore = settings["ignore_label"] if settings["use_ignore"] else None
            check(label, _count_classes(shape, settings), ignore)
        for name, rows, check in self._tables:
            if name in inputs and check.is_active:
                check(inputs[name], rows)


def _count_classes(shape: tuple[int, ...], settings: dict[str, Any]) -> int:
    if settings["multi_output"]:
        return shape[1]
    return shape[-1] if settings["preserve_shape"] else math.prod(shape[1:])
