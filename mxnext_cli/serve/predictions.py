"""Predictions: a body becomes the inputs of a model, and its outputs the answer."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from mxnet.error import MXNetError, ShapeError

from .. import UsageError
from .app import ClientGone
from .batching import QueueFull, Stopping, WorkerDied
from .encoding import encode, encode_predictions
from .limits import MAX_INLINE_BYTES, Budget, Limits, Refused, Share
from .metrics import Metrics
from .open_inference import HEADER_LENGTH, choose_outputs, read_request, write_response
from .protocol import Connections
from .repository import LoadedModel, Repository
from .responses import Pieces

QUICK = 0.005  # seconds that a lone request may take on the event loop
MAX_INLINE_NUMBERS = 16 << 10  # of outputs that are encoded on the event loop
T = TypeVar("T")


class Predictions:
    """Answers requests with the outputs of models; decoding is done in the threads of `pool`."""

    def __init__(
        self,
        repository: Repository,
        limits: Limits,
        metrics: Metrics,
        connections: Connections,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._repository, self._limits, self._metrics = repository, limits, metrics
        self._connections, self._pool = connections, pool
        self._budget = Budget(limits.max_in_flight)
        self._receiving = 0

    @property
    def receiving(self) -> int:
        """How many bodies are being received."""
        return self._receiving

    async def predict(self, request: Request) -> Response:
        """Answer with the outputs for the inputs in the body."""
        params = request.path_params
        model = self._repository.get(
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
        model = self._repository.get(params["model"], params.get("version"))
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
            self._metrics.in_flight.put(self._budget.in_use)

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
                if len(body) > MAX_INLINE_BYTES:
                    await self._connections.take_turn()
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
        self._metrics.predictions.add(label=model.name)
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
        is_alone = self._connections.active <= 1 and model.can_run_on_loop
        # With nobody else to wait for, the way to another thread and back would be the delay.
        if is_alone and batcher.is_idle and batcher.times.estimate(inputs) < QUICK:
            return batcher.run_here(inputs)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[np.ndarray]] = loop.create_future()
        batcher.submit(inputs, future)
        self._metrics.queue.put(batcher.waiting)
        timer = loop.call_later(self._limits.timeout, _expire, future)
        try:
            return await future
        finally:
            timer.cancel()
            self._metrics.queue.put(batcher.waiting)


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
