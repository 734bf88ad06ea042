"""The text of modules and of their `forward`, formatted as by `ruff format`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from collections.abc import Sequence as List
from typing import Any

import torch

from ..classes import ClassDefinition
from ..loops import COUNTER, MIN_REPEATS, fold_loops
from ..tree import (
    Apply,
    Argument,
    Branches,
    Call,
    Comprehension,
    Const,
    Group,
    Infix,
    Item,
    Layer,
    Loop,
    Member,
    Name,
    OptionalModule,
    Param,
    Sequence,
    Slice,
    Step,
    Unit,
    Value,
    Variable,
    operands,
    parts,
)
from ..unify import MISSING, Parameter

WIDTH = 88  # of a line, the default of ruff
MAX_INLINE = 64  # characters of an inlined expression
PLAIN = re.compile(r"x\d*|data|inputs?")
RECURRENT = ("nn.LSTM", "nn.GRU", "nn.RNN")
MAX_CALLS = 3  # of members, inside one expression
INDENT = "    "
FOR = " for "
PRECEDENCE = {
    "<": 1, ">": 1, "<=": 1, ">=": 1, "==": 1, "!=": 1,
    "+": 2, "-": 2, "*": 3, "/": 3, "@": 3, "%": 3,
}  # fmt: skip


def literal(value: Any) -> str:
    """Return a literal of the constructor's arguments.

    >>> literal(1e-05), literal((1, 2)), literal("a")
    ('1e-5', '(1, 2)', '"a"')
    """
    if isinstance(value, Name):
        return value.text
    if isinstance(value, bool) or value is None or isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if value in (float("inf"), -float("inf")):
            return f'float("{value}")'
        return re.sub(r"e([+-])0?(\d)", r"e\1\2", repr(value)).replace("e+", "e")
    if isinstance(value, tuple | list | torch.Size):
        inner = ", ".join(literal(v) for v in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, torch.dtype):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value)
    raise TypeError(f"{value!r} has no literal")


# -- constructors ----------------------------------------------------------------------------------


class Tree:
    """A call to print: on one line if it fits, else its arguments on a line, else each on its own.

    Modules of a sequence are never side by side, unless the whole call fits on one line.
    """

    def __init__(self, head: str, items: List[Any], tail: str) -> None:
        self.head, self.items, self.tail = head, list(items), tail

    def __str__(self) -> str:
        return f"{self.head}{', '.join(map(str, self.items))}{self.tail}"

    def lines(self, indent: int, prefix: str = "", suffix: str = "") -> list[str]:
        """Return the lines, of which the first begins with `prefix`."""
        margin = " " * indent
        one = f"{margin}{prefix}{self}{suffix}"
        if len(one) <= WIDTH or not self.items:
            return [one]
        lines = [f"{margin}{prefix}{self.head}"]
        inner = f"{margin}{INDENT}{', '.join(map(str, self.items))}"
        is_list = len(self.items) > 1 and any(isinstance(item, Tree) for item in self.items)
        if len(inner) <= WIDTH and not is_list:
            return [*lines, inner, f"{margin}{self.tail}{suffix}"]
        for item in self.items:
            if isinstance(item, Tree):
                lines += item.lines(indent + 4, suffix=",")
            else:
                lines.append(f"{margin}{INDENT}{item},")
        return [*lines, f"{margin}{self.tail}{suffix}"]


def module_tree(module: Any) -> Any:
    """Return a module's constructor as a tree to print."""
    if isinstance(module, Layer):
        call = Tree(f"{module.cls}(", [_argument(a) for a in module.args if _is_shown(a)], ")")
        return Tree(f"{module.wrapper}(", [call], ")") if module.wrapper else call
    if isinstance(module, Sequence):
        return Tree("nn.Sequential(", _items(module.items), ")")
    if isinstance(module, Branches):
        return Tree("Concat(", [*_items(module.items), *_dim(module)], ")")
    if isinstance(module, OptionalModule):
        return module_tree(module.module)
    raise TypeError(f"{type(module).__name__} has no constructor")


