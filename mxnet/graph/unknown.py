"""Operators that a file has and that are not registered here: to look at, not to run."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ..error import MXNetError
from ..ops.declare import Op

__all__ = ["is_unknown", "stand_in"]


def stand_in(name: str, outputs: int) -> Op:
    """Return the record of an operator of which a file says no more than its name."""

    def unknown(*data: Tensor, **attrs: Any) -> Tensor:
        """Raise an error: nobody knows what the operator computes."""
        raise MXNetError(f"Operator {name} is not registered: the model cannot run.")

    op = Op(unknown, (name,), outputs=outputs)
    op.output_rule = lambda *shapes, **attrs: None
    return op


def is_unknown(op: Op | None) -> bool:
    """Return whether an operator only has a name."""
    return op is not None and op.function.__module__ == __name__
