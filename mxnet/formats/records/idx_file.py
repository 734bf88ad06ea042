"""IDX files of bytes, as MNIST has them: a magic number, sizes, elements; perhaps gzipped."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, NoReturn

import torch
from torch import Tensor

from ...error import FormatError
from ..location import existing_file

_UNSIGNED_BYTES = 0x08
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20


def read_idx(place: str | os.PathLike[str], ndim: int) -> Tensor:
    """Return the bytes of an IDX file with `ndim` axes as a uint8 tensor."""
    path = existing_file(place)
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        if not packed:
            return _read(path, file, ndim)
        with gzip.GzipFile(fileobj=file) as unpacked:
            try:
                return _read(path, unpacked, ndim)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise FormatError(f"{path}: the gzip data is damaged: {error}.") from error


def _read(path: Path, file: BinaryIO, ndim: int) -> Tensor:
    header = file.read(4 + 4 * ndim)
    if len(header) < 4 + 4 * ndim:
        _fail(path, len(header), f"a header of {4 + 4 * ndim} bytes", "the end of the file")
    magic, *shape = struct.unpack(f">i{ndim}I", header)
    if magic != (_UNSIGNED_BYTES << 8 | ndim):
        wanted = f"the magic number {_UNSIGNED_BYTES << 8 | ndim} of bytes with {ndim} axes"
        _fail(path, 0, wanted, str(magic))
    return _elements(path, file, len(header), shape)


def _elements(path: Path, file: BinaryIO, at: int, shape: list[int]) -> Tensor:
    """Read piece by piece, so that sizes that lie take no more memory than the file has."""
    needed, pieces, have = math.prod(shape), [], 0
    while have < needed:
        piece = file.read(min(_CHUNK, needed - have))
        if not piece:
            _fail(path, at + have, f"{needed} bytes for sizes {tuple(shape)}", f"only {have}")
        pieces.append(piece)
        have += len(piece)
    if file.read(1):
        _fail(path, at + have, f"the end after sizes {tuple(shape)}", "more bytes")
    if not needed:
        return torch.empty(shape, dtype=torch.uint8)
    return torch.frombuffer(bytearray(b"".join(pieces)), dtype=torch.uint8).reshape(shape)


def _fail(path: Path, at: int, expected: str, found: str) -> NoReturn:
    raise FormatError(
        f"{path}: not a valid IDX file at byte {at}: expected {expected}; found {found}."
    )
