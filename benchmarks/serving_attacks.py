"""Attack `mx serve` on loopback: ``python -m benchmarks.serving_attacks [--only NAME]``.

It prints a table; for each attack how long `/health` took on a new connection, in ms by the clock
(p50 and max), and the most without the times in which neither the server nor the client got a
processor, because the attacker and others had them: on a machine with enough of them, that is what
the clock says. It also prints the longest wait of an identical server that was not
attacked, the server's peak memory, and its responses. It takes about two minutes.
``--endure N`` prints the memory over N mixed requests.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import gzip
import http.client
import io
import json
import multiprocessing
import os
import pathlib
import random
import re
import resource
import socket
import statistics
import struct
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .serving import (
    NPY,
    SHAPE,
    body,
    mx_serve,
    plain,
    print_row,
    running,
    save_models,
)  # fmt: skip

JSON, NPZ = "application/json", "application/x-npz"
MIB = 1 << 20
LIMIT = 60  # seconds of any wait
GOAL = 0.050  # seconds in which /health answers
HOST = b"Host: localhost\r\n"
Codes = collections.Counter[str]
Attack = Callable[[int, Codes], None]  # asks a port and counts the answers


# -- bodies ----------------------------------------------------------------------------------------


def _post(content: bytes, kind: str = JSON, times: int = 4, **headers: str) -> Attack:
    def run(port: int, codes: Codes) -> None:
        for _ in range(times):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
            try:
                names = {name.replace("_", "-"): value for name, value in headers.items()}
                connection.request("POST", "/predict", content, {"content-type": kind, **names})
                codes[str(connection.getresponse().status)] += 1
            except OSError as error:
                codes[type(error).__name__] += 1
            finally:
                connection.close()

    return run


def _npz_bomb() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, data=np.zeros((1000, *SHAPE), "f8"), more=np.zeros(64 * MIB, "u1"))
    return file.getvalue()


def _png(width: int, height: int) -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + check

    size = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(width + 1) * min(height, 2000), 9)
    end = chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + end


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


# -- connections -----------------------------------------------------------------------------------


def _hold_open(count: int, content: bytes, seconds: float = 1.0) -> Attack:
    """Open connections, send the beginning of a request on each, and keep them."""

    def run(port: int, codes: Codes) -> None:
        sockets = []
        for _ in range(count):
            sock = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
            sockets.append(sock)
            with contextlib.suppress(OSError):  # it gave way already
                sock.sendall(content)
        time.sleep(seconds)
        for sock in sockets:
            sock.close()
        codes["held open"] += count

    return run


def _send_slowly(port: int, codes: Codes) -> None:
    """Send bodies of a megabyte byte by byte."""
    head = b"POST /predict HTTP/1.1\r\n" + HOST + b"Content-Length: 1000000\r\n\r\n"
    sockets = [socket.create_connection(("127.0.0.1", port), timeout=LIMIT) for _ in range(250)]
    for sock in sockets:
        sock.sendall(head)
    for _ in range(10):
        for sock in sockets:
            with contextlib.suppress(OSError):
                sock.sendall(b"1")
        time.sleep(0.1)
    for sock in sockets:
        sock.close()
    codes["held open"] += len(sockets)


def _read_slowly(port: int, codes: Codes) -> None:
    """Ask for much and read nothing."""
    sockets = []
    for _ in range(50):
        sock = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall((b"GET /page.js HTTP/1.1\r\n" + HOST + b"\r\n") * 8)
        sockets.append(sock)
    time.sleep(2)
    for sock in sockets:
        sock.close()
    codes["held open"] += len(sockets)


def _leave_unfinished(port: int, codes: Codes) -> None:
    """Send all of a large body but its end."""
    content = body(2000)[:-100]
    head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NPY}\r\n"
    head += f"Content-Length: {len(content) + 100}\r\n\r\n"
    sockets = []
    for _ in range(10):
        sock = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
        sockets.append(sock)
        with contextlib.suppress(OSError):
            sock.sendall(head.encode() + content)
    for sock in sockets:
        sock.settimeout(0.5)
        _count_answers(sock, codes)


def _count_answers(sock: socket.socket, codes: Codes) -> None:
    """Count the answers until the server closes or says no more, and close."""
    received = b""
    with sock, contextlib.suppress(OSError):
        while chunk := sock.recv(65536):
            received += chunk
    codes.update(code.decode() for code in re.findall(rb"HTTP/1\.1 (\d+)", received))


def _send_raw(content: bytes, times: int = 4) -> Attack:
    """Send bytes as they are and count the answers."""

    def run(port: int, codes: Codes) -> None:
        for _ in range(times):
            sock = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
            with contextlib.suppress(OSError):
                sock.sendall(content)
                sock.shutdown(socket.SHUT_WR)
            _count_answers(sock, codes)

    return run


def _mutate(generator: random.Random, seed: bytes) -> bytes:
    data = bytearray(seed)
    for _ in range(generator.randint(1, 6)):
        position = generator.randrange(len(data) + 1)
        insert = generator.choice([b"\r\n", b"\0", b" ", b":", b"\r\n\r\n", b"-1", b"9" * 20, data])
        data[position : position + generator.randint(0, 8)] = insert[:2000]
    return bytes(data[:8000])


def _send_mutations(port: int, codes: Codes) -> None:
    generator = random.Random(threading.get_ident())
    content = b'{"inputs": [[1]]}'
    seeds = [
        b"GET /health HTTP/1.1\r\n" + HOST + b"Accept: */*\r\n\r\n",
        b"POST /predict HTTP/1.1\r\n" + HOST + b"Content-Length: 17\r\n\r\n" + content,
        b"POST /predict HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
    ]
    for _ in range(500):
        _send_raw(_mutate(generator, generator.choice(seeds)), times=1)(port, codes)


# -- measuring -------------------------------------------------------------------------------------


def list_attacks() -> dict[str, Attack]:
    """Return the attacks, of which each runs in four threads."""
    get = b"GET /health HTTP/1.1\r\n" + HOST
    return {
        "nothing": lambda port, codes: time.sleep(0.5),
        "JSON: lists in lists": _post(b'{"inputs":[' + b"[[[1]]]," * MIB + b"1]}"),
        "JSON: deep": _post(b'{"inputs":' + b"[" * (7 * MIB)),
        "JSON: wide": _post(b"{" + b'"a":1,' * MIB + b'"b":1}'),
        "JSON: long text": _post(b'{"inputs":"' + b"a" * (7 * MIB) + b'"}'),
        "JSON: numbers": _post(b'{"inputs":[' + b"1," * (3 * MIB) + b"1]}"),
        "JSON: a long number": _post(b'{"inputs":[' + b"1" * (7 * MIB) + b"]}"),
        "JSON: NaN": _post(b'{"inputs":[' + b"NaN," * MIB + b"1]}"),
        "arrays of 400 samples": _post(body(400), NPY),
        "arrays, wrong byte order": _post(_npy(np.zeros((400, *SHAPE), ">f8")), NPY),
        "npz bomb": _post(_npz_bomb(), NPZ),
        "gzip bomb": _post(gzip.compress(bytes(64 * MIB)), JSON, content_encoding="gzip"),
        "image of 13000 x 13000": _post(_png(13000, 13000), "image/png"),
        "image of 1024 x 1024": _post(_png(1024, 1024), "image/png"),
        "form of 500,000 parts": _post(b"--b\r\n\r\n" * 500_000, "multipart/form-data; boundary=b"),
        "ranges": _send_raw(get + b"Range: bytes=" + b"1-2," * 7000 + b"3-4\r\n\r\n", 100),
        "20,000 requests in a row": _send_raw((get + b"\r\n") * 20_000),
        "long headers": _send_raw(get + b"A: " + b"b" * 10 * MIB),
        "mutated HTTP": _send_mutations,
        "10,000 connections": _hold_open(2500, b""),
        "10,000 half headers": _hold_open(2500, b"GET /health HTTP/1.1\r\nA"),
        "1,000 slow bodies": _send_slowly,
        "40 bodies without an end": _leave_unfinished,
        "200 slow readers": _read_slowly,
    }


class Wait(NamedTuple):
    """Seconds of one request: by the clock, of our own, and of a server that is not attacked."""

    clock: float
    own: float
    idle: float


class ThreadTimes(NamedTuple):
    """Seconds that a thread ran, and that it could have run but got no processor (Linux)."""

    processor: float
    delay: float

    @classmethod
    def read(cls, pid: int, thread: int) -> ThreadTimes:
        """Read the times of a thread."""
        text = pathlib.Path(f"/proc/{pid}/task/{thread}/schedstat").read_text()
        return cls(*(int(number) / 1e9 for number in text.split()[:2]))

    def since(self, before: ThreadTimes) -> ThreadTimes:
        """Return the times between two readings."""
        return ThreadTimes(self.processor - before.processor, self.delay - before.delay)


def _ask_health(port: int) -> float:
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    connection.close()
    return time.perf_counter() - start


def first_threads(pid: int) -> list[int]:
    """Return the threads that a server starts with: its event loop, and those of granian."""
    return [int(task.name) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]


def _measure_wait(port: int, pid: int, threads: list[int], idle_port: int) -> Wait:
    """Ask both servers.

    The server's own time is the clock's, minus the times in which a thread that answers, or this
    client, was runnable but not scheduled. It includes computation and waits for the GIL.
    """
    watched = [(pid, thread) for thread in threads] + [(os.getpid(), threading.get_native_id())]
    before = [ThreadTimes.read(*thread) for thread in watched]
    clock = _ask_health(port)
    times = [
        ThreadTimes.read(*thread).since(start)
        for thread, start in zip(watched, before, strict=True)
    ]
    work = sum(thread.processor for thread in times[:-1])
    own = max(clock - sum(thread.delay for thread in times), min(clock, work))
    return Wait(clock, own, _ask_health(idle_port))


def _watch_health(
    port: int,
    pid: int,
    threads: list[int],
    idle_port: int,
    stop: Any,
    results: multiprocessing.Queue,
) -> None:
    """Ask both servers alternately until `stop` is set."""
    waits = []
    while not stop.is_set():
        waits.append(_measure_wait(port, pid, threads, idle_port))
        time.sleep(0.005)
    results.put(waits)


def memory_of(pid: int, field: str = "VmRSS") -> float:
    """Return the MiB that a process holds, or held at most since its peak was reset."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    match = re.search(rf"{field}:\s+(\d+)", text)
    return int(match[1]) / 1024 if match else 0.0


