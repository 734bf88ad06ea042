"""`ListOptimizer`: optimizers that update many parameters together.

Parameters with equal rate, decay, update count, data type and device form a `Batch`; the
optimizer's update rule (`mxnet.ops.training`) updates all weights of a batch. 16-bit weights with
32-bit copies and row_sparse gradients are handled here. The grouping of a list of parameters is
prepared once, as a `Plan`, and reused until they change. Shapes of states are checked here, because
fused kernels would access memory beyond the end of a smaller state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from inspect import unwrap
from operator import attrgetter, is_
from types import NoneType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..dtypes import to_name
from ..error import DTypeError, InvalidValue, MXNetError, ShapeError
from ..ndarray import NDArray, zeros
from ..ops.training.rules import Rule, TensorList
from ..runtime.array import is_sparse, plain, wrap_plain
from ..torch_private import foreach
from .base import Index, Optimizer, is_half, warn_of_half

HALF = (torch.float16, torch.bfloat16)
_shape, _dtype, _device = attrgetter("shape"), attrgetter("dtype"), attrgetter("device")
_is_cpu = attrgetter("is_cpu")


class Batch(NamedTuple):
    """Weights that are updated together. `states` has a list for each kind of state, or is None."""

    indices: Sequence[Index]
    weights: list[Tensor]
    grads: list[Tensor]
    states: list[list[Tensor] | None]
    lr: float
    wd: float
    t: int  # update count of these parameters, from 1

    def split(self) -> Iterator[Batch]:
        """Yield one batch per weight."""
        for i, index in enumerate(self.indices):
            states = [None if kind is None else [kind[i]] for kind in self.states]
            yield self._replace(
                indices=[index], weights=[self.weights[i]], grads=[self.grads[i]], states=states
            )


new_batch = partial(tuple.__new__, Batch)  # constructor from a tuple, without a Python frame
_unwrap = lru_cache(maxsize=256)(unwrap)


class Group:
    """Parameters of one data type on one device, and their states."""

    __slots__ = (
        "checked",
        "device",
        "dtype",
        "halves",
        "indices",
        "kinds",
        "positions",
        "shapes",
        "weights",
    )

    def __init__(
        self,
        positions: list[int] | None,
        indices: Sequence[Index],
        weights: list[Tensor],
        kinds: list[list[Tensor] | None],
        halves: list[Tensor] | None,
    ) -> None:
        self.positions = positions  # positions in the lists of the plan; None for all
        self.indices, self.weights = indices, TensorList(weights)
        self.kinds: list[list[Tensor] | None] = [
            None if kind is None else TensorList(kind) for kind in kinds
        ]
        self.halves = halves  # 16-bit weights in mixed precision; `weights` are their 32-bit copies
        first = weights[0] if halves is None else halves[0]
        self.dtype, self.device = first.dtype, first.device
        self.shapes = list(map(_shape, weights))
        self.checked = TensorList()  # checked gradients of the last step

    def gradients(self, grads: list[Tensor], called: Callable[[Index], str]) -> list[Tensor]:
        """Return the checked gradients of this group, in the data type of `weights`."""
        if self.positions is not None:
            grads = [grads[i] for i in self.positions]
        if len(grads) == len(self.checked) and all(map(is_, grads, self.checked)):
            return self.checked
        if (
            list(map(_shape, grads)) != self.shapes
            or list(map(_dtype, grads)).count(self.dtype) != len(grads)
            or not self._are_on_device(grads)
        ):
            self._raise_mismatch(grads, called)
        if self.halves is not None:
            return [g.to(torch.float32) for g in grads]
        self.checked = TensorList(grads)
        return self.checked

    def _are_on_device(self, grads: list[Tensor]) -> bool:
        if self.device.type == "cpu":
            return all(map(_is_cpu, grads))
        return set(map(_device, grads)) == {self.device}

    def _raise_mismatch(self, grads: list[Tensor], called: Callable[[Index], str]) -> None:
        for index, shape, grad in zip(self.indices, self.shapes, grads, strict=True):
            if grad.shape != shape:
                raise ShapeError(
                    f"Incompatible attr: {called(index)} is {tuple(shape)}, its gradient "
                    f"{tuple(grad.shape)}."
                )
            if grad.dtype != self.dtype or grad.device != self.device:
                raise DTypeError(
                    f"Incompatible attr: {called(index)} is {to_name(self.dtype)} on "
                    f"{self.device}, its gradient {to_name(grad.dtype)} on {grad.device}."
                )

    def batches(
        self, grads: list[Tensor], lrs: list[float], wds: list[float], times: list[int]
    ) -> list[Batch]:
        """Return the batches of equal rate, decay and update count."""
        if self.positions is not None:
            lrs = [lrs[i] for i in self.positions]
            wds = [wds[i] for i in self.positions]
            times = [times[i] for i in self.positions]
        count = len(self.weights)
        varying: list[Any] = []
        rows: tuple[Any, ...] = (lrs, wds, times)
        for numbers in rows:
            if numbers.count(numbers[0]) != count:
                varying.append(numbers)
        if not varying:
            parts = (self.indices, self.weights, grads, self.kinds, lrs[0], wds[0], times[0])
            return [new_batch(parts)]
        positions: dict[tuple, list[int]] = {}
        for position, key in enumerate(zip(*varying, strict=True)):
            positions.setdefault(key, []).append(position)
        return [
            Batch(
                [self.indices[i] for i in own],
                [self.weights[i] for i in own],
                [grads[i] for i in own],
                [None if kind is None else [kind[i] for i in own] for kind in self.kinds],
                lrs[own[0]],
                wds[own[0]],
                times[own[0]],
            )
            for own in positions.values()
        ]


class Plan:
    """The groups of a list of parameters, valid for the same tensor and state objects."""

    __slots__ = ("groups", "held", "indices")

    def __init__(
        self,
        indices: Sequence[Index],
        weights: list[Tensor],
        states: Sequence[Any],
        groups: list[Group],
    ) -> None:
        self.indices = list(indices)
        self.held = weights, states
        self.groups = groups

    def fits(self, indices: Sequence[Index], weights: list[Tensor], states: Sequence[Any]) -> bool:
        """Return whether these are the parameters and states of this plan."""
        held, plan_states = self.held
        return (
            len(weights) == len(held)
            and all(map(is_, weights, held))
            and all(map(is_, states, plan_states))
            and list(indices) == self.indices
        )


def positions_by_place(weights: list[Tensor], alone: bool) -> list[list[int] | None]:
    """Group the positions of weights by type and device; None if there is only one group."""
    if alone:
        return [[i] for i in range(len(weights))]
    if len(set(map(_dtype, weights))) == 1 == len(set(map(_device, weights))):
        return [None]
    groups: dict[tuple, list[int]] = {}
    for i, weight in enumerate(weights):
        groups.setdefault((weight.dtype, weight.device), []).append(i)
    return list(groups.values())


def by_kind(states: Sequence[Any]) -> list[list[Tensor] | None]:
    """Convert states per parameter to a list for each kind of state.

    >>> by_kind([None, None])
    [None]
    """
    if all(state is None for state in states):
        return [None]
    if all(isinstance(state, NDArray) for state in states):
        return [list(map(all_rows, states))]
    if not all(
        isinstance(state, tuple | list) and len(state) == len(states[0]) for state in states
    ):
        raise MXNetError(
            "States of parameters that are updated together differ in structure; were they "
            "created by a different optimizer? Found: "
            f"{sorted({type(s).__name__ for s in states})}."
        )
    return [kind for parts in zip(*states, strict=True) for kind in by_kind(parts)]


def check_states(
    weights: list[Tensor],
    kinds: list[list[Tensor] | None],
    indices: Sequence[Index],
    called: Callable[[Index], str],
) -> None:
    """Raise if a state differs from its weight in shape, data type or device."""
    for kind in kinds:
        if kind is None:
            continue
        for weight, state, index in zip(weights, kind, indices, strict=True):
            same = weight.dtype == state.dtype and weight.device == state.device
            same_shape = weight.shape == state.shape
            if not (same and same_shape):
                kind = InvalidValue if same_shape else ShapeError
                raise kind(
                    f"{called(index)} is {tuple(weight.shape)} of {to_name(weight.dtype)} on "
                    f"{weight.device}, but its state is {tuple(state.shape)} of "
                    f"{to_name(state.dtype)} on {state.device}: does it belong to a different "
                    "parameter?"
                )


def _is_copied(state: Any) -> bool:
    """Return whether a state of SGD is (momentum or None, 32-bit copy), of mixed precision."""
    return isinstance(state, tuple | list) and len(state) == 2


_data = attrgetter("_data")
_DENSE = NDArray.stype  # sparse classes override the property
# Limits in the rules' numbers, and their attributes.
_LIMITS = {
    "clip_gradient": "clip_gradient",
    "clip_grad": "clip_gradient",
    "clip_weights": "clip_weights",
    "lower_bound": "lower_bound",
    "upper_bound": "upper_bound",
}


class ListOptimizer(Optimizer):
    """Base of optimizers that update a `Batch`; subclasses define `rule` and `create_state`.

    Numbers of the rule are the batch's rate, decay and update count, the optimizer's attributes of
    the same names, and the result of `_numbers`.
    """

    rule: ClassVar[Rule]
    stateless_rule: ClassVar[Rule | None] = None  # rule if states are None
    copy_comes_first = True  # order: (32-bit copy, state), or the reverse
    rates_by_list = False  # whether MXNet calls `_get_lrs` instead of `_get_lr`
    in_order = False  # whether an update depends on the previous parameters
    states_like_weights = True  # whether states have the shape and type of their weights
    copies_optional = False  # whether 16-bit weights without copies are allowed in mixed precision
    ignores_copies = False  # whether without momentum states with 32-bit copies are treated as None
    lazy_update = False  # whether to update only the rows of a row_sparse gradient
    sparse_states = False  # whether states of sparse weights are sparse; lazy ones always are
    counts_first = True  # whether to count an update before reading its rate from the schedule
    min_momentum = -math.inf  # lower bound of the momentum
    momentum: float

    def _numbers(self, batch: Batch) -> dict[str, Any]:
        """Return numbers of the rule that override attributes."""
        return {}

    def _step_batch(self, batch: Batch, **numbers: float) -> None:
        """Update the weights of a batch and their states in place; `numbers` override others."""
        rule, states = self.rule, batch.states
        if self.stateless_rule is not None and states == [None]:
            rule, states = self.stateless_rule, []
        if len(states) != len(rule.states):
            raise InvalidValue(
                f"{type(self).__name__} keeps {len(rule.states)} states of a parameter "
                f"({', '.join(rule.states)}), but was given {len(states)}: were they created by a "
                "different optimizer, or with different options?"
            )
        numbers = {"lr": batch.lr, "wd": batch.wd, "t": batch.t, **self._numbers(batch), **numbers}
        values = {}
        for name in rule.numbers:
            if name in numbers:
                values[name] = numbers[name]
            elif name == "momentum":
                values[name] = max(self.momentum, self.min_momentum)
            elif name in _LIMITS:  # no limit (None or 0) is negative in rules
                values[name] = getattr(self, _LIMITS[name]) or -1.0
            else:
                values[name] = getattr(self, name)
        rule(batch.weights, batch.grads, *states, **values)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Update a weight by its gradient; also takes lists."""
        self._update(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Call `update`, for 16-bit weights in mixed precision on their 32-bit copies."""
        if _unwrap(type(self).update) is ListOptimizer.update:
            self._update(index, weight, grad, state, bool(self.multi_precision))
            return
        rows = [(index, weight, grad, state)]
        if isinstance(index, list | tuple):
            rows = list(zip(index, weight, grad, state, strict=True))
        for i, w, g, s in rows:  # user-defined `update` takes one parameter
            swapped = self.multi_precision and is_half(w) and not self.copy_comes_first
            super().update_multi_precision(i, w, g, s[::-1] if swapped else s)

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

    def _zero_state(self, weight: NDArray) -> NDArray:
        """Return zeros for a state, in MXNet's storage type."""
        like_weight = self.sparse_states or self.lazy_update
        return zero_state(weight, weight.stype if like_weight else "default")

    # -- from lists of arrays to batches ------------------------------------------------------

    def _update(self, index: Any, weight: Any, grad: Any, state: Any, mixed: bool) -> None:
        counted = index  # a single parameter
        if not isinstance(index, list | tuple):
            index, weight, grad, state = (index,), (weight,), (grad,), (state,)
        if not index:
            return
        if self.counts_first:
            self._update_count(counted)
            lrs, wds = self._rates(index)
        else:
            lrs, wds = self._rates(index)
            self._update_count(counted)
        tensors = _dense_tensors(weight, grad)
        if tensors is not None:
            self._step_all(index, *tensors, state, lrs, wds, mixed)
            return
        for i, w, g, s, lr, wd in zip(index, weight, grad, state, lrs, wds, strict=True):
            self._update_sparse(i, w, g, s, lr, wd, mixed)

    def _rates(self, indices: Sequence[Index]) -> tuple[list[float], list[float]]:
        """Return current rates and decays; overridden methods are called as in MXNet."""
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
        lists = (weights, grads, states, lrs, wds)
        if set(map(len, lists)) != {len(indices)}:
            raise MXNetError(
                f"{type(self).__name__} got {len(indices)} indices, {len(weights)} weights, "
                f"{len(grads)} gradients, {len(states)} states, {len(lrs)} rates and {len(wds)} "
                "decays; it needs the same number of each."
            )
        times = list(map(self._index_update_count.__getitem__, indices))
        for group in self._plan(indices, weights, states, mixed).groups:
            slopes = group.gradients(grads, self._called)
            for batch in group.batches(slopes, lrs, wds, times):
                self._step_batch(batch)
            if group.halves is not None:
                foreach("copy_")(group.halves, group.weights)

    def _plan(
        self, indices: Sequence[Index], weights: list[Tensor], states: Sequence[Any], mixed: bool
    ) -> Plan:
        plans = self.__dict__.setdefault("_plans", {})
        # devices have the same indices, but separate update counts
        stateless = self.ignores_copies and not self.momentum
        key = id(self._index_update_count), indices[0], len(indices), mixed, stateless
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
            indices = [indices[i] for i in positions]
            weights = [weights[i] for i in positions]
            states = [states[i] for i in positions]
        halves = None
        mixed = mixed and weights[0].dtype in HALF
        if mixed and not (self.copies_optional and not any(map(_is_copied, states))):
            halves = weights
            weights, states = self._split(states)
            check_states(halves, [[w.to(halves[0].dtype) for w in weights]], indices, self._called)
        elif self.ignores_copies and not self.momentum:
            states = [None if _is_copied(s) else s for s in states]
        kinds = by_kind(states)
        if self.states_like_weights:
            check_states(weights, kinds, indices, self._called)
        return Group(positions, indices, weights, kinds, halves)

    def _split(self, states: Sequence[Any]) -> tuple[list[Tensor], list[Any]]:
        """Separate the 32-bit copies from the states."""
        at = 0 if self.copy_comes_first else 1
        if any(not isinstance(s, tuple | list) or len(s) != 2 or s[at] is None for s in states):
            raise MXNetError(
                f"{type(self).__name__} in mixed precision needs states of "
                "create_state_multi_precision; these have no 32-bit copy of the weight."
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
        return self.lazy_update and grad.stype == "row_sparse"

    def _update_sparse(
        self,
        index: Index,
        weight: NDArray,
        grad: Any,
        state: Any,
        lr: float,
        wd: float,
        mixed: bool,
    ) -> None:
        """Update the rows of the gradient, or convert to dense arrays."""
        mixed = mixed and is_half(weight)
        if mixed and self.copy_comes_first:
            self._split([state])
            copy, state = state
            self._update_sparse(index, copy, grad.astype(np.float32), state, lr, wd, False)
            weight[:] = copy.astype(weight.dtype)
        elif mixed or weight.stype == "csr" or not self._is_lazy(weight, grad):
            self._step_dense(index, weight, grad, state, lr, wd, mixed)
        elif grad._indices.numel():
            self._step_rows(index, weight, grad, state, lr, wd)

    def _step_dense(
        self,
        index: Index,
        weight: NDArray,
        grad: NDArray,
        state: Any,
        lr: float,
        wd: float,
        mixed: bool,
    ) -> None:
        """Update all elements; csr arrays are copied to dense ones and written back."""
        copies: list[tuple[Any, Tensor]] = []
        whole, held = _dense_form(weight, copies), _dense_form(state, copies)
        slopes = plain(grad.tostype("default"))
        self._step_all([index], [plain(whole)], [slopes], [held], [lr], [wd], mixed)
        for array, dense in copies:
            array._set_dense(dense)

    def _step_rows(
        self, index: Index, weight: NDArray, grad: Any, state: Any, lr: float, wd: float
    ) -> None:
        rows = grad._indices
        held = [all_rows(weight), *(None if s is None else all_rows(s) for s in _kinds(state))]
        parts = [None if h is None else h.index_select(0, rows) for h in held]
        lists: list[Any] = [None if p is None else [p] for p in parts]
        t = self._index_update_count[index]
        self._step_batch(Batch([index], lists[0], [grad._values], lists[1:], lr, wd, t))
        for target, moved in zip(held, parts, strict=True):
            if target is not None:
                target.index_copy_(0, rows, moved)


def zero_state(weight: NDArray, stype: str = "default") -> NDArray:
    """Return zeros of a weight's shape, type, device and memory layout."""
    if stype != "default" or weight.stype != "default":
        return zeros(weight.shape, ctx=weight.context, dtype=weight.dtype, stype=stype)
    return wrap_plain(NDArray, torch.zeros_like(plain(weight)), weight._ctx)


def _dense_form(held: Any, copies: list[tuple[Any, Tensor]]) -> Any:
    """Return a weight or state as dense arrays: the same memory, or a recorded copy."""
    if isinstance(held, tuple | list):
        return tuple(_dense_form(part, copies) for part in held)
    if held is None or held.stype == "default":
        return held
    if held.stype == "row_sparse":
        return wrap_plain(NDArray, all_rows(held), held._ctx)
    dense = held._dense()
    copies.append((held, dense))
    return wrap_plain(NDArray, dense, held._ctx)


def all_rows(array: Any) -> Tensor:
    """Return the tensor of all rows; a row_sparse array stores all rows from now on."""
    if array.stype == "default":
        return plain(array)
    if array.stype != "row_sparse":
        raise MXNetError(f"Weights and states cannot be of storage type {array.stype}.")
    if len(array._indices) != array.shape[0]:
        rows = torch.arange(array.shape[0], device=array._indices.device)
        array._set(array.shape, array._dense(), rows)
    return array._values


def _dense_tensors(
    weights: Sequence[NDArray], grads: Sequence[NDArray]
) -> tuple[list[Tensor], list[Tensor]] | None:
    """Return the tensors of weights and gradients; None if one is sparse."""
    tensors, gradients = list(map(_data, weights)), list(map(_data, grads))
    if NoneType not in {*map(type, tensors), *map(type, gradients)}:
        return tensors, gradients
    if any(map(is_sparse, (*weights, *grads))):
        return None
    return list(map(plain, weights)), list(map(plain, grads))


def _kinds(state: Any) -> Sequence[Any]:
    return state if isinstance(state, tuple | list) else (state,)
