"""Operators that could return a part of their input's memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from torch import Tensor

from ..declare import Op


def own(tensor: Tensor) -> Tensor:
    """Return the tensor in row order, copied if it shares another's memory."""
    if tensor._is_view() and tensor.is_contiguous():
        return tensor.clone()
    return tensor.contiguous()


def may_share(op: Op) -> Op:
    """Let an operator copy what its body would share, as MXNet's does.

    The sharing form is the variant ``"view"``: a prepared graph, where nobody writes between two
    steps, runs it for free.
    """
    function = op.function
    op.variant("view")(lambda attrs: partial(function, **attrs))
    op.function = op.kernel = _copying(function)
    return op


def in_row_order(op: Op) -> Op:
    """Let results have memory of their own in row order, of which parts are views.

    Torch's factorizations return columns side by side.
    """
    op.function = op.kernel = _copying(op.function)
    return op


def _copying(function: Callable) -> Callable:
    @wraps(function)
    def copying(*tensors: Tensor, **attrs: Any) -> Any:
        made = function(*tensors, **attrs)
        if type(made) is tuple:
            return tuple([own(t) for t in made])
        return made.clone() if made is tensors[0] else own(made)

    return copying
