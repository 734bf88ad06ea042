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
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


def json_response(content: Any, code: int = 200, headers: dict[str, str] | None = None) -> Response:
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
        pairs: Sequence[tuple[bytes, bytes]] = scope["headers"]
        headers = dict(pairs)
        if sum(len(name) + len(value) for name, value in pairs) > MAX_HEADER_BYTES:
            message = f"the headers exceed {MAX_HEADER_BYTES} bytes"
            raise Refused(431, message, connection="close")
        hosts = [value for name, value in pairs if name == b"host"]
        if len(hosts) != 1 or (not hosts[0] and scope["http_version"] == "1.1"):
            raise Refused(400, "it needs one Host header", connection="close")
        encodings = [value.lower() for name, value in pairs if name == b"transfer-encoding"]
        if encodings not in ([], [b"chunked"]):
            raise Refused(400, "its Transfer-Encoding is not chunked", connection="close")
        host = hosts[0].decode("latin-1")
        if host and not self._is_known(host):
            raise Refused(421, f"the host {host[:100]!r} is not served here; "
                               "mx serve --allow-host NAME adds it")  # fmt: skip
        origin = headers.get(b"origin")
        is_foreign = origin is not None and origin.decode("latin-1").partition("://")[2] != host
        is_cross = headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site")
        if is_foreign or (is_cross and headers.get(b"sec-fetch-mode") != b"navigate"):
            raise Refused(403, "pages of other sites may not ask this server")
        if self._token is None or scope["path"] in OPEN_PATHS:
            return
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._token):
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
        self._length = int(headers.get(b"content-length", b"0"))
        self.is_whole = not self._length and b"transfer-encoding" not in headers  # has arrived
        self._waits = b"expect" in headers  # the client, to be told that it may send its body
        self.closes = False  # the connection, after the answer
        self.code, self.size = 500, 0

    @property
    def _lingers(self) -> bool:
        """Whether the client may still be sending when the response is written."""
        return not self.is_whole and not self._waits

    async def receive(self) -> Message:
        """Receive a piece of the body."""
        message = await self._receive()
        self._length -= len(message.get("body", b""))
        if not self._length and message["type"] == "http.request":  # no second check is needed
            message["more_body"] = False
        self.is_whole, self._waits = not message.get("more_body", False), False
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the response in pieces; a piece that is not received in time ends it.

        If the body of the request has not arrived, the answer has no length: the server would close
        the connection after so many bytes, and the answer would be lost in a reset.
        """
        if message["type"] == "http.response.start":
            self.code, headers = message["status"], [(b"x-content-type-options", b"nosniff")]
            if self.closes or not self.is_whole or b"connection" in dict(message["headers"]):
                headers.append((b"connection", b"close"))
            dropped = {b"connection", *([b"content-length"] if self._lingers else [])}
            headers += [pair for pair in message["headers"] if pair[0] not in dropped]
            await self._send({**message, "headers": headers})
            return
        body = message.get("body", b"")
        self.size += len(body)
        for start in range(0, len(body) - PIECE, PIECE):
            await self._send_piece(body[start : start + PIECE])
        rest = body[max(0, (len(body) - 1) // PIECE) * PIECE :]
        if self._lingers:
            await self._send_piece(rest)
            await self._drop_body()
            rest = b""
        await self._send({**message, "body": rest})

    async def _send_piece(self, piece: bytes) -> None:
        message = {"type": "http.response.body", "body": piece, "more_body": True}
        await asyncio.wait_for(self._send(message), self._timeout)

    async def _drop_body(self) -> None:
        """Read and discard the rest of the body for a limited time."""
        end = time.monotonic() + LINGER
        with contextlib.suppress(asyncio.TimeoutError):
            while not self.is_whole and time.monotonic() < end:
                await asyncio.wait_for(self.receive(), SILENCE)


class Front:
    """Checks, bounds, counts and logs the requests of an application."""

    def __init__(
        self,
        app: ASGIApp,
        guard: Guard,
        metrics: Metrics,
        limits: Limits,
        log: logging.Logger | None = None,
    ) -> None:
        self._app, self._guard, self._metrics, self._log = app, guard, metrics, log
        self._timeout, self._budget = limits.timeout, Budget(limits.max_in_flight)
        self.is_stopping = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        start = time.perf_counter()
        exchange = Exchange(scope, receive, send, self._timeout)
        exchange.closes = self.is_stopping
        share = scope["mx.share"] = Share(self._budget)
        self._metrics.active.inc()
        try:
            self._guard.check(scope)
            await self._app(scope, exchange.receive, exchange.send)
        except Refused as refused:
            await refuse(None, refused)(scope, exchange.receive, exchange.send)
        except asyncio.CancelledError:
            if share.refusal is None:
                raise
            await refuse(None, Refused(*share.refusal))(scope, exchange.receive, exchange.send)
        except (ClientDisconnect, asyncio.TimeoutError):
            exchange.code = CLIENT_CLOSED
        except Exception as error:  # a defect: the application has answered with 500
            logging.getLogger("mxnext.serve").error("a request failed", exc_info=error)
        finally:
            share.release()
            self._metrics.active.dec()
            self._metrics.in_flight.set(self._budget.in_use)
            self._count(scope, exchange, time.perf_counter() - start)

    def _count(self, scope: Scope, exchange: Exchange, seconds: float) -> None:
        self._metrics.requests.labels(str(exchange.code)).inc()
        self._metrics.seconds.observe(seconds)
        if self._log is not None:
            client = (scope.get("client") or ("",))[0]
            asked = {"client": client, "method": scope["method"], "path": scope["path"][:200]}
            answered = {"status": exchange.code, "bytes": exchange.size}
            self._log.info({**asked, **answered, "ms": round(seconds * 1e3, 3)})


def refuse(_: Request | None, error: Exception) -> Response:
    """Return the answer to a request that is refused or fails."""
    if isinstance(error, Refused):
        return json_response({"error": str(error)}, error.code, error.headers)
    if isinstance(error, HTTPException):
        return json_response({"error": error.detail}, error.status_code, dict(error.headers or {}))
    return json_response({"error": f"{type(error).__name__}: {error}"}, 500)


def build_app(get: dict[str, Handler], post: dict[str, Handler]) -> Starlette:
    """Return the application that answers at paths."""
    routes = [Route(path, handler, methods=["POST"]) for path, handler in post.items()]
    routes += [Route(path, handler, methods=["GET"]) for path, handler in get.items()]
    errors = dict.fromkeys((Refused, HTTPException, Exception), refuse)
    app = Starlette(routes=routes, exception_handlers=errors)  # type: ignore[arg-type]
    app.router.redirect_slashes = False
    return app
