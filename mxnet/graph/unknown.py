"""Unregistered operators in files, which can be inspected but not run."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ..error import MXNetError
from ..ops.declare import Op

__all__ = ["is_unknown", "stand_in"]


def stand_in(name: str, outputs: int) -> Op:
    """Return a record for an unregistered operator."""

    def unknown(*data: Tensor, **attrs: Any) -> Tensor:
        """Raise: the operator is unknown."""
        raise MXNetError(f"Operator {name} is not registered: the model cannot run.")

    op = Op(unknown, (name,), outputs=outputs)
    op.output_rule = lambda *shapes, **attrs: None
    return op


def is_unknown(op: Op | None) -> bool:
    """Return whether an operator is unregistered."""
    return op is not None and op.function.__module__ == __name__
