"""Intermediate representation of ported models: modules, and the steps of their `forward`.

A `Unit` is a module with a `forward` of its own. A `Sequence` runs its items one after the other,
and `Branches` run them in parallel. A `Layer` is a call of a class. All of these are plain data,
which `classes` compares and `emit` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch


@dataclass(frozen=True)
class Name:
    """An expression of the parameters of a constructor, such as ``out_channels // 4``."""

    text: str


@dataclass(frozen=True)
class Const:
    """A literal. `role` is its meaning. Only literals of one role share a parameter."""

    value: Any
    role: str = ""


# -- expressions of a forward ----------------------------------------------------------------------


@dataclass(frozen=True)
class Value:
    """An input of a unit, or a result of one of its steps, by number."""

    number: int


@dataclass(frozen=True)
class Member:
    """A parameter or buffer of the unit: ``self.scale``."""

    name: str


@dataclass(frozen=True)
class Apply:
    """A call of a member: ``self.conv1(x)``."""

    member: str
    args: tuple


@dataclass(frozen=True)
class Call:
    """A call of a function by its name in the file, or of a method (``.reshape``)."""

    function: str
    args: tuple
    kwargs: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Infix:
    """Two operands with an operator between them."""

    operator: str
    left: Any
    right: Any


@dataclass(frozen=True)
class Item:
    """An element or slice."""

    value: Any
    index: Any


@dataclass(frozen=True)
class Slice:
    """A range of indices, ``start:stop``; Python before 3.12 cannot compare slices by hash."""

    start: Const
    stop: Const


@dataclass(frozen=True)
class Group:
    """A list or tuple of expressions."""

    items: tuple
    is_list: bool


@dataclass(frozen=True)
class Variable:
    """A variable of a loop, or an expression of its counter."""

    text: str


@dataclass(frozen=True)
class Loop:
    """A loop over members of a list. The first argument of each is the previous result."""

    members: str
    args: tuple


@dataclass(frozen=True)
class Comprehension:
    """A list of one expression for each item of `sources`, or for each number below `count`."""

    template: Any
    names: tuple[str, ...]
    sources: tuple[Any, ...]
    count: int


@dataclass(frozen=True)
class Step:
    """One statement: the numbers of its results and the expression that gives them."""

    outputs: tuple[int, ...]
    expression: Any


# -- modules ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TensorSource:
    """Where a tensor of the torch module comes from.

    It is the concatenation of the flat arrays `names`, indexed by `index` (None: as it is), or a
    constant.
    """

    names: tuple[str, ...]
    index: torch.Tensor | None = None
    constant: torch.Tensor | None = None


@dataclass(frozen=True)
class Argument:
    """An argument of a constructor; a keyword that equals the default is not written."""

    name: str
    value: Const
    default: Any = None
    is_positional: bool = False


@dataclass(frozen=True)
class Layer:
    """A call of a class: torch's, a library class, or one that is generated."""

    cls: str
    args: tuple[Argument, ...] = ()
    tensors: tuple[tuple[str, TensorSource], ...] = field(default=(), compare=False)
    wrapper: str = ""
    node: str = field(default="", compare=False)  # the MXNet node with the same output

    def value(self, name: str) -> Any:
        """Return the value of an argument."""
        return next(a.value.value for a in self.args if a.name == name)


@dataclass(frozen=True)
class Sequence:
    """Modules that run one after the other. `title` and `doc` describe the original block."""

    items: tuple
    title: str = field(default="", compare=False)
    doc: str = field(default="", compare=False)
    node: str = field(default="", compare=False)


@dataclass(frozen=True)
class Branches:
    """Modules that read the same input, and whose outputs are concatenated."""

    items: tuple
    dim: Const
    title: str = field(default="", compare=False)
    node: str = field(default="", compare=False)


@dataclass(frozen=True)
class OptionalModule:
    """A module of only some instances. The other instances have an identity."""

    module: Any
    flag: Const


@dataclass(frozen=True)
class Param:
    """A parameter or buffer of a unit itself."""

    shape: tuple
    source: TensorSource = field(compare=False)
    is_buffer: bool = False


@dataclass(frozen=True)
class Unit:
    """A module with a forward of its own."""

    title: str
    members: tuple[tuple[str, Any], ...]
    inputs: int
    steps: tuple[Step, ...]
    outputs: tuple[Any, ...]
    doc: str = field(default="", compare=False)
    input_names: tuple[str, ...] = field(default=(), compare=False)
    node: str = field(default="", compare=False)


Module = Layer | Sequence | Branches | OptionalModule | Param | Unit
IDENTITY = Layer("nn.Identity")


def children(module: Module) -> Iterator[tuple[str, Module]]:
    """Yield the direct members of a module with their names."""
    if isinstance(module, Sequence | Branches):
        for i, item in enumerate(module.items):
            yield str(i), item
    elif isinstance(module, Unit):
        yield from module.members
    elif isinstance(module, OptionalModule):
        yield "", module.module


def walk(module: Module, path: str = "") -> Iterator[tuple[str, Module]]:
    """Yield a module and everything below it, with dotted paths."""
    yield path, module
    for name, child in children(module):
        yield from walk(child, f"{path}.{name}" if path else name)


def rebuild_module(module: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy of a module with a function applied to its members."""
    new = [change(child) for _, child in children(module)]
    if all(a is b for a, (_, b) in zip(new, children(module), strict=True)):
        return module
    if isinstance(module, Sequence | Branches):
        return replace(module, items=tuple(new))
    if isinstance(module, Unit):
        names = (name for name, _ in module.members)
        return replace(module, members=tuple(zip(names, new, strict=True)))
    return replace(module, module=new[0])


def leaves(module: Module) -> int:
    """Return the number of layers in a module."""
    below = [leaves(child) for _, child in children(module)]
    return sum(below) if below else 1


def parts(expression: Any) -> Iterator[Any]:
    """Yield the direct parts of an expression."""
    if isinstance(expression, tuple | list):
        yield from expression
    elif isinstance(expression, Apply | Loop | Call):
        yield from expression.args
        yield from (v for _, v in getattr(expression, "kwargs", ()))
    elif isinstance(expression, Infix | Item | Slice):
        yield from vars(expression).values()
    elif isinstance(expression, Group):
        yield from expression.items
    elif isinstance(expression, Comprehension):
        yield from (expression.template, *expression.sources)


def rebuild(expression: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy of an expression with a function applied to its parts."""
    if isinstance(expression, Apply | Loop | Call):
        args = tuple(map(change, expression.args))
        if isinstance(expression, Call):
            kwargs = tuple((k, change(v)) for k, v in expression.kwargs)
            return replace(expression, args=args, kwargs=kwargs)
        return replace(expression, args=args)
    if isinstance(expression, Infix):
        return replace(expression, left=change(expression.left), right=change(expression.right))
    if isinstance(expression, Item):
        return Item(change(expression.value), change(expression.index))
    if isinstance(expression, Slice):
        return Slice(change(expression.start), change(expression.stop))
    if isinstance(expression, Group):
        return Group(tuple(map(change, expression.items)), expression.is_list)
    if isinstance(expression, Comprehension):
        sources = tuple(map(change, expression.sources))
        return replace(expression, template=change(expression.template), sources=sources)
    return expression


def operands(expression: Any) -> Iterator[Value]:
    """Yield the values that an expression reads, in order."""
    if isinstance(expression, Value):
        yield expression
    for part in parts(expression):
        yield from operands(part)
