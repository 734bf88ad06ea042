"""Operators that update many weights in one call, derived from update rules.

Inputs come weight by weight: ``w0, g0, w1, g1, ...``, with states after each gradient. The
``preloaded`` forms end with two arrays, all learning rates and all weight decays.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter
from typing import Any

from torch import Tensor

from ...error import MXNetError
from ..attributes import ArrayCount, Floats, Shape
from ..declare import Op, op
from ..shapes import Shapes, unify
from .rules import Rule, check_shapes, describe
from .tensor_list import Tensors

# Attributes with one value for each weight, and the numbers of the rule that they give.
PER_WEIGHT: dict[str, tuple[str, Any]] = {
    "lrs": ("lr", Floats),
    "learning_rates": ("lr", Floats),
    "wds": ("wd", Floats),
    "etas": ("eta", Floats),
    "step_count": ("t", Shape),
}


class MultiUpdate:
    """How one operator steps many weights by a rule.

    Parameters
    ----------
    rule : the update rule.
    name : the operator's name.
    attributes : its attributes in MXNet's order, except the count.
    mixed : whether a 32-bit copy of the weight follows the states.
    preloaded : whether rates and decays are the last two inputs.
    count : the attribute that says how many weights there are.
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
        found = [
            Parameter(a, Parameter.KEYWORD_ONLY, annotation=PER_WEIGHT[a][1])
            if a in PER_WEIGHT
            else self.rule.numbers[a]
            for a in self.attributes
        ]
        return [
            *found,
            Parameter(self.count, Parameter.KEYWORD_ONLY, default=1, annotation=ArrayCount),
        ]

    def input_names(self, attrs: Mapping[str, Any]) -> list[str]:
        """Return the names of all inputs: ``weight_0, grad_0, ..., weight_1, ...``."""
        numbers = range(attrs[self.count])
        return [*(f"{role}_{i}" for i in numbers for role in self.roles), *self.extras]

    def infer_shapes(self, ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
        """Give each weight's arrays and its output one shape."""
        ins, outs, width = list(ins), list(outs), len(self.roles)
        for i in range(len(outs)):
            own = slice(i * width, (i + 1) * width)
            shape = outs[i]
            for known in ins[own]:
                shape = unify(shape, known, f"arrays of weight {i}")
            ins[own] = [shape] * width
            outs[i] = shape
        return ins, outs

    def step(self, data: Sequence[Tensor], attrs: Mapping[str, Any]) -> Tensors:
        """Return the new weights; those that share dtype and numbers step together."""
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
            made = self.rule.step(self.name, weights, others, wide, rescale, common | numbers)
            for position, weight in zip(positions, made, strict=True):
                new[position] = weight
        return new

    def _split(self, data: Sequence[Tensor], count: int) -> tuple[list[Tensors], Tensors]:
        """Return the arrays by role, checked, and the extra ones."""
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
