"""Writes the tables of docs/deploy.md: models at every target, run without MXNext.

    python -m tools.deployments --onnxruntime /opt/onnxruntime --web node_modules/onnxruntime-web

Chosen targets and models are run, each in programs of its own; the other cells of the tables stay.
ExecuTorch and TVM (apache-tvm, apache-tvm-ffi) are used where they are installed; `web` needs
Chromium with its driver.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import mxnet as mx
from mxnet.interop.deploy.sample import Sample

from .deployment_models import MODELS, Subject

PAGE = Path(__file__).resolve().parents[1] / "docs/deploy.md"
BEGIN, END = "<!-- table -->\n", "<!-- end -->"
LIMIT = 900  # seconds
TOLERANCE = 1e-5
SIZES = {"onnx": ".onnx", "pt2": ".pt2", "libtorch": "compiled .pt2", "executorch": ".pte"}
DRIVER = "http://127.0.0.1:9517"


class Result(NamedTuple):
    """What a deployed model showed."""

    error: float
    milliseconds: float
    bytes: int

    def __str__(self) -> str:
        """Return the cell of the table."""
        shown = f"{self.error:.0e}" if self.error else "0"
        spent = f"{self.milliseconds:.2g}" if self.milliseconds < 10 else f"{self.milliseconds:.0f}"
        return f"{shown}, {spent} ms"


# -- programs that run a folder -----------------------------------------------------------------

# What all Python programs share; `load` gives them a function of arrays.
PROGRAM = """
import json, sys, time
sys.modules["mxnet"] = None  # an import would fail
import numpy as np
facts = json.load(open("facts.json"))
def read(name):
    paths = (f"sample/{name}{i}.bin" for i in range(len(facts[name])))
    return [np.fromfile(p, d).reshape(s) for p, (s, d) in zip(paths, facts[name])]
LOAD
inputs, expected = read("input"), read("output")
run(inputs)
start = time.perf_counter()
outputs = run(inputs)
spent = 1000 * (time.perf_counter() - start)
assert [o.shape for o in outputs] == [e.shape for e in expected]
worst = max(abs(o - e).max() / max(abs(e).max(), 1e-30) for o, e in zip(outputs, expected))
print(f"largest relative error {worst:.2e}, {spent:.2f} ms")
"""
ONNX = """
import onnxruntime
session = onnxruntime.InferenceSession("model.onnx")
names = [i.name for i in session.get_inputs()]
run = lambda xs: session.run(None, dict(zip(names, xs)))
"""
PT2 = """
import torch
module = torch.export.load("model.pt2").module()
def run(xs):
    with torch.no_grad():
        y = module(*map(torch.from_numpy, xs))
    return [t.numpy() for t in (y if isinstance(y, tuple | list) else [y])]
"""
EXECUTORCH = """
import torch
from executorch.runtime import Runtime
method = Runtime.get().load_program("model.pte").load_method("forward")
run = lambda xs: [t.numpy() for t in method.execute([*map(torch.from_numpy, xs)])]
"""
TVM = """
import onnx, tvm
from tvm.relax.frontend.onnx import from_onnx
module = from_onnx(onnx.load("model.onnx"))
target = tvm.target.Target({"kind": "llvm"})
machine = tvm.relax.VirtualMachine(tvm.compile(module, target=target), tvm.cpu())
def run(xs):
    y = machine["main"](*map(tvm.runtime.tensor, xs))
    return [t.numpy() for t in ([y] if hasattr(y, "numpy") else y)]
"""


def run(command: Sequence[str], folder: Path) -> str:
    """Run a program in a folder and return what it prints."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        raise RuntimeError(lines[-1])
    return done.stdout


def run_python(load: str) -> Callable[[Path, argparse.Namespace], str]:
    """Return a function that runs a folder by a Python program without MXNext."""
    text = PROGRAM.replace("LOAD", load)
    return lambda folder, args: run([sys.executable, "-c", text], folder)


def run_cpp(folder: Path, args: argparse.Namespace) -> str:
    """Compile and run the program on ONNX Runtime."""
    root = Path(args.onnxruntime).resolve()
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


