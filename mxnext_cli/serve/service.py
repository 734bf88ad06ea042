"""The HTTP side: routes, limits, what each failure answers, and bodies to and from arrays."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import time
import zipfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from mxnet.error import MXNetError, ShapeError

from .. import CommandError, UsageError
from ..models import Shape
from ..predict import Preparation
from .batching import Batcher, Gauge, Metrics, Predict, QueueFull, Stopping, WorkerDied

CLIENT_CLOSED = 499  # nobody reads it; it is counted
Arrays = dict[str, np.ndarray]
NPY, NPZ, JSON = "application/x-npy", "application/x-npz", "application/json"


@dataclass
class Settings:
    """Limits and batching of a server."""

    max_batch: int = 32
    max_delay: float = 0.002  # seconds
    workers: int = 1
    max_queue: int = 256
    max_body: int = 32 << 20  # bytes
    timeout: float = 30.0  # seconds


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.code, self.headers = code, headers


class Service:
    """One model behind HTTP."""

    def __init__(
        self,
        predict: Predict,
        output_names: list[str],
        decoder: Decoder,
        facts: dict[str, Any],
        settings: Settings,
    ) -> None:
        self._names, self._decoder = output_names, decoder
        self._facts, self._settings = facts, settings
        self.metrics = Metrics()
        self._receiving = 0
        self.batcher = Batcher(
            predict,
            max_batch=settings.max_batch,
            max_delay=settings.max_delay,
            max_queue=settings.max_queue,
            workers=settings.workers,
            metrics=self.metrics,
            arriving=lambda: self._receiving,
        )
        self.metrics.gauges += [
            Gauge("mx_queue", "Requests that wait for a worker.", lambda: self.batcher.waiting),
            Gauge("mx_workers", "Workers that are alive.", lambda: self.batcher.workers),
        ]
        self.app = Starlette(
            routes=[
                Route("/predict", self.predict, methods=["POST"]),
                Route("/health", self.health),
                Route("/metrics", self.show_metrics),
                Route("/model", self.model),
                Route("/", self.model),
            ],
            lifespan=self._lifespan,
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(self.batcher.close, self._settings.timeout)

    async def health(self, request: Request) -> Response:
        """Answer 200 while there are workers."""
        is_well = self.batcher.workers > 0
        return JSONResponse({"status": "ok" if is_well else "failing"}, 200 if is_well else 503)

    async def show_metrics(self, request: Request) -> Response:
        """Answer with Prometheus' text."""
        return PlainTextResponse(self.metrics.text(), media_type="text/plain; version=0.0.4")

    async def model(self, request: Request) -> Response:
        """Answer with what the model takes and gives."""
        return JSONResponse(self._facts)

    async def predict(self, request: Request) -> Response:
        """Answer with the outputs for the inputs in the body."""
        start = time.perf_counter()
        try:
            response = await self._predict(request)
        except Refused as refused:
            response = JSONResponse({"error": str(refused)}, refused.code, refused.headers)
        except ClientDisconnect:
            response = Response(status_code=CLIENT_CLOSED)
        self.metrics.requests.add(label=str(response.status_code))
        self.metrics.seconds.observe(time.perf_counter() - start)
        return response

    async def _predict(self, request: Request) -> Response:
        self._receiving += 1
        try:
            body = await self._read(request)
            kind = request.headers.get("content-type", "")
            inputs = self._decode(body, kind)
        finally:
            self._receiving -= 1
        outputs = await self._answer(inputs)
        named = dict(zip(self._names, outputs, strict=True))
        content, kind = encode(named, request.headers.get("accept", ""))
        return Response(content, media_type=kind)

    async def _read(self, request: Request) -> bytes:
        limit = self._settings.max_body
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > limit:
            raise _too_large(limit)
        try:
            return await asyncio.wait_for(_collect(request, limit), self._settings.timeout)
        except asyncio.TimeoutError:  # another class before Python 3.11
            raise Refused(
                408, f"the body did not arrive in {self._settings.timeout:g} s", connection="close"
            ) from None

    def _decode(self, body: bytes, kind: str) -> dict[str, np.ndarray]:
        try:
            return self._decoder.decode(body, kind)
        except BadBody as error:
            raise Refused(400, str(error)) from None

    async def _answer(self, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        try:
            future = self.batcher.submit(inputs)
        except QueueFull:
            message = f"{self._settings.max_queue} requests wait already; try again later"
            raise Refused(503, message, **{"retry-after": "1"}) from None
        except Stopping:
            raise Refused(503, "the server is stopping", connection="close") from None
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._settings.timeout)
        except asyncio.TimeoutError:  # another class before Python 3.11
            raise Refused(504, f"no answer within {self._settings.timeout:g} s") from None
        except (ShapeError, UsageError) as error:
            raise Refused(400, str(error)) from None
        except WorkerDied:
            raise Refused(500, "the worker died on this request; another one took over") from None
        except Stopping:
            raise Refused(503, "the server is stopping", connection="close") from None
        except MXNetError as error:
            raise Refused(500, str(error)) from None
        except Exception as error:  # a defect, which must not end the server
            raise Refused(500, f"{type(error).__name__}: {error}") from None


