"""The door: accepts connections, those with a request first.

The system hands connections over in the order in which they came, so whoever opens thousands makes
all others wait. Accepting one takes a few microseconds, setting it up for HTTP ten times as long.
While more are at the door, only those that have sent the head of a request are set up; the others
wait here as plain sockets, and the oldest gives way if there are too many.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any

from .protocol import Connections

ACCEPTED = 64  # connections in a row, after which others are served
SET_UP = 16  # of them
PEEK = 2048  # bytes in which the head of a request ends, as a rule
RETRY_SECONDS = 0.1  # after the system could not accept


class Door:
    """Accepts the connections of one listening socket.

    Parameters
    ----------
    listening
        The socket.
    make
        Returns the protocol of a connection.
    connections
        All connections of the process.
    secure
        The options of TLS for `connect_accepted_socket`, if any.
    """

    def __init__(
        self,
        listening: socket.socket,
        make: Callable[[], asyncio.BaseProtocol],
        connections: Connections,
        secure: dict[str, Any],
    ) -> None:
        listening.setblocking(False)
        self._listening, self._make, self._secure = listening, make, secure
        self._connections = connections
        self._setups: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run())

    async def close(self) -> None:
        """Accept no more; connections that sent nothing are closed."""
        self._task.cancel()
        await asyncio.wait([self._task])
        for waiting in (self._connections.ready, self._connections.silent):
            while waiting:
                self._settle(waiting.popleft())

    async def _run(self) -> None:
        everything = self._connections
        while True:
            try:
                sock, _ = await self._loop.sock_accept(self._listening)
                self._take(sock)
                while self._accept_some() or everything.ready or everything.silent:
                    await asyncio.sleep(0)
            except OSError:  # too many files are open in the system
                await asyncio.sleep(RETRY_SECONDS)

    def _accept_some(self) -> bool:
        """Accept connections and set some up; False if no more are at the door."""
        has_more = True
        for _ in range(ACCEPTED):
            try:
                sock, _ = self._listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                has_more = False
                break
            self._take(sock)
        # The last comes first: those before it have been silent for longer, or are so many that
        # their clients wait in any case.
        ready, silent = self._connections.ready, self._connections.silent
        for _ in range(SET_UP):
            if ready:
                self._set_up(ready.pop())
            elif silent and not has_more:
                self._set_up(silent.pop())
        return has_more

    def _take(self, sock: socket.socket) -> None:
        """Let a connection wait to be set up; another one gives way if there are too many."""
        sock.setblocking(False)
        everything = self._connections
        ready, silent = everything.ready, everything.silent
        (ready if self._has_request(sock) else silent).append(sock)
        if everything.is_full:
            # Clients that were served before are not pushed out by many that said nothing yet.
            is_crowd = len(silent) > everything.limits.max_connections // 4
            if is_crowd or not everything.make_room():
                self._settle((silent or ready).popleft())

    def _settle(self, sock: socket.socket) -> None:
        """Set a connection up if its request came meanwhile, else close it."""
        if self._has_request(sock):
            self._set_up(sock)
        else:
            self._connections.metrics.refused.add(label="evicted")
            sock.close()

    def _has_request(self, sock: socket.socket) -> bool:
        try:
            start = sock.recv(PEEK, socket.MSG_PEEK)
        except OSError:
            return False
        return b"\r\n\r\n" in start or len(start) == PEEK or bool(self._secure and start)

    def _set_up(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError):  # it is gone already
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(
            self._loop.connect_accepted_socket(self._make, sock, **self._secure)
        )
        self._setups.add(task)
        task.add_done_callback(self._end_setup)

    def _end_setup(self, task: asyncio.Task[Any]) -> None:
        self._setups.discard(task)
        if not task.cancelled():
            task.exception()  # a handshake that failed is the client's matter
