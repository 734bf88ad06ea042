"""Measure `mx serve` on loopback: ``python -m benchmarks.serving [--litserve PYTHON]``.

In one run: the same network as a torch module behind plain Starlette on the same HTTP server
(granian, uvloop), behind `mx serve` with one and with two processes, and behind
LitServe, if a Python is named in which it and torch are installed (it takes JSON, so it is compared
on JSON). The servers of a table are measured alternately. It prints requests per second, latency,
and the processor time of the server per request, which is the most reliable on a busy machine;
ratios are to plain torch. Clients run in a process of their own, on the same machine. It takes
about three minutes. ``--lone`` asks both servers alternately from one client.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import multiprocessing
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

SHAPE = (3, 32, 32)
NPY, JSON = "application/x-npy", "application/json"
PLAIN_NAME = "torch + Starlette"
ROUNDS = 2  # of each server with each number of clients
PLAIN = """
import asyncio, io, signal, sys
import numpy as np, torch, uvloop
from granian.constants import Interfaces
from granian.server.embed import Server
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

torch.set_num_threads(max(1, torch.get_num_threads()))
net = torch.jit.load(sys.argv[1]).eval()

async def predict(request):
    is_json = request.headers["content-type"] == "application/json"
    if is_json:
        array = np.array((await request.json())["inputs"], np.float32)
    else:
        array = np.load(io.BytesIO(await request.body()), allow_pickle=False)
    with torch.inference_mode():
        out = net(torch.from_numpy(array)).numpy()
    if is_json:
        return JSONResponse({"outputs": out.tolist()})
    file = io.BytesIO()
    np.save(file, out)
    return Response(file.getvalue(), media_type="application/x-npy")

async def health(request):
    return Response(b"{}")

app = Starlette(routes=[Route("/predict", predict, methods=["POST"]), Route("/health", health)])
with torch.inference_mode():
    net(torch.zeros(1, 3, 32, 32))

async def serve():
    server = Server(app, port=int(sys.argv[2]), interface=Interfaces.ASGINL, log_enabled=False,
                    websockets=False, backlog=4096)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.stop)
    await server.serve()

print(f"on http://127.0.0.1:{sys.argv[2]} ", flush=True)
uvloop.run(serve())
"""
LITSERVE = """
import sys
import litserve, torch

class API(litserve.LitAPI):
    def setup(self, device):
        self.net = torch.jit.load(sys.argv[1]).eval()

    def decode_request(self, request):
        return torch.tensor(request["inputs"])[0]

    def predict(self, x):
        with torch.inference_mode():
            return self.net(x)

    def encode_response(self, output):
        return {"outputs": output.tolist()}

if __name__ == "__main__":
    api = API(max_batch_size=32, batch_timeout=0.002)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1)
    print(f"on http://127.0.0.1:{sys.argv[2]} ", flush=True)
    server.run("127.0.0.1", int(sys.argv[2]), 1, "error", generate_client_file=False)
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
    """Start a server, give it with its port, and end it and its processes."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as server:
        assert server.stdout is not None
        match = re.search(r"://[\w.]+:(\d+)", server.stdout.readline())
        assert match is not None
        try:
            _wait_for(int(match[1]))
            yield server, int(match[1])
        finally:
            server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(30)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)


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
    return [sys.executable, "-c", PLAIN, str(folder / "net.pt"), str(_free_port())]


def litserve(folder: pathlib.Path, python: str) -> list[str]:
    """Return the command of LitServe, which imports its program in several processes."""
    program = folder / "lit.py"
    program.write_text(LITSERVE)
    return [python, str(program), str(folder / "net.pt"), str(_free_port())]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def predict_request(kind: str = NPY) -> bytes:
    """Return a request with its headers."""
    content = body()
    if kind == JSON:
        numbers = np.load(io.BytesIO(content)).round(4).astype(float).tolist()
        content = json.dumps({"inputs": numbers}).encode()
    return (
        f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nAccept: {kind}\r\n"
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


def _client(
    port: int, request: bytes, count: int, seconds: float, results: multiprocessing.Queue
) -> None:
    latencies: list[float] = []

    async def ask_all() -> None:
        end = time.monotonic() + seconds
        await asyncio.gather(*(_ask_often(port, end, request, latencies) for _ in range(count)))

    asyncio.run(ask_all())
    results.put(latencies)


def measure(port: int, request: bytes, clients: int, seconds: float) -> list[float]:
    """Return the latencies of all requests of so many clients, which are another process."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=_client, args=(port, request, clients, seconds, results))
    process.start()
    latencies = results.get(timeout=seconds + 60)
    process.join(30)
    return latencies


def process_seconds(pid: int) -> float:
    """Return the processor time of all threads of a process."""
    return time.clock_gettime((~pid << 3) | 2)  # as clock_getcpuclockid(3) computes it


