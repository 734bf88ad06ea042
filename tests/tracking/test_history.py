"""What `fit` returns."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon.contrib.estimator import Estimator, ValidationHandler

DATA, LABEL = np.eye(4, dtype="float32"), np.array([0, 1, 0, 1], "float32")


def module_fit(**options):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    data = mx.io.NDArrayIter(DATA, LABEL, 2)
    return mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax")).fit(data, **options)


def estimator(**options):
    net = gluon.nn.Dense(2, in_units=4)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    return Estimator(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer=trainer)


def loader():
    return gluon.data.DataLoader(gluon.data.ArrayDataset(DATA, LABEL), 2)


def test_module_returns_metrics_of_each_epoch():
    history = module_fit(num_epoch=3, eval_data=mx.io.NDArrayIter(DATA, LABEL, 2))
    assert list(history) == ["train_accuracy", "val_accuracy"]
    assert history.epoch == [0, 1, 2]
    assert len(history.time) == len(history["val_accuracy"]) == 3
    assert history.last["train_accuracy"] == history["train_accuracy"][-1]


def test_estimator_returns_the_same_names():
    history = estimator().fit(loader(), loader(), epochs=2)
    assert {"train_accuracy", "val_accuracy"} < set(history)
    assert history.epoch == [0, 1]


def test_epochs_without_validation_have_no_value():
    est = estimator()
    validation = ValidationHandler(loader(), est.evaluate, epoch_period=2)
    history = est.fit(loader(), epochs=4, event_handlers=validation)
    assert [math.isnan(value) for value in history["val_accuracy"]] == [True, False, True, False]


def test_a_resumed_training_has_the_history_of_the_whole(tmp_path):
    whole = module_fit(num_epoch=3, initializer=mx.init.One())
    module_fit(num_epoch=2, initializer=mx.init.One(), resume=tmp_path / "run")
    resumed = module_fit(num_epoch=3, initializer=mx.init.One(), resume=tmp_path / "run")
    assert dict(resumed) == dict(whole)
    assert resumed.epoch == [0, 1, 2]


def test_a_resumed_estimator_has_the_history_of_the_whole(tmp_path):
    estimator().fit(loader(), epochs=2, resume=tmp_path)
    assert estimator().fit(loader(), epochs=3, resume=tmp_path).epoch == [0, 1, 2]


def test_an_unknown_metric_names_the_known_ones():
    with pytest.raises(KeyError, match="there are: train_accuracy"):
        module_fit(num_epoch=1)["accuracy"]


def test_notebooks_show_a_table():
    history = mx.tracking.History()
    history.add(0, 1.0, {"train_<b>": 0.5})
    assert "<th>train_&lt;b&gt;</th>" in history._repr_html_()
    assert "<td>0.5</td>" in history._repr_html_()


def test_curves_of_a_metric_share_a_chart(tmp_path):
    pytest.importorskip("matplotlib")
    history = mx.tracking.History()
    for epoch in range(3):
        values = {"train_accuracy": epoch / 4, "val_accuracy": epoch / 5, "train_loss": 1 - epoch}
        history.add(epoch, 1.0, values)
    figure = mx.viz.plot_history(history, tmp_path / "curves.png")
    assert [axes.get_title() for axes in figure.axes] == ["accuracy", "loss"]
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert labels == ["training", "validation"]
    assert list(figure.axes[0].lines[1].get_ydata()) == [0, 0.2, 0.4]
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="the history has accuracy, loss"):
        mx.viz.plot_history(history, metrics=["acc"])
