"""Several models, their versions, loading them again, and the end of a server under load."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

from mxnet import nd, sym
from mxnext_cli import main

pytest.importorskip("prometheus_client")

from mxnext_cli.serve.limits import Limits
from mxnext_cli.serve.monitoring import Metrics
from mxnext_cli.serve.repository import Repository, find_sources

from .server import DENSE, LIMIT, NPY, npy, serving

ROW = np.ones((1, 3), np.float32)


def write_model(folder, factor: float) -> None:
    """Write a model that multiplies by a number, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    scale = sym.var("scale", shape=(1, 3))
    net = sym.broadcast_mul(sym.var("data"), scale, name="out")
    net.save(str(folder / "times-symbol.json"))
    nd.save(str(folder / "times-0000.params"), {"arg:scale": nd.full((1, 3), factor)})
    (folder / "serve.json").write_text('{"shape": {"data": [3]}}')


def factor_of(answer) -> float:
    ((row,),) = answer.json()["outputs"].values()
    assert len(set(row)) == 1
    return row[0]


def wait_for(condition, what: str) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


@pytest.mark.slow
def test_versions_in_folders(tmp_path):
    for version, factor in ((1, 10), (2, 20), (10, 100)):
        write_model(tmp_path / "times" / str(version), factor)
    with serving(str(tmp_path), "--versions=2", "--watch=0.1") as server:
        assert factor_of(server.post(npy(ROW), NPY)) == 100
        old = server.post({"instances": ROW.tolist()}, path="/v1/models/times/versions/2:predict")
        assert old.json() == {"predictions": [[20, 20, 20]]}
        assert server.get("/v2/models/times").json()["versions"] == ["10", "2"]
        assert server.get("/v2/models/times/versions/1").code == 404
        write_model(tmp_path / "times" / "11", 110)
        wait_for(lambda: factor_of(server.post(npy(ROW), NPY)) == 110, "version 11")
        assert server.get("/v2/models/times").json()["versions"] == ["11", "10"]
        write_model(tmp_path / "more", 3)
        wait_for(lambda: server.get("/v2/models/more").code == 200, "another model")
        assert factor_of(server.post(npy(ROW), NPY, "/predict/more")) == 3


@pytest.mark.slow
def test_reload_under_load_answers_each_request_by_one_version(tmp_path):
    """The version that an answer names is the one that computed it."""
    write_model(tmp_path, 1)
    with serving(f"times={tmp_path}", "--control", "--max-batch=8") as server:
        answers: list[tuple[str, float]] = []
        failures: list[str] = []
        stop = threading.Event()

        def ask() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT)
            while not stop.is_set():
                connection.request("POST", "/predict", npy(ROW), {"content-type": NPY})
                answer = connection.getresponse()
                content = answer.read()
                if answer.status != 200:
                    failures.append(content.decode())
                    return
                ((row,),) = json.loads(content)["outputs"].values()
                answers.append((answer.headers["mx-model-version"], row[0]))
            connection.close()

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for version in range(2, 6):
                write_model(tmp_path, version)
                loaded = server.post(b"", path="/v2/repository/models/times/load").json()
                assert loaded == {"loaded": [f"times version {version}"]}
                count = len(answers)
                wait_for(lambda count=count: len(answers) > count + 20 or failures, "answers")
        finally:
            stop.set()
            for thread in threads:
                thread.join(LIMIT)
        assert failures == []
        assert {float(version) for version, _ in answers} == {1, 2, 3, 4, 5}
        assert [pair for pair in answers if float(pair[0]) != pair[1]] == []
        assert "mx_reloads_total 4" in server.get("/metrics").content.decode()
        # A file that cannot be read changes nothing.
        (tmp_path / "times-0000.params").write_bytes(b"damaged")
        assert server.post(b"", path="/v2/repository/models/times/load").code == 409
        os.kill(server.process.pid, signal.SIGHUP)
        wait_for(lambda: "nothing was loaded" in server.log(), "the log")
        assert factor_of(server.post(npy(ROW), NPY)) == 5


