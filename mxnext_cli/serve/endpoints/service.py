"""A service: the models of a server, and the paths under which they are asked."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor

from ..http.app import Application, Handler, Router
from ..http.guard import Guard
from ..http.protocol import Connections
from ..limits import Limits
from ..logs import Log
from ..metrics import Metrics
from ..models.batching import Delivery, deliver
from ..models.repository import Repository
from .descriptions import Descriptions
from .predictions import Predictions

DECODERS = 2  # threads that decode and encode


class Service:
    """Models behind HTTP."""

    def __init__(
        self,
        repository: Repository,
        limits: Limits,
        metrics: Metrics,
        guard: Guard,
        connections: Connections,
        *,
        access_log: Log | None = None,
        allows_control: bool = False,
    ) -> None:
        self.repository, self._limits = repository, limits
        self._pool = ThreadPoolExecutor(DECODERS, "mx-serve-decoder")
        predictions = Predictions(repository, limits, metrics, connections, self._pool)
        descriptions = Descriptions(
            repository, metrics, connections, self._pool,
            needs_token=guard.needs_token, allows_control=allows_control,
        )  # fmt: skip
        repository.arriving = lambda: predictions.receiving
        self.reload = descriptions.reload
        router = Router(list_routes(predictions, descriptions))
        self.app = Application(router, guard, metrics, access_log)

    def start(self) -> None:
        """Let the results of batches come to the event loop that runs."""
        loop = asyncio.get_running_loop()

        def deliver_in_loop(outcomes: Delivery) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(deliver, outcomes)

        self.repository.deliver = deliver_in_loop

    async def close(self) -> None:
        """Finish the requests that wait, and end the threads."""
        await asyncio.to_thread(self.repository.close, self._limits.timeout)
        self._pool.shutdown(wait=False, cancel_futures=True)


def list_routes(p: Predictions, d: Descriptions) -> dict[str, dict[str, Handler]]:
    """Return the handler of each path and method."""
    get: dict[str, Handler] = {
        "/": d.page,
        "/page.css": d.page,
        "/page.js": d.page,
        "/health": d.health,
        "/metrics": d.show_metrics,
        "/model": d.model,
        "/models": d.models,
        "/view": d.view,
        "/openapi.json": d.openapi,
        "/v1/models/{model}": d.model_status,
        "/v2": d.server_metadata,
        "/v2/health/live": d.health,
        "/v2/health/ready": d.ready,
        "/v2/models/{model}": d.model_metadata,
        "/v2/models/{model}/ready": d.model_ready,
        "/v2/models/{model}/versions/{version}": d.model_metadata,
        "/v2/models/{model}/versions/{version}/ready": d.model_ready,
    }
    post: dict[str, Handler] = {
        "/predict": p.predict,
        "/predict/{model}": p.predict,
        "/v1/models/{model}:predict": p.predict,
        "/v1/models/{model}/versions/{version}:predict": p.predict,
        "/v2/models/{model}/infer": p.infer,
        "/v2/models/{model}/versions/{version}/infer": p.infer,
        "/v2/repository/index": d.repository_index,
        "/v2/repository/models/{model}/load": d.load_model,
    }
    return {
        **{path: {"POST": handler} for path, handler in post.items()},
        **{path: {"GET": handler} for path, handler in get.items()},
    }
