"""Losses of numbers: how far predictions are from them."""

from __future__ import annotations

from math import pi
from typing import Any

from ...ops.documentation import inherits_parameters
from .base import Loss, apply_weighting, reshape_like


@inherits_parameters
class L2Loss(Loss):
    """Half the mean squared error: ``1/2 (pred - label)^2``.

    >>> mx.gluon.loss.L2Loss()(nd.array([[1], [3]]), nd.array([[0], [1]])).asnumpy()
    array([0.5, 2. ], dtype=float32)
    """

    def __init__(self, weight: float = 1.0, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Compute the loss."""
        loss = F.square(reshape_like(F, label, pred) - pred)
        return self._finish(F, loss, sample_weight, self._weight / 2)


@inherits_parameters
class L1Loss(Loss):
    """Mean absolute error: ``|pred - label|``.

    >>> mx.gluon.loss.L1Loss()(nd.array([[1], [3]]), nd.array([[0], [1]])).asnumpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Compute the loss."""
        loss = F.abs(reshape_like(F, label, pred) - pred)
        return self._finish(F, loss, sample_weight)


@inherits_parameters
class HuberLoss(Loss):
    """Squared error near the label, absolute error further away than `rho`.

    Parameters
    ----------
    rho
        Where the loss turns from squared to linear.

    >>> mx.gluon.loss.HuberLoss()(nd.array([[0.5], [3]]), nd.array([[0], [1]])).asnumpy()
    array([0.125, 1.5  ], dtype=float32)
    """

    def __init__(
        self, rho: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._rho = rho

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Compute the loss."""
        distance = F.abs(reshape_like(F, label, pred) - pred)
        near = (0.5 / self._rho) * F.square(distance)
        loss = F.where(distance > self._rho, distance - 0.5 * self._rho, near)
        return self._finish(F, loss, sample_weight)


@inherits_parameters
class PoissonNLLLoss(Loss):
    """Negative log likelihood of counts under a Poisson distribution, as one mean of them all.

    `pred` is the logarithm of the rate, or the rate with ``from_logits=False``; `compute_full`
    adds Stirling's approximation of ``log(target!)`` where the target is above 1.

    Parameters
    ----------
    from_logits
        Whether predictions are logarithms of the rates.
    compute_full
        Whether to add the term of the label alone (Stirling's approximation).

    >>> mx.gluon.loss.PoissonNLLLoss()(nd.array([[0.0]]), nd.array([[2.0]])).asnumpy()
    array([1.], dtype=float32)
    """

    def __init__(
        self,
        weight: float | None = None,
        from_logits: bool = True,
        batch_axis: int = 0,
        compute_full: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._compute_full = compute_full

    def hybrid_forward(
        self, F: Any, pred: Any, target: Any, sample_weight: Any = None, epsilon: float = 1e-08
    ) -> Any:
        """Compute the loss."""
        target = reshape_like(F, target, pred)
        if self._from_logits:
            loss = F.exp(pred) - target * pred
        else:
            loss = pred - target * F.log(pred + epsilon)
        if self._compute_full:
            stirling = target * F.log(target) - target + 0.5 * F.log(2 * pi * target)
            loss = loss + F.where(target > 1, stirling, F.zeros_like(stirling))
        return F.mean(apply_weighting(F, loss, self._weight, sample_weight))
