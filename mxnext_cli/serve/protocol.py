"""HTTP connections with limits on their number, their headers, their time and their order.

Uvicorn's protocol on `httptools` does the parsing. What it leaves open is bounded here: half-sent
headers, bodies and readers that are slow, more connections than there are files, requests that two
servers could read differently, and long pipelines.
"""

from __future__ import annotations

import asyncio
import collections
import socket
from collections.abc import Callable
from typing import Any

import httptools
import orjson
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from .limits import Limits
from .metrics import Metrics

MAX_HEADERS = 100
MAX_URL_BYTES = 8 << 10
MAX_PIPELINED = 8
TURNS = 8  # pieces of work in a row that can wait: of long bodies, and of requests behind others
READ_AHEAD = 16 << 10  # bytes of a body that are awaited before it is answered
LINGER = 2.0  # seconds in which a client can read why it was refused
CHECKS = 100  # connections that are looked at in a row
DRAIN = 0.25  # seconds in which a request that is on its way is still answered


class Connections:
    """All connections of a process, and its clock, which stands still while the loop does."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits, self.metrics = limits, metrics
        self.idle: collections.OrderedDict[Connection, None] = collections.OrderedDict()
        self.slow: collections.OrderedDict[Connection, None] = collections.OrderedDict()
        self.open: set[Connection] = set()
        # Accepted, but not set up yet: those with a request, and those without.
        self.ready: collections.deque[socket.socket] = collections.deque()
        self.silent: collections.deque[socket.socket] = collections.deque()
        self.tasks: set[Any] = set()
        self.is_draining = False
        self._lost = 0.0
        self._later: collections.deque[Callable[[], Any]] = collections.deque()

    @property
    def active(self) -> int:
        """How many requests are being received or answered."""
        return len(self.tasks)

    @property
    def is_full(self) -> bool:
        """Whether there are more connections than may be."""
        count = len(self.open) + len(self.ready) + len(self.silent)
        return count > self.limits.max_connections

    def now(self) -> float:
        """Return the time, without that in which nothing could be received."""
        return asyncio.get_running_loop().time() - self._lost

    def make(self, **options: Any) -> Connection:
        """Return the protocol of a new connection."""
        return Connection(self, **options)

    def make_room(self) -> bool:
        """Close the connection that waits longest for its client; False if none waits."""
        for waiting in (self.idle, self.slow):
            if waiting:
                connection, _ = waiting.popitem(last=False)
                self.metrics.refused.add(label="evicted")
                connection.abort()
                return True
        return False

    def call_later(self, work: Callable[[], Any]) -> None:
        """Do a piece of work that can wait; between a few of them, others are served."""
        self._later.append(work)
        if len(self._later) == 1:
            asyncio.get_running_loop().call_soon(self._take_turns)

    async def take_turn(self) -> None:
        """Wait until it is the turn of a piece of work that can wait."""
        turn = asyncio.get_running_loop().create_future()
        self.call_later(lambda: turn.done() or turn.set_result(None))
        await turn

    def _take_turns(self) -> None:
        for _ in range(min(TURNS, len(self._later))):
            self._later.popleft()()
        if self._later:
            asyncio.get_running_loop().call_soon(self._take_turns)

    async def watch(self, period: float = 0.5) -> None:
        """Close connections whose time is up."""
        loop = asyncio.get_running_loop()
        previous = loop.time()
        while True:
            await asyncio.sleep(period)
            late = loop.time() - previous - period
            if late > period:  # what clients sent meanwhile is not read yet
                self._lost += late
                await asyncio.sleep(0)
            previous = loop.time()
            now = self.now()
            for number, connection in enumerate(list(self.open), 1):
                connection.check_time(now)
                if number % CHECKS == 0:  # requests come first
                    await asyncio.sleep(0)
            self.metrics.connections.put(len(self.open))


class LingeringTransport:
    """A transport that closes so that the client can read the last answer.

    If unread data is there when a socket is closed, the system resets the connection and the
    client loses the answer; so what is still sent is read and dropped for a while.
    """

    def __init__(self, transport: asyncio.Transport, owner: Connection) -> None:
        self._transport = transport
        self._owner: Connection | None = owner
        self.is_lingering = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send bytes, if somebody can still get them."""
        if not self.is_closing():
            self._transport.write(data)

    def is_closing(self) -> bool:
        """Whether nothing more is sent."""
        return self.is_lingering or self._transport.is_closing()

    def close(self) -> None:
        """Close, at once or when the client has seen the end."""
        owner = self._owner
        if owner is None or not (self.is_lingering or owner.is_receiving):
            self._transport.close()
            return
        if self.is_closing():
            return
        self.is_lingering = True
        owner.linger()
        try:
            if self._transport.can_write_eof():
                self._transport.write_eof()
            owner.flow.resume_reading()
        except (OSError, RuntimeError):  # it is gone already
            self._transport.close()

    def release(self) -> None:
        """Forget the connection, which is lost."""
        self._owner = None


