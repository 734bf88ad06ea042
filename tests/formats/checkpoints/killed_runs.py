"""Training runs that are killed at random moments and restarted until they end.

``python -m tests.formats.checkpoints.killed_runs loop --kills 50`` prints after how many kills the
final weights were equal bit for bit. Each run is forked after the import.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import mxnet as mx
from mxnet import gluon
from mxnet.contrib import amp
from mxnet.gluon import nn
from mxnet.gluon.contrib.estimator import BatchEnd, Estimator

EPOCHS, SIZE = 4, 4
EVERY = 2  # batches between two checkpoints
LIMIT = 120  # seconds that one run may take
RNG = np.random.default_rng(0)
DATA = RNG.random((48, 6), dtype="float32")
LABEL = RNG.integers(0, 3, 48).astype("float32")
LOSS = gluon.loss.SoftmaxCrossEntropyLoss


class Noisy(gluon.data.Dataset):
    """Samples with random noise, drawn in the workers."""

    def __len__(self) -> int:
        return len(DATA)

    def __getitem__(self, index: int) -> tuple:
        noise = np.random.rand(6).astype("float32") / 10  # noqa: NPY002 (a transform of a user)
        return DATA[index] + noise, LABEL[index]


def network() -> nn.HybridSequential:
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(8, activation="relu"), nn.Dropout(0.3), nn.BatchNorm(), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(mx.nd.ones((SIZE, 6)))
    return net


class Count(BatchEnd):
    """Counts batches by the length of a file, which survives a kill; called after each one."""

    def __init__(self, folder: str) -> None:
        self._place = Path(folder, "batches")

    def __call__(self, param: object = None) -> None:
        with self._place.open("ab") as file:
            file.write(b".")

    def batch_end(self, estimator: object, *args: object, **kwargs: object) -> None:
        self()


def trainer_of(net: nn.HybridSequential) -> gluon.Trainer:
    schedule = mx.lr_scheduler.CosineScheduler(40, base_lr=0.05, final_lr=0.001)
    return gluon.Trainer(net.collect_params(), "adam", {"lr_scheduler": schedule})


def weights(net: nn.HybridSequential) -> dict[str, np.ndarray]:
    return {name: p.data().asnumpy() for name, p in net.collect_params().items()}


def train_module(folder: str) -> dict[str, np.ndarray]:
    """Train a Module with dropout, batch norm, Adam and a scheduler on shuffled data."""
    data = mx.io.NDArrayIter(DATA, LABEL, SIZE, shuffle=True)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="fc1")
    net = mx.sym.BatchNorm(mx.sym.Dropout(net, p=0.3), name="bn")
    net = mx.sym.FullyConnected(net, num_hidden=3, name="fc2")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    schedule = mx.lr_scheduler.FactorScheduler(10, 0.7, base_lr=0.05)
    module.fit(
        data,
        num_epoch=EPOCHS,
        batch_end_callback=Count(folder),
        optimizer="adam",
        optimizer_params={"lr_scheduler": schedule},
        resume=f"{folder}/run",
        resume_every=EVERY,
        progress=False,
    )
    arguments, states = module.get_params()
    return {name: array.asnumpy() for name, array in {**arguments, **states}.items()}


def train_estimator(folder: str) -> dict[str, np.ndarray]:
    """Train an Estimator with dropout, batch norm, Adam and a scheduler on shuffled data."""
    net = network()
    loader = gluon.data.DataLoader(Noisy(), SIZE, shuffle=True)
    estimator = Estimator(net, LOSS(), trainer=trainer_of(net))
    estimator.logger.handlers.clear()
    options = {"resume": folder, "resume_every": EVERY, "progress": False}
    estimator.fit(loader, epochs=EPOCHS, event_handlers=Count(folder), **options)
    return weights(net)


def train_loop(folder: str) -> dict[str, np.ndarray]:
    """Train in a plain loop with workers, mixed precision and a scheduler."""
    amp.init("float16")
    net = network()
    trainer = trainer_of(net)
    amp.init_trainer(trainer)
    loss_of = LOSS()
    loader = gluon.data.DataLoader(Noisy(), SIZE, shuffle=True, num_workers=2)
    data = mx.checkpoint.track(loader)
    parts = {"net": net, "trainer": trainer, "data": data}
    count = Count(folder)
    found = mx.checkpoint.load(folder, **parts)
    step = 0 if found is None else found.step
    while data.epoch < EPOCHS:
        for inputs, labels in data:
            with mx.autograd.record():
                loss = loss_of(net(inputs), labels)
                with amp.scale_loss(loss, trainer) as scaled:
                    mx.autograd.backward(scaled)
            trainer.step(SIZE)
            step += 1
            count()
            if step % EVERY == 0:
                mx.checkpoint.save(folder, step, **parts)
    return weights(net)


TRAININGS: dict[str, Callable[[str], dict[str, np.ndarray]]] = {
    "module": train_module,
    "estimator": train_estimator,
    "loop": train_loop,
}


def run(kind: str, folder: Path, kill_after: float | None) -> bool:
    """Train in a subprocess, killed after some seconds; return whether it finished.

    The digest of the weights is then in the folder.
    """
    child = os.fork()
    if child == 0:
        _train_and_exit(kind, folder)
    deadline = time.monotonic() + (LIMIT if kill_after is None else kill_after)
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            if status:
                raise SystemExit(f"{kind}: the training failed with status {status}")
            return True
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if kill_after is None:
        raise SystemExit(f"{kind}: the training took more than {LIMIT} s")
    return False


def _train_and_exit(kind: str, folder: Path) -> None:
    try:
        mx.random.seed(5)
        np.random.seed(5)  # noqa: NPY002
        random.seed(5)
        digest = hashlib.sha256()
        for name, array in sorted(TRAININGS[kind](str(folder)).items()):
            digest.update(name.encode() + array.tobytes())
        (folder / "digest").write_text(digest.hexdigest())
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    os._exit(code)


def prove(kind: str, kills: int, seed: int) -> int:
    """Kill training runs often enough; return how many runs ended with equal bits."""
    chance = random.Random(seed)
    base = Path(tempfile.mkdtemp(prefix="killed-runs-"))
    try:
        start = time.monotonic()
        run(kind, _new(base, "whole"), None)
        duration = time.monotonic() - start
        wanted = (base / "whole" / "digest").read_text()
        killed = ended = 0
        while killed < kills or not ended:
            folder, before = _new(base, f"run{ended}"), killed
            while not run(kind, folder, chance.uniform(0, duration) if killed < kills else None):
                killed += 1
            _check(kind, folder, wanted, killed - before)
            ended += 1
        print(
            f"{kind}: {killed} kills, {ended} runs to the end, equal bits ({duration:.1f} s each)"
        )
        return ended
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _check(kind: str, folder: Path, wanted: str, kills: int) -> None:
    """Require equal bits, and that no kill lost more than the batches since the last checkpoint."""
    if (folder / "digest").read_text() != wanted:
        raise SystemExit(f"{kind}: after {kills} kills the weights differ")
    batches = (folder / "batches").stat().st_size
    most = EPOCHS * len(DATA) // SIZE + kills * EVERY
    if batches > most:
        raise SystemExit(f"{kind}: {batches} batches were trained with {kills} kills, over {most}")


def _new(base: Path, name: str) -> Path:
    folder = base / name
    folder.mkdir()
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", choices=TRAININGS, nargs="+")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for kind in options.kinds:
        prove(kind, options.kills, options.seed)
