"""The message after Ctrl-C during training: what is saved, and how to continue."""

from __future__ import annotations

import os


class Position:
    """A position in training: an epoch, and the number of completed batches.

    >>> str(Position(3, 80)), str(Position(4))
    ('epoch 3, batch 80', 'epoch 4')
    """

    def __init__(self, epoch: int, batch: int = 0) -> None:
        self.epoch, self.batch = epoch, batch

    def __str__(self) -> str:
        return f"epoch {self.epoch}" + (f", batch {self.batch}" if self.batch else "")


def describe_interrupt(saved: Position | None, path: str | os.PathLike[str] | None) -> str:
    """Return a message about the state saved before Ctrl-C.

    >>> describe_interrupt(Position(3, 80), "runs/digits")
    'Interrupted. The same program continues from epoch 3, batch 80 (runs/digits).'
    """
    if path is None:
        return "Interrupted. Nothing was saved; with fit(resume='run') training can be resumed."
    if saved is None:
        return f"Interrupted before the first save to {os.fspath(path)}."
    return f"Interrupted. The same program continues from {saved} ({os.fspath(path)})."
