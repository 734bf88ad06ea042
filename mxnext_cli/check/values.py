"""Static analysis of values: integers, fractions, or neither.

Names are treated as integers by the value assigned to them once, by their default, or by what
they are called: ``num_classes``, ``batch_size``.
"""

from __future__ import annotations

import ast
import re
from typing import Literal

from ..run.program import import_aliases, resolve

Kind = Literal["integer", "fraction", "other", ""]  # the last is unknown
Binding = ast.expr | Kind  # a value, or what is known of it
MAX_DEPTH = 12  # of names that are followed

INTEGER_NAME = re.compile(
    r"(?:num|n|nb)_\w+|\w*(?:_size|_num|_count|_dim|_dims|_len|_length|_steps|_layers|_epochs)"
    r"|num\w+s|batch|batch_(?:images|rois)|stride|strides|pad|padding|channels|epochs?|seq_len|depth|nworkers?"
    r"|\w*stride|\w*(?:channels|filters|units|examples|samples|workers|classes)"
)
_INTEGER_CALLS = frozenset({"int", "len", "ord", "id", "hash"})
_FRACTION_CALLS = frozenset({"float", "time.time", "time.clock", "random.random", "random.uniform"})
_FRACTION_MODULES = ("math.", "numpy.random.rand", "numpy.sqrt", "numpy.exp", "numpy.log")
_FRACTION_NAMES = (
    "mean",
    "std",
    "var",
    "floor",
    "ceil",
    "float32",
    "float64",
    "average",
    "pi",
    "e",
)
_FRACTION_FUNCTIONS = frozenset(f"numpy.{name}" for name in _FRACTION_NAMES)
_JOINING_CALLS = frozenset({"max", "min", "abs", "sum"})
_INTEGER_ATTRIBUTES = frozenset({"size", "ndim", "num_workers", "rank", "batch_size"})
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module | ast.ClassDef


