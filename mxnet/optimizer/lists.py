"""`ListOptimizer`: optimizers whose update takes many parameters at once.

Parameters with equal rate, decay, count of updates, data type and device form a `Batch`; an
optimizer names the update rule that steps all weights of a batch (`mxnet.ops.training`). 16-bit
weights with 32-bit copies, and gradients that hold some rows only, are handled here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from inspect import unwrap
from operator import attrgetter
from types import NoneType
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..error import MXNetError
from ..imperative.handle import plain, wrap_plain
from ..ndarray import NDArray, zeros
from ..ops.training.rules import Rule
from .base import Index, Optimizer, is_half, warn_of_half
from .plans import HALF, Batch, Group, Plan, by_kind, check_states, positions_by_place

_data = attrgetter("_data")
_DENSE = NDArray.stype  # a class with another property is sparse
# Numbers of rules that limit something, and the attributes that hold them.
_LIMITS = {
    "clip_gradient": "clip_gradient",
    "clip_grad": "clip_gradient",
    "clip_weights": "clip_weights",
    "lower_bound": "lower_bound",
    "upper_bound": "upper_bound",
}


class ListOptimizer(Optimizer):
    """Base of optimizers that step by `Batch`; subclasses declare `rule` and `create_state`.

    The numbers of the rule are the batch's rate, decay and count of updates, the optimizer's
    attributes of the same names, and what `_numbers` returns.
    """

    rule: ClassVar[Rule]
    stateless_rule: ClassVar[Rule | None] = None  # in place of `rule` where states are None
    copy_comes_first = True  # (32-bit copy, state), or the reverse
    rates_by_list = False  # whether MXNet calls `_get_lrs`, or `_get_lr` for each
    in_order = False  # whether a step depends on those of the parameters before it
    states_like_weights = True  # whether each state has the shape and type of its weight
    lazy_update = False  # whether a row_sparse gradient changes only the rows that it has
    counts_first = True  # whether an update counts before its rate is read from the schedule
    least_momentum = -math.inf  # a smaller momentum counts as this one

    def _numbers(self, batch: Batch) -> dict[str, Any]:
        """Return the numbers of the rule that differ from the attributes of the same names."""
        return {}

    def _step_batch(self, batch: Batch, **numbers: float) -> None:
        """Change the weights of a batch, and their states, in place; `numbers` override others."""
        rule, states = self.rule, batch.states
        if self.stateless_rule is not None and states == [None]:
            rule, states = self.stateless_rule, []
        given = {"lr": batch.lr, "wd": batch.wd, "t": batch.t, **self._numbers(batch), **numbers}
        values = {n: given[n] if n in given else self._number(n) for n in rule.numbers}
        rule(batch.weights, batch.grads, *states, **values)

    def _number(self, name: str) -> float:
        """Return an attribute as rules take it: a limit of None or 0 is negative."""
        if name == "momentum":
            return max(self.momentum, self.least_momentum)
        limit = _LIMITS.get(name)
        return getattr(self, name) if limit is None else getattr(self, limit) or -1.0

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Change a weight by its gradient, or several, given as lists."""
        self._update(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Do `update`; of 16-bit weights in mixed precision on their 32-bit copies."""
        if unwrap(type(self).update) is not ListOptimizer.update:  # a user's own, for one parameter
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
        if self.counts_first:
            self._update_count(index)
            lrs, wds = self._rates(index)
        else:
            lrs, wds = self._rates(index)
            self._update_count(index)
        if _are_dense(weight) and _are_dense(grad):
            self._step_all(index, _tensors(weight), _tensors(grad), state, lrs, wds, mixed)
            return
        for one in zip(index, weight, grad, state, lrs, wds, strict=True):
            self._update_sparse(*one, mixed)

    def _rates(self, indices: Sequence[Index]) -> tuple[list[float], list[float]]:
        """Return current rates and decays; overridden methods are called as MXNet calls them."""
        own, base = type(self), Optimizer
        if self.rates_by_list or (
            own._get_lr is base._get_lr
            and own._get_lrs is base._get_lrs
            and own._get_wd is base._get_wd
            and own._get_wds is base._get_wds
        ):
            return self._get_lrs(indices), self._get_wds(indices)
        return [self._get_lr(i) for i in indices], [self._get_wd(i) for i in indices]

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
        if not len(indices) == len(weights) == len(grads) == len(states):
            raise MXNetError(
                f"{type(self).__name__} got {len(indices)} indices, {len(weights)} weights, "
                f"{len(grads)} gradients and {len(states)} states; it needs as many of each."
            )
        times = list(map(self._index_update_count.__getitem__, indices))
        for group in self._plan(indices, weights, states, mixed).groups:
            slopes = group.gradients(grads, self._called)
            for batch in group.batches(slopes, lrs, wds, times):
                self._step_batch(batch)
            if group.halves is not None:
                torch._foreach_copy_(group.halves, group.weights)

    def _plan(
        self, indices: Sequence[Index], weights: list[Tensor], states: Sequence[Any], mixed: bool
    ) -> Plan:
        """Return the groups of these parameters, those of the last step if nothing changed."""
        plans = self.__dict__.setdefault("_plans", {})
        # each device has its own counts, and the same indices
        key = id(self._index_update_count), indices[0], len(indices), mixed
        plan = plans.get(key)
        if plan is None or not plan.fits(indices, weights, states):
            places = positions_by_place(weights, self.in_order)
            groups = [self._group(p, indices, weights, states, mixed) for p in places]
            plan = plans[key] = Plan(indices, weights, states, groups)
        return plan

    def _group(
        self,
        positions: list[int] | None,
        indices: Sequence[Index],
        weights: list[Tensor],
        states: Sequence[Any],
        mixed: bool,
    ) -> Group:
        if positions is not None:
            indices, weights, states = (
                [items[i] for i in positions] for items in (indices, weights, states)
            )
        halves = None
        if mixed and weights[0].dtype in HALF:
            halves = weights
            weights, states = self._split(states)
            check_states(halves, [[w.to(halves[0].dtype) for w in weights]], indices, self._called)
        kinds = by_kind(states)
        if self.states_like_weights:
            check_states(weights, kinds, indices, self._called)
        return Group(positions, indices, weights, kinds, halves)

    def _split(self, states: Sequence[Any]) -> tuple[list[Tensor], list[Any]]:
        """Return the 32-bit copies and the states proper."""
        at = 0 if self.copy_comes_first else 1
        if any(not isinstance(s, tuple | list) or len(s) != 2 or s[at] is None for s in states):
            raise MXNetError(
                f"{type(self).__name__} in mixed precision needs states that "
                "create_state_multi_precision made; these have no 32-bit copy of the weight."
            )
        return [plain(s[at]) for s in states], [s[1 - at] for s in states]

    def _called(self, index: Index) -> str:
        return f"{type(self).__name__}: parameter {self.idx2name.get(index, index)!r}"

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_plans", None)
        return state

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
        whole = all_rows(weight)
        if mixed or not self._is_lazy(weight, grad):
            slopes = plain(grad.tostype("default"))
            self._step_all([index], [whole], [slopes], [state], [lr], [wd], mixed)
            return
        rows = grad._indices
        if not rows.numel():
            return
        held = [whole, *(None if s is None else all_rows(s) for s in _kinds(state))]
        parts = [None if h is None else h.index_select(0, rows) for h in held]
        lists = [None if p is None else [p] for p in parts]
        t = self._index_update_count[index]
        self._step_batch(Batch([index], lists[0], [grad._values], lists[1:], lr, wd, t))
        for target, moved in zip(held, parts, strict=True):
            if target is not None:
                target.index_copy_(0, rows, moved)


def zero_state(weight: NDArray) -> NDArray:
    """Return zeros of a weight's shape, type and device, laid out in memory as the weight is."""
    if weight.stype != "default":
        return zeros(weight.shape, ctx=weight.context, dtype=weight.dtype)
    return wrap_plain(NDArray, torch.zeros_like(plain(weight)), weight._ctx)


def all_rows(array: NDArray) -> Tensor:
    """Return the tensor with all rows of an array; a row_sparse one stores them all from now on."""
    if array.stype == "default":
        return plain(array)
    if array.stype != "row_sparse":
        raise MXNetError(f"Weights and states cannot be of storage type {array.stype}.")
    if len(array._indices) != array.shape[0]:
        rows = torch.arange(array.shape[0], device=array._indices.device)
        array._set(array.shape, array._dense(), rows)
    return array._values


def _tensors(arrays: Sequence[NDArray]) -> list[Tensor]:
    """Return `plain` of each array."""
    tensors = list(map(_data, arrays))
    return tensors if NoneType not in map(type, tensors) else list(map(plain, arrays))


def _are_dense(arrays: Sequence[NDArray]) -> bool:
    for kind in set(map(type, arrays)):  # noqa: SIM110 (a generator takes longer)
        if kind.stype is not _DENSE:
            return False
    return True


def _kinds(state: Any) -> Sequence[Any]:
    return state if isinstance(state, tuple | list) else (state,)
