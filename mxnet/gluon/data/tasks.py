"""What workers of a `DataLoader` are asked and what they answer, be they processes or threads."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ...base import is_np_shape
from ...error import MXNetError
from ...random import host_rng
from ...util import is_np_array

Fetch = Callable[[Sequence[Any]], Any]  # from indices to a batch


class WorkerDied(MXNetError):
    """A worker process ended before its batch was done."""


class LoaderTimeout(MXNetError, multiprocessing.TimeoutError, TimeoutError):
    """A batch took longer than the loader's `timeout`."""


class WorkerTraceback(Exception):
    """Where in a worker an error arose."""

    def __str__(self) -> str:
        return f"\n\nIn a worker of the DataLoader:\n{self.args[0]}"


class Task(NamedTuple):
    """What a worker is asked: the samples of a batch, and the seed of its random streams."""

    indices: Any
    seed: int


class Tasks:
    """The batches of a sampler, each with a seed; every iteration is an epoch."""

    def __init__(self, batch_sampler: Any) -> None:
        self._batch_sampler = batch_sampler

    def __iter__(self) -> Iterator[Task]:
        seeds = None
        for indices in self._batch_sampler:
            # After the sampler's own draw: one seed gives one order with and without workers.
            seeds = seeds or host_rng()
            yield Task(indices, int(seeds.integers(2**63)))


class Switches(NamedTuple):
    """The meanings of shapes and arrays that workers take over from the thread that asks."""

    shape: bool
    array: bool

    @staticmethod
    def here() -> Switches:
        """Return those in force in this thread."""
        return Switches(is_np_shape(), is_np_array())


class Failure(NamedTuple):
    """What a worker process answers when there is no batch: the error and where it arose.

    Torch's own wrapper would make a new error out of the text; this one keeps what it carries.
    """

    error: bytes | None  # a pickle, if the error has one
    summary: str
    trace: str

    @staticmethod
    def of(error: BaseException) -> Failure:
        """Return what can be sent of an error."""
        pickled = None
        with contextlib.suppress(Exception):
            text = pickle.dumps(error)
            if isinstance(error, Exception) and type(pickle.loads(text)) is type(error):
                pickled = text
        trace = "".join(traceback.format_exception(error))
        return Failure(pickled, f"{type(error).__name__}: {error}", trace)

    def throw(self) -> NoReturn:
        """Raise the worker's error here, with its traceback as the cause."""
        error: Exception = MXNetError(self.summary)
        if self.error is not None:
            # What could be pickled there need not be importable here.
            with contextlib.suppress(Exception):
                error = pickle.loads(self.error)
        try:
            raise error from WorkerTraceback(self.trace)
        finally:
            del error  # else it and this frame keep each other, and the workers with them
