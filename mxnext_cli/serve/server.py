"""The processes of a server: granian runs the application, and several share one address."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import functools
import gc
import json
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import torch
from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings
from granian.server.embed import Server

from mxnet.formats.image_codec import MissingLibrary, limit_threads, opencv

from .. import CommandError
from . import announce
from .app import Front, Guard, build_app
from .descriptions import Descriptions
from .limits import MAX_HEADER_BYTES, MIB, Limits, Refused
from .monitoring import SHARED_FOLDER, Metrics, open_log
from .predictions import Predictions
from .repository import Repository, find_sources

READY = "ready"
BACKLOG = 4096  # connections that the system holds until they are accepted; more wait a second
SPARE_FILES = 64  # descriptors beside those of connections
ERROR_LINES_PER_SECOND = 10
DRAIN_SECONDS = 0.3  # in which answers say that their connection ends
RESTART_SECONDS = 1.0  # between two starts of a process
Address = tuple[str, int]
COLLECTION_THRESHOLDS = (10_000, 20, 20)
SWITCH_SECONDS = 0.001


class Service:
    """The models of one process behind HTTP."""

    def __init__(self, args: argparse.Namespace, has_one_model: bool) -> None:
        torch.set_num_threads(max(1, torch.get_num_threads() // args.workers))
        limit_threads(1)
        with contextlib.suppress(MissingLibrary):  # imported now, or the first image waits for it
            opencv()
        self._args, self._limits, self.metrics = args, read_limits(args), Metrics()
        suppressed = self.metrics.suppressed
        self._log = open_log("serve", "-", ERROR_LINES_PER_SECOND, suppressed)
        access = args.access_log and open_log("access", args.access_log, args.log_rate, suppressed)
        options = (args if has_one_model else None, args.device, args.versions)
        self.repository = Repository(args.model, self._limits, self.metrics, *options)
        self.repository.load()
        has_token, can_load = args.token is not None, args.control and args.workers == 1
        self._descriptions = Descriptions(self.repository, self.metrics, has_token, can_load)
        predictions = Predictions(self.repository, self._limits, self.metrics)
        app = build_app(self._descriptions.readers(),
                        {**predictions.handlers(), **self._descriptions.actions()})  # fmt: skip
        guard = Guard([args.host, socket.gethostname(), *args.allow_host], args.token)
        self.front = Front(app, guard, self.metrics, self._limits, access or None)
        self._descriptions.front = self.front

    async def run(self, address: Address, is_listening: Coroutine[Any, Any, None]) -> None:
        """Serve until SIGTERM or Ctrl-C; requests that were accepted are answered first."""
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        tasks = [loop.create_task(is_listening), loop.create_task(stop.wait())]
        handle_signals(stop.set, self._start_reload)
        if self._args.watch:
            tasks.append(loop.create_task(self._watch_files()))
        try:
            server = Server(self.front, *address, **network_options(self._args))
        except OSError as error:  # of TLS
            files = f"{self._args.certfile} and {self._args.keyfile}"
            raise CommandError(f"{files}: no certificate and its key: {error}") from None
        serving = loop.create_task(server.serve())
        await asyncio.wait([serving, tasks[1]], return_when=asyncio.FIRST_COMPLETED)
        self.front.is_stopping = True
        await asyncio.sleep(DRAIN_SECONDS)
        server.stop()
        await asyncio.wait([serving], timeout=self._limits.timeout + 1)
        await self.repository.close(self._limits.timeout)
        for task in tasks:
            task.cancel()

    def _start_reload(self) -> None:
        self._reloading = asyncio.get_running_loop().create_task(self._reload())

    async def _reload(self) -> None:
        try:
            self._log.info(f"loaded: {', '.join(await self._descriptions.reload()) or 'none'}")
        except Refused as refused:
            self._log.error(str(refused))

    async def _watch_files(self) -> None:
        """Load models whose files changed, when they have stopped changing."""
        while True:
            await asyncio.sleep(self._args.watch)
            with contextlib.suppress(Exception):  # a folder is being written
                if await asyncio.to_thread(self.repository.has_changed):
                    await asyncio.sleep(self._args.watch)
                    await self._reload()

    def hints(self) -> list[str]:
        """Return what would make the server better."""
        return [
            f"without --shape of {', '.join(m.model.inputs)} the first requests are slower, and "
            "bodies are bounded by --max-body alone"
            for m in self.repository.models
            if any(name not in m.decoder.shapes for name in m.model.inputs)
        ]


def read_limits(args: argparse.Namespace) -> Limits:
    """Return the limits that the options say."""
    values = {field.name: getattr(args, field.name) for field in dataclasses.fields(Limits)}
    values["max_json"] = min(args.max_json, args.max_body)
    mebibytes = ("max_body", "max_json", "max_in_flight")
    return Limits(**{n: v * MIB if n in mebibytes else v for n, v in values.items()})


def network_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of granian."""
    files = raise_file_limit(args.max_connections + SPARE_FILES)
    return {
        "interface": Interfaces.ASGINL,
        "http": HTTPModes.http1,
        "websockets": False,
        "backlog": BACKLOG,
        "backpressure": max(1, min(args.max_connections, files - SPARE_FILES)),
        "http1_settings": HTTP1Settings(
            header_read_timeout=max(1, round(args.header_timeout * 1000)),
            max_buffer_size=2 * MAX_HEADER_BYTES,
        ),
        "log_enabled": False,
        "ssl_cert": Path(args.certfile) if args.certfile else None,
        "ssl_key": Path(args.keyfile) if args.keyfile else None,
        "ssl_protocol_min": SSLProtocols.tls12,
    }


