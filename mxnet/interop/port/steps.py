"""Converts scopes to modules: nodes become layers or steps of the unit's forward."""

from __future__ import annotations

import operator
import re
from collections.abc import Container, Iterator
from collections.abc import Sequence as List
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...base import is_np_shape
from ...graph import Entry, Node
from ...graph.graph import topological
from ...graph.passes.infer import infer_shapes, infer_types
from ...ops.declare import Op
from ...ops.tensor.creation import zeros, zeros_without_dtype
from ..source import SUPPRESSIONS, Model
from ..to_torch import TorchCall, UnsupportedTorch, python_name
from ..torch_rows import TORCH_ROWS, NoRow
from .rows import MODULE_FORMS, PORT_ROWS
from .scopes import Scope, boundary
from .tree import (
    IDENTITY,
    Apply,
    Argument,
    Branches,
    Call,
    Const,
    Group,
    Infix,
    Item,
    Layer,
    Member,
    Param,
    Sequence,
    Slice,
    Step,
    TensorSource,
    Unit,
    Value,
    operands,
    parts,
    rebuild,
)

UnsupportedPort = UnsupportedTorch
LIST_ITEM = re.compile(r"[^\W\d]\w*\.\d+")
LIKE = ("torch.zeros_like", "torch.ones_like")
MAX_INLINE_STEPS = 2  # maximum for a block without layers to need no class


@dataclass
class Source:
    """A parameter or auxiliary state, or a value computed only from parameters."""

    node: Node
    index: int = 0


class PortCall(TorchCall):
    """A node that is being converted, with its shapes and types."""

    facts: Any = None

    def rank_checked(self, index: int) -> tuple[int, ...]:
        """Return the shape of an input."""
        if self.shapes is None:
            raise UnsupportedPort(
                f"mx port: the shapes of node {self.node.name!r} do not follow from the inputs. "
                "Give the shape of every input."
            )
        return self.shapes[index]

    def out_shape(self, index: int = 0) -> tuple[int, ...]:
        """Return the shape of an output."""
        return self.facts.shapes[self.node][index]


