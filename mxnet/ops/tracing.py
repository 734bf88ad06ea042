"""Tracing of kernels as a program for different values.

A traced kernel must not depend on values: no shortcuts for some data, no arrays of data-dependent
sizes. Such kernels check `is_traced` and use a form with fixed sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from ..torch_private import assert_async

_active: ContextVar[bool] = ContextVar("traced", default=False)


def is_traced() -> bool:
    """Return whether kernels are being traced."""
    return _active.get() or torch.compiler.is_compiling()


@contextmanager
def tracing() -> Iterator[None]:
    """Return a scope in which kernels do not depend on values."""
    token = _active.set(True)
    try:
        yield
    finally:
        _active.reset(token)


def check_values(condition: Tensor, error: Exception) -> None:
    """Raise unless a condition holds; a traced program checks it at run time."""
    if is_traced():
        assert_async(condition, str(error))
    elif not condition:
        raise error


def repeat_while(
    holds: Callable[..., Tensor],
    step: Callable[..., tuple[Tensor, ...]],
    state: Sequence[Tensor],
    constants: Sequence[Tensor] = (),
) -> tuple[Tensor, ...]:
    """Repeat ``state = step(*state, *constants)`` while a condition holds, as one traced loop."""
    return torch.ops.higher_order.while_loop(holds, step, tuple(state), tuple(constants))
