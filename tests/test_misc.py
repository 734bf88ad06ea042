"""The oldest learning-rate schedules."""

from __future__ import annotations

import pytest

from mxnet.misc import FactorScheduler, LearningRateScheduler


def test_factor_scheduler():
    schedule = FactorScheduler(step=3, factor=0.5)
    schedule.base_lr = 8.0
    assert [schedule(i) for i in (0, 2, 3, 6)] == [8.0, 8.0, 4.0, 2.0]
    with pytest.raises(ValueError, match="step"):
        FactorScheduler(0)
    with pytest.raises(ValueError, match="Factor"):
        FactorScheduler(1, 1.0)
    with pytest.raises(NotImplementedError):
        LearningRateScheduler()(1)