COLUMNS = ("attack", "p50", "max", "max of its own", "max, idle server", "MiB", "answers")


def attack(folder: pathlib.Path, only: str) -> None:
    """Print a table with a row for each attack."""
    print_row(*COLUMNS)
    print_row("---", *["---:"] * (len(COLUMNS) - 2), "---")
    within = [0, 0]
    attacks = {name: run for name, run in list_attacks().items() if only in name}
    with running(plain(folder)) as (_, idle_port), running(mx_serve(folder)) as (server, port):
        base, threads = memory_of(server.pid), first_threads(server.pid)
        for name, run in attacks.items():
            pathlib.Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # resets the peak
            with _watching(port, server.pid, threads, idle_port) as waits:
                codes = _run_in_threads(functools.partial(run, port))
            times = [statistics.median(wait.clock for wait in waits)]
            times += [max(column) for column in zip(*waits, strict=True)]
            peak = memory_of(server.pid, "VmHWM") - base
            numbers = [f"{seconds * 1e3:.1f}" for seconds in times]
            print_row(name, *numbers, f"{peak:+.0f}", _describe(codes))
            within = [n + (t <= GOAL) for n, t in zip(within, times[1:3], strict=True)]
    print(
        f"\n/health in ms; within {GOAL * 1e3:.0f} ms in {within[1]} of {len(attacks)} rows by its "
        f"own time, in {within[0]} by the clock."
    )


