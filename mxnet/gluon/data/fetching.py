"""Locate files of public data sets: in their folder, on the system, or on the network."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ..._process import env
from ...error import MXNetError
from ...formats.atomic import replacing
from ..utils import check_sha1, download, repository_addresses


class Wanted(NamedTuple):
    """A required file: name and SHA-1 hash; ``content`` is the hash of an unzipped ``.gz`` file."""

    name: str
    sha1: str
    content: str | None = None


class MissingData(MXNetError, FileNotFoundError):
    """Files of a data set are neither on this machine nor available for download."""


def dataset_folder(name: str) -> str:
    """Return the folder of a data set under ``MXNET_HOME``."""
    return str(Path(env.get("MXNET_HOME"), "datasets", name))


class Source(NamedTuple):
    """The locations of a data set's files, in search order."""

    root: str
    namespace: str  # folder in the online repository
    places: tuple[str, ...] = ()  # folders of the system that may have them
    hint: str = ""  # advice on other sources
    mirrors: tuple[str, ...] = ()  # addresses of folders that hold the same files

    def addresses(self, name: str) -> list[str]:
        """Return the download addresses of a file."""
        mirrors = [mirror + name for mirror in self.mirrors]
        return repository_addresses(f"gluon/dataset/{self.namespace}/{name}", *mirrors)


def unzipped(file: Wanted, source: Source, needed: Iterable[Wanted] = ()) -> bytes:
    """Return the content of a ``.gz`` file; if it is missing, the error names all required files.

    The hash of the content is enough, in case the file was compressed again.
    """
    for folder in (source.root, *source.places):
        path = Path(folder, file.name)
        if not path.is_file():
            continue
        if check_sha1(path, file.sha1):
            return gzip.decompress(path.read_bytes())
        if file.content is not None:
            content = gzip.decompress(path.read_bytes())
            if hashlib.sha1(content).hexdigest() == file.content:
                return content
    return gzip.decompress(fetched(file, source, needed).read_bytes())


def unpacked(files: Iterable[Wanted], archive: Wanted, source: Source) -> Mapping[str, Path]:
    """Return the paths of files, extracted from an archive if they are missing."""
    root = source.root
    paths = {file: Path(root, file.name) for file in files}
    missing = [w for w, path in paths.items() if not (path.is_file() and check_sha1(path, w.sha1))]
    if missing:
        local = Path(root, archive.name)
        if not local.is_file() or not _taken_out(local, missing, root):
            _taken_out(fetched(archive, source), missing, root, is_checked=True)
    for file, path in paths.items():
        if not path.is_file():
            raise MissingData(f"{file.name} with SHA-1 {file.sha1} is not in {archive.name}")
    return {file.name: path for file, path in paths.items()}


def fetched(file: Wanted, source: Source, needed: Iterable[Wanted] = ()) -> Path:
    """Return the path of a file, downloaded into the root if missing."""
    try:
        target = str(Path(source.root, file.name))  # the root need not exist yet
        addresses = source.addresses(file.name)
        return Path(download(addresses, path=target, sha1_hash=file.sha1, retries=0))
    except (OSError, MXNetError) as error:
        files = " and ".join(f"{w.name} (SHA-1 {w.sha1})" for w in (needed or [file]))
        there = Path(source.root, file.name).exists()
        raise MissingData(
            f"Data set {source.namespace!r} needs {files} in {source.root!r}. {file.name} "
            f"{'has another SHA-1 hash' if there else 'is not there'}, and it could not be fetched "
            f"({error}). Put the files into that folder, or name the one where they "
            f"lie with root=... {source.hint}".rstrip()
        ) from error


def _taken_out(
    archive: Path, missing: Iterable[Wanted], root: str, is_checked: bool = False
) -> bool:
    """Extract members of a tar or zip archive into the root, without their folders.

    Hashes of members are not checked if that of the archive was.
    """
    contents = dict(_members(archive, {file_info.name for file_info in missing}))
    complete = True
    for file_info in missing:
        content = contents.get(file_info.name)
        if content is None:
            complete = False
            continue
        if not is_checked and hashlib.sha1(content).hexdigest() != file_info.sha1:
            complete = False
            continue
        with replacing(Path(root, file_info.name)) as file:
            file.write(content)
    return complete


def _members(archive: Path, names: set[str]) -> Iterable[tuple[str, bytes]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for member in packed.infolist():
                if (name := member.filename.rsplit("/", 1)[-1]) in names:
                    yield name, packed.read(member)
        return
    with tarfile.open(archive) as packed:
        for member in packed:
            name = member.name.rsplit("/", 1)[-1]
            if member.isfile() and name in names:
                yield name, (packed.extractfile(member) or io.BytesIO()).read()
