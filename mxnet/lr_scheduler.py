"""Learning rate schedulers.

A scheduler maps the number of updates to the learning rate of the next update. All support warm-up:
in the first ``warmup_steps`` updates the rate increases from ``warmup_begin_lr`` to ``base_lr``
("linear") or is ``warmup_begin_lr`` ("constant").
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from math import cos, pi
from typing import Literal

from .error import InvalidType
from .ops.documentation import inherits_parameters

__all__ = [
    "CosineScheduler",
    "FactorScheduler",
    "LRScheduler",
    "MultiFactorScheduler",
    "PolyScheduler",
]

WarmupMode = Literal["linear", "constant"]


DEFAULT_BASE_LR = 0.01  # default base rate


class LRScheduler:
    """Base class of all schedulers; implements warm-up.

    Parameters
    ----------
    base_lr
        The learning rate after warm-up; overridden by the optimizer's learning rate.
    warmup_steps
        Number of updates of the warm-up.
    warmup_begin_lr
        Initial learning rate of the warm-up, not above `base_lr`.
    warmup_mode
        "linear" or "constant".

    >>> class Halving(mx.lr_scheduler.LRScheduler):
    ...     def __call__(self, num_update):
    ...         return self.base_lr / 2 ** num_update
    >>> Halving(base_lr=1.0)(3)
    0.125
    """

    def __init__(
        self,
        base_lr: float = DEFAULT_BASE_LR,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: WarmupMode = "linear",
    ) -> None:
        if not isinstance(warmup_steps, int):
            raise InvalidType(f"warmup_steps must be an integer, got {warmup_steps!r}")
        if warmup_begin_lr > base_lr:
            raise ValueError(
                "Base lr has to be higher than warmup_begin_lr: "
                f"base_lr={base_lr}, warmup_begin_lr={warmup_begin_lr}"
            )
        if warmup_steps < 0:
            raise ValueError(f"Warmup steps has to be positive or 0, got {warmup_steps}")
        if warmup_mode not in ("linear", "constant"):
            raise ValueError(
                f"Supports only linear and constant modes of warmup, got {warmup_mode!r}"
            )
        self.base_lr = base_lr
        self.warmup_steps = warmup_steps
        self.warmup_final_lr = base_lr
        self.warmup_begin_lr = warmup_begin_lr
        self.warmup_mode = warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """Return the learning rate at an update of the warm-up.

        >>> LRScheduler(base_lr=1.0, warmup_steps=4).get_warmup_lr(1)
        0.25
        """
        if num_update >= self.warmup_steps:
            raise ValueError(
                f"warm-up takes {self.warmup_steps} updates; there is no update {num_update} in it"
            )
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        rise = (self.warmup_final_lr - self.warmup_begin_lr) * num_update / self.warmup_steps
        return self.warmup_begin_lr + rise

    def __call__(self, num_update: int) -> float:
        """Return the learning rate of this update; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must override __call__(num_update)")


def _check_factor(factor: float) -> None:
    if factor > 1.0:
        raise ValueError(f"Factor must be no more than 1 to make lr reduce, got {factor}")