def _dim(module: Branches) -> list[str]:
    return [] if module.dim.value == 1 else [f"dim={literal(module.dim.value)}"]


def _is_shown(argument: Argument) -> bool:
    if argument.is_positional or isinstance(argument.value.value, Name):
        return True
    value, default = argument.value.value, argument.default
    return type(value) is not type(default) or value != default


def _argument(argument: Argument) -> str:
    text = literal(argument.value.value)
    return text if argument.is_positional else f"{argument.name}={text}"


def _items(items: tuple) -> list[Any]:
    """Return the items of a sequence, runs of equal ones as a generator."""
    trees: list[Any] = []
    i = 0
    while i < len(items):
        count, step = _run_length(items, i)
        if count >= MIN_REPEATS:
            trees.append(_repetition(items[i], count, step))
        else:
            count = 1
            trees.append(module_tree(items[i]))
        i += count
    return trees


def _repetition(item: Layer, count: int, step: dict[str, int]) -> str:
    parts = []
    for argument in item.args:
        if argument.name in step:
            start, by = argument.value.value, step[argument.name]
            text = f"{start} {'+' if by > 0 else '-'} {abs(by)} * i"
            parts.append(text if argument.is_positional else f"{argument.name}={text}")
        elif _is_shown(argument):
            parts.append(_argument(argument))
    variable = "i" if step else "_"
    return f"*({item.cls}({', '.join(parts)}) for {variable} in range({count}))"


def _run_length(items: tuple, start: int) -> tuple[int, dict[str, int]]:
    """Return the number of equal items from `start`, and the fixed differences between them."""
    first = items[start]
    if not isinstance(first, Layer) or first.wrapper:
        return 1, {}
    count, step = 1, None
    for previous, item in zip(items[start:], items[start + 1 :], strict=False):
        change = _change(previous, item)
        if change is None or (step is not None and change != step):
            break
        step = change
        count += 1
    return count, step or {}


def _change(a: Any, b: Any) -> dict[str, int] | None:
    """Return the differences of the arguments of two calls, or None if there are none."""
    if not isinstance(b, Layer) or a.cls != b.cls or b.wrapper:
        return None
    change = {}
    for x, y in zip(a.args, b.args, strict=True):
        p, q = x.value.value, y.value.value
        if type(p) is type(q) and p == q:
            continue
        if type(p) is not int or type(q) is not int:
            return None
        change[x.name] = q - p
    return change if len(change) <= 1 else None


# -- forward ---------------------------------------------------------------------------------------


class _Text:
    """An expression with its precedence and the number of members that it calls."""

    def __init__(self, text: str, strength: int = 9, calls: int = 0) -> None:
        self.text, self.strength, self.calls = text, strength, calls

    def operand(self, strength: int) -> str:
        return self.text if self.strength >= strength else f"({self.text})"


