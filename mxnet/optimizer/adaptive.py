"""Optimizers with adaptive rates: AdaGrad, AdaDelta, RMSProp, Ftrl, Adam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from ..error import MXNetError
from ..ndarray import NDArray
from ..ops.training.adam import adam, adamax, ftml, nadam
from ..ops.training.adaptive import adadelta, adagrad, ftrl, rmsprop, rmspropalex
from ..ops.training.rules import Rule
from .base import Index, register
from .multi_tensor import Batch, ListOptimizer


@register
class Adam(ListOptimizer):
    """Adam: ``w -= lr' m / (sqrt(v) + eps)``.

    ``m = b1 m + (1 - b1) g``;  ``v = b2 v + (1 - b2) g^2``, where
    ``g = clip(rescale_grad g + wd w)``, and ``lr' = lr sqrt(1 - b2^t) / (1 - b1^t)`` at update t.

    Parameters
    ----------
    learning_rate : float
        The learning rate; also set as base rate of a scheduler.
    beta1, beta2 : float
        Decay rates of the running means of gradients and of their squares.
    epsilon : float
        Constant added to the denominator to avoid division by zero.
    lazy_update : bool
        Whether to update only the rows of a row_sparse gradient.

    >>> w = mx.nd.array([1.0, 1.0])
    >>> adam = mx.optimizer.Adam(learning_rate=0.5)
    >>> adam.update(0, w, mx.nd.array([7.0, -0.25]), adam.create_state(0, w))
    >>> w.asnumpy().round(4)
    array([0.5, 1.5], dtype=float32)
    """

    shards_by = "rows"
    rule = adam

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
        """Return the running means of gradients and of their squares."""
        return self._zero_state(weight), self._zero_state(weight)

    def _numbers(self, batch: Batch) -> dict[str, float]:
        return {"lr": batch.lr * bias_correction(self.beta1, self.beta2, batch.t)}


def bias_correction(beta1: float, beta2: float, t: int) -> float:
    """Return the factor of the rate that corrects the bias of moments initialized to 0.

    >>> bias_correction(0.5, 0.75, 1)
    1.0
    """
    return sqrt(1.0 - beta2**t) / (1.0 - beta1**t)


@register
class Adamax(ListOptimizer):
    """Adam based on the infinity norm of past gradients.

    ``g = clip(rescale_grad g + wd w)``;  ``m = b1 m + (1 - b1) g``;  ``u = max(b2 u, |g|)``;
    ``w -= lr / (1 - b1^t) m / u``. A weight without any gradient so far is unchanged; in 1.9.1 it
    becomes NaN.

    Parameters
    ----------
    learning_rate
        The learning rate ``lr``.
    beta1, beta2 : float
        Decay rates of the running mean and of the infinity norm.

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.Adamax()
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    shards_by = "rows"
    rule = adamax
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

    def _numbers(self, batch: Batch) -> dict[str, float]:
        return {"lr": batch.lr / (1.0 - self.beta1**batch.t)}