class Port:
    """Data of the whole model: shapes, types, parameters, and used functions."""

    def __init__(self, model: Model, constants: Container[str] = ()) -> None:
        self.model = model
        self.constants = constants  # names of frozen parameters
        self.outputs: dict[Any, dict[tuple[int, int], None]] = {}
        self.skeletons: dict[str, str] = {}
        self.functions: dict[str, str] = {}  # names in the file, with the module that has them
        self.suppressions: list[tuple[str, Node]] = []  # functions in the order of their calls
        graph, params = model.graph, model.params
        shapes = {n: tuple(t.shape) for n, t in params.items()}
        shapes |= {n: tuple(s) for n, s in model.shapes.items()}
        match = infer_shapes(graph, shapes, zero_is_unknown=not is_np_shape())
        self.shapes: dict[Node, Any] = match.values
        kinds = {n: t.dtype for n, t in params.items()} | dict(model.dtypes)
        inferred = infer_types(graph, kinds, torch.float32)
        self.dtypes = {
            n: [t or torch.float32 for t in types] for n, types in inferred.values.items()
        }
        self.params = params
        self.derived = _derived(graph, set(params))
        self.states = set(graph.auxiliary)

    def call(self, node: Node) -> PortCall:
        """Return a node with its shapes and types."""
        shapes: Any = [self.shapes[e.node][e.index] for e in node.inputs]
        if any(s is None or any(n < 1 for n in s) for s in shapes):
            shapes = None
        dtypes = [self.dtypes[e.node][e.index] for e in node.inputs]
        call = PortCall(node, node.typed, shapes, dtypes, self.dtypes[node])
        call.facts = self
        return call

    # -- modules ----------------------------------------------------------------------------

    def build(self, scope: Scope) -> Any:
        """Return the module of a scope."""
        module = StepWriter(self, scope, self.inputs_of(scope)).run(self.outputs_of(scope))
        if isinstance(module, Unit) and not module.members and len(module.steps) == 1:
            sequence = as_sequence(module)  # a class around one function
            return module if sequence is None else sequence.items[0]
        if isinstance(module, Sequence) and len(module.items) == 1 and not module.title:
            return module.items[0]
        return _unwrap(module)

    def build_root(self, scope: Scope) -> Any:
        """Return the module of the whole model, with the model's inputs and outputs in order."""
        inputs = [Entry(n) for n in self.model.inputs]
        self._collect_outputs(scope)
        return StepWriter(self, scope, inputs).run(self.model.graph.heads)

    def _collect_outputs(self, scope: Scope) -> None:
        """Collect the outputs that are read of any of the scopes that share their parameters."""
        for item in scope.items:
            if not isinstance(item, Scope):
                continue
            self._collect_outputs(item)
            positions = {n: i for i, n in enumerate(item.nodes())}
            known = self.outputs.setdefault(_shared_key(item), {})
            for entry in boundary(item, self.model.graph)[1]:
                if entry.node in self.derived:
                    continue
                known[positions[entry.node], entry.index] = None

    def outputs_of(self, scope: Scope) -> list[Entry]:
        """Return the entries that the module of a scope returns."""
        if scope.identity is None:
            gives = boundary(scope, self.model.graph)[1]
            return [e for e in gives if e.node not in self.derived]
        nodes = list(scope.nodes())
        return [Entry(nodes[i], index) for i, index in self.outputs[_shared_key(scope)]]

    def inputs_of(self, scope: Scope) -> list[Entry]:
        """Return the entries that the module of a scope takes."""
        reads = boundary(scope, self.model.graph)[0]
        order = list(scope.input_names)
        entries = [e for e in reads if not self.is_parameter(e.node)]

        def position(entry: Entry) -> int:
            key = (entry.node, entry.index)
            return order.index(key) if key in order else len(order)

        return sorted(entries, key=position)

    def input_names(self, scope: Scope, inputs: List[Entry]) -> tuple[str, ...]:
        """Return the names of arguments, from the block's code or the model's inputs."""
        known = scope.input_names
        names: list[str] = []
        for i, entry in enumerate(inputs):
            name = known.get((entry.node, entry.index), "")
            if not name and entry.node.op is None and len(inputs) > 1:
                name = identifier(entry.node.name)
            default = "x" if len(inputs) == 1 else f"x{i + 1}"
            names.append(default if not name or name in names else name)
        return tuple(names)

    def is_parameter(self, node: Node) -> bool:
        """Return whether a node is a parameter, or computed only from parameters."""
        return node.name in self.params if node.op is None else node in self.derived


def _derived(graph: Any, params: set[str]) -> set[Node]:
    """Return the nodes that are computed only from parameters."""
    derived: set[Node] = set()
    heads = {e.node for e in graph.heads}
    for node in graph.nodes:
        if node.op is None or not node.inputs or node in heads:
            continue
        if all(
            e.node in derived or (e.node.op is None and e.node.name in params) for e in node.inputs
        ):
            derived.add(node)
    return derived


def _unwrap(module: Any) -> Any:
    """Return the only member of a unit that just calls this member."""
    if not isinstance(module, Unit) or len(module.members) != 1 or len(module.steps) != 1:
        return module
    (name, member), step = module.members[0], module.steps[0]
    call = Apply(name, tuple(Value(i) for i in range(module.inputs)))
    is_wrapper = step.expression == call and module.outputs == tuple(map(Value, step.outputs))
    return member if is_wrapper else module


def _without_conversion(module: Any, scope: Scope) -> Any:
    """Remove the conversion of a unit's only input to indices. The caller converts instead."""
    if not isinstance(module, Unit) or module.inputs != 1 or len(module.steps) < 2:
        return None
    first, *steps = module.steps
    reads = [v for s in steps for v in operands(s.expression)]
    if first.expression != Call(".long", (Value(0),)) or Value(0) in reads:
        return None

    def change(part: Any) -> Any:
        return Value(0) if part == Value(first.outputs[0]) else rebuild(part, change)

    steps = [Step(s.outputs, change(s.expression)) for s in steps]
    unit = replace(module, steps=tuple(steps), outputs=tuple(map(change, module.outputs)))
    sequence = as_sequence(unit, scope.title) if scope.kind == "sequence" else None
    if sequence is not None and len(sequence.items) == 1 and not sequence.title:
        return sequence.items[0]
    return sequence or _unwrap(unit)


def _shared_key(scope: Scope) -> Any:
    return scope.identity, tuple(n.op for n in scope.nodes())


