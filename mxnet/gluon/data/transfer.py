"""Transfer of batches and functions between a `DataLoader` and its worker processes.

A batch is sent as a pickle and its arrays as tensors, which torch moves through shared memory. A
worker reuses its blocks of shared memory: new ones cost more than the copying, because the system
clears every page. The last byte of a block tells whether the parent still has to read it.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import re
from collections import ChainMap
from collections.abc import Callable, Iterable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ...dtypes import to_bytes
from ...error import OutOfMemory
from ...ndarray import NDArray
from ...runtime.array import is_sparse, plain, wrap_plain
from ...torch_private import count_users

__all__ = ["Sendable", "SharedPieces", "release", "remove_leftovers", "share"]


MIN_SHARED_BYTES = 1 << 16  # below this many bytes, shared memory costs more than it saves


class Packed(NamedTuple):
    """A batch in transit between processes."""

    text: bytes
    memory: list[torch.Tensor]  # blocks of shared memory with the bytes of large arrays
    sizes: list[int]  # number of bytes in each


class _Packer(pickle.Pickler):
    """A pickler that can pass the memory of arrays out of band, for NumPy, torch and MXNet."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, NDArray):
            if is_sparse(obj):  # sparse arrays have a pickling method of their own
                return NotImplemented
            return _array_again, (type(obj), *_memory_of(plain(obj)))
        if type(obj) is torch.Tensor and not obj.requires_grad:
            return _tensor_again, _memory_of(obj)
        return NotImplemented


def pack(batch: Any, pieces: SharedPieces) -> Packed:
    """Return a batch in the form that is sent."""
    text, memory, sizes = io.BytesIO(), [], []

    def stays_inside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < MIN_SHARED_BYTES:
            return True
        piece = pieces.find(np.frombuffer(raw, np.uint8).ctypes.data)
        if piece is None:
            piece = pieces.take(raw.nbytes)
            piece.numpy()[: raw.nbytes] = raw
        memory.append(piece)
        sizes.append(raw.nbytes)
        return False

    _Packer(text, protocol=5, buffer_callback=stays_inside).dump(batch)
    pieces.finish(memory)
    return Packed(text.getvalue(), memory, sizes)


def unpack(packed: Packed) -> Any:
    """Return the unpickled batch."""
    # Each piece of shared memory holds a file handle, of which there are few: keep copies.
    own = [piece[:n].clone() for piece, n in zip(packed.memory, packed.sizes, strict=True)]
    for piece in packed.memory:
        if piece.is_shared():
            release(piece)
    return pickle.loads(packed.text, buffers=[piece.numpy() for piece in own])


def _memory_of(tensor: torch.Tensor) -> tuple[Any, str, tuple[int, ...]]:
    dtype = str(tensor.dtype).removeprefix("torch.")
    raw: Any = to_bytes(tensor).numpy()
    return pickle.PickleBuffer(raw), dtype, tuple(tensor.shape)


def _tensor_again(memory: Any, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
    kind = getattr(torch, dtype)
    memory = memoryview(memory)
    if memory.nbytes == 0:
        return torch.empty(shape, dtype=kind)
    if memory.readonly:
        memory = memoryview(bytearray(memory))
    return torch.frombuffer(memory, dtype=kind).reshape(shape)


def _array_again(cls: type[NDArray], *parts: Any) -> NDArray:
    return wrap_plain(cls, _tensor_again(*parts))


class Sendable:
    """A function pickled by cloudpickle, which supports lambdas.

    Spawned processes get the data set as a pickle; torch's reducers still move arrays through
    shared memory.
    """

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
    import cloudpickle  # needed only if processes are spawned

    buffer = io.BytesIO()
    pickler = cloudpickle.Pickler(buffer)
    reducers: Any = ForkingPickler
    pickler.dispatch_table = ChainMap(reducers._extra_reducers, dict(pickler.dispatch_table))
    pickler.dump(function)
    return buffer.getvalue()


MAX_PIECES = 6  # maximum that a worker keeps; a batch in transit needs one for each large array
FREE, TAKEN = 0, 1

FOLDER = Path("/dev/shm")  # Linux; torch names its files torch_<pid>_<random>_<n>
_NAME = re.compile(r"</?(torch_\d+_\d+_\d+)>")


def share(size: int) -> torch.Tensor:
    """Allocate shared memory of the given size in bytes."""
    try:
        # Start with an empty tensor: running out of memory then raises here, not in a thread of the
        # queue.
        return torch.empty(size, dtype=torch.uint8).share_memory_()
    except RuntimeError as error:
        if name := _NAME.search(str(error)):  # torch leaves the unfilled file
            _remove(FOLDER / name[1])
        raise OutOfMemory(
            f"A DataLoader worker needs {size} bytes of shared memory for a batch, and there are "
            f"none left ({error}). Use fewer workers, less prefetch or smaller batches, "
            "thread_pool=True, or more shared memory (with Docker: --shm-size)."
        ) from error


def release(piece: torch.Tensor) -> None:
    """Return a block to its worker for reuse."""
    piece[-1] = FREE


class SharedPieces:
    """The shared memory blocks of one worker.

    >>> pieces = SharedPieces()
    >>> first = pieces.take(100)
    >>> release(first)
    >>> pieces.take(80) is first
    True
    """

    def __init__(self) -> None:
        self._kept: list[_Piece] = []
        self._made: dict[int, torch.Tensor] = {}  # used by the current batch, by address

    def take(self, size: int) -> torch.Tensor:
        """Return a block for the given number of bytes and the byte that marks its use."""
        fitting = [p for p in self._kept if p.is_free and len(p.memory) > size]
        if fitting:
            piece = min(fitting, key=lambda p: len(p.memory))
        else:
            piece = _Piece(self._share(size + 1))
            if len(self._kept) >= MAX_PIECES:  # an idle one, else the oldest
                self._kept.remove(next((p for p in self._kept if p.is_free), self._kept[0]))
            self._kept.append(piece)
        piece.memory[-1] = TAKEN
        return piece.memory

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor | None:
        """Return shared memory for the next batch, or None if its users cannot be counted."""
        if count_users is None:
            return None
        size = torch.Size(shape).numel() * dtype.itemsize
        memory = self.take(size)
        self._made[memory.data_ptr()] = memory
        return memory[:size].view(dtype).view(shape)

    def find(self, address: int) -> torch.Tensor | None:
        """Return the block that `empty` allocated at an address since the last batch."""
        return self._made.get(address)

    def finish(self, sent: Iterable[torch.Tensor]) -> None:
        """End a batch; blocks that are not sent with it belong to the program."""
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


class _Piece:
    """A block of shared memory, and the number of tensors on it when it is free."""

    def __init__(self, memory: torch.Tensor) -> None:
        self.memory = memory
        self._storage = memory.untyped_storage()
        self._users = self._count()

    def _count(self) -> int:
        return 0 if count_users is None else count_users(self._storage)

    @property
    def is_free(self) -> bool:
        if count_users is None:  # an array of the program may use it
            return False
        return int(self.memory[-1]) == FREE and self._count() == self._users


def remove_leftovers(pids: Iterable[int]) -> None:
    """Unlink the shared memory of processes that have ended; open mappings stay valid."""
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
