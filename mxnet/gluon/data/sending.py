"""What spawned worker processes are given: functions with lambdas and local classes too.

Such a process (`spawn`, `forkserver`) gets the data set as a pickle. Python's own pickle refers to
functions by name, so it refuses lambdas; cloudpickle sends their code. Arrays still travel
through shared memory, as torch's reducers arrange it.
"""

from __future__ import annotations

import io
import pickle
from collections import ChainMap
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

__all__ = ["Sendable"]


class Sendable:
    """A function that pickles whatever cloudpickle can pickle."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        return self._function(*args)

    def __reduce__(self) -> tuple[Callable, tuple[bytes]]:
        return _restore, (_dump(self._function),)


def _restore(text: bytes) -> Sendable:
    return Sendable(pickle.loads(text))


def _dump(function: Callable[..., Any]) -> bytes:
    import cloudpickle  # only where processes are spawned

    buffer = io.BytesIO()
    pickler = cloudpickle.Pickler(buffer)
    reducers: Any = ForkingPickler
    pickler.dispatch_table = ChainMap(reducers._extra_reducers, dict(pickler.dispatch_table))
    pickler.dump(function)
    return buffer.getvalue()
