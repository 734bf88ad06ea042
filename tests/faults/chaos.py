"""Inject one fault into a small job at a random moment, and check that nothing is lost.

``python -m tests.faults.chaos --seeds 300`` prints every violation. A seed decides the job, the
fault, its moment and its victim. After each fault, these conditions are checked:

- every process ends within the limit, and no process or shared memory is left
- where training cannot continue, the error of every surviving process names the cause
- the newest checkpoint loads, and a second start ends with the weights of an uninterrupted run

The job that serves a model is in `serving`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from tests.faults import serving
from tests.parallel.workers import Ended, run_forked

STEPS, SAVE_EVERY, SIZE = 12, 3, 8
LIMIT = 120.0  # seconds for one start of a job
QUICK = {"MXNET_KVSTORE_HEARTBEAT": 8, "MXNET_KVSTORE_TIMEOUT": 20}
LINK_RATE = 1500  # bytes a second over a slow link
SHARED_MEMORY = Path("/dev/shm")


class Fault(NamedTuple):
    """What happens, when, to whom."""

    kind: str
    step: int
    rank: int


# What the error of a process must say, besides the signal that ended it; None: training goes on.
CAUSES: dict[str, str | None] = {
    "killed": "was killed, crashed or is frozen",
    "terminated": "was killed, crashed or is frozen",
    "paused": None,
    "slow": None,
    "slow link": None,
    "full disk": "Cannot write",
    "checkpoint removed": None,
    "nan batch": "NaN",
    "exception": "injected fault",
    "wrong shape": "hape",
    "loaded on one rank": "weights overwritten",
    "worker killed": "A worker process of the DataLoader ended unexpectedly",
    "worker raises": "injected fault",
    "second job": None,
}
EVERYWHERE = ("killed", "terminated", "paused", "full disk", "checkpoint removed", "nan batch")
EVERYWHERE += ("exception", "wrong shape", "second job")
JOBS: dict[str, tuple[int, tuple[str, ...]]] = {  # workers, and the faults that can happen
    "gluon": (2, (*EVERYWHERE, "slow", "slow link", "loaded on one rank")),
    "loader": (1, (*EVERYWHERE, "worker killed", "worker raises")),
    "module": (2, ("killed", "terminated", "paused", "slow", "slow link", "exception",
                   "wrong shape")),
    "serve": (1, tuple(serving.FAULTS)),
}  # fmt: skip


# -- jobs -----------------------------------------------------------------------------------------


class Samples:
    """A data set whose samples only depend on their index. One of them may inject a fault."""

    def __init__(self, folder: str, fault: Fault | None) -> None:
        self._folder, self._fault = folder, fault

    def __len__(self) -> int:
        return STEPS * SIZE

    def __getitem__(self, index: int) -> np.ndarray:
        note_process(self._folder)
        fault = self._fault
        if fault is not None and index // SIZE == fault.step:
            if fault.kind == "worker killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if fault.kind == "worker raises":
                raise ValueError("injected fault")
        return np.random.RandomState(index).rand(4).astype("float32")


def note_process(folder: str) -> None:
    """Leave the number of this process, by which its shared memory is known."""
    Path(folder, "processes", str(os.getpid())).touch()


def batches(
    name: str, folder: str, fault: Fault | None, rank: int, start: int
) -> Iterator[nd.NDArray]:
    """Yield the batches from a step on."""
    Path(folder, "processes").mkdir(exist_ok=True)
    samples = Samples(folder, fault)
    if name == "loader":
        order = list(range(start * SIZE, STEPS * SIZE))
        data = gluon.data.DataLoader(
            gluon.data.SimpleDataset(order).transform(samples.__getitem__),
            batch_size=SIZE,
            num_workers=2,
            timeout=30,
        )
        yield from data
        return
    for step in range(start, STEPS):
        rows = np.stack([samples[(step * SIZE + i + rank) % len(samples)] for i in range(SIZE)])
        yield nd.array(rows)


def train_gluon(name: str, folder: str, fault: Fault | None) -> None:
    """Train with Gluon, on one or several workers, from the latest checkpoint."""
    mx.random.seed(5)
    store = mx.kvstore.create("dist_sync") if name == "gluon" else None
    rank = 0 if store is None else store.rank
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(8, activation="tanh", in_units=4), gluon.nn.Dense(1, in_units=8))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    settings = {"learning_rate": 0.01}
    on_store = fault is not None and fault.kind == "loaded on one rank"
    trainer = gluon.Trainer(
        net.collect_params(), "adam", settings, kvstore=store, update_on_kvstore=on_store
    )
    saved = Path(folder, "checkpoints")
    found = mx.checkpoint.load(saved, net=net, trainer=trainer)
    start = 0 if found is None else found.step
    for step, data in enumerate(batches(name, folder, fault, rank, start), start):
        if fault is not None and (step, rank) == (fault.step, fault.rank):
            data = happen(fault, data, folder, net)
        with autograd.detect_anomaly():
            with autograd.record():
                loss = ((net(data) - data.sum(axis=1, keepdims=True)) ** 2).mean()
            loss.backward()
        trainer.step(1)
        if (step + 1) % SAVE_EVERY == 0:
            try:
                mx.checkpoint.save(saved, step + 1, net=net, trainer=trainer, keep=3)
            finally:
                limit_files(None)  # the error is written to a file, too
    if rank == 0:
        digest = hashlib.sha256()
        for parameter in net.collect_params().values():
            digest.update(parameter.data().asnumpy().tobytes())
        Path(folder, "final").write_text(digest.hexdigest())


def train_module(name: str, folder: str, fault: Fault | None) -> None:
    """Train by a Module on an asynchronous store."""
    net = mx.sym.LinearRegressionOutput(
        mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1), mx.sym.var("label"), name="out"
    )
    module = mx.mod.Module(net, label_names=["label"])
    module.bind([("data", (SIZE, 4))], [("label", (SIZE, 1))])
    module.init_params(mx.init.One())
    store = mx.kvstore.create("dist_async")
    module.init_optimizer(store, "sgd", {"learning_rate": 0.01})
    for step, data in enumerate(batches(name, folder, fault, store.rank, 0)):
        label = data.sum(axis=1, keepdims=True)
        if fault is not None and (step, store.rank) == (fault.step, fault.rank):
            data = happen(fault, data, folder, None)
        module.forward(mx.io.DataBatch([data], [label]), is_train=True)
        module.backward()
        module.update()
    Path(folder, f"final{store.rank}").write_text("done")


TRAINING: dict[str, Callable[[str, str, Fault | None], None]] = {
    "gluon": train_gluon,
    "loader": train_gluon,
    "module": train_module,
}


def happen(fault: Fault, data: nd.NDArray, folder: str, net: Any) -> nd.NDArray:
    """Let the fault happen in this process, and return the batch that training continues with."""
    kind = fault.kind
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "terminated":
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    elif kind == "paused":
        wake = f"import os, time; time.sleep(1); os.kill({os.getpid()}, {int(signal.SIGCONT)})"
        with subprocess.Popen([sys.executable, "-S", "-c", wake]) as waking:
            os.kill(os.getpid(), signal.SIGSTOP)
            waking.wait(LIMIT)
    elif kind == "slow":
        time.sleep(1.5)
    elif kind == "slow link":
        slow_links_down()
    elif kind == "full disk":
        limit_files(100)
    elif kind == "checkpoint removed":
        paths = Path(folder, "checkpoints").rglob("[!.]*")  # not those that are being written
        files = [path for path in paths if path.is_file()]
        for path in sorted(files)[-1:]:
            path.unlink(missing_ok=True)
    elif kind == "nan batch":
        return data * float("nan")
    elif kind == "exception":
        raise RuntimeError("injected fault")
    elif kind == "wrong shape":
        return nd.ones((SIZE, 5))
    elif kind == "loaded on one rank":
        net.load_parameters(save_parameters(folder))
    return data


def limit_files(size: int | None) -> None:
    """Limit the size of files that this process writes. None removes the limit."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