@register
class Nadam(ListOptimizer):
    """Adam with Nesterov momentum and a momentum schedule.

    With ``u_t = b1 (1 - 0.96^(t schedule_decay) / 2)`` and ``U_t`` the product of all ``u`` so
    far: ``w -= lr ((1 - u_t) g / (1 - U_t) + u_t+1 m / (1 - U_t u_t+1)) / (sqrt(v') + eps)``,
    where ``v'`` is Adam's corrected square. As in 1.9.1, all parameters share one product.

    Parameters
    ----------
    learning_rate
        The learning rate ``lr``.
    beta1, beta2 : float
        Decay rates of the running means of gradients and of their squares.
    epsilon : float
        Constant added to the denominator to avoid division by zero.
    schedule_decay : float
        Rate of the momentum schedule.

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.Nadam()
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    rule = nadam
    create_state = Adam.create_state
    _products: Mapping[Index, float] = {}  # of the momentums, for the parameters of this step

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

    def _step_all(  # pyright: ignore[reportIncompatibleMethodOverride] (passes the rest on)
        self, indices: Sequence[Index], *args: Any
    ) -> None:
        """Multiply the product parameter by parameter, whatever batches they step in."""
        products = {}
        for index in indices:
            self.m_schedule *= self._momentum(self._index_update_count[index])
            products[index] = self.m_schedule
        self._products = products
        try:
            super()._step_all(indices, *args)
        finally:
            del self._products

    def _numbers(self, batch: Batch) -> dict[str, Any]:
        now, ahead = self._momentum(batch.t), self._momentum(batch.t + 1)
        root = sqrt(1.0 - self.beta2**batch.t)  # corrects the square, taken out of its root
        products = [self._products[index] for index in batch.indices]
        return {
            "epsilon": self.epsilon * root,
            "grad_lr": [batch.lr * root * (1.0 - now) / (1.0 - u) for u in products],
            "mean_lr": [batch.lr * root * ahead / (1.0 - u * ahead) for u in products],
        }


@register
class FTML(ListOptimizer):
    """Follow the moving leader; see `ftml_update` for the formula.

    Parameters
    ----------
    beta1, beta2 : float
        Decay rates of the leader and of the running mean of squares.
    epsilon : float
        Constant added to the denominator to avoid division by zero.

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.FTML(learning_rate=0.1)
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    shards_by = "rows"
    rule = ftml

    def __init__(
        self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def create_state(self, index: Index, weight: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Return the last divisor, the running mean of squares and the leader."""
        return self._zero_state(weight), self._zero_state(weight), self._zero_state(weight)


@register
class AdaGrad(ListOptimizer):
    """AdaGrad: ``h += g^2``;  ``w -= lr (g / sqrt(h + eps) + wd w)``.

    ``g = clip(rescale_grad g)``. With a row_sparse gradient only its rows are updated, and weight
    decay is not allowed.

    Parameters
    ----------
    eps : float
        Constant added to the denominator to avoid division by zero.

    >>> w = mx.nd.array([1.0])
    >>> adagrad = mx.optimizer.AdaGrad(learning_rate=0.5)
    >>> adagrad.update(0, w, mx.nd.array([4.0]), adagrad.create_state(0, w))
    >>> w.asnumpy()
    array([0.5], dtype=float32)
    """

    shards_by = "rows"
    rule = adagrad
    lazy_update = True

    def __init__(self, eps: float = 1e-7, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Index, weight: NDArray) -> NDArray:
        """Return the sum of squares."""
        return self._zero_state(weight)

    def _update_sparse(  # pyright: ignore[reportIncompatibleMethodOverride] (passes the rest on)
        self, index: Index, weight: NDArray, grad: NDArray, *rest: Any
    ) -> None:
        if weight.stype == "csr" and grad.stype != "default":
            raise MXNetError(
                f"AdaGrad: parameter {self.idx2name.get(index, index)!r} is csr and its gradient "
                f"{grad.stype}; a csr weight needs a dense gradient."
            )
        if grad.stype == "row_sparse" and rest[2]:
            raise MXNetError(
                f"AdaGrad: parameter {self.idx2name.get(index, index)!r} has a row_sparse gradient "
                f"and weight decay {rest[2]}; with such gradients decay must be 0."
            )
        super()._update_sparse(index, weight, grad, *rest)

    def _numbers(self, batch: Batch) -> dict[str, float]:
        return {"epsilon": self.float_stable_eps}


@register
class AdaDelta(ListOptimizer):
    """AdaDelta, which needs no learning rate: ``w -= d + wd w``;  ``g = clip(rescale_grad g)``.

    ``s = rho s + (1 - rho) g^2``;  ``d = sqrt(a + eps) / sqrt(s + eps) g``;
    ``a = rho a + (1 - rho) d^2``.

    Parameters
    ----------
    rho : float
        Decay rate of both running means of squares.
    epsilon : float
        Constant added inside both roots, so that the first steps are not 0.

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.AdaDelta()
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    shards_by = "rows"
    rule = adadelta

    def __init__(self, rho: float = 0.90, epsilon: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rho = rho
        self.epsilon = epsilon

    def _rates(self, indices: Sequence[Index]) -> tuple[list[float], list[float]]:
        """Return weight decays with unused rates; AdaDelta does not call the scheduler."""
        return [1.0] * len(indices), [self._get_wd(i) for i in indices]

    def create_state(self, index: Index, weight: NDArray) -> tuple[NDArray, NDArray]:
        """Return the running means of squared gradients and squared updates."""
        return self._zero_state(weight), self._zero_state(weight)


@register
class RMSProp(ListOptimizer):
    """RMSProp: ``n = gamma1 n + (1 - gamma1) g^2``;  ``w -= lr g / sqrt(n + eps)``.

    ``g = clip(rescale_grad g + wd w)``. With `centered` the running variance replaces the mean
    square, and updates have momentum `gamma2`; see `rmspropalex_update`.

    Parameters
    ----------
    learning_rate
        The learning rate ``lr``.
    gamma1 : float
        Decay rate of the running mean of squares.
    gamma2 : float
        Momentum of the centered form.
    epsilon : float
        Constant added to the denominator to avoid division by zero.
    centered : bool
        Whether to use Graves' centered form.
    clip_weights : float, optional
        Weights are clipped to [-clip_weights, clip_weights].

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.RMSProp()
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    shards_by = "rows"
    sparse_states = True

    def __init__(
        self,
        learning_rate: float = 0.001,
        gamma1: float = 0.9,
        gamma2: float = 0.9,
        epsilon: float = 1e-8,
        centered: bool = False,
        clip_weights: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.centered = centered
        self.epsilon = epsilon
        self.clip_weights = clip_weights

    def create_state(self, index: Index, weight: NDArray) -> tuple[NDArray, ...]:
        """Return the running mean of squares; if centered, also the mean and the last update."""
        return tuple(self._zero_state(weight) for _ in range(3 if self.centered else 1))

    @property
    def rule(self) -> Rule:  # pyright: ignore[reportIncompatibleVariableOverride] (by instance)
        """The update rule."""
        return rmspropalex if self.centered else rmsprop


@register
class Ftrl(ListOptimizer):
    """Follow the regularized leader, with sparse weights; see `ftrl_update`.

    Parameters
    ----------
    lamda1 : float
        Strength of the L1 regularization.
    learning_rate : float
        The learning rate.
    beta : float
        Smoothing term of the learning rate.

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.Ftrl(learning_rate=0.1)
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    shards_by = "rows"
    rule = ftrl
    sparse_states = True
    create_state = AdaDelta.create_state

    def __init__(
        self,
        lamda1: float = 0.01,
        learning_rate: float = 0.1,
        beta: float = 1,
        **kwargs: Any,
    ) -> None:
        # Unlike in other optimizers, the rate is not set as the scheduler's base rate.
        super().__init__(**kwargs)
        self.lr = learning_rate
        self.lamda1 = lamda1
        self.beta = beta

    def _is_lazy(self, weight: NDArray, grad: NDArray) -> bool:
        return weight.stype == grad.stype == "row_sparse"  # all rows of a dense weight are updated
