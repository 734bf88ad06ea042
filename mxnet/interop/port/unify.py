"""Merges units of equal structure to templates, and converts their slots to parameters."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence as List
from dataclasses import dataclass, field
from typing import Any

from .tree import IDENTITY, Apply, Const, Name, OptionalModule, Step, Unit, Value


class Mismatch(Exception):
    """Raised if two modules have different structures."""


@dataclass(frozen=True)
class Slot:
    """A literal that differs between instances, by its column in the table of values."""

    number: int
    role: str = ""


CHANNELS = "channels"
MISSING = object()  # the value of a slot in an instance that lacks the module it belongs to


@dataclass
class Template:
    """The common structure of instances; `columns` are the values of each slot."""

    module: Any
    count: int = 1
    columns: list[list[Any]] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)

    def merge(self, other: Any) -> None:
        """Add an instance. Raise Mismatch without changes if it does not fit."""
        merger = _Merger(self)
        self.module = merger.merge(self.module, other)
        self.columns = [
            [*column, merger.row.get(i, MISSING)] for i, column in enumerate(merger.columns)
        ]
        self.roles = merger.roles
        self.count += 1


class _Merger:
    """Merges one instance into a template."""

    def __init__(self, template: Template) -> None:
        self.count = template.count
        self.columns = [list(column) for column in template.columns]
        self.roles = list(template.roles)
        self.row: dict[int, Any] = {}
        self.values: dict[int, int] = {}

    def merge(self, a: Any, other: Any) -> Any:
        """Return the common structure of both, with slots where literals differ."""
        b: Any = other
        if isinstance(a, Slot):
            if not isinstance(b, Const) or b.role != a.role:
                raise Mismatch
            self.row[a.number] = b.value
            return a
        if isinstance(a, Const):
            return self._merge_literals(a, b)
        is_optional = type(b) is OptionalModule
        if isinstance(a, OptionalModule) and not is_optional:
            self._set_flag(a.flag, True)
            return dataclasses.replace(a, module=self.merge(a.module, b))
        if type(a) is not type(b):
            raise Mismatch
        if isinstance(a, Unit):
            return self._merge_units(a, b)
        if isinstance(a, Value):
            if self.values.get(a.number) != b.number:
                raise Mismatch
            return a
        if isinstance(a, tuple):
            if len(a) != len(b):
                raise Mismatch
            return tuple(self.merge(x, y) for x, y in zip(a, b, strict=True))
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            changes = {
                f.name: self.merge(getattr(a, f.name), getattr(b, f.name))
                for f in dataclasses.fields(a)
                if f.compare
            }
            return dataclasses.replace(a, **changes)
        if a != b:
            raise Mismatch
        return a

    def _merge_literals(self, a: Const, b: Any) -> Any:
        if not isinstance(b, Const) or a.role != b.role:
            raise Mismatch
        if same_literal(a.value, b.value) and not isinstance(a.value, Name):
            return a  # a name is a parameter of the class that has the instances
        slot = self._new_slot(a.role, a.value)
        self.row[slot.number] = b.value
        return slot

    def _new_slot(self, role: str, previous: Any) -> Slot:
        self.columns.append([previous] * self.count)
        self.roles.append(role)
        return Slot(len(self.columns) - 1, role)

    def _open(self, module: Any) -> Any:
        """Return an optional module, with slots for its literals."""
        if isinstance(module, Const):
            is_shared = module.role == "stride" or module.role.startswith(CHANNELS)
            return self._new_slot(module.role, module.value) if is_shared else module
        if isinstance(module, tuple) and not hasattr(module, "_fields"):
            return tuple(self._open(each) for each in module)
        if dataclasses.is_dataclass(module) and not isinstance(module, type | Slot):
            names = [f.name for f in dataclasses.fields(module) if f.compare]
            opened = {name: self._open(getattr(module, name)) for name in names}
            return dataclasses.replace(module, **opened)
        return module

    def _set_flag(self, flag: Any, value: bool) -> None:
        self.row[flag.number] = value

    def _merge_units(self, a: Unit, b: Unit) -> Unit:
        """Merge two units. Members that only the first has become optional."""
        if a.inputs != b.inputs:
            raise Mismatch
        others = dict(b.members)
        outer, self.values = self.values, {i: i for i in range(a.inputs)}
        members = []
        for name, module in a.members:
            if name in others:
                members.append((name, self.merge(module, others.pop(name))))
            elif isinstance(module, OptionalModule):
                self._set_flag(module.flag, False)
                members.append((name, module))
            elif "." in name:  # of a list
                raise Mismatch
            else:
                flag: Any = self._new_slot("flag", True)
                self._set_flag(flag, False)
                members.append((name, OptionalModule(self._open(module), flag)))
        if others:
            raise Mismatch
        absent = {n for n, _ in a.members} - {n for n, _ in b.members}
        steps = self._merge_steps(a.steps, b.steps, absent)
        merged = dataclasses.replace(
            a, members=tuple(members), steps=steps, outputs=self.merge(a.outputs, b.outputs)
        )
        self.values = outer
        return merged

    def _merge_steps(
        self, steps: List[Step], others: List[Step], absent: set[str]
    ) -> tuple[Step, ...]:
        merged, rest = [], list(others)
        for step in steps:
            expression = step.expression
            if isinstance(expression, Apply) and expression.member in absent:
                if len(step.outputs) != 1 or len(expression.args) != 1:
                    raise Mismatch
                self.values[step.outputs[0]] = self.values[expression.args[0].number]
                merged.append(step)
                continue
            if not rest:
                raise Mismatch
            other = rest.pop(0)
            if len(other.outputs) != len(step.outputs):
                raise Mismatch
            merged.append(Step(step.outputs, self.merge(expression, other.expression)))
            self.values.update(zip(step.outputs, other.outputs, strict=True))
        if rest:
            raise Mismatch
        return tuple(merged)


def same_literal(a: Any, b: Any) -> bool:
    """Return whether two literals have the same text. 1, 1.0 and True do not."""
    return type(a) is type(b) and a == b


def merge_all(instances: List[Any]) -> list[tuple[Template, list[int]]]:
    """Return templates and the instances of each. Instances with more members come first."""
    order = sorted(range(len(instances)), key=lambda i: -_size(instances[i]))
    clusters: list[tuple[Template, list[int]]] = []
    for i in order:
        for template, members in clusters:
            try:
                template.merge(instances[i])
            except Mismatch:
                continue
            members.append(i)
            break
        else:
            clusters.append((Template(instances[i]), [i]))
    return clusters


def _size(module: Any) -> int:
    return len(module.steps) if isinstance(module, Unit) else 0


# -- from slots to parameters ----------------------------------------------------------------------


@dataclass
class Parameter:
    """A parameter of a constructor, with its value in each instance."""

    name: str
    values: list[Any]
    role: str
    default: Any = MISSING


@dataclass
class Signature:
    """The parameters of a class, and the expression of each slot."""

    parameters: list[Parameter]
    texts: dict[int, Any]  # text, or a literal


# Names of parameters by the role of the literals. Channels are named by their position.
ROLE_NAMES = {
    "flag": "downsample",
    "kernel": "kernel_size",
    "rate": "p",
}


def choose_parameters(template: Template) -> Signature:
    """Return the parameters that the slots of a template need."""
    groups = _group_slots(template)
    texts: dict[int, Any] = {}
    for group in [g for g in groups if _is_fixed(_distinct(g.values))]:
        groups.remove(group)
        texts |= dict.fromkeys(group.slots, Const(_distinct(group.values)[0], group.role))
    channels = [g for g in groups if g.role.startswith(CHANNELS)]
    others = [g for g in groups if not g.role.startswith(CHANNELS)]
    _name_channels(channels)
    derived = _derive_channels(channels)
    taken: set[str] = {g.name for g in channels}
    for group in others:
        group.name = _unique(_name_other(group, template), taken)
    derived |= _derive_others(channels, others, derived)
    parameters = []
    for group in groups:
        text = derived.get(group.name, group.name)
        for number in group.slots:
            texts[number] = text
        if group.name not in derived:
            default = MISSING if group in channels else _most_frequent(group.values)
            parameters.append(Parameter(group.name, group.values, group.role, default))
    parameters.sort(key=lambda p: (p.default is not MISSING, _position(p)))
    return Signature(parameters, texts)


@dataclass
class _Group:
    role: str
    values: list[Any]
    slots: list[int]
    roles: set[str]
    name: str = ""


def _group_slots(template: Template) -> list[_Group]:
    """Group slots that have equal values in all instances."""
    groups: list[_Group] = []
    for number, column in enumerate(template.columns):
        role = template.roles[number]
        family = role.partition(":")[0]
        for group in groups:
            if group.role.partition(":")[0] == family and _fits(group.values, column):
                group.values = [
                    b if a is MISSING else a for a, b in zip(group.values, column, strict=True)
                ]
                group.slots.append(number)
                group.roles.add(role)
                break
        else:
            groups.append(_Group(role, list(column), [number], {role}))
    return groups


ORDER = ("kernel", "stride", "padding", "dilation", "groups")


def _position(parameter: Parameter) -> int:
    """Return the position of a parameter with a default, in the order of torch's layers."""
    if parameter.default is MISSING:
        return 0
    return ORDER.index(parameter.role) if parameter.role in ORDER else len(ORDER)


