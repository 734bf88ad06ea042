"""Descriptions of the server and its models: pages, health, metrics, metadata, reloading."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from mxnet import __version__
from mxnet.visualization.page import page_text

from .app import Front, Handler, json_response
from .encoding import dump
from .limits import Refused
from .monitoring import METRICS_KIND, Metrics
from .repository import LoadedModel, Repository

ASSETS = resources.files("mxnext_cli.serve") / "assets"
POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "img-src 'self' blob: data:; connect-src 'self'; script-src {script}; style-src {style}"
)
HTML = "text/html; charset=utf-8"
FILES = {
    "/": ("page.html", HTML),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
SCRIPT = re.compile(r"<script(?![^>]*application/json)[^>]*>(.*?)</script>", re.DOTALL)


class Descriptions:
    """Answers everything but predictions."""

    def __init__(
        self, repository: Repository, metrics: Metrics, needs_token: bool, allows_control: bool
    ) -> None:
        self._repository, self._metrics = repository, metrics
        self._needs_token, self._allows_control = needs_token, allows_control
        self._files = {path: (ASSETS / name).read_bytes() for path, (name, _) in FILES.items()}
        self.front: Front | None = None  # which knows whether the server is stopping

    def readers(self) -> dict[str, Handler]:
        """Return the handler of each path that is read."""
        return {
            **dict.fromkeys(FILES, self.page),
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

    def actions(self) -> dict[str, Handler]:
        """Return the handler of each path that takes POST."""
        return {
            "/v2/repository/index": self.repository_index,
            "/v2/repository/models/{model}/load": self.load_model,
        }

    def _find(self, request: Request) -> LoadedModel:
        names = {**request.query_params, **request.path_params}
        return self._repository.get(names.get("model"), names.get("version"))

    async def page(self, request: Request) -> Response:
        """Answer with the page or its parts."""
        path = request.scope["path"]
        return _page(self._files[path], FILES[path][1], "'self'", "'self'")

    async def view(self, request: Request) -> Response:
        """Answer with a page that shows the layers of a model."""
        text = await asyncio.to_thread(_draw, self._find(request))
        digests = (hashlib.sha256(script.encode()).digest() for script in SCRIPT.findall(text))
        scripts = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
        return _page(text.encode(), HTML, scripts, "'unsafe-inline'")

    async def health(self, request: Request) -> Response:
        """Answer that the server runs."""
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Answer 200 while requests are taken."""
        is_ready = not (self.front and self.front.is_stopping)
        return json_response({"ready": is_ready}, 200 if is_ready else 503)

    async def show_metrics(self, request: Request) -> Response:
        """Answer with Prometheus' text."""
        return Response(self._metrics.text(), headers={"content-type": METRICS_KIND})

    async def model(self, request: Request) -> Response:
        """Return the inputs and outputs of a model."""
        return json_response(self._find(request).describe())

    async def models(self, request: Request) -> Response:
        """Return the inputs and outputs of all models."""
        return json_response([model.describe() for model in self._repository.models])

    async def openapi(self, request: Request) -> Response:
        """Answer with the OpenAPI document."""
        return json_response(describe_api(self._repository.latest, self._needs_token))

    async def model_status(self, request: Request) -> Response:
        """Answer as TensorFlow Serving does."""
        name = self._find(request).name
        status = {"state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
        versions = self._repository.entries[name]
        return json_response({"model_version_status": [{"version": v, **status} for v in versions]})

    async def server_metadata(self, request: Request) -> Response:
        """Answer with the name of the server and the extensions it has."""
        extensions = ["binary_tensor_data", "model_repository"]
        return json_response({"name": "mxnext", "version": __version__, "extensions": extensions})

    async def model_metadata(self, request: Request) -> Response:
        """Answer with the inputs and outputs of a model."""
        model = self._find(request)
        return json_response(model.metadata(list(self._repository.entries[model.name])))

    async def model_ready(self, request: Request) -> Response:
        """Answer 200 while a model takes requests."""
        return json_response({"name": self._find(request).name, "ready": True})

    async def repository_index(self, request: Request) -> Response:
        """Answer with all models and their versions."""
        state = {"state": "READY", "reason": ""}
        models = self._repository.models
        return json_response([{"name": m.name, "version": m.version, **state} for m in models])

    async def load_model(self, request: Request) -> Response:
        """Load a model again whose files changed."""
        if not self._allows_control:
            raise Refused(403, "models are loaded again by SIGHUP; mx serve --control allows this")
        self._find(request)
        return json_response({"loaded": await self.reload()})

    async def reload(self) -> list[str]:
        """Load what changed, while requests are answered; return what was loaded."""
        try:
            loaded = await asyncio.to_thread(self._repository.load)
        except Exception as error:
            raise Refused(409, f"nothing was loaded: {error}") from error
        self._metrics.reloads.inc(len(loaded))
        return loaded


def _page(content: bytes, kind: str, script: str, style: str) -> Response:
    headers = {
        "content-type": kind,
        "content-security-policy": POLICY.format(script=script, style=style),
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }
    return Response(content, headers=headers)


def _draw(model: LoadedModel) -> str:
    shapes = {n: (1, *s) for n, s in model.decoder.shapes.items()}
    complete = set(shapes) >= set(model.model.inputs)
    variable_shapes = model.model.complete_shapes(shapes) if complete else {}
    return page_text(model.model.symbol, variable_shapes, model.model.parameters, model.name)


# -- the OpenAPI document --------------------------------------------------------------------------


def describe_api(models: Sequence[LoadedModel], needs_token: bool) -> dict[str, Any]:
    """Return the document for the models that are served."""
    document = msgspec.json.decode((ASSETS / "openapi.json").read_bytes())
    template, paths = dump(document.pop("model_paths")), document["paths"]
    for model in models:
        paths |= msgspec.json.decode(template.replace(b"{model}", dump(model.name)[1:-1]))
        shapes = model.decoder.shapes
        arrays = {name: _describe_array(shapes.get(name)) for name in model.decoder.inputs}
        inputs = {"type": "object", "properties": arrays, "required": list(arrays)}
        document["components"]["schemas"][model.name] = inputs | {"additionalProperties": False}
    if models:
        paths["/predict"] = paths[f"/predict/{models[0].name}"]
    for operations in paths.values():
        for operation in operations.values():
            operation["responses"] |= {
                code: {"$ref": f"#/components/responses/{code}"}
                for code in document["components"]["responses"]
            }
    if needs_token:
        document["security"] = [{"token": []}]
    return document


def _describe_array(shape: Sequence[int] | None) -> dict[str, Any]:
    """Return the schema of nested lists of a shape, with a batch axis."""
    if shape is None:
        return {"type": "array", "items": {}}
    schema: dict[str, Any] = {"type": "number"}
    for size in reversed(shape):
        schema = {"type": "array", "items": schema, "minItems": size, "maxItems": size}
    return {"type": "array", "items": schema, "minItems": 1}
