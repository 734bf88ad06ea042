"""Turn the places that users give into local paths, and report files that cannot be used."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from pathlib import Path

from ..error import MXNetError
from .journal import finish_commit

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class MissingFile(MXNetError, FileNotFoundError):
    """A file that was to be read is not there."""


class UnwritableFile(MXNetError, OSError):
    """A file cannot be written."""

    __str__ = MXNetError.__str__  # OSError's would leave out what to do


class MissingFolder(UnwritableFile, FileNotFoundError):
    """The folder that a file was to be written to is not there."""


class ForbiddenFile(UnwritableFile, PermissionError):
    """A file or folder may not be written to."""


class FolderInPlace(UnwritableFile, IsADirectoryError):
    """A folder has the name that a file was to have."""


class RemoteLocation(MXNetError, ValueError):
    """An address on another machine was given where a local path is needed."""


def local_path(place: str | os.PathLike[str]) -> Path:
    """Return the local path that ``place`` means; ``file://`` is understood, other schemes are not.

    >>> local_path("file:///models/net.params").as_posix()
    '/models/net.params'
    """
    text = os.fspath(place)
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


def unwritable(path: Path, error: OSError) -> UnwritableFile:
    """Return one error about a file that could not be written: what failed, and what is left."""
    if isinstance(error, UnwritableFile):
        return error
    kinds = (MissingFolder, ForbiddenFile, FolderInPlace)
    kind = next((k for k in kinds if issubclass(k, type(error))), UnwritableFile)
    reason = error.strerror or str(error)
    if kind is MissingFolder and not path.parent.is_dir():
        reason = f"there is no folder {str(path.parent)!r}. Create it first"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        reason += ". Free some space, or save to another disk"
    elif error.errno == errno.EROFS:
        reason += ". Save to a folder that can be written"
    kept = ""
    with contextlib.suppress(OSError):
        kept = " The old file is kept as it was." if path.is_file() else ""
    made = kind(f"Cannot write {str(path)!r}: {reason}.{kept}")
    made.errno, made.strerror, made.filename = error.errno, error.strerror, str(path)
    return made


def existing_file(place: str | os.PathLike[str]) -> Path:
    """Return the local path of a regular file that can be read."""
    path = finish_commit(local_path(place))
    if path.is_file():
        return path
    if path.exists():
        raise MissingFile(f"Cannot read {str(path)!r}: it is not a regular file.")
    raise MissingFile(f"Cannot read {str(path)!r}: there is no such file.")