def _distinct(values: List[Any]) -> list[Any]:
    unique: list[Any] = []
    for value in values:
        if value is not MISSING and not any(same_literal(value, u) for u in unique):
            unique.append(value)
    return unique


def _is_fixed(distinct: list[Any]) -> bool:
    return len(distinct) == 1 and not isinstance(distinct[0], Name)


def _fits(a: List[Any], b: List[Any]) -> bool:
    pairs = list(zip(a, b, strict=True))
    if not any(x is not MISSING and y is not MISSING for x, y in pairs):
        return False
    return all(x is MISSING or y is MISSING or same_literal(x, y) for x, y in pairs)


def _name_channels(groups: list[_Group]) -> None:
    """Name the first input channels `in_channels`, and the last output channels `out_channels`."""
    if not groups:
        return
    readers = [g for g in groups if "channels:in" in g.roles]
    writers = [g for g in groups if "channels:out" in g.roles]
    first = min(readers, key=lambda g: g.slots[0], default=None)
    last = max(writers, key=lambda g: g.slots[-1], default=None)
    if first is not None and first is last:
        first.name = "channels"
    else:
        if first is not None and 0 in (groups.index(first),):
            first.name = "in_channels"
        if last is not None and not last.name:
            last.name = "out_channels"
    taken = {g.name for g in groups if g.name}
    for group in groups:
        group.name = group.name or _unique("mid_channels", taken)


