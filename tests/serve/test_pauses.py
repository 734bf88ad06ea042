"""Nothing in the interpreter holds up the event loop: collections, and garbage of connections."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("uvicorn")

import uvicorn
from uvicorn.server import ServerState

from mxnext_cli.serve.http.protocol import Connections
from mxnext_cli.serve.limits import Limits
from mxnext_cli.serve.metrics import Metrics
from mxnext_cli.serve.server import short_pauses

LIMIT = 60
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"


def test_imports_are_not_collected_while_a_server_runs():
    before = gc.get_threshold(), bool(gc.get_freeze_count()), sys.getswitchinterval()
    with short_pauses():
        assert gc.get_freeze_count() > 10_000
        assert len(gc.get_objects()) < 1000  # what a collection goes through
    after = gc.get_threshold(), bool(gc.get_freeze_count()), sys.getswitchinterval()
    assert after == before


async def answer(scope, receive, send):
    message = await receive()
    headers = [(b"content-length", b"%d" % len(message["body"]))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": message["body"]})


async def exchange(parts: list[bytes], is_whole: bool) -> tuple[list[weakref.ref], int, bytes]:
    """Send parts on a connection; return the connections, tasks before the last, the answer."""
    connections = Connections(Limits(header_timeout=LIMIT, timeout=LIMIT), Metrics())
    config = uvicorn.Config(answer, lifespan="off", ws="none", log_config=None)
    state, loop = ServerState(), asyncio.get_running_loop()
    seen: list[weakref.ref] = []

    def make():
        connection = connections.make(config=config, server_state=state, app_state={}, _loop=loop)
        seen.append(weakref.ref(connection))
        return connection

    server = await loop.create_server(make, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    tasks = 0
    for part in parts:
        tasks = connections.active
        writer.write(part)
        await asyncio.sleep(0.05)
    received = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), LIMIT) if is_whole else b""
    writer.close()
    server.close()
    for _ in range(int(LIMIT / 0.01)):
        if not connections.open:
            break
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.01)
    return seen, tasks, received


@pytest.mark.parametrize(
    "parts, is_whole",
    [([], False), ([b"GET /hea"], False), ([GET], True), ([POST, b"12345"], True),
     ([POST, b"1"], False)],
)  # fmt: skip
def test_lost_connections_are_no_garbage(parts, is_whole):
    gc.collect()
    gc.disable()
    try:
        seen, _, _ = asyncio.run(exchange(parts, is_whole))
        assert len(seen) == 1
        assert seen[0]() is None
    finally:
        gc.enable()


def test_requests_start_when_short_bodies_are_whole():
    """A body that comes slowly has no task until its end."""
    _, tasks, received = asyncio.run(exchange([POST, b"123", b"45"], True))
    assert (tasks, received[:15]) == (0, b"HTTP/1.1 200 OK")
