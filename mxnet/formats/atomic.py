"""Write a file so that its name holds either the old content or the whole new one, never a part."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import stat
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from .location import unwritable


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a binary file that takes the place of ``path`` when the block ends without an error.

    The bytes go to a temporary file in the same folder, reach the disk, and are then renamed.
    A link is followed: the file it points to is replaced, not the link. What is not a regular
    file (a pipe, ``/dev/null``) cannot be replaced and is written directly.
    """
    path = path.resolve()
    before = _mode(path)
    if before is not None and not stat.S_ISREG(before):
        with _opened(path, "wb") as file:
            yield file
        return
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        with _opened(temporary, "xb", path) as file:
            with _EarlySync(file.raw) as early:
                yield early
            if before is not None and os.name == "posix":
                os.fchmod(file.fileno(), stat.S_IMODE(before))
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    _sync_folder(path.parent)


class _EarlySync(io.BufferedWriter):
    """Lets the disk begin while a large file is still being written: half the time of both."""

    STEP = 64 << 20  # bytes between two beginnings

    def __init__(self, raw: io.RawIOBase) -> None:
        super().__init__(raw)
        self._waiting = 0  # bytes that the disk was not yet asked to take
        self._worker: ThreadPoolExecutor | None = None
        self._running: Future | None = None

    def write(self, data: bytes | memoryview) -> int:
        """Write bytes, and now and then have the disk take what was written."""
        count = super().write(data)
        self._waiting += count
        if self._waiting >= self.STEP and (self._running is None or self._running.done()):
            self._settle()
            self.flush()
            self._worker = self._worker or ThreadPoolExecutor(1)
            self._running = self._worker.submit(os.fsync, self.fileno())
            self._waiting = 0
        return count

    def __exit__(self, *exc: object) -> None:
        """Flush; the file underneath stays open."""
        if self._worker is not None:
            self._worker.shutdown()
        if exc[0] is None:
            self._settle()
        self.flush()
        self.detach()

    def _settle(self) -> None:
        """Raise what an early sync met: the system tells each error once only."""
        if self._running is not None:
            self._running.result()


def _opened(path: Path, mode: str, wanted: Path | None = None) -> BinaryIO:
    """Open a file; if that fails, say so of the file that the user wanted."""
    try:
        return path.open(mode)
    except OSError as error:
        raise unwritable(wanted or path, error) from error


def _mode(path: Path) -> int | None:
    """Return the mode of a path, or None where nothing is."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable where the system allows it."""
    if os.name != "posix":
        return
    # Some network file systems refuse to sync a folder; the content is safe already.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
