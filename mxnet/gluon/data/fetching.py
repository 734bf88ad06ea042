"""Where the files of public data sets are found: in their folder, on the system, on the network."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ... import env
from ...error import MXNetError
from ...formats.atomic import replacing
from ..utils import _get_repo_file_url, check_sha1, download


class Wanted(NamedTuple):
    """A file by its name and SHA-1 hash; ``content`` is that of what a ``.gz`` file holds."""

    name: str
    sha1: str
    content: str | None = None


class MissingData(MXNetError, FileNotFoundError):
    """Files of a data set are neither here nor to be had."""


def dataset_folder(name: str) -> str:
    """Return the folder of a data set under ``MXNET_HOME``."""
    return str(Path(env.get("MXNET_HOME"), "datasets", name))


def unzipped(wanted: Wanted, root: str, namespace: str, places: Iterable[str] = ()) -> bytes:
    """Return what a ``.gz`` file holds.

    Other places than the root may hold it compressed anew: there the content counts.
    """
    for folder in (root, *places):
        path = Path(folder, wanted.name)
        if not path.is_file():
            continue
        if check_sha1(path, wanted.sha1):
            return gzip.decompress(path.read_bytes())
        if wanted.content is not None:
            content = gzip.decompress(path.read_bytes())
            if hashlib.sha1(content).hexdigest() == wanted.content:
                return content
    return gzip.decompress(fetched(wanted, root, namespace).read_bytes())


def unpacked(
    files: Iterable[Wanted], archive: Wanted, root: str, namespace: str
) -> Mapping[str, Path]:
    """Return the paths of files, which are taken out of an archive if they are not there yet."""
    paths = {wanted: Path(root, wanted.name) for wanted in files}
    missing = [w for w, path in paths.items() if not (path.is_file() and check_sha1(path, w.sha1))]
    if missing:
        local = Path(root, archive.name)
        if not local.is_file() or not _taken_out(local, missing, root):
            _taken_out(fetched(archive, root, namespace), missing, root)
    for wanted, path in paths.items():
        if not (path.is_file() and check_sha1(path, wanted.sha1)):
            raise MissingData(f"{wanted.name} with SHA-1 {wanted.sha1} is not in {archive.name}")
    return {wanted.name: path for wanted, path in paths.items()}


def fetched(wanted: Wanted, root: str, namespace: str) -> Path:
    """Return the path of a file that is downloaded into the root; else say where to put it."""
    address = _get_repo_file_url(f"gluon/dataset/{namespace}", wanted.name)
    there = Path(root, wanted.name)
    try:
        return Path(download(address, path=root, sha1_hash=wanted.sha1, retries=0))
    except (OSError, MXNetError) as error:
        state = "has another SHA-1 hash" if there.exists() else "is not there"
        raise MissingData(
            f"Data set {namespace!r} needs {wanted.name} (SHA-1 {wanted.sha1}) in {root!r}, where "
            f"it {state}, and it could not be fetched from {address}: {error}. Put the file into "
            "that folder, or name the one where it lies with root=..."
        ) from error


def _taken_out(archive: Path, missing: Iterable[Wanted], root: str) -> bool:
    """Write members of a tar or zip archive into the root, by their last names alone."""
    contents = dict(_members(archive, {wanted.name for wanted in missing}))
    complete = True
    for wanted in missing:
        content = contents.get(wanted.name)
        if content is None or hashlib.sha1(content).hexdigest() != wanted.sha1:
            complete = False
            continue
        with replacing(Path(root, wanted.name)) as file:
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
