"""Whether this thread records and trains. `mxnet.autograd` is the public interface."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Session:
    """One recording; each recorded array knows the session that made it."""

    __slots__ = ("finished", "hides", "later")

    def __init__(self) -> None:
        self.hides = False  # whether something hides arrays from torch's graph; see `history`
        self.finished: list[Any] = []  # the nodes from which backward has used its graphs up
        self.later: set[Session] = set()  # sessions that continued from its arrays


class IntegerSession(Session):
    """The session of an integer array in a graph; `run_on_integers` runs operators on it."""

    __slots__ = ("origin",)

    def __init__(self, origin: Session | None) -> None:
        self.origin = origin  # None for a leaf
        self.hides = True  # nothing is known about it
        if origin is not None:
            self.finished, self.later = origin.finished, origin.later


class AutogradState(threading.local):
    """Class attributes are each new thread's defaults."""

    session: Session | None = None  # there is one while this thread records
    training = False
    # What `train_mode=` of a backward says; gradients that users wrote run in this mode.
    backward_training = True
    # What the backward that runs now has found: pairs of a gradient record and torch's gradient.
    received: list[tuple[Any, Any]] | None = None
    # What represents parameters now, in place of their own arrays; see `gluon.torch_module`.
    substitutes: dict[Any, Any] | None = None
    # The custom operator whose Python code runs now; profiles show what it calls under its name.
    custom_operator: str | None = None

    @property
    def recording(self) -> bool:
        """Whether operators are being recorded in this thread."""
        return self.session is not None


state = AutogradState()


@contextmanager
def backward_mode(training: bool) -> Iterator[None]:
    """Run gradients that users wrote in training mode, or in prediction mode."""
    previous, state.backward_training = state.backward_training, bool(training)
    try:
        yield
    finally:
        state.backward_training = previous
