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
from .decoding import CHEAP, Arrays, find_kind
from .encoding import HEADER_LENGTH, encode, encode_predictions, encode_tensors
from .limits import MAX_INLINE_BYTES, Limits, Refused, Share
from .monitoring import Metrics
from .open_inference import read_request
from .repository import LoadedModel, Repository

DECODERS = 2  # threads that decode and encode
MAX_INLINE_NUMBERS = 16 << 10  # of outputs that are encoded on the event loop
T = TypeVar("T")
Write = Callable[[Arrays], tuple[bytes, dict[str, str]]]  # outputs -> body and headers
Read = Callable[[LoadedModel, Request, bytearray], tuple[Arrays, Write]]


class Predictions:
    """Answers requests with the outputs of models; long bodies are decoded in threads."""

    def __init__(self, repository: Repository, limits: Limits, metrics: Metrics) -> None:
        self._repository, self._limits, self._metrics = repository, limits, metrics
        self._pool = ThreadPoolExecutor(DECODERS, "mx-serve-decoder")

    def handlers(self) -> dict[str, Handler]:
        """Return the handler of each path."""
        v1, v2 = "/v1/models/{model}", "/v2/models/{model}"
        predict = ("/predict", "/predict/{model}", f"{v1}:predict",
                   v1 + "/versions/{version}:predict")  # fmt: skip
        infer = (f"{v2}/infer", v2 + "/versions/{version}/infer")
        return {**dict.fromkeys(predict, self.predict), **dict.fromkeys(infer, self.infer)}

    async def predict(self, request: Request) -> Response:
        """Answer with the outputs for the inputs in the body."""
        content_type = request.headers.get("content-type", "")
        return await self._answer(request, find_kind(content_type), content_type, read_prediction)

    async def infer(self, request: Request) -> Response:
        """Answer a request of the open inference protocol."""
        kind = "npy" if HEADER_LENGTH in request.headers else "json"
        return await self._answer(request, kind, "application/json", read_inference)

    async def _answer(self, request: Request, kind: str, content_type: str, read: Read) -> Response:
        model, share = self._repository.find(request), request.scope["mx.share"]
        body = await self._receive(request, model.decoder.max_bytes[kind], share)
        is_quick = len(body) <= MAX_INLINE_BYTES and find_kind(content_type, body) in CHEAP
        inputs, write = await self._call(is_quick, read, model, request, body)
        outputs = await self._run(model, inputs, share)
        is_quick = sum(out.size for out in outputs) <= MAX_INLINE_NUMBERS
        named = dict(zip(model.predictor.output_names, outputs, strict=True))
        content, headers = await self._call(is_quick, write, named)
        share.hold(max(share.bytes, len(content)))
        return Response(content, headers={**headers, "mx-model-version": model.version})

    async def _receive(self, request: Request, limit: int, share: Share) -> bytearray:
        """Return the body; reading is aborted if it is too slow, or in favor of smaller bodies."""
        too_large = Refused(413, f"the body is larger than {limit} bytes")
        if int(request.headers.get("content-length", 0)) > limit:
            raise too_large
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(415, "compressed bodies are not taken")
        body = bytearray()
        try:
            with share.arriving(self._limits.timeout):
                async for chunk in request.stream():
                    if len(body) + len(chunk) > limit:
                        raise too_large
                    share.hold(len(body) + len(chunk))
                    body += chunk
        except ClientDisconnect:  # or its chunks are malformed, which the client may still read
            raise Refused(400, "the body ended early") from None
        return body

    async def _call(self, is_quick: bool, function: Callable[..., T], *args: Any) -> T:
        """Call a function here if it takes next to no time, else in a thread."""
        if is_quick:
            return function(*args)
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *args)

    async def _run(self, model: LoadedModel, inputs: Arrays, share: Share) -> list[np.ndarray]:
        share.hold(max(share.bytes, sum(array.nbytes for array in inputs.values())))
        self._metrics.predictions.labels(model.name).inc()
        try:
            return model.postprocessing.apply(await model.batcher.run(inputs))
        except (MXNetError, UsageError) as error:
            raise Refused(400, f"the model does not take this: {error}") from None


def read_prediction(model: LoadedModel, request: Request, body: bytearray) -> tuple[Arrays, Write]:
    """Return the inputs in a body, and how the answer is written."""
    top = request.query_params.get("top", str(model.postprocessing.top))
    if not top.isascii() or not top.isdigit() or len(top) > 6:
        raise Refused(400, f"top={top[:20]} is not a number")
    inputs = model.decoder.decode(body, request.headers.get("content-type", ""))
    rows, accept = len(next(iter(inputs.values()))), request.headers.get("accept", "")
    has_instances = request.scope["path"].endswith(":predict") or b'"instances"' in body[:256]

    def write(outputs: Arrays) -> tuple[bytes, dict[str, str]]:
        if has_instances:
            content, kind = encode_predictions(outputs, rows)
        else:
            best = {"top": model.postprocessing.best(outputs, int(top))} if int(top) else {}
            content, kind = encode(outputs, accept, best)
        return content, {"content-type": kind}

    return inputs, write


def read_inference(model: LoadedModel, request: Request, body: bytearray) -> tuple[Arrays, Write]:
    """Return the inputs of a request of the open inference protocol, and how it is answered."""
    fields, inputs = read_request(model.decoder, body, request.headers.get(HEADER_LENGTH))
    names = model.predictor.output_names
    binary = fields.binary_outputs(names)
    if unknown := [name for name in binary if name not in names]:
        raise Refused(400, f"the model has no output {unknown[0][:100]!r}; its outputs: {names}")
    facts = {"model_name": model.name, "model_version": model.version}
    facts |= {"id": fields.id} if fields.id else {}

    def write(outputs: Arrays) -> tuple[bytes, dict[str, str]]:
        return encode_tensors(facts, {name: outputs[name] for name in binary}, binary)

    return inputs, write