def tree_seconds(pid: int) -> float:
    """Return the processor time of a process and of those that it started (Linux)."""
    total = process_seconds(pid)
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        total += sum(tree_seconds(int(child)) for child in (task / "children").read_text().split())
    return total


class Figures:
    """What was measured of one server with so many clients."""

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.seconds = self.processor = 0.0

    def add(self, server: subprocess.Popen, port: int, *args: Any) -> None:
        """Measure once more; `args` are those of `measure` except the port."""
        before = tree_seconds(server.pid)
        self.latencies += measure(port, *args)
        self.processor += tree_seconds(server.pid) - before
        self.seconds += args[-1]

    @property
    def rate(self) -> float:
        """Requests per second."""
        return len(self.latencies) / self.seconds

    @property
    def processor_per_request(self) -> float:
        """Seconds."""
        return self.processor / len(self.latencies)

    def cells(self, base: Figures) -> list[str]:
        """Return the cells of a table; ratios are to `base`."""
        cuts = statistics.quantiles(self.latencies, n=100)
        times = (cuts[49], cuts[98], self.processor_per_request)
        return [
            f"{self.rate:.0f}",
            f"{self.rate / base.rate:.2f}",
            *(f"{seconds * 1e3:.2f}" for seconds in times),
            f"{self.processor_per_request / base.processor_per_request:.2f}",
        ]


COLUMNS = ("clients", "server", "requests/s", "ratio", "p50 ms", "p99 ms", "processor ms", "ratio")


def compare(kind: str, commands: dict[str, list[str]], counts: list[int], seconds: float) -> None:
    """Measure servers alternately, so that all see the same machine, and print a table."""
    request = predict_request(kind)
    print(f"\nBodies of {kind}:\n")
    print_row(*COLUMNS)
    print_row("---:", "---", *["---:"] * (len(COLUMNS) - 2))
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(running(c)) for name, c in commands.items()}
        for _, port in servers.values():
            _wait_for_answer(port, request)
            measure(port, request, 4, 0.5)
        for count in counts:
            figures = {name: Figures() for name in servers}
            for _ in range(ROUNDS):
                for name, (server, port) in servers.items():
                    figures[name].add(server, port, request, count, seconds)
            for name, measured in figures.items():
                print_row(str(count), name, *measured.cells(figures[PLAIN_NAME]))


def _wait_for_answer(port: int, request: bytes, seconds: float = 60) -> None:
    """Wait until a server has loaded its model."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.create_connection(("127.0.0.1", port), timeout=seconds) as sock:
            sock.sendall(request)
            if b" 200 " in sock.recv(20):
                return
        time.sleep(0.2)
    raise TimeoutError(f"no answer on port {port}")


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


def compare_lone(folder: pathlib.Path, rounds: int = 200, requests: int = 20) -> None:
    """Ask both servers alternately from one client; print the medians and the median ratio."""
    with running(plain(folder)) as (other, port), running(mx_serve(folder)) as (ours, our_port):
        sides = [(other.pid, LoneClient(port)), (ours.pid, LoneClient(our_port))]
        for _, client in sides:
            for _ in range(200):
                client.ask()
        pairs = [[_measure_requests(*side, requests) for side in sides] for _ in range(rounds)]
    for name, side in ((PLAIN_NAME, 0), ("mx serve", 1)):
        clock, processor = (statistics.median(pair[side][i] for pair in pairs) for i in (0, 1))
        print(f"{name:<18} lone client   p50 {clock * 1e3:6.3f} ms   "
              f"processor {processor * 1e3:6.3f} ms")  # fmt: skip
    clock, processor = (statistics.median(b[i] / a[i] for a, b in pairs) for i in (0, 1))
    print(f"median of {rounds} ratios: p50 {clock:.2f}, processor {processor:.2f}")


def _measure_requests(pid: int, client: LoneClient, count: int) -> tuple[float, float]:
    """Return the median time of some requests, and the processor time of one."""
    before = process_seconds(pid)
    clock = statistics.median(client.ask() for _ in range(count))
    return clock, (process_seconds(pid) - before) / count


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.5, help="of a round")
    parser.add_argument("--clients", default="1,8,32,128")
    parser.add_argument("--litserve", metavar="PYTHON", help="in which LitServe and torch are")
    parser.add_argument("--lone", action="store_true", help="one client that asks both alternately")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    counts = [int(n) for n in args.clients.split(",")]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        save_models(folder)
        if args.lone:
            compare_lone(folder)
            return
        both = {PLAIN_NAME: plain(folder), "mx serve": mx_serve(folder)}
        two = {"mx serve --workers 2": mx_serve(folder, "--workers", "2")}
        lit = {"LitServe": litserve(folder, args.litserve)} if args.litserve else {}
        compare(NPY, both | two, counts, args.seconds)
        compare(JSON, both | lit, counts, args.seconds)


if __name__ == "__main__":
    main()
