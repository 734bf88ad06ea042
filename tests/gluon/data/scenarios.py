"""Failure scenarios of loaders, run by `test_dataloader` in subprocesses.

``python scenarios.py START_METHOD SECONDS NAME...`` prints how each scenario ended: its exit code,
or that it hangs. Scenarios joined by ``+`` run in one process, one after the other.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.gluon.data import ArrayDataset, DataLoader, Dataset


class Numbers(Dataset):
    """A dataset of indices, some of which cause a failure."""

    def __init__(self, length=20, trouble=None, at=5, wide=0):
        self.length, self.trouble, self.at, self.wide = length, trouble, at, wide

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if index == self.at and self.trouble is not None:
            self.trouble()
        return np.full(self.wide, index, "float32") if self.wide else index


class Peculiar(Exception):
    """An object whose pickle cannot be loaded."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def fail():
    raise ValueError("sample is bad")


def fail_peculiarly():
    raise Peculiar(1, 2)


def be_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def leave():
    os._exit(3)


def exit_politely():
    sys.exit(4)


def sleep_long():
    time.sleep(60)


def stop_iteration():
    raise StopIteration


def of(loader):
    return [int(x) for batch in loader for x in np.ravel(batch.asnumpy())]


def raised(kind, loader, *texts):
    try:
        of(loader)
    except kind as error:
        whole = f"{error}\n{error.__cause__}"
        for text in texts:
            assert text in whole, (text, whole)
        return error
    raise AssertionError(f"no {kind}")


def no_children():
    gc.collect()
    end = time.monotonic() + 10
    while multiprocessing.active_children():
        assert time.monotonic() < end, multiprocessing.active_children()
        time.sleep(0.01)


def alive(pid):
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return "State:\tZ" not in status


# -- the scenarios ---------------------------------------------------------------------------------


def all_arrive():
    for workers in (1, 2, 4) if multiprocessing.get_start_method() == "fork" else (2,):
        loader = DataLoader(Numbers(), 3, num_workers=workers)
        for _ in range(3):
            assert of(loader) == list(range(20))
    del loader
    no_children()


def few_workers():
    """Return 2, but 1 where every worker imports everything again."""
    return 1 if multiprocessing.get_start_method() == "spawn" else 2


def pools_are_there():
    """Old programs use `multiprocessing.pool` without importing it, because MXNet imports it."""
    assert multiprocessing.pool.Pool.__name__ == "Pool"


def large_batches():
    """Batches in shared memory keep their values, and are freed."""
    loader = DataLoader(Numbers(40, wide=30000), 4, num_workers=few_workers())
    kept = list(loader)
    for number, batch in enumerate(kept):
        assert batch.shape == (4, 30000)
        assert batch.context == mx.cpu(0)
        assert (batch.asnumpy()[:, 7] == np.arange(4) + 4 * number).all()
    kept[0][:] = 5  # it can be written to
    assert (kept[0] == 5).asnumpy().all()
    del loader
    no_children()
    assert (kept[1].asnumpy()[:, 0] == np.arange(4) + 4).all()  # and outlives the workers


def worker_raises():
    loader = DataLoader(Numbers(trouble=fail), 2, num_workers=few_workers())
    for _ in range(2):  # the workers keep running
        raised(ValueError, loader, "sample is bad", "in fail", "scenarios.py")
    del loader
    no_children()


def worker_raises_what_cannot_be_sent():
    raised(MXNetError, DataLoader(Numbers(trouble=fail_peculiarly), 2, num_workers=1), "Peculiar")
    raised(MXNetError, DataLoader(Numbers(trouble=exit_politely), 2, num_workers=1), "SystemExit")
    raised(RuntimeError, DataLoader(Numbers(trouble=stop_iteration), 2, num_workers=1))
    raised(
        Exception,
        DataLoader(Numbers(), 2, num_workers=1, batchify_fn=make_unsendable),
        "In a worker",
    )
    no_children()


def make_unsendable(samples):
    return threading.Lock()


def worker_is_killed():
    for trouble, text in ((be_killed, "SIGKILL"), (leave, "exit code 3")):
        loader = DataLoader(Numbers(trouble=trouble), 2, num_workers=2)
        start = time.monotonic()
        raised(MXNetError, loader, "ended unexpectedly", text)
        assert time.monotonic() - start < 40
        no_children()
        loader._dataset.trouble = None
        assert of(loader) == list(range(20))  # new workers, new data set
    loader = DataLoader(Numbers(), 2, num_workers=2)
    got = iter(loader)
    next(got)
    for process in multiprocessing.active_children():
        process.kill()
        process.join()
    try:
        list(got)
    except MXNetError as error:
        assert "SIGKILL" in str(error)
    else:
        raise AssertionError("nobody noticed")
    no_children()