class ForwardWriter:
    """Writes the statements of one unit's forward."""

    def __init__(self, unit: Unit, inputs: List[str]) -> None:
        unit = self.unit = fold_loops(unit)
        self.names: dict[int, str] = dict(enumerate(inputs))
        loops = [s.expression for s in unit.steps if isinstance(s.expression, Comprehension | Loop)]
        self.tuples = {
            v.number for e in loops for v in getattr(e, "sources", ()) if type(v) is Value
        }
        variables = {n for e in loops for n in getattr(e, "names", ())}
        self.taken = {*inputs, *({"layer", COUNTER} if loops else ()), *variables}
        self.free: set[str] = set()
        self.plain = set(filter(PLAIN.fullmatch, inputs))  # generic names, such as x
        self.longest = max((len(name) for name in inputs), default=0)
        self.last_use: dict[int, int] = {}
        self.uses: dict[int, int] = {}
        self.states = _states(unit)
        self.sizes = {i for i, s in enumerate(unit.steps) if _is_size(s, self.states)}
        steps = [*unit.steps, Step((), Group(unit.outputs, False))]
        for i, step in enumerate(steps):
            for value in operands(step.expression):
                self.last_use[value.number] = i
                self.uses[value.number] = self.uses.get(value.number, 0) + 1
        for i in self.sizes:  # sizes are inlined where they are used
            later = self.last_use.get(unit.steps[i].outputs[0], i)
            for read in operands(unit.steps[i].expression):
                self.last_use[read.number] = max(self.last_use[read.number], later)
        self.producer = {n: i for i, step in enumerate(unit.steps) for n in step.outputs}

    def lines(self) -> list[str]:
        """Return the statements, without indentation."""
        steps = list(self.unit.steps)
        inlined = self._choose_inlined()
        lines: list[str] = []
        for i, step in enumerate(steps):
            if i in inlined:
                continue
            text = self._render(step.expression, inlined)
            if isinstance(step.expression, Loop):
                lines += self._loop(step, i, inlined)
                continue
            self._release(i, step, inlined)
            target = self._targets(step, i)
            lines += _statement(f"{target} = ", text)
        outputs = [self._render(o, inlined).text for o in self.unit.outputs]
        lines += _statement("return ", _Text(", ".join(outputs)))
        return lines

    def _loop(self, step: Step, i: int, inlined: set[int]) -> list[str]:
        """Return the lines of a loop over a list of modules."""
        loop = step.expression
        start, *rest = (self._render(a, inlined).text for a in loop.args)
        self._release(i, step, inlined)
        target = self._targets(step, i)
        lines = [] if start == target else [f"{target} = {start}"]
        call = f"{target} = layer({', '.join([target, *rest])})"
        return [*lines, f"for layer in self.{loop.members}:", f"{INDENT}{call}"]

    def _choose_inlined(self) -> set[int]:
        """Return the steps that are written inside the only step that reads them."""
        inlined: set[int] = set(self.sizes)
        end = len(self.unit.steps)
        readers = [*self.unit.steps, Step((), Group(self.unit.outputs, False))]
        for i in range(end, -1, -1):
            if i < end and i in inlined:
                continue
            self._inline_into(i, readers[i], inlined)
        return inlined

    def _inline_into(self, i: int, reader: Step, inlined: set[int]) -> None:
        """Inline the steps directly before a step that only this step reads."""
        if isinstance(reader.expression, Loop):
            return
        if i == len(self.unit.steps) and len(self.unit.outputs) > 1:
            return
        at, frontier = i, [reader]
        is_changed = True

        def before(at: int) -> int:
            at -= 1
            while at in self.sizes:
                at -= 1
            return at

        while is_changed:
            is_changed = False
            for step in frontier:
                for value in operands(step.expression):
                    producer = self.producer.get(value.number, -1)
                    if (
                        producer != before(at)
                        or self.uses[value.number] != 1
                        or producer in inlined
                    ):
                        continue
                    source = self.unit.steps[producer]
                    if len(source.outputs) > 1 or _ends_line(source, step):
                        continue
                    if isinstance(source.expression, Loop):
                        continue
                    inlined.add(producer)
                    if not self._is_short(reader, inlined, source):
                        inlined.discard(producer)
                        continue
                    at, is_changed = producer, True
                    frontier = [*frontier, source]
                    break
                if is_changed:
                    break

    def _is_short(self, reader: Step, inlined: set[int], source: Step) -> bool:
        names = dict(self.names)
        for n in self.producer:
            self.names.setdefault(n, "out")
        inner = self._render(source.expression, inlined)
        outer = self._render(reader.expression, inlined)
        self.names = names
        limit = MAX_INLINE if isinstance(reader.expression, Group) else MAX_INLINE + 8
        limit -= max(0, self.longest - 8)
        limit -= 6 * max(0, len(reader.outputs) - 1)
        return outer.calls <= MAX_CALLS and len(outer.text) <= limit and "\n" not in inner.text

    # -- names ------------------------------------------------------------------------------

    def _release(self, i: int, step: Step, inlined: set[int]) -> None:
        """Release the names of values after their last use."""
        done = {i}
        k = i - 1
        while k in inlined:
            done.add(k)
            k -= 1
        for number, last in self.last_use.items():
            if last in done and number in self.names:
                self.free.add(self.names[number])

    def _targets(self, step: Step, i: int) -> str:
        names = []
        for n in step.outputs:
            if n not in self.last_use:
                names.append("_")
                continue
            name = self._choose_name(step, i)
            if n in self.states:
                name = "state"
                while name in self.taken - self.free:
                    name = f"state{int(name[5:] or 1) + 1}"
            self.names[n] = name
            self.taken.add(name)
            self.free.discard(name)
            names.append(name)
        return ", ".join(names)

    def _choose_name(self, step: Step, i: int) -> str:
        if step.outputs[0] in self.tuples and isinstance(step.expression, Apply):
            return step.expression.member
        is_split = isinstance(step.expression, Call) and len(step.outputs) > 1
        if is_split:
            return self._fresh_name()
        if len(step.outputs) == 1:
            for value in operands(step.expression):
                name = self._name_of(value)
                if name in self.free and name in self.plain:
                    return name
        for name in _candidates(step.expression):
            if name not in self.taken:
                if name == "out":
                    self.plain.add(name)
                return name
        for name in sorted(self.free & self.plain):
            return name
        return self._fresh_name()

    def _fresh_name(self) -> str:
        number = 1
        while f"out{number}" in self.taken:
            number += 1
        self.plain.add(f"out{number}")
        return f"out{number}"

    def _name_of(self, value: Value) -> str:
        while value.number not in self.names:
            step = self.unit.steps[self.producer[value.number]]
            inner = next(operands(step.expression), None)
            if inner is None:
                return ""
            value = inner
        return self.names[value.number]

    # -- expressions ------------------------------------------------------------------------

    def _render(self, expression: Any, inlined: set[int]) -> _Text:
        def render(each: Any) -> _Text:
            return self._render(each, inlined)

        if isinstance(expression, Value):
            producer = self.producer.get(expression.number)
            if producer in inlined:
                return render(self.unit.steps[producer].expression)
            return _Text(self.names[expression.number])
        return render_expression(expression, render)


