"""Plans the classes of a file: one for each kind of unit, and for each repeated sequence."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

from .tree import (
    IDENTITY,
    Argument,
    Branches,
    Const,
    Layer,
    Module,
    Name,
    Param,
    Sequence,
    Unit,
    children,
    leaves,
    rebuild_module,
    walk,
)
from .unify import MISSING, Parameter, choose_parameters, merge_all, substitute

# A sequence becomes a class if it occurs so often, by its number of layers.
MIN_OCCURRENCES, MIN_OCCURRENCES_OF_LARGE, LARGE = 3, 2, 5
MAX_PARAMETERS = 7
FOLD_LENGTH, FOLD_OCCURRENCES = 10, 4
CLASSIFIERS = ("nn.Linear", "nn.Conv2d")
TAKEN = ("Tensor", "Concat", "Norm", "Any", "F", "True", "False", "None")
NOT_NAMED = ("HybridSequential", "Sequential", "HybridConcurrent", "Concurrent", "")


@dataclass
class ClassDefinition:
    """One class of the file."""

    name: str
    module: Any
    parameters: list[Parameter]
    is_model: bool = False


def plan_classes(root: Module, title: str, num_classes: int | None) -> list[ClassDefinition]:
    """Return the classes of a file in order of dependency. The last one is the model."""
    return _Planner(title).plan(root, num_classes)


class _Planner:
    def __init__(self, title: str) -> None:
        self.title = title
        self.classes: list[ClassDefinition] = []
        self.names = {title, *TAKEN}
        self.calls: dict[int, Layer] = {}  # of units, by id

    def plan(self, root: Module, num_classes: int | None) -> list[ClassDefinition]:
        for group in _group_units(root):
            self._define_units(group)
        module = self._finish_members(root)
        parameters = []
        if num_classes is not None:
            module, is_set = _free_classes(module, num_classes)
            if is_set:
                values = [num_classes]
                parameters = [Parameter("num_classes", values, "channels", num_classes)]
        self.classes.append(ClassDefinition(self.title, module, parameters, True))
        while self._define_sequence():
            pass
        return _renumber(_sort(self.classes))

    # -- units ------------------------------------------------------------------------------

    def _define_units(self, units: list[Unit]) -> None:
        """Define the class, or the few classes, of the units of one block class."""
        finished = [self._finish_members(unit) for unit in units]
        for template, members in merge_all(finished):
            name = self._unique(units[0].title)
            definition, calls = _define(name, template, [units[i].node for i in members])
            self.classes.append(definition)
            order = range(len(members))
            self.calls |= {id(units[members[i]]): calls[i] for i in order}

    def _finish_members(self, module: Any) -> Any:
        """Return a module whose units are calls of their classes."""
        return rebuild_module(module, lambda m: self.calls.get(id(m)) or self._finish_members(m))

    # -- sequences that repeat --------------------------------------------------------------

    def _define_sequence(self) -> bool:
        """Define the class of the largest sequence that occurs often enough."""
        groups: dict[Any, list[Any]] = {}
        for definition in self.classes:
            for path, module in walk(definition.module):
                if path and isinstance(module, Sequence | Branches):
                    groups.setdefault(_shape(module), []).append(module)
        ranked = sorted(groups.items(), key=lambda pair: -leaves(pair[1][0]))
        for shape, modules in ranked:
            if shape is None or not _is_worth(modules):
                continue
            template, members = max(merge_all(modules), key=lambda pair: len(pair[1]))
            if not _is_worth([modules[i] for i in members]):
                continue
            if len(choose_parameters(template).parameters) > MAX_PARAMETERS:
                continue
            name = self._unique(_name_sequence(modules))
            definition, calls = _define(name, template, [modules[i].node for i in members])
            for i, call in zip(members, calls, strict=True):
                self._replace(modules[i], call)
            self.classes.append(definition)
            return True
        return False

    def _replace(self, old: Any, new: Layer) -> None:
        for definition in self.classes:
            definition.module = _replace(definition.module, old, new)

    def _unique(self, title: str) -> str:
        base = re.sub(r"\W", "", title).lstrip("_0123456789") or "Block"
        base = base[0].upper() + base[1:]
        name, number = base, 2
        while name in self.names:
            name, number = f"{base}{number}", number + 1
        self.names.add(name)
        return name


def _group_units(root: Module) -> list[list[Unit]]:
    """Return the units below the root by title, inner ones first."""
    heights: dict[int, int] = {}

    def measure(module: Module) -> int:
        below = max((measure(child) for _, child in children(module)), default=0)
        own = below + isinstance(module, Unit)
        heights[id(module)] = own
        return own

    measure(root)
    units: dict[int, Unit] = {id(m): m for path, m in walk(root) if path and isinstance(m, Unit)}
    groups: dict[str, list[Unit]] = {}
    for unit in units.values():
        groups.setdefault(unit.title, []).append(unit)
    result: list[tuple[int, list[Unit]]] = []
    for group in groups.values():
        titles = {u.title for unit in group for p, u in walk(unit) if p and isinstance(u, Unit)}
        if group[0].title not in titles:
            result.append((max(heights[id(u)] for u in group), group))
            continue
        for height in sorted({heights[id(u)] for u in group}):  # units may contain their own kind
            result.append((height, [u for u in group if heights[id(u)] == height]))
    result.sort(key=lambda pair: pair[0])
    return [group for _, group in result]


def _define(name: str, template: Any, nodes: list[str]) -> tuple[ClassDefinition, list[Layer]]:
    signature = choose_parameters(template)
    module = substitute(template.module, signature.texts)
    definition = ClassDefinition(name, module, signature.parameters)
    _prefer_literal_defaults(signature.parameters)
    calls = [
        Layer(name, tuple(_argument(p, i) for p in signature.parameters), node=nodes[i])
        for i in range(template.count)
    ]
    return definition, calls


def _prefer_literal_defaults(parameters: list[Parameter]) -> None:
    for parameter in parameters:
        if isinstance(parameter.default, Name):
            parameter.default = MISSING
    parameters.sort(key=lambda p: p.default is not MISSING)


def _argument(parameter: Parameter, index: int) -> Argument:
    value = parameter.values[index]
    is_required = parameter.default is MISSING
    if value is MISSING:
        present = next(v for v in parameter.values if v is not MISSING)
        value = present if is_required else parameter.default
    default = None if is_required else parameter.default
    return Argument(parameter.name, Const(value, parameter.role), default, is_required)


def _is_worth(modules: list[Any]) -> bool:
    count, size = len(modules), leaves(modules[0])
    if size < 2 or (size == 2 and count < 2 * MIN_OCCURRENCES):
        return False
    return count >= MIN_OCCURRENCES or (count >= MIN_OCCURRENCES_OF_LARGE and size >= LARGE)


def _shape(module: Any) -> Any:
    """Return the common structure of modules of one class, or None if there can be no class."""
    if isinstance(module, Layer):
        if module is IDENTITY:
            return "identity"
        return (module.cls, module.wrapper, tuple((a.name, a.is_positional) for a in module.args))
    if isinstance(module, Sequence | Branches):
        parts = tuple(_shape(item) for item in module.items)
        return None if None in parts else (type(module).__name__, *parts)
    return None


KINDS = {
    "nn.Conv1d": "Conv",
    "nn.Conv2d": "Conv",
    "nn.Conv3d": "Conv",
    "nn.ConvTranspose2d": "Deconv",
    "nn.BatchNorm1d": "BN",
    "nn.BatchNorm2d": "BN",
    "nn.BatchNorm3d": "BN",
    "nn.LeakyReLU": "LeakyReLU",
    "nn.MaxPool2d": "MaxPool",
    "nn.AvgPool2d": "AvgPool",
}
MAX_NAMED_PARTS = 3


def _name_sequence(modules: list[Any]) -> str:
    """Return a name from the items of a short sequence, or from its block."""
    module = modules[0]
    title = re.sub(r"\d+$", "", module.title)
    if title not in NOT_NAMED and len(title) > 1:
        return title
    if isinstance(module, Branches):
        is_dense = any(item == IDENTITY for item in module.items)
        return "DenseLayer" if is_dense else f"Branches{title}"
    if isinstance(module.items[-1], Branches):
        return "BranchBlock"
    parts = [_kind(item) for item in module.items]
    if len(parts) <= MAX_NAMED_PARTS and all(parts):
        return "".join(parts)
    return f"{parts[0] or ''}Block"


def _kind(module: Any) -> str:
    if isinstance(module, Branches):
        return "Branches"
    if not isinstance(module, Layer):
        return ""
    return KINDS.get(module.cls, module.cls.removeprefix("nn."))


def _replace(module: Any, old: Any, new: Any) -> Any:
    return new if module is old else rebuild_module(module, lambda m: _replace(m, old, new))


def _renumber(classes: list[ClassDefinition]) -> list[ClassDefinition]:
    """Number classes of the same name in the order of the file."""
    bases: dict[str, list[str]] = {}
    names = {c.name: c.name for c in classes if c.is_model}
    for definition in classes:
        if not definition.is_model:
            base = re.sub(r"\d+$", "", definition.name)
            bases.setdefault(base, []).append(definition.name)
    for same in bases.values():
        ordered = sorted(same, key=lambda name: (len(name), name))
        names |= dict(zip(same, ordered, strict=True))

    def rename(module: Any) -> Any:
        if isinstance(module, Layer):
            return dataclasses.replace(module, cls=names.get(module.cls, module.cls))
        return rebuild_module(module, rename)

    for definition in classes:
        definition.name, definition.module = names[definition.name], rename(definition.module)
    return classes


def _sort(classes: list[ClassDefinition]) -> list[ClassDefinition]:
    """Sort classes so that each follows those that it uses."""
    by_name = {c.name: c for c in classes}
    order: dict[str, ClassDefinition] = {}

    def visit(definition: ClassDefinition) -> None:
        if definition.name in order:
            return
        for name in [m.cls for _, m in walk(definition.module) if isinstance(m, Layer)]:
            if name in by_name and name != definition.name:
                visit(by_name[name])
        order[definition.name] = definition

    visit(next(c for c in classes if c.is_model))
    return list(order.values())


# -- the number of classes of a classifier ---------------------------------------------------------


def _free_classes(module: Any, count: int) -> tuple[Any, bool]:
    """Use `num_classes` in the layer that computes the scores, if there is one."""
    if isinstance(module, Layer):
        if module.cls not in CLASSIFIERS or module.args[1].value.value != count:
            return module, False
        out = dataclasses.replace(module.args[1], value=Const(Name("num_classes"), "channels:out"))
        return dataclasses.replace(module, args=(module.args[0], out, *module.args[2:])), True
    members = [m for _, m in children(module) if leaves_parameters(m)]
    if not members or isinstance(module, Branches):
        return module, False
    item, is_set = _free_classes(members[-1], count)
    return rebuild_module(module, lambda m: item if m is members[-1] else m), is_set


def leaves_parameters(module: Any) -> bool:
    """Return whether a module holds parameters."""
    layers = [m for _, m in walk(module) if isinstance(m, Layer | Param)]
    return any(isinstance(m, Param) or m.tensors or not m.cls.startswith("nn.") for m in layers)


# -- folding of long flat sequences ----------------------------------------------------------------


def fold_sequences(root: Any) -> Any:
    """Group repeated convolution, normalization and activation in long flat sequences."""
    runs: dict[Any, int] = {}
    for _, module in walk(root):
        if isinstance(module, Sequence) and len(module.items) >= FOLD_LENGTH:
            for part in _runs(module.items):
                key = tuple(item.cls for item in part)
                runs[key] = runs.get(key, 0) + 1
    frequent = {k for k, n in runs.items() if n >= FOLD_OCCURRENCES and len(k) == MAX_NAMED_PARTS}
    return _fold(root, frequent)


def _runs(items: tuple) -> list[list[Layer]]:
    """Return runs of layers that begin with a convolution and end before an unrelated layer."""
    runs: list[list[Layer]] = []
    current: list[Layer] | None = None
    for item in items:
        if isinstance(item, Layer) and item.cls == "nn.Conv2d":
            current = [item]
            runs.append(current)
        elif current is not None and isinstance(item, Layer) and _is_part_of_run(item):
            current.append(item)
        else:
            current = None
    return runs


def _is_part_of_run(layer: Layer) -> bool:
    return layer.cls == "nn.BatchNorm2d" or layer.cls in ("nn.ReLU", "nn.ReLU6", "nn.LeakyReLU")


def _fold(module: Any, frequent: set) -> Any:
    module = rebuild_module(module, lambda m: _fold(m, frequent))
    if not isinstance(module, Sequence) or len(module.items) < FOLD_LENGTH:
        return module
    items = list(module.items)
    for run in _runs(module.items):
        if tuple(item.cls for item in run) in frequent:
            start = next(i for i, item in enumerate(items) if item is run[0])
            items[start : start + len(run)] = [Sequence(tuple(run), node=run[-1].node)]
    return dataclasses.replace(module, items=tuple(items))
