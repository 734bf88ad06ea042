"""A trailing record with checksums, for formats whose readers ignore what follows their content.

It consists of ``MXNextP1``, a JSON object, and a footer of the JSON's length, its CRC-32 and
``MXNextP1`` again, so that it can be found and verified from the end of a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import zlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO

import numpy as np

MAGIC = b"MXNextP1"
_FOOTER = struct.Struct("<QI8s")
BLOCK = 1 << 16
MIN_THREADED_BYTES = 1 << 18  # bytes from which a second thread is faster
MAX_JSON_BYTES = 1 << 28  # maximum bytes of JSON

Buffer = bytes | bytearray | memoryview


def checksum(pieces: Sequence[Buffer]) -> int:
    """Return a 32-bit checksum of pieces of bytes.

    It is the CRC-32 of the bytes with each complete 64 KB block of a piece replaced by the sum of
    its 64-bit words, which is as fast as memory and detects every flipped bit.
    """
    result = 0
    for piece in pieces:
        count = len(piece) // BLOCK
        if count:
            words = np.frombuffer(piece, "<u8", count * BLOCK // 8).reshape(count, -1)
            result = zlib.crc32(words.sum(axis=1, dtype="<u8"), result)
        result = zlib.crc32(memoryview(piece)[count * BLOCK :], result)
    return result


class ChecksumPool:
    """Computes checksums in a thread while the same bytes are read or written."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def submit(self, pieces: Sequence[Buffer]) -> Future[int]:
        """Return a future of the checksum of the pieces, which must not change until then."""
        if sum(len(piece) for piece in pieces) >= MIN_THREADED_BYTES:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="mxnext-checksums")
            # At exit (a save in an `atexit` function), pools accept no work.
            with contextlib.suppress(RuntimeError):
                return self._pool.submit(checksum, pieces)
        done: Future[int] = Future()
        done.set_result(checksum(pieces))
        return done

    def close(self) -> None:
        """End the thread."""
        if self._pool is not None:
            self._pool.shutdown()

    def __enter__(self) -> ChecksumPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def dump_trailer(content: dict[str, Any]) -> bytes:
    """Return the bytes of a trailing record.

    >>> import io
    >>> raw = b"arrays" + dump_trailer({"arrays": [7]})
    >>> read_trailer(io.BytesIO(raw), len(raw))
    ({'arrays': [7]}, 6)
    """
    text = json.dumps(content, separators=(",", ":")).encode()
    return MAGIC + text + _FOOTER.pack(len(text), zlib.crc32(text), MAGIC)


def read_trailer(file: BinaryIO, size: int) -> tuple[dict[str, Any] | None, int]:
    """Return the content of a file's trailing record, or None, and its offset.

    The position in the file is unchanged.
    """
    smallest = len(MAGIC) + _FOOTER.size
    if size < smallest:
        return None, size
    before = file.tell()
    try:
        file.seek(size - _FOOTER.size)
        raw = file.read(_FOOTER.size)
        if len(raw) != _FOOTER.size or raw[-len(MAGIC) :] != MAGIC:
            return None, size
        length, checksum, _ = _FOOTER.unpack(raw)
        start = size - smallest - length
        if length > MAX_JSON_BYTES or start < 0:
            return None, size
        file.seek(start)
        text = file.read(len(MAGIC) + length)
    finally:
        file.seek(before, os.SEEK_SET)
    if text[: len(MAGIC)] != MAGIC or zlib.crc32(text[len(MAGIC) :]) != checksum:
        return None, size
    try:
        content = json.loads(text[len(MAGIC) :])
    except (ValueError, RecursionError):
        return None, size
    return (content, start) if isinstance(content, dict) else (None, size)