def _is_size(step: Step, states: set[int]) -> bool:
    """Return whether a step reads a size or a state, which is inlined where it is used."""
    call = step.expression
    if isinstance(call, Item) and isinstance(call.value, Value):
        return call.value.number in states
    return isinstance(call, Call) and call.function in (".shape", ".device")


def _states(unit: Unit) -> set[int]:
    """Return the state outputs of recurrent layers."""
    members = dict(unit.members)
    calls = [s for s in unit.steps if isinstance(s.expression, Apply) and len(s.outputs) == 2]
    layers = [(members.get(s.expression.member), s.outputs[1]) for s in calls]
    return {n for m, n in layers if isinstance(m, Layer) and m.cls in RECURRENT}


def _ends_line(source: Step, reader: Step) -> bool:
    """Return whether an activation precedes a layer: the layer then begins a new line."""
    call = source.expression
    is_activation = isinstance(call, Call) and call.function in ACTIVATIONS
    return is_activation and isinstance(reader.expression, Apply)


ACTIVATIONS = {
    "F.relu",
    "F.relu6",
    "F.leaky_relu",
    "torch.sigmoid",
    "torch.tanh",
    "F.gelu",
    "F.elu",
}


def render_expression(expression: Any, render: Callable[[Any], _Text]) -> _Text:
    """Return the text of an expression. A function renders its parts."""
    if isinstance(expression, Const):
        value = expression.value
        if isinstance(value, Name):
            return _Text(f"self.{value.text}" if value.text.isidentifier() else value.text)
        text = literal(value)
        return _Text(text, 8 if text.startswith("-") else 9)
    if isinstance(expression, Member):
        return _Text(f"self.{expression.name}")
    if isinstance(expression, Apply):
        parts = [render(a) for a in expression.args]
        member = re.sub(r"\.(\d+)", r"[\1]", expression.member)
        text = f"self.{member}({', '.join(p.text for p in parts)})"
        return _Text(text, calls=1 + sum(p.calls for p in parts))
    if isinstance(expression, Call):
        return _render_call(expression, render)
    if isinstance(expression, Infix):
        strength = PRECEDENCE[expression.operator]
        left, right = render(expression.left), render(expression.right)
        text = f"{left.operand(strength)} {expression.operator} {right.operand(strength + 1)}"
        return _Text(text, strength, left.calls + right.calls)
    if isinstance(expression, Item):
        value, index = render(expression.value), expression.index
        items = index.items if isinstance(index, Group) else (index,)
        inner = ", ".join(render(i).text for i in items)
        return _Text(f"{value.operand(9)}[{inner}]", calls=value.calls)
    if isinstance(expression, Slice):
        bounds = [
            "" if isinstance(b, Const) and b.value is None else render(b).text
            for b in (expression.start, expression.stop)
        ]
        is_simple = all(re.fullmatch(r"-?\w*", bound) for bound in bounds)
        return _Text(":".join(bounds) if is_simple else " : ".join(bounds).strip())
    if isinstance(expression, Variable):
        return _Text(expression.text, 9 if expression.text.isidentifier() else 2)
    if isinstance(expression, Loop):
        return _Text("", calls=MAX_CALLS)
    if isinstance(expression, Comprehension):
        return _comprehension(expression, render)
    if isinstance(expression, Group):
        parts = [render(i) for i in expression.items]
        inner = ", ".join(p.text for p in parts)
        calls = sum(p.calls for p in parts)
        if expression.is_list:
            return _Text(f"[{inner}]", calls=calls)
        return _Text(f"({inner},)" if len(parts) == 1 else f"({inner})", calls=calls)
    raise TypeError(f"{type(expression).__name__} has no text")


