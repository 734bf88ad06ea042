"""The journal that makes the replacement of several files one event, and the cleaning up after it.

New contents lie beside their targets as ``.name.XXXXXXXXXXXXXXXX.part``. A commit writes a journal
that names all of them, and its appearance is the moment at which the new files are valid: whoever
finds a journal, a reader or the next writer, finishes the renaming. Beside every target a marker
``.name.commit`` names the journal, so that a reader needs to look at one name only.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Sequence
from io import BufferedWriter, FileIO
from pathlib import Path

from ..caches import ForkSafeLock

try:
    import fcntl
except ImportError:  # not on Windows: there, leftovers of other processes are not removed
    fcntl = None

__all__ = ["finish_commit", "open_part", "part_path", "remove_leftovers", "rename_all"]

MAX_ATTEMPTS = 100  # to make a temporary file that nobody removes
LONGEST_STEM = 150  # bytes of the target's name in those of its companions
_renaming = ForkSafeLock()  # else threads that save the same files could leave some of each


def part_path(target: Path) -> Path:
    """Return a new name beside a target for its next content."""
    return target.with_name(f".{_stem(target)}.{secrets.token_hex(8)}.part")


def open_part(target: Path) -> tuple[Path, FileIO, int | None]:
    """Make a part file of a target; return its path, the file, and its lock.

    The lock says that the part is being written. It is to be closed when the part is in its place.
    """
    for _ in range(MAX_ATTEMPTS):
        part = part_path(target)
        file = part.open("xb", buffering=0)
        lock = _lock(file.fileno())
        if part.exists():
            return part, file, lock
        # Until it was locked, it looked like a leftover to others that save the same file.
        file.close()
        if lock is not None:
            os.close(lock)
    raise OSError("its temporary file is removed again and again")


def _lock(handle: int) -> int | None:
    """Lock an open file; return another handle, which keeps the lock when the file is closed."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # waits for one who is about to remove the file
    except OSError:  # some network file systems have no locks
        return None
    return os.dup(handle)


def rename_all(renames: Sequence[tuple[Path, Path]]) -> None:
    """Put part files in the places of their targets, all of them or, after a crash, none.

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
            os.fsync(stream.fileno())
        for marker in markers:
            _write(marker, str(journal))
        for folder in dict.fromkeys(marker.parent for marker in markers):
            sync_folder(folder)
        temporary.replace(journal)  # from here on the new files are the valid ones
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
    """Finish a commit of this file that was interrupted; return where its content is.

    That is the target, except on a file system that cannot be written, where the content of an
    interrupted commit stays in its part file.
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


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable where the system allows it."""
    if os.name != "posix":
        return
    # Some network file systems refuse to sync a folder; the content is safe already.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _stem(target: Path) -> str:
    """Return the target's name, cut so that the companions' names are not too long."""
    return os.fsdecode(os.fsencode(target.name)[:LONGEST_STEM])


def _marker(target: Path) -> Path:
    return target.with_name(f".{_stem(target)}.commit")


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _read_journal(journal: Path) -> list[tuple[Path, Path]]:
    try:
        text = journal.read_text(encoding="utf-8", errors="surrogateescape")
        renames = [(Path(part), Path(target)) for part, target in json.loads(text)]
    except (OSError, ValueError, TypeError):
        return []
    # A journal moves part files to the names they belong to, and nothing else.
    return [
        (part, target)
        for part, target in renames
        if part.parent == target.parent
        and part.name.startswith(f".{_stem(target)}.")
        and part.suffix == ".part"
    ]


def _roll_forward(journal: Path) -> bool:
    """Do the renames that are not done yet; return whether the journal is finished."""
    renames = _read_journal(journal)
    try:
        for part, target in renames:
            with contextlib.suppress(FileNotFoundError):  # done already
                part.replace(target)
        for folder in dict.fromkeys(target.parent for _, target in renames):
            sync_folder(folder)
        journal.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _remove_if_unlocked(part: Path) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(part, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()
        finally:
            os.close(handle)
