"""Schedulers give the learning rates of MXNet 1.9.1."""

from __future__ import annotations

import json

import pytest
from mxnet.misc import FactorScheduler, LearningRateScheduler

from mxnet import lr_scheduler
from tests.golden import HERE

ROWS = json.loads((HERE / "lr_schedulers.json").read_text())


@pytest.mark.parametrize(("name", "arguments", "rates"), ROWS)
def test_learning_rates_match_mxnet(name, arguments, rates):
    schedule = getattr(lr_scheduler, name)(**arguments)
    assert [schedule(n) for n in range(len(rates))] == pytest.approx(rates, rel=1e-9)


def test_skipped_updates_apply_all_steps():
    schedule = lr_scheduler.FactorScheduler(step=5, factor=0.5, base_lr=1.0)
    assert schedule(20) == 0.125
    assert schedule(3) == 0.125  # the rate does not go back up


def test_base_lr_can_be_set():
    schedule = lr_scheduler.FactorScheduler(step=2, factor=0.5)
    schedule.base_lr = 8.0
    assert [schedule(n) for n in (1, 3, 5)] == [8.0, 4.0, 2.0]


def test_cosine_scheduler_with_only_warmup_steps_returns_final_lr():
    schedule = lr_scheduler.CosineScheduler(5, base_lr=1.0, final_lr=0.1, warmup_steps=5)
    assert schedule(5) == pytest.approx(0.1)


def test_learning_rate_changes_are_logged(caplog):
    caplog.set_level("INFO")
    lr_scheduler.FactorScheduler(step=5, factor=0.5, base_lr=1.0)(6)
    assert caplog.messages == ["Update[6]: Change learning rate to 5.00000e-01"]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda s: s.LRScheduler(warmup_steps=-1), ValueError, "positive or 0"),
        (lambda s: s.LRScheduler(warmup_steps=1.5), TypeError, "integer"),
        (lambda s: s.LRScheduler(0.1, warmup_begin_lr=0.2), ValueError, "higher than"),
        (lambda s: s.LRScheduler(warmup_mode="x"), ValueError, "linear and constant"),
        (lambda s: s.LRScheduler()(3), NotImplementedError, "override"),
        (lambda s: s.FactorScheduler(0), ValueError, "than 1 round"),
        (lambda s: s.FactorScheduler(1, factor=1.5), ValueError, "no more than 1"),
        (lambda s: s.MultiFactorScheduler([3, 3]), ValueError, "increasing"),
        (lambda s: s.MultiFactorScheduler([0, 3]), ValueError, "than 1 round"),
        (lambda s: s.MultiFactorScheduler([]), TypeError, "list"),
        (lambda s: s.PolyScheduler(0), ValueError, "strictly positive"),
        (lambda s: s.CosineScheduler(1.5), TypeError, "integer"),
    ],
)
def test_invalid_arguments_raise(make, error, message):
    with pytest.raises(error, match=message):
        make(lr_scheduler)


# -- the oldest learning-rate schedules ---------------------------------------------------------


def test_legacy_factor_scheduler():
    schedule = FactorScheduler(step=3, factor=0.5)
    schedule.base_lr = 8.0
    assert [schedule(i) for i in (0, 2, 3, 6)] == [8.0, 8.0, 4.0, 2.0]
    with pytest.raises(ValueError, match="step"):
        FactorScheduler(0)
    with pytest.raises(ValueError, match="Factor"):
        FactorScheduler(1, 1.0)
    with pytest.raises(NotImplementedError):
        LearningRateScheduler()(1)
