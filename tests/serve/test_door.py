"""Whoever opens many connections does not make others wait: requests come first at the door."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable

import pytest

pytest.importorskip("uvicorn")

import uvicorn
from uvicorn.server import ServerState

from mxnext_cli.serve.door import Door
from mxnext_cli.serve.limits import Limits
from mxnext_cli.serve.metrics import Metrics
from mxnext_cli.serve.protocol import TURNS, Connection, Connections

LIMIT = 60
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def answer(scope, receive, send):
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


def connections_of(max_connections: int) -> Connections:
    limits = Limits(max_connections=max_connections, header_timeout=LIMIT, timeout=LIMIT)
    return Connections(limits, Metrics())


def maker(connections: Connections, order: list[Connection]) -> Callable[[], Connection]:
    """Return what makes protocols, and remembers them in the order in which they are set up."""
    config = uvicorn.Config(answer, lifespan="off", ws="none", log_config=None)
    state, loop = ServerState(), asyncio.get_running_loop()

    def make() -> Connection:
        connection = connections.make(config=config, server_state=state, app_state={}, _loop=loop)
        order.append(connection)
        return connection

    return make


async def wait_for(is_true: Callable[[], object]) -> None:
    for _ in range(int(LIMIT / 0.01)):
        if is_true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen in time")


def connect(listening: socket.socket, content: bytes) -> socket.socket:
    client = socket.create_connection(listening.getsockname(), timeout=LIMIT)
    client.sendall(content)
    return client


def is_closed(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@contextlib.contextmanager
def crowd(silent: int, content: bytes = b""):
    """Give a socket at which many wait, of which the last one has sent a request."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=4096))
        clients = [stack.enter_context(connect(listening, content)) for _ in range(silent)]
        clients.append(stack.enter_context(connect(listening, GET)))
        yield listening, clients


@pytest.mark.parametrize("content", [b"", b"GET /health HTTP/1.1\r\nA: "])
def test_a_request_is_set_up_before_silent_connections(content):
    async def run() -> None:
        connections, order = connections_of(1000), []
        with crowd(100, content) as (listening, clients):
            door = Door(listening, maker(connections, order), connections, {})
            await wait_for(lambda: len(connections.open) == 101)
            assert order[0].client == clients[-1].getsockname()
            await door.close()

    asyncio.run(run())


def test_silent_connections_give_way_to_a_request():
    async def run() -> None:
        connections, order = connections_of(20), []
        with crowd(100) as (listening, clients):
            door = Door(listening, maker(connections, order), connections, {})
            await wait_for(lambda: len(connections.open) == 20 and not connections.is_full)
            clients[-1].setblocking(True)
            received = await asyncio.to_thread(clients[-1].recv, 100)
            assert received.startswith(b"HTTP/1.1 200")
            await wait_for(lambda: sum(map(is_closed, clients)) == 81)
            assert 'reason="evicted"} 81' in connections.metrics.text()
            await door.close()

    asyncio.run(run())


def test_a_door_that_closes_lets_requests_in():
    async def run() -> None:
        connections, order = connections_of(1000), []
        with crowd(1) as (listening, clients), socket.create_server(("127.0.0.1", 0)) as other:
            for waiting in (connections.silent, connections.ready):
                waiting.append(listening.accept()[0])
                waiting[0].setblocking(False)
            door = Door(other, maker(connections, order), connections, {})
            await door.close()
            await wait_for(lambda: connections.open)
            received = await asyncio.to_thread(clients[1].recv, 100)
            assert received.startswith(b"HTTP/1.1 200")
            assert is_closed(clients[0])

    asyncio.run(run())


def test_connections_that_are_gone_do_not_end_the_door():
    async def run() -> None:
        connections, order = connections_of(1000), []
        with crowd(0) as (listening, clients):
            for _ in range(20):
                gone = connect(listening, b"GET")
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                gone.close()  # by a reset
            door = Door(listening, maker(connections, order), connections, {})
            clients.append(connect(listening, GET))
            received = await asyncio.to_thread(clients[-1].recv, 100)
            assert received.startswith(b"HTTP/1.1 200")
            clients[-1].close()
            await door.close()

    asyncio.run(run())


def test_work_that_can_wait_is_done_in_turns():
    async def run() -> list[int]:
        connections, done, counts = connections_of(1), [], []
        for number in range(5 * TURNS):
            connections.call_later(lambda number=number: done.append(number))
        while len(done) < 5 * TURNS:
            await asyncio.sleep(0)
            counts.append(len(done))
        assert done == sorted(done)
        return counts

    counts = asyncio.run(run())
    assert max(b - a for a, b in zip([0, *counts], counts, strict=False)) == TURNS


def test_requests_behind_others_whose_client_left_are_no_errors(caplog):
    async def run() -> None:
        connections, order = connections_of(1000), []
        with crowd(0) as (listening, _):
            door = Door(listening, maker(connections, order), connections, {})
            for _ in range(20):
                connect(listening, GET * 8).close()
            await wait_for(lambda: len(order) == 21 and len(connections.open) == 1)
            await wait_for(lambda: not connections.active)
            await door.close()

    asyncio.run(run())
    assert not caplog.records