class Values:
    """The assignments of a program, by scope."""

    def __init__(self, tree: ast.Module) -> None:
        self._aliases = import_aliases(tree)
        self._scopes: dict[int, list[ast.AST]] = {}  # around each node, from the inside
        self._bindings: dict[int, dict[str, list[Binding]]] = {}
        self._attributes: dict[str, list[ast.expr]] = {}  # self.x, of all classes of the file
        self._visit(tree, [])

    def _visit(self, node: ast.AST, scopes: list[ast.AST]) -> None:
        waiting: list[tuple[ast.AST, list[ast.AST]]] = [(node, scopes)]
        while waiting:
            node, scopes = waiting.pop()
            self._scopes[id(node)] = scopes
            if isinstance(node, _SCOPES):
                scopes = [node, *scopes]
                self._bindings[id(node)] = {}
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                    self._bind_arguments(node)
            elif scopes:
                self._bind(node, self._bindings[id(scopes[0])])
            waiting += [(part, scopes) for part in ast.iter_child_nodes(node)]

    def _bind_arguments(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        bindings = self._bindings[id(node)]
        positional = [*node.args.posonlyargs, *node.args.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(node.args.defaults))
        pairs = [*zip(positional, [*defaults, *node.args.defaults], strict=True)]
        pairs += zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        for arg, default in pairs:
            is_number = isinstance(default, ast.Constant) and default.value is not None
            value: Binding = self._kind_of_name(arg.arg)
            if is_number and default is not None:
                value = default
            bindings[arg.arg] = [value]

    def _bind(self, node: ast.AST, bindings: dict[str, list[Binding]]) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind_target(target, node.value, bindings)
        elif isinstance(node, ast.AugAssign):
            self._bind_target(node.target, node.value, bindings)
        elif isinstance(node, ast.For | ast.comprehension):
            items = node.iter
            is_range = isinstance(items, ast.Call) and ast.unparse(items.func) in (
                "range",
                "xrange",
            )
            if isinstance(node.target, ast.Name):
                kind: Kind = "integer" if is_range else ""
                bindings.setdefault(node.target.id, []).append(kind)

    def _bind_target(
        self, target: ast.expr, value: ast.expr, bindings: dict[str, list[Binding]]
    ) -> None:
        if isinstance(target, ast.Name):
            bindings.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            if target.value.id == "self":
                self._attributes.setdefault(target.attr, []).append(value)
        elif isinstance(target, ast.Tuple | ast.List):
            kind: Kind = "integer" if _is_shape(value) else ""
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            for i, part in enumerate(target.elts):
                if isinstance(part, ast.Name):
                    is_pair = len(parts) == len(target.elts)
                    bindings.setdefault(part.id, []).append(parts[i] if is_pair else kind)

    def assigned(self, name: ast.Name) -> ast.expr | None:
        """Return the value of a name, if its scope binds it once."""
        values = self._values_of(name)
        return values[0] if len(values) == 1 and isinstance(values[0], ast.expr) else None

    def _values_of(self, name: ast.Name) -> list[Binding]:
        for scope in self._scopes.get(id(name), []):
            if name.id in self._bindings[id(scope)]:
                return self._bindings[id(scope)][name.id]
        return []

    def kind(self, node: ast.expr, depth: int = 0) -> Kind:
        """Return the kind of a value in Python 2, where a quotient of integers is an integer."""
        if depth > MAX_DEPTH:
            return ""
        if isinstance(node, ast.Constant):
            return self._kind_of_constant(node.value)
        if isinstance(node, ast.UnaryOp):
            return self.kind(node.operand, depth + 1)
        if isinstance(node, ast.IfExp):
            return _join(self.kind(node.body, depth + 1), self.kind(node.orelse, depth + 1))
        if isinstance(node, ast.BinOp):
            return _join(self.kind(node.left, depth + 1), self.kind(node.right, depth + 1))
        if isinstance(node, ast.Name):
            return self._kind_of_variable(node, depth)
        if isinstance(node, ast.Call):
            return self._kind_of_call(node, depth)
        if isinstance(node, ast.Attribute):
            return self._kind_of_attribute(node, depth)
        if isinstance(node, ast.Subscript):
            return "integer" if _is_shape(node.value) else ""
        return "other"

    @staticmethod
    def _kind_of_constant(value: object) -> Kind:
        if isinstance(value, bool | str | bytes) or value is None:
            return "other"
        return "integer" if isinstance(value, int) else "fraction"

    @staticmethod
    def _kind_of_name(name: str) -> Kind:
        return "integer" if INTEGER_NAME.fullmatch(name) else ""

    def _kind_of_variable(self, node: ast.Name, depth: int) -> Kind:
        values = self._values_of(node)
        kinds: set[Kind] = {
            self.kind(v, depth + 1) if isinstance(v, ast.expr) else v for v in values
        }
        if kinds - {""}:
            return _join(*kinds)
        return self._kind_of_name(node.id)

    def _kind_of_attribute(self, node: ast.Attribute, depth: int) -> Kind:
        if node.attr in _INTEGER_ATTRIBUTES:
            return "integer"
        if resolve(node, self._aliases) in _FRACTION_FUNCTIONS:
            return "fraction"
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            kinds: set[Kind] = {
                self.kind(v, depth + 1) for v in self._attributes.get(node.attr, [])
            }
            if len(kinds) == 1 and kinds != {""}:
                return kinds.pop()
            if len(kinds) > 1:
                return _join(*kinds)
        return self._kind_of_name(node.attr)

    def _kind_of_call(self, node: ast.Call, depth: int) -> Kind:
        name = resolve(node.func, self._aliases) or ast.unparse(node.func)
        if name in _INTEGER_CALLS:
            return "integer"
        if name in _FRACTION_CALLS or name in _FRACTION_FUNCTIONS:
            return "fraction"
        if name.startswith(_FRACTION_MODULES):
            return "fraction"
        if name in _JOINING_CALLS and node.args:
            kinds: list[Kind] = [self.kind(argument, depth + 1) for argument in node.args]
            return _join(*kinds)
        return "integer" if name == "numpy.prod" and node.args and _is_shape(node.args[0]) else ""


def _join(*kinds: Kind) -> Kind:
    order: tuple[Kind, ...] = ("other", "fraction", "")
    for kind in order:
        if kind in kinds:
            return kind
    return "integer"


def _is_shape(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        node = node.value
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name == "shape" or name.endswith(("_shape", "_shapes"))
