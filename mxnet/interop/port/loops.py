"""Folds equal computations on items of a list or slices of a tensor into loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .tree import (
    Apply,
    Call,
    Comprehension,
    Const,
    Group,
    Infix,
    Item,
    Loop,
    Member,
    Slice,
    Step,
    Unit,
    Value,
    Variable,
    operands,
    parts,
    rebuild,
)

MIN_REPEATS = 3
COUNTER = "i"


class _Different(Exception):
    """Raised if two expressions have different structures."""


def fold_loops(unit: Unit) -> Unit:
    """Return a unit with repeated steps of its forward folded into loops."""
    steps = list(_fold_chains(unit))
    for step in list(steps):
        if step in steps:
            _fold_group(unit, steps, step)
    return replace(unit, steps=tuple(_merge_sources(unit, steps)))


def count_uses(unit: Unit, steps: list[Step]) -> dict[int, int]:
    """Return how often each value is read."""
    uses: dict[int, int] = {}
    for expression in (*(s.expression for s in steps), unit.outputs):
        for value in operands(expression):
            uses[value.number] = uses.get(value.number, 0) + 1
    return uses


def _position(member: str) -> tuple[str, int]:
    name, _, number = member.partition(".")
    return name, int(number) if number else -1


# -- one after the other ---------------------------------------------------------------------------


def _fold_chains(unit: Unit) -> list[Step]:
    """Replace consecutive calls of list members by a loop."""
    steps, uses = list(unit.steps), count_uses(unit, list(unit.steps))
    lengths: dict[str, int] = {}
    for name, _ in unit.members:
        lengths[_position(name)[0]] = lengths.get(_position(name)[0], 0) + 1
    result: list[Step] = []
    while steps:
        call = steps[0].expression
        name, number = _position(call.member) if isinstance(call, Apply) else ("", -1)
        count = lengths.get(name, 0)
        if number == 0 and count >= MIN_REPEATS and _is_chain(steps[:count], count, name, uses):
            result.append(Step(steps[count - 1].outputs, Loop(name, call.args)))
            del steps[:count]
        else:
            result.append(steps.pop(0))
    return result


def _is_chain(steps: list[Step], count: int, name: str, uses: dict[int, int]) -> bool:
    if len(steps) < count or any(len(s.outputs) != 1 for s in steps):
        return False
    rest = steps[0].expression.args[1:]
    for i in range(1, count):
        value = Value(steps[i - 1].outputs[0])
        if steps[i].expression != Apply(f"{name}.{i}", (value, *rest)) or uses[value.number] != 1:
            return False
    return True


# -- side by side ----------------------------------------------------------------------------------


def _fold_group(unit: Unit, steps: list[Step], step: Step) -> None:
    """Replace a list whose items have equal expressions by a comprehension."""
    for group in [p for p in parts(step.expression) if isinstance(p, Group) and p.is_list]:
        if len(group.items) < MIN_REPEATS or not all(isinstance(v, Value) for v in group.items):
            continue
        tree = _Expansion(unit, steps)
        try:
            fold = _Fold([tree.expand(value) for value in group.items])
        except _Different:
            continue
        if len(tree.steps) < len(group.items):
            continue  # only names
        number = 1 + max(n for s in unit.steps for n in s.outputs)
        number = max([number, *(1 + n for s in steps for n in s.outputs)])
        at = steps.index(step)
        new = rebuild(step.expression, lambda p, g=group, n=number: Value(n) if p is g else p)
        steps[at : at + 1] = [Step((number,), fold.comprehension), Step(step.outputs, new)]
        steps[:] = [s for s in steps if s not in tree.steps]
        return


class _Expansion:
    """Substitutes expressions for values that are read only once."""

    def __init__(self, unit: Unit, steps: list[Step]) -> None:
        self.uses = count_uses(unit, steps)
        self.producers = {s.outputs[0]: s for s in steps if len(s.outputs) == 1}
        self.steps: list[Step] = []

    def expand(self, expression: Any) -> Any:
        """Substitute all values in an expression that no other step reads."""
        if not isinstance(expression, Value):
            return rebuild(expression, self.expand)
        step = self.producers.get(expression.number)
        if (
            step is None
            or self.uses[expression.number] != 1
            or isinstance(step.expression, Loop | Comprehension)
        ):
            return expression
        self.steps.append(step)
        return rebuild(step.expression, self.expand)


class _Fold:
    """One expression for several of equal structure, with variables where they differ."""

    def __init__(self, items: list[Any]) -> None:
        self.columns: dict[Any, str] = {}
        template = self.unify(items)
        sources = tuple(Member(c) if isinstance(c, str) else Group(c, True) for c in self.columns)
        names = tuple(self.columns.values())
        self.comprehension = Comprehension(template, names, sources, len(items))

    def unify(self, items: Any) -> Any:
        """Return the common form of expressions."""
        first = items[0]
        if all(item == first for item in items):
            return first
        if len({type(item) for item in items}) > 1:
            raise _Different
        if isinstance(first, Value):
            return Variable(self._variable(tuple(items), "value"))
        if isinstance(first, Const):
            return _count(items)
        if isinstance(first, Apply):
            return self._unify_calls(items)
        if isinstance(first, Call):
            head = {(c.function, len(c.args), tuple(k for k, _ in c.kwargs)) for c in items}
        elif isinstance(first, Infix):
            head = {c.operator for c in items}
        elif isinstance(first, Group):
            head = {(c.is_list, len(c.items)) for c in items}
        elif isinstance(first, Item | Slice):
            head = {None}
        else:
            raise _Different
        if len(head) > 1:
            raise _Different
        columns = iter([self.unify(c) for c in zip(*map(parts, items), strict=True)])
        return rebuild(first, lambda _: next(columns))

    def _unify_calls(self, items: Any) -> Any:
        positions = [_position(call.member) for call in items]
        name = positions[0][0]
        if positions != [(name, i) for i in range(len(items))]:
            raise _Different
        variable = self._variable(name, "layer")
        args = (self.unify(c) for c in zip(*(call.args for call in items), strict=True))
        return Call(variable, tuple(args))

    def _variable(self, column: Any, name: str) -> str:
        count = sum(text.startswith(name) for text in self.columns.values())
        return self.columns.setdefault(column, f"{name}{count + 1}" if count else name)


def _count(items: Any) -> Any:
    """Return consecutive numbers as an expression of the counter."""
    numbers = [item.value for item in items]
    start = numbers[0] = 0 if numbers[0] is None else numbers[0]  # a slice from the beginning
    if type(start) is not int or numbers != [start + i for i in range(len(numbers))]:
        raise _Different
    return Variable(f"{COUNTER} + {start}" if start else COUNTER)


def _merge_sources(unit: Unit, steps: list[Step]) -> list[Step]:
    """Merge outputs that comprehensions read in order into one name, that of their tuple."""
    uses = count_uses(unit, steps)
    number = 1 + max((n for s in steps for n in s.outputs), default=0)
    for i, step in enumerate(steps):
        group = Group(tuple(map(Value, step.outputs)), True)
        readers = [s.expression for s in steps if isinstance(s.expression, Comprehension)]
        count = sum(source == group for r in readers for source in r.sources)
        if len(step.outputs) < MIN_REPEATS or any(uses.get(n, 0) != count for n in step.outputs):
            continue
        steps[i] = Step((number,), step.expression)
        for j, other in enumerate(steps):
            if isinstance(other.expression, Comprehension):
                new = rebuild(
                    other.expression, lambda p, g=group, n=number: Value(n) if p == g else p
                )
                steps[j] = Step(other.outputs, new)
        number += 1
    return steps
