"""Measure `mx serve` on loopback: ``python -m benchmarks.serving [--clients 1,8,32]``.

In one run: the same network as a torch module behind plain Starlette on the same HTTP server
(Uvicorn, httptools, uvloop), and behind `mx serve`; requests per second and latency of each, with
clients in a process of their own, and the processor time of the server for a request, which says
most on a busy machine. Everything shares the machine. ``--attack`` measures `/health`
while hostile requests arrive, ``--endure N`` the memory over N mixed requests.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import io
import json
import multiprocessing
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator

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
    content = body()
    request = (
        f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NPY}\r\nAccept: {NPY}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    ).encode() + content
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


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_server(
    name: str, server: subprocess.Popen, port: int, count: int, length: float
) -> None:
    """Measure one server and print a line."""
    before = cpu_seconds(server.pid)
    latencies = measure(port, count, length)
    used = cpu_seconds(server.pid) - before
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


# -- attacks and endurance -------------------------------------------------------------------------


def _health(port: int, stop: multiprocessing.Event, results: multiprocessing.Queue) -> None:  # type: ignore[valid-type]
    seconds = []
    while not stop.is_set():  # type: ignore[attr-defined]
        start = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200
        connection.close()
        seconds.append(time.perf_counter() - start)
        time.sleep(0.01)
    results.put(seconds)


def memory_of(pid: int) -> float:
    """Return the MiB that a process holds."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    match = re.search(r"VmRSS:\s+(\d+)", text)
    return int(match[1]) / 1024 if match else 0.0


def attack(folder: pathlib.Path) -> None:
    """Print how long `/health` takes while each attack runs, and how memory grows."""
    attacks: dict[str, Callable[[int], None]] = {
        "nothing": lambda port: time.sleep(1),
        "lists in lists, 8 MiB": _post(b'{"inputs":[' + b"[[[1]]]," * (1 << 20) + b"1]}"),
        "long text, 7 MiB": _post(b'{"inputs":"' + b"a" * (7 << 20) + b'"}'),
        "arrays, 1 MiB": _post(body(100), NPY),
        "3000 half headers": _half_headers,
    }
    context = multiprocessing.get_context("spawn")
    with running(mx_serve(folder)) as (server, port):
        base = memory_of(server.pid)
        for name, run in attacks.items():
            stop, results = context.Event(), context.Queue()
            watch = context.Process(target=_health, args=(port, stop, results))
            watch.start()
            time.sleep(1)
            threads = [threading.Thread(target=run, args=(port,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            stop.set()
            seconds = results.get(timeout=60)
            watch.join(30)
            print(
                f"{name:<24} /health median {statistics.median(seconds) * 1e3:6.1f} ms   slowest "
                f"{max(seconds) * 1e3:6.1f} ms   memory {memory_of(server.pid) - base:+7.1f} MiB",
                flush=True,
            )


def _post(content: bytes, kind: str = "application/json") -> Callable[[int], None]:
    def run(port: int) -> None:
        for _ in range(4):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("POST", "/predict", content, {"content-type": kind})
            connection.getresponse().read()
            connection.close()

    return run


def _half_headers(port: int) -> None:
    sockets = []
    for _ in range(750):
        sock = socket.create_connection(("127.0.0.1", port), timeout=60)
        sock.sendall(b"GET /health HTTP/1.1\r\nA")
        sockets.append(sock)
    for sock in sockets:
        sock.close()


def endure(folder: pathlib.Path, count: int) -> None:
    """Print the memory of a server while it answers mixed requests."""
    wrong = json.dumps({"inputs": [[1, 2], [3]]}).encode()
    right = json.dumps({"inputs": np.zeros((1, *SHAPE)).tolist()}).encode()
    mixed = [(body(), NPY), (wrong, "application/json"), (right, "application/json"),
             (body(4), NPY), (b"\x93NUMPY", NPY), (body(), "text/plain")]  # fmt: skip
    with running(mx_serve(folder)) as (server, port):
        done = 0

        def ask(share: int) -> None:
            nonlocal done
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            for number in range(share):
                content, kind = mixed[number % len(mixed)]
                connection.request("POST", "/predict", content, {"content-type": kind})
                assert connection.getresponse().read()
                done += 1

        threads = [threading.Thread(target=ask, args=(count // 8,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(max(1.0, count / 20_000))
            print(f"{done:8} requests   {memory_of(server.pid):7.1f} MiB", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--clients", default="1,8,32,128")
    parser.add_argument("--attack", action="store_true")
    parser.add_argument("--endure", type=int, default=0)
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        save_models(folder)
        if args.attack:
            attack(folder)
        elif args.endure:
            endure(folder, args.endure)
        else:
            compare(folder, [int(n) for n in args.clients.split(",")], args.seconds)


if __name__ == "__main__":
    main()
