"""Loggers write the metrics of each epoch."""

from __future__ import annotations

import csv
import json
import math
import sys
from types import SimpleNamespace

import pytest

import mxnet as mx
from mxnet.tracking import CSVLogger, History, JSONLinesLogger, TensorBoardLogger
from tests.tracking.test_history import estimator, loader, module_fit


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def objects(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_table_has_a_row_for_each_epoch(tmp_path):
    history = module_fit(num_epoch=2, loggers=CSVLogger(tmp_path / "run.csv"))
    found = rows(tmp_path / "run.csv")
    assert list(found[0]) == ["epoch", "time", "train_accuracy"]
    assert [float(row["train_accuracy"]) for row in found] == history["train_accuracy"]


def test_a_metric_that_comes_later_adds_a_column(tmp_path):
    logger = CSVLogger(tmp_path / "run.csv")
    logger.begin(History())
    logger.log({"epoch": 0, "time": 1.0, "train_loss": 2.0})
    logger.log({"epoch": 1, "time": 1.0, "train_loss": 1.0, "val_loss": 3.0})
    first, second = rows(tmp_path / "run.csv")
    assert first["val_loss"] == "nan" and second["val_loss"] == "3.0"


def test_json_lines_hold_one_epoch_each(tmp_path):
    history = estimator().fit(
        loader(), loader(), epochs=2, loggers=[JSONLinesLogger(tmp_path / "run.jsonl")]
    )
    assert objects(tmp_path / "run.jsonl") == history.rows()


def test_nan_is_null_in_json(tmp_path):
    logger = JSONLinesLogger(tmp_path / "run.jsonl")
    logger.begin(History())
    logger.log({"epoch": 0, "time": 1.0, "train_loss": math.nan})
    assert objects(tmp_path / "run.jsonl")[0]["train_loss"] is None


@pytest.mark.parametrize(("kind", "read"), [(CSVLogger, rows), (JSONLinesLogger, objects)])
def test_a_new_training_replaces_or_appends(kind, read, tmp_path):
    path = tmp_path / "run"
    module_fit(num_epoch=2, loggers=kind(path))
    module_fit(num_epoch=1, loggers=kind(path, append=True))
    assert [int(row["epoch"]) for row in read(path)] == [0, 1, 0]
    module_fit(num_epoch=1, loggers=kind(path))
    assert [int(row["epoch"]) for row in read(path)] == [0]


@pytest.mark.parametrize(("kind", "read"), [(CSVLogger, rows), (JSONLinesLogger, objects)])
def test_a_resumed_training_writes_each_epoch_once(kind, read, tmp_path):
    path = tmp_path / "run"
    module_fit(num_epoch=2, loggers=kind(path), resume=tmp_path / "state")
    with path.open("a") as file:  # an epoch whose checkpoint was not written any more
        file.write("2,0,0\n")
    module_fit(num_epoch=4, loggers=kind(path), resume=tmp_path / "state")
    assert [int(row["epoch"]) for row in read(path)] == [0, 1, 2, 3]


def test_tensorboard_reads_what_was_written(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    history = module_fit(num_epoch=3, loggers=TensorBoardLogger(tmp_path))
    events = accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    written = events.Scalars("accuracy/train")
    assert [event.step for event in written] == [0, 1, 2]
    assert [event.value for event in written] == pytest.approx(history["train_accuracy"])


def test_weights_and_biases_gets_every_epoch(monkeypatch):
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
def test_mlflow_gets_every_epoch(is_active, monkeypatch):
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
def test_a_missing_package_is_named_with_its_extra(package, make, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(mx.MXNetError, match=rf"pip install 'mxnext\[{package}\]'"):
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


def test_what_is_no_logger_is_refused():
    with pytest.raises(ValueError, match="loggers are objects such as"):
        module_fit(num_epoch=1, loggers="run.csv")
