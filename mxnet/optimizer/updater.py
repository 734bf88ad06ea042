"""`Updater`: an optimizer and the states of all parameters, with their ``.states`` files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from ..context import Context
from ..error import MXNetError, memory_error, reporting_memory
from ..ndarray import NDArray
from .base import Index, Optimizer
from .multi_tensor import ListOptimizer
from .states_file import dump_states, read_states

__all__ = ["Updater", "get_updater"]


class Updater:
    """Updates weights by index; creates their states at the first update.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer that computes the updates.

    >>> updater = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5))
    >>> weight = mx.nd.ones(2)
    >>> updater(0, mx.nd.array([1.0, -1.0]), weight)
    >>> weight.asnumpy()
    array([0.5, 1.5], dtype=float32)
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.states: dict[Index, Any] = {}
        self.states_synced: dict[Index, bool] = {}
        self.aggregate_updates = optimizer.aggregate_num > 0

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """Update a weight by its gradient; lists of weights and gradients are faster."""
        if not isinstance(index, list | tuple):
            index, grad, weight = [index], [grad], [weight]
        if not len(index) == len(grad) == len(weight):
            raise MXNetError(
                f"Updater got {len(index)} indices, {len(grad)} gradients and {len(weight)} "
                "weights; it needs the same number of each."
            )
        if not index:
            return
        self.optimizer._set_current_context(weight[0].context.device_id)
        if not all(map(self.states_synced.get, index)):
            # keys of stores may be bytes
            index = [i.decode() if isinstance(i, bytes) else i for i in index]
            with reporting_memory("creating optimizer states"):
                self._prepare(index, weight)
        try:
            self._update(index, weight, grad, list(map(self.states.__getitem__, index)))
        except RuntimeError as error:
            memory = memory_error(error, "an optimizer's update")
            if memory is None:
                raise
            raise memory from error

    def _prepare(self, indices: Sequence[Index], weights: Sequence[NDArray]) -> None:
        """Create missing states, and move loaded ones to the devices of their weights."""
        states, synced = self.states, self.states_synced
        for i, weight in zip(indices, weights, strict=True):
            if i not in states:
                states[i] = self.optimizer.create_state_multi_precision(i, weight)
            elif not synced.get(i):
                states[i] = self.sync_state_context(states[i], weight.context)
            synced[i] = True

    def _update(
        self,
        indices: Sequence[Index],
        weights: Sequence[NDArray],
        grads: Sequence[NDArray],
        states: Sequence[Any],
    ) -> None:
        optimizer = self.optimizer
        if takes_all(optimizer):
            optimizer.update_multi_precision(indices, weights, grads, states)
            return
        together = zip(indices, weights, grads, states, strict=True)
        size = optimizer.aggregate_num
        if size < 1 or takes_single(optimizer):
            for one in together:
                optimizer.update_multi_precision(*one)
            return
        by_type: dict[Any, list[tuple]] = {}
        for one in together:
            by_type.setdefault(one[1].dtype, []).append(one)
        for rows in by_type.values():
            for start in range(0, len(rows), size):
                part = rows[start : start + size]
                optimizer.update_multi_precision(*zip(*part, strict=True))

    def sync_state_context(self, state: Any, context: Context) -> Any:
        """Return a state with all of its arrays on a device."""
        if isinstance(state, NDArray):
            return state.as_in_context(context)
        if isinstance(state, tuple | list):
            return type(state)(self.sync_state_context(s, context) for s in state)
        return state

    def set_states(self, states: bytes) -> None:
        """Load states from a result of `get_states`, of MXNext or MXNet.

        The optimizer is replaced too if it was saved with them. The bytes may contain arrays,
        numbers, strings, containers, optimizers and schedulers; anything else raises an error.
        """
        read = read_states(states, self.optimizer)
        if isinstance(read, tuple):
            read, self.optimizer = read
            self.aggregate_updates = self.optimizer.aggregate_num > 0
        self.states = read
        self.states_synced = dict.fromkeys(read, False)

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """Return all states as bytes that MXNet can read too, optionally with the optimizer."""
        held = (self.states, self.optimizer) if dump_optimizer else self.states
        return dump_states(held)


# Methods that MXNet calls with at most `aggregate_num` parameters.
_called_by_parts = attrgetter(
    *("update", "update_multi_precision", "_update_count"),
    *("_get_lr", "_get_lrs", "_get_wd", "_get_wds"),
)


def takes_all(optimizer: Optimizer) -> bool:
    """Return whether an optimizer updates any number of parameters in one call.

    Built-in optimizers do, unless a subclass overrides one of `_called_by_parts`.
    """
    return isinstance(optimizer, ListOptimizer) and _are_ours(_called_by_parts(type(optimizer)))


def takes_single(optimizer: Optimizer) -> bool:
    """Return whether a program overrides `update` of one of our optimizers, but not its callers."""
    return (
        isinstance(optimizer, ListOptimizer)
        and not _is_ours(type(optimizer).update)
        and _is_ours(type(optimizer).update_multi_precision)
    )


@lru_cache(maxsize=256)
def _are_ours(functions: tuple[Callable, ...]) -> bool:
    return all(map(_is_ours, functions))


def _is_ours(function: Callable) -> bool:
    module = getattr(function, "__module__", None)
    return module is not None and module.startswith("mxnet.")  # None for classes defined by exec


def get_updater(optimizer: Optimizer) -> Updater:
    """Return an `Updater` of an optimizer, for use with a key-value store.

    Parameters
    ----------
    optimizer
        The optimizer.

    >>> update = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5))
    >>> w = mx.nd.array([1.0])
    >>> update(0, mx.nd.array([1.0]), w)
    >>> w.asnumpy()
    array([0.5], dtype=float32)
    """
    return Updater(optimizer)