def run_web(folder: Path, args: argparse.Namespace) -> str:
    """Let headless Chromium check a site; return what the page says."""
    with serving(folder) as address, browser() as page:
        page("url", {"url": f"{address}/?check"})
        script = {"script": "return document.getElementById('status').textContent", "args": []}
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            said = page("execute/sync", script) or ""
            if "error" in said:
                return said
            time.sleep(0.5)
    raise RuntimeError("the page says nothing")


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder; give its address."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *_: Any) -> None:
            pass

    Handler.extensions_map = {**Handler.extensions_map, ".mjs": "text/javascript"}
    handler = functools.partial(Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def browser() -> Iterator[Callable[[str, dict[str, Any]], Any]]:
    """Start Chromium; give a function that sends it commands of the WebDriver protocol."""

    def send(path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            f"{DRIVER}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from error

    driver = subprocess.Popen(["chromedriver", f"--port={DRIVER.rpartition(':')[2]}", "--silent"])
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"{DRIVER}/status", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        switches = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        options = {"args": switches}
        match = {"browserName": "chrome", "goog:chromeOptions": options}
        session = send("session", {"capabilities": {"alwaysMatch": match}})["sessionId"]
        yield lambda command, body: send(f"session/{session}/{command}", body)
        leave = urllib.request.Request(f"{DRIVER}/session/{session}", method="DELETE")
        urllib.request.urlopen(leave, timeout=60).close()
    finally:
        driver.terminate()
        driver.wait(60)


# -- targets ------------------------------------------------------------------------------------


class Target(NamedTuple):
    """How a model is written, and what runs it."""

    folder: str  # the target of `mx.convert.deploy`
    run: Callable[[Path, argparse.Namespace], str]


TARGETS = {
    "onnx": Target("cpp", run_python(ONNX)),
    "pt2": Target("pt2", run_python(PT2)),
    "web": Target("web", run_web),
    "cpp": Target("cpp", run_cpp),
    "libtorch": Target("libtorch", run_libtorch),
    "executorch": Target("executorch", run_python(EXECUTORCH)),
    "tvm": Target("cpp", run_python(TVM)),
}


def write(subject: Subject, to: str, folder: Path, args: argparse.Namespace) -> None:
    """Write the folder of a model, with facts on its sample for the programs here."""
    shapes = subject.model.input_shapes
    if to == "pt2":
        folder.mkdir()
        mx.convert.convert(subject.model, folder / "model.pt2", shapes, inputs=[subject.inputs])
    else:
        runtime = args.web if to == "web" else None
        mx.convert.deploy(
            subject.model, to, folder, shapes, inputs=[subject.inputs], runtime=runtime
        )
    sample = Sample.of(subject.model, [subject.inputs])
    if not (folder / "sample").exists():
        sample.write_bytes(folder / "sample")
    arrays = {"input": list(sample.inputs.values()), "output": sample.outputs}
    facts = {k: [(a.shape, a.dtype.name) for a in v] for k, v in arrays.items()}
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")


def measure(
    subject: Subject, names: Sequence[str], args: argparse.Namespace
) -> Iterator[tuple[str, Result | Exception]]:
    """Write a folder once and run it at all targets that take it; give what each shows."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "deployed"
        try:
            write(subject, TARGETS[names[0]].folder, folder, args)
        except Exception as error:
            yield from ((name, error) for name in names)
            return
        size = sum(f.stat().st_size for f in folder.glob("model.*") if f.suffix != ".json")
        for name in names:
            try:
                said = TARGETS[name].run(folder, args)
                yield name, read_answer(subject, said, size)
            except Exception as error:
                yield name, error


def read_answer(subject: Subject, said: str, size: int) -> Result:
    """Return what a program said, if that is right."""
    error = re.search(r"largest relative error ([-+.e\d]+)", said)
    spent = re.search(r"([.\d]+) ms", said)
    if not error or not spent:
        raise RuntimeError(said[-300:])
    result = Result(float(error[1]), float(spent[1]), size)
    if not result.error <= TOLERANCE:
        raise RuntimeError(f"differs by {result.error:.1e}")
    _check_decisions(subject, result.error)
    return result


def _check_decisions(subject: Subject, error: float) -> None:
    """Check that no answer of an 8-bit model can have another largest score than here."""
    if "int8" not in subject.model.name:
        return
    scores = subject.model.run(subject.inputs)[0]  # by the compiled layers, as users run it
    written = subject.model.run_as_written(subject.inputs)[0]
    if (scores.argmax(1) != written.argmax(1)).any():
        raise RuntimeError("8-bit layers choose another class here than as they are written")
    first, second = np.sort(written, 1)[:, :-3:-1].T
    if (first - second).min() <= 2 * error * abs(written).max():
        raise RuntimeError("another class may be chosen")


# -- the page -----------------------------------------------------------------------------------

Cells = dict[tuple[str, str], str]


def read_tables(text: str) -> Cells:
    """Return the cells of all tables, by the first cell of the row and the heading."""
    cells: Cells = {}
    heading: list[str] = []
    for line in text.splitlines():
        row = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            heading = []
        elif not heading:
            heading = row
        elif row[0] in MODELS:
            cells |= {(row[0], h): c for h, c in zip(heading[1:], row[1:], strict=True) if c}
    return cells


def write_table(first: str, columns: Sequence[str], cells: Cells) -> str:
    """Return a table of models."""
    lines = [f"| {first} | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    for model in MODELS:
        row = [cells.get((model, column), "") for column in columns]
        lines.append(f"| {model} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def write_cells(new: Cells) -> None:
    """Write cells into the page, whose others stay."""
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(BEGIN)
    cells = read_tables(page) | new
    tables = write_table("largest relative error, time", list(TARGETS), cells)
    tables += "\n" + write_table("size", list(SIZES.values()), cells)
    PAGE.write_text(f"{head}{BEGIN}{tables}{END}{rest.partition(END)[2]}", encoding="utf-8")


def main() -> None:
    """Measure what is chosen and write the page after each cell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--targets", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--onnxruntime", default="/opt/onnxruntime", help="its C++ package")
    parser.add_argument("--web", default="/opt/onnxruntime-web", help="the package of npm")
    parser.add_argument("--missing", action="store_true", help="only cells that are empty")
    args = parser.parse_args()
    for model in args.models:
        cells = read_tables(PAGE.read_text(encoding="utf-8"))
        chosen = [t for t in args.targets if not (args.missing and cells.get((model, t)))]
        groups: dict[str, list[str]] = {}
        for name in chosen:
            groups.setdefault(TARGETS[name].folder, []).append(name)
        subject = MODELS[model]() if chosen else None
        for names in groups.values():
            assert subject is not None
            for name, result in measure(subject, names, args):
                record(model, name, result)


def record(model: str, name: str, result: Result | Exception) -> None:
    """Write one result into the page, or say why there is none."""
    if isinstance(result, Exception):
        reason = (str(result).strip() or type(result).__name__).splitlines()[0][:300]
        print(f"{model} at {name}: {reason}", file=sys.stderr, flush=True)
        write_cells({(model, name): "–"})
        return
    print(f"{model} at {name}: {result}", file=sys.stderr, flush=True)
    size = {(model, SIZES[name]): f"{result.bytes / 1e6:.2f} MB"} if name in SIZES else {}
    write_cells({(model, name): str(result), **size})


if __name__ == "__main__":
    main()
