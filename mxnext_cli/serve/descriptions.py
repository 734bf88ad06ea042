"""What the server says of itself and its models: pages, health, metrics, metadata, reloading."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from starlette.requests import Request
from starlette.responses import Response

from .limits import Refused
from .metrics import Metrics
from .openapi import describe_api
from .page import Asset, read_assets
from .protocol import Connections
from .repository import Repository
from .responses import Pieces, json_response

METRICS_KIND = "text/plain; version=0.0.4; charset=utf-8"


class Descriptions:
    """Answers everything but predictions."""

    def __init__(
        self,
        repository: Repository,
        metrics: Metrics,
        connections: Connections,
        pool: ThreadPoolExecutor,
        *,
        needs_token: bool = False,
        allows_control: bool = False,
    ) -> None:
        self._repository, self._metrics = repository, metrics
        self._connections, self._pool = connections, pool
        self._needs_token, self._allows_control = needs_token, allows_control
        self._assets = read_assets()
        self._views: dict[tuple[str, str], Asset] = {}

    async def page(self, request: Request) -> Response:
        """Answer with the page or its parts."""
        return self._assets[request.scope["path"]].response()

    async def view(self, request: Request) -> Response:
        """Answer with a page that shows the layers of a model."""
        model = self._repository.get(
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
        models = [m for e in self._repository.entries.values() for m in e.versions.values()]
        is_well = all(model.batcher.is_alive for model in models)
        self._metrics.workers.put(sum(model.batcher.is_alive for model in models))
        return json_response({"status": "ok" if is_well else "failing"}, 200 if is_well else 503)

    async def ready(self, request: Request) -> Response:
        """Answer 200 while requests are taken."""
        models = [m for e in self._repository.entries.values() for m in e.versions.values()]
        is_draining = self._connections is not None and self._connections.is_draining
        is_ready = not is_draining and all(model.is_ready for model in models)
        return json_response({"ready": is_ready}, 200 if is_ready else 503)

    async def show_metrics(self, request: Request) -> Response:
        """Answer with Prometheus' text."""
        return Pieces(self._metrics.text(), headers={"content-type": METRICS_KIND})

    async def model(self, request: Request) -> Response:
        """Answer with what a model takes and gives."""
        return json_response(self._repository.get(request.query_params.get("model")).describe())

    async def models(self, request: Request) -> Response:
        """Answer with what all models take and give."""
        entries = self._repository.entries.values()
        return json_response([m.describe() for e in entries for m in e.versions.values()])

    async def openapi(self, request: Request) -> Response:
        """Answer with the OpenAPI document."""
        models = [entry.latest for entry in self._repository.entries.values()]
        return json_response(describe_api(models, self._needs_token))

    async def model_status(self, request: Request) -> Response:
        """Answer as TensorFlow Serving does."""
        self._repository.get(request.path_params["model"])
        versions = self._repository.entries[request.path_params["model"]].versions
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
        model = self._repository.get(params["model"], params.get("version"))
        return json_response(model.metadata(list(self._repository.entries[model.name].versions)))

    async def model_ready(self, request: Request) -> Response:
        """Answer 200 while a model takes requests."""
        params = request.path_params
        model = self._repository.get(params["model"], params.get("version"))
        return json_response(
            {"name": model.name, "ready": model.is_ready}, 200 if model.is_ready else 503
        )

    async def repository_index(self, request: Request) -> Response:
        """Answer with all models and their versions."""
        return json_response(
            [
                {"name": model.name, "version": model.version, "state": "READY", "reason": ""}
                for entry in self._repository.entries.values()
                for model in entry.versions.values()
            ]
        )

    async def load_model(self, request: Request) -> Response:
        """Load a model again whose files changed."""
        if not self._allows_control:
            raise Refused(403, "models are loaded again by SIGHUP; mx serve --control allows this")
        self._repository.get(request.path_params["model"])
        return json_response({"loaded": await self.reload()})

    async def reload(self) -> list[str]:
        """Load what changed, while requests are answered; return what was loaded."""
        try:
            loaded = await asyncio.to_thread(self._repository.load)
        except Exception as error:
            raise Refused(409, f"nothing was loaded: {error}") from error
        self._metrics.reloads.add(len(loaded))
        return loaded
