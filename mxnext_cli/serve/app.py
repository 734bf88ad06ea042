"""The routes of the server, and what each failure answers."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from mxnet.error import MXNetError, ShapeError

from .. import UsageError
from .batching import Delivery, QueueFull, Stopping, WorkerDied, deliver
from .encoding import encode, encode_predictions
from .guard import Guard
from .limits import MAX_INLINE_BYTES, Budget, Limits, Refused, Share
from .logs import Log
from .metrics import Metrics
from .open_inference import HEADER_LENGTH, choose_outputs, read_request, write_response
from .openapi import describe_api
from .page import Asset, read_assets
from .protocol import Connections
from .repository import LoadedModel, Repository

CLIENT_CLOSED = 499  # nobody reads it; it is counted
DECODERS = 2  # threads that decode and encode
QUICK = 0.005  # seconds that a lone request may take on the event loop
PIECE = 64 << 10  # bytes of an answer that are sent at once
MAX_INLINE_NUMBERS = 16 << 10  # of outputs that are encoded on the event loop
T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]


class ClientGone(Exception):
    """The client closed the connection."""


class Pieces(Response):
    """An answer that is sent in pieces, so that a slow reader does not fill a buffer.

    The bytes of `share` are counted until it is sent.
    """

    share: Share | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        try:
            if len(self.body) <= PIECE:
                await super().__call__(scope, receive, send)
            else:
                await self._send_pieces(send)
        finally:
            if self.share is not None:
                self.share.release()

    async def _send_pieces(self, send: Send) -> None:
        body = bytes(self.body)
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        for start in range(0, len(body), PIECE):
            piece = body[start : start + PIECE]
            has_more = start + PIECE < len(body)
            await send({"type": "http.response.body", "body": piece, "more_body": has_more})


def json_response(content: Any, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer in JSON."""
    return Pieces(orjson.dumps(content), code, headers, "application/json")


class Gate:
    """The outermost part: who may ask, counting, and the log."""

    def __init__(self, app: Any, guard: Guard, metrics: Metrics, access_log: Log | None) -> None:
        self._app, self._guard = app, guard
        self._metrics, self._log = metrics, access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        code, size = 500, 0

        async def counted_send(message: Message) -> None:
            nonlocal code, size
            if message["type"] == "http.response.start":
                code = message["status"]
                message["headers"] = [*message["headers"], (b"x-content-type-options", b"nosniff")]
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            try:
                self._guard.check(scope["path"], dict(scope["headers"]))
                await self._app(scope, receive, counted_send)
            except Refused as refused:
                response = refuse(refused)
                response.headers["connection"] = "close"  # its body was not read
                await response(scope, receive, counted_send)
            except ClientGone:
                code = CLIENT_CLOSED
        finally:
            seconds = time.perf_counter() - start
            self._metrics.requests.add(label=str(code))
            self._metrics.seconds.observe(seconds)
            if self._log is not None:
                self._log.write(
                    {
                        "client": (scope.get("client") or ("",))[0],
                        "method": scope["method"],
                        "path": scope["path"][:200],
                        "status": code,
                        "bytes": size,
                        "ms": round(seconds * 1e3, 3),
                    }
                )


def refuse(refused: Refused) -> Response:
    """Return the answer to a request that is refused."""
    return json_response({"error": str(refused)}, refused.code, refused.headers)


