"""What `fit(resume=...)` keeps: the state that continues a run as if it had not been interrupted.

One file holds the symbol, the parameters and the optimizer of every device, the metric, the random
streams, and where in which epoch training is. It is replaced as a whole, so a killed run leaves
the last complete one. The order of the data comes back in one of three ways: an iterator with
``state_dict`` and ``load_state_dict`` is asked; of an `NDArrayIter` the order is kept; any other is
reset as often as before, each time with the random streams as they were then. Batches of the epoch
that are done already are drawn again and left out.
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
        Where the file is, or None.
    every
        Number of batches after which the file is written, or None for only after epochs.
    train_data : DataIter
    metric : EvalMetric
    history : History
        Of the epochs that are done.
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
        self.pending: dict[str, Any] | None = None  # a snapshot from inside an epoch
        self.resets: list[dict] = []  # the random streams before each reset, where needed
        self.order: Any = None  # of the data in this epoch
        self.before_fetch: dict | None = None
        self.saved: Position | None = None  # what the file holds

    @property
    def path(self) -> Path | None:
        """The file, if there is one."""
        return None if self.files is None else self.files.path

    def describe_interrupt(self) -> str:
        """Return a message about how to continue an interrupted training."""
        return describe_interrupt(self.saved, self.path)

    # -- reading ------------------------------------------------------------------------------

    def continue_from(self, begin_epoch: int) -> int:
        """Restore from the file if there is one; return the epoch to begin with."""
        if self.files is None:
            return begin_epoch
        state = self.files.read()
        if state is None:
            self.order = data_order(self.train_data)
            return begin_epoch
        self._check(state)
        self.module._restore_training_state(arrays_from(state["module"]))
        if "history" in state:  # files of older versions have none
            self.history.load_state_dict(state["history"])
        if self.files.was_resized(state):  # every worker has other data now: no order to restore
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
        """Raise unless the file belongs to this network."""
        ours, theirs = describe_parameters(self.module), state["network"]
        if ours != theirs:
            odd = sorted({*ours, *theirs} - {n for n in ours if ours[n] == theirs.get(n)})
            name = odd[0]
            raise MXNetError(
                f"{str(self.files.path)!r} was written for another network: {name!r} is "
                f"{ours.get(name, 'not there')} here and {theirs.get(name, 'not there')} in the "
                f"file ({len(odd)} such differences). Choose another prefix, or remove the file."
            )

    def _restore_data(self, state: Mapping[str, Any]) -> None:
        self.resets = state["resets"]
        self.order = state["order"]
        if self.order is not None:
            set_data_order(self.train_data, self.order)
            return
        goes_on = getattr(self.train_data, "reset_internal", True) is False  # a ResizeIter may
        for before in self.resets:
            if goes_on:  # an epoch begins where the last one ended: go there
                for _ in self.train_data:
                    pass
            set_random_states(before)
            self.train_data.reset()

    # -- in the loop --------------------------------------------------------------------------

    def start(self, data_iter: Any) -> tuple[int, Any]:
        """Return the number of the epoch's first batch to run, and that batch."""
        state, self.pending = self.pending, None
        nbatch = 0 if state is None else state["nbatch"]
        for _ in range(nbatch):
            next(data_iter)
        exact = state if state is not None and "streams" in state else None
        if exact is not None:
            set_random_states(exact["before_fetch"])
        batch = self.fetch(data_iter)
        if batch is None:
            raise MXNetError(
                "train_data gave no batch: it is empty, or was used before and not reset."
            )
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
        """Write the file if it is time."""
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
    """The files of a training run: one, or one for each worker of a distributed job.

    Workers write at the same steps, but a failure may come between two of them; each keeps its
    last two states, so that there is always one that all have.

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
        """Write a state; a distributed job also keeps the previous one."""
        if self._group is not None:
            state["workers"] = self._group.size
            if self.path.exists():
                self.path.replace(_previous(self.path))
        tree_file.write(self.path, state)

    def read(self) -> dict[str, Any] | None:
        """Return the last state that all workers have, or None if there is none.

        If the number of workers has changed it is that of rank 0, with ``workers`` of the time.
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
                f"To continue with another number of workers, all of them need {str(path)!r}: keep "
                "training states in a folder that all hosts share."
            )
        return _read(path)

    def _common(self, states: list[dict[str, Any]], by_rank: list[list[tuple]]) -> dict[str, Any]:
        shared = set.intersection(*(set(steps) for steps in by_rank))
        if not shared:
            raise MXNetError(
                f"The workers' training states {self._prefix}-rank*.params are of different "
                "steps. Remove them to start over."
            )
        last = max(shared, key=lambda step: step[1:])
        return next(s for s in states if (s["workers"], s["epoch"], s["nbatch"]) == last)

    def batches_done(self, state: dict[str, Any]) -> int:
        """Return the number of completed batches in a state's epoch, per present worker."""
        if self._group is None or not self.was_resized(state):
            return state["nbatch"]
        return state["nbatch"] * state["workers"] // self._group.size

    def was_resized(self, state: dict[str, Any]) -> bool:
        """Return whether a state has another number of workers."""
        return self._group is not None and state["workers"] != self._group.size


def _previous(path: Path) -> Path:
    return path.with_name(f"{path.name}.previous")


def _read(path: Path) -> dict[str, Any]:
    state = tree_file.read(path)
    if not isinstance(state, dict) or state.get("version") != VERSION:
        raise FormatError(f"{str(path)!r} is not a training state of this version.")
    return state
