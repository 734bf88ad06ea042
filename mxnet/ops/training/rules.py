"""`@rule`: declares an optimizer's formula once, and derives the update operators.

A rule is a function on `TensorList`s that changes weights and states in place. `mxnet.optimizer`
calls it with lists to update all weights together. MXNet's operators are derived from it: for one
weight (`sgd_update`), a 16-bit weight with a 32-bit copy (`mp_`), and many weights in one call
(`multi_`, `multi_mp_` and `preloaded_`).

Inputs of the latter are ordered by weight: ``w0, g0, w1, g1, ...``, with states after each
gradient. The ``preloaded`` forms end with two arrays, all learning rates and all weight decays.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import update_wrapper
from inspect import Parameter
from itertools import pairwise
from typing import Any

from torch import Tensor

from ...error import MXNetError, ShapeError
from ...torch_private import foreach
from ..attributes import ArrayCount, Floats, Shape
from ..declare import Op, op
from ..shapes import Shapes, same, unify

Tensors = Sequence[Tensor]
PerWeight = float | list[float]  # a number of a rule that differs from weight to weight


CHUNK_BYTES = 1 << 20  # of weights; as much again for each state and each temporary array


class TensorList(list[Tensor]):
    """A list of tensors whose methods apply to each of them.

    It has all methods with a torch function for lists. Methods that end in an underscore change the
    tensors and return the list.

    >>> import torch
    >>> moments = TensorList([torch.ones(1), torch.zeros(2)])
    >>> moments.mul_(0.5).add(1)
    [tensor([1.5000]), tensor([1., 1.])]
    >>> moments
    [tensor([0.5000]), tensor([0., 0.])]
    """

    _contiguous: bool | None = None  # not known yet
    _chunks: list[slice] | None = None  # likewise

    def __getattr__(self, name: str) -> Callable[..., TensorList]:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            call = foreach(name)
        except AttributeError:
            raise AttributeError(f"torch has no method {name!r} for lists of tensors") from None
        method = _in_place(call) if name.endswith("_") else _out_of_place(call)
        setattr(TensorList, name, method)  # cache the method
        return getattr(self, name)

    def clamp_(self, low: float, high: float) -> TensorList:
        """Clamp all elements in place."""
        return self.clamp_max_(high).clamp_min_(low)

    def clamp(self, low: float, high: float) -> TensorList:
        """Return the clamped elements."""
        return self.clamp_max(high).clamp_min_(low)

    def chunks(self) -> list[slice]:
        """Return slices of at most `CHUNK_BYTES`, or of one tensor; computed once."""
        if self._chunks is None:
            starts, size = [0], 0
            for i, tensor in enumerate(self):
                size += tensor.nbytes
                if size > CHUNK_BYTES and i > starts[-1]:
                    starts.append(i)
                    size = tensor.nbytes
            self._chunks = [slice(*ends) for ends in pairwise([*starts, len(self)])]
        return self._chunks

    def addcdiv_(self, above: Tensors, below: Tensors, value: PerWeight) -> TensorList:
        """Add ``value * above / below``; `value` may have a number for each tensor."""
        foreach("addcdiv_")(self, above, below, value)
        return self

    def is_contiguous(self) -> bool:
        """Return whether all tensors are contiguous; checked once."""
        cached = self._contiguous
        if cached is None:
            cached = self._contiguous = all(map(Tensor.is_contiguous, self))
        return cached


def _in_place(call: Callable[..., None]) -> Callable[..., TensorList]:
    def method(self: TensorList, *operands: object, **numbers: object) -> TensorList:
        call(self, *operands, **numbers)
        return self

    return method


def _out_of_place(call: Callable[..., Tensors]) -> Callable[..., TensorList]:
    def method(self: TensorList, *operands: object, **numbers: object) -> TensorList:
        return TensorList(call(self, *operands, **numbers))

    return method


def as_list(tensors: TensorList | Tensor) -> TensorList:
    """Return the tensors as a list; for speed, rules may run on a single tensor."""
    return TensorList([tensors]) if isinstance(tensors, Tensor) else tensors


def scale_gradient(grad: TensorList, rescale_grad: float, clip_gradient: float) -> TensorList:
    """Return ``clip(rescale g)``, possibly `grad` itself; a negative limit disables clipping."""
    if rescale_grad != 1.0:
        grad = grad.mul(rescale_grad)
    return grad.clamp(-clip_gradient, clip_gradient) if clip_gradient >= 0 else grad


def decay_gradient(
    grad: TensorList, weight: TensorList, wd: float, rescale_grad: float, clip_gradient: float
) -> TensorList:
    """Return ``clip(rescale g + wd w)``, possibly `grad`; a negative limit disables clipping."""
    if not wd:
        return scale_gradient(grad, rescale_grad, clip_gradient)
    grad = scale_gradient(grad, rescale_grad, -1.0).add(weight, alpha=wd)
    return grad.clamp_(-clip_gradient, clip_gradient) if clip_gradient >= 0 else grad


_LAZY = Parameter("lazy_update", Parameter.KEYWORD_ONLY, default=True, annotation=bool)


class Rule:
    """The formula of an optimizer's update.

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

        On a CPU, formulas with temporary arrays run in chunks that fit into the cache.
        """
        if len(weights) == 1:
            own = {k: v[0] if isinstance(v, list) else v for k, v in numbers.items()}
            self.formula(*(t and t[0] for t in (weights, grads, *states)), **own)
            return
        lists: list[Any] = []
        for tensors in (weights, grads, *states):
            if tensors is not None and not isinstance(tensors, TensorList):
                tensors = TensorList(tensors)  # skip the checks of lists
            lists.append(tensors)
        first = lists[0]
        chunks = first._chunks or first.chunks() if weights[0].is_cpu else []
        if len(chunks) < 2 or self._is_one_pass(numbers):
            self.formula(*lists, **numbers)
            return
        for chunk in chunks:
            own = {k: v[chunk] if isinstance(v, list) else v for k, v in numbers.items()}
            self.formula(*(t and TensorList(t[chunk]) for t in lists), **own)

    def _is_one_pass(self, numbers: Mapping[str, Any]) -> bool:
        return self._in_one_pass is not None and self._in_one_pass(**numbers)

    # -- operators ----------------------------------------------------------------------------

    def operator(self, *names: str, lazy: bool = False, refuses: tuple[str, ...] = ()) -> Op:
        """Derive the operator that returns the new weight and changes the states in place.

        `lazy` adds MXNet's `lazy_update`, which affects sparse gradients only; numbers that the
        operator `refuses` must be 0.
        """
        return self._derive(names, False, self.__doc__ or "", lazy, refuses)

    def mixed(self, *names: str, of: str, example: str, lazy: bool = False) -> Op:
        """Derive the operator for a 16-bit weight, which updates its 32-bit copy."""
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
            if is_simple:  # a single copy: avoid lists
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
        """Return the numbers that are attributes of the operators."""
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
        """Return new weights: update copies, or `wide` in place."""
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
    in_one_pass : whether the formula has no temporary arrays, given its numbers.
    scale_is_array : whether operators take `rescale_grad` as their last input.
    returns_step : whether the formula returns a step instead of updating the weight.
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


def describe(
    function: Callable,
    rule: Rule,
    name: str,
    inputs: Sequence[str],
    attributes: Sequence[Parameter],
    doc: str,
) -> None:
    """Set name, signature and docstring of a derived function; ``*data`` is variadic."""
    kinds = {True: Parameter.VAR_POSITIONAL, False: Parameter.POSITIONAL_OR_KEYWORD}
    arrays = [Parameter(i.lstrip("*"), kinds[i.startswith("*")], annotation=Tensor) for i in inputs]
    function.__signature__ = inspect.Signature([*arrays, *attributes])
    function.__annotations__ = {p.name: p.annotation for p in (*arrays, *attributes)}
    function.__name__ = function.__qualname__ = name.lstrip("_")
    function.__module__ = rule.__module__
    function.__doc__ = doc


def check_shapes(name: str, weight: Tensor, *others: Tensor) -> None:
    """Raise for gradients and states that torch would silently broadcast."""
    for other in others:
        if other.shape != weight.shape:
            raise ShapeError(
                f"Shape inconsistent in {name}: the weight is {tuple(weight.shape)}, so its "
                f"gradient and states must be too, but one is {tuple(other.shape)}."
            )


def _read_number(name: str, value: Tensor) -> float:
    if value.numel() != 1:
        raise ShapeError(f"{name}: rescale_grad must have one element, got {tuple(value.shape)}.")
    return value.item()


def _all_but_last_same(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    arrays, outs = same(ins[:-1], outs, attrs)
    return [*arrays, ins[-1] or (1,)], outs


# Attributes with one value per weight, and the corresponding numbers of the rule.
PER_WEIGHT: dict[str, tuple[str, Any]] = {
    "lrs": ("lr", Floats),
    "learning_rates": ("lr", Floats),
    "wds": ("wd", Floats),
    "etas": ("eta", Floats),
    "step_count": ("t", Shape),
}


class MultiUpdate:
    """An operator that applies an update rule to many weights.

    Parameters
    ----------
    rule : the update rule.
    name : the operator's name.
    attributes : its attributes in MXNet's order, except the count.
    mixed : whether each weight's inputs end with a float32 master copy.
    preloaded : whether rates and decays are the last two inputs.
    count : the attribute with the number of weights.
    """

    def __init__(
        self,
        rule: Rule,
        name: str,
        attributes: str,
        *,
        mixed: bool = False,
        preloaded: bool = False,
        count: str = "num_weights",
    ) -> None:
        self.rule, self.name, self.mixed, self.count = rule, name, mixed, count
        self.attributes = attributes.split()
        self.loaded = ("lrs", "wds") if preloaded else ()
        self.per_weight = [a for a in (*self.attributes, *self.loaded) if a in PER_WEIGHT]
        self.states = (*rule.states, "weight32") if mixed else rule.states
        self.roles = ("weight", "grad", *self.states)
        self.extras = (*self.loaded, *(("rescale_grad",) if rule.scale_is_array else ()))

    def declare(self, doc: str, example: str) -> Op:
        """Declare the operator."""

        def function(*data: Tensor, **attrs: Any) -> Tensor | tuple[Tensor, ...]:
            new = self.step(data, attrs)
            return new[0] if len(new) == 1 else tuple(new)

        doc = f"{doc}\n\n{inspect.cleandoc(example)}"
        describe(function, self.rule, self.name, ("*data",), self._parameters(), doc)
        return op(
            self.name,
            mutates=self.states,
            outputs=lambda attrs: attrs[self.count],
            input_names=self.input_names,
            shape=self.infer_shapes,
        )(function)

    def _parameters(self) -> list[Parameter]:
        results = [
            Parameter(a, Parameter.KEYWORD_ONLY, annotation=PER_WEIGHT[a][1])
            if a in PER_WEIGHT
            else self.rule.numbers[a]
            for a in self.attributes
        ]
        return [
            *results,
            Parameter(self.count, Parameter.KEYWORD_ONLY, default=1, annotation=ArrayCount),
        ]

    def input_names(self, attrs: Mapping[str, Any]) -> list[str]:
        """Return the names of all inputs: ``weight_0, grad_0, ..., weight_1, ...``."""
        numbers = range(attrs[self.count])
        return [*(f"{role}_{i}" for i in numbers for role in self.roles), *self.extras]

    def infer_shapes(self, ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
        """Unify the shapes of each weight's arrays and output."""
        ins, outs, width = list(ins), list(outs), len(self.roles)
        for i in range(len(outs)):
            own = slice(i * width, (i + 1) * width)
            shape = outs[i]
            for other in ins[own]:
                shape = unify(shape, other, f"arrays of weight {i}")
            ins[own] = [shape] * width
            outs[i] = shape
        return ins, outs

    def step(self, data: Sequence[Tensor], attrs: Mapping[str, Any]) -> Tensors:
        """Return the new weights; weights with equal dtype and numbers are updated together."""
        count = attrs.get(self.count, 1)
        lists, extras = self._split(data, count)
        loaded = {key: array.tolist() for key, array in zip(self.loaded, extras, strict=False)}
        keys = {key: loaded[key] if key in loaded else attrs[key] for key in self.per_weight}
        for key, values in keys.items():
            if len(values) != count:
                raise MXNetError(f"{self.name}: {key} must have {count} values, got {len(values)}.")
        common = {k: v for k, v in attrs.items() if k not in PER_WEIGHT and k != self.count}
        new = list(lists[0])
        for values, positions in group_equal(*keys.values(), [w.dtype for w in lists[0]]):
            numbers = dict(zip((PER_WEIGHT[k][0] for k in keys), values, strict=False))
            weights, *others = ([items[i] for i in positions] for items in lists)
            wide = others.pop() if self.mixed else None
            rescale = extras[len(self.loaded) :]
            output = self.rule.step(self.name, weights, others, wide, rescale, common | numbers)
            for position, weight in zip(positions, output, strict=True):
                new[position] = weight
        return new

    def _split(self, data: Sequence[Tensor], count: int) -> tuple[list[Tensors], Tensors]:
        """Return the checked arrays by role, and the extra ones."""
        width, extras = len(self.roles), len(self.extras)
        if count < 1 or len(data) != count * width + extras:
            each = ", ".join(self.roles)
            rest = f" and {', '.join(self.extras)}" if extras else ""
            raise MXNetError(
                f"{self.name}: {self.count}={count} needs {count} times ({each}){rest}, that is "
                f"{count * width + extras} arrays, got {len(data)}."
            )
        together = data[: count * width]
        for i in range(0, len(together), width):
            check_shapes(self.name, *together[i : i + width])
        return [together[i::width] for i in range(width)], data[count * width :]


def group_equal(*keys: Sequence) -> Iterator[tuple[tuple, list[int]]]:
    """Yield (values, positions) for positions at which all sequences agree.

    >>> list(group_equal((0.1, 0.2, 0.1), (0.0, 0.0, 0.0)))
    [((0.1, 0.0), [0, 2]), ((0.2, 0.0), [1])]
    """
    groups: dict[tuple, list[int]] = {}
    for position, values in enumerate(zip(*keys, strict=True)):
        groups.setdefault(values, []).append(position)
    yield from groups.items()
