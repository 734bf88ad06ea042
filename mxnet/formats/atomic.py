"""Write files so that each name holds the old content or the whole new one, never a part of it.

`replacing` does so for one file. Inside `one_commit` several files are replaced as one: after a
crash all of them are old, or all are new.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

from .journal import (
    finish_commit,
    open_part,
    remove_leftovers,
    rename_all,
    sync_folder,
)
from .location import unwritable

__all__ = ["AtomicFile", "one_commit", "replacing"]


class _Commits(threading.local):
    """The commit under way in each thread, as a list of files that are ready."""

    pending: list[AtomicFile] | None = None


_commits = _Commits()


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a binary file that replaces ``path`` when the block ends without an error.

    The bytes go to a temporary file in the same folder, reach the disk, and are then renamed.
    A link is followed: the file it points to is replaced, not the link. What is not a regular
    file (a pipe, ``/dev/null``) cannot be replaced and is written directly.
    """
    file = AtomicFile(path)
    try:
        yield file.stream
    except BaseException:
        file.discard()
        raise
    file.commit()


@contextlib.contextmanager
def one_commit() -> Iterator[None]:
    """Replace all files that are written by `replacing` inside this block together, at its end.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with one_commit():
    ...     for name in ("net.json", "net.params"):
    ...         with replacing(folder / name) as file:
    ...             _ = file.write(b"new")
    ...     print(len(list(folder.glob("net.*"))), "of two in place")
    0 of two in place
    >>> sorted(path.name for path in folder.iterdir())
    ['net.json', 'net.params']
    """
    if _commits.pending is not None:  # part of a larger commit
        yield
        return
    _commits.pending = files = []
    try:
        yield
        _put_in_place(files)
    except BaseException:
        for file in files:
            file.discard()
        raise
    finally:
        _commits.pending = None


def _put_in_place(files: list[AtomicFile]) -> None:
    """Rename finished files to their targets and let go of their locks."""
    latest = {file.path: file for file in files}  # a file written twice counts once
    if not latest:
        return
    try:
        rename_all([(file.part, file.path) for file in latest.values()])
    except OSError as error:
        raise unwritable(next(iter(latest)), error) from error
    for folder in dict.fromkeys(path.parent for path in latest):
        sync_folder(folder)
    for file in files:
        file.discard()  # what is left of it: the lock, and an older part


class AtomicFile:
    """A file under construction, which replaces its target at `commit`.

    Parameters
    ----------
    path : Path
        The target. Part files of it that killed processes left behind are removed.
    """

    def __init__(self, path: Path) -> None:
        try:
            path = path.resolve()
        except (OSError, RuntimeError) as error:  # a loop of links
            raise unwritable(path, OSError(40, str(error))) from error
        self.path = path
        finish_commit(path)
        mode = _mode(path)
        self.is_special = mode is not None and not stat.S_ISREG(mode)
        self.part = path
        self._mode = mode
        self._lock: int | None = None
        self.is_open = True
        if self.is_special:
            self._raw = _open(path, "wb", path)
        else:
            remove_leftovers(path)
            try:
                self.part, self._raw, self._lock = open_part(path)
            except OSError as error:
                raise unwritable(path, error) from error
        self.stream = _Stream(self._raw, path)

    def commit(self) -> None:
        """Bring the content to the disk and put it in the place of the target."""
        if not self.is_open:
            return
        try:
            self._finish()
        except BaseException:
            self.discard()
            raise
        if self.is_special:
            return
        if _commits.pending is not None:
            _commits.pending.append(self)
            return
        try:
            _put_in_place([self])
        except BaseException:
            self.discard()
            raise

    def _finish(self) -> None:
        try:
            self.stream.finish()
            if not self.is_special:
                if self._mode is not None and os.name == "posix":
                    os.fchmod(self._raw.fileno(), stat.S_IMODE(self._mode))
                os.fsync(self._raw.fileno())
            self.stream.close()
        except OSError as error:
            raise unwritable(self.path, error) from error
        self.is_open = False

    def discard(self) -> None:
        """Drop what was written, unless it is in place already; the target stays as it was."""
        self.abandon()
        if not self.is_special:
            with contextlib.suppress(OSError):
                self.part.unlink()

    def abandon(self) -> None:
        """Close the file without touching anything on the disk, as a forked child must."""
        if self.is_open:
            self.is_open = False
            self.stream.drop()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class _Stream(io.BufferedWriter):
    """Names the target in errors, and lets the disk begin while a large file is still written."""

    STEP = 64 << 20  # bytes between two early syncs

    def __init__(self, raw: io.RawIOBase, target: Path) -> None:
        super().__init__(raw)
        self._target = target
        self._unsynced = 0  # bytes that the disk was not yet asked to take
        self._worker: ThreadPoolExecutor | None = None
        self._running: Future | None = None

    def write(self, data: bytes | memoryview) -> int:
        """Write bytes, and now and then have the disk take what was written."""
        try:
            count = super().write(data)
            self._unsynced += count
            if self._unsynced >= self.STEP and (self._running is None or self._running.done()):
                self._settle()
                self.flush()
                self._worker = self._worker or ThreadPoolExecutor(1)
                self._running = self._worker.submit(os.fsync, self.fileno())
                self._unsynced = 0
        except OSError as error:
            raise unwritable(self._target, error) from error
        return count

    def flush(self) -> None:
        """Hand the buffer to the operating system."""
        try:
            super().flush()
        except OSError as error:
            raise unwritable(self._target, error) from error

    def finish(self) -> None:
        """Flush, and raise the error of an early sync; the file stays open."""
        if self._worker is not None:
            self._worker.shutdown()
        self._settle()
        self.flush()

    def drop(self) -> None:
        """Close the file and forget what is in the buffer."""
        if self._worker is not None:
            self._worker.shutdown()
        with contextlib.suppress(OSError):
            self.raw.close()

    def _settle(self) -> None:
        """Raise the error of an early sync: the system reports each error once only."""
        if self._running is not None:
            self._running.result()


def _open(path: Path, mode: str, target: Path) -> Any:
    """Open a file for writing; errors name the file that the user asked for."""
    try:
        return path.open(mode, buffering=0)
    except OSError as error:
        raise unwritable(target, error) from error


def _mode(path: Path) -> int | None:
    """Return the mode of a path, or None where nothing is."""
    try:
        return path.stat().st_mode
    except OSError:
        return None
