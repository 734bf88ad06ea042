"""Measure `mx serve` on loopback: ``python -m benchmarks.serving [--seconds 5] [--clients 16]``.

Requests per second and latency with and without batching, and the same model called one by one
in this process. Everything shares the machine, clients too.
"""

from __future__ import annotations

import argparse
import http.client
import io
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

import numpy as np

import mxnet as mx
from mxnext_cli.models import Predictor, load_model

SHAPE = (3, 32, 32)


def save_model(prefix: str) -> None:
    """Write a small convolutional network."""
    net = mx.gluon.nn.HybridSequential()
    for channels in (32, 64, 128):
        net.add(mx.gluon.nn.Conv2D(channels, 3, padding=1), mx.gluon.nn.BatchNorm())
        net.add(mx.gluon.nn.Activation("relu"), mx.gluon.nn.MaxPool2D())
    net.add(mx.gluon.nn.Dense(10))
    net.initialize()
    net.hybridize()
    net(mx.nd.zeros((1, *SHAPE)))
    net.export(prefix)


def body() -> bytes:
    """Return one request."""
    file = io.BytesIO()
    np.save(file, np.random.default_rng(0).standard_normal((1, *SHAPE), dtype=np.float32))
    return file.getvalue()


def measure(clients: int, seconds: float, ask_maker: Callable[[], Callable[[], object]]) -> list:
    """Return the latencies of all calls that clients made in the given time."""
    latencies: list[float] = []
    end = time.monotonic() + seconds

    def work() -> None:
        ask = ask_maker()
        ask()
        while time.monotonic() < end:
            start = time.perf_counter()
            ask()
            latencies.append(time.perf_counter() - start)

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return latencies


def report(name: str, latencies: list[float], seconds: float) -> None:
    """Print one line."""
    cuts = statistics.quantiles(latencies, n=100)
    print(
        f"{name:<34} {len(latencies) / seconds:8.0f} requests/s   "
        f"median {cuts[49] * 1e3:6.1f} ms   99 % {cuts[98] * 1e3:6.1f} ms"
    )


def serve(prefix: str, *options: str) -> tuple[subprocess.Popen, int]:
    """Start a server and return it with its port."""
    shape = ",".join(map(str, SHAPE))
    command = [sys.executable, "-m", "mxnext_cli", "serve", prefix, "--shape", shape]
    server = subprocess.Popen(
        [*command, "--port", "0", *options], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    return server, int(server.stdout.readline().split("://")[1].split()[0].rpartition(":")[2])


def http_client(port: int) -> Callable[[], None]:
    """Return a function that sends one request on a connection that stays open."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    content = body()
    kind = "application/x-npy"

    def ask() -> None:
        headers = {"content-type": kind, "accept": kind}
        connection.request("POST", "/predict", content, headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200

    return ask


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--clients", type=int, default=16)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        prefix = str(pathlib.Path(folder, "net"))
        save_model(prefix)
        predictor = Predictor(load_model(argparse.Namespace(model=prefix, epoch=None, params=None)))
        sample = {"data": np.load(io.BytesIO(body()))}
        report(
            "model alone, one by one",
            measure(1, args.seconds, lambda: lambda: predictor(sample)),
            args.seconds,
        )
        for name, clients, options in (
            ("served, 1 client", 1, ()),
            (f"served, {args.clients} clients, no batching", args.clients, ("--max-batch", "1")),
            (f"served, {args.clients} clients, batches", args.clients, ("--max-batch", "32")),
        ):
            server, port = serve(prefix, *options)
            try:
                result = measure(clients, args.seconds, lambda port=port: http_client(port))
            finally:
                server.terminate()
                server.wait(30)
            report(name, result, args.seconds)


if __name__ == "__main__":
    main()