def _derive_channels(groups: list[_Group]) -> dict[str, str]:
    """Return expressions of channels that are a fixed multiple or fraction of others."""
    derived: dict[str, str] = {}
    order = {"out_channels": 0, "channels": 1, "in_channels": 2}
    bases = sorted(groups, key=lambda g: order.get(g.name, 3))
    for base in bases:
        if base.name in derived:
            continue
        for group in groups:
            if group is base or group.name in derived or group.name == "in_channels":
                continue
            text = _ratio(base, group)
            if text is not None and order.get(group.name, 3) != 0:
                derived[group.name] = text
    return derived


def _ratio(base: _Group, group: _Group) -> str | None:
    pairs = list(zip(base.values, group.values, strict=True))
    if any(not isinstance(v, int) or v <= 0 for pair in pairs for v in pair):
        return None
    if len({a for a, _ in pairs}) < 2:
        return None
    for factor in (2, 3, 4, 6, 8, 16, 32):
        if all(b == a * factor for a, b in pairs):
            return f"{factor} * {base.name}"
        if all(a == b * factor for a, b in pairs):
            return f"{base.name} // {factor}"
    return None


def _derive_others(
    channels: list[_Group], others: list[_Group], texts: dict[str, str]
) -> dict[str, str]:
    """Return expressions of flags and paddings that follow from other parameters."""
    derived: dict[str, str] = {}
    by_name = {g.name: g for g in (*channels, *others)}
    first, last = by_name.get("in_channels"), by_name.get("out_channels")
    stride, kernel = by_name.get("stride"), by_name.get("kernel_size")
    for group in others:
        if group.role == "flag" and first is not None and last is not None:
            differ = [a != b for a, b in zip(first.values, last.values, strict=True)]
            strided = [False] * len(differ)
            if stride is not None:
                strided = [v not in (1, MISSING) for v in stride.values]
            either = [a or b for a, b in zip(differ, strided, strict=True)]
            if group.values == either:
                strides = stride is not None and either != differ
                changed = "in_channels != out_channels"
                derived[group.name] = f"stride != 1 or {changed}" if strides else changed
        for base in channels if group.role == "groups" else ():
            pairs = zip(base.values, group.values, strict=True)
            if all(same_literal(a, b) for a, b in pairs):
                derived.setdefault(group.name, texts.get(base.name, base.name))
        if group.role == "padding" and kernel is not None:
            halves = [
                isinstance(k, int) and k % 2 == 1 and same_literal(p, k // 2)
                for k, p in zip(kernel.values, group.values, strict=True)
            ]
            if all(halves):
                derived[group.name] = f"{kernel.name} // 2"
    return derived


def _name_other(group: _Group, template: Template) -> str:
    role = group.role.partition(":")[0]
    if role == "flag":
        return _name_of_flag(template.module, group.slots[0])
    return ROLE_NAMES.get(role, role) or "value"


def _name_of_flag(module: Any, number: int) -> str:
    for name, member in module.members:
        if isinstance(member, OptionalModule) and getattr(member.flag, "number", -1) == number:
            return f"has_{name}" if name != "downsample" else name
    return "enabled"


def _unique(name: str, taken: set[str]) -> str:
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}{number}", number + 1
    taken.add(candidate)
    return candidate


def _most_frequent(values: list[Any]) -> Any:
    counts = Counter((type(v), v) for v in values if v is not MISSING)
    return counts.most_common(1)[0][0][1]


def substitute(module: Any, texts: dict[int, Any]) -> Any:
    """Return a template with the expressions of its slots."""
    if isinstance(module, Slot):
        text = texts[module.number]
        return text if isinstance(text, Const) else Const(Name(text), module.role)
    if isinstance(module, tuple) and not hasattr(module, "_fields"):
        return tuple(substitute(each, texts) for each in module)
    if dataclasses.is_dataclass(module) and not isinstance(module, type):
        changes = {
            f.name: substitute(getattr(module, f.name), texts)
            for f in dataclasses.fields(module)
            if f.compare
        }
        return dataclasses.replace(module, **changes)
    return module


__all__ = ["IDENTITY", "MISSING", "Signature", "Template", "choose_parameters", "merge_all"]
