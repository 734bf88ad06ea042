"""`Plan`: how a list of parameters is stepped, prepared once and used until they change.

What fused kernels do not check is checked here: they would walk past the end of a state that is
smaller than its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter, is_
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..dtypes import to_name
from ..error import DTypeError, MXNetError, ShapeError
from ..imperative.handle import plain
from ..ndarray import NDArray
from ..ops.training.rules import TensorList
from .base import Index

HALF = (torch.float16, torch.bfloat16)
_shape, _dtype, _device = attrgetter("shape"), attrgetter("dtype"), attrgetter("device")
_is_cpu = attrgetter("is_cpu")


class Batch(NamedTuple):
    """Weights that step together. `states` holds a list for each kind of state, or None."""

    indices: Sequence[Index]
    weights: list[Tensor]
    grads: list[Tensor]
    states: list[list[Tensor] | None]
    lr: float
    wd: float
    t: int  # which update of these parameters this is, from 1

    def split(self) -> Iterator[Batch]:
        """Yield a batch for each weight."""
        for i, index in enumerate(self.indices):
            states = [None if kind is None else [kind[i]] for kind in self.states]
            yield self._replace(
                indices=[index], weights=[self.weights[i]], grads=[self.grads[i]], states=states
            )


class Group:
    """Parameters of one data type on one device, with their states."""

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
        self.positions = positions  # in the lists of the whole plan; None for all of them
        self.indices, self.weights = indices, TensorList(weights)
        self.kinds = [None if kind is None else TensorList(kind) for kind in kinds]
        self.halves = halves  # in mixed precision the 16-bit weights; `weights` are their copies
        first = weights[0] if halves is None else halves[0]
        self.dtype, self.device = first.dtype, first.device
        self.shapes = list(map(_shape, weights))
        self.checked = TensorList()  # gradients that fit, those of the last step

    def gradients(self, grads: list[Tensor], called: Callable[[Index], str]) -> list[Tensor]:
        """Return the checked gradients of this group, in the type of the weights stepped on."""
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
    ) -> Iterator[Batch]:
        """Yield the parts with one rate, one decay and one count of updates."""
        if self.positions is not None:
            lrs, wds, times = (
                [numbers[i] for i in self.positions] for numbers in (lrs, wds, times)
            )
        count = len(self.weights)
        varying = [n for n in (lrs, wds, times) if n.count(n[0]) != count]
        if not varying:
            yield Batch(self.indices, self.weights, grads, self.kinds, lrs[0], wds[0], times[0])
            return
        parts: dict[tuple, list[int]] = {}
        for position, key in enumerate(zip(*varying, strict=True)):
            parts.setdefault(key, []).append(position)
        for own in parts.values():
            first = own[0]
            yield Batch(
                [self.indices[i] for i in own],
                [self.weights[i] for i in own],
                [grads[i] for i in own],
                [None if kind is None else [kind[i] for i in own] for kind in self.kinds],
                lrs[first],
                wds[first],
                times[first],
            )


class Plan:
    """The groups of a list of parameters, valid for these very tensors and states."""

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
        held, kept = self.held
        return (
            len(weights) == len(held)
            and all(map(is_, weights, held))
            and all(map(is_, states, kept))
            and list(indices) == self.indices
        )


def positions_by_place(weights: list[Tensor], alone: bool) -> list[list[int] | None]:
    """Return which weights may step together by type and device; None means all."""
    if alone:
        return [[i] for i in range(len(weights))]
    if len(set(map(_dtype, weights))) == 1 == len(set(map(_device, weights))):
        return [None]
    groups: dict[tuple, list[int]] = {}
    for i, weight in enumerate(weights):
        groups.setdefault((weight.dtype, weight.device), []).append(i)
    return list(groups.values())


def by_kind(states: Sequence[Any]) -> list[list[Tensor] | None]:
    """Turn the states of each parameter into a list for each kind of state.

    >>> by_kind([None, None])
    [None]
    """
    if all(state is None for state in states):
        return [None]
    if all(isinstance(state, NDArray) for state in states):
        return [list(map(plain, states))]
    if not all(
        isinstance(state, tuple | list) and len(state) == len(states[0]) for state in states
    ):
        raise MXNetError(
            "States of parameters that step together differ in form; were they made by another "
            f"optimizer? Found: {sorted({type(s).__name__ for s in states})}."
        )
    return [kind for parts in zip(*states, strict=True) for kind in by_kind(parts)]


def check_states(
    weights: list[Tensor],
    kinds: list[list[Tensor] | None],
    indices: Sequence[Index],
    called: Callable[[Index], str],
) -> None:
    """Raise an error for states without the shape, dtype and device of their weights."""
    for kind in kinds:
        for weight, state, index in zip(weights, kind or (), indices, strict=False):
            same = weight.dtype == state.dtype and weight.device == state.device
            if weight.shape != state.shape or not same:
                raise ShapeError(
                    f"{called(index)} is {tuple(weight.shape)} of {to_name(weight.dtype)} on "
                    f"{weight.device}, but its state is {tuple(state.shape)} of "
                    f"{to_name(state.dtype)} on {state.device}: is it of another parameter?"
                )