def _comprehension(expression: Comprehension, render: Callable[[Any], _Text]) -> _Text:
    template = render(expression.template)
    names, sources = list(expression.names), [render(s).text for s in expression.sources]
    if COUNTER in re.findall(r"\w+", template.text):
        if sources:
            names.append(COUNTER)
            sources.append(f"range({expression.count})")
        else:
            names, sources = [COUNTER], [f"range({expression.count})"]
    source = sources[0] if len(sources) == 1 else f"zip({', '.join(sources)})"
    return _Text(f"[{template.text}{FOR}{', '.join(names)} in {source}]")


def _render_call(call: Call, render: Callable[[Any], _Text]) -> _Text:
    parts = [render(a) for a in call.args]
    named = [(k, render(v)) for k, v in call.kwargs]
    calls = sum(p.calls for p in parts) + sum(p.calls for _, p in named)
    shown = [p.text for p in parts] + [f"{k}={p.text}" for k, p in named]
    if call.function == "-":
        return _Text(f"-{parts[0].operand(8)}", 8, calls)
    if call.function.startswith("."):
        head = parts[0].operand(9)
        shown = shown[1:]
        if call.function == ".shape":
            return _Text(f"{head}.shape[{shown[0]}]", calls=calls)
        if call.function == ".device":
            return _Text(f"{head}.device", calls=calls)
        return _Text(f"{head}{call.function}({', '.join(shown)})", calls=calls)
    return _Text(f"{call.function}({', '.join(shown)})", calls=calls)


def _candidates(expression: Any) -> list[str]:
    names = []
    if isinstance(expression, Loop):
        return ["x", "out"]
    if isinstance(expression, Apply):
        name = re.sub(r"^\d+$|.*\..*", "", expression.member)
        names += [name] if name and not expression.member.startswith("_") else []
    return ["out", *names]


def _statement(prefix: str, text: _Text, margin: int = 8) -> list[str]:
    line = prefix + text.text
    if len(line) + margin <= WIDTH:
        return [line]
    if FOR in text.text and text.text.startswith("["):
        template, _, source = text.text[1:-1].rpartition(FOR)
        inner = _statement("", _Text(template), margin + 4)
        lines = [*inner, f"{FOR.strip()} {source}"]
        return [f"{prefix}[", *(f"{INDENT}{line}" for line in lines), "]"]
    match = re.match(r"^([\w.]+\()(.*)\)$", text.text)
    if match and _is_one_call(text.text):
        if len(match[2]) + margin + 4 <= WIDTH:
            return [f"{prefix}{match[1]}", f"{INDENT}{match[2]}", ")"]
        items = split_arguments(match[2])
        inner: list[str] = []
        for item in items:
            inner += [f"{INDENT}{part}" for part in _break_list(item, margin)]
        return [f"{prefix}{match[1]}", *inner, ")"]
    return [f"{prefix}(", f"{INDENT}{text.text}", ")"]


