"""Middleware of every request (ASGI): access, checks, counters, the log.

The HTTP server parses requests and owns connections. What it leaves to applications is here: one
Host, no request that two servers could read differently, a time for a body to arrive and for a
piece of an answer to be taken, and a client that can read why its body was refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import os
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timezone
from logging import Logger, getLogger
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Lifespan, Message, Receive, Scope, Send

from .. import UsageError
from .encoding import dump
from .limits import MAX_HEADER_BYTES, Budget, Limits, Refused, Share
from .monitoring import Metrics

TOKEN_VARIABLE = "MX_SERVE_TOKEN"
OPEN_PATHS = frozenset(
    {"/health", "/v2/health/live", "/v2/health/ready", "/", "/page.css", "/page.js", "/favicon.ico"}
)
HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.%]+\]|[^:\[\]/@\s]+)(?::\d{1,5})?")
PIECE = 64 << 10  # bytes of an answer that are sent at once
LINGER, SILENCE = 2.0, 0.3  # seconds in which a client can read why it was refused
CLIENT_CLOSED = 499  # only counted, never read
Handler = Callable[[Request], Awaitable[Response]]
Handlers = Mapping[str, Handler]


def json_response(content: Any, code: int = 200, headers: Any = None) -> Response:
    """Return an answer in JSON."""
    return Response(dump(content), code, headers, "application/json")


def read_token(option: str | None) -> str | None:
    """Return the token of the option ``--token``, a text or ``@FILE``, or of the environment."""
    token = option if option is not None else os.environ.get(TOKEN_VARIABLE)
    if token is not None and token.startswith("@"):
        token = Path(token[1:]).read_text(encoding="utf-8").strip()
    if token is not None and (not token or not token.isascii()):
        raise UsageError("--token: it is empty, or has characters that are not ASCII")
    return token


def host_name(host: str) -> str | None:
    """Return the name in a Host header, without its port; None if there is none.

    >>> host_name("Example.com:8080"), host_name("[::1]:80"), host_name("a/b")
    ('example.com', '::1', None)
    """
    match = HOST.fullmatch(host.strip())
    return match["name"].strip("[]").lower().rstrip(".") if match else None


class Guard:
    """Refuses requests from other web sites or without authorization, and ambiguous ones.

    A page of another site can let its own name point at this machine (DNS rebinding): so names
    must be known. Addresses in numbers cannot be used that way.
    """

    def __init__(self, hosts: Iterable[str] = (), token: str | None = None) -> None:
        self._hosts = {"localhost", *(host.lower() for host in hosts)}
        self._token = f"Bearer {token}".encode() if token is not None else None

    def check(self, scope: Scope) -> None:
        """Raise for a request that must not be answered."""
        pairs = [(n.decode("latin-1"), value.decode("latin-1")) for n, value in scope["headers"]]
        headers, size = dict(pairs), sum(len(name) + len(value) for name, value in pairs)
        hosts = [value for name, value in pairs if name == "host"]
        encodings = [value.lower() for name, value in pairs if name == "transfer-encoding"]
        if size > MAX_HEADER_BYTES:
            raise Refused(431, f"the headers exceed {MAX_HEADER_BYTES} bytes", connection="close")
        if len(hosts) != 1 or (not hosts[0] and scope["http_version"] == "1.1"):
            raise Refused(400, "it needs one Host header", connection="close")
        if encodings not in ([], ["chunked"]):
            raise Refused(400, "its Transfer-Encoding is not chunked", connection="close")
        host = hosts[0]
        if host and not self._is_known(host):
            raise Refused(421, f"the host {host[:100]!r} is not served here; "
                               "mx serve --allow-host NAME adds it")  # fmt: skip
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        is_cross = (
            site in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate"
        )
        if is_cross or (origin is not None and origin.partition("://")[2] != host):
            raise Refused(403, "pages of other sites may not ask this server")
        authorization = headers.get("authorization", "").encode("latin-1")
        is_open = self._token is None or scope["path"] in OPEN_PATHS
        if not is_open and not hmac.compare_digest(authorization, self._token or b""):
            raise Refused(401, "the token is missing or wrong", www_authenticate="Bearer")

    def _is_known(self, host: str) -> bool:
        name = host_name(host)
        if "*" in self._hosts or name is None:
            return name is not None
        with contextlib.suppress(ValueError):
            return bool(ipaddress.ip_address(name.partition("%")[0]))
        return name in self._hosts or name.endswith(".localhost")


class Exchange:
    """A request and its response in ASGI."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, timeout: float) -> None:
        self._receive, self._send, self._timeout = receive, send, timeout
        headers = dict(scope["headers"])
        self._length = int(headers.get(b"content-length", 0))
        self._is_whole = not self._length and b"transfer-encoding" not in headers  # has arrived
        self._waits = b"expect" in headers  # the client, to be told that it may send its body
        self.closes = False  # the connection, after the answer
        self.code, self.size = 500, 0

    async def receive(self) -> Message:
        """Receive a piece of the body."""
        message = await self._receive()
        self._length -= len(message.get("body", b""))
        if not self._length and message["type"] == "http.request":  # no second check is needed
            message["more_body"] = False
        self._is_whole, self._waits = not message.get("more_body", False), False
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the response in pieces; a piece that is not received in time ends it.

        If the body of the request has not arrived, the answer has no length, and the rest of the
        body is discarded: else the server would close the connection after so many bytes, and the
        answer would be lost in a reset.
        """
        lingers = not self._is_whole and not self._waits  # the client may still be sending
        if message["type"] == "http.response.start":
            self.code, headers = message["status"], dict(message["headers"])
            headers[b"x-content-type-options"] = b"nosniff"
            if self.closes or not self._is_whole:
                headers[b"connection"] = b"close"
            if lingers:
                headers.pop(b"content-length", None)
            await self._send({**message, "headers": list(headers.items())})
            return
        body = message.get("body", b"")
        self.size += len(body)
        last = len(body) if lingers else max(0, len(body) - 1) // PIECE * PIECE
        for start in range(0, last, PIECE):
            piece = {**message, "body": body[start : min(start + PIECE, last)], "more_body": True}
            await asyncio.wait_for(self._send(piece), self._timeout)
        if lingers:
            end = time.monotonic() + LINGER
            with contextlib.suppress(asyncio.TimeoutError):
                while not self._is_whole and time.monotonic() < end:
                    await asyncio.wait_for(self.receive(), SILENCE)
        await self._send({**message, "body": body[last:]})


class Front:
    """Checks, bounds, counts and logs the requests of an application."""

    def __init__(self, app: ASGIApp, guard: Guard, metrics: Metrics, limits: Limits) -> None:
        self._app, self._guard, self._metrics = app, guard, metrics
        self._timeout, self.budget = limits.timeout, Budget(limits.max_in_flight)
        self.stopping = threading.Event()  # connections close after the answers that follow
        self.log: Logger | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        exchange = Exchange(scope, receive, send, self._timeout)
        exchange.closes = self.stopping.is_set()
        share = scope["mx.share"] = Share(self.budget)
        self._metrics.active.inc()
        try:
            self._guard.check(scope)
            await self._app(scope, exchange.receive, exchange.send)
        except (Refused, asyncio.CancelledError) as error:
            if share.refusal is None and not isinstance(error, Refused):
                raise
            await refuse(None, share.refusal or error)(scope, exchange.receive, exchange.send)
        except (ClientDisconnect, asyncio.TimeoutError):
            exchange.code = CLIENT_CLOSED
        except Exception as error:
            # Unhandled exception: the application has already sent a 500 response.
            getLogger("mxnext.serve").error("a request failed", exc_info=error)
        finally:
            share.hold(0)
            seconds = time.perf_counter() - start
            self._metrics.active.dec()
            self._metrics.in_flight.set(self.budget.in_use)
            self._metrics.requests.labels(str(exchange.code)).inc()
            self._metrics.seconds.observe(seconds)
            if self.log is not None:
                client, path = (scope.get("client") or ("",))[0], scope["path"][:200]
                line = {"time": datetime.now(timezone.utc), "client": client, "path": path,
                        "method": scope["method"], "status": exchange.code,
                        "bytes": exchange.size, "ms": round(seconds * 1e3, 3)}  # fmt: skip
                self.log.info("%s", dump(line).decode())


def refuse(_: Request | None, error: BaseException) -> Response:
    """Return the answer to a request that is refused or fails."""
    if isinstance(error, HTTPException):
        return json_response({"error": error.detail}, error.status_code, error.headers)
    return json_response({"error": f"{type(error).__name__}: {error}"}, 500)


def build_app(get: Handlers, post: Handlers, lifespan: Lifespan[Starlette]) -> Starlette:
    """Return the application that answers at paths."""
    routes = [Route(path, handler, methods=["POST"]) for path, handler in post.items()]
    routes += [Route(path, handler, methods=["GET"]) for path, handler in get.items()]
    errors: Any = dict.fromkeys((HTTPException, Exception), refuse)
    app = Starlette(routes=routes, exception_handlers=errors, lifespan=lifespan)
    app.router.redirect_slashes = False
    return app
