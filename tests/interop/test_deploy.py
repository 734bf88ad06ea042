"""Deployed models run without MXNext, in a browser and in C and C++ programs."""

from __future__ import annotations

import base64
import functools
import http.server
import importlib.util
import json
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import nn
from mxnext_cli import main

pytest.importorskip("onnx")

LIMIT = 120  # seconds
SHAPE = (1, 3, 12, 12)


def first_folder(*candidates: str | None) -> Path | None:
    return next((Path(c) for c in candidates if c and Path(c).is_dir()), None)


WEB = first_folder(os.environ.get("ONNXRUNTIME_WEB"), "/opt/onnxruntime-web")
CXX = first_folder(os.environ.get("ONNXRUNTIME"), "/opt/onnxruntime")
needs_web = pytest.mark.skipif(
    WEB is None or shutil.which("chromium") is None, reason="needs Chromium and onnxruntime-web"
)
needs_cxx = pytest.mark.skipif(
    CXX is None or shutil.which("g++") is None, reason="needs g++ and ONNX Runtime's C++ package"
)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory) -> str:
    """Return the prefix of a model with an image and integers as inputs, and two outputs."""

    class Net(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.features = nn.HybridSequential()
            self.features.add(nn.Conv2D(4, 3, in_channels=3), nn.BatchNorm(), nn.GlobalAvgPool2D())
            self.words = nn.Embedding(5, 4)
            self.out = nn.Dense(3)

        def hybrid_forward(self, F, image, word):
            x = F.flatten(self.features(image)) + self.words(word)
            return self.out(x), F.softmax(x)

    mx.random.seed(0)
    net = Net()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(mx.nd.ones(SHAPE), mx.nd.ones((1,), dtype="int32"))
    path = str(tmp_path_factory.mktemp("model") / "net")
    net.export(path)
    return path


def convert(prefix: str, to: str, folder: Path, *options: str) -> int:
    shapes = ["--shape", "data0=1,3,12,12", "--shape", "data1=1"]
    return main(["convert", prefix, "--to", to, "-o", str(folder), *shapes, *options])


def largest_error(text: str) -> float:
    match = re.search(r"largest relative error ([-+.e\d]+)", text)
    assert match, text
    return float(match[1])


def test_web_site_contains_model_and_sample(prefix, tmp_path, capsys):
    assert convert(prefix, "web", tmp_path / "site") == 0
    assert "site" in capsys.readouterr().out
    facts = json.loads((tmp_path / "site/model.json").read_text())
    assert facts["name"] == "net"
    assert [i["shape"] for i in facts["inputs"]] == [list(SHAPE), [1]]
    assert re.fullmatch(r"https://.*@\d+\.\d+\.\d+/dist/", facts["runtime"])
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(tmp_path / "site/model.onnx"))
    feed = {
        i["name"]: np.frombuffer(base64.b64decode(data), i["dtype"]).reshape(i["shape"])
        for i, data in zip(facts["inputs"], facts["sample"]["inputs"], strict=True)
    }
    outputs = session.run(facts["outputs"], feed)
    for output, expected in zip(outputs, facts["sample"]["outputs"], strict=True):
        expected = np.frombuffer(base64.b64decode(expected), np.float32)
        np.testing.assert_allclose(output.reshape(-1), expected, rtol=1e-4, atol=1e-6)


def test_existing_folders_and_invalid_options_are_rejected(prefix, tmp_path, capsys):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/index.html").write_text("mine")
    assert convert(prefix, "web", tmp_path / "site") == 1
    assert "--force replaces" in capsys.readouterr().err
    assert (tmp_path / "site/index.html").read_text() == "mine"
    assert convert(prefix, "web", tmp_path / "site", "--force") == 0
    assert convert(prefix, "cpp", tmp_path / "program", "--runtime", "x") == 2
    capsys.readouterr()
    assert convert(prefix, "web", tmp_path / "other", "--runtime", str(tmp_path)) == 1
    assert "is not onnxruntime-web" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
    net = nn.Dense(2, in_units=3)
    net.initialize()
    with pytest.raises(mx.MXNetError, match=r"'webb' must be one of web, cpp.*Did you mean 'web'"):
        mx.convert.deploy(net, "webb", tmp_path / "x", shapes=[(1, 3)])
    with pytest.raises(mx.MXNetError, match="shapes is needed"):
        mx.convert.deploy(net, "web", tmp_path / "x")
    if importlib.util.find_spec("executorch") is None:
        with pytest.raises(mx.MXNetError, match="pip install executorch"):
            mx.convert.deploy(net, "executorch", tmp_path / "x", shapes=[(1, 3)])
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".deploy")]


