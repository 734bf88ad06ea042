"""Measure `mx serve` on loopback: ``python -m benchmarks.serving [--clients 1,8,32]``.

In one run: the same network as a torch module behind plain Starlette on the same HTTP server
(Uvicorn, httptools, uvloop), and behind `mx serve`; requests per second and latency of each, with
clients in a process of their own, and the processor time of the server for a request, which says
most on a busy machine. Everything shares the machine. ``--lone`` asks both servers by turns from
one client.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import multiprocessing
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import numpy as np

SHAPE = (3, 32, 32)
NPY = "application/x-npy"
PLAIN = """
import io, sys
import numpy as np, torch, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

torch.set_num_threads(max(1, torch.get_num_threads()))
net = torch.jit.load(sys.argv[1]).eval()

async def predict(request):
    array = np.load(io.BytesIO(await request.body()), allow_pickle=False)
    with torch.inference_mode():
        out = net(torch.from_numpy(array)).numpy()
    file = io.BytesIO()
    np.save(file, out)
    return Response(file.getvalue(), media_type="application/x-npy")

async def health(request):
    return Response(b"{}")

app = Starlette(routes=[Route("/predict", predict, methods=["POST"]), Route("/health", health)])
with torch.inference_mode():
    net(torch.zeros(1, 3, 32, 32))
config = uvicorn.Config(app, port=int(sys.argv[2]), log_level="error", http="httptools",
                        loop="uvloop", access_log=False)
print(f"on http://127.0.0.1:{sys.argv[2]} ", flush=True)
uvicorn.Server(config).run()
"""


def save_models(folder: pathlib.Path) -> None:
    """Write one small convolutional network for MXNext and for torch."""
    import torch

    import mxnet as mx

    net = mx.gluon.nn.HybridSequential()
    module = torch.nn.Sequential()
    before = SHAPE[0]
    for channels in (32, 64, 128):
        net.add(mx.gluon.nn.Conv2D(channels, 3, padding=1), mx.gluon.nn.BatchNorm())
        net.add(mx.gluon.nn.Activation("relu"), mx.gluon.nn.MaxPool2D())
        module.extend([torch.nn.Conv2d(before, channels, 3, padding=1)])
        module.extend([torch.nn.BatchNorm2d(channels), torch.nn.ReLU(), torch.nn.MaxPool2d(2)])
        before = channels
    net.add(mx.gluon.nn.Dense(10))
    module.extend([torch.nn.Flatten(), torch.nn.Linear(before * 16, 10)])
    net.initialize()
    net.hybridize()
    net(mx.nd.zeros((1, *SHAPE)))
    net.export(str(folder / "net"))
    frozen = torch.jit.freeze(torch.jit.script(module.eval()))
    torch.jit.save(frozen, str(folder / "net.pt"))


def body(rows: int = 1) -> bytes:
    """Return one request."""
    file = io.BytesIO()
    np.save(file, np.random.default_rng(0).standard_normal((rows, *SHAPE), dtype=np.float32))
    return file.getvalue()


@contextlib.contextmanager
def running(command: list[str]) -> Iterator[tuple[subprocess.Popen, int]]:
    """Start a server, give it with its port, and end it."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        match = re.search(r"://[\w.]+:(\d+)", server.stdout.readline())
        assert match is not None
        try:
            _wait_for(int(match[1]))
            yield server, int(match[1])
        finally:
            server.terminate()
            server.wait(30)


def _wait_for(port: int) -> None:
    for _ in range(100):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        time.sleep(0.1)


def mx_serve(folder: pathlib.Path, *options: str) -> list[str]:
    """Return the command of our server."""
    shape = ",".join(map(str, SHAPE))
    command = [sys.executable, "-m", "mxnext_cli", "serve", str(folder / "net"), "--shape", shape]
    return [*command, "--port", "0", *options]


