"""Shared memory for batches, and the removal of what dead workers leave of it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

import torch

from ...error import OutOfMemory

__all__ = ["remove_leftovers", "share"]

FOLDER = Path("/dev/shm")  # where Linux keeps it; torch names its files torch_<pid>_<random>_<n>
_NAME = re.compile(r"</?(torch_\d+_\d+_\d+)>")


def share(size: int) -> torch.Tensor:
    """Return so many bytes of shared memory."""
    try:
        # An empty tensor first: a lack of memory is an error here, not in a thread of the queue.
        return torch.empty(size, dtype=torch.uint8).share_memory_()
    except RuntimeError as error:
        if name := _NAME.search(str(error)):  # torch leaves the file that it could not fill
            _remove(FOLDER / name[1])
        raise OutOfMemory(
            f"A DataLoader worker needs {size} bytes of shared memory for a batch, and there are "
            f"none left ({error}). Use fewer workers, less prefetch or smaller batches, "
            "thread_pool=True, or more shared memory (with Docker: --shm-size)."
        ) from error


def remove_leftovers(pids: Iterable[int]) -> None:
    """Remove the shared memory of processes that have ended; whoever has it open keeps it."""
    if not FOLDER.is_dir():
        return
    beginnings = tuple(f"torch_{pid}_" for pid in pids)
    with contextlib.suppress(OSError):
        for name in os.listdir(FOLDER):  # noqa: PTH208 (names are enough)
            if beginnings and name.startswith(beginnings):
                _remove(FOLDER / name)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
