"""Optimizers for large batches: each step is scaled by the norm of its weight."""

from __future__ import annotations

import logging
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from .._process import env
from ..ndarray import NDArray
from ..ops.training.large_batch import lamb, layer_rates
from ..ops.training.sgd import sgd, sgd_mom
from ..runtime.array import plain, wrap_plain
from .adaptive import Adam
from .base import Index, register
from .multi_tensor import Batch, ListOptimizer, all_rows
from .sgd import SGD


@register
class LARS(ListOptimizer):
    """SGD with a rate for each layer: ``lr eta |w| / (|g| + wd |w| + eps)``.

    Parameters whose names end in bias, beta or gamma use the plain rate. By default only weights
    decay.

    Parameters
    ----------
    momentum : float
        Momentum: the fraction of the previous update that is kept.
    lazy_update : bool
        Whether to update only the rows of a row_sparse gradient.
    eta : float
        Trust coefficient: the norm of a step relative to that of the weight.
    eps : float
        Constant added to the denominator to avoid division by zero.
    momentum_correction : bool
        Whether to scale the momentum when a scheduler changes the rate. As in 1.9.1, this affects
        only the first parameters of a step: those updated together (4 with a Trainer, set by
        ``MXNET_OPTIMIZER_AGGREGATION_SIZE``).

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.LARS(learning_rate=0.1)
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    shards_by = "parameters"
    rule, stateless_rule = sgd_mom, sgd
    copy_comes_first = False
    ignores_copies = True
    rates_by_list = True
    create_state = SGD.create_state
    _corrected: frozenset[Index] = frozenset()  # parameters whose momentum this step corrects
    _whole_weight: Tensor | None = None  # parameters updated by rows

    def __init__(
        self,
        momentum: float = 0.0,
        lazy_update: bool = True,
        eta: float = 0.001,
        eps: float = 0,
        momentum_correction: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.momentum_correction = momentum_correction
        self.lazy_update = lazy_update
        self.aggregate_num = env.get("MXNET_OPTIMIZER_AGGREGATION_SIZE")
        self.eta = eta
        self.eps = eps
        self.skip = 0
        self.last_lr: Any = None  # a float, after the first update
        self.cur_lr: Any = None

    @staticmethod
    def _decays(name: str) -> bool:
        return name.endswith("_weight")

    def _get_lrs(self, indices: Any) -> list[float]:
        """Return the plain rates, and store the common rates of this and the previous call."""
        rate = self.learning_rate
        self.last_lr, self.cur_lr = rate if self.cur_lr is None else self.cur_lr, rate
        return self._multiplied(rate, indices, "lr_mult")

    def _update(self, index: Any, weight: Any, grad: Any, state: Any, mixed: bool) -> None:
        self._corrected = self._first_updated(index, weight)
        super()._update(index, weight, grad, state, mixed)

    def _first_updated(self, index: Any, weight: Any) -> frozenset[Index]:
        """Return the first parameters of one data type that 1.9.1 updates together."""
        if not isinstance(index, list | tuple):
            return frozenset((index,))
        alike = [i for i, w in zip(index, weight, strict=True) if w.dtype == weight[0].dtype]
        return frozenset(alike[: max(self.aggregate_num, 1)])

    def _momentum_of(self, index: Index) -> float:
        if not (self.momentum_correction and self.last_lr and index in self._corrected):
            return self.momentum
        return self.momentum * self.cur_lr / self.last_lr

    def _update_sparse(  # pyright: ignore[reportIncompatibleMethodOverride] (passes the rest on)
        self, index: Index, weight: NDArray, *args: Any
    ) -> None:
        """Update some rows at the rate of the whole weight."""
        self._whole_weight = None if weight.stype == "csr" else all_rows(weight)
        try:
            super()._update_sparse(index, weight, *args)
        finally:
            self._whole_weight = None

    def _step_batch(self, batch: Batch, **numbers: float) -> None:
        adapted = [i for i, index in enumerate(batch.indices) if self._adapts(index)]
        whole = batch.weights if self._whole_weight is None else [self._whole_weight]
        rates = [batch.lr] * len(batch.weights)
        if adapted:
            factors = layer_rates(
                [whole[i] for i in adapted],
                [batch.grads[i] for i in adapted],
                wd=batch.wd,
                eta=self.eta,
                epsilon=self.eps,
                rescale_grad=self.rescale_grad,
            )
            for i, factor in zip(adapted, factors, strict=True):
                rates[i] *= factor
        for one, rate in zip(batch.split(), rates, strict=True):
            super()._step_batch(one, lr=rate, momentum=self._momentum_of(one.indices[0]))

    def _adapts(self, index: Index) -> bool:
        return not str(self.idx2name.get(index, "")).endswith(("gamma", "beta", "bias"))


@register
class LAMB(ListOptimizer):
    """LAMB: Adam's update scaled by the weight's norm: ``w -= lr (|w| / |d|) d``.

    ``d = m / (sqrt(v) + eps) + wd w`` with Adam's moments of ``clip(rescale_grad g)``.

    Parameters
    ----------
    learning_rate
        The learning rate ``lr``.
    beta1, beta2 : float
        Decay rates of the running means of gradients and of their squares.
    epsilon : float
        Constant added to the denominator to avoid division by zero.
    lower_bound, upper_bound : float, optional
        Limits of ``|w|``.
    bias_correction : bool
        Whether to correct the bias of the moments.

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.LAMB()
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    shards_by = "parameters"
    rule = lamb
    sparse_states = True
    create_state = Adam.create_state

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        bias_correction: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        self.bias_correction = bias_correction
        self.aggregate_num = 45  # maximum that 1.9.1 updates together


