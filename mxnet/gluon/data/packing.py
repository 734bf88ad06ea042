"""How a batch becomes something torch's queues carry: a pickle, and its arrays as tensors.

Torch moves the tensors through shared memory, so only the pickle is written to a pipe. MXNet's,
torch's and NumPy's arrays keep class, dtype and shape wherever in the batch they stand.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, NamedTuple

import numpy as np
import torch

from ...imperative.handle import plain, wrap_plain
from ...imperative.history import graph_tensor
from ...ndarray import NDArray
from .shared_memory import SharedPieces, release

SMALL = 1 << 16  # below this many bytes, shared memory costs more than it saves


class Packed(NamedTuple):
    """A batch on its way."""

    text: bytes
    memory: list[torch.Tensor]  # pieces of shared memory with the bytes of large arrays
    sizes: list[int]  # how many bytes each holds


class _Packer(pickle.Pickler):
    """A pickler that can leave the memory of arrays outside, for torch's and MXNet's too."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, NDArray):
            if obj._data is None and graph_tensor(obj) is None:  # sparse: by its own pickling
                return NotImplemented
            return _array_again, (type(obj), *_memory_of(plain(obj)))
        if type(obj) is torch.Tensor and not obj.requires_grad:
            return _tensor_again, _memory_of(obj)
        return NotImplemented


def pack(batch: Any, pieces: SharedPieces) -> Packed:
    """Return a batch in the form that travels."""
    text, memory, sizes = io.BytesIO(), [], []

    def stays_inside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < SMALL:
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
    """Return the batch again."""
    # Each piece of shared memory holds a file handle, of which there are few: keep copies.
    own = [piece[:n].clone() for piece, n in zip(packed.memory, packed.sizes, strict=True)]
    for piece in packed.memory:
        if piece.is_shared():
            release(piece)
    return pickle.loads(packed.text, buffers=[piece.numpy() for piece in own])


def _memory_of(tensor: torch.Tensor) -> tuple[Any, str, tuple[int, ...]]:
    tensor = tensor.detach().cpu().contiguous()
    dtype = str(tensor.dtype).removeprefix("torch.")
    raw: Any = tensor.reshape(-1).view(torch.uint8).numpy()
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
