"""The history that `fit` returns, and loggers."""

from __future__ import annotations

import csv
import json
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from mxnet.tracking import CSVLogger, History, JSONLinesLogger, TensorBoardLogger

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


def test_module_fit_returns_metrics_of_each_epoch():
    history = module_fit(num_epoch=3, eval_data=mx.io.NDArrayIter(DATA, LABEL, 2))
    assert list(history) == ["train_accuracy", "val_accuracy"]
    assert history.epoch == [0, 1, 2]
    assert len(history.time) == len(history["val_accuracy"]) == 3
    assert history.last["train_accuracy"] == history["train_accuracy"][-1]


def test_estimator_fit_returns_the_same_names():
    history = estimator().fit(loader(), loader(), epochs=2)
    assert {"train_accuracy", "val_accuracy"} < set(history)
    assert history.epoch == [0, 1]


def test_epochs_without_validation_have_nan():
    est = estimator()
    validation = ValidationHandler(loader(), est.evaluate, epoch_period=2)
    history = est.fit(loader(), epochs=4, event_handlers=validation)
    assert [math.isnan(value) for value in history["val_accuracy"]] == [True, False, True, False]


def test_resumed_fit_has_the_complete_history(tmp_path):
    whole = module_fit(num_epoch=3, initializer=mx.init.One())
    module_fit(num_epoch=2, initializer=mx.init.One(), resume=tmp_path / "run")
    resumed = module_fit(num_epoch=3, initializer=mx.init.One(), resume=tmp_path / "run")
    assert dict(resumed) == dict(whole)
    assert resumed.epoch == [0, 1, 2]


def test_resumed_estimator_has_the_complete_history(tmp_path):
    estimator().fit(loader(), epochs=2, resume=tmp_path)
    assert estimator().fit(loader(), epochs=3, resume=tmp_path).epoch == [0, 1, 2]


def test_unknown_metric_raises_and_lists_known_ones():
    with pytest.raises(KeyError, match="there are: train_accuracy"):
        module_fit(num_epoch=1)["accuracy"]


def test_history_html_repr_is_a_table():
    history = mx.tracking.History()
    history.add(0, 1.0, {"train_<b>": 0.5})
    assert "<th>train_&lt;b&gt;</th>" in history._repr_html_()
    assert "<td>0.5</td>" in history._repr_html_()


