"""`mx.client`: a client for models served by `mx serve`, on this machine or another."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import ssl
import time
from collections import deque
from collections.abc import Mapping
from http import client as http_client
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import numpy as np

from ..error import MXNetError

__all__ = ["Client", "RequestError", "client"]

NPY, NPZ, JSON = "application/x-npy", "application/x-npz", "application/json"
RETRIED = frozenset({429, 502, 503})  # the server could not answer now
FIRST_WAIT, MAX_WAIT = 0.1, 5.0  # seconds
IMAGE_KINDS = {
    ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".gif": "image/gif",
    ".bmp": "image/bmp", ".webp": "image/webp", ".tif": "image/tiff", ".tiff": "image/tiff",
}  # fmt: skip
Array = Any  # what NumPy takes, or an NDArray


class RequestError(MXNetError):
    """Raised if a request fails; `status` is the HTTP status, or 0 if it could not be sent."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def client(url: str, **options: Any) -> Client:
    """Return a client of a server that ``mx serve`` started.

    Parameters
    ----------
    url : str
        Address of the server, such as ``"http://127.0.0.1:8080"``.
    **options
        Options of `mxnet.serving.Client`: ``model``, ``version``, ``token``, ``timeout``,
        ``retries``, ``cafile``.

    >>> mx.client("http://127.0.0.1:8080", model="digits", retries=5)
    Client('http://127.0.0.1:8080', model='digits')
    """
    return Client(url, **options)


