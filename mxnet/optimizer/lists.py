"""`ListOptimizer`: optimizers whose update takes many parameters at once.

Parameters with equal rate, decay, count of updates, data type and device form a `Batch`; an
optimizer tells one `_step_batch` for a batch, a few kernel calls for all of its weights. Half-precision
weights with 32-bit copies, and gradients that hold some rows only, are dealt with here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..error import MXNetError, ShapeError
from ..ndarray import NDArray, zeros
from ..ndarray.storage import plain, wrap_plain
from .base import Index, Optimizer, is_half, warn_of_half

_HALF = (torch.float16, torch.bfloat16)
_DENSE = NDArray.stype  # a class with another property is sparse


class Batch(NamedTuple):
    """Weights that step together. `states` holds a list for each kind of state, or no list."""

    indices: Sequence[Index]
    weights: list[Tensor]
    grads: list[Tensor]
    states: list[list[Tensor] | None]
    lr: float
    wd: float
    t: int  # which update of these parameters this is, from 1


class ListOptimizer(Optimizer):
    """Base of optimizers that step by `Batch`; subclasses tell `_step_batch` and `create_state`."""

    copy_comes_first = True  # (32-bit copy, state), or the other way round
    in_order = False  # whether a step depends on those of the parameters before it
    lazy_update = False  # whether a row_sparse gradient changes only the rows that it has

    def _step_batch(self, batch: Batch) -> None:
        """Change the weights of a batch, and their states, in place."""
        raise NotImplementedError(f"{type(self).__name__} must override _step_batch or update")

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Change a weight by its gradient, or several, given as lists."""
        self._update(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Do `update`; of 16-bit weights in mixed precision on their 32-bit copies."""
        if type(self).update is not ListOptimizer.update:  # a user's own, for one parameter
            super().update_multi_precision(index, weight, grad, state)
            return
        self._update(index, weight, grad, state, bool(self.multi_precision))

    def create_state_multi_precision(self, index: Index, weight: NDArray) -> Any:
        """Return the state, with a 32-bit copy of a 16-bit weight in mixed precision."""
        if not is_half(weight):
            return self.create_state(index, weight)
        if not self.multi_precision:
            warn_of_half("optimizer" if self.copy_comes_first else "SGD optimizer")
            return self.create_state(index, weight)
        copy = weight.astype(np.float32)
        state = self.create_state(index, copy)
        return (copy, state) if self.copy_comes_first else (state, copy)

    # -- from lists of arrays to batches ------------------------------------------------------

    def _update(self, index: Any, weight: Any, grad: Any, state: Any, mixed: bool) -> None:
        if not isinstance(index, list | tuple):
            index, weight, grad, state = (index,), (weight,), (grad,), (state,)
        if not index:
            return
        self._update_count(index)
        lrs, wds = self._get_lrs(index), self._get_wds(index)
        if _are_dense(weight) and _are_dense(grad):
            weights, grads = list(map(plain, weight)), list(map(plain, grad))
            self._check(index, weights, grads)
            self._step_all(index, weights, grads, state, lrs, wds, mixed)
            return
        for one in zip(index, weight, grad, state, lrs, wds, strict=True):
            self._update_sparse(*one, mixed)

    def _step_all(
        self,
        indices: Sequence[Index],
        weights: list[Tensor],
        grads: list[Tensor],
        states: Sequence[Any],
        lrs: list[float],
        wds: list[float],
        mixed: bool,
    ) -> None:
        counts = self._index_update_count
        times = [counts[i] for i in indices]
        alone = ([i] for i in range(len(weights)))
        for same in alone if self.in_order else _alike(weights, lrs, wds, times):
            own = weights
            batch = indices, weights, grads, states
            first = 0
            if same is not None:
                batch = [[items[i] for i in same] for items in batch]
                own, first = batch[1], same[0]
            key = lrs[first], wds[first], times[first]
            if not (mixed and own[0].dtype in _HALF):
                self._step_batch(Batch(*batch[:3], _by_kind(batch[3]), *key))
                continue
            copies, inner = self._split(batch[3])
            slopes = [g.to(torch.float32) for g in batch[2]]
            self._step_batch(Batch(batch[0], copies, slopes, _by_kind(inner), *key))
            torch._foreach_copy_(own, copies)

    def _split(self, states: Sequence[Any]) -> tuple[list[Tensor], list[Any]]:
        """Return the 32-bit copies and the states proper."""
        at = 0 if self.copy_comes_first else 1
        if any(not isinstance(s, tuple | list) or len(s) != 2 or s[at] is None for s in states):
            raise MXNetError(
                f"{type(self).__name__} in mixed precision needs states that "
                "create_state_multi_precision made; these have no 32-bit copy of the weight."
            )
        return [plain(s[at]) for s in states], [s[1 - at] for s in states]

    def _check(self, indices: Sequence[Index], weights: list[Tensor], grads: list[Tensor]) -> None:
        for index, weight, grad in zip(indices, weights, grads, strict=True):
            if weight.shape != grad.shape:
                raise ShapeError(
                    f"Incompatible attr in {type(self).__name__}: parameter "
                    f"{self.idx2name.get(index, index)!r} is {tuple(weight.shape)}, "
                    f"its gradient {tuple(grad.shape)}."
                )

    # -- row_sparse ---------------------------------------------------------------------------

    def _is_lazy(self, weight: NDArray, grad: NDArray) -> bool:
        """Return whether only the rows of the gradient change."""
        return self.lazy_update and grad.stype == "row_sparse"

    def _update_sparse(
        self,
        index: Index,
        weight: NDArray,
        grad: NDArray,
        state: Any,
        lr: float,
        wd: float,
        mixed: bool,
    ) -> None:
        """Step on the rows that the gradient has, or else by a dense form of it."""
        whole = _memory(weight)
        if mixed or not self._is_lazy(weight, grad):
            slopes = plain(grad.tostype("default"))
            self._check([index], [whole], [slopes])
            self._step_all([index], [whole], [slopes], [state], [lr], [wd], mixed)
            return
        rows = grad._indices
        if not rows.numel():
            return
        held = [whole, *(None if s is None else _memory(s) for s in _kinds(state))]
        parts = [None if h is None else h.index_select(0, rows) for h in held]
        lists = [None if p is None else [p] for p in parts]
        t = self._index_update_count[index]
        self._step_batch(Batch([index], lists[0], [grad._values], lists[1:], lr, wd, t))
        for target, moved in zip(held, parts, strict=True):
            if target is not None:
                target.index_copy_(0, rows, moved)

    # -- small services for subclasses --------------------------------------------------------

    @property
    def _limit(self) -> float:
        """The clipping limit as kernels take it: negative for none."""
        return self.clip_gradient or -1.0

    @property
    def _gradient(self) -> dict[str, float]:
        """What is done to gradients before all else, as keywords of kernels."""
        return {"rescale_grad": self.rescale_grad, "clip_gradient": self._limit}


def zero_state(weight: NDArray) -> NDArray:
    """Return zeros of a weight's shape, type and device, laid out in memory as the weight is."""
    if weight.stype != "default":
        return zeros(weight.shape, ctx=weight.context, dtype=weight.dtype)
    return wrap_plain(NDArray, torch.zeros_like(plain(weight)), weight._ctx)


def _memory(array: NDArray) -> Tensor:
    """Return what holds all rows of an array; a row_sparse one stores them all from now on."""
    if array.stype == "default":
        return plain(array)
    if array.stype != "row_sparse":
        raise MXNetError(f"Weights and states cannot be of storage type {array.stype}.")
    if len(array._indices) != array.shape[0]:
        rows = torch.arange(array.shape[0], device=array._indices.device)
        array._set(array.shape, array._dense(), rows)
    return array._values


def _are_dense(arrays: Sequence[NDArray]) -> bool:
    return all(kind.stype is _DENSE for kind in set(map(type, arrays)))


def _kinds(state: Any) -> Sequence[Any]:
    return state if isinstance(state, tuple | list) else (state,)


def _by_kind(states: Sequence[Any]) -> list[list[Tensor] | None]:
    """Turn states a parameter into lists a kind of state.

    >>> _by_kind([None, None])
    [None]
    """
    first = states[0]
    if first is None:
        return [None]
    if isinstance(first, NDArray):
        return [list(map(plain, states))]
    return [
        None if kind[0] is None else list(map(plain, kind)) for kind in zip(*states, strict=True)
    ]


def _alike(weights: list[Tensor], *numbers: list) -> Iterator[list[int] | None]:
    """Yield the positions of weights that may step together; None stands for all of them."""
    types = [w.dtype for w in weights]
    devices = [w.device for w in weights]
    keys = [k for k in (*numbers, types, devices) if len(set(k)) > 1]
    if not keys:
        yield None
        return
    groups: dict[tuple, list[int]] = {}
    for position, key in enumerate(zip(*keys, strict=True)):
        groups.setdefault(key, []).append(position)
    yield from groups.values()
