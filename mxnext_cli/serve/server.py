"""One process that serves: Uvicorn with our connections, reloading and a graceful end."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any

import torch
import uvicorn

from mxnet.formats.image_codec import MissingLibrary, limit_threads, opencv

from .endpoints.service import Service
from .http.door import Door
from .http.guard import Guard
from .http.protocol import DRAIN, Connection, Connections
from .limits import Limits, Refused
from .logs import Log, redirect_libraries
from .metrics import Metrics
from .models.repository import Repository

SPARE_FILES = 64  # descriptors beside those of connections
ERROR_LINES_PER_SECOND = 10
COLLECTION_THRESHOLDS = (10_000, 20, 20)
SWITCH_SECONDS = 0.001


class Server(uvicorn.Server):
    """Uvicorn's server, which watches its connections and loads models again."""

    def __init__(
        self,
        config: uvicorn.Config,
        connections: Connections,
        service: Service,
        log: Log,
        watch_seconds: float,
    ) -> None:
        super().__init__(config)
        self._watched, self._service, self._log = connections, service, log
        self._watch_seconds = watch_seconds
        self._tasks: list[asyncio.Task[Any]] = []
        self._doors: list[Door] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        self._service.start()
        loop = asyncio.get_running_loop()
        secure: dict[str, Any] = {}
        if self.config.ssl is not None:  # a handshake takes no longer than headers
            secure = {
                "ssl": self.config.ssl,
                "ssl_handshake_timeout": self._watched.limits.header_timeout,
            }

        def make() -> Connection:
            return self._watched.make(
                config=self.config, server_state=self.server_state, app_state={}, _loop=loop
            )

        self.servers = []
        self._doors = [Door(sock, make, self._watched, secure) for sock in sockets or []]
        self._tasks.append(loop.create_task(self._watched.watch()))
        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, self._start_reload)
        if self._watch_seconds:
            self._tasks.append(loop.create_task(self._watch_files()))
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what was accepted, then end."""
        self._watched.is_draining = True
        await asyncio.sleep(DRAIN)  # connections that the system accepted for us come in
        for door in self._doors:
            await door.close()
        await super().shutdown(sockets)
        await self._service.close()
        for task in self._tasks:
            task.cancel()

    def hints(self) -> list[str]:
        """Return what would make the server better."""
        models = [e.latest for e in self._service.repository.entries.values()]
        return [
            f"without --shape of {', '.join(m.model.inputs)} the first requests are slower, and "
            "bodies are bounded by --max-body alone"
            for m in models
            if any(name not in m.decoder.shapes for name in m.model.inputs)
        ]

    def _start_reload(self) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(self._reload()))

    async def _reload(self) -> None:
        try:
            loaded = await self._service.reload()
            self._log.write({"level": "info", "message": f"loaded: {', '.join(loaded) or 'none'}"})
        except Refused as refused:
            self._log.write({"level": "error", "message": str(refused)})

    async def _watch_files(self) -> None:
        """Load models whose files changed, when they have stopped changing."""
        repository = self._service.repository
        while True:
            await asyncio.sleep(self._watch_seconds)
            with contextlib.suppress(Exception):  # a folder is being written
                if await asyncio.to_thread(repository.has_changed):
                    await asyncio.sleep(self._watch_seconds)
                    await self._reload()


def raise_file_limit(needed: int) -> int:
    """Let the process open so many files, as far as the system allows; return how many."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return needed
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        top = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (top, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return needed if soft == resource.RLIM_INFINITY else min(needed, soft)


def event_loop() -> str:
    """Return the name of the fastest event loop that is installed."""
    try:
        import uvloop  # noqa: F401  # type: ignore[import-not-found]
    except ImportError:
        return "asyncio"
    return "uvloop"


@contextlib.contextmanager
def short_pauses() -> Iterator[None]:
    """Let nothing in the interpreter hold up the event loop for long.

    What was imported is most of all objects and lives as long as the process, and a garbage
    collection that goes through it stops every request for 0.2 s: it is left out. Models come
    later, and are collected when others replace them; requests and connections are freed without
    the collector. Threads that decode give way to the event loop after a millisecond.
    """
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    has_frozen = bool(gc.get_freeze_count())
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
        if not has_frozen:
            gc.unfreeze()


def build_server(
    args: argparse.Namespace,
    limits: Limits,
    guard: Guard,
    metrics: Metrics,
    models: argparse.Namespace | None,
) -> Server:
    """Load the models and return a server that is ready to run."""
    torch.set_num_threads(max(1, torch.get_num_threads() // args.workers))
    limit_threads(1)
    with contextlib.suppress(MissingLibrary):  # imported now, or the first image holds up others
        opencv()
    log = Log(None, ERROR_LINES_PER_SECOND, metrics.suppressed)
    repository = Repository(args.model, limits, metrics, models, args.device, args.versions)
    repository.load()
    connections = Connections(limits, metrics)
    access_log = (
        Log(args.access_log, args.log_rate, metrics.suppressed) if args.access_log else None
    )
    service = Service(
        repository, limits, metrics, guard, connections,
        access_log=access_log, allows_control=args.control and args.workers == 1,
    )  # fmt: skip
    config = uvicorn.Config(
        service.app,
        loop=event_loop(),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="off",
        timeout_keep_alive=max(1, int(limits.idle_timeout)),
        timeout_graceful_shutdown=max(1, int(limits.timeout)),
        ssl_certfile=args.certfile,
        ssl_keyfile=args.keyfile,
    )
    redirect_libraries(log)
    return Server(config, connections, service, log, args.watch)
