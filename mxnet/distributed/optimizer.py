"""Horovod's `DistributedOptimizer`: gradients are averaged over all workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import optimizer as opt
from ..ndarray import NDArray
from . import collectives

__all__ = ["DistributedOptimizer"]


class DistributedOptimizer(opt.Optimizer):
    """An optimizer that averages gradients over all workers before it updates.

    Parameters
    ----------
    optimizer : Optimizer
        It does the updates.
    gradient_predivide_factor : float
        Gradients are divided by it before they are summed, and the rest of the average after.
    num_groups
        Accepted for compatibility, without effect.

    >>> mx.distributed.init()
    >>> optimizer = mx.distributed.DistributedOptimizer(mx.optimizer.SGD(learning_rate=0.1))
    >>> optimizer.learning_rate
    0.1
    """

    def __init__(
        self, optimizer: opt.Optimizer, gradient_predivide_factor: float = 1.0, num_groups: int = 0
    ) -> None:
        vars(self).update(_optimizer=optimizer, _average=1.0 / collectives.size())

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_optimizer"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._optimizer, name, value)  # all settings are the inner optimizer's

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        """Return the state of a parameter."""
        return self._optimizer.create_state_multi_precision(index, weight)

    def create_state(self, index: Any, weight: NDArray) -> Any:
        """Return the state of a parameter."""
        return self._optimizer.create_state(index, weight)

    def _do_allreduce(self, index: Any, grad: Any) -> None:
        indices, grads = (index, grad) if isinstance(index, list | tuple) else ([index], [grad])
        names = [f"gradient.{i}" for i in indices]
        collectives._sum_in_place(names, grads, self._average)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Average gradients and update."""
        self._do_allreduce(index, grad)
        self._optimizer.update(index, weight, grad, state)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Average gradients and update."""
        self._do_allreduce(index, grad)
        self._optimizer.update_multi_precision(index, weight, grad, state)

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate."""
        self._optimizer.set_learning_rate(lr)

    def set_lr_mult(self, args_lr_mult: Mapping[Any, float]) -> None:
        """Set factors of the learning rate."""
        self._optimizer.set_lr_mult(args_lr_mult)

    def set_wd_mult(self, args_wd_mult: Mapping[Any, float]) -> None:
        """Set factors of weight decay."""
        self._optimizer.set_wd_mult(args_wd_mult)