def slow_links_down() -> None:
    """Let each connection of this process send so slowly that a step takes a tenth of a second."""
    count = 0
    for number in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as link:
            if link.family in (socket.AF_INET, socket.AF_INET6) and link.type == socket.SOCK_STREAM:
                link.setsockopt(socket.SOL_SOCKET, serving.SO_MAX_PACING_RATE, LINK_RATE)
                count += 1
    assert count >= 2, "there are no links to other workers"


def save_parameters(folder: str) -> str:
    """Write parameters that another program might have trained."""
    path = str(Path(folder, "other.params"))
    other = gluon.nn.HybridSequential()
    other.add(gluon.nn.Dense(8, in_units=4), gluon.nn.Dense(1, in_units=8))
    other.initialize(mx.init.Zero())
    other.save_parameters(path)
    return path


# -- one seed -------------------------------------------------------------------------------------


def start(name: str, folder: str, fault: Fault | None) -> list[Ended]:
    """Run a job once, and return how its processes ended."""
    workers, _ = JOBS[name]
    return run_forked(TRAINING[name], workers, name, folder, fault, timeout=LIMIT, **QUICK)


def choose(seed: int) -> tuple[str, Fault]:
    """Return the job and the fault of a seed."""
    chance = random.Random(seed)
    name = chance.choice(list(JOBS))
    workers, kinds = JOBS[name]
    return name, Fault(chance.choice(kinds), chance.randrange(1, STEPS), chance.randrange(workers))


