"""Paths of files, and random access to their bytes."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

from ..error import FormatError, MXNetError
from .atomic import finish_commit

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class MissingFile(MXNetError, FileNotFoundError):
    """Raised if a file to read is missing."""


class RemoteLocation(MXNetError, ValueError):
    """Raised if a remote address is passed instead of a local path."""


def local_path(location: str | os.PathLike[str]) -> Path:
    """Return the local path of a location; the only supported scheme is ``file://``.

    >>> local_path("file:///models/net.params").as_posix()
    '/models/net.params'
    """
    text = os.fspath(location)
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return Path(text)
    if scheme[1].lower() == "file":
        return Path(text[scheme.end() :])
    raise RemoteLocation(
        f"Cannot open {text!r}: MXNext reads and writes local files only, not {scheme[1]}:// "
        "addresses. Copy the file to or from this machine with the tool of that service."
    )


def existing_file(location: str | os.PathLike[str]) -> Path:
    """Return the local path of a regular file that can be read."""
    path = finish_commit(local_path(location))
    if path.is_file():
        return path
    if path.exists():
        raise MissingFile(f"Cannot read {str(path)!r}: it is not a regular file.")
    raise MissingFile(f"Cannot read {str(path)!r}: No such file or directory.")


_HAS_PREAD = hasattr(os, "pread")
CHUNK = 1 << 20  # block size of a search


class FileBytes:
    """The content of a file, up to its size when it was opened.

    Slices return bytes. It has no position, so threads and forked processes may share it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # A descriptor, so that readers need not be closed.
        self._handle: int | None = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._size = os.fstat(self._handle).st_size
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._size)
        return self.read(start, max(0, stop - start))

    def read(self, at: int, count: int) -> bytes:
        """Return exactly `count` bytes at an offset; raise if there are fewer."""
        result = self._read(at, count)
        while len(result) < count:  # a signal, or a file system with partial reads
            more = self._read(at + len(result), count - len(result))
            if not more:
                raise FormatError(
                    f"{self.path}: at byte {at} expected {count} bytes, found {len(result)}: the "
                    "file became shorter while it was read."
                )
            result += more
        return result

    def peek(self, at: int, count: int) -> bytes:
        """Return up to `count` bytes at an offset."""
        return self._read(at, count)

    def find(self, pattern: bytes, start: int = 0, stop: int | None = None) -> int:
        """Return the offset of the first occurrence, or -1."""
        stop = self._size if stop is None else min(stop, self._size)
        overlap = len(pattern) - 1
        while start + len(pattern) <= stop:
            chunk = self.read(start, min(CHUNK, stop - start))
            result = chunk.find(pattern)
            if result >= 0:
                return start + result
            start += max(1, len(chunk) - overlap)
        return -1

    def grow(self) -> int:
        """Return the current size, which may have grown."""
        self._size = max(self._size, os.fstat(self._open()).st_size)
        return self._size

    def close(self) -> None:
        """Close the file."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    def _open(self) -> int:
        if self._handle is None:
            raise FormatError(f"{self.path} was closed.")
        return self._handle

    def _read(self, at: int, count: int) -> bytes:
        if _HAS_PREAD:
            return os.pread(self._open(), count, at)
        with self._lock:  # Windows: the position is shared
            os.lseek(self._open(), at, os.SEEK_SET)
            return os.read(self._open(), count)