def locks_are_lost():
    """A worker that exits while it holds all locks does not block other processes."""
    loader = DataLoader(Numbers(trouble=hold_locks), 2, num_workers=2)
    got = iter(loader)
    next(got)
    time.sleep(1)
    del loader, got
    no_children()
    loader = DataLoader(Numbers(trouble=hold_locks_and_be_killed), 2, num_workers=2)
    raised(MXNetError, loader, "SIGKILL")
    del loader
    no_children()


def hold_locks():
    time.sleep(0.5)  # what is done already is sent
    frame = sys._getframe()
    while "done_event" not in frame.f_locals:
        frame = frame.f_back
    for thing in frame.f_locals["done_event"], frame.f_locals["data_queue"]:
        for lock in ("_cond", "_wlock"):
            if hasattr(thing, lock):
                getattr(thing, lock).acquire()
    time.sleep(60)


def hold_locks_and_be_killed():
    threading.Timer(1, be_killed).start()
    hold_locks()


def consumer_breaks():
    loader = DataLoader(Numbers(200, wide=20000), 2, num_workers=2)
    for _ in range(5):
        for _batch in loader:
            break
    assert [int(b.asnumpy()[0, 0]) for b in loader] == list(range(0, 200, 2))
    waiting = iter(loader)
    next(waiting)
    del loader, waiting, _batch
    no_children()


def nested_loaders():
    same = DataLoader(Numbers(6), 2, num_workers=2)
    other = DataLoader(Numbers(4), 2, num_workers=1)
    seen = []
    for a in same:
        for b in same:
            for c in other:
                seen.append((int(a[0].asscalar()), int(b[0].asscalar()), int(c[0].asscalar())))
    assert seen == [(a, b, c) for a in (0, 2, 4) for b in (0, 2, 4) for c in (0, 2)]
    together = [
        (int(a[0].asscalar()), int(b[0].asscalar())) for a, b in zip(same, same, strict=True)
    ]
    assert together == [(0, 0), (2, 2), (4, 4)]
    raised(MXNetError, DataLoader(Inside(), 1, num_workers=1), "workers of its own")
    del same, other
    no_children()


class Inside(Numbers):
    def __getitem__(self, index):
        return next(iter(DataLoader([1, 2], 1, num_workers=1)))


def time_runs_out():
    for threads in (False, True):
        loader = DataLoader(
            Numbers(trouble=sleep_long), 2, num_workers=2, timeout=1, thread_pool=threads
        )
        start = time.monotonic()
        raised(multiprocessing.TimeoutError, loader, "timeout")
        assert time.monotonic() - start < 40
        del loader
        no_children()


def threads_share():
    loader = DataLoader(Numbers(200), 2, num_workers=2)
    results = [None] * 4

    def work(i, loader=loader):
        results[i] = of(loader)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [list(range(200))] * 4
    del loader, threads, work
    no_children()


def thread_pool():
    for workers in (1, 4):
        loader = DataLoader(Numbers(), 3, num_workers=workers, thread_pool=True)
        for _ in range(3):
            assert of(loader) == list(range(20))
        next(iter(loader))
        assert of(loader) == list(range(20))
        raised(
            ValueError, DataLoader(Numbers(trouble=fail), 2, num_workers=workers, thread_pool=True)
        )
    before = threading.active_count()
    del loader
    end = time.monotonic() + 10
    while threading.active_count() >= before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() < before


