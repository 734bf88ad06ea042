"""One fault while `mx serve` answers clients: a job of `chaos`.

Three clients ask all the time. Whatever happens, each answer is right or a clear error, everybody
else is served meanwhile, and nothing is left when the server has ended.
"""

from __future__ import annotations

import contextlib
import http.client
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
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from mxnet import nd, sym
from tests.serve.server import NPY, Running, npy, serving

LIMIT = 60.0  # seconds
CLIENTS, WIDTH = 3, 50
BYTES_PER_SECOND = 5000  # over a slow link
SO_MAX_PACING_RATE = 47  # of Linux


def write_model(folder: Path, factor: float) -> None:
    """Write a model that multiplies by a number, which is its version, too."""
    scale = sym.var("scale", shape=(1, WIDTH))
    sym.broadcast_mul(sym.var("data"), scale, name="out").save(str(folder / "times-symbol.json"))
    nd.save(str(folder / "times-0000.params"), {"arg:scale": nd.full((1, WIDTH), factor)})
    (folder / "serve.json").write_text(json.dumps({"shape": {"data": [WIDTH]}}))


class Load:
    """Clients that ask until they are stopped, and check each answer."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self._stop = threading.Event()
        self.is_ending = threading.Event()  # connections may be lost from now on
        self.problems: list[str] = []
        self.answers = 0
        self._threads = [threading.Thread(target=self._ask, args=(i,)) for i in range(CLIENTS)]

    def _ask(self, number: int) -> None:
        rows = np.full((1 + number, WIDTH), 1 + number, np.float32)
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=LIMIT)
        with contextlib.closing(connection):
            self._ask_by(connection, rows)

    def _ask_by(self, connection: http.client.HTTPConnection, rows: np.ndarray) -> None:
        while not self._stop.is_set():
            try:
                connection.request("POST", "/predict", npy(rows), {"content-type": NPY})
                answer = connection.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException) as error:
                if self.is_ending.is_set():
                    return
                self.problems.append(f"a client lost its connection: {error!r}")
                return
            self.answers += 1
            if answer.status == 503 and self.is_ending.is_set():
                return
            version = float(answer.headers.get("mx-model-version", "nan"))
            if answer.status != 200:
                self.problems.append(f"a client got {answer.status}: {content[:300]!r}")
            elif json.loads(content)["outputs"] != {"out_output": (rows * version).tolist()}:
                self.problems.append(f"version {version} answered {content[:300]!r}")

    def wait_for_more(self, count: int) -> None:
        """Wait until the clients have got more answers."""
        goal = self.answers + count
        if not wait_for(lambda: self.answers >= goal or bool(self.problems)):
            self.problems.append(f"the clients did not get {count} more answers")

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(LIMIT)
            if thread.is_alive():
                self.problems.append("a client is not answered and not refused")


def wait_for(condition: Callable[[], bool]) -> bool:
    """Return whether a condition comes true within the limit."""
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


# -- faults ---------------------------------------------------------------------------------------


def kill(server: Running, load: Load, folder: Path) -> Iterator[str]:
    """SIGKILL; another server of the same folder answers."""
    load.is_ending.set()
    server.process.kill()
    yield from has_ended(server, -signal.SIGKILL)
    with serving(f"times={folder}") as other:
        if other.post(npy(np.ones((1, WIDTH), "f4")), NPY).code != 200:
            yield "a new server does not answer"


def terminate(server: Running, load: Load, folder: Path) -> Iterator[str]:
    """After SIGTERM, accepted requests are answered."""
    load.is_ending.set()
    server.process.send_signal(signal.SIGTERM)
    yield from has_ended(server, 0)


def pause(server: Running, load: Load, folder: Path) -> Iterator[str]:
    """SIGSTOP for a second."""
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(1)
    server.process.send_signal(signal.SIGCONT)
    yield from ()


def fill_disk(server: Running, load: Load, folder: Path) -> Iterator[str]:
    """The access log cannot be written any more."""
    size = (folder / "access.log").stat().st_size
    subprocess.run(["prlimit", f"--pid={server.process.pid}", f"--fsize={size}"], check=True,
                   timeout=LIMIT)  # fmt: skip
    load.wait_for_more(10)
    if (folder / "access.log").stat().st_size > size + 4096:
        yield "the disk was not full"


def remove_file(server: Running, load: Load, folder: Path) -> Iterator[str]:
    """The parameters are gone when the model is to be loaded again: the old one stays."""
    (folder / "times-0000.params").unlink()
    server.process.send_signal(signal.SIGHUP)
    if not wait_for(lambda: "nothing was loaded" in server.log()):
        yield f"the log does not say that nothing was loaded: {server.log()}"


def damage_file(server: Running, load: Load, folder: Path) -> Iterator[str]:
    """The parameters are damaged when the model is to be loaded again: the old one stays."""
    content = (folder / "times-0000.params").read_bytes()
    (folder / "times-0000.params").write_bytes(content[: len(content) // 2])
    server.process.send_signal(signal.SIGHUP)
    if not wait_for(lambda: "nothing was loaded" in server.log()):
        yield f"the log does not say that nothing was loaded: {server.log()}"


def load_again(server: Running, load: Load, folder: Path) -> Iterator[str]:
    """Another version is loaded; each answer is that of the version that it names."""
    write_model(folder, 2)
    server.process.send_signal(signal.SIGHUP)
    if not wait_for(lambda: "times version 2" in server.log()):
        yield f"the log does not name the new version: {server.log()}"


def send_nan(server: Running, load: Load, folder: Path) -> Iterator[str]:
    """A request of NaN gets NaN, in the batch of others."""
    answer = server.post(npy(np.full((1, WIDTH), np.nan, "f4")), NPY)
    if answer.code != 200 or answer.json()["outputs"] != {"out_output": [[None] * WIDTH]}:
        yield f"a request of NaN got {answer}"


def send_wrong_shape(server: Running, load: Load, folder: Path) -> Iterator[str]:
    """A request of another shape is refused, and says so."""
    answer = server.post(npy(np.ones((1, WIDTH + 1), "f4")), NPY)
    if answer.code != 400 or "shape" not in answer.error:
        yield f"a request of another shape got {answer}"


def send_slowly(server: Running, load: Load, folder: Path) -> Iterator[str]:
    """A client behind a slow link is answered, and others do not wait for it."""
    body = npy(np.ones((40, WIDTH), "f4"))
    head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NPY}\r\n"
    head += f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    with server.connect() as link:
        link.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, BYTES_PER_SECOND)
        start, before, content = time.monotonic(), load.answers, head.encode() + body
        for position in range(0, len(content), 500):
            link.sendall(content[position : position + 500])
            time.sleep(500 / BYTES_PER_SECOND)
        received = b""
        while chunk := link.recv(65536):
            received += chunk
    if not received.startswith(b"HTTP/1.1 200"):
        yield f"a client behind a slow link got {received[:300]!r}"
    if time.monotonic() - start < len(body) / BYTES_PER_SECOND / 2:
        yield "the link was not slow"
    if load.answers - before < 10:
        yield "others waited for a client behind a slow link"


def start_second(server: Running, load: Load, folder: Path) -> Iterator[str]:
    """A second server on the same port says why it cannot start."""
    command = [sys.executable, "-m", "mxnext_cli", "serve", str(folder), "--port", str(server.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    if done.returncode != 1 or "cannot listen on" not in done.stderr:
        yield f"a second server ended with {done.returncode}: {done.stderr}"


def kill_process(server: Running, load: Load, folder: Path) -> Iterator[str]:
    """One of two processes is killed: clients that were connected to it may notice."""
    load.is_ending.set()
    os.kill(workers_of(server.process.pid)[0], signal.SIGKILL)
    if not wait_for(lambda: _answers(server) and len(workers_of(server.process.pid)) == 2):
        yield "a process that was killed is not replaced"


def kill_parent(server: Running, load: Load, folder: Path) -> Iterator[str]:
    """The first process is killed: the others end."""
    load.is_ending.set()
    server.process.kill()
    yield from has_ended(server, -signal.SIGKILL)


Happen = Callable[[Running, Load, Path], Iterator[str]]
FAULTS: dict[str, Happen] = {
    "killed": kill,
    "terminated": terminate,
    "paused": pause,
    "full disk": fill_disk,
    "file removed": remove_file,
    "file damaged": damage_file,
    "loaded again": load_again,
    "nan batch": send_nan,
    "wrong shape": send_wrong_shape,
    "slow link": send_slowly,
    "second job": start_second,
    "worker killed": kill_process,
    "parent killed": kill_parent,
}
OF_TWO = ("worker killed", "parent killed")  # faults of servers of two processes
ENDING = ("killed", "terminated", "parent killed")


def _answers(server: Running) -> bool:
    try:
        return server.get("/health").code == 200
    except (OSError, http.client.HTTPException):  # the request went to the process that died
        return False


def workers_of(pid: int) -> list[int]:
    """Return the processes of a server that answer."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    commands = {int(child): Path(f"/proc/{child}/cmdline") for child in children}
    return [
        p for p, path in commands.items() if path.exists() and b"spawn_main" in path.read_bytes()
    ]


