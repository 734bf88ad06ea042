"""Writes the table of docs/deploy.md: models at every target, run on this machine.

    python -m tools.deployments --onnxruntime /opt/onnxruntime --web node_modules/onnxruntime-web

A target whose programs are not installed keeps its old rows; --targets chooses some.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import mxnet as mx
from mxnet.gluon import nn, rnn

PAGE = Path(__file__).resolve().parents[1] / "docs/deploy.md"
BEGIN, END = "<!-- table -->\n", "<!-- end -->"
LIMIT = 600  # seconds
HEADING = "| model | target | size | first run | largest relative error |\n|---|---|--:|--:|--:|\n"


class Row(NamedTuple):
    """One line of the table."""

    model: str
    target: str
    size: str
    time: str
    error: str


def small_cnn() -> tuple[mx.gluon.HybridBlock, list[tuple[int, ...]]]:
    """Return a small convolutional network."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D())
    net.add(nn.Conv2D(32, 3), nn.BatchNorm(), nn.Activation("relu"), nn.GlobalAvgPool2D())
    net.add(nn.Dense(10))
    return net, [(1, 3, 32, 32)]


class Tagger(mx.gluon.HybridBlock):
    """An LSTM over words, and a score for each."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.words = nn.Embedding(50, 16)
            self.recurrent = rnn.LSTM(24, layout="NTC", input_size=16)
            self.score = nn.Dense(5, flatten=False)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the scores."""
        return self.score(self.recurrent(self.words(x)))


def zoo(name: str) -> tuple[mx.gluon.HybridBlock, list[tuple[int, ...]]]:
    """Return a network of the zoo."""
    return mx.gluon.model_zoo.vision.get_model(name), [(1, 3, 224, 224)]


MODELS = {
    "small CNN": small_cnn,
    "LSTM tagger": lambda: (Tagger(), [(2, 7)]),
    "MobileNetV2": lambda: zoo("mobilenetv2_1.0"),
    "ResNet-18": lambda: zoo("resnet18_v1"),
}


def run_web(folder: Path, args: argparse.Namespace) -> str:
    """Let headless Chromium check a site; return what the page says."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *_: Any) -> None:
            pass

    Handler.extensions_map = {**Handler.extensions_map, ".mjs": "text/javascript"}
    handler = functools.partial(Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    switches = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    switches += "--disable-background-networking --disable-component-update --disable-sync "
    switches += "--dump-dom --virtual-time-budget=60000"
    address = f"http://127.0.0.1:{server.server_port}/?check"
    with tempfile.TemporaryDirectory() as profile:
        command = ["chromium", *switches.split(), f"--user-data-dir={profile}", address]
        try:
            return run(command, folder)
        finally:
            server.shutdown()
            server.server_close()


def run_cpp(folder: Path, args: argparse.Namespace) -> str:
    """Compile and run the program on ONNX Runtime."""
    root = args.onnxruntime
    link = [f"{root}/lib/libonnxruntime.so", f"-Wl,-rpath,{root}/lib", "-o", "predict"]
    run(["g++", "-std=c++17", "-O1", "main.cpp", f"-I{root}/include", *link], folder)
    return run(["./predict", "--check"], folder)


def run_libtorch(folder: Path, args: argparse.Namespace) -> str:
    """Compile and run the program on libtorch."""
    root = Path(torch.__file__).parent
    include = [f"-I{root}/include", f"-I{root}/include/torch/csrc/api/include"]
    link = [f"-L{root}/lib", f"-Wl,-rpath,{root}/lib", "-ltorch", "-ltorch_cpu", "-lc10"]
    run(["g++", "-std=c++20", "-O1", "main.cpp", *include, *link, "-o", "predict"], folder)
    return run(["./predict"], folder)


def run_executorch(folder: Path, args: argparse.Namespace) -> str:
    """Run the file by ExecuTorch's runtime in a process without MXNext."""
    program = (
        "import time, numpy as np, torch, pathlib\n"
        "from executorch.runtime import Runtime\n"
        "method = Runtime.get().load_program('model.pte').load_method('forward')\n"
        f"shape, dtype = {args.shape!r}, 'float32'\n"
        "x = torch.from_numpy(np.fromfile('sample/input0.bin', dtype).reshape(shape))\n"
        "start = time.perf_counter()\n"
        "y = method.execute([x])[0].numpy().reshape(-1)\n"
        "spent = 1000 * (time.perf_counter() - start)\n"
        "z = np.fromfile('sample/output0.bin', dtype)\n"
        "print(f'largest relative error {abs(y - z).max() / abs(z).max():.2e}, {spent:.1f} ms')\n"
    )
    return run([sys.executable, "-c", program], folder)


def run(command: list[str], folder: Path) -> str:
    """Run a program in a folder and return what it prints."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr[-2000:]}")
    return done.stdout


RUNNERS = {"web": run_web, "cpp": run_cpp, "libtorch": run_libtorch, "executorch": run_executorch}


def measure(model: str, target: str, args: argparse.Namespace) -> Row:
    """Deploy a model, run it there, and return its line."""
    mx.random.seed(0)
    net, shapes = MODELS[model]()
    net.initialize(mx.init.Xavier())
    args.shape = shapes[0]
    inputs = [{"data": np.random.RandomState(0).randint(0, 50, shapes[0])}]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "deployed"
        runtime = args.web if target == "web" else None
        given = inputs if model == "LSTM tagger" else ()
        mx.convert.deploy(net, target, folder, shapes, inputs=given, runtime=runtime)
        size = sum(f.stat().st_size for f in folder.glob("model.*") if f.suffix != ".json")
        start = time.perf_counter()
        said = RUNNERS[target](folder, args)
        print(f"{model} {target}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    error = re.search(r"largest relative error ([-+.e\d]+)", said)
    spent = re.search(r"([.\d]+) ms", said)
    if not error or not spent:
        raise RuntimeError(f"{model} at {target} said: {said[-1000:]}")
    shown = f"{float(error[1]):.0e}" if float(error[1]) else "0"
    # Chromium's clock stands still while a page is dumped.
    shown_time = "–" if target == "web" else f"{float(spent[1]):.1f} ms"
    return Row(model, target, f"{size / 1e6:.2f} MB", shown_time, shown)


def read_rows(text: str) -> dict[tuple[str, str], Row]:
    """Return the lines that the page has."""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(Row._fields) and cells[0] in MODELS:
            rows[cells[0], cells[1]] = Row(*cells)
    return rows


def main() -> None:
    """Measure the chosen targets and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--targets", nargs="*", default=list(RUNNERS), choices=list(RUNNERS))
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--onnxruntime", default="/opt/onnxruntime", help="its C++ package")
    parser.add_argument("--web", default="/opt/onnxruntime-web", help="the package of npm")
    args = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(BEGIN)
    old, _, tail = rest.partition(END)
    rows = read_rows(old)
    for target in args.targets:
        if target == "web" and shutil.which("chromium") is None:
            continue
        for model in args.models:
            try:
                rows[model, target] = measure(model, target, args)
            except Exception as error:
                reason = str(error).strip().split("\n")[0][:200]
                print(f"{model} {target}: {reason}", file=sys.stderr)
    order = [(m, t) for m in MODELS for t in RUNNERS]
    lines = [f"| {' | '.join(rows[key])} |\n" for key in order if key in rows]
    PAGE.write_text(f"{head}{BEGIN}{HEADING}{''.join(lines)}{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
