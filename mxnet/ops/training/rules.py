"""`@rule`: an optimizer's formula, declared once, and the update operators derived from it.

A rule is a function on `TensorList`s that changes weights and states in place. Called with lists
it steps all weights together; that is what `mxnet.optimizer` does. From the same function come
MXNet's operators: one weight (`sgd_update`), a 16-bit weight with a 32-bit copy (`mp_`), and many
weights in one call (`multi_`, `multi_mp_` and `preloaded_`; see `multi.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from inspect import Parameter
from typing import Any

from torch import Tensor

from ...error import MXNetError, ShapeError
from ..declare import Op, op
from ..shapes import Shapes, same
from .tensor_list import TensorList, Tensors, as_list

CHUNK = 32
_LAZY = Parameter("lazy_update", Parameter.KEYWORD_ONLY, default=True, annotation=bool)


class Rule:
    """The formula of an optimizer's step.

    Positional parameters of the formula are the weight, its gradient and its states; keyword-only
    ones are numbers, in the order and with the defaults of MXNet's operator. It calls tensor
    methods, which work on one tensor and on a `TensorList` alike.

    >>> import torch
    >>> from mxnet.ops.training.sgd import sgd
    >>> weights = [torch.ones(2), torch.ones(1)]
    >>> sgd(weights, [torch.ones(2), torch.zeros(1)], lr=0.5)
    >>> weights
    [tensor([0.5000, 0.5000]), tensor([1.])]
    """

    def __init__(
        self,
        formula: Callable[..., TensorList | None],
        *,
        in_one_pass: Callable[..., bool] | None,
        scale_is_array: bool,
        returns_step: bool,
        same_shapes: bool,
    ) -> None:
        self.formula = formula
        parameters = inspect.signature(formula, eval_str=True).parameters.values()
        arrays = [p.name for p in parameters if p.kind is not Parameter.KEYWORD_ONLY]
        self.states = tuple(arrays[2:])
        self.numbers = {p.name: p for p in parameters if p.kind is Parameter.KEYWORD_ONLY}
        self.scale_is_array = scale_is_array
        self.returns_step = returns_step
        self.same_shapes = same_shapes
        self._in_one_pass = in_one_pass
        update_wrapper(self, formula)

    def __call__(
        self, weights: Tensors, grads: Tensors, *states: Tensors | None, **numbers: Any
    ) -> None:
        """Change weights and states of one dtype and device in place.

        Formulas that make temporary arrays run in chunks, so that the arrays stay in the cache.
        """
        count = len(weights)
        lists = (weights, grads, *states)
        if count == 1:
            self.formula(*(t and t[0] for t in lists), **numbers)
        elif count <= CHUNK or (self._in_one_pass and self._in_one_pass(**numbers)):
            self.formula(*map(_listed, lists), **numbers)
        else:
            for start in range(0, count, CHUNK):
                part = (t and TensorList(t[start : start + CHUNK]) for t in lists)
                self.formula(*part, **numbers)

    # -- operators ----------------------------------------------------------------------------

    def operator(self, *names: str, lazy: bool = False, refuses: tuple[str, ...] = ()) -> Op:
        """Derive the operator that returns the new weight and changes the states in place.

        `lazy` adds MXNet's `lazy_update`, which matters to sparse gradients only; numbers that
        the operator `refuses` must be 0.
        """
        return self._derive(names, False, self.__doc__ or "", lazy, refuses)

    def mixed(self, *names: str, of: str, example: str, lazy: bool = False) -> Op:
        """Derive the operator for a 16-bit weight, which steps on its 32-bit copy."""
        doc = f"Do `{of}` on a 32-bit copy of a 16-bit weight; its states are 32-bit too."
        return self._derive(names, True, f"{doc}\n\n{inspect.cleandoc(example)}", lazy, ())

    def _derive(
        self, names: tuple[str, ...], mixed: bool, doc: str, lazy: bool, refuses: tuple[str, ...]
    ) -> Op:
        name = names[0]
        states = (*self.states, "weight32") if mixed else self.states
        extras = ("rescale_grad",) if self.scale_is_array else ()
        width = 2 + len(states)
        is_simple = not (mixed or self.scale_is_array or self.returns_step)

        def function(*arrays: Tensor, lazy_update: bool = True, **numbers: Any) -> Tensor:
            for key in refuses:
                if numbers.get(key):
                    raise MXNetError(f"{name} does not support {key}={numbers[key]}; give 0.")
            weight, *others = arrays[:width]
            check_shapes(name, weight, *(others if self.same_shapes else others[:1]))
            if is_simple:  # a copy of the weight, and nothing else: spare the lists
                new = weight.clone()
                self.formula(new, *others, **numbers)
                return new
            wide = [others.pop()] if mixed else None
            lists = [[x] for x in others]
            return self.step(name, [weight], lists, wide, arrays[width:], numbers)[0]

        attributes = [*self.operator_numbers(), *([_LAZY] if lazy else ())]
        describe(function, self, name, ("weight", "grad", *states, *extras), attributes, doc)
        result = "F" if self.returns_step else "T"
        return op(
            *names,
            auto_inputs=False,
            shape=_all_but_last_same if extras else same if self.same_shapes else None,
            types=f"T T {'F ' * (width - 2 + len(extras))}-> {result}" if mixed else None,
            mutates=self.states if self.returns_step else states,
        )(function)

    def operator_numbers(self) -> list[Parameter]:
        """Return the numbers that the operators have as attributes."""
        hidden = {"rescale_grad"} if self.scale_is_array else ()
        return [p for name, p in self.numbers.items() if name not in hidden]

    def step(
        self,
        name: str,
        weights: Tensors,
        others: Sequence[Tensors],
        wide: Tensors | None,
        rescale: Sequence[Tensor],
        numbers: Mapping[str, Any],
    ) -> Tensors:
        """Return new weights after a step on copies, or on `wide` ones, which change."""
        if rescale:
            scale = _read_number(name, rescale[0])
            if scale == 0.0 or not abs(scale) < float("inf"):  # the loss scale overflowed
                return [w.clone() for w in weights]
            numbers = {**numbers, "rescale_grad": scale}
        if wide is not None:
            others = [[g.to(w.dtype) for g, w in zip(others[0], wide, strict=True)], *others[1:]]
        if self.returns_step:
            step = self.formula(*(t[0] for t in (wide or weights, *others)), **numbers)
            return [] if step is None else as_list(step)
        new = [w.clone() for w in weights] if wide is None else wide
        self(new, *others, **numbers)
        if wide is None:
            return new
        return [w.to(like.dtype) for w, like in zip(wide, weights, strict=True)]


def rule(
    *,
    in_one_pass: Callable[..., bool] | None = None,
    scale_is_array: bool = False,
    returns_step: bool = False,
    same_shapes: bool = True,
) -> Callable[[Callable[..., TensorList | None]], Rule]:
    """Declare an update rule.

    Parameters
    ----------
    in_one_pass : whether the formula makes no temporary arrays, given its numbers.
    scale_is_array : whether operators take `rescale_grad` as their last input.
    returns_step : whether the formula returns a step and leaves the weight alone.
    same_shapes : whether states have the shape of the weight.
    """

    def declare(formula: Callable[..., TensorList | None]) -> Rule:
        return Rule(
            formula,
            in_one_pass=in_one_pass,
            scale_is_array=scale_is_array,
            returns_step=returns_step,
            same_shapes=same_shapes,
        )

    return declare


def _listed(tensors: Tensors | None) -> TensorList | None:
    if tensors is None or type(tensors) is TensorList:  # whose facts are known already
        return tensors
    return TensorList(tensors)


def describe(
    function: Callable,
    rule: Rule,
    name: str,
    inputs: Sequence[str],
    attributes: Sequence[Parameter],
    doc: str,
) -> None:
    """Give a derived function its name, signature and docstring; ``*data`` is any number."""
    kinds = {True: Parameter.VAR_POSITIONAL, False: Parameter.POSITIONAL_OR_KEYWORD}
    arrays = [Parameter(i.lstrip("*"), kinds[i.startswith("*")], annotation=Tensor) for i in inputs]
    function.__signature__ = inspect.Signature([*arrays, *attributes])
    function.__annotations__ = {p.name: p.annotation for p in (*arrays, *attributes)}
    function.__name__ = function.__qualname__ = name.lstrip("_")
    function.__module__ = rule.__module__
    function.__doc__ = doc


def check_shapes(name: str, weight: Tensor, *others: Tensor) -> None:
    """Refuse gradients and states that torch would silently broadcast."""
    for other in others:
        if other.shape != weight.shape:
            raise ShapeError(
                f"Shape inconsistent in {name}: the weight is {tuple(weight.shape)}, so its "
                f"gradient and states must be too, but one is {tuple(other.shape)}."
            )


def _read_number(name: str, value: Tensor) -> float:
    if value.numel() != 1:
        raise ShapeError(f"{name}: rescale_grad must hold one number, got {tuple(value.shape)}.")
    return value.item()


def _all_but_last_same(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    arrays, outs = same(ins[:-1], outs, attrs)
    return [*arrays, ins[-1] or (1,)], outs