def has_ended(server: Running, status: int) -> Iterator[str]:
    """Yield what is wrong with how a server ended."""
    try:
        if server.process.wait(LIMIT) != status:
            yield f"the server ended with {server.process.returncode}: {server.log()[-600:]}"
    except subprocess.TimeoutExpired:
        yield f"the server did not end within {LIMIT:g} s"


def violations(kind: str, step: int) -> Iterator[str]:
    """Yield what does not hold after a fault, which happens after some answers."""
    with tempfile.TemporaryDirectory() as name:
        folder, count = Path(name), 2 if kind in OF_TWO else 1
        write_model(folder, 1)
        options = [f"--workers={count}", f"--access-log={folder}/access.log", "--timeout=20"]
        with serving(f"times={folder}", *options) as server:
            processes = [server.process.pid]
            if count > 1:
                if not wait_for(lambda: len(workers_of(server.process.pid)) == count):
                    yield "the server has not all its processes"
                processes += workers_of(server.process.pid)
            with Load(server) as load:
                load.wait_for_more(step * 5)
                yield from FAULTS[kind](server, load, folder)
                if kind not in (*ENDING, *OF_TWO):
                    load.wait_for_more(20)
            yield from load.problems
            if kind not in ENDING:
                if not _answers(server):
                    yield "the server does not answer after the fault"
                server.process.send_signal(signal.SIGTERM)
                yield from has_ended(server, 0)
            if re.search(r"Traceback|Error:", server.log()):
                yield f"the log shows a defect: {server.log()[-900:]}"
        if not wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in processes)):
            yield "processes of the server are left"