def _break_list(item: str, margin: int) -> list[str]:
    if len(item) + margin + 5 <= WIDTH or not (item.startswith("[") and item.endswith("]")):
        return [f"{item},"]
    return ["[", *(f"{INDENT}{part}," for part in split_arguments(item[1:-1])), "],"]


def _is_one_call(text: str) -> bool:
    """Return whether the first parenthesis closes at the end."""
    depth = 0
    for i, letter in enumerate(text):
        depth += letter in "([{"
        depth -= letter in ")]}"
        if depth == 0 and letter == ")":
            return i == len(text) - 1
    return False


def split_arguments(text: str) -> list[str]:
    """Return the arguments of a call, split at commas outside of brackets.

    >>> split_arguments("a, f(b, c), [d, e]")
    ['a', 'f(b, c)', '[d, e]']
    """
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += letter in "([{"
        depth -= letter in ")]}"
        if letter == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()]


# -- classes ---------------------------------------------------------------------------------------


def class_lines(definition: ClassDefinition) -> list[str]:
    """Return the lines of a class."""
    module = definition.module
    base, doc = "nn.Module", describe(definition)
    if isinstance(module, Sequence | Branches):
        base = "nn.Sequential" if isinstance(module, Sequence) else "Concat"
    lines = [f"class {definition.name}({base}):", *_docstring(doc, 4), ""]
    if isinstance(module, Unit) and not module.members and not definition.parameters:
        return [*lines, *_forward(module)]
    lines += _init_head(definition.parameters)
    if isinstance(module, Unit):
        return [*lines, *_init_body(definition), "", *_forward(module)]
    items = _items(module.items)
    if isinstance(module, Branches):
        items += _dim(module)
    return [*lines, *Tree("super().__init__(", items, ")").lines(8)]


def _docstring(text: str, indent: int) -> list[str]:
    return [f'{" " * indent}"""{text}"""']


def _init_head(parameters: List[Parameter]) -> list[str]:
    if not parameters:
        return [f"{INDENT}def __init__(self) -> None:"]
    parts = ["self", *(_declare(p) for p in parameters)]
    return Tree("def __init__(", parts, ") -> None:").lines(4)


def _declare(parameter: Parameter) -> str:
    kinds = dict.fromkeys(type_of(v) for v in parameter.values if v is not MISSING)
    kinds = [k for k in kinds if k] or ["int"]
    text = f"{parameter.name}: {' | '.join(kinds)}"
    return text if parameter.default is MISSING else f"{text} = {literal(parameter.default)}"


def type_of(value: Any) -> str:
    """Return the annotation of a literal."""
    if isinstance(value, Name):
        return ""
    if value is None:
        return "None"
    if isinstance(value, tuple):
        return f"tuple[{', '.join(type_of(v) for v in value)}]"
    return type(value).__name__


def _init_body(definition: ClassDefinition) -> list[str]:
    unit = definition.module
    lines = [f"{INDENT * 2}super().__init__()"]
    for name in _stored(unit):
        lines.append(f"{INDENT * 2}self.{name} = {name}")
    lists: dict[str, list[Any]] = {}
    for name, module in unit.members:
        head, _, number = name.partition(".")
        if number:
            lists.setdefault(head, []).append(module)
    for name, module in unit.members:
        head, _, number = name.partition(".")
        if not number:
            lines += _member_lines(name, module)
        elif number == "0":
            items = _items(tuple(lists[head]))
            is_repetition = len(items) == 1 and str(items[0]).startswith("*(")
            shown = [str(items[0])[2:-1]] if is_repetition else [Tree("[", items, "]")]
            lines += Tree("nn.ModuleList(", shown, ")").lines(8, f"self.{head} = ")
    return lines


