"""`Estimator.fit(resume=...)` continues a training that died, at the right epoch, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon.contrib.estimator import BatchEnd, Estimator
from mxnet.gluon.contrib.estimator.event_handler import LoggingHandler

LOSS = gluon.loss.SoftmaxCrossEntropyLoss


class Killed(BaseException):
    pass


class Killer(BatchEnd):
    """Ends the process, so to speak, after some batches."""

    def __init__(self, after):
        self._after, self._seen = lambda: after, []

    def batch_end(self, estimator, *args, **kwargs):
        self._seen.append(object())  # not data: a checkpoint does not keep it
        if len(self._seen) == self._after():
            raise Killed


def train(folder=None, die_after=None, length=None, every=None):
    mx.random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    rng = np.random.default_rng(0)
    data = mx.nd.array(rng.random((20, 4)))
    label = mx.nd.array(rng.integers(0, 3, 20))
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(data, label), 4, shuffle=True)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(5, activation="relu"), gluon.nn.Dropout(0.3), gluon.nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    schedule = mx.lr_scheduler.FactorScheduler(4, 0.5, base_lr=0.1)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"lr_scheduler": schedule})
    made = Estimator(net, LOSS(), trainer=trainer)
    handlers = [Killer(die_after), LoggingHandler(metrics=made.train_metrics)]
    length = length or {"epochs": 3}
    made.fit(loader, **length, event_handlers=handlers, resume=folder, resume_every=every)
    weights = [p.data().asnumpy() for p in net.collect_params().values()]
    return weights, [m.get()[1] for m in made.train_metrics], trainer.learning_rate


def same(one, other):
    # Equal bits: the promise of `resume`. The same kernels run on arrays of the same shapes.
    for a, b in zip(one[0], other[0], strict=True):
        np.testing.assert_array_equal(a, b)
    assert one[1:] == other[1:]


@pytest.mark.parametrize("die_after", [3, 6, 10, 12])
@pytest.mark.parametrize("every", [None, 1, 2])
def test_a_training_that_died_ends_the_same(tmp_path, die_after, every):
    with pytest.raises(Killed):
        train(tmp_path, die_after, every=every)
    same(train(tmp_path, every=every), train())


def test_a_training_by_batches(tmp_path):
    length = {"batches": 12}
    with pytest.raises(Killed):
        train(tmp_path, 8, length, every=3)
    same(train(tmp_path, length=length, every=3), train(length=length))


def test_the_log_goes_on_with_the_right_epoch(tmp_path, capsys):
    with pytest.raises(Killed):
        train(tmp_path, 7)
    capsys.readouterr()
    train(tmp_path)
    text = capsys.readouterr().out
    assert "[Epoch 0]" not in text and "[Epoch 1] Begin" in text and "[Epoch 2] Finished" in text


def test_a_finished_training_can_be_prolonged(tmp_path):
    train(tmp_path, length={"epochs": 2})
    same(train(tmp_path, length={"epochs": 2}), train(length={"epochs": 2}))
    same(train(tmp_path, length={"epochs": 4}), train(length={"epochs": 4}))


def test_resume_every_needs_a_folder():
    with pytest.raises(ValueError, match="needs resume=folder"):
        train(every=2)
