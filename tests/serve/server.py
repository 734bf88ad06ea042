"""A server in a process of its own, which the tests of this folder ask."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parents[2]
DENSE = str(ROOT / "tests/golden/data/gluon/dense")
OUTPUT = "hybridsequential0_dense1_fwd_output"
LIMIT = 90  # seconds
NPY, NPZ = "application/x-npy", "application/x-npz"


class Answer(NamedTuple):
    """What a server answered."""

    code: int
    headers: dict[str, str]
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> str:
        return self.json()["error"]


class Running:
    """A server that runs."""

    def __init__(self, process: subprocess.Popen, port: int, log: Path) -> None:
        self.process, self.port, self._log = process, port, log
        self.url = f"http://127.0.0.1:{port}"
        self.log_text = ""  # of a server that ended

    def log(self) -> str:
        return self._log.read_text()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT)

    def ask(
        self, method: str, path: str, body: bytes | None = None, timeout: float = LIMIT, **headers
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, names)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers) -> Answer:
        return self.ask("GET", path, **headers)

    def post(
        self, content: Any, kind: str = "application/json", path: str = "/predict", **headers
    ) -> Answer:
        body = json.dumps(content).encode() if isinstance(content, dict) else content
        return self.ask("POST", path, body, content_type=kind, **headers)

    def raw(self, *parts: bytes, pause: float = 0.0, timeout: float = LIMIT) -> bytes:
        """Send bytes as they are and return all that comes until the server closes."""
        with self.connect() as sock:
            sock.settimeout(timeout)
            with contextlib.suppress(OSError):
                for part in parts:
                    sock.sendall(part)
                    time.sleep(pause)
            received = b""
            with contextlib.suppress(OSError):
                while chunk := sock.recv(65536):
                    received += chunk
            return received

    def memory(self) -> int:
        """Return the bytes of memory that the server holds, and those of its workers."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        pids = [self.process.pid, *map(int, children.read_text().split())]
        return sum(_resident(pid) for pid in pids)

    def processor_seconds(self) -> float:
        """Return the processor time of all threads of the server."""
        return time.clock_gettime((~self.process.pid << 3) | 2)  # clock_getcpuclockid(3)

    def wait(self, code: int = 0) -> str:
        assert self.process.wait(LIMIT) == code, self.log()
        return self.process.stdout.read() if self.process.stdout else ""


def _resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(match[1]) * 1024 if match else 0


@contextlib.contextmanager
def serving(*arguments: str, open_files: int | None = None) -> Iterator[Running]:
    """Run `mx serve` on a free port and end it."""
    command = [sys.executable, "-m", "mxnext_cli", "serve", *arguments, "--port", "0"]
    if open_files is not None:
        command = ["prlimit", f"--nofile={open_files}:{open_files}", *command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with (
            log.open("w") as errors,
            subprocess.Popen(
                command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=errors, env=environment
            ) as process,
        ):
            watch = threading.Timer(LIMIT, process.kill)  # a server that says nothing
            watch.start()
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                match = re.search(r"://[^ ]*:(\d+)", line)
                watch.cancel()
                assert match is not None, f"{process.poll()}: {line}{log.read_text()}"
                server = Running(process, int(match[1]), log)
                yield server
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    process.wait(LIMIT)
                server.log_text = log.read_text()
            finally:
                watch.cancel()
                if process.poll() is None:
                    process.kill()


class HealthWatch:
    """Asks for /health all the time; `seconds` has the server's processor time for each answer.

    Unlike the time of the clock, it does not depend on what else the machine does.
    """

    def __init__(self, server: Running) -> None:
        self._server = server
        self.seconds: list[float] = []
        self.failures: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.is_set():
            start = self._server.processor_seconds()
            self._ask()
            self.seconds.append(self._server.processor_seconds() - start)
            self._stop.wait(0.01)

    def _ask(self, attempts: int = 5) -> None:
        """Ask, and again if the connection gave way to others before the request was sent."""
        problem = ""
        for _ in range(attempts):
            try:
                answer = self._server.ask("GET", "/health")
                if answer.code == 200:
                    return
                problem = str(answer)
            except (OSError, http.client.HTTPException) as error:
                problem = repr(error)
        self.failures.append(problem)

    def __enter__(self) -> HealthWatch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join(LIMIT)


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()
