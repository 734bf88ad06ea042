"""Optimizers that divide by a size of past gradients: AdaGrad, AdaDelta, RMSProp, Ftrl."""

from __future__ import annotations

from typing import Any

from ..error import MXNetError
from ..ndarray import NDArray
from ..ops.training.adaptive import adadelta, adagrad, ftrl, rmsprop, rmspropalex
from ..ops.training.rules import Rule
from .base import Index, register
from .lists import Batch, ListOptimizer, zero_state


@register
class AdaGrad(ListOptimizer):
    """AdaGrad: ``h += g^2``;  ``w -= lr (g / sqrt(h + eps) + wd w)``.

    ``g = clip(rescale_grad g)``. A row_sparse gradient changes only the rows that it has, and
    allows no weight decay.

    Parameters
    ----------
    eps : float
        Added to the denominator to avoid division by 0.

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
        return zero_state(weight)

    def _update_sparse(self, index: Index, weight: NDArray, grad: NDArray, *rest: Any) -> None:
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
        Decay rate of both running squares.
    epsilon : float
        Added inside both roots, so that the first steps are not 0.

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

    def create_state(self, index: Index, weight: NDArray) -> tuple[NDArray, NDArray]:
        """Return the running squares of gradients and of moves."""
        return zero_state(weight), zero_state(weight)


@register
class RMSProp(ListOptimizer):
    """RMSProp: ``n = gamma1 n + (1 - gamma1) g^2``;  ``w -= lr g / sqrt(n + eps)``.

    ``g = clip(rescale_grad g + wd w)``. With `centered` the mean of the gradient is taken off its
    square, and moves have momentum `gamma2`; see `rmspropalex_update` for the formula.

    Parameters
    ----------
    learning_rate
        The learning rate ``lr``.
    gamma1 : float
        Decay rate of the running square.
    gamma2 : float
        Momentum of the centered form.
    epsilon : float
        Added to the denominator to avoid division by 0.
    centered : bool
        Whether to take Graves' form.
    clip_weights : float, optional
        Weights are kept within [-clip_weights, clip_weights].

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.RMSProp()
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    shards_by = "rows"

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
        """Return the running square; centered also the running mean and the last move."""
        return tuple(zero_state(weight) for _ in range(3 if self.centered else 1))

    @property
    def rule(self) -> Rule:
        """The rule of the chosen form."""
        return rmspropalex if self.centered else rmsprop


@register
class Ftrl(ListOptimizer):
    """Follow the regularized leader, which sets small weights to 0; see `ftrl_update`.

    Parameters
    ----------
    lamda1 : float
        Strength of the L1 regularization.
    learning_rate : float
        The rate.
    beta : float
        Smooths the first steps.

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.Ftrl(learning_rate=0.1)
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    shards_by = "rows"
    rule = ftrl
    create_state = AdaDelta.create_state

    def __init__(
        self,
        lamda1: float = 0.01,
        learning_rate: float = 0.1,
        beta: float = 1,
        **kwargs: Any,
    ) -> None:
        # Unlike elsewhere the rate does not become the first one of a scheduler.
        super().__init__(**kwargs)
        self.lr = learning_rate
        self.lamda1 = lamda1
        self.beta = beta

    def _is_lazy(self, weight: NDArray, grad: NDArray) -> bool:
        return weight.stype == grad.stype == "row_sparse"  # of a dense weight all rows move