class Refusal(Exception):
    """Raised inside of the parser to stop it."""


class Connection(HttpToolsProtocol):
    """One connection."""

    def __init__(self, connections: Connections, **options: Any) -> None:
        super().__init__(**options)
        self._all = connections
        self._limits = connections.limits
        self._deadline: float | None = None
        self._write_deadline: float | None = None
        self._reason = "header timeout"
        self._refusal: tuple[int, str] | None = None
        self._is_rejected = self._is_lost = False
        self._header_bytes = 0  # that were received while headers were awaited
        self._field_bytes = 0  # of the names and values of headers
        self._is_in_headers = True
        self._has_data = False
        self._unstarted: tuple[RequestResponseCycle, Any] | None = None
        self._is_behind = False  # the request that begins came behind another one
        self.is_receiving = False

    # -- the connection -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; close another one if there are too many."""
        everything = self._all
        everything.tasks = self.tasks
        super().connection_made(LingeringTransport(transport, self))  # type: ignore[arg-type]
        everything.open.add(self)
        if everything.is_full and not everything.make_room():
            self._write_error(503, "too many connections; try again later")
            transport.close()
            return
        everything.idle[self] = None
        self._deadline = everything.now() + self._limits.header_timeout

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._all.open.discard(self)
        self._forget()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        # Without these references its memory is freed at once, not by a garbage collection.
        self.scope = self.cycle = self._unstarted = None  # type: ignore[assignment]
        self.pipeline.clear()
        self.transport.release()  # type: ignore[attr-defined]
        self._is_lost = True

    def abort(self) -> None:
        """Close without a word."""
        self._forget()
        self.transport.abort()

    def evict(self) -> None:
        """Give up the request that is being received."""
        self._all.metrics.refused.add(label="evicted")
        self._refuse(503, "the server holds too many bytes of requests; try again later")

    def linger(self) -> None:
        """Wait a little for the client to close."""
        self._deadline = self._all.now() + LINGER
        self._write_deadline = None
        self._wait_slowly()

    def _forget(self) -> None:
        self._all.idle.pop(self, None)
        self._all.slow.pop(self, None)

    def _wait_slowly(self) -> None:
        self._all.idle.pop(self, None)
        self._all.slow[self] = None

    def check_time(self, now: float) -> None:
        """Close the connection if its client took too long."""
        if self._write_deadline is not None and now > self._write_deadline:
            self._all.metrics.refused.add(label="slow reader")
            self.abort()
        elif self._deadline is not None and now > self._deadline and not self.pipeline:
            if self.transport.is_lingering:  # type: ignore[attr-defined]
                self.abort()
                return
            if self._has_data and not self._all.is_draining:
                self._all.metrics.refused.add(label=self._reason)
                self._refuse(408, f"the request did not arrive in time ({self._reason})")
            else:
                self.transport.close()

    def pause_writing(self) -> None:
        """Give the client a time to read."""
        super().pause_writing()
        self._write_deadline = self._all.now() + self._limits.timeout
        self._wait_slowly()

    def resume_writing(self) -> None:
        """Let the answer continue."""
        super().resume_writing()
        self._write_deadline = None
        self._all.slow.pop(self, None)

    def shutdown(self) -> None:
        """Answer what is on its way and close then."""
        if self.cycle is None or self.cycle.response_complete:
            self._deadline = self._all.now() + DRAIN
        else:
            self.cycle.keep_alive = False

    # -- requests -------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        if self._is_rejected or self.transport.is_lingering:  # type: ignore[attr-defined]
            return
        self._unset_keepalive_if_required()
        if self._is_in_headers:
            if self._deadline is None:
                self._reason = "header timeout"
                self._deadline = self._all.now() + self._limits.header_timeout
            self._header_bytes += len(data)
        self._has_data = True
        try:
            self.parser.feed_data(data)  # type: ignore[union-attr]
            # A packet can hold headers and a part of the body: only a second one counts.
            if self._is_in_headers and self._header_bytes > self._limits.max_header_bytes:
                self._refuse(431, f"the headers exceed {self._limits.max_header_bytes} bytes")
        except httptools.HttpParserUpgrade:
            self.cycle.keep_alive = False  # it is answered as if it had not asked for it
        except httptools.HttpParserError as error:
            self._all.metrics.refused.add(label="malformed")
            code, message = self._refusal or (400, f"this is not HTTP: {error}")
            self._refuse(code, message)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.scope["extensions"] = {"mx.connection": self}  # type: ignore[typeddict-item]
        self.is_receiving = self._is_in_headers = True
        self._field_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        super().on_url(url)
        if len(self.url) > MAX_URL_BYTES:
            self._stop(431, f"the address exceeds {MAX_URL_BYTES} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        super().on_header(name, value)
        self._field_bytes += len(name) + len(value)
        if self._field_bytes > self._limits.max_header_bytes:
            self._stop(431, f"the headers exceed {self._limits.max_header_bytes} bytes")
        if len(self.headers) > MAX_HEADERS:
            self._stop(431, f"there are more than {MAX_HEADERS} headers")

    def on_headers_complete(self) -> None:
        """Begin to answer, unless the headers can be read in two ways."""
        assert self.parser is not None
        if problem := _find_problem(self.headers, self.parser.get_http_version()):
            self._stop(400, problem)
        if len(self.pipeline) >= MAX_PIPELINED:
            self._stop(400, f"there are more than {MAX_PIPELINED} requests in a row")
        self._is_in_headers = False
        self._has_data = True
        self._header_bytes = 0
        self._reason = "body timeout"
        self._deadline = self._all.now() + self._limits.timeout
        self._wait_slowly()
        super().on_headers_complete()
        if self._all.is_draining:
            self.cycle.keep_alive = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Begin to answer, but not before as much of the body is there as is read ahead.

        So a body that comes slowly costs its bytes alone, and one that is short comes at once.
        """
        is_short = cycle.more_body and len(cycle.body) < READ_AHEAD
        if is_short and not cycle.waiting_for_100_continue:
            self._unstarted = (cycle, app)
            return
        self._unstarted = None
        start = super()._start_asgi_task
        if self._is_behind:
            self._all.call_later(lambda: None if self._is_lost else start(cycle, app))
        else:
            start(cycle, app)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        super().on_body(body)
        if self._unstarted is not None:
            self._start_asgi_task(*self._unstarted)

    def on_message_complete(self) -> None:
        """Note that the request is whole."""
        self._deadline = None
        self.is_receiving = False
        self._is_in_headers = True
        self._has_data = False
        self._forget()
        super().on_message_complete()
        if self._unstarted is not None:
            self._start_asgi_task(*self._unstarted)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        if self._is_lost:
            return
        if self.is_receiving and not self.pipeline and self.cycle.response_complete:
            self.transport.close()  # the rest of a body that is not taken
            return
        self._is_behind = bool(self.pipeline)
        super().on_response_complete()
        self._is_behind = False
        if not self.transport.is_closing() and not self.pipeline and not self.is_receiving:
            self._all.idle[self] = None

    # -- errors ---------------------------------------------------------------------------------

    def _stop(self, code: int, message: str) -> None:
        self._refusal = (code, message)
        raise Refusal(message)

    def _refuse(self, code: int, message: str) -> None:
        """Answer with an error and close; answers to earlier requests come first."""
        self._is_rejected = True
        cycle = self.cycle
        is_answering = cycle is not None and not cycle.response_complete
        if is_answering and not (self.is_receiving and cycle.more_body and not self._is_in_headers):
            last = self.pipeline[0][0] if self.pipeline else cycle
            last.keep_alive = False
            self._deadline = None
            return
        if is_answering:  # its own body is wrong or late
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.close()
                return
        self._all.metrics.requests.add(label=str(code))
        self._write_error(code, message)
        self.is_receiving = True  # whatever the rest is, it is not read
        self.transport.close()

    def _write_error(self, code: int, message: str) -> None:
        content = orjson.dumps({"error": message})
        self.transport.write(
            STATUS_LINE[code]
            + b"content-type: application/json\r\nconnection: close\r\n"
            + b"content-length: %d\r\n\r\n" % len(content)
            + content
        )


def _find_problem(headers: list[tuple[bytes, bytes]], version: str) -> str:
    """Return why a request is ambiguous, or ''."""
    lengths = [value for name, value in headers if name == b"content-length"]
    encodings = [value.strip().lower() for name, value in headers if name == b"transfer-encoding"]
    hosts = sum(name == b"host" for name, _ in headers)
    if lengths and encodings:
        return "it has both Content-Length and Transfer-Encoding"
    if len(lengths) > 1 or any(not value.isdigit() for value in lengths):
        return "its Content-Length is not one number"
    if encodings and (encodings != [b"chunked"] or version == "1.0"):
        return "its Transfer-Encoding is not chunked"
    if hosts > 1 or (hosts == 0 and version != "1.0"):
        return "it needs one Host header"
    return ""
