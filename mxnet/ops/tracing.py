"""Whether kernels are being recorded as a program that will run on other values.

A recorded kernel must not choose by values: no shortcut for data that happens to be small, no
array whose size follows from a count. Kernels with such choices ask `is_traced` and take a form
with fixed sizes instead.
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
    """Return whether the kernels that run now are recorded for other values."""
    return _active.get() or torch.compiler.is_compiling()


@contextmanager
def tracing() -> Iterator[None]:
    """Have kernels take forms that do not depend on values."""
    token = _active.set(True)
    try:
        yield
    finally:
        _active.reset(token)


def check_values(condition: Tensor, error: Exception) -> None:
    """Raise an error unless a condition holds; a recorded program checks it when it runs."""
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
    """Repeat ``state = step(*state, *constants)`` while a condition holds, as one recorded loop."""
    return torch.ops.higher_order.while_loop(holds, step, tuple(state), tuple(constants))
