"""`mx serve` answers as the model does, in batches, and says what is wrong with all else."""

from __future__ import annotations

import http.client
import io
import json
import signal
import socket
import subprocess
import sys
import threading
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnext_cli import main
from mxnext_cli.models import Predictor, load_model
from mxnext_cli.predict import Preparation
from mxnext_cli.serve.batching import (
    Batcher,
    Counter,
    Histogram,
    Metrics,
    QueueFull,
    Stopping,
    WorkerDied,
)

pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
testclient = pytest.importorskip("starlette.testclient")
service = pytest.importorskip("mxnext_cli.serve.service")
NPY, NPZ = service.NPY, service.NPZ

ROOT = Path(__file__).parents[2]
DENSE = str(ROOT / "tests/golden/gluon/dense")
LIMIT = 60


def npy(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def expected(rows):
    net = mx.gluon.SymbolBlock.imports(f"{DENSE}-symbol.json", ["data"], f"{DENSE}-0000.params")
    return net(mx.nd.array(rows)).asnumpy()


class Client:
    """A server in this process, and its model's output name."""

    def __init__(self, settings=None, shapes=None, change=lambda predict: predict):
        model = load_model(Namespace(model=DENSE, epoch=None, params=None))
        predictor = Predictor(model)
        settings = settings or service.Settings(max_body=4096)
        decoder = service.Decoder(model.inputs, shapes or {}, Preparation(), settings.max_body)
        self.name = predictor.output_names[0]
        self.service = service.Service(
            change(predictor), predictor.output_names, decoder, {}, settings
        )
        self.http = testclient.TestClient(self.service.app)

    def __enter__(self):
        self.http.__enter__()
        return self

    def __exit__(self, *error):
        self.http.__exit__(*error)

    def post(self, content, kind="application/json", **headers):
        content = json.dumps(content).encode() if isinstance(content, dict) else content
        return self.http.post(
            "/predict", content=content, headers={"content-type": kind, **headers}
        )


@pytest.fixture
def client():
    with Client(shapes={"data": (5,)}) as client:
        yield client


ROWS = np.arange(10, dtype=np.float32).reshape(2, 5) / 7


@pytest.mark.parametrize(
    "content, kind",
    [
        ({"inputs": {"data": ROWS.tolist()}}, "application/json"),
        ({"inputs": ROWS.tolist()}, "application/x-www-form-urlencoded"),  # what curl -d says
        (npy(ROWS), NPY),
        (npy(ROWS.astype(np.float64)), "application/octet-stream"),
    ],
)
def test_bodies(client, content, kind):
    answer = client.post(content, kind)
    assert answer.status_code == 200, answer.text
    np.testing.assert_allclose(answer.json()["outputs"][client.name], expected(ROWS), rtol=1e-5)


def test_archives_of_several_inputs(client):
    file = io.BytesIO()
    np.savez(file, data=ROWS)
    answer = client.post(file.getvalue(), NPZ, accept=NPZ)
    with np.load(io.BytesIO(answer.content)) as out:
        np.testing.assert_allclose(out[client.name], expected(ROWS), rtol=1e-5)


def test_binary_answers(client):
    answer = client.post(npy(ROWS[0]), NPY, accept=NPY)
    assert answer.headers["content-type"] == NPY
    np.testing.assert_allclose(np.load(io.BytesIO(answer.content)), expected(ROWS[:1]), rtol=1e-5)


def test_values_that_json_lacks_become_null(client):
    rows = np.full((1, 5), np.nan, np.float32)
    assert client.post(npy(rows), NPY).json() == {"outputs": {client.name: [[None, None]]}}


@pytest.mark.parametrize(
    "content, kind, code, said",
    [
        (b"", "", 400, "empty"),
        (b"hello", "", 400, "neither JSON"),
        (b"{" * 5000 + b"", "", 413, "larger than 4096"),
        (b"[" * 4000, "", 400, "neither JSON"),
        ({"inputs": 3}, "", 400, '"inputs"'),
        ({"inputs": {}}, "", 400, "1 or more: none"),
        ({"inputs": {"zz": [1]}}, "", 400, "no input 'zz'"),
        ({"inputs": {"data": [[1, 2], [3]]}}, "", 400, "different lengths"),
        ({"inputs": {"data": [["a"] * 5]}}, "", 400, "not numbers"),
        ({"inputs": {"data": [[1, 2, 3]]}}, "", 400, "a sample has shape (5,)"),
        ({"inputs": {"data": []}}, "", 400, "a sample has shape"),
        (b"\x93NUMPY\x01", NPY, 400, "not an .npy array"),
        (b"PK\x03\x04zzz", NPZ, 400, "not an .npz"),
        (b"\xff\xd8\xff", "image/jpeg", 400, "the image"),
    ],
)
def test_malformed_bodies(client, content, kind, code, said):
    answer = client.post(content, kind)
    assert (answer.status_code, said in answer.json()["error"]) == (code, True), answer.text
    assert client.post(npy(ROWS), NPY).status_code == 200


def test_pickles_in_arrays_are_refused(client):
    file = io.BytesIO()
    np.save(file, np.array([{}], dtype=object), allow_pickle=True)
    assert client.post(file.getvalue(), NPY).status_code == 400


def test_archives_that_unpack_to_much_are_refused(client):
    file = io.BytesIO()
    np.savez_compressed(file, data=np.zeros((1000, 5), np.float32))
    assert len(file.getvalue()) < 4096
    answer = client.post(file.getvalue(), NPZ)
    assert "unpacks to" in answer.json()["error"]


def test_shapes_that_the_model_refuses():
    with Client() as client:
        answer = client.post(npy(np.zeros((1, 7), np.float32)), NPY)
        assert answer.status_code == 400
        assert "Shape inconsistent" in answer.json()["error"]


def test_other_methods_and_places(client):
    assert client.http.get("/predict").status_code == 405
    assert client.http.get("/nothing").status_code == 404
    assert client.http.get("/health").json() == {"status": "ok"}
    assert client.http.get("/model").status_code == 200


def test_metrics_count_requests_and_rows(client):
    client.post(npy(ROWS), NPY)
    client.post(b"x")
    text = client.http.get("/metrics").text
    assert 'mx_requests_total{code="200"} 1' in text
    assert 'mx_requests_total{code="400"} 1' in text
    assert "mx_rows_total 2" in text
    assert "mx_queue 0" in text


def test_a_worker_that_dies_answers_500_and_the_next_request_is_served():
    def fragile(predict):
        def run(inputs):
            if (inputs["data"] == 666).any():
                raise SystemExit
            return predict(inputs)

        return run

    with Client(change=fragile) as client:
        answer = client.post(npy(np.full((1, 5), 666, np.float32)), NPY)
        assert answer.status_code == 500
        assert "another one took over" in answer.json()["error"]
        assert client.post(npy(ROWS), NPY).status_code == 200
        assert "mx_worker_restarts_total 1" in client.http.get("/metrics").text


def test_slow_models_and_full_queues():
    may_run = threading.Event()

    def slow(predict):
        def run(inputs):
            assert may_run.wait(LIMIT)
            return predict(inputs)

        return run

    settings = service.Settings(timeout=0.2, max_queue=1, max_batch=1)
    with Client(settings, change=slow) as client:
        assert client.post(npy(ROWS), NPY).status_code == 504  # its worker still waits
        held = client.service.batcher.submit({"data": ROWS})
        answer = client.post(npy(ROWS), NPY)
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        may_run.set()
        assert len(held.result(LIMIT)) == 1
        assert client.post(npy(ROWS), NPY).status_code == 200


def test_threads_share_one_prepared_model():
    predictor = Predictor(load_model(Namespace(model=DENSE, epoch=None, params=None)))
    right = expected(ROWS)
    wrong = []

    def ask():
        for i in range(30):
            (out,) = predictor({"data": ROWS[: i % 2 + 1]})
            if not np.allclose(out, right[: i % 2 + 1], rtol=1e-5):
                wrong.append(out)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert wrong == []


def test_a_port_that_is_taken(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", DENSE, "--port", str(port)]) == 1
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err


def test_a_model_that_cannot_be_read(tmp_path, capsys):
    (tmp_path / "bad-symbol.json").write_text("{")
    (tmp_path / "bad-0000.params").write_bytes(b"")
    assert main(["serve", str(tmp_path / "bad")]) == 1
    assert len(capsys.readouterr().err.splitlines()) <= 3


@pytest.mark.slow
def test_sigterm_under_load_loses_no_answer():
    """Slow clients do not block others; on SIGTERM every request that was sent is answered."""
    command = [sys.executable, "-m", "mxnext_cli", "serve", DENSE, "--shape", "5", "--port", "0"]
    command += ["--timeout", "3", "--max-body", "1"]
    with subprocess.Popen(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        watch = threading.Timer(LIMIT, server.kill)  # a server that says nothing
        watch.start()
        try:
            port = int(server.stdout.readline().split("://")[1].split()[0].rpartition(":")[2])
            watch.cancel()
            _check_slow_client(port)
            answers, failures = _load(port, server)
            assert server.wait(LIMIT) == 0
            assert server.stdout.read().split()[-2:] == [str(len(answers) + 2), "requests"]
            assert server.stderr.read() == ""
        finally:
            watch.cancel()
            if server.poll() is None:
                server.kill()
    assert failures == []
    assert len(answers) > 20
    assert set(answers) <= {200, 503}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def _check_slow_client(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as slow:
        slow.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        fast = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        fast.request("POST", "/predict", npy(ROWS), {"content-type": NPY})
        assert fast.getresponse().status == 200
        fast.close()
        assert slow.recv(4096).startswith(b"HTTP/1.1 408")


def _load(port: int, server: subprocess.Popen) -> tuple[list[int], list[str]]:
    """Ask from several threads, stop the server midway, and return codes and lost answers."""
    answers: list[int] = []
    failures: list[str] = []
    body = npy(ROWS)

    def ask() -> None:
        for _ in range(10_000):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
            try:
                connection.connect()
                connection.request("POST", "/predict", body, {"content-type": NPY})
            except OSError:
                return  # it takes no more connections
            try:
                response = connection.getresponse()
                response.read()
                answers.append(response.status)
            except ConnectionResetError:
                return  # the connection was never accepted
            except (OSError, http.client.HTTPException) as error:
                failures.append(repr(error))
            finally:
                connection.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    while len(answers) < 40 and any(thread.is_alive() for thread in threads):
        threads[0].join(0.01)
    server.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(LIMIT)
    return answers, failures


class Model:
    """Doubles its input, and remembers its batches; it can be held back."""

    def __init__(self):
        self.batches = []
        self.may_run = threading.Event()
        self.may_run.set()
        self.started = threading.Semaphore(0)

    def __call__(self, inputs):
        self.started.release()
        assert self.may_run.wait(LIMIT)
        (value,) = inputs.values()
        self.batches.append(len(value))
        if (value == 13).any():
            raise ValueError("13 is bad luck")
        if (value == 666).any():
            raise SystemExit
        return [value * 2]


def row(number, width=2):
    return {"data": np.full((1, width), number, np.float32)}


def submit_behind(model, batcher, requests):
    """Submit a request, and others while it runs; return the futures of all."""
    model.may_run.clear()
    futures = [batcher.submit(row(0))]
    assert model.started.acquire(timeout=LIMIT)
    futures += [batcher.submit(request) for request in requests]
    model.may_run.set()
    return futures


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def make(model):
    batchers = []

    def make_batcher(**options):
        batchers.append(Batcher(model, **options))
        return batchers[-1]

    yield make_batcher
    model.may_run.set()
    for batcher in batchers:
        batcher.close(LIMIT)


def test_waiting_requests_become_one_batch(model, make):
    batcher = make(max_batch=8)
    futures = submit_behind(model, batcher, [row(i) for i in range(1, 7)])
    results = [f.result(LIMIT)[0] for f in futures]
    assert [r.tolist() for r in results] == [[[2.0 * i] * 2] for i in range(7)]
    assert model.batches == [1, 6]


def test_batches_have_a_limit(model, make):
    batcher = make(max_batch=2)
    futures = submit_behind(model, batcher, [row(i) for i in range(5)])
    assert [len(f.result(LIMIT)[0]) for f in futures] == [1] * 6
    assert max(model.batches) == 2


def test_other_shapes_are_not_joined(model, make):
    batcher = make(max_batch=8)
    futures = submit_behind(model, batcher, [row(1, width=w) for w in (2, 3, 2, 3)])
    assert [f.result(LIMIT)[0].shape[1] for f in futures] == [2, 2, 3, 2, 3]
    assert sorted(model.batches) == [1, 2, 2]


def test_a_lone_request_does_not_wait(model, make):
    batcher = make(max_delay=LIMIT * 10, arriving=lambda: 0)
    assert batcher.submit(row(1)).result(LIMIT)[0].tolist() == [[2, 2]]


def test_a_request_waits_for_one_that_arrives(model, make):
    batcher = make(max_batch=2, max_delay=LIMIT * 10, arriving=lambda: 1)
    futures = [batcher.submit(row(i)) for i in (1, 2)]
    assert [f.result(LIMIT)[0][0, 0] for f in futures] == [2, 4]
    assert model.batches == [2]


def test_a_bad_request_fails_alone(model, make):
    batcher = make(max_batch=8)
    futures = submit_behind(model, batcher, [row(i) for i in (1, 13, 2)])
    assert futures[1].result(LIMIT)[0][0, 0] == 2
    assert futures[3].result(LIMIT)[0][0, 0] == 4
    with pytest.raises(ValueError, match="bad luck"):
        futures[2].result(LIMIT)


def test_a_worker_that_dies_is_replaced(make):
    metrics = Metrics()
    batcher = make(metrics=metrics, workers=2)
    with pytest.raises(WorkerDied):
        batcher.submit(row(666)).result(LIMIT)
    assert batcher.submit(row(1)).result(LIMIT)[0][0, 0] == 2
    assert metrics.restarts.value() == 1
    assert batcher.workers == 2


def test_the_queue_has_a_limit(model, make):
    batcher = make(max_queue=2, max_batch=1)
    model.may_run.clear()
    futures = [batcher.submit(row(0))]
    assert model.started.acquire(timeout=LIMIT)
    futures += [batcher.submit(row(i)) for i in (1, 2)]
    with pytest.raises(QueueFull):
        batcher.submit(row(3))
    model.may_run.set()
    assert len([f.result(LIMIT) for f in futures]) == 3


def test_canceled_requests_are_not_run(model, make):
    batcher = make(max_batch=1)
    model.may_run.clear()
    first = batcher.submit(row(0))
    assert model.started.acquire(timeout=LIMIT)
    canceled = batcher.submit(row(1))
    assert canceled.cancel()
    model.may_run.set()
    first.result(LIMIT)
    batcher.submit(row(2)).result(LIMIT)
    assert model.batches == [1, 1]


def test_closing_finishes_what_waits(model, make):
    batcher = make(max_batch=1)
    model.may_run.clear()
    futures = [batcher.submit(row(i)) for i in range(5)]
    closing = threading.Thread(target=batcher.close, args=(LIMIT,))
    closing.start()
    model.may_run.set()
    closing.join(LIMIT)
    assert [f.result(0)[0][0, 0] for f in futures] == [0, 2, 4, 6, 8]
    with pytest.raises(Stopping):
        batcher.submit(row(1))
    assert batcher.workers == 0


def test_many_threads_get_their_own_answers(model, make):
    batcher = make(max_batch=16, workers=2)
    wrong = []

    def ask(start):
        for i in range(start, start + 50):
            if batcher.submit(row(i + 1000)).result(LIMIT)[0][0, 0] != 2 * (i + 1000):
                wrong.append(i)

    threads = [threading.Thread(target=ask, args=(i * 50,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT * 3)
    assert wrong == []
    assert sum(model.batches) == 400


def test_text_of_metrics():
    counter = Counter("c", "Counts.", "code")
    counter.add(label="200")
    assert counter.lines()[-1] == 'c{code="200"} 1'
    histogram = Histogram("h", "Values.", (1, 2))
    for value in (0.5, 2, 7):
        histogram.observe(value)
    assert histogram.lines()[2:] == [
        'h_bucket{le="1"} 1',
        'h_bucket{le="2"} 2',
        'h_bucket{le="+Inf"} 3',
        "h_sum 9.5",
        "h_count 3",
    ]
