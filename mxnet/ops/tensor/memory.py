"""Operators that could return a part of their input's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..declare import Op


def own(tensor: Tensor) -> Tensor:
    """Return the tensor, copied if it shares another's memory."""
    if tensor._is_view():
        return tensor.clone(memory_format=torch.contiguous_format)
    return tensor


def may_share(op: Op) -> Op:
    """Let an operator copy what its body would share, as MXNet's does.

    The sharing form stays at hand as ``op.shared``: a prepared graph, where nobody writes
    between two steps, runs it for free.
    """
    op.shared = op.function
    op.function = op.kernel = _copying(op.function)
    return op


def _copying(function: Callable) -> Callable:
    def copying(*tensors: Tensor, **attrs: Any) -> Any:
        made = function(*tensors, **attrs)
        if type(made) is tuple:
            return tuple(own(t) for t in made)
        return made.clone(memory_format=torch.contiguous_format) if made._is_view() else made

    return copying