async def _collect(request: Request, limit: int) -> bytes:
    parts, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        parts.append(chunk)
    return b"".join(parts)


def _too_large(limit: int) -> Refused:
    return Refused(413, f"the body is larger than {limit} bytes", connection="close")


class BadBody(Exception):
    """A body that cannot become the inputs of the model; the message says why."""


class Decoder:
    """Turns bodies into the inputs of one model."""

    def __init__(
        self,
        inputs: Sequence[str],
        shapes: dict[str, Shape],
        how: Preparation,
        max_bytes: int,
    ) -> None:
        self._inputs, self._shapes = list(inputs), shapes
        self._how, self._max_bytes = how, max_bytes
        self._only = "data" if "data" in self._inputs else self._inputs[0]

    def decode(self, body: bytes, content_type: str) -> Arrays:
        """Return the arrays of a body, each with a batch axis."""
        kind = content_type.partition(";")[0].strip().lower()
        if not body:
            raise BadBody("the body is empty")
        if kind.startswith("image/"):
            raw = {self._only: self._image(body)}
        elif kind == NPZ or (kind != NPY and body.startswith(b"PK\x03\x04")):
            raw = self._npz(body)
        elif kind == NPY or body.startswith(b"\x93NUMPY"):
            raw = {self._only: _load(io.BytesIO(body))}
        else:
            raw = self._json(body)
        arrays = {name: self._check(name, value) for name, value in raw.items()}
        rows = {len(value) for value in arrays.values()}
        if not arrays or len(rows) != 1 or rows == {0}:
            shown = ", ".join(f"{n} {v.shape}" for n, v in arrays.items()) or "none"
            raise BadBody(f"inputs need the same number of samples, 1 or more: {shown}")
        return arrays

    def _image(self, body: bytes) -> np.ndarray:
        try:
            return self._how.prepare(body, "the image", self._shapes.get(self._only))[None]
        except CommandError as error:
            raise BadBody(str(error)) from None

    def _npz(self, body: bytes) -> dict[str, np.ndarray]:
        try:
            with zipfile.ZipFile(io.BytesIO(body)) as archive:
                size = sum(member.file_size for member in archive.infolist())
            if size > self._max_bytes:
                raise BadBody(
                    f"the archive unpacks to {size} bytes; {self._max_bytes} is the limit"
                )
            with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        except BadBody:
            raise
        except Exception as error:  # of many kinds
            raise BadBody(f"the body is not an .npz archive: {error}") from None

    def _json(self, body: bytes) -> dict[str, np.ndarray]:
        try:
            read = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise BadBody(
                f"the body is neither JSON ({error}) nor an .npy, .npz or image"
            ) from None
        inputs = read.get("inputs") if isinstance(read, dict) else None
        if isinstance(inputs, list):
            inputs = {self._only: inputs}
        if not isinstance(inputs, dict):
            raise BadBody('the JSON needs {"inputs": {"' + self._only + '": [[...], ...]}}')
        arrays = {}
        for name, values in inputs.items():
            try:
                arrays[name] = np.array(values)
            except (ValueError, TypeError, OverflowError, RecursionError):
                raise BadBody(f"input {name!r}: its rows are of different lengths") from None
        return arrays

    def _check(self, name: str, value: np.ndarray) -> np.ndarray:
        """Return an input with a batch axis, in the expected shape."""
        if name not in self._inputs:
            raise BadBody(f"the model has no input {name!r}; its inputs: {', '.join(self._inputs)}")
        if value.dtype.kind not in "fiub":
            raise BadBody(f"input {name!r}: it holds {value.dtype}, not numbers")
        shape = self._shapes.get(name)
        if shape is None:
            return value if value.ndim else value[None]
        if value.shape == shape:
            return value[None]
        if value.shape[1:] != shape:
            raise BadBody(
                f"input {name!r}: a sample has shape {shape}, and several (n, "
                f"{', '.join(map(str, shape))}); this is {value.shape}"
            )
        return value


def _load(file: io.BytesIO) -> np.ndarray:
    try:
        return np.load(file, allow_pickle=False)
    except Exception as error:  # of many kinds
        raise BadBody(f"the body is not an .npy array: {error}") from None


def encode(outputs: dict[str, Any], accept: str) -> tuple[bytes, str]:
    """Return the body of an answer and its content type, as the client accepts it."""
    if NPZ in accept:
        file = io.BytesIO()
        np.savez(file, **outputs)
        return file.getvalue(), NPZ
    if NPY in accept:
        file = io.BytesIO()
        np.save(file, next(iter(outputs.values())))
        return file.getvalue(), NPY
    values = {name: _plain(out) for name, out in outputs.items()}
    return json.dumps({"outputs": values}, allow_nan=False).encode(), JSON


def _plain(values: np.ndarray) -> Any:
    """Return nested lists; what is not finite becomes null, which JSON has."""
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return values.tolist()
    marked = values.astype(object)
    marked[~np.isfinite(values)] = None
    return marked.tolist()
