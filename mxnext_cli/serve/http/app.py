"""The application: who may ask, which handler answers, the counters and the access log."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..limits import Refused
from ..logs import Log
from ..metrics import Metrics
from .guard import Guard
from .responses import refuse

CLIENT_CLOSED = 499  # nobody reads it; it is counted
NOSNIFF = (b"x-content-type-options", b"nosniff")
PARAMETER = re.compile(r"{(\w+)}")
Handler = Callable[[Request], Awaitable[Response]]


class ClientGone(Exception):
    """The client closed the connection."""


class Router:
    """Finds the handler of a request: ``{"/models/{model}": {"GET": handler}}``."""

    def __init__(self, routes: Mapping[str, Mapping[str, Handler]]) -> None:
        self._fixed = {path: dict(h) for path, h in routes.items() if "{" not in path}
        self._patterns = [
            (re.compile(PARAMETER.sub(r"(?P<\1>[^/]+?)", path)), dict(h))
            for path, h in routes.items()
            if "{" in path
        ]

    def find(self, method: str, path: str) -> tuple[Handler, dict[str, str]]:
        """Return the handler of a path and what the path names; refuse others."""
        handlers, params = self._fixed.get(path), {}
        if handlers is None:
            handlers, params = self._match(path)
        handler = handlers.get("GET" if method == "HEAD" else method)
        if handler is None:
            allowed = ", ".join(handlers)
            raise Refused(405, f"{path[:200]}: {method} is not taken, {allowed} is", allow=allowed)
        return handler, params

    def _match(self, path: str) -> tuple[dict[str, Handler], dict[str, str]]:
        for pattern, handlers in self._patterns:
            if match := pattern.fullmatch(path):
                return handlers, match.groupdict()
        raise Refused(404, f"{path[:200]}: there is no such path")


class Application:
    """What the HTTP server calls for each request (ASGI)."""

    def __init__(
        self, router: Router, guard: Guard, metrics: Metrics, access_log: Log | None = None
    ) -> None:
        self._router, self._guard = router, guard
        self._metrics, self._log = metrics, access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; what handlers do not expect is a 500 of the HTTP server."""
        start = time.perf_counter()
        code, size = 500, 0
        try:
            response = await self._answer(scope, receive)
            response.raw_headers.append(NOSNIFF)
            await response(scope, receive, send)
            code, size = response.status_code, len(response.body)
        except ClientGone:
            code = CLIENT_CLOSED
        finally:
            self._count(scope, code, size, time.perf_counter() - start)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        method, path = scope["method"], scope["path"]
        try:
            self._guard.check(path, dict(scope["headers"]))
            handler, scope["path_params"] = self._router.find(method, path)
        except Refused as refused:
            response = refuse(refused)
            if method not in ("GET", "HEAD"):
                response.headers["connection"] = "close"  # the body was not read
            return response
        try:
            return await handler(Request(scope, receive))
        except Refused as refused:
            return refuse(refused)

    def _count(self, scope: Scope, code: int, size: int, seconds: float) -> None:
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
