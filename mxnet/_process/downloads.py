"""Atomic downloads with checksums and several addresses."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from ..error import MXNetError
from ..formats.atomic import replacing

__all__ = ["DownloadError", "download_file"]

TIMEOUT_SECONDS = 60
CHUNK_BYTES = 1 << 20
MAX_PAUSE_SECONDS = 1.0
PERMANENT_STATUS = {401, 403, 404, 410}  # permanent errors


class DownloadError(MXNetError, OSError):
    """Raised if a file cannot be downloaded from any address.

    >>> issubclass(mx._process.downloads.DownloadError, OSError)
    True
    """


def download_file(
    addresses: Sequence[str],
    target: Path,
    *,
    sha1: str | None = None,
    retries: int = 0,
    verify_ssl: bool = True,
    on_start: Callable[[str], None] = lambda address: None,
    on_retry: Callable[[Exception, int], None] = lambda error, left: None,
) -> None:
    """Download a file from one of several addresses to `target`.

    The addresses (``http``, ``https``, ``ftp``, ``sftp``, ``doi`` or ``file``) are tried in order,
    and again up to `retries` times. The target keeps its old content until the new one is complete
    and has the hash `sha1`. `on_start` is called with each address that is tried, `on_retry` before
    each retry with the last error and the number of retries left. If no address gives the file, a
    `DownloadError` lists the reason for each.

    >>> _ = Path("a.txt").write_text("text")
    >>> here = Path("a.txt").absolute().as_uri()
    >>> mx._process.downloads.download_file([here + ".none", here], Path("b.txt"))
    >>> Path("b.txt").read_text()
    'text'
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in range(retries, -1, -1):
        errors: dict[str, Exception] = {}
        for address in addresses:
            on_start(address)
            try:
                _download_once(address, target, sha1, verify_ssl)
                return
            except (OSError, ValueError) as error:  # requests' errors are OSErrors
                errors[address] = error
        if left == 0 or all(_is_permanent(error) for error in errors.values()):
            reasons = "; ".join(f"{address}: {error}" for address, error in errors.items())
            raise DownloadError(reasons) from list(errors.values())[-1]
        on_retry(list(errors.values())[-1], left)
        time.sleep(min(MAX_PAUSE_SECONDS, 0.1 * 2 ** (retries - left)))


def _download_once(address: str, target: Path, sha1: str | None, verify_ssl: bool) -> None:
    with replacing(target) as file:
        content = _HashedFile(file)
        _copy(address, content, target.name, verify_ssl)
        if sha1 and content.digest.hexdigest() != sha1.lower():
            raise OSError(
                f"the content hash does not match: SHA-1 {content.digest.hexdigest()} instead of "
                f"{sha1}; the file may have changed or the download be incomplete"
            )


class _HashedFile:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha1(usedforsecurity=False)

    def write(self, chunk: bytes) -> int:
        self.digest.update(chunk)
        return self._file.write(chunk)

    def flush(self) -> None:
        """Do nothing: the file reaches the disk when it is complete."""


def _copy(address: str, file: _HashedFile, name: str, verify_ssl: bool) -> None:
    parts = urllib.parse.urlsplit(address)
    if parts.scheme == "file":
        with Path(urllib.request.url2pathname(parts.path)).open("rb") as source:
            shutil.copyfileobj(source, file, CHUNK_BYTES)
        return
    import pooch  # takes a while, and few programs download

    from ..visualization.tracking import progress

    # Pooch sets the total; a bar without one has no truth value, which pooch asks for.
    bar = progress(desc=name, total=1, unit="B", unit_scale=True, leave=False)
    with bar, contextlib.ExitStack() as responses:
        if parts.scheme in ("http", "https"):
            download = pooch.HTTPDownloader(
                progressbar=bar,
                chunk_size=CHUNK_BYTES,
                timeout=TIMEOUT_SECONDS,
                verify=verify_ssl,
                # Without "identity", servers may compress the file, and its hash would differ.
                headers={"Accept-Encoding": "identity", "User-Agent": "mxnext"},
                # Pooch leaves responses open.
                hooks={"response": lambda r, **_: responses.enter_context(contextlib.closing(r))},
            )
        else:
            download = pooch.downloaders.choose_downloader(address, progressbar=bar)
        download(address, file, None)


def _is_permanent(error: Exception) -> bool:
    """Return whether retries are useless: the file is missing or access is denied."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return isinstance(error, FileNotFoundError | ValueError) or status in PERMANENT_STATUS
