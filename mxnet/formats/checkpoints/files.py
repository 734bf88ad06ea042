"""Checkpoint files in a folder and in the folders of a job's workers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import random
from ...error import MXNetError
from ...parallel.group import Group, current_group, join_group
from ...parallel.rendezvous import read_job
from ..files import local_path

_NAME = re.compile(r"checkpoint-(\d+)\.params")


def path_of(folder: Path, step: int) -> Path:
    """Return the file of a step."""
    return folder / f"checkpoint-{step:08d}.params"


def steps(folder: Path) -> dict[int, Path]:
    """Return the checkpoints in a folder by step, oldest first."""
    if not folder.is_dir():
        return {}
    matches = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return dict(sorted((int(match[1]), path) for match, path in matches if match))


def latest(folder: str | os.PathLike[str]) -> Path | None:
    """Return the newest checkpoint in a folder, or None.

    Parameters
    ----------
    folder
        The folder of the checkpoints.

    >>> mx.checkpoint.latest("no such folder") is None
    True
    """
    return next(reversed(steps(local_path(folder)).values()), None)


def remove_old(folder: Path, keep: int) -> None:
    """Remove all checkpoints but the newest ones."""
    for path in list(steps(folder).values())[:-keep]:
        with contextlib.suppress(OSError):
            path.unlink()


def _group() -> Group | None:
    """Return the group of this process's job, joining it if needed; None for a single worker."""
    group = current_group()
    if group is None and read_job() is not None:
        group = join_group()
    return group if group is not None and group.size > 1 else None


def _folder(folder: Path, rank: int, size: int) -> Path:
    return folder if size == 1 else folder / f"rank{rank}-of-{size}"


def worker_folder(folder: Path) -> Path:
    """Return the folder of this worker's checkpoints: `folder` itself for a single worker."""
    group = _group()
    return folder if group is None else _folder(folder, group.rank, group.size)


def find_newest(folder: Path, own: list[int]) -> tuple[Path | None, int]:
    """Return the file to resume from, and the number of workers that wrote it.

    `own` are the steps of this worker's readable checkpoints with the current number of workers.
    """
    group = _group()
    size = 1 if group is None else group.size
    mine = json.dumps([own, _of_other_sizes(folder, size)])
    result = [mine.encode()]
    if group is not None:
        result = group.gather_bytes(result[0], "a comparison of checkpoints")
    answers = [json.loads(answer) for answer in result]
    common = max(set.intersection(*(set(steps) for steps, _ in answers)), default=-1)
    step, writers = max(answers[0][1], default=(-1, 0))
    if common >= step:
        return (steps(worker_folder(folder))[common] if common >= 0 else None), size
    path = steps(_folder(folder, 0, writers)).get(step)
    if path is None:
        raise MXNetError(
            f"Rank 0 has a checkpoint of {writers} workers in {str(folder)!r}, which this worker "
            "cannot find: to continue with a different number of workers, use a shared folder."
        )
    return path, writers


def _of_other_sizes(folder: Path, size: int) -> list[tuple[int, int]]:
    """Return the newest step of rank 0 for every other number of workers, and that number."""
    sizes = {int(path.name.rpartition("-")[2]) for path in folder.glob("rank0-of-*")}
    results = [(max(steps(_folder(folder, 0, n)), default=-1), n) for n in {1, *sizes} - {size}]
    return [(step, writers) for step, writers in results if step >= 0]


def scale_position(state: Any, writers: int) -> Any:
    """Convert a position of `track` to the current number of workers; None if not possible."""
    if not isinstance(state, Mapping) or not {"epoch", "batches", "start"} <= state.keys():
        warnings.warn(
            "The number of workers has changed, and the position in the data cannot be converted: "
            "the epoch starts again.",
            stacklevel=4,
        )
        return None
    group = _group()
    done = state["batches"] * writers // (1 if group is None else group.size)
    return {"epoch": state["epoch"], "batches": done, "start": None, "now": None}


def seed_worker(step: int) -> None:
    """Start random streams that differ between workers, as there are none to restore."""
    group = _group()
    random.seed(1000 * step + (0 if group is None else group.rank))