def test_replaced_models_are_freed_with_their_threads(tmp_path):
    write_model(tmp_path, 1)
    repository = Repository([f"times={tmp_path}"], Limits(), Metrics())
    repository.load()
    replaced = weakref.ref(repository.models[0])

    async def ask(model) -> float:
        await model.batcher.run({"data": ROW})  # in a thread, as its time is not known yet
        return (await model.batcher.run({"data": ROW}))[0][0, 0]

    assert asyncio.run(ask(repository.models[0])) == 1
    write_model(tmp_path, 2)
    assert repository.load() == ["times version 2"]
    assert asyncio.run(ask(repository.models[0])) == 2
    assert replaced() is None
    names = "mx-serve-model"
    wait_for(lambda: sum(t.name.startswith(names) for t in threading.enumerate()) == 1, "the end")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="children are read from /proc")
def test_processes_share_an_address_and_are_replaced(tmp_path):
    write_model(tmp_path, 1)
    with serving(f"times={tmp_path}", "--workers=2") as server:
        for _ in range(10):
            assert factor_of(server.post(npy(ROW), NPY)) == 1
        count = 'mx_predictions_total{model="times"} 10'
        assert count in server.get("/metrics").content.decode()
        write_model(tmp_path, 2)
        os.kill(server.process.pid, signal.SIGHUP)
        wait_for(
            lambda: {factor_of(server.post(npy(ROW), NPY)) for _ in range(12)} == {2}, "version 2"
        )
        os.kill(_workers(server)[0], signal.SIGKILL)
        wait_for(lambda: "Unexpected exit from worker" in server.log(), "the log")
        wait_for(lambda: _answers(server), "an answer")
        os.kill(server.process.pid, signal.SIGTERM)
        assert "stopped; answered" in server.wait()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="several processes need POSIX")
def test_processes_that_cannot_load_their_model_end_the_server(tmp_path):
    command = [sys.executable, "-m", "mxnext_cli", "serve", f"a={tmp_path}/none", "--workers=2"]
    done = subprocess.run(
        [*command, "--port=0"], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no such file" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="several processes need POSIX")
def test_sigterm_to_all_processes_ends_the_server():
    with serving(DENSE, "--shape=5", "--workers=2") as server:
        wait_for(lambda: len(_workers(server)) == 2, "both processes")
        assert server.get("/health").code == 200
        for pid in (*_workers(server), server.process.pid):
            os.kill(pid, signal.SIGTERM)
        assert "stopped; answered 1 requests" in server.wait()


def _workers(server) -> list[int]:
    """Return the processes that answer; multiprocessing has another one for itself."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    pids = [int(pid) for pid in children.read_text().split()]
    return [p for p in pids if b"spawn_main" in Path(f"/proc/{p}/cmdline").read_bytes()]


def _answers(server) -> bool:
    try:
        return factor_of(server.post(npy(ROW), NPY)) == 2
    except (OSError, http.client.HTTPException):  # the request went to the process that died
        return False


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["no-such-model"], 1, "no such file"),
        (["a=" + DENSE, "a=" + DENSE], 2, "two models"),
        (["a/b=" + DENSE], 2, "letters, digits"),
        (["a=" + DENSE, "b=" + DENSE, "--shape", "5"], 2, "PREFIX-serve.json"),
        ([DENSE, "--shape", "5", "--device", "gpu(99)"], 1, "gpu(99)"),
        ([DENSE, "--shape", "5", "--device", "tpu"], 2, "cpu, gpu or gpu:1"),
    ],
)
def test_models_that_cannot_be_served(arguments, code, message, capsys):
    assert main(["serve", "--port", "0", *arguments]) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "serve.json"),
        ('{"shapes": {}}', "shapes"),
        ('{"shape": {"data": [0]}}', ">= 1"),
        ('{"preprocess": {"std": [0]}}', "cannot divide"),
        ('{"labels": "none.txt"}', "none.txt"),
    ],
)
def test_invalid_settings_are_reported(tmp_path, text, message, capsys):
    write_model(tmp_path, 1)
    (tmp_path / "serve.json").write_text(text)
    assert main(["serve", str(tmp_path), "--port", "0"]) != 0
    assert message in capsys.readouterr().err


def test_port_in_use_is_reported(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", DENSE, "--port", str(port)]) == 1
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_port_taken_while_models_are_loaded_is_reported(workers):
    """The server has looked whether the port is free, and says so if it is not any more."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        program = (
            "import sys, mxnext_cli, mxnext_cli.serve as serve\n"
            f"serve.find_address = lambda host, port: (host, {port})\n"
            f"sys.exit(mxnext_cli.main(['serve', {DENSE!r}, '--shape=5', '--workers={workers}']))"
        )
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.stderr


