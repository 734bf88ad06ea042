"""Atomic writes: each file holds either the old content or the complete new one.

`replacing` writes one file. Inside `one_commit` several files are replaced together: after a crash
all of them are old, or all are new.

New contents are written beside their targets as ``.name.XXXXXXXXXXXXXXXX.part``. A commit writes a
journal of all of them; once it exists, the new files are valid, and the next reader or writer that
finds it finishes the renaming. Beside every target a marker ``.name.commit`` names the journal, so
that a reader checks one name only.

Contents are synced before renaming, so a power failure is like any other crash. With
``MXNET_SYNC_FILES=0`` nothing is synced: writes are still atomic for all processes, but after a
power failure a new file may be empty.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import math
import os
import re
import secrets
import stat
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Any, BinaryIO

from .._process import env
from .._process.caches import ForkSafeLock
from ..error import MXNetError

try:
    import fcntl
except ImportError:  # not on Windows: there, leftovers of other processes are not removed
    fcntl = None


class UnwritableFile(MXNetError, OSError):
    """Raised if a file cannot be written."""

    __str__ = MXNetError.__str__  # OSError's omits the advice


class MissingFolder(UnwritableFile, FileNotFoundError):
    """Raised if the folder of a file to write is missing."""


class ForbiddenFile(UnwritableFile, PermissionError):
    """Raised if a file or folder is not writable."""


class FolderInPlace(UnwritableFile, IsADirectoryError):
    """Raised if the target of a file is a folder."""


def unwritable(path: Path, error: OSError) -> UnwritableFile:
    """Return the error for a failed write: what failed, and which content remains."""
    if isinstance(error, UnwritableFile):
        return error
    kinds = (MissingFolder, ForbiddenFile, FolderInPlace)
    is_plain = type(error) is OSError  # the base of all: a full disk, for example
    kind = next((k for k in kinds if not is_plain and issubclass(k, type(error))), UnwritableFile)
    reason = error.strerror or str(error)
    if kind is MissingFolder and not path.parent.is_dir():
        reason = f"there is no folder {str(path.parent)!r}. Create it first"
    elif kind is MissingFolder:
        kind, reason = UnwritableFile, "its temporary file was removed before it was complete"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        reason += ". Free some space, or save to another disk"
    elif error.errno == errno.EROFS:
        reason += ". Save to a folder that can be written"
    saved = ""
    with contextlib.suppress(OSError):
        saved = " The old file is unchanged." if path.is_file() else ""
    failure = kind(f"Cannot write {str(path)!r}: {reason}.{saved}")
    failure.errno, failure.strerror, failure.filename = error.errno, error.strerror, str(path)
    return failure


MAX_ATTEMPTS = 100  # signals that may leave a temporary file behind
MAX_STEM_BYTES = 150  # maximum number of bytes of the target's name in companion names
_renaming = ForkSafeLock()  # otherwise threads that save the same files could mix them


def part_path(target: Path) -> Path:
    """Return a new part-file name beside a target."""
    return target.with_name(f".{_stem(target)}.{secrets.token_hex(8)}.part")


def open_part(target: Path) -> tuple[Path, FileIO, int | None]:
    """Create a part file of a target; return its path, the file, and its lock.

    The lock marks the part as being written. Close it after the part is renamed.
    """
    for _ in range(MAX_ATTEMPTS):
        part = part_path(target)
        file = part.open("xb", buffering=0)
        lock = _lock(file.fileno())
        if part.exists():
            return part, file, lock
        # Before it was locked, other writers of the same file may have removed it.
        file.close()
        if lock is not None:
            os.close(lock)
    raise OSError("its temporary file is removed again and again")


def _lock(handle: int) -> int | None:
    """Lock an open file; return a second handle that keeps the lock after the file is closed."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # waits for a process that is removing the file
    except OSError:  # some network file systems have no locks
        return None
    return os.dup(handle)


def rename_all(renames: Sequence[tuple[Path, Path]]) -> None:
    """Replace the targets by their part files: all of them or, after a crash, none.

    A single rename is atomic by itself. For several the journal comes first.
    """
    if len(renames) == 1:
        renames[0][0].replace(renames[0][1])
        return
    with _renaming:
        _rename_by_journal(renames)


def _rename_by_journal(renames: Sequence[tuple[Path, Path]]) -> None:
    first = renames[0][1]
    journal = first.with_name(f".{_stem(first)}.{secrets.token_hex(8)}.journal")
    markers = [_marker(target) for _, target in renames]
    temporary, file, lock = open_part(first)
    try:
        with BufferedWriter(file) as stream:
            text = json.dumps([[str(part), str(target)] for part, target in renames])
            stream.write(text.encode(errors="surrogateescape"))
            stream.flush()
            _sync(stream.fileno())
        for marker in markers:
            _write(marker, str(journal))
        for folder in dict.fromkeys(marker.parent for marker in markers):
            sync_folder(folder)
        temporary.replace(journal)  # from here on the new files are valid
    except BaseException:
        for leftover in (temporary, *markers):
            with contextlib.suppress(OSError):
                leftover.unlink()
        raise
    finally:
        if lock is not None:
            os.close(lock)
    sync_folder(journal.parent)
    _roll_forward(journal)
    for marker in markers:
        with contextlib.suppress(OSError):
            marker.unlink()


def finish_commit(target: Path) -> Path:
    """Finish an interrupted commit of this file; return the path of its content.

    That is the target, or the part file of an interrupted commit on a read-only file system.
    """
    marker = _marker(target)
    try:
        text = marker.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return target
    journal = Path(text)
    if journal.parent.name in ("", ".") or not journal.name.endswith(".journal"):
        return target
    renames = _read_journal(journal)
    if not _roll_forward(journal):
        return next((part for part, to in renames if to == target and part.exists()), target)
    with contextlib.suppress(OSError):
        marker.unlink()
    return target


