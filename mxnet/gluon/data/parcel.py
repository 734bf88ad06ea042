"""How a batch travels from a worker process: a pickle, and its arrays in one shared memory.

The memory has no name: the worker fills it and sends the right to open it, so that the system
frees it when the last holder is gone, however that ended. Small batches, and all on systems
without this, go through the connection itself.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import tempfile
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch

from ...ndarray import NDArray
from ...ndarray.storage import plain, wrap_plain

SMALL = 1 << 16  # below this many bytes, shared memory costs more than it saves
ALIGNMENT = 64
CAN_SHARE = sys.platform != "win32"


class _Packer(pickle.Pickler):
    """A pickler that leaves the memory of arrays outside, for NumPy's, torch's and MXNet's."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, NDArray):
            if obj._data is None and obj._tracked is None:  # sparse: by its own pickling
                return NotImplemented
            return _array_again, (type(obj), *_memory_of(plain(obj)))
        if type(obj) is torch.Tensor and not obj.requires_grad:
            return _tensor_again, _memory_of(obj)
        return NotImplemented


def _memory_of(tensor: torch.Tensor) -> tuple[Any, str, tuple[int, ...]]:
    tensor = tensor.detach().cpu().contiguous()
    dtype = str(tensor.dtype).removeprefix("torch.")
    raw = tensor.reshape(-1).view(torch.uint8).numpy()
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


def pack(batch: Any) -> tuple[bytes, list[memoryview]]:
    """Return the pickle of a batch, and the memory that belongs to it."""
    outside: list[pickle.PickleBuffer] = []
    text = io.BytesIO()
    _Packer(text, protocol=5, buffer_callback=outside.append).dump(batch)
    return text.getvalue(), [buffer.raw() for buffer in outside]


def send(connection: Connection, head: Any, text: bytes, memory: list[memoryview]) -> None:
    """Send a packed batch with a head of the sender's choice; `receive` takes it."""
    sizes = [piece.nbytes for piece in memory]
    if not CAN_SHARE or sum(sizes) < SMALL:
        connection.send((head, text, [bytearray(piece) for piece in memory], None))
        return
    _, total = _places(sizes)
    handle = _nameless_memory()
    try:
        _fill(handle, memory)
        connection.send((head, text, sizes, total))
        reduction.send_handle(connection, handle, os.getppid())
    finally:
        os.close(handle)


def receive(connection: Connection) -> tuple[Any, bytes, list[Any]]:
    """Return head, pickle and memory of the next batch; `pickle.loads` joins the last two."""
    head, text, memory, total = connection.recv()
    if total is None:
        return head, text, memory
    try:
        handle = reduction.recv_handle(connection)
    except RuntimeError as error:  # the sender died in between
        raise EOFError(str(error)) from error
    try:
        shared = memoryview(_mapped(handle, total))
    finally:
        os.close(handle)  # the memory goes with the last array
    places, _ = _places(memory)
    return head, text, [shared[p : p + s] for p, s in zip(places, memory, strict=True)]


def _places(sizes: list[int]) -> tuple[list[int], int]:
    places, end = [], 0
    for size in sizes:
        places.append(end)
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return places, end


def _mapped(handle: int, size: int) -> np.ndarray:
    """Return the shared memory behind a handle."""
    # Python's mmap would keep a file handle for every batch that is kept; torch's does not.
    return torch.from_file(f"/dev/fd/{handle}", shared=True, size=size, dtype=torch.uint8).numpy()


def _nameless_memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("mxnet-batch")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _fill(handle: int, memory: list[memoryview]) -> None:
    """Write pieces one behind the other, each beginning at a multiple of the alignment.

    Writing is faster than mapping and copying, and a full system is an error, not a crash.
    """
    try:
        for piece in memory:
            rest = piece
            while rest.nbytes:
                rest = rest[os.write(handle, rest) :]
            os.write(handle, bytes(-piece.nbytes % ALIGNMENT))
    except OSError as error:
        size = sum(piece.nbytes for piece in memory)
        raise MemoryError(f"No shared memory of {size} bytes for a batch: {error}") from error
