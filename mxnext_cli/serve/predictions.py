"""Predictions: a body becomes the inputs of a model, and its outputs the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mxnet.error import MXNetError

from .. import UsageError
from .app import Handler
from .batching import ModelExit, QueueFull, Stopping
from .encoding import encode, encode_predictions
from .limits import MAX_INLINE_BYTES, Limits, Refused, Share
from .monitoring import Metrics
from .open_inference import HEADER_LENGTH, choose_outputs, read_request, write_response
from .repository import LoadedModel, Repository

DECODERS = 2  # threads that decode and encode
MAX_INLINE_NUMBERS = 16 << 10  # of outputs that are encoded on the event loop
T = TypeVar("T")


class Predictions:
    """Answers requests with the outputs of models; long bodies are decoded in threads."""

    def __init__(self, repository: Repository, limits: Limits, metrics: Metrics) -> None:
        self._repository, self._limits, self._metrics = repository, limits, metrics
        self._pool = ThreadPoolExecutor(DECODERS, "mx-serve-decoder")
        self._receiving = 0
        repository.arriving = lambda: self._receiving

    def handlers(self) -> dict[str, Handler]:
        """Return the handler of each path."""
        return {
            "/predict": self.predict,
            "/predict/{model}": self.predict,
            "/v1/models/{model}:predict": self.predict,
            "/v1/models/{model}/versions/{version}:predict": self.predict,
            "/v2/models/{model}/infer": self.infer,
            "/v2/models/{model}/versions/{version}/infer": self.infer,
        }

    async def predict(self, request: Request) -> Response:
        """Answer with the outputs for the inputs in the body."""
        query, share = request.query_params, request.scope["mx.share"]
        model = self._repository.get(*(
            request.path_params.get(name) or query.get(name) for name in ("model", "version")
        ))  # fmt: skip
        kind, accept = (request.headers.get(n, "") for n in ("content-type", "accept"))
        top = _read_top(query.get("top"), model.postprocessing.top)
        body = await self._read(request, model.decoder.max_bytes(kind), share)
        is_quick = len(body) <= MAX_INLINE_BYTES and model.decoder.is_cheap(kind)
        inputs = await self._off_loop(is_quick, model.decoder.decode, body, kind)
        outputs = await self._run(model, inputs, share)
        named = dict(zip(model.predictor.output_names, outputs, strict=True))

        def write() -> tuple[bytes, str]:
            if request.scope["path"].endswith(":predict") or b'"instances"' in body[:256]:
                rows = len(next(iter(inputs.values())))
                return encode_predictions(named, rows), "application/json"
            best = {"top": model.postprocessing.best(named, top)} if top else {}
            return encode(named, accept, best)

        content, kind = await self._off_loop(_is_small(outputs), write)
        return _respond(share, model, content, {"content-type": kind})

    async def infer(self, request: Request) -> Response:
        """Answer a request of the open inference protocol."""
        params, share = request.path_params, request.scope["mx.share"]
        model = self._repository.get(params["model"], params.get("version"))
        length = request.headers.get(HEADER_LENGTH)
        limits = model.decoder.body_limits
        body = await self._read(request, limits.json if length is None else limits.binary, share)
        is_quick = len(body) <= MAX_INLINE_BYTES
        fields, inputs = await self._off_loop(is_quick, read_request, model.decoder, body, length)
        outputs = await self._run(model, inputs, share)
        chosen = choose_outputs(fields, model.predictor.output_names, outputs)
        facts = {"model_name": model.name, "model_version": model.version}
        content, headers = await self._off_loop(
            _is_small(outputs), write_response, fields, facts, chosen
        )
        return _respond(share, model, content, headers)

    async def _read(self, request: Request, limit: int, share: Share) -> bytearray:
        """Return the body; reading is aborted if it is too slow, or in favor of smaller bodies."""
        if int(request.headers.get("content-length", 0)) > limit:
            raise _too_large(limit)
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(415, "compressed bodies are not taken")
        body = bytearray()
        self._receiving += 1
        try:
            with share.arriving(self._limits.timeout):
                async for chunk in request.stream():
                    if len(body) + len(chunk) > limit:
                        raise _too_large(limit)
                    share.hold(len(body) + len(chunk))
                    body += chunk
        except ClientDisconnect:  # or its chunks are malformed, which the client may still read
            raise Refused(400, "the body ended early") from None
        finally:
            self._receiving -= 1
        return body

    async def _off_loop(self, is_quick: bool, function: Callable[..., T], *args: Any) -> T:
        """Call a function here if it takes next to no time, else in a thread."""
        if is_quick:
            return function(*args)
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *args)

    async def _run(
        self, model: LoadedModel, inputs: dict[str, np.ndarray], share: Share
    ) -> list[np.ndarray]:
        share.hold(max(share.bytes, sum(array.nbytes for array in inputs.values())))
        self._metrics.predictions.labels(model.name).inc()
        limits = self._limits
        try:
            outputs = await model.batcher.run(inputs)
        except QueueFull:
            message = f"{limits.max_queue} requests wait already; try again later"
            raise Refused(503, message, retry_after="1") from None
        except asyncio.TimeoutError:
            raise Refused(504, f"no answer within {limits.timeout:g} s") from None
        except (MXNetError, UsageError) as error:
            raise Refused(400, f"the model does not take this: {error}") from None
        except Stopping:
            raise Refused(503, "the server is stopping", connection="close") from None
        except ModelExit as error:
            raise Refused(500, str(error)) from None
        return model.postprocessing.apply(outputs)


def _respond(share: Share, model: LoadedModel, content: bytes, headers: dict[str, str]) -> Response:
    share.hold(max(share.bytes, len(content)))
    return Response(content, headers={**headers, "mx-model-version": model.version})


def _too_large(limit: int) -> Refused:
    return Refused(413, f"the body is larger than {limit} bytes")


def _read_top(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise Refused(400, f"top={text[:20]} is not a number")
    return int(text)


def _is_small(outputs: list[np.ndarray]) -> bool:
    return sum(out.size for out in outputs) <= MAX_INLINE_NUMBERS