def parent_is_killed():
    """Workers, including busy ones, exit if their parent is killed."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    parent = multiprocessing.Process(target=become_parent, args=(writer,))
    parent.start()
    writer.close()
    workers = reader.recv()
    assert len(workers) == 2
    assert all(map(alive, workers))
    parent.kill()
    parent.join()
    end = time.monotonic() + 20
    while any(map(alive, workers)):
        assert time.monotonic() < end, "orphans"
        time.sleep(0.05)


def become_parent(writer):
    loader = DataLoader(Numbers(100, trouble=sleep_long, at=7), 1, num_workers=2, prefetch=20)
    got = iter(loader)
    next(got)
    writer.send([p.pid for p in multiprocessing.active_children()])
    time.sleep(60)


def python_ends():
    """A program can end within an epoch, with busy workers."""
    for threads in (False, True):
        loader = DataLoader(
            Numbers(100, trouble=sleep_long, at=7), 1, num_workers=2, thread_pool=threads
        )
        globals()["kept", threads] = got = iter(loader)
        for _ in range(5):
            next(got)


def random_repeats():
    def run(workers):
        mx.random.seed(11)
        data = Numbers(12)
        loader = DataLoader(Drawn(data), 3, shuffle=True, num_workers=workers)
        return [batch.asnumpy().tolist() for _ in range(2) for batch in loader]

    first = run(1)
    assert first == run(2)
    assert first == run(2)
    flat = [tuple(x) for batch in first for x in batch]
    assert len(set(flat)) == 24  # every sample drew numbers of its own
    mx.random.seed(12)
    loader = DataLoader(Drawn(Numbers(12)), 3, shuffle=True, num_workers=2)
    assert first != [batch.asnumpy().tolist() for _ in range(2) for batch in loader]


def opencv_has_threads():
    """Workers start after the program has used OpenCV with several threads."""
    import cv2

    cv2.setNumThreads(2)
    cv2.GaussianBlur(np.zeros((2000, 2000, 3), "uint8"), (5, 5), 0)
    assert sum(len(batch) for batch in DataLoader(Numbers(8), 4, num_workers=2)) == 8
    assert cv2.getNumThreads() == 2


class Drawn(Dataset):
    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        drawn = float(mx.nd.random.uniform().asscalar()), np.random.rand()  # noqa: NPY002 (users do)
        return np.array([self.data[index], *drawn])


def reloads():
    loader = DataLoader(Numbers(), 4, num_workers=2, auto_reload=True)
    assert loader._ahead is not None
    assert of(loader) == list(range(20))
    assert loader._ahead is not None
    loader.clean()
    assert loader._ahead is None
    loader.refresh()
    assert of(loader) == list(range(20))
    del loader
    no_children()


def many_kept():
    """Keeping more batches than the limit of open files does not exhaust file handles."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    kept = list(DataLoader(Numbers(400, wide=20000), 1, num_workers=2))
    assert [int(b.asnumpy()[0, 9]) for b in kept] == list(range(400))


def arrays_and_structures():
    loader = DataLoader(Numbers(4), 2, num_workers=1, batchify_fn=structure)
    batch = next(iter(loader))
    assert batch["text"] == "two"
    assert batch["list"][0].dtype == np.float16
    assert batch["list"][0].shape == (2, 40000)
    assert batch["empty"].shape == (0, 3)
    assert isinstance(batch["numpy"], np.ndarray)
    assert batch["numpy"].sum() == 40000
    assert str(batch["torch"].dtype) == "torch.bfloat16"
    assert batch["sparse"].stype == "csr"
    data = ArrayDataset(mx.nd.arange(8).reshape((4, 2)), mx.nd.arange(4))
    x, y = next(iter(DataLoader(data, 3, num_workers=1)))
    assert x.asnumpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    assert y.asnumpy().tolist() == [0, 1, 2]


def structure(samples):
    import torch

    return {
        "text": "two",
        "list": [mx.nd.ones((2, 40000), dtype="float16")],
        "empty": mx.nd.array(np.zeros((0, 3), "int32"), dtype="int32"),
        "numpy": np.ones(40000),
        "torch": torch.ones(3, dtype=torch.bfloat16),
        "sparse": mx.nd.sparse.csr_matrix(np.eye(3, dtype="float32")),
    }


def lambdas_are_sent():
    loader = DataLoader(Numbers(trouble=lambda: None), 2, num_workers=1)
    assert of(loader) == list(range(20))
    del loader
    no_children()


def unsendable_data():
    lock = threading.Lock()
    loader = DataLoader(Numbers(trouble=lambda: lock.locked()), 2, num_workers=1)
    if multiprocessing.get_start_method() == "fork":
        assert of(loader) == list(range(20))
    else:
        raised(MXNetError, loader, "thread_pool=True")
    del loader
    no_children()


def told_apart(names, limit):
    """Run scenarios in a child of this process; return its exit status."""
    sys.stdout.flush()
    folder = tempfile.mkdtemp()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        for name in names:
            globals()[name]()
        return "child"
    ending = ending_of(child, limit)
    left = sorted(path.name for path in Path(folder).iterdir())
    shutil.rmtree(folder)
    if left and ending == 0 and "parent_is_killed" not in names:
        return f"leaves {left}"
    return ending


def ending_of(child, limit):
    """Wait for a child to exit; kill it after a time limit."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"


def main(method, limit, names):
    multiprocessing.set_start_method(method)
    multiprocessing.set_forkserver_preload(["mxnet"])  # else every worker imports it
    gc.collect()
    gc.freeze()  # children collect only their own objects, not all of torch
    for name in names:
        start = time.monotonic()
        ending = told_apart(name.split("+"), float(limit))
        if ending == "child":  # and exit like any program
            return
        seconds = time.monotonic() - start
        sys.stdout.write(f"{name}: {ending} ({seconds:.1f} s)\n")
        sys.stderr.write(f"=== end of {name}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
