"""Adam and its kin: steps along a running mean of the gradient over a running size of it."""

from __future__ import annotations

from math import sqrt
from typing import Any

import torch

from ..ndarray import NDArray
from ..ops import registry
from ..ops.training.list_steps import adam_step_, adamax_, decayed
from .base import Index, register
from .lists import Batch, ListOptimizer, zero_state


@register
class Adam(ListOptimizer):
    """Adam: ``w -= lr' m / (sqrt(v) + eps)``.

    ``m = b1 m + (1 - b1) g``;  ``v = b2 v + (1 - b2) g^2``, where
    ``g = clip(rescale_grad g + wd w)``, and ``lr' = lr sqrt(1 - b2^t) / (1 - b1^t)`` at update t.

    Parameters
    ----------
    learning_rate : float
        The rate; also that of a scheduler that is given.
    beta1, beta2 : float
        How much of the running mean and of the running square stays.
    epsilon : float
        Keeps the divisor from 0.
    lazy_update : bool
        With a row_sparse gradient change only the rows that it has.

    >>> w = mx.nd.array([1.0, 1.0])
    >>> adam = mx.optimizer.Adam(learning_rate=0.5)
    >>> adam.update(0, w, mx.nd.array([7.0, -0.25]), adam.create_state(0, w))
    >>> w.asnumpy().round(4)
    array([0.5, 1.5], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        lazy_update: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lazy_update = lazy_update

    def create_state(self, index: Index, weight: NDArray) -> tuple[NDArray, NDArray]:
        """Return the running mean and the running square."""
        return zero_state(weight), zero_state(weight)

    def _step_batch(self, batch: Batch) -> None:
        """Do Adam's step, with bias correction in the rate."""
        correction = sqrt(1.0 - self.beta2**batch.t) / (1.0 - self.beta1**batch.t)
        adam_step_(
            batch.weights,
            batch.grads,
            *batch.states,
            lr=batch.lr * correction,
            wd=batch.wd,
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            **self._gradient,
        )


@register
class Adamax(ListOptimizer):
    """Adam with the largest gradient in place of the root mean square.

    ``g = clip(rescale_grad g + wd w)``;  ``m = b1 m + (1 - b1) g``;  ``u = max(b2 u, |g|)``;
    ``w -= lr / (1 - b1^t) m / u``. Where no gradient came yet, a weight stays; in 1.9.1 it
    becomes nan.

    Parameters
    ----------
    beta1, beta2 : float
        How much of the running mean and of the largest gradient stays.
    """

    create_state = Adam.create_state

    def __init__(
        self,
        learning_rate: float = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2

    def _step_batch(self, batch: Batch) -> None:
        """Do ``w -= lr / (1 - b1^t) m / u``."""
        adamax_(
            batch.weights,
            batch.grads,
            *batch.states,
            lr=batch.lr / (1.0 - self.beta1**batch.t),
            wd=batch.wd,
            beta1=self.beta1,
            beta2=self.beta2,
            **self._gradient,
        )


@register
class Nadam(ListOptimizer):
    """Adam with Nesterov's look ahead and a momentum that grows along a schedule.

    With ``u_t = b1 (1 - 0.96^(t schedule_decay) / 2)`` and ``U_t`` the product of all ``u`` so
    far: ``w -= lr ((1 - u_t) g / (1 - U_t) + u_t+1 m / (1 - U_t u_t+1)) / (sqrt(v') + eps)``,
    where ``v'`` is Adam's corrected square. As in 1.9.1 one product serves all parameters.

    Parameters
    ----------
    beta1, beta2 : float
        How much of the running mean and of the running square stays.
    epsilon : float
        Keeps the divisor from 0.
    schedule_decay : float
        How fast the momentum grows.
    """

    create_state = Adam.create_state
    in_order = True

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        schedule_decay: float = 0.004,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.schedule_decay = schedule_decay
        self.m_schedule = 1.0

    def _momentum(self, t: int) -> float:
        return self.beta1 * (1.0 - 0.5 * 0.96 ** (t * self.schedule_decay))

    def _step_batch(self, batch: Batch) -> None:
        """Do Nadam's step, weight after weight."""
        lists = (batch.weights, batch.grads, *batch.states)
        now, ahead = self._momentum(batch.t), self._momentum(batch.t + 1)
        root = sqrt(1.0 - self.beta2**batch.t)  # corrects the square, taken out of its root
        for weight, grad, mean, square in zip(*lists, strict=True):
            (grad,) = decayed([grad], [weight], self.rescale_grad, batch.wd, self._limit)
            self.m_schedule *= now
            mean.lerp_(grad, 1.0 - self.beta1)
            square.mul_(self.beta2).addcmul_(grad, grad, value=1.0 - self.beta2)
            direction = torch.mul(grad, (1.0 - now) / (1.0 - self.m_schedule))
            direction.add_(mean, alpha=ahead / (1.0 - self.m_schedule * ahead))
            below = square.sqrt().add_(self.epsilon * root)
            weight.addcdiv_(direction, below, value=-batch.lr * root)


@register
class FTML(ListOptimizer):
    """Follow the moving leader, as `ftml_update` tells it.

    Parameters
    ----------
    beta1, beta2 : float
        How much of the leader and of the running square stays.
    epsilon : float
        Keeps the divisor from 0.
    """

    def __init__(
        self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def create_state(self, index: Index, weight: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Return the last divisor, the running square and the leader."""
        return zero_state(weight), zero_state(weight), zero_state(weight)

    def _step_batch(self, batch: Batch) -> None:
        """Do `ftml_update`, weight after weight."""
        update = registry.get("ftml_update").function
        numbers = {
            "lr": batch.lr,
            "wd": batch.wd,
            "beta1": self.beta1,
            "beta2": self.beta2,
            "epsilon": self.epsilon,
            "t": batch.t,
            "rescale_grad": self.rescale_grad,
            "clip_grad": self._limit,
        }
        for weight, *others in zip(batch.weights, batch.grads, *batch.states, strict=True):
            weight.copy_(update(weight, *others, **numbers))
