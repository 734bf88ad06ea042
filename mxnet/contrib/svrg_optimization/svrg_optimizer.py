"""The optimizer of SVRG in a store: it updates weights, and stores mean gradients unchanged."""

from __future__ import annotations

from typing import Any

from ...ndarray import NDArray
from ...optimizer import Optimizer, create, register

__all__: list[str] = []

_FULL = "full"  # part of the names of mean gradients


@register
class _AssignmentOptimizer(Optimizer):
    """Overwrites the weight by the gradient, so that a store keeps the mean gradients."""

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        weight[:] = grad


@register
class _SVRGOptimizer(Optimizer):
    """Updates weights by another optimizer, and assigns mean gradients.

    Parameters
    ----------
    default_optimizer : str or Optimizer
        Updates the weights.
    kwargs
        Arguments of the default optimizer and of `Optimizer`; `param_idx2name` is needed, because
        mean gradients are recognized by "full" in their names.
    """

    def __init__(self, default_optimizer: str | Optimizer, **kwargs: Any) -> None:
        super().__init__(**{k: v for k, v in kwargs.items() if k in _COMMON})
        if isinstance(default_optimizer, str):
            self.default_opt = create(default_optimizer, **kwargs)
        else:
            self.default_opt = default_optimizer
        self.aux_opt = create(_AssignmentOptimizer.__name__)

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return self._responsible(index).create_state(index, weight)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._responsible(index).update(index, weight, grad, state)

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        return self._responsible(index).create_state_multi_precision(index, weight)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._responsible(index).update_multi_precision(index, weight, grad, state)

    def _responsible(self, index: Any) -> Optimizer:
        names = self.idx2name
        name = index if index in names.values() else names[index]
        return self.aux_opt if _FULL in name else self.default_opt


# Arguments that every optimizer takes.
_COMMON = (
    "rescale_grad",
    "param_idx2name",
    "wd",
    "clip_gradient",
    "learning_rate",
    "lr_scheduler",
    "sym",
    "begin_num_update",
    "multi_precision",
    "param_dict",
)
