"""Descriptions of the server and its models: pages, health, metrics, metadata, reloading."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import threading
from collections.abc import Callable
from importlib import resources
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from mxnet import __version__
from mxnet.visualization.page import page_text

from .app import Handler, json_response
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
    "/openapi.json": ("openapi.json", "application/json"),
}
SCRIPT = re.compile(r"<script(?![^>]*application/json)[^>]*>(.*?)</script>", re.DOTALL)
EXTENSIONS = ["binary_tensor_data", "model_repository"]


class Descriptions:
    """Answers everything but predictions."""

    def __init__(self, repository: Repository, metrics: Metrics, allows_control: bool) -> None:
        self._repository, self._metrics = repository, metrics
        self._allows_control = allows_control
        self._files = {path: (ASSETS / name).read_bytes() for path, (name, _) in FILES.items()}
        self.stopping = threading.Event()

    def readers(self) -> dict[str, Handler]:
        """Return the handler of each path that is read."""
        repository, status = self._repository, {"error_code": "OK", "error_message": ""}
        facts: dict[str, Callable[[LoadedModel], Any]] = {
            "/health": lambda _: {"status": "ok"},
            "/v2/health/live": lambda _: {"status": "ok"},
            "/model": LoadedModel.describe,
            "/models": lambda _: [model.describe() for model in repository.models],
            "/v1/models/{model}": lambda model: {"model_version_status": [
                {"version": version, "state": "AVAILABLE", "status": status}
                for version in repository.entries[model.name]
            ]},
            "/v2": lambda _: {"name": "mxnext", "version": __version__, "extensions": EXTENSIONS},
        }  # fmt: skip
        for path in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
            facts[path] = lambda model: model.metadata(list(repository.entries[model.name]))
            facts[f"{path}/ready"] = lambda model: {"name": model.name, "ready": True}
        handlers = {path: self._answer(function) for path, function in facts.items()}
        return handlers | dict.fromkeys(FILES, self.file) | {
            "/view": self.view, "/metrics": self.show_metrics, "/v2/health/ready": self.ready
        }  # fmt: skip

    def actions(self) -> dict[str, Handler]:
        """Return the handler of each path that takes POST."""
        return {
            "/v2/repository/index": self._answer(lambda _: [
                {"name": model.name, "version": model.version, "state": "READY", "reason": ""}
                for model in self._repository.models
            ]),
            "/v2/repository/models/{model}/load": self.load_model,
        }  # fmt: skip

    def _answer(self, function: Callable[[LoadedModel], Any]) -> Handler:
        async def handler(request: Request) -> Response:
            return json_response(function(self._repository.find(request)))

        return handler

    async def file(self, request: Request) -> Response:
        """Answer with the page or its parts."""
        path = request.scope["path"]
        return _page(self._files[path], FILES[path][1], "'self'", "'self'")

    async def view(self, request: Request) -> Response:
        """Answer with a page that shows the layers of a model."""
        text = await asyncio.to_thread(_draw, self._repository.find(request))
        digests = (hashlib.sha256(script.encode()).digest() for script in SCRIPT.findall(text))
        scripts = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
        return _page(text.encode(), HTML, scripts, "'unsafe-inline'")

    async def ready(self, request: Request) -> Response:
        """Answer 200 while requests are taken."""
        is_ready = not self.stopping.is_set()
        return json_response({"ready": is_ready}, 200 if is_ready else 503)

    async def show_metrics(self, request: Request) -> Response:
        """Answer with Prometheus' text."""
        return Response(self._metrics.text(), headers={"content-type": METRICS_KIND})

    async def load_model(self, request: Request) -> Response:
        """Load a model again whose files changed."""
        if not self._allows_control:
            raise Refused(403, "models are loaded again by SIGHUP; mx serve --control allows this")
        self._repository.find(request)
        return json_response({"loaded": await self._repository.reload()})


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
