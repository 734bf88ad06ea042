"""Killed training loops resume from checkpoints bit for bit."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.error import FormatError, MXNetError
from mxnet.gluon import nn
from tests.children import exit_code_of

EPOCHS, BATCHES = 3, 5


class Killed(BaseException):
    pass


class Noisy(mx.gluon.data.Dataset):
    """Samples with noise that is redrawn on every access."""

    def __len__(self):
        return 4 * BATCHES

    def __getitem__(self, index):
        noise = np.random.rand(3).astype("float32")  # noqa: NPY002 (a transform of a user)
        return np.full(3, index / 10, "float32") + noise, np.float32(index % 2)


def train(folder=None, die_after=None, workers=0, every=2):
    """Train like a script, optionally killed after some batches; return all results."""
    mx.random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    net = nn.HybridSequential(prefix="net_")
    net.add(nn.Dense(6, activation="relu"), nn.Dropout(0.5), nn.BatchNorm(), nn.Dense(2))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(mx.nd.ones((4, 3)))
    schedule = mx.lr_scheduler.FactorScheduler(4, 0.5, base_lr=0.1)
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"lr_scheduler": schedule})
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    metric = mx.metric.Loss()
    loader = mx.gluon.data.DataLoader(Noisy(), 4, shuffle=True, num_workers=workers)
    data = mx.checkpoint.track(loader)
    parts = {"net": net, "trainer": trainer, "data": data, "metric": metric}
    step = 0
    if folder is not None:
        found = mx.checkpoint.load(folder, **parts)
        step = 0 if found is None else found.step
    done = 0
    while data.epoch < EPOCHS:
        for inputs, labels in data:
            with mx.autograd.record():
                loss = loss_of(net(inputs), labels)
            loss.backward()
            trainer.step(4)
            metric.update(None, loss)
            step, done = step + 1, done + 1
            if folder is not None and step % every == 0:
                mx.checkpoint.save(folder, step, **parts)
            if done == die_after:
                raise Killed
    weights = [p.data().asnumpy() for p in net.collect_params().values()]
    return weights, metric.get()[1], trainer.learning_rate, step, mx.nd.random.uniform().asscalar()


def same(one, other):
    # Bit for bit, as checkpoints promise: the same kernels run on arrays of the same shapes.
    for a, b in zip(one[0], other[0], strict=True):
        np.testing.assert_array_equal(a, b)
    assert one[1:] == other[1:]


@pytest.mark.parametrize("die_after", [1, 2, 4, 5, 6, 7, 13])
def test_resumed_loops_equal_uninterrupted_ones_bit_for_bit(tmp_path, die_after):
    with pytest.raises(Killed):
        train(tmp_path, die_after)
    same(train(tmp_path), train())


def test_loop_with_workers_resumes_after_two_failures(tmp_path):
    for die_after in (3, 5):
        with pytest.raises(Killed):
            train(tmp_path, die_after, workers=2)
    same(train(tmp_path, workers=2), train(workers=2))


@pytest.fixture
def one_thread():
    """Compute on one thread, like forked processes: sums of two threads may round differently."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.usefixtures("one_thread")
def test_loop_resumes_after_sigkill(tmp_path):
    chance = random.Random(1)
    wanted = train()
    for _ in range(3):
        child = os.fork()
        if child == 0:
            killed_at = chance.randrange(1, 6)
            try:
                train(tmp_path, killed_at, every=1)
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        exit_code_of(child)
        chance.random()
    same(train(tmp_path, every=1), wanted)


def small():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    return net, mx.gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9})


def test_save_keeps_the_newest_checkpoints(tmp_path):
    net, _ = small()
    for step in range(1, 6):
        mx.checkpoint.save(tmp_path, step, net=net, extra=step, keep=2)
    assert [p.name for p in sorted(tmp_path.iterdir())] == [
        "checkpoint-00000004.params",
        "checkpoint-00000005.params",
    ]
    assert mx.checkpoint.latest(tmp_path).name == "checkpoint-00000005.params"
    assert mx.checkpoint.load(mx.checkpoint.latest(tmp_path), net=net).extra == 5


def test_load_warns_of_damage_and_uses_the_previous_checkpoint(tmp_path):
    net, _ = small()
    for step in (1, 2):
        mx.checkpoint.save(tmp_path, step, net=net)
    path = mx.checkpoint.latest(tmp_path)
    raw = bytearray(path.read_bytes())
    raw[70] ^= 1  # data of the first array
    path.write_bytes(raw)
    with pytest.warns(UserWarning, match=r"damaged.*The previous checkpoint is used"):
        assert mx.checkpoint.load(tmp_path, net=net).step == 1
    with pytest.raises(FormatError, match="damaged"):
        mx.checkpoint.load(path, net=net)


def test_loading_into_a_different_network_or_trainer_raises(tmp_path):
    net, trainer = small()
    mx.checkpoint.save(tmp_path, 1, net=net, trainer=trainer)
    other = nn.Dense(5, in_units=3)
    other.initialize()
    with pytest.raises(MXNetError, match=r"different network, and nothing was changed.*\(5, 3\)"):
        mx.checkpoint.load(tmp_path, net=other)
    adam = mx.gluon.Trainer(net.collect_params(), "adam")
    with pytest.raises(MXNetError, match=r"a Trainer with SGD.*this one has Adam"):
        mx.checkpoint.load(tmp_path, trainer=adam)
    with pytest.raises(MXNetError, match="saved without metric="):
        mx.checkpoint.load(tmp_path, metric=mx.metric.Accuracy())