def test_a_model_that_cannot_be_read(tmp_path, capsys):
    (tmp_path / "bad-symbol.json").write_text("{")
    (tmp_path / "bad-0000.params").write_bytes(b"")
    assert main(["serve", str(tmp_path / "bad"), "--port", "0"]) == 1
    assert len(capsys.readouterr().err.splitlines()) <= 3


@pytest.mark.slow
def test_sigterm_under_load_loses_no_answer():
    with serving(DENSE, "--shape=5", "--timeout=10") as server:
        answers, failures = _load(server)
        text = server.wait()
        assert server.log() == ""
        assert text.split()[-2:] == [str(len(answers)), "requests"]
    assert failures == []
    assert len(answers) > 20
    assert set(answers) <= {200, 503}
    with pytest.raises(ConnectionRefusedError):
        server.connect()


@pytest.mark.slow
@pytest.mark.parametrize("rows", [2, 1000])  # shorter than what is read ahead, and longer
def test_sigterm_waits_for_requests_that_are_being_received(rows):
    body = npy(np.ones((rows, 5), np.float32))
    head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NPY}\r\n"
    head += f"Accept: {NPY}\r\nContent-Length: {len(body)}\r\n\r\n"
    with serving(DENSE, "--shape=5", "--timeout=60") as server:
        sockets = [server.connect() for _ in range(5)]
        for sock in sockets:
            sock.sendall(head.encode() + body[:-20])
        wait_for(lambda: _active_requests(server) > len(sockets), "the requests")
        os.kill(server.process.pid, signal.SIGTERM)
        wait_for(lambda: not _takes_connections(server), "the end of listening")
        time.sleep(0.5)  # connections are asked to end after that
        for sock in sockets:
            sock.sendall(body[-20:])
        answers = [_read_all(sock) for sock in sockets]
        assert "answered" in server.wait()
    assert [answer[:15] for answer in answers] == [b"HTTP/1.1 200 OK"] * 5
    assert [answer.count(b"connection: close") for answer in answers] == [1] * 5


def _active_requests(server) -> float:
    """Return how many requests are received or answered, with the one that asks."""
    text = server.get("/metrics").content.decode()
    return float(text.partition("\nmx_active_requests ")[2].split()[0])


def _takes_connections(server) -> bool:
    try:
        server.connect().close()
    except OSError:
        return False
    return True


def _read_all(sock: socket.socket) -> bytes:
    received = b""
    with sock:
        while chunk := sock.recv(65536):
            received += chunk
    return received


def _load(server) -> tuple[list[int], list[str]]:
    """Ask from several threads, stop the server midway, and return codes and lost answers."""
    answers: list[int] = []
    failures: list[str] = []
    body = npy(np.ones((2, 5), np.float32))

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT)
        for number in range(10_000):
            try:
                connection.connect()
            except OSError:
                return  # the server takes no more connections
            is_accepted = False
            try:
                while True:
                    connection.request("POST", "/predict", body, {"content-type": NPY})
                    response = connection.getresponse()
                    response.read()
                    answers.append(response.status)
                    is_accepted = True
                    if response.will_close or number % 3 == 0:
                        break
            except ConnectionError as error:
                if is_accepted:
                    failures.append(repr(error))
                return  # the system queued the connection, but the server had stopped accepting
            except (OSError, http.client.HTTPException) as error:
                failures.append(repr(error))
            finally:
                connection.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(answers) > 60 or failures, "answers")
    os.kill(server.process.pid, signal.SIGTERM)
    for thread in threads:
        thread.join(LIMIT)
    return answers, failures


def test_prefixes_are_preferred_to_folders_of_the_same_name(tmp_path):
    (tmp_path / "shapes").mkdir()
    symbol_file = tmp_path / "shapes-symbol.json"
    symbol_file.touch()
    assert find_sources([str(tmp_path / "shapes")]) == {"shapes": symbol_file}
    assert find_sources([f"mine={tmp_path / 'shapes'}"]) == {"mine": symbol_file}