class Service:
    """Models behind HTTP."""

    def __init__(
        self,
        repository: Repository,
        limits: Limits,
        metrics: Metrics,
        guard: Guard | None = None,
        *,
        access_log: Log | None = None,
        allows_control: bool = False,
        connections: Connections | None = None,
    ) -> None:
        self.repository, self.metrics = repository, metrics
        self._limits, self._guard = limits, guard or Guard()
        self._allows_control = allows_control
        self._connections = connections
        self._budget = Budget(limits.max_in_flight)
        self._receiving = 0
        self._pool = ThreadPoolExecutor(DECODERS, "mx-serve-decoder")
        self._assets = read_assets()
        self._views: dict[tuple[str, str], Asset] = {}
        repository.arriving = lambda: self._receiving
        self.app = Starlette(
            routes=self._routes(),
            lifespan=self._lifespan,
            middleware=[
                Middleware(
                    Gate,  # type: ignore[arg-type]
                    guard=self._guard,
                    metrics=metrics,
                    access_log=access_log,
                )
            ],
            exception_handlers={Refused: _on_refused, HTTPException: _on_http_error},  # type: ignore[dict-item]
        )

    def _routes(self) -> list[Route]:
        get: dict[str, Handler] = {
            "/": self.page,
            "/page.css": self.page,
            "/page.js": self.page,
            "/health": self.health,
            "/metrics": self.show_metrics,
            "/model": self.model,
            "/models": self.models,
            "/view": self.view,
            "/openapi.json": self.openapi,
            "/v1/models/{model}": self.model_status,
            "/v2": self.server_metadata,
            "/v2/health/live": self.health,
            "/v2/health/ready": self.ready,
            "/v2/models/{model}": self.model_metadata,
            "/v2/models/{model}/ready": self.model_ready,
            "/v2/models/{model}/versions/{version}": self.model_metadata,
            "/v2/models/{model}/versions/{version}/ready": self.model_ready,
        }
        post: dict[str, Handler] = {
            "/predict": self.predict,
            "/predict/{model}": self.predict,
            "/v1/models/{model}:predict": self.predict,
            "/v1/models/{model}/versions/{version}:predict": self.predict,
            "/v2/models/{model}/infer": self.infer,
            "/v2/models/{model}/versions/{version}/infer": self.infer,
            "/v2/repository/index": self.repository_index,
            "/v2/repository/models/{model}/load": self.load_model,
        }
        return [
            *(Route(path, handler, methods=["POST"]) for path, handler in post.items()),
            *(Route(path, handler, methods=["GET"]) for path, handler in get.items()),
        ]

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def deliver_in_loop(outcomes: Delivery) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(deliver, outcomes)

        self.repository.deliver = deliver_in_loop
        yield
        await asyncio.to_thread(self.repository.close, self._limits.timeout)
        self._pool.shutdown(wait=False, cancel_futures=True)

    # -- predictions ------------------------------------------------------------------------------

    async def predict(self, request: Request) -> Response:
        """Answer with the outputs for the inputs in the body."""
        params = request.path_params
        model = self.repository.get(
            params.get("model") or request.query_params.get("model"),
            params.get("version") or request.query_params.get("version"),
        )
        kind = request.headers.get("content-type", "")
        decoder = model.decoder
        top = _read_top(request, model.postprocessing.top)
        with model.hold(), self._share(request) as share:
            body = await self._read(request, decoder.max_bytes(kind), share)
            is_quick = len(body) <= MAX_INLINE_BYTES and decoder.is_cheap(kind)
            inputs = await self._off_loop(is_quick, decoder.decode, body, kind)
            wants_instances = _has_instances(request, body)
            outputs = await self._answer(model, inputs, share)
            named = dict(zip(model.predictor.output_names, outputs, strict=True))
            rows = len(next(iter(inputs.values())))
            write = functools.partial(
                _encode, named, request.headers.get("accept", ""), model, top, rows, wants_instances
            )
            content, kind = await self._off_loop(_is_small(outputs), write)
            return _respond(share, content, {"content-type": kind, **_version_header(model)})

    async def infer(self, request: Request) -> Response:
        """Answer a request of the open inference protocol."""
        params = request.path_params
        model = self.repository.get(params["model"], params.get("version"))
        header_length = request.headers.get(HEADER_LENGTH)
        limits = model.decoder.body_limits
        limit = limits.json if header_length is None else limits.binary
        with model.hold(), self._share(request) as share:
            body = await self._read(request, limit, share)
            fields, inputs = await self._off_loop(
                len(body) <= MAX_INLINE_BYTES, read_request, model.decoder, body, header_length
            )
            outputs = await self._answer(model, inputs, share)
            chosen = choose_outputs(fields, model.predictor.output_names, outputs)
            facts = {"model_name": model.name, "model_version": model.version}
            content, headers = await self._off_loop(
                _is_small(outputs), write_response, fields, facts, chosen
            )
            return _respond(share, content, {**headers, **_version_header(model)})

    @contextlib.contextmanager
    def _share(self, request: Request) -> Iterator[Share]:
        """Give a request its share of the budget; the answer gives it back."""
        share = self._budget.share()
        connection = (request.scope.get("extensions") or {}).get("mx.connection")
        if connection is not None:
            share.evict = connection.evict
        try:
            yield share
        except BaseException:
            share.release()
            raise
        finally:
            self.metrics.in_flight.put(self._budget.in_use)

    async def _read(self, request: Request, limit: int, share: Share) -> bytes | bytearray:
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length[:20]) > limit:
            raise _too_large(limit)
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(415, "compressed bodies are not taken", connection="close")
        body: bytes | bytearray = b""
        self._receiving += 1
        try:
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                chunk = message.get("body", b"")
                size = len(body) + len(chunk)
                if size > limit:
                    raise _too_large(limit)
                share.hold(size)
                if not body:
                    body = chunk
                else:  # it grows without being copied
                    body = body if isinstance(body, bytearray) else bytearray(body)
                    body += chunk
                if not message.get("more_body", False):
                    share.settle()
                    return body
        finally:
            self._receiving -= 1

    async def _off_loop(self, is_quick: bool, function: Callable[..., T], *args: Any) -> T:
        """Call a function here if it takes next to no time, else in a thread."""
        if is_quick:
            return function(*args)
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *args)

    async def _answer(
        self, model: LoadedModel, inputs: dict[str, np.ndarray], share: Share
    ) -> list[np.ndarray]:
        share.hold(max(share.bytes, sum(array.nbytes for array in inputs.values())))
        self.metrics.predictions.add(label=model.name)
        try:
            outputs = await self._run(model, inputs)
        except QueueFull:
            message = f"{self._limits.max_queue} requests wait already; try again later"
            raise Refused(503, message, retry_after="1") from None
        except asyncio.TimeoutError:  # another class before Python 3.11
            raise Refused(504, f"no answer within {self._limits.timeout:g} s") from None
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
        return model.postprocessing.apply(outputs)

    async def _run(self, model: LoadedModel, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        batcher = model.batcher
        is_alone = self._connections is not None and self._connections.active <= 1
        # With nobody else to wait for, the way to another thread and back would be the delay.
        if is_alone and batcher.is_idle and batcher.times.median(inputs) < QUICK:
            return batcher.run_here(inputs)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[np.ndarray]] = loop.create_future()
        batcher.submit(inputs, future)
        self.metrics.queue.put(batcher.waiting)
        timer = loop.call_later(self._limits.timeout, _expire, future)
        try:
            return await future
        finally:
            timer.cancel()
            self.metrics.queue.put(batcher.waiting)

    # -- what the server is -----------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        """Answer with the page or its parts."""
        return self._assets[request.url.path].response()

    async def view(self, request: Request) -> Response:
        """Answer with a page that shows the layers of a model."""
        model = self.repository.get(
            request.query_params.get("model"), request.query_params.get("version")
        )
        key = (model.name, model.version)
        if key not in self._views:
            page = await asyncio.get_running_loop().run_in_executor(
                self._pool, Asset.of_model, model
            )
            self._views = {key: page}  # the last one that was looked at
        return self._views[key].response()

    async def health(self, request: Request) -> Response:
        """Answer 200 while models can answer."""
        models = [m for e in self.repository.entries.values() for m in e.versions.values()]
        is_well = all(model.batcher.is_alive for model in models)
        self.metrics.workers.put(sum(model.batcher.is_alive for model in models))
        return json_response({"status": "ok" if is_well else "failing"}, 200 if is_well else 503)

    async def ready(self, request: Request) -> Response:
        """Answer 200 while requests are taken."""
        models = [m for e in self.repository.entries.values() for m in e.versions.values()]
        is_draining = self._connections is not None and self._connections.is_draining
        is_ready = not is_draining and all(model.is_ready for model in models)
        return json_response({"ready": is_ready}, 200 if is_ready else 503)

    async def show_metrics(self, request: Request) -> Response:
        """Answer with Prometheus' text."""
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return Pieces(self.metrics.text(), headers={"content-type": kind})

    async def model(self, request: Request) -> Response:
        """Answer with what a model takes and gives."""
        return json_response(self.repository.get(request.query_params.get("model")).describe())

    async def models(self, request: Request) -> Response:
        """Answer with what all models take and give."""
        entries = self.repository.entries.values()
        return json_response([m.describe() for e in entries for m in e.versions.values()])

    async def openapi(self, request: Request) -> Response:
        """Answer with the OpenAPI document."""
        models = [entry.latest for entry in self.repository.entries.values()]
        return json_response(describe_api(models, self._guard.needs_token))

    async def model_status(self, request: Request) -> Response:
        """Answer as TensorFlow Serving does."""
        self.repository.get(request.path_params["model"])
        versions = self.repository.entries[request.path_params["model"]].versions
        status = {"error_code": "OK", "error_message": ""}
        return json_response(
            {
                "model_version_status": [
                    {"version": version, "state": "AVAILABLE", "status": status}
                    for version in versions
                ]
            }
        )

    async def server_metadata(self, request: Request) -> Response:
        """Answer with the name of the server and the extensions it has."""
        from mxnet import __version__

        extensions = ["binary_tensor_data", "model_repository"]
        return json_response({"name": "mxnext", "version": __version__, "extensions": extensions})

    async def model_metadata(self, request: Request) -> Response:
        """Answer with the inputs and outputs of a model."""
        params = request.path_params
        model = self.repository.get(params["model"], params.get("version"))
        return json_response(model.metadata(list(self.repository.entries[model.name].versions)))

    async def model_ready(self, request: Request) -> Response:
        """Answer 200 while a model takes requests."""
        params = request.path_params
        model = self.repository.get(params["model"], params.get("version"))
        return json_response(
            {"name": model.name, "ready": model.is_ready}, 200 if model.is_ready else 503
        )

    async def repository_index(self, request: Request) -> Response:
        """Answer with all models and their versions."""
        return json_response(
            [
                {"name": model.name, "version": model.version, "state": "READY", "reason": ""}
                for entry in self.repository.entries.values()
                for model in entry.versions.values()
            ]
        )

    async def load_model(self, request: Request) -> Response:
        """Load a model again whose files changed."""
        if not self._allows_control:
            raise Refused(403, "models are loaded again by SIGHUP; mx serve --control allows this")
        self.repository.get(request.path_params["model"])
        return json_response({"loaded": await self.reload()})

    async def reload(self) -> list[str]:
        """Load what changed, while requests are answered; return what was loaded."""
        try:
            loaded = await asyncio.to_thread(self.repository.load)
        except Exception as error:
            raise Refused(409, f"nothing was loaded: {error}") from error
        self.metrics.reloads.add(len(loaded))
        return loaded