def test_saving_untracked_data_raises(tmp_path):
    with pytest.raises(MXNetError, match=r"mx\.checkpoint\.track"):
        mx.checkpoint.save(tmp_path, 1, data=[1, 2])


def test_load_without_a_checkpoint_returns_none(tmp_path):
    net, _ = small()
    assert mx.checkpoint.load(tmp_path, net=net) is None
    assert mx.checkpoint.load(tmp_path / "none", net=net) is None


def test_amp_loss_scale_is_restored(tmp_path):
    net, trainer = small()
    trainer._amp_loss_scaler = mx.contrib.amp.loss_scaler.LossScaler()
    trainer._amp_loss_scaler._loss_scale = 128.0
    mx.checkpoint.save(tmp_path, 1, net=net, trainer=trainer)
    trainer._amp_loss_scaler._loss_scale = 2.0
    mx.checkpoint.load(tmp_path, net=net, trainer=trainer)
    assert trainer._amp_loss_scaler.loss_scale == 128.0


def test_set_fields_cannot_replace_a_method(tmp_path):
    from mxnet.formats.checkpoints.state import set_fields

    with pytest.raises(FormatError, match=r"may not replace SGD\.update"):
        set_fields(mx.optimizer.SGD(), {"update": 3})


def make_trainer(first, second):
    net = nn.HybridSequential(prefix="")
    net.add(nn.Dense(2, in_units=3, prefix=first), nn.Dense(5, in_units=2, prefix=second))
    net.initialize()
    return net, mx.gluon.Trainer(net.collect_params(), "adam")


def test_states_match_parameters_if_names_sort_differently(tmp_path):
    net, trainer = make_trainer("dense8_", "dense9_")
    with mx.autograd.record():
        loss = net(mx.nd.ones((1, 3))).sum()
    loss.backward()
    trainer.step(1)
    mx.checkpoint.save(tmp_path, 1, net=net, trainer=trainer)
    again, other = make_trainer("dense9_", "dense10_")
    mx.checkpoint.load(tmp_path, net=again, trainer=other)
    found = {p.name: other._updaters[0].states[i][0].shape for i, p in enumerate(other._params)}
    assert found == {p.name: p.shape for p in other._params}
    with mx.autograd.record():
        loss = again(mx.nd.ones((1, 3))).sum()
    loss.backward()
    other.step(1)


def test_loading_into_a_trainer_of_different_parameters_raises(tmp_path):
    net, trainer = make_trainer("a_", "b_")
    mx.checkpoint.save(tmp_path, 1, net=net, trainer=trainer)
    part = mx.gluon.Trainer(net[0].collect_params(), "adam")
    with pytest.raises(MXNetError, match=r"Trainer with different parameters: 1\.bias, 1\.weight"):
        mx.checkpoint.load(tmp_path, net=net, trainer=part)


class Shuffled(mx.io.DataIter):
    """A custom iterator that shuffles its data and adds noise."""

    def __init__(self):
        super().__init__(2)
        self.rows = np.arange(8, dtype="float32")
        self.at = 0
        self.provide_data = [mx.io.DataDesc("data", (2,))]

    def reset(self):
        np.random.shuffle(self.rows)  # noqa: NPY002
        self.at = 0

    def next(self):
        if self.at == 8:
            raise StopIteration
        self.at += 2
        noise = np.random.rand(2)  # noqa: NPY002
        return mx.io.DataBatch([mx.nd.array(self.rows[self.at - 2 : self.at] + noise)])


def epochs_of_batches(make, folder, stop_after=None, count=3):
    """Iterate over epochs, optionally stopped early; return the batches of this run."""
    np.random.seed(3)  # noqa: NPY002
    mx.random.seed(3)
    data = mx.checkpoint.track(make())
    mx.checkpoint.load(folder, data=data)
    seen = []
    while data.epoch < count:
        for batch in data:
            seen.append(batch.data[0].asnumpy().tolist())
            mx.checkpoint.save(folder, 4 * data.epoch + data.batches, data=data)
            if len(seen) == stop_after:
                return seen
        mx.checkpoint.save(folder, 4 * data.epoch, data=data)
    return seen


@pytest.mark.parametrize(
    "make",
    [Shuffled, lambda: mx.io.NDArrayIter(np.arange(8, dtype="float32"), None, 2, shuffle=True)],
    ids=["iterator of a user", "NDArrayIter"],
)
@pytest.mark.parametrize("stop_after", [1, 4, 6, 11])
def test_resumed_iterators_return_the_remaining_batches(make, stop_after, tmp_path):
    whole = epochs_of_batches(make, tmp_path / "whole")
    assert len(whole) == 12
    first = epochs_of_batches(make, tmp_path / "cut", stop_after)
    assert first + epochs_of_batches(make, tmp_path / "cut") == whole


def test_tracked_iterator_can_be_reset():
    data = mx.checkpoint.track(mx.io.NDArrayIter(np.arange(8), None, 2))
    for _ in range(2):
        data.reset()
        assert len(list(data)) == 4
    assert data.epoch == 2 and data.batch_size == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_killed_training_runs_resume_bit_for_bit():
    kinds = ["module", "estimator", "loop"]
    command = [
        sys.executable,
        "-m",
        "tests.formats.checkpoints.killed_runs",
        *kinds,
        "--kills",
        "3",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    for kind in kinds:
        assert f"{kind}: 3 kills" in done.stdout