class StepWriter:
    """Writes the steps of one unit."""

    def __init__(self, port: Port, scope: Scope, inputs: List[Entry]) -> None:
        self.port, self.scope, self.model = port, scope, port.model
        self.members: dict[str, Any] = {}
        self.steps: list[Step] = []
        self.values: dict[tuple[Node, int], Any] = {}
        self.inputs = inputs
        self.count = len(inputs)
        for i, entry in enumerate(inputs):
            self.values[entry.node, entry.index] = Value(i)
        self._by_key: dict[Any, str] = {}
        self._hints: list[tuple[str, Any]] = []
        self._node: Node | None = None

    def run(self, gives: List[Entry]) -> Any:
        """Return the module."""
        self._write(self.scope)
        outputs = tuple(self.operand(self._resolve(e)) for e in gives)
        self._drop_dead(outputs)
        names = self.port.input_names(self.scope, self.inputs)
        last = gives[0].node.name if gives else ""
        unit = Unit(
            self.scope.title or "Block",
            tuple(self.members.items()),
            len(self.inputs),
            tuple(self.steps),
            outputs,
            self.scope.doc,
            names,
            last,
        )
        if self.scope.kind == "sequence":
            return as_sequence(unit, self.scope.title) or _rename_numbers(unit)
        if self.scope.kind == "concat":
            return as_branches(unit, self.scope.title) or _rename_numbers(unit)
        return _rename_numbers(unit)

    def _write(self, scope: Scope) -> None:
        for item in scope.items:
            if isinstance(item, Node):
                if item not in self.port.derived:  # derived nodes are inlined where they are used
                    self._write_node(item)
            elif item.kind == "inline":
                self._hints.append((item.name, item.identity))
                self._write(item)
                self._hints.pop()
            elif next(item.nodes(), None) is not None:
                self._write_module(item)

    def _write_module(self, scope: Scope) -> None:
        gives = self.port.outputs_of(scope)
        inputs = self.port.inputs_of(scope)
        module = self.port.build(scope)
        if scope.kind == "concat" and not scope.title and not isinstance(module, Branches):
            self._write(scope)
            return
        if (
            isinstance(module, Unit)
            and not module.members
            and len(module.steps) <= MAX_INLINE_STEPS
        ):
            self._write(scope)
            return
        converted = _without_conversion(module, scope)
        if converted is not None:
            module = converted
        key = (scope.identity, module) if scope.identity is not None else None
        name = self._by_key.get(key)
        if name is None:
            name = self._member(scope.name or "block", module, key)
        args = tuple(self.operand(self._resolve(e)) for e in inputs)
        if converted is not None:
            args = (self.add(Call(".long", args)),)
        outputs = self.add(Apply(name, args), len(gives))
        outputs = outputs if isinstance(outputs, list) else [outputs]
        for entry, value in zip(gives, outputs, strict=True):
            self.values[entry.node, entry.index] = value

    def _write_node(self, node: Node) -> None:
        self._node = node
        call = self.port.call(node)
        pairs = zip(node.input_names, node.inputs, strict=False)
        inputs: list[Any] = [self._resolve(e) for e in node.inputs]
        if node.operator.variadic is None and len(inputs) != len(node.operator.inputs):
            by_name = {n: self._resolve(e) for n, e in pairs}
            inputs = [by_name.get(i.name) for i in node.operator.inputs]
            while inputs and inputs[-1] is None:
                inputs.pop()
        output = self._apply(call, inputs)
        outputs = output if isinstance(output, list) else [output]
        for i, value in enumerate(outputs):
            self.values[node, i] = value

    def _apply(self, call: PortCall, inputs: list[Any]) -> Any:
        before = len(self.steps), self.count, dict(self.members)
        op = call.op
        for rows, key, wrap in ((PORT_ROWS, op, False), (TORCH_ROWS, op.name, True)):
            build: Any = rows.get(key)  # pyright: ignore[reportArgumentType]
            if build is None:
                continue
            try:
                return build(self, call, *([self.operand(i) for i in inputs] if wrap else inputs))
            except NoRow:
                del self.steps[before[0] :]
                self.count, self.members = before[1], before[2]
        raw = op.raw
        is_real = all(t.is_floating_point for t in call.dtypes)
        is_plain = raw is not None and not call.attrs and (is_real or raw in EXACT)
        if is_plain and {*call.dtypes} == {call.out_dtypes[0]}:
            return self.call(raw, *(self.operand(i) for i in inputs))
        raise self.unsupported(call, "has no row yet; nothing of torch is known to compute it.")

    def _resolve(self, entry: Entry) -> Any:
        key = (entry.node, entry.index)
        if key in self.values:
            return self.values[key]
        if self.port.is_parameter(entry.node):
            return Source(entry.node, entry.index)
        raise UnsupportedPort(f"mx port: {entry.node.name!r} is read before it is computed.")

    def operand(self, value: Any) -> Any:
        """Return the operand of a step. A parameter becomes a member of the unit."""
        if isinstance(value, Source) and value.node.op is not None:
            self._write_node(value.node)
            return self.values[value.node, value.index]
        if isinstance(value, Source):
            key = ("param", value.node)
            name = self._by_key.get(key)
            if name is None:
                tensor = self.port.params[value.node.name]
                source = TensorSource((value.node.name,))
                is_trained = value.node not in self.port.states and tensor.is_floating_point()
                is_buffer = not is_trained or value.node.name in self.port.constants
                shape = tuple(Const(n, "size") for n in tensor.shape)
                param = Param(shape, source, is_buffer)
                name = self._member(self._parameter_name(value.node), param, key)
            return Member(name)
        if isinstance(value, tuple | list):
            return Group(tuple(self.operand(v) for v in value), isinstance(value, list))
        if value is None or isinstance(value, bool | int | float | str | torch.dtype):
            return Const(value)
        if isinstance(value, slice):
            return Slice(Const(value.start or None, "start"), Const(value.stop, "stop"))
        return value

    def _parameter_name(self, node: Node) -> str:
        name = self.model.names.get(node.name, node.name).rpartition(".")[2]
        return identifier(name)

    def _drop_dead(self, outputs: tuple) -> None:
        alive = {v.number for v in operands(outputs)}
        kept: list[Step] = []
        for step in reversed(self.steps):
            if alive.intersection(step.outputs):
                alive.update(v.number for v in operands(step.expression))
                kept.append(step)
        self.steps = kept[::-1]
        used = set(_members_of([*(s.expression for s in self.steps), *outputs]))
        self.members = {n: m for n, m in self.members.items() if n in used}

    # -- used by rows -----------------------------------------------------------------------

    def add(self, expression: Any, outputs: int = 1) -> Any:
        """Add a step and return its value, or its values."""
        expression = rebuild(expression, self.operand)
        numbers = tuple(range(self.count, self.count + outputs))
        self.count += outputs
        self.steps.append(Step(numbers, expression))
        values = [Value(n) for n in numbers]
        return values[0] if outputs == 1 else values

    def layer(
        self,
        call: TorchCall,
        cls: str,
        args: tuple[Argument, ...],
        tensors: dict[str, Any],
        *inputs: Any,
        outputs: int = 1,
        wrapper: str = "",
    ) -> Any:
        """Add a layer under the name of the block or node, and a call of it."""
        sources = []
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            if isinstance(tensor, Source) and tensor.node.op is None:
                tensor = TensorSource((tensor.node.name,))
            elif isinstance(tensor, Source):
                tensor = gather_parameters(self.port, call.node, Entry(tensor.node, tensor.index))
            if not isinstance(tensor, TensorSource):
                raise NoRow
            sources.append((name, tensor))
        module = Layer(cls, args, tuple(sources), wrapper, call.node.name)
        names = tuple(s.names for _, s in sources)
        key: Any = (cls, names) if any(names) else None
        if key is None and self._hints:  # a block without parameters, called again
            key = (cls, self._hints[-1][1])
        name = self._by_key.get(key) if key else None
        if name is None:
            name = self._member(self._layer_name(call.node, cls), module, key)
        elif self.members[name] != module and not sources:
            name = self._member(self._layer_name(call.node, cls), module)
        elif self.members[name] != module:
            raise NoRow
        return self.add(Apply(name, tuple(inputs)), outputs)

    def _layer_name(self, node: Node, cls: str) -> str:
        if self._hints and self._hints[-1][0]:
            return self._hints[-1][0]
        if node in self.scope.names:
            return self.scope.names[node]
        return DEFAULT_NAMES.get(cls, cls.rpartition(".")[2].lower())

    def _member(self, name: str, module: Any, key: Any = None) -> str:
        base, _, index = name.rpartition(".") if LIST_ITEM.fullmatch(name) else ("", "", name)
        base = (
            f"{identifier(base)}.{index}" if base else name if index.isdigit() else identifier(name)
        )
        candidate, number = base, 2
        while candidate in self.members:
            candidate, number = f"{base.replace('.', '_')}_{number}", number + 1
        self.members[candidate] = module
        if key is not None:
            self._by_key[key] = candidate
        return candidate

    def definition(self, value: Any) -> Any:
        """Return the expression of the step whose only output is this value, or None."""
        number = getattr(value, "number", -1)
        return next((s.expression for s in self.steps if s.outputs == (number,)), None)

    def shape_source(self, value: Any) -> Any:
        """Return the value to read the shape of an elementwise result from."""
        while True:
            expression = self.definition(value)
            if isinstance(expression, Infix) and isinstance(expression.right, Const):
                value = expression.left
            elif isinstance(expression, Call) and expression.function in LIKE:
                value = expression.args[0]
            else:
                return value

    def use_function(self, name: str, module: str = "") -> str:
        """Return the name of a library function, and include the function in the file."""
        self.port.functions[name] = module or name
        if self._node is not None and self._node.op in SUPPRESSIONS:
            self.port.suppressions.append((name, self._node))
        return name

    def ones(self, source: Any) -> TensorSource:
        """Return a constant of ones with the shape of a parameter."""
        shape = self.port.params[source.node.name].shape
        return TensorSource((), constant=torch.ones(shape))

    def gather(self, call: TorchCall, index: int) -> TensorSource:
        """Return the source of each element of an input, if it only rearranges parameters."""
        return gather_parameters(self.port, call.node, call.node.inputs[index])

    @staticmethod
    def is_zeros(entry: Entry) -> bool:
        """Return whether an entry is an array of zeros."""
        return entry.node.op in (zeros, zeros_without_dtype)

    def unsupported(self, call: TorchCall, why: str) -> UnsupportedTorch:
        """Return the error for a node that cannot be ported."""
        return UnsupportedPort(f"mx port: operator {call.op.name} (node {call.node.name!r}) {why}")

    # -- used by rows of to_torch -----------------------------------------------------------

    def call(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Add a call of a torch function."""
        while args and args[-1] is None:
            args = args[:-1]
        operands_ = [self.operand(a) for a in args]
        if function is operator.getitem:
            return self.add(Item(operands_[0], operands_[1]))
        sign = INFIX.get(function)
        if sign is not None and len(args) == 2 and not kwargs:
            return self.add(Infix(sign, *operands_))
        if function is torch.neg:
            return self.add(Call("-", tuple(operands_)))
        named = tuple((k, self.operand(v)) for k, v in kwargs.items())
        return self.add(Call(function_name(function), tuple(operands_), named))

    def method(self, name: str, x: Any, *args: Any) -> Any:
        """Add a call of a method of a tensor."""
        return self.add(Call(f".{name}", (x, *(self.operand(a) for a in args))))

    def size(self, x: Any, axis: int) -> Any:
        """Add a step that reads one size."""
        return self.add(Call(".shape", (x, Const(axis))))

    def inline_body(self, *args: Any) -> Any:
        """Raise for the body of a loop."""
        assert self._node is not None
        raise self.unsupported(self.port.call(self._node), "is a loop or branch of MXNet.")

    body_module = inline_body

    @staticmethod
    def identifier(name: str) -> str:
        """Return a name that Python accepts."""
        return identifier(name)


INFIX: dict[Any, str] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    torch.add: "+",
    torch.sub: "-",
    torch.mul: "*",
    torch.div: "/",
    torch.matmul: "@",
}
EXACT = (torch.add, torch.sub, torch.mul)  # of integers, too
METHODS = {torch.reshape: ".reshape", torch.permute: ".permute", torch.transpose: ".transpose",
           torch.unsqueeze: ".unsqueeze", torch.t: ".t"}  # fmt: skip
DEFAULT_NAMES = {
    "nn.Conv1d": "conv",
    "nn.Conv2d": "conv",
    "nn.Conv3d": "conv",
    "nn.ConvTranspose2d": "deconv",
    "nn.Linear": "linear",
    "LockedDropout": "dropout",
    "nn.BatchNorm1d": "bn",
    "nn.BatchNorm2d": "bn",
    "nn.LayerNorm": "norm",
    "nn.MaxPool2d": "pool",
    "nn.AvgPool2d": "pool",
    "nn.AdaptiveAvgPool2d": "pool",
    "nn.AdaptiveMaxPool2d": "pool",
}


def function_name(function: Any) -> str:
    """Return the name of a torch function in a file that imports torch and F."""
    if function in METHODS:
        return METHODS[function]
    name = function.__name__
    if getattr(F, name, None) is function and not hasattr(torch, name):
        return f"F.{name}"
    if getattr(torch, name, None) is function:
        return f"torch.{name}"
    if getattr(F, name, None) is function:
        return f"F.{name}"
    if getattr(torch.special, name.removeprefix("special_"), None) is function:
        return f"torch.special.{name.removeprefix('special_')}"
    raise NoRow


def identifier(name: str) -> str:
    """Return a name that Python accepts.

    >>> identifier("stage1.conv-0"), identifier("0")
    ('stage1_conv_0', '_0')
    """
    text = python_name(name)
    return f"{text}_" if text in RESERVED else text


RESERVED = {*dir(nn.Module()), "forward", "torch", "nn", "F"}


def _members_of(expression: Any) -> Iterator[str]:
    """Yield the members that an expression calls or reads."""
    if isinstance(expression, Member | Apply):
        yield expression.name if isinstance(expression, Member) else expression.member
    for part in parts(expression):
        yield from _members_of(part)


def _rename_numbers(unit: Unit) -> Unit:
    """Rename members that have numbers as names. Complete lists keep their numbers."""
    taken = {n for n, _ in unit.members}
    lists: dict[str, list[int]] = {}
    for name in taken:
        head, _, number = name.rpartition(".")
        lists.setdefault(head, []).append(int(number) if number.isdigit() else -1)
    names: dict[str, str] = {}
    for name, _ in unit.members:
        head, _, number = name.rpartition(".")
        if not number.isdigit():
            continue
        if head and head not in taken and sorted(lists[head]) == list(range(len(lists[head]))):
            continue
        new, count = f"{head or 'layer'}{number}", 2
        while new in taken:
            new, count = f"{head or 'layer'}{number}_{count}", count + 1
        taken.add(new)
        names[name] = new
    if not names:
        members = dict(unit.members)  # in lists, in their order
        order = sorted(members, key=lambda n: int(n.partition(".")[2] or 0)) if lists else members
        first = {n.partition(".")[0]: i for i, n in reversed(list(enumerate(members)))}
        order = sorted(order, key=lambda n: first[n.partition(".")[0]])
        return replace(unit, members=tuple((n, members[n]) for n in order))

    def rename(each: Any) -> Any:
        if isinstance(each, Apply):
            return replace(each, member=names.get(each.member, each.member))
        return each

    steps = tuple(Step(s.outputs, rename(s.expression)) for s in unit.steps)
    members = tuple((names.get(n, n), m) for n, m in unit.members)
    return _rename_numbers(replace(unit, members=members, steps=steps))


# -- chains ----------------------------------------------------------------------------------------


def as_module(unit: Unit, expression: Any) -> Any:
    """Return a module equivalent to an expression of one value, or None."""
    if isinstance(expression, Apply):
        return dict(unit.members)[expression.member]
    if isinstance(expression, Call) and expression.function in MODULE_FORMS:
        rest = [a for a in expression.args[1:] if isinstance(a, Const)]
        if len(rest) != len(expression.args) - 1:
            return None
        cls = MODULE_FORMS[expression.function]
        if cls == "nn.Flatten":
            return Layer(cls) if rest[0].value == 1 else None
        args = [Argument("value", c, None, True) for c in rest]
        args += [Argument(k, v) for k, v in expression.kwargs]
        return Layer(cls, tuple(args))
    return None


def chain(unit: Unit, start: Any, end: Any) -> list[Any] | None:
    """Return the modules that lead from one value to another, or None."""
    producers = {n: step for step in unit.steps for n in step.outputs}
    uses: dict[int, int] = {}
    for step in [*unit.steps, Step((), Group(unit.outputs, False))]:
        for value in operands(step.expression):
            uses[value.number] = uses.get(value.number, 0) + 1
    modules: list[Any] = []
    value = end
    while value != start:
        step = producers.get(getattr(value, "number", -1))
        if step is None or len(step.outputs) != 1:
            return None
        inputs = list(operands(step.expression))
        module = as_module(unit, step.expression)
        if module is None or len(inputs) != 1 or uses[value.number] != 1:
            return None
        modules.append(module)
        value = inputs[0]
    return modules[::-1]


def as_sequence(unit: Unit, title: str = "") -> Sequence | None:
    """Return a unit as a sequence, if each step only reads the result of the previous one."""
    if unit.inputs != 1 or len(unit.outputs) != 1:
        return None
    modules = chain(unit, Value(0), unit.outputs[0])
    if modules is None or len(modules) != len(unit.steps):
        return None
    if len({id(m) for m in modules if not _is_plain(m)}) < sum(not _is_plain(m) for m in modules):
        return None  # a shared layer
    return Sequence(tuple(modules), title, unit.doc, unit.node)


def _is_plain(module: Any) -> bool:
    return isinstance(module, Layer) and not module.tensors


def as_branches(unit: Unit, title: str = "") -> Branches | None:
    """Return a unit as branches, if it concatenates chains that begin at its only input."""
    if unit.inputs != 1 or len(unit.outputs) != 1 or not unit.steps:
        return None
    last = unit.steps[-1]
    call = last.expression
    if unit.outputs != (Value(last.outputs[0]),) or not isinstance(call, Call):
        return None
    if call.function != "torch.cat":
        return None
    items, count = [], 1
    for value in call.args[0].items:
        modules = chain(unit, Value(0), value)
        if modules is None:
            return None
        count += len(modules)
        if len(modules) == 1:
            items.append(modules[0])
        else:
            items.append(Sequence(tuple(modules)) if modules else IDENTITY)
    if count != len(unit.steps):
        return None
    dim = dict(call.kwargs).get("dim", Const(0))
    return Branches(tuple(items), dim, title, unit.node)


# -- rearranged parameters -------------------------------------------------------------------------


def gather_parameters(port: Port, reader: Node, entry: Entry) -> TensorSource:
    """Return an entry as parameters, with the index of each element in them.

    The nodes may only move elements. They are run on indices, to find the source of each element,
    and on other numbers, to check that no value changes.
    """
    nodes = topological([entry])
    names, total, starts = [], 0, {}
    for node in nodes:
        if node.op is None:
            if node.name not in port.params:
                raise NoRow
            starts[node] = total
            names.append(node.name)
            total += port.params[node.name].numel()
        elif node.operator.facts.random:
            raise NoRow
    inside = {*nodes, reader}
    others = [n for n in port.model.graph.nodes if n not in inside]
    if any(e.node in starts for n in others for e in n.inputs):
        raise NoRow  # a parameter that other nodes read directly

    def run(numbers: Tensor) -> Tensor:
        values: dict[tuple[Node, int], Tensor] = {}
        for node in nodes:
            if node.op is None:
                shape = port.params[node.name].shape
                start = starts[node]
                values[node, 0] = numbers[start : start + shape.numel()].reshape(shape)
                continue
            extra = node.op.context_for(False, torch.device("cpu"))
            output = node.op.function(*(values[e.node, e.index] for e in node.inputs),
                                      **node.typed, **extra)  # fmt: skip
            outputs = output if isinstance(output, list | tuple) else [output]
            values |= {(node, i): t for i, t in enumerate(outputs)}
        return values[entry.node, entry.index]

    numbers = torch.arange(total, dtype=torch.float64)
    index = run(numbers).long()
    is_moved = index.numel() and int(index.min()) >= 0 and int(index.max()) < total
    if not is_moved or len(index.unique()) < index.numel():
        raise NoRow
    other = (numbers * 0.37).sin()
    if not torch.equal(run(other), other[index]):
        raise NoRow
    return TensorSource(tuple(names), index)


__all__ = ["Op", "Port", "Source", "StepWriter", "UnsupportedPort"]
