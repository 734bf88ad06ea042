"""Estimator: fit and evaluate, event handlers, checkpoints, and `fit(resume=...)`."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon.contrib.estimator import (
    BatchBegin,
    BatchEnd,
    BatchProcessor,
    CheckpointHandler,
    EarlyStoppingHandler,
    EpochBegin,
    EpochEnd,
    Estimator,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
    utils,
)

SOFTMAX = gluon.loss.SoftmaxCrossEntropyLoss


def loader(samples: int = 20, batch: int = 5) -> gluon.data.DataLoader:
    rng = np.random.default_rng(0)
    data = mx.nd.array(rng.random((samples, 4)))
    label = mx.nd.array(rng.integers(0, 3, samples))
    return gluon.data.DataLoader(gluon.data.ArrayDataset(data, label), batch_size=batch)


def ready(kind=gluon.nn.HybridSequential, lr: float = 0.1, **options) -> Estimator:
    mx.random.seed(0)
    net = kind()
    net.add(gluon.nn.Dense(3, in_units=4))
    net.initialize()
    if isinstance(net, gluon.HybridBlock):
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": lr})
    return Estimator(net, SOFTMAX(), trainer=trainer, **options)


def lines(capsys) -> list[str]:
    """What was logged, with times and values left out."""
    text = re.sub(r"\d+(\.\d+)?s\b", "Ts", capsys.readouterr().out)
    return [re.sub(r"-?(\d\.\d{4,}|inf)\b", "V", line) for line in text.splitlines()]


def files(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class TestConstruction:
    def test_default_metrics_are_chosen_by_the_loss(self):
        estimator = ready()
        assert [m.name for m in estimator.train_metrics] == [
            "training accuracy",
            "training softmaxcrossentropyloss",
        ]
        assert [m.name for m in estimator.val_metrics] == [
            "validation accuracy",
            "validation softmaxcrossentropyloss",
        ]

    def test_passed_metrics_are_used_and_renamed(self):
        train, val = mx.metric.Accuracy(), mx.metric.RMSE()
        estimator = ready(train_metrics=train, val_metrics=[val])
        assert estimator.train_metrics[0] is train
        assert estimator.val_metrics[0] is val
        assert (train.name, val.name) == ("training accuracy", "validation rmse")

    def test_composite_metrics_are_flattened(self):
        both = mx.metric.CompositeEvalMetric([mx.metric.Accuracy(), mx.metric.RMSE()])
        names = [m.name for m in ready(train_metrics=both).train_metrics]
        assert names == ["training accuracy", "training rmse"]

    def test_network_is_initialized_and_trainer_created_by_default(self):
        net = gluon.nn.Dense(2, in_units=3)
        with pytest.warns(UserWarning, match="No trainer specified"):
            estimator = Estimator(net, gluon.loss.L2Loss(), initializer=mx.init.One())
        assert net.weight.data().asnumpy().min() == 1
        assert estimator.trainer.learning_rate == 0.001

    def test_initializer_for_an_initialized_network_warns(self):
        with pytest.warns(UserWarning, match="already fully initialized"):
            ready(initializer=mx.init.One())

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"train_metrics": ["acc"]}, "must be a Metric or a list"),
            ({"context": "cpu"}, "must be a Context or a list"),
            ({"batch_processor": 3}, "must contain fit_batch"),
            ({"val_loss": 3}, "loss must be a Loss"),
        ],
    )
    def test_wrong_arguments_raise(self, options, message):
        with pytest.raises(ValueError, match=message):
            ready(**options)

    @pytest.mark.skipif(mx.context.num_gpus() > 0, reason="there is a GPU")
    def test_unavailable_device_raises(self):
        with pytest.raises(AssertionError, match="is not available"):
            ready(context=mx.gpu(0))


class TestFit:
    def test_log_lines_of_an_epoch_with_validation(self, capsys):
        ready(train_metrics=mx.metric.Accuracy()).fit(loader(), loader(), epochs=1)
        assert lines(capsys) == [
            "Training begin: using optimizer SGD with current learning rate V ",
            "Train for 1 epochs.",
            "[Epoch 0] Begin, current learning rate: V",
            "Validation Begin",
            "[Epoch 0] Finished in Ts, validation accuracy: V",
            "[Epoch 0] Finished in Ts, training accuracy: V",
            "Train finished using total Ts with 1 epochs. training accuracy: V",
        ]

    def test_validation_log_lines_contain_the_epoch(self, capsys):
        estimator = ready(train_metrics=mx.metric.Accuracy())
        estimator.fit(loader(), loader(), epochs=3)
        validations = [line for line in lines(capsys) if "validation" in line]
        assert validations == [
            f"[Epoch {n}] Finished in Ts, validation accuracy: V" for n in range(3)
        ]
        estimator.evaluate(loader())
        assert "[Epoch 0] Finished in Ts, validation accuracy: V" in lines(capsys)

    def test_log_lines_at_log_interval(self, capsys):
        ready().fit(loader(), epochs=1, event_handlers=LoggingHandler(log_interval=2))
        assert lines(capsys)[3:5] == [
            "[Epoch 0][Batch 0][Samples 5] time/interval: Ts",
            "[Epoch 0][Batch 2][Samples 15] time/interval: Ts",
        ]

    def test_fit_with_batches_ends_within_an_epoch(self, capsys):
        ready().fit(loader(), batches=6)
        printed = lines(capsys)
        assert printed[1] == "Train for 6 batches."
        assert "with 2 epochs" in printed[-1]

    def test_training_lowers_the_loss(self, capsys):
        estimator = ready(lr=1.0)
        estimator.fit(loader(), epochs=1)
        before = estimator.train_metrics[1].get()[1]
        estimator.fit(loader(), epochs=5)
        assert estimator.train_metrics[1].get()[1] < before

    @pytest.mark.parametrize("how", [{}, {"epochs": 1, "batches": 1}, {"epochs": 0}])
    def test_fit_requires_either_epochs_or_batches(self, how):
        with pytest.raises(ValueError, match="exactly one type of iteration"):
            ready().fit(loader(), **how)

    def test_data_other_than_a_dataloader_raises(self):
        batch = [(mx.nd.ones((5, 4)), mx.nd.ones((5,)))]
        with pytest.raises(ValueError, match="only support input as Gluon DataLoader"):
            ready().fit(batch, epochs=1)
        with pytest.raises(ValueError, match="only support input as Gluon DataLoader"):
            ready().evaluate(batch)

    def test_fit_of_an_empty_loader_raises(self, capsys):
        few = gluon.data.ArrayDataset(mx.nd.ones((2, 4)), mx.nd.ones((2,)))
        empty = gluon.data.DataLoader(few, batch_size=5, last_batch="discard")
        with pytest.raises(ValueError, match="no batches"):
            ready().fit(empty, batches=1)

    def test_fit_on_two_devices_splits_batches(self, capsys):
        net = gluon.nn.Dense(3)
        contexts = [mx.cpu(0), mx.cpu(1)]
        net.initialize(ctx=contexts)
        trainer = gluon.Trainer(net.collect_params(), "sgd")
        seen = []

        class Recorder(BatchEnd):
            def batch_end(self, estimator, *args, **kwargs):
                seen.extend(each.shape for each in kwargs["pred"])

        estimator = Estimator(net, SOFTMAX(), trainer=trainer, context=contexts)
        estimator.fit(loader(4, 4), epochs=1, event_handlers=Recorder())
        assert seen == [(2, 3), (2, 3)]

    def test_evaluate_updates_validation_metrics(self, capsys):
        estimator = ready()
        estimator.evaluate(loader())
        assert 0 <= estimator.val_metrics[0].get()[1] <= 1
        assert np.isnan(estimator.train_metrics[0].get()[1])

    def test_val_net_and_val_loss(self, capsys):
        other = gluon.nn.Dense(1)
        other.initialize()
        estimator = ready(val_net=other, val_loss=gluon.loss.L1Loss(), val_metrics=mx.metric.Loss())
        estimator.evaluate(loader())
        assert np.isfinite(estimator.val_metrics[0].get()[1])


class Diary(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    def __init__(self, pages: list, mark: str = "", priority: float = 0):
        self.pages, self.mark, self.priority = pages, mark, priority

    def _write(self, event, **kwargs):
        self.pages.append((self.mark + event, sorted(kwargs)))

    def train_begin(self, estimator, *args, **kwargs):
        self._write("train_begin", **kwargs)

    def train_end(self, estimator, *args, **kwargs):
        self._write("train_end", **kwargs)

    def epoch_begin(self, estimator, *args, **kwargs):
        self._write("epoch_begin", **kwargs)

    def epoch_end(self, estimator, *args, **kwargs):
        self._write("epoch_end", **kwargs)

    def batch_begin(self, estimator, *args, **kwargs):
        self._write("batch_begin", **kwargs)

    def batch_end(self, estimator, *args, **kwargs):
        self._write("batch_end", **kwargs)


class TestEvents:
    def test_order_and_arguments_of_event_handlers(self, capsys):
        pages = []
        ready().fit(loader(5), epochs=1, event_handlers=[Diary(pages)])
        assert pages == [
            ("train_begin", []),
            ("epoch_begin", []),
            ("batch_begin", ["batch"]),
            ("batch_end", ["batch", "label", "loss", "pred"]),
            ("epoch_end", []),
            ("train_end", []),
        ]

    def test_event_handlers_run_in_order_of_priority(self, capsys):
        pages = []
        handlers = [Diary(pages, "late ", 5), Diary(pages, "early ", -5)]
        ready().fit(loader(5), epochs=1, event_handlers=handlers)
        assert [page[0] for page in pages[:2]] == ["early train_begin", "late train_begin"]

    def test_evaluate_triggers_no_train_events(self, capsys):
        pages = []
        ready().evaluate(loader(5), event_handlers=Diary(pages))
        assert [page[0] for page in pages] == [
            "epoch_begin",
            "batch_begin",
            "batch_end",
            "epoch_end",
        ]

    def test_handlers_returning_true_stop_the_epoch_or_training(self, capsys):
        class Stop(BatchEnd, EpochEnd):
            def __init__(self, at):
                self.at, self.batches, self.epochs = at, 0, 0

            def batch_end(self, *args, **kwargs):
                self.batches += 1
                return self.at == "batch"

            def epoch_end(self, *args, **kwargs):
                self.epochs += 1
                return self.at == "epoch"

        batch, epoch = Stop("batch"), Stop("epoch")
        ready().fit(loader(), epochs=2, event_handlers=batch)
        ready().fit(loader(), epochs=2, event_handlers=epoch)
        assert (batch.batches, batch.epochs) == (2, 2)
        assert (epoch.batches, epoch.epochs) == (4, 1)

    def test_update_handler_can_be_replaced(self, capsys):
        class Never(GradientUpdateHandler):
            def batch_end(self, estimator, *args, **kwargs):
                pass

        estimator = ready()
        estimator.evaluate(loader())
        before = estimator.net[0].weight.data().asnumpy()
        estimator.fit(loader(), epochs=1, event_handlers=Never())
        assert np.array_equal(before, estimator.net[0].weight.data().asnumpy())

    def test_custom_batch_processor(self, capsys):
        class Zero(BatchProcessor):
            def fit_batch(self, estimator, train_batch, batch_axis=0):
                data, label = train_batch
                return super().fit_batch(estimator, (data * 0, label), batch_axis)

        estimator = ready(batch_processor=Zero())
        estimator.evaluate(loader())
        before = estimator.net[0].weight.data().asnumpy()
        estimator.fit(loader(), epochs=1)
        assert np.array_equal(before, estimator.net[0].weight.data().asnumpy())
        assert estimator.net[0].bias.data().asnumpy().any()

    def test_validation_handler_periods(self):
        calls = []

        def evaluate(val_data, batch_axis, event_handlers):
            calls.append((val_data, batch_axis, event_handlers))

        estimator = ready()
        estimator.logger.handlers.clear()
        handler = ValidationHandler("data", evaluate, epoch_period=2, batch_period=3)
        estimator.fit(loader(), epochs=2, event_handlers=handler)
        assert calls == [("data", 0, None)] * 3

    def test_unknown_metrics_and_handlers_raise(self):
        estimator = ready()
        with pytest.raises(ValueError, match="outside of the known training and validation"):
            estimator.fit(loader(), epochs=1, event_handlers=MetricHandler(mx.metric.Accuracy()))
        with pytest.raises(ValueError, match="handlers must be an EventHandler"):
            estimator.fit(loader(), epochs=1, event_handlers=[3])

    def test_stopping_handler_uses_max_epoch_and_max_batch_of_fit(self):
        handler, estimator = StoppingHandler(2, 3), ready()
        estimator.max_epoch, estimator.max_batch = 4, None
        handler.train_begin(estimator)
        assert (handler.max_epoch, handler.max_batch) == (4, None)

    def test_invalid_log_interval_raises(self):
        with pytest.raises(ValueError, match="integer or string 'epoch'"):
            LoggingHandler(log_interval="batch")


class TestEarlyStopping:
    def test_early_stopping_patience(self, capsys):
        estimator = ready(lr=0.0)
        handler = EarlyStoppingHandler(estimator.train_metrics[1], patience=2, mode="min")
        estimator.fit(loader(), epochs=9, event_handlers=handler)
        assert (handler.wait, handler.stopped_epoch, handler.current_epoch) == (2, 2, 3)
        assert lines(capsys)[-2:] == [
            "[Epoch 2] EarlyStoppingHanlder: early stopping due to "
            "training softmaxcrossentropyloss not improving",
            "Train finished using total Ts with 3 epochs. training accuracy: V, "
            "training softmaxcrossentropyloss: V",
        ]

    def test_early_stopping_min_delta(self, capsys):
        estimator = ready()
        handler = EarlyStoppingHandler(estimator.train_metrics[1], min_delta=9, mode="min")
        estimator.fit(loader(), epochs=9, event_handlers=handler)
        assert handler.stopped_epoch == 1

    def test_early_stopping_baseline(self, capsys):
        estimator = ready()
        handler = EarlyStoppingHandler(estimator.train_metrics[0], mode="max", baseline=2.0)
        estimator.fit(loader(), epochs=9, event_handlers=handler)
        assert handler.current_epoch == 1

    def test_early_stopping_on_a_metric_without_updates_warns(self, capsys):
        estimator = ready()
        handler = EarlyStoppingHandler(estimator.val_metrics[0], mode="max")
        with pytest.warns(RuntimeWarning, match="validation accuracy is not updated"):
            estimator.fit(loader(), epochs=1, event_handlers=handler)

    def test_early_stopping_mode_is_inferred_from_the_metric(self):
        with pytest.warns(UserWarning, match="a greater loss is treated as better. Pass mode="):
            handler = EarlyStoppingHandler(mx.metric.Loss())
        assert handler.monitor_op is np.greater
        with pytest.raises(ValueError, match="as monitor"):
            EarlyStoppingHandler("acc")


class TestCheckpoints:
    def test_checkpoint_names_and_max_checkpoints(self, tmp_path, capsys):
        handler = CheckpointHandler(str(tmp_path), max_checkpoints=2)
        ready().fit(loader(), epochs=3, event_handlers=handler)
        assert files(tmp_path) == [
            "model-epoch1batch8.params",
            "model-epoch1batch8.states",
            "model-epoch2batch12.params",
            "model-epoch2batch12.states",
            "model-symbol.json",
        ]

    def test_checkpoints_by_batch_period(self, tmp_path, capsys):
        handler = CheckpointHandler(str(tmp_path), "m", epoch_period=None, batch_period=2)
        ready().fit(loader(), batches=4, event_handlers=handler)
        assert handler.saved_checkpoints == ["m-epoch0batch1", "m-epoch0batch3"]

    def test_save_best_checkpoint(self, tmp_path, capsys):
        estimator = ready()
        handler = CheckpointHandler(
            str(tmp_path), monitor=estimator.train_metrics[1], save_best=True, mode="min", verbose=1
        )
        estimator.fit(loader(), epochs=1, event_handlers=handler)
        assert lines(capsys)[3:5] == [
            f"[Epoch 0] CheckpointHandler: trained total 5 batches, saving model at {tmp_path} "
            "with prefix: model-epoch0batch4",
            "[Epoch 0] CheckpointHandler: training softmaxcrossentropyloss improved from V to V, "
            f"updating best model at {tmp_path} with prefix: model-best",
        ]
        assert "model-best.params" in files(tmp_path)
        assert handler.best == estimator.train_metrics[1].get()[1]

    def test_symbol_file_is_not_saved_for_non_hybrid_networks(self, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        handler = CheckpointHandler(".")
        ready(gluon.nn.Sequential).fit(loader(), epochs=1, event_handlers=handler)
        said = capsys.readouterr().out
        assert "Model architecture(symbol file) is not saved" in said
        assert "save model architecture as ./model-symbol.json." in said
        assert "model-symbol.json" not in files(tmp_path)

    @pytest.mark.parametrize("unit", ["epochs", "batches"])
    def test_resumed_training_equals_uninterrupted_training(self, tmp_path, capsys, unit):
        first, all_of_it = (1, 3) if unit == "epochs" else (3, 6)
        period = {} if unit == "epochs" else {"epoch_period": None, "batch_period": 3}
        whole, part, rest = ready(), ready(), ready()
        whole.fit(loader(), **{unit: all_of_it})
        part.fit(
            loader(), event_handlers=CheckpointHandler(str(tmp_path), **period), **{unit: first}
        )
        capsys.readouterr()
        again = CheckpointHandler(str(tmp_path), resume_from_checkpoint=True, **period)
        rest.fit(loader(), event_handlers=again, **{unit: all_of_it})
        last = {"epochs": "epoch 0 batch 4", "batches": "epoch 0 batch 2"}[unit]
        assert lines(capsys)[0] == (
            f"CheckpointHandler: Checkpoint resumed from {last}, continue to train for "
            f"{all_of_it - first} {unit} "
        )
        expected = {"epochs": "model-epoch2batch12", "batches": "model-epoch1batch5"}[unit]
        assert again.saved_checkpoints[-1] == expected
        if unit == "epochs":  # after batches, the data starts again at its first batch
            weights = [each.net[0].weight.data().asnumpy() for each in (whole, rest)]
            np.testing.assert_allclose(*weights, rtol=1e-6)

    def test_resume_after_the_last_epoch_raises(self, tmp_path, capsys):
        estimator = ready()
        estimator.fit(loader(), epochs=1, event_handlers=CheckpointHandler(str(tmp_path)))
        handler = CheckpointHandler(str(tmp_path), resume_from_checkpoint=True)
        with pytest.raises(ValueError, match="maximum number of epoch 1 reached"):
            estimator.fit(loader(), epochs=1, event_handlers=handler)
        with pytest.raises(AssertionError, match="same type of period"):
            estimator.fit(loader(), batches=9, event_handlers=handler)

    def test_resume_without_a_checkpoint_trains_from_scratch(self, tmp_path, capsys):
        handler = CheckpointHandler(str(tmp_path), resume_from_checkpoint=True)
        ready().fit(loader(), epochs=1, event_handlers=handler)
        printed = lines(capsys)[0]
        assert (
            printed == "CheckpointHandler: No checkpoint found, training from scratch for 1 epochs"
        )

    def test_save_best_without_a_monitor_raises(self, tmp_path):
        with pytest.raises(ValueError, match="To save best model only"):
            CheckpointHandler(str(tmp_path), save_best=True)


def test_suggested_metric_for_a_loss():
    assert utils._suggest_metric_for_loss(gluon.loss.L2Loss()) is None
    assert isinstance(utils._suggest_metric_for_loss(SOFTMAX()), mx.metric.Accuracy)


LOSS = gluon.loss.SoftmaxCrossEntropyLoss


class Killed(BaseException):
    pass


class Killer(BatchEnd):
    """Raises after some batches, to simulate a kill."""

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
    # Bit for bit, as `resume` promises: the same kernels run on arrays of the same shapes.
    for a, b in zip(one[0], other[0], strict=True):
        np.testing.assert_array_equal(a, b)
    assert one[1:] == other[1:]


@pytest.mark.parametrize("die_after", [3, 6, 10, 12])
@pytest.mark.parametrize("every", [None, 1, 2])
def test_killed_training_resumes_to_the_same_result(tmp_path, die_after, every):
    with pytest.raises(Killed):
        train(tmp_path, die_after, every=every)
    same(train(tmp_path, every=every), train())


def test_killed_training_by_batches_resumes_to_the_same_result(tmp_path):
    length = {"batches": 12}
    with pytest.raises(Killed):
        train(tmp_path, 8, length, every=3)
    same(train(tmp_path, length=length, every=3), train(length=length))


def test_logged_epochs_continue_after_a_resume(tmp_path, capsys):
    with pytest.raises(Killed):
        train(tmp_path, 7)
    capsys.readouterr()
    train(tmp_path)
    text = capsys.readouterr().out
    assert "[Epoch 0]" not in text and "[Epoch 1] Begin" in text and "[Epoch 2] Finished" in text


def test_finished_training_resumes_with_more_epochs(tmp_path):
    train(tmp_path, length={"epochs": 2})
    same(train(tmp_path, length={"epochs": 2}), train(length={"epochs": 2}))
    same(train(tmp_path, length={"epochs": 4}), train(length={"epochs": 4}))


def test_resume_every_without_a_folder_raises():
    with pytest.raises(ValueError, match="needs resume=folder"):
        train(every=2)
