"""The HTTP side: routes, limits, and what each failure answers."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from mxnext_cli.errors import UsageError

from ...error import MXNetError, ShapeError
from .batching import Batcher, Predict, QueueFull, Stopping, WorkerDied
from .bodies import BadBody, Decoder, encode
from .metrics import Gauge, Metrics

CLIENT_CLOSED = 499  # nobody reads it; it is counted


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
        said = request.headers.get("content-length", "")
        if said.isdigit() and int(said) > limit:
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
