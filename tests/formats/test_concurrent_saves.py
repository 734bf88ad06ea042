"""Concurrent saves of threads and processes to one file are atomic."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.formats import atomic
from mxnet.formats.atomic import AtomicFile, UnwritableFile, one_commit, replacing

THREADS, SAVES = 8, 25
LIMIT = 300  # seconds


def run_threads(work):
    """Call `work` with a number in several threads at once; return all errors."""
    start, errors = threading.Barrier(THREADS), []

    def run(number):
        start.wait(LIMIT)
        try:
            for _ in range(SAVES):
                work(number)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive()
    return errors


@pytest.fixture(autouse=True)
def fast_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("name", ["x.params", "x.safetensors"])
def test_concurrent_saves_of_threads_leave_one_complete_file(tmp_path, name):
    arrays = [{"w": mx.nd.full((64,), n)} for n in range(THREADS)]
    assert run_threads(lambda n: mx.nd.save(str(tmp_path / name), arrays[n])) == []
    assert [path.name for path in tmp_path.iterdir()] == [name]
    values = np.unique(mx.nd.load(str(tmp_path / name))["w"].asnumpy())
    assert len(values) == 1 and values[0] in range(THREADS)


def test_concurrent_saves_and_loads_of_threads(tmp_path):
    path = str(tmp_path / "x.params")
    arrays = [[mx.nd.full((64,), n)] for n in range(THREADS)]
    mx.nd.save(path, arrays[0])

    def work(number):
        if number % 2:
            mx.nd.save(path, arrays[number])
        else:
            assert len(np.unique(mx.nd.load(path)[0].asnumpy())) == 1

    assert run_threads(work) == []


def test_files_of_two_commits_are_not_mixed(tmp_path):
    names = ("a.json", "b.params", "c.states")

    def work(number):
        with one_commit():
            for name in names:
                with replacing(tmp_path / name) as file:
                    file.write(b"%d" % number)

    assert run_threads(work) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert len({(tmp_path / name).read_bytes() for name in names}) == 1


PROGRAM = """
import sys
import mxnet as mx
array = mx.nd.full((64,), int(sys.argv[2]))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(60):
    mx.nd.save(sys.argv[1], [array])
"""


def test_concurrent_saves_of_processes(tmp_path):
    path = str(tmp_path / "x.params")
    children = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, path, str(number)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(3)
    ]  # fmt: skip
    try:
        for child in children:
            assert child.stdout.readline() == "ready\n"
        for child in children:
            child.stdin.write("\n")
            child.stdin.flush()
        for child in children:
            _, errors = child.communicate(timeout=LIMIT)
            assert child.returncode == 0, errors
    finally:
        for child in children:
            child.kill()
    assert [each.name for each in tmp_path.iterdir()] == ["x.params"]


def test_temporary_names_are_unique(tmp_path):
    names = [[] for _ in range(THREADS)]
    assert run_threads(lambda n: names[n].append(atomic.part_path(tmp_path / "x"))) == []
    assert len({path for each in names for path in each}) == THREADS * SAVES


@pytest.mark.skipif(atomic.fcntl is None, reason="leftovers are not removed without locks")
def test_temporary_file_removed_before_locking_is_recreated(tmp_path, monkeypatch):
    target, seen = tmp_path / "x", []
    lock = atomic._lock

    def remove_first(handle):
        if not seen:
            atomic.remove_leftovers(target)  # as another writer would at this moment
        seen.append(list(tmp_path.iterdir()))
        return lock(handle)

    monkeypatch.setattr(atomic, "_lock", remove_first)
    with replacing(target) as file:
        file.write(b"content")
    assert [len(paths) for paths in seen] == [0, 1]
    assert target.read_bytes() == b"content" and list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(atomic.fcntl is None, reason="leftovers are not removed without locks")
def test_repeatedly_removed_temporary_file_raises(tmp_path, monkeypatch):
    target = tmp_path / "x"
    monkeypatch.setattr(atomic, "_lock", lambda handle: atomic.remove_leftovers(target))
    with pytest.raises(UnwritableFile, match="removed again"):
        AtomicFile(target)
    assert list(tmp_path.iterdir()) == []


def test_simultaneous_saves_leave_one_complete_file(tmp_path):
    path, errors = str(tmp_path / "shared.params"), []
    start = threading.Barrier(8)

    def save(number):
        start.wait(timeout=60)
        try:
            for _ in range(5):
                nd.save(path, {"x": nd.ones((16,)) * number})
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not errors
    actual = nd.load(path)["x"].asnumpy()
    assert actual.shape == (16,)
    assert len(set(actual.tolist())) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["shared.params"]
