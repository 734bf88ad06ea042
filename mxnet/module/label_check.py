"""A look at the labels of the first training batches, for heads that compute a softmax loss."""

from __future__ import annotations

import math
from typing import Any

from ..ops import registry
from ..range_check import RangeCheck
from ..symbol import Symbol

__all__ = ["LabelCheck"]


class LabelCheck:
    """Warns once if labels of `SoftmaxOutput` heads are of no class.

    Parameters
    ----------
    symbol : Symbol
        The network.
    label_names : list of str
        Its labels.
    """

    def __init__(self, symbol: Symbol, label_names: list[str]) -> None:
        op = registry.get("SoftmaxOutput")
        self._heads: list[tuple[int, str, dict[str, Any], RangeCheck]] = []
        for i, head in enumerate(symbol._heads):
            if head.node.op is not op or head.node.inputs[1].node.name not in label_names:
                continue
            check = RangeCheck(
                f"SoftmaxOutput {head.node.name!r}",
                "labels",
                "classes",
                allow_negative=True,
                effect="belongs to no class",
            )
            label = head.node.inputs[1].node.name
            attrs = op.complete(op.parse(head.node.attrs))
            self._heads.append((i, label, attrs, check))

    @property
    def is_active(self) -> bool:
        """Whether the next batch is checked."""
        return any(check.is_active for *_, check in self._heads)

    def __call__(self, labels: dict[str, Any], output_shapes: list[tuple[int, ...]]) -> None:
        """Check the labels of a batch."""
        for i, name, attrs, check in self._heads:
            shape, label = output_shapes[i], labels.get(name)
            if label is None or label.shape == shape or not check.is_active:
                continue  # there are none, or they are probabilities
            ignore = attrs["ignore_label"] if attrs["use_ignore"] else None
            check(label, _count_classes(shape, attrs), ignore)


def _count_classes(shape: tuple[int, ...], attrs: dict[str, Any]) -> int:
    if attrs["multi_output"]:
        return shape[1]
    return shape[-1] if attrs["preserve_shape"] else math.prod(shape[1:])
