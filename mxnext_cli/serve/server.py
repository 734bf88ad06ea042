"""The processes of a server: granian runs the application, in this process or in several."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import functools
import gc
import importlib.util
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import torch
from granian import Granian
from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server
from starlette.types import ASGIApp

from mxnet.formats.image_codec import MissingLibrary, limit_threads, opencv

from .. import CommandError
from .app import Front, Guard, build_app
from .descriptions import Descriptions
from .limits import MAX_HEADER_BYTES, Limits, Refused
from .monitoring import SHARED_FOLDER, Metrics, open_log
from .predictions import Predictions
from .repository import Repository, find_sources

LOG = {"class": "logging.StreamHandler", "formatter": "generic", "stream": "ext://sys.stderr"}
BACKLOG = 4096  # connections that the system holds until they are accepted; more wait a second
SPARE_FILES = 64  # descriptors beside those of connections
DRAIN_SECONDS = 0.3  # in which answers say that their connection ends
COLLECTION_THRESHOLDS = (10_000, 20, 20)
SWITCH_SECONDS = 0.001
Address = tuple[str, int]


class Service:
    """The models of one process behind HTTP."""

    def __init__(self, args: argparse.Namespace) -> None:
        torch.set_num_threads(max(1, torch.get_num_threads() // args.workers))
        limit_threads(1)
        with contextlib.suppress(MissingLibrary):  # imported now, or the first image waits for it
            opencv()
        self._is_worker = args.workers > 1
        limits = Limits(**{f.name: getattr(args, f.name) for f in dataclasses.fields(Limits)})
        self._watch, self._timeout, self.metrics = args.watch, args.timeout, Metrics()
        self._log = open_log("serve", "-", "%(asctime)s %(levelname)s %(message)s")
        model_args = args if len(find_sources(args.model)) == 1 else None
        self.repository = Repository(
            args.model, limits, self.metrics, model_args, args.device, args.versions
        )
        self.repository.load()
        descriptions = Descriptions(
            self.repository, self.metrics, args.control and not self._is_worker
        )
        predictions = Predictions(self.repository, limits, self.metrics)
        actions = {**predictions.handlers(), **descriptions.actions()}
        app = build_app(descriptions.readers(), actions, self._lifespan)
        guard = Guard([args.host, socket.gethostname(), *args.allow_host], args.token)
        self.front = Front(app, guard, self.metrics, limits)
        self.repository.arriving = lambda: len(self.front.budget.arriving)
        if args.access_log:
            self.front.log = open_log("access", args.access_log, "%(message)s")
        descriptions.stopping = self.front.stopping

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: object) -> AsyncIterator[None]:
        """Load models again, by SIGHUP or when they change, and finish requests at the end."""
        shorten_pauses()
        tasks = [asyncio.create_task(self._watch_files())] if self._watch else []

        def reload() -> None:
            tasks.append(asyncio.create_task(self._reload()))

        handle_signal("SIGHUP", reload)
        if self._is_worker:
            handle_signal("SIGUSR2", reload)
            handle_signal("SIGUSR1", self.front.stopping.set)
            handle_signal("SIGINT", lambda: None)  # the parent decides
            with contextlib.suppress(Exception):  # a folder is being written
                if await asyncio.to_thread(self.repository.has_changed):
                    reload()  # a signal may have come before this process could handle it
        yield
        await self.repository.close(self._timeout)
        for task in tasks:
            task.cancel()

    async def _reload(self) -> None:
        try:
            self._log.info(f"loaded: {', '.join(await self.repository.reload()) or 'none'}")
        except Refused as refused:
            self._log.error(str(refused))

    async def _watch_files(self) -> None:
        """Load models whose files changed, when they have stopped changing."""
        while True:
            await asyncio.sleep(self._watch)
            with contextlib.suppress(Exception):  # a folder is being written
                if await asyncio.to_thread(self.repository.has_changed):
                    await asyncio.sleep(self._watch)
                    await self._reload()


def network_options(args: argparse.Namespace, address: Address) -> dict[str, Any]:
    """Return the options of granian."""
    files = raise_file_limit(args.max_connections + SPARE_FILES)
    return {
        "address": address[0],
        "port": address[1],
        "interface": Interfaces.ASGI,
        "http": HTTPModes.http1,
        "websockets": False,
        "backlog": BACKLOG,
        "backpressure": max(1, min(args.max_connections, files - SPARE_FILES)),
        "http1_settings": HTTP1Settings(
            header_read_timeout=max(1, round(args.header_timeout * 1000)),
            max_buffer_size=2 * MAX_HEADER_BYTES,
        ),
        "log_enabled": args.workers > 1,
        "log_level": LogLevels.error,
        "log_dictconfig": {"handlers": {"console": LOG, "access": LOG}},
        "ssl_cert": Path(args.certfile) if args.certfile else None,
        "ssl_key": Path(args.keyfile) if args.keyfile else None,
        "ssl_protocol_min": SSLProtocols.tls12,
    }


def raise_file_limit(needed: int) -> int:
    """Raise the limit of open files as far as the system allows; return the limit."""
    if os.name != "posix":
        return needed
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (needed if n == resource.RLIM_INFINITY else n for n in limits)
    with contextlib.suppress(ValueError, OSError):
        if soft < needed:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(needed, hard), limits[1]))
            soft = min(needed, hard)
    return soft


def handle_signal(name: str, action: Callable[[], object]) -> None:
    """Call a function in the event loop on a signal, if the system has it."""
    with contextlib.suppress(AttributeError, NotImplementedError):  # on Windows
        asyncio.get_running_loop().add_signal_handler(getattr(signal, name), action)


def shorten_pauses() -> None:
    """Prevent long pauses of the event loop by the interpreter.

    What was imported is most of all objects and lives as long as the process, and a garbage
    collection that goes through it stops every request for 0.2 s: it is left out. Models that come
    later are collected when others replace them. Threads that decode give way after a millisecond.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    sys.setswitchinterval(SWITCH_SECONDS)