@inherits_parameters
class FactorScheduler(LRScheduler):
    """Multiply the rate by ``factor`` every ``step`` updates, down to ``stop_factor_lr``.

    Parameters
    ----------
    step
        Number of updates between steps.
    factor
        Factor of the learning rate at each step.
    stop_factor_lr
        Minimum learning rate.
    base_lr
        The learning rate after warm-up; overridden by the optimizer's learning rate.
    warmup_mode
        ``'linear'``, or ``'constant'`` at the first rate.

    >>> schedule = FactorScheduler(step=2, factor=0.5, base_lr=1.0)
    >>> [schedule(n) for n in range(1, 7)]
    [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    """

    def __init__(
        self,
        step: int,
        factor: float = 1,
        stop_factor_lr: float = 1e-8,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: WarmupMode = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if step < 1:
            raise ValueError(f"Schedule step must be greater or equal than 1 round, got {step}")
        _check_factor(factor)
        self.step = step
        self.factor = factor
        self.stop_factor_lr = stop_factor_lr
        self.count = 0

    def __call__(self, num_update: int) -> float:
        """Return the learning rate of this update."""
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        # A loop instead of a formula, because base_lr may be changed by the user in between.
        while num_update > self.count + self.step:
            self.count += self.step
            self.base_lr *= self.factor
            if self.base_lr < self.stop_factor_lr:
                self.base_lr = self.stop_factor_lr
                logging.info(
                    "Update[%d]: now learning rate arrived at %0.5e, will not change in the future",
                    num_update,
                    self.base_lr,
                )
            else:
                logging.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


@inherits_parameters
class MultiFactorScheduler(LRScheduler):
    """Multiply the rate by ``factor`` after each of the given numbers of updates.

    Parameters
    ----------
    step
        Increasing numbers of updates after which the rate changes.
    factor
        Factor of the learning rate at each step.
    base_lr
        The learning rate after warm-up; overridden by the optimizer's learning rate.
    warmup_mode
        ``'linear'``, or ``'constant'`` at the first rate.

    >>> schedule = MultiFactorScheduler(step=[2, 5], factor=0.5, base_lr=1.0)
    >>> [schedule(n) for n in range(1, 7)]
    [1.0, 1.0, 0.5, 0.5, 0.5, 0.25]
    """

    def __init__(
        self,
        step: Sequence[int],
        factor: float = 1,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: WarmupMode = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(step, list | tuple) or not step:
            raise InvalidType(f"step must be a list of numbers of updates, got {step!r}")
        if any(later <= earlier for earlier, later in itertools.pairwise(step)):
            raise ValueError(f"Schedule step must be an increasing integer list, got {step}")
        if step[0] < 1:
            raise ValueError(f"Schedule step must be greater or equal than 1 round, got {step}")
        _check_factor(factor)
        self.step = list(step)
        self.cur_step_ind = 0
        self.factor = factor
        self.count = 0

    def __call__(self, num_update: int) -> float:
        """Return the learning rate of this update."""
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            logging.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


class _DecreasingScheduler(LRScheduler):
    """Decreases from ``base_lr`` to ``final_lr``; after ``max_update`` the rate is constant."""

    def __init__(
        self,
        max_update: int,
        base_lr: float,
        final_lr: float,
        warmup_steps: int,
        warmup_begin_lr: float,
        warmup_mode: WarmupMode,
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(max_update, int):
            raise InvalidType(f"max_update must be an integer, got {max_update!r}")
        if max_update < 1:
            raise ValueError(
                f"maximum number of updates must be strictly positive, got {max_update}"
            )
        self.base_lr_orig = base_lr
        self.max_update = max_update
        self.final_lr = final_lr
        self.max_steps = max_update - warmup_steps

    def _remaining(self, progress: float) -> float:
        """Return the fraction of the decrease that remains at a progress from 0 to 1."""
        raise NotImplementedError

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        if num_update <= self.max_update:
            done = num_update - self.warmup_steps
            progress = done / self.max_steps if self.max_steps else 1.0
            span = self.base_lr_orig - self.final_lr
            self.base_lr = self.final_lr + span * self._remaining(progress)
        return self.base_lr


@inherits_parameters
class PolyScheduler(_DecreasingScheduler):
    """Decrease the rate by a power: ``final + (base - final) (1 - n / max_update) ** pwr``.

    Parameters
    ----------
    max_update
        Number of updates after which the rate is `final_lr`.
    base_lr
        The learning rate after warm-up; overridden by the optimizer's learning rate.
    pwr
        Exponent of the decay.
    final_lr
        Final learning rate.
    warmup_mode
        ``'linear'``, or ``'constant'`` at the first rate.

    >>> schedule = PolyScheduler(max_update=4, base_lr=1.0, pwr=2)
    >>> [schedule(n) for n in range(6)]
    [1.0, 0.5625, 0.25, 0.0625, 0.0, 0.0]
    """

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        pwr: float = 2,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: WarmupMode = "linear",
    ) -> None:
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.power = pwr

    def _remaining(self, progress: float) -> float:
        return (1 - progress) ** self.power


@inherits_parameters
class CosineScheduler(_DecreasingScheduler):
    """Decrease the rate by half a cosine: ``final + (base - final) (1 + cos(pi n / max)) / 2``.

    Parameters
    ----------
    max_update
        Number of updates after which the rate is `final_lr`.
    base_lr
        The learning rate after warm-up; overridden by the optimizer's learning rate.
    final_lr
        Final learning rate.
    warmup_mode
        ``'linear'``, or ``'constant'`` at the first rate.

    >>> schedule = CosineScheduler(max_update=4, base_lr=1.0)
    >>> [round(schedule(n), 4) for n in range(6)]
    [1.0, 0.8536, 0.5, 0.1464, 0.0, 0.0]
    """

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: WarmupMode = "linear",
    ) -> None:
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)

    def _remaining(self, progress: float) -> float:
        return (1 + cos(pi * progress)) / 2
