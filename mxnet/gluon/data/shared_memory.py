"""Shared memory for batches, and the removal of what dead workers leave of it.

A worker uses its pieces of shared memory again: new ones cost more than the copying, because the
system clears every page. The last byte of a piece says whether the parent still has to read it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from ...error import OutOfMemory

__all__ = ["SharedPieces", "release", "remove_leftovers", "share"]

MOST_PIECES = 6  # that a worker keeps; a batch on its way needs one for each large array
FREE, TAKEN = 0, 1

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


def release(piece: torch.Tensor) -> None:
    """Let the worker that made a piece use it again."""
    piece[-1] = FREE


class SharedPieces:
    """The pieces of shared memory of one worker.

    >>> pieces = SharedPieces()
    >>> first = pieces.take(100)
    >>> release(first)
    >>> pieces.take(80) is first
    True
    """

    def __init__(self) -> None:
        self._kept: list[_Piece] = []
        self._made: dict[int, torch.Tensor] = {}  # for the batch that is being made, by address

    def take(self, size: int) -> torch.Tensor:
        """Return a piece that holds so many bytes and the mark of its use."""
        fitting = [p for p in self._kept if p.is_free and len(p.memory) > size]
        if fitting:
            piece = min(fitting, key=lambda p: len(p.memory))
        else:
            piece = _Piece(self._share(size + 1))
            if len(self._kept) >= MOST_PIECES:  # one that is idle, else the oldest
                self._kept.remove(next((p for p in self._kept if p.is_free), self._kept[0]))
            self._kept.append(piece)
        piece.memory[-1] = TAKEN
        return piece.memory

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor | None:
        """Return an array in shared memory for a part of the next batch, if users can be seen."""
        if _count_users is None:
            return None
        size = torch.Size(shape).numel() * dtype.itemsize
        memory = self.take(size)
        self._made[memory.data_ptr()] = memory
        return memory[:size].view(dtype).view(shape)

    def find(self, address: int) -> torch.Tensor | None:
        """Return the piece that `empty` made at an address since the last batch."""
        return self._made.get(address)

    def finish(self, sent: Iterable[torch.Tensor]) -> None:
        """End a batch: what was made for it and is not sent belongs to the program."""
        ids = {id(memory) for memory in sent}
        lost = {id(memory) for memory in self._made.values()} - ids
        self._kept = [p for p in self._kept if id(p.memory) not in lost]
        self._made = {}

    def _share(self, size: int) -> torch.Tensor:
        try:
            return share(size)
        except OutOfMemory:
            self._kept = [p for p in self._kept if not p.is_free]
            return share(size)


_count_users: Any = getattr(torch._C, "_storage_Use_Count", None)


class _Piece:
    """A piece of shared memory, and how many tensors use it when nobody else does."""

    def __init__(self, memory: torch.Tensor) -> None:
        self.memory = memory
        self._storage = memory.untyped_storage()
        self._users = self._count()

    def _count(self) -> int:
        return 0 if _count_users is None else _count_users(self._storage._cdata)

    @property
    def is_free(self) -> bool:
        """Whether the parent has read it, and no array of the program lies in it."""
        return int(self.memory[-1]) == FREE and self._count() == self._users


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
