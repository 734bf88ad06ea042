"""Learning-rate schedules of early MXNet, kept for programs that import them from here."""

from __future__ import annotations

import logging

from ..error import ValueError


class LearningRateScheduler:
    """A schedule: called with a number of updates, it returns the learning rate."""

    def __init__(self) -> None:
        self.base_lr = 0.01

    def __call__(self, iteration: int) -> float:
        raise NotImplementedError("must override this")


class FactorScheduler(LearningRateScheduler):
    """Multiply the rate by `factor` every `step` updates: ``lr = base_lr * factor**(n // step)``.

    >>> schedule = FactorScheduler(step=10, factor=0.5)
    >>> schedule.base_lr = 1.0
    >>> schedule(5), schedule(10), schedule(25)
    (1.0, 0.5, 0.25)
    """

    def __init__(self, step: int, factor: float = 0.1) -> None:
        super().__init__()
        if step < 1:
            raise ValueError("Schedule step must be greater or equal than 1 round")
        if factor >= 1.0:
            raise ValueError("Factor must be less than 1 to make lr reduce")
        self.step, self.factor = step, factor
        self.old_lr = self.base_lr
        self.init = False

    def __call__(self, iteration: int) -> float:
        """Return the learning rate after `iteration` updates, and log when it changes."""
        if not self.init:
            self.init, self.old_lr = True, self.base_lr
        rate = self.base_lr * self.factor ** (iteration // self.step)
        if rate != self.old_lr:
            self.old_lr = rate
            logging.info("At Iteration [%d]: Switch to new learning rate %.5f", iteration, rate)
        return rate