def raise_file_limit(needed: int) -> int:
    """Raise the limit of open files as far as the system allows; return the limit."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return needed
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return needed
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def handle_signals(stop: Callable[[], object], reload: Callable[[], object]) -> None:
    """Call functions in the event loop on SIGTERM or Ctrl-C, and on SIGHUP."""
    loop = asyncio.get_running_loop()
    actions = {signal.SIGTERM: stop, signal.SIGINT: stop}
    if os.name == "posix":
        actions[signal.SIGHUP] = reload
    for number, action in actions.items():
        try:
            loop.add_signal_handler(number, action)
        except NotImplementedError:  # on Windows
            signal.signal(number, lambda *_, action=action: loop.call_soon_threadsafe(action))


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


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run on the fastest event loop that is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


async def wait_until_open(address: Address) -> None:
    """Wait until the server accepts connections."""
    while True:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(*address)
            writer.close()
            return
        await asyncio.sleep(0.01)


def serve(args: argparse.Namespace, address: Address, names: list[str]) -> int:
    """Serve in this process; return how many requests were answered."""
    service = Service(args, len(names) == 1)
    shorten_pauses()
    for line in service.hints():
        sys.stderr.write(f"mx serve: {line}\n")

    async def announce_when_open() -> None:
        await wait_until_open(address)
        announce(args, address, names)

    run_loop(service.run(address, announce_when_open()))
    return service.metrics.answered()


# -- several processes -----------------------------------------------------------------------------


class Supervisor:
    """Starts processes that share an address, replaces those that die, and ends them."""

    def __init__(self, args: argparse.Namespace, address: Address) -> None:
        options = {k: v for k, v in vars(args).items() if k not in ("runner", "mx_command")}
        self._message = json.dumps({"options": options, "address": address}).encode() + b"\n"
        self._processes: set[asyncio.subprocess.Process] = set()
        self._stop = asyncio.Event()
        self._timeout = args.timeout + 5

    async def run(self, count: int, announce: Callable[[], None]) -> bool:
        """Run so many processes until SIGTERM; return whether they all started."""
        loop = asyncio.get_running_loop()
        handle_signals(self._end, lambda: self._signal(signal.SIGHUP))
        ready = await asyncio.gather(*(self._start() for _ in range(count)))
        if all(ready):
            announce()
            keepers = [loop.create_task(self._keep(process)) for process in self._processes]
            await self._stop.wait()
            for keeper in keepers:
                keeper.cancel()
        is_stopped = self._stop.is_set()
        self._end()
        ends = asyncio.gather(*(process.wait() for process in self._processes))
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(ends, self._timeout)
        self._signal(signal.SIGKILL)
        return all(ready) or is_stopped

    async def _start(self) -> asyncio.subprocess.Process | None:
        """Start a process; return it when it accepts connections, None if it ends before."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", __name__, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        self._processes.add(process)
        process.stdin.write(self._message)
        return process if (await process.stdout.readline()).decode().strip() == READY else None

    async def _keep(self, process: asyncio.subprocess.Process | None) -> None:
        """Restart processes that end."""
        while True:
            if process is not None:
                code = await process.wait()
                self._processes.discard(process)
                sys.stderr.write(f"mx serve: a worker ended with {code}; another one starts\n")
            await asyncio.sleep(RESTART_SECONDS)
            process = await self._start()

    def _end(self) -> None:
        self._stop.set()
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
                process.send_signal(number)


def supervise(args: argparse.Namespace, address: Address, names: list[str]) -> int:
    """Serve in several processes; return how many requests were answered."""
    with tempfile.TemporaryDirectory(prefix="mx-serve-") as folder:
        os.environ[SHARED_FOLDER] = folder
        try:
            announce_all = functools.partial(announce, args, address, names)
            if not asyncio.run(Supervisor(args, address).run(args.workers, announce_all)):
                raise CommandError("a worker process did not start")
            return Metrics().answered()
        finally:
            del os.environ[SHARED_FOLDER]


def main() -> None:
    """Serve in a process that `Supervisor` started, until its parent ends or says so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    message = json.loads(sys.stdin.readline())
    args = argparse.Namespace(**message["options"])
    host, port = message["address"]

    def end_with_parent() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    async def announce_when_open() -> None:
        await wait_until_open((host, port))
        print(READY, flush=True)

    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        service = Service(args, len(find_sources(args.model)) == 1)
    except Exception as error:  # of the model or its settings
        sys.exit(f"mx serve: {error}")
    shorten_pauses()
    run_loop(service.run((host, port), announce_when_open()))
    logging.shutdown()
    os._exit(0)  # a client that does not read its answer would hold the process


if __name__ == "__main__":
    main()
