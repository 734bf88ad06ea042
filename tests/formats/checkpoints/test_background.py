"""Background checkpoints contain the state at the time of the call."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.formats import atomic, params_file
from mxnet.formats.checkpoints import background
from tests.children import exit_code_of

LIMIT = 60  # seconds


@pytest.fixture(autouse=True)
def clean():
    """Wait for background writes, and clear their errors, after each test."""
    yield
    with contextlib.suppress(OSError):
        background.wait(LIMIT)


@pytest.fixture
def gate(monkeypatch):
    """Keep writes in the background from starting until the gate is set."""
    event, write = threading.Event(), params_file.write

    def write_later(*args, **kwargs):
        if threading.current_thread() is not threading.main_thread():
            assert event.wait(LIMIT)
        write(*args, **kwargs)

    monkeypatch.setattr(params_file, "write", write_later)
    yield event
    event.set()


def job():
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(5, activation="relu"), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(2))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "adam")
    metric = mx.metric.Loss()
    train(net, trainer, metric)
    return {"net": net, "trainer": trainer, "metric": metric}


def train(net, trainer, metric, steps=2):
    for _ in range(steps):
        with mx.autograd.record():
            loss = (net(mx.nd.random.normal(shape=(4, 3))) ** 2).mean()
        loss.backward()
        trainer.step(4)
        metric.update(None, loss)


def content(net, trainer, metric):
    weights = [p.data().asnumpy() for p in net.collect_params().values()]
    states = [
        s.asnumpy() for pair in trainer._updaters[0].states.values() for s in pair if s is not None
    ]
    return [*weights, *states, np.array(metric.get()[1]), np.array(trainer._optimizer.num_update)]


def assert_equal(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_background_checkpoint_contains_the_state_at_the_call(tmp_path, gate):
    parts = job()
    extra = {"list": [1], "array": np.zeros(3), "bytes": b"a"}
    before = content(**parts)
    path = mx.checkpoint.save(tmp_path, 1, **parts, extra=extra, wait=False)
    assert not path.exists()
    train(**parts)
    for array in parts["net"].collect_params().values():
        array.data()[:] = 7  # also a write in place
    extra["list"].append(2)
    extra["array"][:] = 9
    gate.set()
    mx.checkpoint.wait()
    restored = job()
    checkpoint = mx.checkpoint.load(path, **restored)
    assert_equal(content(**restored), before)
    assert checkpoint.extra["list"] == [1] and not checkpoint.extra["array"].any()


def test_background_and_blocking_saves_write_equal_files(tmp_path):
    parts = job()
    here = mx.checkpoint.save(tmp_path / "a", 1, **parts)
    there = mx.checkpoint.save(tmp_path / "b", 1, **parts, wait=False)
    mx.checkpoint.wait()
    assert here.read_bytes() == there.read_bytes()


def test_background_saves_are_written_sequentially_in_order(tmp_path, monkeypatch):
    running, order, write = [0], [], params_file.write

    def counted(path, *args, **kwargs):
        running[0] += 1
        assert running[0] == 1
        threading.Event().wait(0.02)
        write(path, *args, **kwargs)
        order.append(path.name)
        running[0] -= 1

    monkeypatch.setattr(params_file, "write", counted)
    for step in range(5):
        mx.checkpoint.save(tmp_path, step, extra=step, keep=2, wait=step == 3)
    assert mx.checkpoint.load(tmp_path).step == 4  # it waits for the file
    assert order == [f"checkpoint-{step:08d}.params" for step in range(5)]
    assert sorted(path.name for path in tmp_path.iterdir()) == order[-2:]


def test_wait_times_out(tmp_path, gate):
    mx.checkpoint.wait(0)  # nothing to wait for
    path = mx.checkpoint.save(tmp_path, 1, wait=False)
    with pytest.raises(MXNetError, match=r"checkpoint-00000001.* is not written after 0\.01"):
        mx.checkpoint.wait(0.01)
    gate.set()
    mx.checkpoint.wait()
    assert path.exists()


@pytest.mark.parametrize("where", ["wait", "save", "load"])
def test_full_disk_raises_once_and_keeps_the_old_file(tmp_path, where):
    mx.checkpoint.save(tmp_path, 1, extra=1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        mx.checkpoint.save(tmp_path, 2, extra=np.ones(50_000), wait=False)
        background._current.join(LIMIT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    calls = {
        "wait": mx.checkpoint.wait,
        "save": lambda: mx.checkpoint.save(tmp_path, 3),
        "load": lambda: mx.checkpoint.load(tmp_path),
    }
    with pytest.raises(MXNetError, match=r"Cannot write .*checkpoint-00000002.*File too large"):
        calls[where]()
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-00000001.params"]
    mx.checkpoint.wait()
    mx.checkpoint.save(tmp_path, 4, extra=4, wait=False)
    assert mx.checkpoint.load(tmp_path).extra == 4


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("setting", ["1", "0"])
def test_kill_during_save_leaves_the_previous_checkpoint(tmp_path, monkeypatch, setting):
    monkeypatch.setenv("MXNET_SYNC_FILES", setting)
    mx.checkpoint.save(tmp_path, 1, extra="whole")
    child = os.fork()
    if child == 0:
        atomic.AtomicFile.commit = lambda file: os.kill(os.getpid(), signal.SIGKILL)
        mx.checkpoint.save(tmp_path, 2, extra="lost", wait=False)
        threading.Event().wait(LIMIT)
        os._exit(0)
    assert exit_code_of(child) == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2  # the part that was written
    assert mx.checkpoint.load(tmp_path).extra == "whole"
    mx.checkpoint.save(tmp_path, 2, extra="new", wait=False)
    assert mx.checkpoint.load(tmp_path).extra == "new"
    assert len(list(tmp_path.iterdir())) == 2  # and it is removed


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_does_not_wait_for_saves_of_its_parent(tmp_path, gate):
    path = mx.checkpoint.save(tmp_path, 1, extra="parent", wait=False)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            mx.checkpoint.wait(1)
            mx.checkpoint.save(tmp_path / "child", 1, extra="child")
            code = 0
        finally:
            os._exit(code)
    assert exit_code_of(child) == 0 and not path.exists()
    gate.set()
    assert mx.checkpoint.load(tmp_path).extra == "parent"
    assert mx.checkpoint.load(tmp_path / "child").extra == "child"


EXIT = """
import contextlib, sys, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import mxnet as mx
from mxnet.formats import atomic, params_file

atomic._Stream.STEP = 3000
write = params_file.write
pool = ThreadPoolExecutor(1)

def write_late(*args):
    with contextlib.suppress(RuntimeError):  # when the interpreter exits
        while True:
            pool.submit(int)
            time.sleep(0.001)
    write(*args)

params_file.write = write_late
mx.checkpoint.save(sys.argv[1], 1, extra=np.ones(100_000), wait=False)
"""


def test_process_exit_waits_for_background_saves(tmp_path):
    command = [sys.executable, "-c", EXIT, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=2 * LIMIT, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert mx.checkpoint.load(tmp_path).extra.sum() == 100_000


def test_background_save_error_at_exit_warns(tmp_path, monkeypatch):
    monkeypatch.setattr(params_file, "write", lambda *args: 1 / 0)
    mx.checkpoint.save(tmp_path, 1, wait=False)
    with pytest.warns(UserWarning, match=r"wait=False\) is missing: ZeroDivisionError"):
        background._finish_at_exit()
    mx.checkpoint.wait()