def plain(folder: pathlib.Path) -> list[str]:
    """Return the command of the plain server."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return [sys.executable, "-c", PLAIN, str(folder / "net.pt"), str(port)]


def predict_request() -> bytes:
    """Return a request with its headers."""
    content = body()
    return (
        f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NPY}\r\nAccept: {NPY}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    ).encode() + content


def print_row(*cells: str) -> None:
    """Print a row of a table."""
    print(f"| {' | '.join(cells)} |", flush=True)


# -- clients ---------------------------------------------------------------------------------------


async def _ask_often(port: int, end: float, request: bytes, latencies: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    is_first = True
    while time.monotonic() < end:
        start = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head[:20], head
        match = re.search(rb"content-length: (\d+)", head)
        assert match is not None
        await reader.readexactly(int(match[1]))
        if not is_first:
            latencies.append(time.perf_counter() - start)
        is_first = False
    writer.close()


def _client(port: int, count: int, seconds: float, results: multiprocessing.Queue) -> None:
    request = predict_request()
    latencies: list[float] = []

    async def ask_all() -> None:
        end = time.monotonic() + seconds
        await asyncio.gather(*(_ask_often(port, end, request, latencies) for _ in range(count)))

    asyncio.run(ask_all())
    results.put(latencies)


def measure(port: int, clients: int, seconds: float) -> list[float]:
    """Return the latencies of all requests of so many clients, which are another process."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=_client, args=(port, clients, seconds, results))
    process.start()
    latencies = results.get(timeout=seconds + 60)
    process.join(30)
    return latencies


def process_seconds(pid: int) -> float:
    """Return the processor time of all threads of a process."""
    return time.clock_gettime((~pid << 3) | 2)  # as clock_getcpuclockid(3) computes it


def measure_server(
    name: str, server: subprocess.Popen, port: int, count: int, length: float
) -> None:
    """Measure one server and print a line."""
    before = process_seconds(server.pid)
    latencies = measure(port, count, length)
    used = process_seconds(server.pid) - before
    report(name, count, latencies, length, used / len(latencies))


def report(name: str, clients: int, latencies: list[float], seconds: float, cpu: float) -> None:
    """Print one line."""
    cuts = statistics.quantiles(latencies, n=100)
    print(
        f"{name:<18} {clients:4} clients {len(latencies) / seconds:7.0f} requests/s   "
        f"p5 {cuts[4] * 1e3:6.2f}   p50 {cuts[49] * 1e3:6.2f}   p99 {cuts[98] * 1e3:6.2f} ms   "
        f"processor {cpu * 1e3:6.3f} ms",
        flush=True,
    )


def compare(folder: pathlib.Path, counts: list[int], seconds: float) -> None:
    """Measure both servers by turns, so that both see the same machine."""
    with running(plain(folder)) as other, running(mx_serve(folder)) as ours:
        for _, port in (other, ours):
            measure(port, 4, 0.5)
        for count in counts:
            for _ in range(2):
                measure_server("torch + Starlette", *other, count, seconds)
                measure_server("mx serve", *ours, count, seconds)


# -- a lone client --------------------------------------------------------------------------------


class LoneClient:
    """One connection that asks again and again, and waits for each answer."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = predict_request()

    def ask(self) -> float:
        """Return the seconds of one request."""
        start = time.perf_counter()
        self._socket.sendall(self._request)
        received = self._socket.recv(65536)
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._socket.recv(65536)
        match = re.search(rb"content-length: (\d+)", received)
        assert match is not None and b" 200 " in received[:20], received
        while len(received) < end + 4 + int(match[1]):
            received += self._socket.recv(65536)
        return time.perf_counter() - start


def compare_lone(folder: pathlib.Path, rounds: int = 200, turn: int = 20) -> None:
    """Ask both servers by turns from one client; print the medians and the ratio of each turn."""
    with running(plain(folder)) as (other, port), running(mx_serve(folder)) as (ours, our_port):
        sides = [(other.pid, LoneClient(port)), (ours.pid, LoneClient(our_port))]
        for _, client in sides:
            for _ in range(200):
                client.ask()
        turns = [[_measure_turn(*side, turn) for side in sides] for _ in range(rounds)]
    for name, side in (("torch + Starlette", 0), ("mx serve", 1)):
        clock, processor = (statistics.median(pair[side][i] for pair in turns) for i in (0, 1))
        print(f"{name:<18} lone client   p50 {clock * 1e3:6.3f} ms   "
              f"processor {processor * 1e3:6.3f} ms")  # fmt: skip
    clock, processor = (statistics.median(b[i] / a[i] for a, b in turns) for i in (0, 1))
    print(f"median of {rounds} ratios: p50 {clock:.2f}, processor {processor:.2f}")


def _measure_turn(pid: int, client: LoneClient, count: int) -> tuple[float, float]:
    """Return the median time of some requests, and the processor time of one."""
    before = process_seconds(pid)
    clock = statistics.median(client.ask() for _ in range(count))
    return clock, (process_seconds(pid) - before) / count


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--clients", default="1,8,32,128")
    parser.add_argument("--lone", action="store_true", help="one client that asks both by turns")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        save_models(folder)
        if args.lone:
            compare_lone(folder)
        else:
            compare(folder, [int(n) for n in args.clients.split(",")], args.seconds)


if __name__ == "__main__":
    main()