@contextlib.contextmanager
def _watching(*args: Any) -> Iterator[list[Wait]]:
    """Ask for `/health` from another process; its waits are there at the end."""
    context = multiprocessing.get_context("spawn")
    stop, results = context.Event(), context.Queue()
    watch = context.Process(target=_watch_health, args=(*args, stop, results))
    watch.start()
    waits: list[Wait] = []
    time.sleep(2)
    yield waits
    time.sleep(0.2)
    stop.set()
    waits += results.get(timeout=LIMIT)
    watch.join(LIMIT)


def _run_in_threads(run: Callable[[Codes], None], count: int = 4) -> Codes:
    """Attack; the servers come first, since attackers have machines of their own."""

    def run_nicely(codes: Codes) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)  # of the thread, on Linux
        run(codes)

    counts: list[Codes] = [collections.Counter() for _ in range(count)]
    threads = [threading.Thread(target=run_nicely, args=(codes,)) for codes in counts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts, collections.Counter())


def _describe(codes: Codes) -> str:
    return ", ".join(f"{code} x {count}" for code, count in sorted(codes.items()))


def endure(folder: pathlib.Path, count: int) -> None:
    """Print the memory of a server while it answers mixed requests."""
    wrong = json.dumps({"inputs": [[1, 2], [3]]}).encode()
    right = json.dumps({"inputs": np.zeros((1, *SHAPE)).tolist()}).encode()
    mixed = [(body(), NPY), (wrong, JSON), (right, JSON), (body(4), NPY), (b"\x93NUMPY", NPY),
             (body(), "text/plain"), (_png(64, 64), "image/png")]  # fmt: skip
    with running(mx_serve(folder)) as (server, port):
        codes: Codes = collections.Counter()

        def ask(share: int) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
            for number in range(share):
                content, kind = mixed[number % len(mixed)]
                connection.request("POST", "/predict", content, {"content-type": kind})
                answer = connection.getresponse()
                assert answer.read()
                codes[str(answer.status)] += 1

        threads = [threading.Thread(target=ask, args=(count // 8,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(max(1.0, count / 10_000))
            print(f"{codes.total():8} requests   {memory_of(server.pid):7.1f} MiB", flush=True)
        print(_describe(codes))


def main() -> None:
    """Attack and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="NAME", help="attacks whose name has this")
    parser.add_argument("--endure", type=int, default=0, metavar="N")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        save_models(folder)
        if args.endure:
            endure(folder, args.endure)
        else:
            attack(folder, args.only)


if __name__ == "__main__":
    main()