# Fraction of the full multiplier as a function of the completed fraction of the warm-up.
WARMUPS = {"linear": lambda part: part, "power2": lambda part: part * part, "sqrt": sqrt}


@register
class LBSGD(ListOptimizer):
    """SGD that accumulates `batch_scale` batches, with warm-up or layer-wise rates.

    Parameters
    ----------
    momentum : float
        Momentum: the fraction of the previous update that is kept.
    multi_precision
        Whether 16-bit weights are updated through 32-bit copies.
    warmup_strategy : {'linear', 'power2', 'sqrt', 'lars'}
        Growth of the rate to `batch_scale` times its value; 'lars' uses ``|w| / |g|`` instead.
    warmup_epochs : int
        Number of epochs of the warm-up.
    batch_scale : int
        Number of gradients accumulated per step.
    updates_per_epoch : int
        The number of updates in an epoch.
    begin_epoch : int
        First epoch.
    num_epochs : int
        Number of epochs; not used.

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.LBSGD(learning_rate=0.1)
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    rule, stateless_rule = sgd_mom, sgd
    create_state = SGD.create_state
    lazy_update = True
    counts_first = False
    min_momentum = 0.0

    def __init__(
        self,
        momentum: float = 0.0,
        multi_precision: bool = False,
        warmup_strategy: str = "linear",
        warmup_epochs: int = 5,
        batch_scale: int = 1,
        updates_per_epoch: int = 32,
        begin_epoch: int = 0,
        num_epochs: int = 60,
        **kwargs: Any,
    ) -> None:
        super().__init__(multi_precision=multi_precision, **kwargs)
        self.momentum = momentum
        self.warmup_strategy = warmup_strategy
        self.warmup_epochs = warmup_epochs
        self.batch_scale = batch_scale
        self.updates_per_epoch = updates_per_epoch
        self.init_updates = begin_epoch * updates_per_epoch
        self.num_epochs = num_epochs
        self.lbmult = 1
        self.cumgrads: dict[Index, dict[str, Any]] = {}
        self.adaptive = False
        self.admult = 1
        self._announce()

    def _announce(self) -> None:
        logging.info("Running Large-Batch SGD Algorithm")
        logging.info(
            "(Batch_scale=%f, warmup_epochs=%d, warmup_strategy=%s, updates_per_epoch=%d)",
            *(self.batch_scale, self.warmup_epochs, self.warmup_strategy, self.updates_per_epoch),
        )

    def _multiplier(self, updates: int) -> float:
        warmup = self.warmup_epochs * self.updates_per_epoch
        if updates >= warmup:
            return self.batch_scale
        curve = WARMUPS.get(self.warmup_strategy)
        return 1.0 + (self.batch_scale - 1) * curve(updates / warmup) if curve else 1.0

    @staticmethod
    def _adaptive_factor(weight: Tensor, grad: Tensor, wd: float) -> float:
        above, below = weight.square().sum().item(), grad.square().sum().item()
        return min(max(sqrt(above / (below + wd * above + 1e-18)), 0.01), 100.0)

    def _sum(self, index: Index, grad: Tensor) -> tuple[Tensor, int]:
        held = self.cumgrads.get(index, {"cum_grad": 0, "num_cums": self.init_updates})
        total, count = held["cum_grad"], held["num_cums"] + 1
        if isinstance(total, NDArray):
            grad = grad + plain(total)
        done = count % self.batch_scale == 0
        rest = 0 if done else wrap_plain(NDArray, grad.clone())
        self.cumgrads[index] = {"cum_grad": rest, "num_cums": count}
        return grad, count

    def _step_batch(self, batch: Batch, **numbers: float) -> None:
        """Accumulate gradients, and apply SGD to their mean after every `batch_scale` of them."""
        for one in batch.split():
            (index,), (weight,) = one.indices, one.weights
            total, count = self._sum(index, one.grads[0])
            if count % self.batch_scale:
                continue
            grad = torch.div(total, self.batch_scale)
            lars = self.warmup_strategy == "lars"
            factor = (
                self._adaptive_factor(weight, grad, batch.wd) if lars else self._multiplier(count)
            )
            super()._step_batch(one._replace(grads=[grad]), lr=batch.lr * factor)