def _member_lines(name: str, module: Any) -> list[str]:
    if isinstance(module, Param):
        shape = literal(tuple(size.value for size in module.shape))
        if module.is_buffer:
            return [f'{INDENT * 2}self.register_buffer("{name}", torch.zeros({shape}))']
        return [f"{INDENT * 2}self.{name} = nn.Parameter(torch.zeros({shape}))"]
    tree = module_tree(module)
    if not isinstance(module, OptionalModule):
        return tree.lines(8, f"self.{name} = ")
    condition = literal(module.flag.value)
    lines = [f"{INDENT * 2}self.{name}: nn.Module = nn.Identity()", f"{INDENT * 2}if {condition}:"]
    return [*lines, *tree.lines(12, f"self.{name} = ")]


def _stored(unit: Unit) -> list[str]:
    """Return the parameters of the constructor that the forward reads."""
    names: dict[str, None] = {}

    def look(each: Any) -> None:
        if isinstance(each, Const) and isinstance(each.value, Name):
            names[each.value.text] = None
        for part in parts(each):
            look(part)

    for step in fold_loops(unit).steps:
        look(step.expression)
    return list(names)


def _forward(unit: Unit) -> list[str]:
    names = list(unit.input_names)
    result = "Tensor"
    if len(unit.outputs) > 1:
        result = f"tuple[{', '.join(['Tensor'] * len(unit.outputs))}]"
    head = ["self", *(f"{n}: Tensor" for n in names)]
    lines = Tree("def forward(", head, f") -> {result}:").lines(4)
    body = ForwardWriter(unit, names).lines()
    return [*lines, *(f"{INDENT * 2}{line}" for line in body)]


def describe(definition: ClassDefinition) -> str:
    """Return the docstring of a class."""
    module = definition.module
    doc = getattr(module, "doc", "")
    if doc or definition.is_model:
        return doc or f"{definition.name} network."
    if isinstance(module, Branches):
        if any(isinstance(i, Layer) and i.cls == "nn.Identity" for i in module.items):
            return "Concatenates the input with what its layers compute of it."
        return "Concatenates the outputs of several branches."
    if isinstance(module, Sequence):
        kinds = [_noun(item) for item in module.items]
        if len(set(kinds)) == 1:
            return f"A sequence of {len(kinds)} {kinds[0]} layers."
        if len(kinds) > 1 and len(", ".join(kinds)) < 60:
            return f"{_capital(', '.join(kinds[:-1]))} and {kinds[-1]}."
        return f"A sequence of {len(kinds)} layers."
    kinds = list(dict.fromkeys(_noun(m) for _, m in module.members if not isinstance(m, Param)))
    if kinds and len(", ".join(kinds)) < 50 and all(kind in NAMED for kind in kinds):
        parts = [", ".join(kinds[:-1]), kinds[-1]] if kinds[:-1] else kinds
        return f"A block of {' and '.join(parts)}."
    words = re.sub(r"(?<=[a-z\d])(?=[A-Z][a-z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", definition.name)
    first, *rest = words.split()
    return " ".join([first, *(w.lower() if w.istitle() else w for w in rest)]) + "."


NOUNS = {
    "nn.Conv2d": "convolution",
    "nn.Conv1d": "convolution",
    "nn.BatchNorm2d": "batch normalization",
    "nn.BatchNorm1d": "batch normalization",
    "nn.LayerNorm": "layer normalization",
    "nn.Linear": "linear layer",
    "nn.MaxPool2d": "max pooling",
    "nn.AvgPool2d": "average pooling",
    "nn.AdaptiveAvgPool2d": "global average pooling",
    "nn.Dropout": "dropout",
    "nn.Embedding": "embedding",
}


NAMED = {*NOUNS.values(), "layers", "branches"}


def _noun(module: Any) -> str:
    if isinstance(module, OptionalModule):
        return _noun(module.module)
    if isinstance(module, Layer):
        return NOUNS.get(module.cls, module.cls.removeprefix("nn."))
    return "branches" if isinstance(module, Branches) else "layers"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
