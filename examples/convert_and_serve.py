"""From a torch model to a running server: convert, check, export, serve, ask.

    pip install '.[onnx,serve]'
    python examples/convert_and_serve.py

A torch network learns handwritten digits. It becomes a Gluon block with the same numbers, files
that MXNet reads and an ONNX file; `mx serve` then answers HTTP requests with it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from sklearn.datasets import load_digits

import mxnet as mx
from mxnet import nd


def train_torch(images: np.ndarray, labels: np.ndarray, epochs: int) -> torch.nn.Module:
    """Return a torch network trained on the images."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10), torch.nn.Softmax(1)
    )
    optimizer = torch.optim.Adam(module.parameters(), 1e-2)
    data, target = torch.from_numpy(images), torch.from_numpy(labels)
    for _ in range(epochs):
        optimizer.zero_grad()
        torch.nn.functional.nll_loss(module(data).log(), target).backward()
        optimizer.step()
    return module.eval()


@contextlib.contextmanager
def serve(model: str) -> Iterator[str]:
    """Run `mx serve` on a free port; give the address and stop the server in the end."""
    command = [sys.executable, "-m", "mxnext_cli", "serve", model]
    command += ["--shape", "data=64", "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, **pipes) as server:
        try:
            for line in server.stdout or ():
                if match := re.search(r"http://[\w.]+:\d+", line):
                    yield match[0]
                    return
            raise SystemExit(f"the server did not start; exit code {server.wait(10)}")
        finally:
            server.terminate()


def ask(address: str, image: np.ndarray) -> np.ndarray:
    """Send one image as JSON and return the probabilities of the digits."""
    body = json.dumps({"inputs": {"data": [image.tolist()]}}).encode()
    request = urllib.request.Request(
        f"{address}/predict", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        outputs = json.load(answer)["outputs"]
    return np.array(next(iter(outputs.values())))[0]


def main(arguments: Sequence[str] | None = None) -> float:
    """Convert and serve; return the largest difference between torch and the server."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--requests", type=int, default=5)
    options = parser.parse_args(arguments)

    images, labels = load_digits(return_X_y=True)
    images = images.astype("float32") / 16
    module = train_torch(images, labels, options.epochs)
    expected = module(torch.from_numpy(images)).detach().numpy()
    print(f"torch: accuracy {(expected.argmax(axis=1) == labels).mean():.3f}")

    net = mx.convert.from_torch(module, torch.from_numpy(images[:8]))
    accuracy = (net(nd.array(images)).argmax(axis=1).asnumpy() == labels).mean()
    print(f"Gluon: accuracy {accuracy:.3f}")
    differences = []
    with tempfile.TemporaryDirectory() as folder:
        prefix = str(pathlib.Path(folder) / "digits")
        net.export(prefix)
        print(mx.convert.convert(net, to=f"{prefix}.onnx", shapes=[(8, 64)]))
        print("files:", *sorted(path.name for path in pathlib.Path(folder).iterdir()))
        with serve(prefix) as address:
            for number in range(options.requests):
                answer = ask(address, images[number])
                differences.append(abs(answer - expected[number]).max())
                print(f"server: {answer.argmax()} ({answer.max():.0%}), label {labels[number]}")
    print(f"largest difference between torch and the server: {max(differences):.1e}")
    return float(max(differences))


if __name__ == "__main__":
    main()