def remove_leftovers(target: Path) -> None:
    """Remove part files of this target whose writers are gone."""
    if fcntl is None:
        return
    pattern = re.compile(re.escape(f".{_stem(target)}.") + r"[0-9a-f]{8,16}\.part")
    with contextlib.suppress(OSError):
        for name in os.listdir(target.parent):  # noqa: PTH208 (a folder may hold a million names)
            if pattern.fullmatch(name):
                _remove_if_unlocked(target.with_name(name))


def _sync(handle: int) -> None:
    """Sync a file's content to the disk, unless disabled by the user."""
    if env.get("MXNET_SYNC_FILES"):
        os.fsync(handle)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable where the system allows it."""
    if os.name != "posix" or not env.get("MXNET_SYNC_FILES"):
        return
    # Some network file systems refuse to sync a folder; the content is safe already.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _stem(target: Path) -> str:
    """Return the target's name, truncated so that the companions' names are not too long."""
    return os.fsdecode(os.fsencode(target.name)[:MAX_STEM_BYTES])


def _marker(target: Path) -> Path:
    return target.with_name(f".{_stem(target)}.commit")


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
        file.flush()
        _sync(file.fileno())


def _read_journal(journal: Path) -> list[tuple[Path, Path]]:
    try:
        text = journal.read_text(encoding="utf-8", errors="surrogateescape")
        renames = [(Path(part), Path(target)) for part, target in json.loads(text)]
    except (OSError, ValueError, TypeError):
        return []
    # Accept only renames of part files to their own targets.
    return [
        (part, target)
        for part, target in renames
        if part.parent == target.parent
        and part.name.startswith(f".{_stem(target)}.")
        and part.suffix == ".part"
    ]


def _roll_forward(journal: Path) -> bool:
    """Complete the pending renames; return whether the journal is finished."""
    renames = _read_journal(journal)
    try:
        for part, target in renames:
            with contextlib.suppress(FileNotFoundError):  # already renamed
                part.replace(target)
        for folder in dict.fromkeys(target.parent for _, target in renames):
            sync_folder(folder)
        journal.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _remove_if_unlocked(part: Path) -> None:
    assert fcntl is not None
    with contextlib.suppress(OSError):
        handle = os.open(part, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()
        finally:
            os.close(handle)


class _Commits(threading.local):
    """Each thread's current commit, as a list of complete files."""

    pending: list[AtomicFile] | None = None


_commits = _Commits()


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a binary file that replaces ``path`` when the block ends without an error.

    The bytes go to a temporary file in the same folder, reach the disk, and are then renamed.
    A link is followed: the file it points to is replaced, not the link. Targets that are not
    regular files (a pipe, ``/dev/null``) are written directly.
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
    """Rename finished files to their targets and release their locks."""
    latest = {file.path: file for file in files}  # the last write of a file counts
    if not latest:
        return
    try:
        rename_all([(file.part, file.path) for file in latest.values()])
    except OSError as error:
        raise unwritable(next(iter(latest)), error) from error
    for folder in dict.fromkeys(path.parent for path in latest):
        sync_folder(folder)
    for file in files:
        file.discard()  # remaining: the lock, and an older part


class AtomicFile:
    """A file being written, which replaces its target at `commit`.

    Part files of the target that killed processes left behind are removed.
    """

    def __init__(self, path: Path) -> None:
        try:
            path = path.resolve()
        except (OSError, RuntimeError) as error:  # a cycle of links
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
        """Sync the content to the disk, and replace the target by it."""
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
                _sync(self._raw.fileno())
            self.stream.close()
        except OSError as error:
            raise unwritable(self.path, error) from error
        self.is_open = False

    def discard(self) -> None:
        """Drop the written content, unless it is committed; the target is unchanged."""
        self.abandon()
        if not self.is_special:
            with contextlib.suppress(OSError):
                self.part.unlink()

    def abandon(self) -> None:
        """Close the file without changes on the disk, as a forked child must."""
        if self.is_open:
            self.is_open = False
            self.stream.drop()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class _Stream(io.BufferedWriter):
    """Adds the target to errors, and syncs a large file while it is written."""

    STEP = 64 << 20  # bytes between early syncs

    def __init__(self, raw: io.RawIOBase, target: Path) -> None:
        super().__init__(raw)
        self._target = target
        self._unsynced = 0  # number of bytes not synced yet
        self._step = self.STEP if env.get("MXNET_SYNC_FILES") else math.inf
        self._worker: ThreadPoolExecutor | None = None
        self._running: Future | None = None

    def write(self, data: Any, /) -> int:
        """Write bytes, and sync them to the disk from time to time."""
        try:
            count = super().write(data)
            self._unsynced += count
            if self._unsynced >= self._step and (self._running is None or self._running.done()):
                self._settle()
                self.flush()
                self._worker = self._worker or ThreadPoolExecutor(1)
                # At exit pools accept no work: then only the last sync is done.
                with contextlib.suppress(RuntimeError):
                    self._running = self._worker.submit(os.fsync, self.fileno())
                self._unsynced = 0
        except OSError as error:
            raise unwritable(self._target, error) from error
        return count

    def flush(self) -> None:
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
        """Close the file and discard the buffer."""
        if self._worker is not None:
            self._worker.shutdown()
        with contextlib.suppress(OSError):
            self.raw.close()

    def _settle(self) -> None:
        """Raise the error of an early sync: the system reports each error only once."""
        if self._running is not None:
            self._running.result()


def _open(path: Path, mode: str, target: Path) -> Any:
    try:
        return path.open(mode, buffering=0)
    except OSError as error:
        raise unwritable(target, error) from error


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None
