"""Where `fit(resume=...)` keeps its state: one file, or one for each worker of a distributed job.

Workers write at the same steps, but a failure may come between two of them; each keeps its last
two states, so that there is always one that all have.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..distributed.group import Group, current_group
from ..error import FormatError, MXNetError
from ..formats import tree_file
from ..formats.files import local_path

VERSION = 1


class SnapshotFiles:
    """The files of a training run.

    Parameters
    ----------
    prefix : str or path
        The files are named ``prefix-resume.params``, of workers ``prefix-resume-rank0.params``.
    """

    def __init__(self, prefix: str | os.PathLike) -> None:
        group = current_group()
        self._group: Group | None = group if group is not None and group.size > 1 else None
        self._prefix = f"{os.fspath(prefix)}-resume"
        self.place = self._of_rank(None if self._group is None else self._group.rank)

    def _of_rank(self, rank: int | None) -> Path:
        return local_path(self._prefix + ("" if rank is None else f"-rank{rank}") + ".params")

    def write(self, state: dict[str, Any]) -> None:
        """Write a state; of a distributed job, keep the one before."""
        if self._group is not None:
            state["workers"] = self._group.size
            if self.place.exists():
                self.place.replace(_previous(self.place))
        tree_file.write(self.place, state)

    def read(self) -> dict[str, Any] | None:
        """Return the last state that all workers have, or None if there is none.

        If the number of workers has changed it is that of rank 0, with ``workers`` of the time.
        """
        if self._group is None:
            return _read(self.place) if self.place.exists() else None
        found = [_read(p) for p in (self.place, _previous(self.place)) if p.exists()]
        mine = json.dumps([[s["workers"], s["epoch"], s["nbatch"]] for s in found])
        answers = self._group.gather_bytes(mine.encode(), "a comparison of training states")
        by_rank = [[tuple(step) for step in json.loads(answer)] for answer in answers]
        if not by_rank[0]:
            return None
        if all(steps and steps[0][0] == self._group.size for steps in by_rank):
            return self._common(found, by_rank)
        place = self._of_rank(0)
        if not place.exists():
            raise MXNetError(
                f"To go on with another number of workers, all of them need {str(place)!r}: keep "
                "training states in a folder that all hosts share."
            )
        return _read(place)

    def _common(self, found: list[dict[str, Any]], by_rank: list[list[tuple]]) -> dict[str, Any]:
        shared = set.intersection(*(set(steps) for steps in by_rank))
        if not shared:
            raise MXNetError(
                f"The workers' training states {self._prefix}-rank*.params are of different "
                "steps. Remove them to start over."
            )
        last = max(shared, key=lambda step: step[1:])
        return next(s for s in found if (s["workers"], s["epoch"], s["nbatch"]) == last)

    def batches_done(self, state: dict[str, Any]) -> int:
        """Return how many batches of its epoch a state is past, for the present workers."""
        if self._group is None or not self.was_resized(state):
            return state["nbatch"]
        return state["nbatch"] * state["workers"] // self._group.size

    def was_resized(self, state: dict[str, Any]) -> bool:
        """Return whether a state is of another number of workers."""
        return self._group is not None and state["workers"] != self._group.size


def _previous(place: Path) -> Path:
    return place.with_name(f"{place.name}.previous")


def _read(place: Path) -> dict[str, Any]:
    state = tree_file.read(place)
    if not isinstance(state, dict) or state.get("version") != VERSION:
        raise FormatError(f"{str(place)!r} is not a training state of this version.")
    return state