class Client:
    """A client of a server that ``mx serve`` started; threads can share it.

    Parameters
    ----------
    url : str
        Address of the server.
    model : str, optional
        Name of the model; the server's first one by default.
    version : str, optional
        Version of the model; the newest one by default.
    token : str, optional
        The token of the server (``--token``).
    timeout : float
        Seconds to wait for a response.
    retries : int
        Number of retries if the server is busy or cannot be reached, with exponential backoff or
        the server's ``Retry-After``.
    cafile : str, optional
        Certificates to trust, for ``https``.

    >>> with mx.serving.Client("http://127.0.0.1:8080") as ask:
    ...     ask.timeout
    30.0
    """

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        version: str | None = None,
        token: str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        cafile: str | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not an address such as 'http://127.0.0.1:8080'")
        self.url = url.rstrip("/")
        self.model, self.version = model, version
        self.timeout, self.retries = timeout, retries
        self._headers = {"authorization": f"Bearer {token}"} if token is not None else {}
        self._parts = parts
        self._context = ssl.create_default_context(cafile=cafile) if _is_secure(parts) else None
        self._idle: deque[http_client.HTTPConnection] = deque()  # deque's methods are atomic

    def __repr__(self) -> str:
        chosen = {"model": self.model, "version": self.version}
        shown = "".join(f", {k}={v!r}" for k, v in chosen.items() if v is not None)
        return f"Client({self.url!r}{shown})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_idle"):
            self.close()

    def close(self) -> None:
        """Close the connections that are open.

        >>> mx.client("http://127.0.0.1:8080").close()
        """
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread was faster
                self._idle.pop().close()

    def predict(
        self, inputs: Array | Mapping[str, Array] | str | Path | bytes
    ) -> np.ndarray | dict[str, np.ndarray]:
        """Return the outputs of the model: an array, or arrays by name if there are several.

        Parameters
        ----------
        inputs : array, dict of str to array, str, Path or bytes
            A sample or a batch, a dict of arrays by input name, or an image as path or bytes.

        >>> client.predict(np.ones((1, 5), "float32")).shape  # doctest: +SKIP
        (1, 2)
        """
        body, kind = _encode(inputs)
        content = self._ask("POST", self._path(), body, {"content-type": kind, "accept": NPZ})
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            outputs = {name: archive[name] for name in archive.files}
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def classify(
        self, inputs: Array | Mapping[str, Array] | str | Path | bytes, top: int = 5
    ) -> list[list[dict[str, Any]]]:
        """Return the best classes of each sample, with their scores and, if known, their labels.

        Parameters
        ----------
        inputs : array, dict of str to array, str, Path or bytes
            See `predict`.
        top : int
            Number of classes per sample.

        >>> client.classify(np.ones((1, 5), "float32"), top=1)  # doctest: +SKIP
        [[{'class': 0, 'score': 0.25}]]
        """
        body, kind = _encode(inputs)
        path = self._path(top=str(top))
        answer = json.loads(self._ask("POST", path, body, {"content-type": kind, "accept": JSON}))
        best = list(answer["top"].values())
        if not best:
            raise RequestError("the model has no output of scores")
        return best[0]

    def describe(self) -> dict[str, Any]:
        """Return the inputs and outputs of the model.

        >>> client.describe()["inputs"]  # doctest: +SKIP
        {'data': [5]}
        """
        query = {"model": self.model} if self.model is not None else {}
        return json.loads(self._ask("GET", f"/model?{urlencode(query)}", None, {}))

    def is_ready(self) -> bool:
        """Return whether the server takes requests; False if it cannot be reached.

        >>> mx.client("http://127.0.0.1:9", retries=0, timeout=1.0).is_ready()
        False
        """
        try:
            self._ask("GET", "/v2/health/ready", None, {}, retries=0)
        except RequestError:
            return False
        return True

    # -- requests -------------------------------------------------------------------------------

    def _path(self, **query: str) -> str:
        if self.version is not None:
            query["version"] = str(self.version)
        path = "/predict" if self.model is None else f"/predict/{quote(self.model, safe='')}"
        return f"{path}?{urlencode(query)}" if query else path

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        retries: int | None = None,
    ) -> bytes:
        """Send a request, with retries after transient errors, and return the response body."""
        attempts = (self.retries if retries is None else retries) + 1
        for attempt in range(attempts):
            is_last = attempt == attempts - 1
            wait = 0.0
            try:
                status, after, content = self._send(method, path, body, headers)
            except (OSError, http_client.HTTPException) as error:
                if is_last:
                    raise RequestError(f"{self.url}: {error or type(error).__name__}") from error
            else:
                if status < 400:
                    return content
                if status not in RETRIED or is_last:
                    raise RequestError(f"{self.url}{path}: {_reason(status, content)}", status)
                wait = float(after) if after.isdigit() else 0.0
            delay = FIRST_WAIT * 2**attempt
            time.sleep(min(MAX_WAIT, max(wait, random.uniform(delay / 2, delay))))
        raise RequestError(f"{self.url}: there were no attempts; retries is {self.retries}")

    def _send(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, str, bytes]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            connection.request(
                method, self._parts.path.rstrip("/") + path, body, {**self._headers, **headers}
            )
            answer = connection.getresponse()
            content = answer.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return answer.status, answer.headers.get("retry-after", ""), content

    def _connect(self) -> http_client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._context is None:
            return http_client.HTTPConnection(host, port, timeout=self.timeout)
        return http_client.HTTPSConnection(host, port, timeout=self.timeout, context=self._context)


def _is_secure(parts: Any) -> bool:
    return parts.scheme == "https"


def _reason(status: int, content: bytes) -> str:
    try:
        return f"{status}: {json.loads(content)['error']}"
    except (ValueError, KeyError, TypeError):
        return f"{status}: {content[:200].decode('utf-8', 'replace')}"


def _encode(inputs: Any) -> tuple[bytes, str]:
    if isinstance(inputs, bytes | bytearray):
        return bytes(inputs), "application/octet-stream"
    if isinstance(inputs, str | os.PathLike):
        path = Path(inputs)
        return path.read_bytes(), IMAGE_KINDS.get(path.suffix.lower(), "application/octet-stream")
    file = io.BytesIO()
    if isinstance(inputs, Mapping):
        arrays: dict[str, Any] = {name: _as_numpy(value) for name, value in inputs.items()}
        np.savez(file, **arrays)
        return file.getvalue(), NPZ
    np.save(file, _as_numpy(inputs), allow_pickle=False)
    return file.getvalue(), NPY


def _as_numpy(value: Any) -> np.ndarray:
    array = value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)
    return array.astype(np.float32) if array.dtype == object else array
