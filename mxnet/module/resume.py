"""The training state of `fit(resume=...)`, which continues an interrupted run bit for bit.

One file has the symbol, the parameters and optimizer states of every device, the metric, the random
streams, and the epoch and batch. It is replaced atomically, so a killed run leaves the last
complete file. The order of the data is restored in one of three ways: by ``state_dict`` and
``load_state_dict`` of the iterator; by the saved order of an `NDArrayIter`; or by repeating all
resets with the random streams of the time. Completed batches of the epoch are fetched again and
skipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..error import FormatError, MXNetError
from ..formats import tree_file
from ..formats.checkpoints.state import (
    arrays_from,
    data_order,
    get_fields,
    get_random_states,
    set_data_order,
    set_fields,
    set_random_states,
    tensors_of,
)
from ..formats.files import local_path
from ..parallel.group import Group, current_group
from ..visualization.tracking import History
from ..visualization.tracking.interrupts import Position, describe_interrupt

VERSION = 1


class Resuming:
    """Saves and resumes a training run; without a prefix it only yields the batches.

    Parameters
    ----------
    module : BaseModule
    prefix
        Prefix of the file, or None.
    every
        Number of batches between writes inside an epoch, or None.
    train_data : DataIter
    metric : EvalMetric
    history : History
        Metrics of the finished epochs.
    """

    def __init__(
        self,
        module: Any,
        prefix: str | os.PathLike | None,
        every: int | None,
        train_data: Any,
        metric: Any,
        history: History,
    ) -> None:
        if every is not None and (prefix is None or every < 1):
            raise ValueError(
                "resume_every is a positive number of batches, and needs resume=prefix."
            )
        self.module, self.every, self.train_data, self.metric = module, every, train_data, metric
        self.history = history
        self.files: Any = None if prefix is None else SnapshotFiles(prefix)
        self.pending: dict[str, Any] | None = None  # snapshot inside an epoch
        self.resets: list[dict] = []  # random streams before each reset, if needed
        self.order: Any = None  # order of the data in this epoch
        self.before_fetch: dict | None = None
        self.saved: Position | None = None  # content of the file

    @property
    def path(self) -> Path | None:
        """Path of the file, or None."""
        return None if self.files is None else self.files.path

    def describe_interrupt(self) -> str:
        """Return a message about how to continue an interrupted training."""
        return describe_interrupt(self.saved, self.path)

    # -- reading ------------------------------------------------------------------------------

    def continue_from(self, begin_epoch: int) -> int:
        """Restore the state from the file, if any; return the first epoch."""
        if self.files is None:
            return begin_epoch
        state = self.files.read()
        if state is None:
            self.order = data_order(self.train_data)
            return begin_epoch
        self._check(state)
        self.module._restore_training_state(arrays_from(state["module"]))
        if "history" in state:  # missing in files of older versions
            self.history.load_state_dict(state["history"])
        # Every worker has different data now: no order to restore.
        if self.files.was_resized(state):
            self.order = data_order(self.train_data)
            self.pending = {"nbatch": self.files.batches_done(state)}
            self.saved = Position(state["epoch"], self.pending["nbatch"])
            return state["epoch"]
        self._restore_data(state)
        set_random_states(state["streams"])
        if state["nbatch"]:
            self.pending = state
        self.saved = Position(state["epoch"], state["nbatch"])
        return state["epoch"]

    def _check(self, state: Mapping[str, Any]) -> None:
        """Raise if the file belongs to a different network."""
        ours, theirs = describe_parameters(self.module), state["network"]
        if ours != theirs:
            odd = sorted({*ours, *theirs} - {n for n in ours if ours[n] == theirs.get(n)})
            name = odd[0]
            raise MXNetError(
                f"{str(self.files.path)!r} was written for a different network: {name!r} is "
                f"{ours.get(name, 'not there')} here and {theirs.get(name, 'not there')} in the "
                f"file ({len(odd)} such differences). Choose another prefix, or remove the file."
            )

    def _restore_data(self, state: Mapping[str, Any]) -> None:
        self.resets = state["resets"]
        self.order = state["order"]
        if self.order is not None:
            set_data_order(self.train_data, self.order)
            return
        goes_on = getattr(self.train_data, "reset_internal", True) is False  # ResizeIter
        for before in self.resets:
            if goes_on:  # skip to the end of the last epoch
                for _ in self.train_data:
                    pass
            set_random_states(before)
            self.train_data.reset()

    # -- training loop --------------------------------------------------------------------------

    def start(self, data_iter: Any) -> tuple[int, Any]:
        """Return the number of the first batch to run in this epoch, and that batch."""
        state, self.pending = self.pending, None
        nbatch = 0 if state is None else state["nbatch"]
        for _ in range(nbatch):
            next(data_iter)
        exact = state if state is not None and "streams" in state else None
        if exact is not None:
            set_random_states(exact["before_fetch"])
        batch = self.fetch(data_iter)
        if batch is None:
            raise MXNetError("train_data has no batch: it is empty, or was not reset after use.")
        if exact is not None:
            set_random_states(exact["streams"])
            set_fields(self.metric, exact["metric"])
        return nbatch, batch

    def fetch(self, data_iter: Any) -> Any:
        """Return the next batch, or None at the end."""
        if self.every is not None:
            self.before_fetch = get_random_states()
        return next(data_iter, None)

    def reset_data(self) -> None:
        """Reset the iterator for the next epoch."""
        if self.files is not None and self.order is None:
            self.resets = [*self.resets, get_random_states()]
        self.train_data.reset()
        if self.files is not None:
            self.order = data_order(self.train_data)

    def after_batch(self, epoch: int, nbatch: int, is_last: bool) -> None:
        """Count a batch, and write the file after every `every` batches."""
        if self.every is not None and not is_last and nbatch % self.every == 0:
            self._write(epoch, nbatch)

    def after_epoch(self, epoch: int) -> None:
        """Write the file at the end of an epoch."""
        if self.files is not None:
            self._write(epoch + 1, 0)

    def _write(self, epoch: int, nbatch: int) -> None:
        symbol = self.module.symbol
        state = {
            "version": VERSION,
            "epoch": epoch,
            "nbatch": nbatch,
            "symbol": None if symbol is None else symbol.tojson(remove_amp_cast=False),
            "network": describe_parameters(self.module),
            "module": tensors_of(self.module._training_state()),
            "metric": get_fields(self.metric) if nbatch else None,
            "streams": get_random_states(),
            "before_fetch": self.before_fetch if nbatch else None,
            "resets": self.resets,
            "order": self.order,
            "history": self.history.state_dict(),
        }
        self.files.write(state)
        self.saved = Position(epoch, nbatch)


def describe_parameters(module: Any) -> dict[str, str]:
    """Return name, shape and type of every parameter."""
    args, auxes = module.get_params()
    return {
        f"{kind}:{name}": f"{'x'.join(map(str, x.shape))} {np.dtype(x.dtype).name}"
        for kind, params in (("arg", args), ("aux", auxes))
        for name, x in sorted(params.items())
    }


class SnapshotFiles:
    """The files of a training run: one file, or one per worker of a distributed job.

    Workers write at the same steps, but may fail in between. Each keeps its last two states, so
    that all have one in common.

    Parameters
    ----------
    prefix : str or path
        The files are named ``prefix-resume.params``, of workers ``prefix-resume-rank0.params``.
    """

    def __init__(self, prefix: str | os.PathLike) -> None:
        group = current_group()
        self._group: Group | None = group if group is not None and group.size > 1 else None
        self._prefix = f"{os.fspath(prefix)}-resume"
        self.path = self._of_rank(None if self._group is None else self._group.rank)

    def _of_rank(self, rank: int | None) -> Path:
        return local_path(self._prefix + ("" if rank is None else f"-rank{rank}") + ".params")

    def write(self, state: dict[str, Any]) -> None:
        """Write a state; distributed jobs keep the previous one too."""
        if self._group is not None:
            state["workers"] = self._group.size
            if self.path.exists():
                self.path.replace(_previous(self.path))
        tree_file.write(self.path, state)

    def read(self) -> dict[str, Any] | None:
        """Return the last state that all workers have, or None.

        If the number of workers has changed, return rank 0's state. Its ``workers`` is the number
        at the time of saving.
        """
        if self._group is None:
            return _read(self.path) if self.path.exists() else None
        states = [_read(p) for p in (self.path, _previous(self.path)) if p.exists()]
        mine = json.dumps([[s["workers"], s["epoch"], s["nbatch"]] for s in states])
        answers = self._group.gather_bytes(mine.encode(), "a comparison of training states")
        by_rank = [[tuple(step) for step in json.loads(answer)] for answer in answers]
        if not by_rank[0]:
            return None
        if all(steps and steps[0][0] == self._group.size for steps in by_rank):
            return self._common(states, by_rank)
        path = self._of_rank(0)
        if not path.exists():
            raise MXNetError(
                f"To continue with a different number of workers, all of them need {str(path)!r}: "
                "save training states in a folder that all hosts share."
            )
        return _read(path)

    def _common(self, states: list[dict[str, Any]], by_rank: list[list[tuple]]) -> dict[str, Any]:
        shared = set.intersection(*(set(steps) for steps in by_rank))
        if not shared:
            raise MXNetError(
                f"The workers' training states {self._prefix}-rank*.params are from different "
                "steps. Remove them to start over."
            )
        last = max(shared, key=lambda step: step[1:])
        return next(s for s in states if (s["workers"], s["epoch"], s["nbatch"]) == last)

    def batches_done(self, state: dict[str, Any]) -> int:
        """Return the number of completed batches in a state's epoch, per current worker."""
        if self._group is None or not self.was_resized(state):
            return state["nbatch"]
        return state["nbatch"] * state["workers"] // self._group.size

    def was_resized(self, state: dict[str, Any]) -> bool:
        """Return whether the number of workers has changed since a state was saved."""
        return self._group is not None and state["workers"] != self._group.size


def _previous(path: Path) -> Path:
    return path.with_name(f"{path.name}.previous")


def _read(path: Path) -> dict[str, Any]:
    state = tree_file.read(path)
    if not isinstance(state, dict) or state.get("version") != VERSION:
        raise FormatError(f"{str(path)!r} is not a training state of this version.")
    return state
