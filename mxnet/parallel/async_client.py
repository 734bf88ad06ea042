"""Connections of a worker to the servers of `dist_async`, with ordered calls."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from .._process import env
from ..error import MXNetError
from .async_server import AsyncServer, Data
from .channel import Channel, ChannelError, connect, escape
from .group import Group
from .heartbeat import WorkerFailed, parse_record

MAX_UNANSWERED = 64  # maximum number of pending pushes per server
WAIT_SECONDS = 0.5  # seconds between checks whether the job has failed


def publish(store: Any, name: str, server: AsyncServer) -> None:
    """Publish the address of a server to the workers."""
    store.set(f"async/{name}", json.dumps({"address": list(server.address)}))


class Peer:
    """The connection to a server that published its address as ``server0`` or ``worker1``."""

    def __init__(self, group: Group, name: str) -> None:
        self.group, self.name = group, name
        self._unanswered = 0
        self._where = name
        host, port = self._find(env.get("MXNET_KVSTORE_CONNECT_TIMEOUT"))
        self._where = f"{name} at {host}:{port}"
        try:
            self._channel: Channel = connect(host, port, env.get("MXNET_KVSTORE_CONNECT_TIMEOUT"))
            self._channel.set_timeout(group.timeout)
            self._channel.send({"worker": group.rank})
        except ChannelError as error:
            self._fail(f"joining {self._where}", time.monotonic(), error)

    def _find(self, seconds: float) -> tuple[str, int]:
        store, monitor, key = self.group.store, self.group.monitor, f"async/{self.name}"
        start = time.monotonic()
        while not store.check([key]):
            if monitor.failure is not None or time.monotonic() - start > seconds:
                self._fail(f"waiting for {self.name} to start", start, None)
            time.sleep(0.02)
        host, port = (parse_record(store.get(key)) or {})["address"]
        return str(host), int(port)

    def push(self, content: Mapping[str, Any], data: Data) -> None:
        """Start a call without waiting; a later call receives its result."""
        while self._unanswered >= MAX_UNANSWERED:
            self._receive("push")
        self._send("push", {"call": "push", **content}, data)

    def start(self, call: str, content: Mapping[str, Any], data: Data = ()) -> None:
        """Start a call after all earlier ones; `finish` returns its result."""
        self.settle()
        self._send(call, {"call": call, **content}, data)

    def finish(self, call: str) -> list[memoryview]:
        """Return the result of the started call."""
        return self._receive(call)

    def settle(self) -> None:
        """Wait until all pushes have been applied."""
        while self._unanswered:
            self._receive("push")

    def _send(self, call: str, content: Mapping[str, Any], data: Data) -> None:
        start = time.monotonic()
        try:
            self._channel.send(content, data)
        except ChannelError as error:
            self._fail(f"{call} at {self._where}", start, error)
        self._unanswered += 1

    def _receive(self, call: str) -> list[memoryview]:
        monitor, what, start = self.group.monitor, f"{call} at {self._where}", time.monotonic()
        monitor.enter(what)
        try:
            while not self._channel.has_input(WAIT_SECONDS):
                if monitor.failure is not None or time.monotonic() - start > self.group.timeout:
                    self._fail(what, start, None)
            answer, data = self._channel.receive()
        except ChannelError as error:
            self._fail(what, start, error)
        finally:
            monitor.leave()
        self._unanswered -= 1
        if "error" in answer:
            raise MXNetError(f"{what}: {escape(answer['error'])}")
        return data

    def _fail(self, what: str, start: float, error: ChannelError | None) -> NoReturn:
        """Raise an error with the lost process and the current operation."""
        monitor = self.group.monitor
        if error is not None:
            monitor.suspect()
            monitor.wait_for_failure(8.0)
        monitor.has_failed = monitor.has_unfinished = True
        why = "does not answer" if error is None else f"is lost: {error}"
        failure = monitor.failure or {"why": f"cannot continue: {self._where} {why}"}
        raise WorkerFailed(monitor.describe(what, time.monotonic() - start, failure)) from None

    def close(self) -> None:
        """End the connection."""
        with contextlib.suppress(ChannelError):
            self._channel.close()


class AsyncClient:
    """A worker's connections to all servers of a job; without servers, to all workers."""

    def __init__(self, group: Group) -> None:
        count = 0 if group.job is None else group.job.servers
        self._server: AsyncServer | None = None
        group.store.set("async/requested", "1")  # server processes start when a store needs them
        if not count:
            self._server = AsyncServer(group.store.own_host, group.size)
            publish(group.store, f"worker{group.rank}", self._server)
        kind = "server" if count else "worker"
        self.peers = [Peer(group, f"{kind}{i}") for i in range(count or group.size)]

    def settle(self) -> None:
        """Wait until all pushes of this worker have been applied."""
        for peer in self.peers:
            peer.settle()

    def call_all(
        self, call: str, content: Mapping[str, Any], data: Data = ()
    ) -> list[Sequence[memoryview]]:
        """Make a call on all servers, and return their results."""
        for peer in self.peers:
            peer.start(call, content, data)
        return [peer.finish(call) for peer in self.peers]

    def close(self) -> None:
        """End all connections."""
        for peer in self.peers:
            peer.close()
        if self._server is not None:
            self._server.close()


_clients: dict[Group, AsyncClient] = {}


def client_of(group: Group) -> AsyncClient:
    """Return the connections of this process to the servers of its job."""
    if group not in _clients:
        _clients[group] = AsyncClient(group)
    return _clients[group]


def close_client(group: Group) -> None:
    """End the connections to the servers, after all calls are done."""
    client = _clients.pop(group, None)
    if client is not None:
        client.close()