@contextlib.contextmanager
def listening(address: Address) -> Iterator[None]:
    """Turn granian's error about an address into ours: it may be taken while models are loaded."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise CommandError(f"cannot listen on {address[0]}:{address[1]}: {reason}") from None


# -- one process -----------------------------------------------------------------------------------


def serve(args: argparse.Namespace, address: Address, announce: Callable[[], None]) -> int:
    """Serve in this process; return how many requests were answered."""
    service = Service(args)
    server = Server(service.front, **network_options(args, address))
    threading.Thread(target=announce, daemon=True).start()
    loops = "uvloop" if importlib.util.find_spec("uvloop") else "asyncio"
    with listening(address):
        importlib.import_module(loops).run(_serve(server, service.front, args.timeout))
    return service.metrics.answered()


async def _serve(server: Server, front: Front, timeout: float) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that were accepted are answered first."""
    stop = asyncio.Event()
    for name in ("SIGTERM", "SIGINT"):
        handle_signal(name, stop.set)
    tasks = [asyncio.ensure_future(task) for task in (server.serve(), stop.wait())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    if tasks[0].done():
        await tasks[0]  # raises the error of the server
    front.stopping.set()
    await asyncio.sleep(DRAIN_SECONDS)
    server.stop()
    await asyncio.wait(tasks[:1], timeout=2 * timeout + 1)  # finish requests in progress


# -- several processes -----------------------------------------------------------------------------


def serve_in_processes(
    args: argparse.Namespace, address: Address, announce: Callable[[], None]
) -> int:
    """Serve in processes that granian starts; return how many requests were answered."""
    multiprocessing.set_start_method("spawn", force=True)  # torch has threads, which forks lack
    vars(args).pop("runner")  # a function of the parser
    options = network_options(args, address) | {"workers": args.workers}
    kill_timeout = round(2 * args.timeout) + 1
    server, is_stopping = Granian("mx serve", workers_kill_timeout=kill_timeout, **options), Event()

    def announce_all() -> None:
        announce()
        server.respawn_failed_workers = True  # not before: a model that cannot be loaded ends it

    server.on_startup(functools.partial(handle_signals_of_workers, server, is_stopping))
    server.on_startup(threading.Thread(target=announce_all, daemon=True).start)
    with tempfile.TemporaryDirectory(prefix="mx-serve-") as folder:
        os.environ[SHARED_FOLDER] = folder
        try:
            with listening(address):
                server.serve(target_loader=functools.partial(load_app, args), wrap_loader=False)
        except SystemExit:
            if not is_stopping.is_set():
                raise CommandError("a process did not start, or they end again and again") from None
        count = Metrics().answered()
        del os.environ[SHARED_FOLDER]
    return count


def handle_signals_of_workers(server: Any, is_stopping: Event) -> None:
    """Pass SIGHUP on; on SIGTERM or Ctrl-C, let processes ask clients to close first."""
    stop = signal.getsignal(signal.SIGTERM)  # of granian
    assert callable(stop)

    def send(number: int) -> None:
        for process in multiprocessing.active_children():
            os.kill(process.pid or 0, number)

    def drain(number: int, frame: object) -> None:
        is_stopping.set()
        server.respawn_failed_workers = False
        send(signal.SIGUSR1)
        threading.Timer(DRAIN_SECONDS, stop, (number, frame)).start()

    for number in (signal.SIGUSR1, signal.SIGUSR2):  # until a new process is ready
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, lambda *_: send(signal.SIGUSR2))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, drain)


def load_app(args: argparse.Namespace) -> ASGIApp:
    """Return the application of a process that granian started; it ends with its parent."""

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        return Service(args).front
    except Exception as error:  # of the model or its settings
        sys.exit(f"mx serve: {error}")