@pytest.mark.slow
@needs_web
def test_browser_output_matches(prefix, tmp_path):
    site = tmp_path / "site"
    assert convert(prefix, "web", site, "--runtime", str(WEB)) == 0
    handler = functools.partial(QuietHandler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    switches = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
        "--disable-background-networking --disable-component-update --disable-sync "
        f"--user-data-dir={tmp_path}/profile --virtual-time-budget=60000 --dump-dom"
    ).split()
    address = f"http://127.0.0.1:{server.server_port}/index.html?check"
    try:
        command = ["chromium", *switches, address]
        page = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT).stdout
    finally:
        server.shutdown()
        server.server_close()
    assert largest_error(page) < 1e-5
    assert "image" not in page.partition('id="answer"')[2]


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {  # noqa: RUF012 (as its base has it)
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, *args):
        pass


OLD_PROGRAM = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "mxnet_predict.h"

static void* read_all(const char* path, int* size) {
  FILE* file = fopen(path, "rb");
  fseek(file, 0, SEEK_END);
  *size = (int)ftell(file);
  rewind(file);
  void* bytes = malloc(*size);
  if (fread(bytes, 1, *size, file) != (size_t)*size) exit(2);
  fclose(file);
  return bytes;
}

static void check(int code) {
  if (code) { printf("%s\n", MXGetLastError()); exit(1); }
}

int main(void) {
  int size, count;
  void* model = read_all("model.onnx", &size);
  const char* keys[] = {"data0", "data1"};
  const mx_uint starts[] = {0, 4, 5}, sizes[] = {1, 3, 12, 12, 1};
  PredictorHandle handle;
  check(MXPredCreate("{}", model, size, 1, 0, 2, keys, starts, sizes, &handle));
  float* image = read_all("sample/input0.bin", &count);
  check(MXPredSetInput(handle, "data0", image, count / 4));
  check(MXPredSetInput(handle, "data1", read_all("sample/input1.bin", &count), 1));
  check(MXPredForward(handle));
  mx_uint *shape, ndim;
  check(MXPredGetOutputShape(handle, 0, &shape, &ndim));
  printf("%u %u %u\n", ndim, shape[0], shape[1]);
  float output[3], *expected = read_all("sample/output0.bin", &count);
  check(MXPredGetOutput(handle, 0, output, 3));
  double worst = 0, largest = 1e-30;
  for (int i = 0; i < 3; ++i) {
    worst = fmax(worst, fabs(output[i] - expected[i]));
    largest = fmax(largest, fabs(expected[i]));
  }
  printf("largest relative error %.2e\n", worst / largest);
  const int code = MXPredSetInput(handle, "data2", image, 1);
  printf("%d %s\n", code, MXGetLastError());
  return MXPredFree(handle);
}
"""


@pytest.mark.slow
@needs_cxx
def test_c_and_cpp_program_outputs_match(prefix, tmp_path):
    folder = tmp_path / "program"
    assert convert(prefix, "cpp", folder) == 0
    include, library = f"-I{CXX}/include", f"{CXX}/lib/libonnxruntime.so"
    link = [library, f"-Wl,-rpath,{CXX}/lib"]
    (folder / "old.c").write_text(OLD_PROGRAM)
    compile_cxx = ["g++", "-std=c++17", "-Wall", "-Werror", include]
    shared = ["-shared", "-fPIC", "-o", "libmxnet_predict.so"]
    compile_c = ["gcc", "-Wall", "-Werror", "old.c", "-I.", "-L.", "-lmxnet_predict", "-lm"]
    commands = [
        [*compile_cxx, "main.cpp", *link, "-o", "predict"],
        [*compile_cxx, "mxnet_predict.cpp", *link, *shared],
        [*compile_c, "-Wl,-rpath,.", link[1], "-o", "old"],
    ]
    for command in commands:
        subprocess.run(command, cwd=folder, check=True, timeout=LIMIT)

    def run(*command: str) -> str:
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=True
        ).stdout

    assert largest_error(run("./predict", "--check")) < 1e-5
    said = run("./old")
    assert said.startswith("2 1 3\n")
    assert largest_error(said) < 1e-5
    assert "-1 the model has no input data2" in said
    (folder / "short.bin").write_bytes(b"1234")
    bad = subprocess.run(
        ["./predict", "short.bin"], cwd=folder, capture_output=True, text=True, timeout=LIMIT
    )
    assert bad.returncode == 1
    assert "data0 needs 1728 bytes, got 4" in bad.stderr