def test_plot_history_shares_a_chart_per_metric(tmp_path):
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


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def objects(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_csv_logger_writes_one_row_per_epoch(tmp_path):
    history = module_fit(num_epoch=2, loggers=CSVLogger(tmp_path / "run.csv"))
    found = rows(tmp_path / "run.csv")
    assert list(found[0]) == ["epoch", "time", "train_accuracy"]
    assert [float(row["train_accuracy"]) for row in found] == history["train_accuracy"]


def test_csv_logger_adds_columns_for_new_metrics(tmp_path):
    logger = CSVLogger(tmp_path / "run.csv")
    logger.begin(History())
    logger.log({"epoch": 0, "time": 1.0, "train_loss": 2.0})
    logger.log({"epoch": 1, "time": 1.0, "train_loss": 1.0, "val_loss": 3.0})
    first, second = rows(tmp_path / "run.csv")
    assert first["val_loss"] == "nan" and second["val_loss"] == "3.0"


def test_json_lines_logger_writes_one_line_per_epoch(tmp_path):
    history = estimator().fit(
        loader(), loader(), epochs=2, loggers=[JSONLinesLogger(tmp_path / "run.jsonl")]
    )
    assert objects(tmp_path / "run.jsonl") == history.rows()


def test_json_lines_logger_writes_nan_as_null(tmp_path):
    logger = JSONLinesLogger(tmp_path / "run.jsonl")
    logger.begin(History())
    logger.log({"epoch": 0, "time": 1.0, "train_loss": math.nan})
    assert objects(tmp_path / "run.jsonl")[0]["train_loss"] is None


@pytest.mark.parametrize(("kind", "read"), [(CSVLogger, rows), (JSONLinesLogger, objects)])
def test_loggers_replace_or_append(kind, read, tmp_path):
    path = tmp_path / "run"
    module_fit(num_epoch=2, loggers=kind(path))
    module_fit(num_epoch=1, loggers=kind(path, append=True))
    assert [int(row["epoch"]) for row in read(path)] == [0, 1, 0]
    module_fit(num_epoch=1, loggers=kind(path))
    assert [int(row["epoch"]) for row in read(path)] == [0]


@pytest.mark.parametrize(("kind", "read"), [(CSVLogger, rows), (JSONLinesLogger, objects)])
def test_resumed_training_logs_each_epoch_once(kind, read, tmp_path):
    path = tmp_path / "run"
    module_fit(num_epoch=2, loggers=kind(path), resume=tmp_path / "state")
    with path.open("a") as file:  # an epoch without a checkpoint
        file.write("2,0,0\n")
    module_fit(num_epoch=4, loggers=kind(path), resume=tmp_path / "state")
    assert [int(row["epoch"]) for row in read(path)] == [0, 1, 2, 3]


def test_tensorboard_logger_roundtrip(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    history = module_fit(num_epoch=3, loggers=TensorBoardLogger(tmp_path))
    events = accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    written = events.Scalars("accuracy/train")
    assert [event.step for event in written] == [0, 1, 2]
    assert [event.value for event in written] == pytest.approx(history["train_accuracy"])


def test_wandb_logger_receives_every_epoch(monkeypatch):
    calls = []
    run = SimpleNamespace(
        log=lambda values, step: calls.append((step, sorted(values))),
        finish=lambda: calls.append("finish"),
    )
    wandb = SimpleNamespace(init=lambda **options: calls.append(options) or run)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    module_fit(num_epoch=1, loggers=mx.tracking.WandbLogger("digits", name="first"))
    logged = (0, ["time", "train_accuracy"])
    assert calls == [{"project": "digits", "name": "first"}, logged, "finish"]
    calls.clear()
    module_fit(num_epoch=1, loggers=mx.tracking.WandbLogger(run=run))
    assert calls == [logged]


@pytest.mark.parametrize("is_active", [False, True])
def test_mlflow_logger_receives_every_epoch(is_active, monkeypatch):
    calls = []
    mlflow = SimpleNamespace(
        active_run=lambda: object() if is_active else None,
        set_experiment=lambda name: calls.append(name),
        start_run=lambda **options: calls.append(options),
        log_metrics=lambda values, step: calls.append((step, sorted(values))),
        end_run=lambda: calls.append("end"),
    )
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    module_fit(num_epoch=1, loggers=mx.tracking.MLflowLogger("digits", run_name="first"))
    logged = (0, ["time", "train_accuracy"])
    own = ["digits", {"run_name": "first"}, logged, "end"]
    assert calls == ([logged] if is_active else own)


@pytest.mark.parametrize(
    ("package", "make"),
    [
        ("wandb", mx.tracking.WandbLogger),
        ("mlflow", mx.tracking.MLflowLogger),
        ("tensorboard", lambda: TensorBoardLogger("runs")),
    ],
)
def test_missing_logger_package_error_names_the_package(package, make, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(mx.MXNetError, match=f"pip install {package}"):
        make()


def test_loggers_end_when_training_fails(tmp_path):
    ended = []

    class Failing(mx.tracking.Logger):
        def log(self, row):
            raise RuntimeError("disk full")

        def end(self):
            ended.append(True)

    with pytest.raises(RuntimeError, match="disk full"):
        module_fit(num_epoch=1, loggers=Failing())
    assert ended == [True]


def test_invalid_logger_raises():
    with pytest.raises(ValueError, match="loggers must be objects such as"):
        module_fit(num_epoch=1, loggers="run.csv")


HOSTILE = "<script>alert(1)</script>"


@pytest.mark.parametrize(
    "state",
    [
        {"epoch": [HOSTILE], "time": [1.0], "metrics": {"train_loss": [0.5]}},
        {"epoch": [0], "time": [HOSTILE], "metrics": {"train_loss": [0.5]}},
        {"epoch": [0], "time": [1.0], "metrics": {"train_loss": [HOSTILE]}},
        {"epoch": [0], "time": [1.0], "metrics": {"train_loss": [0.5, 0.25]}},
        {"epoch": 0, "time": [1.0], "metrics": {}},
        {"epoch": [0], "time": [1.0], "metrics": [HOSTILE]},
        {"epoch": [0], "time": [float("nan")], "metrics": {}},
        {"epoch": [0], "time": [float("inf")], "metrics": {}},
        {"epoch": [0], "time": [10**400], "metrics": {}},
        {"epoch": [1 << 20000], "time": [1.0], "metrics": {}},
        [HOSTILE],
        None,
    ],
)
def test_invalid_history_state_raises(state):
    history = mx.tracking.History()
    with pytest.raises(mx.MXNetError, match="history of a checkpoint"):
        history.load_state_dict(state)
    assert history.epoch == []


def test_metric_names_in_histories_are_escaped():
    history = mx.tracking.History()
    history.load_state_dict({"epoch": [0], "time": [1], "metrics": {HOSTILE: [float("nan")]}})
    history.add(1, 2.0, {HOSTILE: 0.5})
    assert "<script>" not in history._repr_html_()
    again = mx.tracking.History()
    again.load_state_dict(history.state_dict())
    assert again.time == [1.0, 2.0]


def test_csv_logger_strips_formula_prefixes_from_names(tmp_path):
    logger = mx.tracking.CSVLogger(tmp_path / "run.csv")
    logger.begin(mx.tracking.History())
    logger.log({"epoch": 0, "time": 1.0, "=cmd()": 0.5})
    assert (tmp_path / "run.csv").read_text().splitlines()[0] == "epoch,time,cmd()"
