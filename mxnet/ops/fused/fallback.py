"""When a specialized kernel cannot promise an operator's results, it asks for the plain one."""

from __future__ import annotations

import math

from torch import Tensor


class Fallback(Exception):
    """A specialized kernel met values for which it differs from its operator.

    Whoever runs the graph runs it again from the start with plain kernels.
    """


def require_finite(tensor: Tensor) -> None:
    """Raise `Fallback` if an element is NaN or infinite."""
    if not math.isfinite(tensor.sum()):
        raise Fallback
