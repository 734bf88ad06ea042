"""The files of checkpoints in a folder: their names, which is newest, which are removed."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from ..formats.location import local_path

__all__ = ["latest", "path_of", "remove_old", "steps"]

_NAME = re.compile(r"checkpoint-(\d+)\.params")


def path_of(folder: Path, step: int) -> Path:
    """Return the file of a step."""
    return folder / f"checkpoint-{step:08d}.params"


def steps(folder: Path) -> dict[int, Path]:
    """Return the checkpoints in a folder by step, oldest first."""
    if not folder.is_dir():
        return {}
    found = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return dict(sorted((int(match[1]), path) for match, path in found if match))


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