def violations(seed: int, expected: dict[str, str]) -> Iterator[str]:
    """Yield what does not hold after the fault of a seed; `expected` are undisturbed results."""
    name, fault = choose(seed)
    if name == "serve":
        yield from serving.violations(fault.kind, fault.step)
        return
    with tempfile.TemporaryDirectory() as folder:
        if fault.kind == "second job":
            ended = start(name, folder, None) + start(name, folder, None)
        else:
            ended = start(name, folder, fault)
        yield from check_ends(name, fault, ended)
        processes = [path.name for path in Path(folder, "processes").glob("*")]
        left = [piece for pid in processes for piece in SHARED_MEMORY.glob(f"torch_{pid}_*")]
        if left:
            yield f"{len(left)} pieces of shared memory are left"
        if name == "module":
            return
        for again in start(name, folder, None):
            if again.status:
                yield f"the second start ended with {again.status}: {again.err[-600:]}"
        final = Path(folder, "final")
        if not final.exists() or final.read_text() != expected[name]:
            yield "the second start ends with other weights than an undisturbed run"


def check_ends(name: str, fault: Fault, ended: list[Ended]) -> Iterator[str]:
    """Yield which processes did not end as they should."""
    cause = CAUSES[fault.kind]
    for process in ended:
        where = f"rank {process.role}"
        if process.seconds >= LIMIT:
            yield f"{where} did not end within {LIMIT:g} s"
        is_victim = process.role == str(fault.rank)
        if cause is None:
            if process.status:
                yield f"{where} ended with {process.status}: {process.err[-600:]}"
        elif is_victim and fault.kind in ("killed", "terminated"):
            if process.status not in (-signal.SIGKILL, -signal.SIGTERM):
                yield f"{where} ended with {process.status}"
        elif process.status == 0 and not is_victim and may_have_finished(name, fault):
            continue
        elif process.status == 0:
            yield f"{where} ended well, though training could not continue"
        elif cause not in process.err:
            yield f"the error of {where} does not say {cause!r}: {process.err[-900:]}"


def may_have_finished(name: str, fault: Fault) -> bool:
    """Return whether other workers may have made their last step before the fault shows."""
    shows_at_last_save = fault.kind == "full disk" and fault.step >= STEPS - SAVE_EVERY
    return name == "module" or shows_at_last_save


def undisturbed() -> dict[str, str]:
    """Return the results of the jobs without any fault."""
    results = {}
    for name in ("gluon", "loader"):
        with tempfile.TemporaryDirectory() as folder:
            for process in start(name, folder, None):
                assert process.status == 0, process.err
            results[name] = Path(folder, "final").read_text()
    return results


def run(seeds: Sequence[int], at_once: int = 1) -> dict[int, list[str]]:
    """Return the violations of each seed that has any. Jobs mostly wait: some can run at once."""
    expected = undisturbed()
    failed = {}

    def check(seed: int) -> list[str]:
        try:
            return list(violations(seed, expected))
        except Exception as error:  # such as a server that does not start
            return [f"the check failed: {error!r}"]

    with ThreadPoolExecutor(at_once) as pool:
        for count, (seed, problems) in enumerate(
            zip(seeds, pool.map(check, seeds), strict=True), 1
        ):
            if problems:
                failed[seed] = problems
                print(f"seed {seed} {choose(seed)}: {problems}", flush=True)
            if count % 50 == 0:
                print(f"{count} seeds", flush=True)
    return failed


def main() -> int:
    """Run the seeds that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10, help="how many (default: 10)")
    parser.add_argument("--first", type=int, default=0, help="the first one (default: 0)")
    parser.add_argument("--at-once", type=int, default=1, help="jobs that run at a time")
    parser.add_argument("--job", choices=JOBS, help="only seeds of this job")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.seeds)
    failed = run([n for n in seeds if args.job in (None, choose(n)[0])], args.at_once)
    print(f"{len(failed)} seeds with a violation: {sorted(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