def _respond(share: Share, content: bytes, headers: dict[str, str]) -> Response:
    share.hold(max(share.bytes, len(content)))
    response = Pieces(content, headers=headers)
    response.share = share
    return response


def _encode(
    named: dict[str, np.ndarray],
    accept: str,
    model: LoadedModel,
    top: int,
    rows: int,
    wants_instances: bool,
) -> tuple[bytes, str]:
    if wants_instances:
        return encode_predictions(named, rows), "application/json"
    extra = {"top": model.postprocessing.best(named, top)} if top else None
    return encode(named, accept, extra)


def _has_instances(request: Request, body: bytes | bytearray) -> bool:
    return request.scope["path"].endswith(":predict") or b'"instances"' in body[:256]


def _read_top(request: Request, default: int) -> int:
    text = request.query_params.get("top")
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise Refused(400, f"top={text[:20]} is not a number", connection="close")
    return int(text)


def _version_header(model: LoadedModel) -> dict[str, str]:
    return {"mx-model-version": model.version}


def _is_small(outputs: list[np.ndarray]) -> bool:
    return sum(out.size for out in outputs) <= MAX_INLINE_NUMBERS


def _expire(future: asyncio.Future) -> None:
    if not future.done():
        future.set_exception(asyncio.TimeoutError())


def _too_large(limit: int) -> Refused:
    return Refused(413, f"the body is larger than {limit} bytes", connection="close")


async def _on_refused(request: Request, refused: Refused) -> Response:
    return refuse(refused)


async def _on_http_error(request: Request, error: HTTPException) -> Response:
    """Answer what Starlette refuses: paths and methods that are not there."""
    headers = dict(error.headers or {})
    if request.method not in ("GET", "HEAD"):
        headers["connection"] = "close"  # the body was not read
    message = f"{request.url.path[:200]}: {error.detail}"
    return json_response({"error": message}, error.status_code, headers)
