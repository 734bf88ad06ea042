"""Calls whose result was a list in Python 2 and is an iterator, a view or a range in Python 3.

They count where the result is used as a list: indexed, measured, joined, sorted, shuffled, or
given to NumPy, which would take it for one object.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .program import import_aliases, resolve

ALL = frozenset({"iterator", "view", "range"})
BUT_RANGES = ALL - {"range"}
FUNCTIONS = {"map": "iterator", "filter": "iterator", "zip": "iterator", "range": "range"}
_LIST_METHODS = frozenset({"append", "extend", "insert", "pop", "remove", "reverse", "sort"})
_TAKING_LISTS = "array asarray concatenate stack vstack hstack mean std sum median"
# Functions, and which of the results they refuse or take for one object.
_CONSUMERS: dict[str, frozenset[str]] = {
    "len": frozenset({"iterator"}),
    "random.shuffle": ALL,
    "numpy.random.shuffle": ALL,
    "random.sample": BUT_RANGES,
    "random.choice": BUT_RANGES,
    **{
        f"{module}.{name}": BUT_RANGES
        for module in ("numpy", "mxnet.nd", "mxnet.ndarray")
        for name in _TAKING_LISTS.split()
    },
}
_SCOPES = ast.Module | ast.FunctionDef | ast.Lambda | ast.ClassDef


def find_lists(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls whose result the program uses as a list, directly or by a variable."""
    aliases = import_aliases(tree)
    values: dict[tuple[int, str], list[ast.AST]] = {}  # of each variable
    refused: dict[tuple[int, str], frozenset[str]] = {}
    waiting: list[tuple[ast.AST, int]] = [(tree, 0)]
    while waiting:
        node, scope = waiting.pop()
        for value, kinds in _uses(node, aliases):
            if _kind(value) in kinds:
                assert isinstance(value, ast.Call)
                yield value
            key = _variable(value, scope)
            refused[key] = refused.get(key, frozenset()) | kinds
        for target, value in _bindings(node):
            values.setdefault(_variable(target, scope), []).append(value)
        inner = id(node) if isinstance(node, _SCOPES) else scope
        if isinstance(node, ast.arg):
            values.setdefault((scope, node.arg), []).append(node)
        waiting.extend((part, inner) for part in ast.iter_child_nodes(node))
    for key, assigned in values.items():
        if key[1] and all(_kind(value) in refused.get(key, ()) for value in assigned):
            yield from (value for value in assigned if isinstance(value, ast.Call))


def _kind(node: ast.AST) -> str:
    """Return which of `ALL` a call returns, or an empty string."""
    if not isinstance(node, ast.Call) or node.keywords:
        return ""
    function = node.func
    if isinstance(function, ast.Name) and node.args:
        return FUNCTIONS.get(function.id, "")
    if isinstance(function, ast.Attribute) and not node.args:
        return "view" if function.attr in ("keys", "values", "items") else ""
    return ""


def _variable(node: ast.AST, scope: int) -> tuple[int, str]:
    """Return the scope and name of a variable, or 0 and an attribute of self."""
    if isinstance(node, ast.Name):
        return scope, node.id
    is_own = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
    return 0, ast.unparse(node) if is_own else ""


def _bindings(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield the targets that a statement binds, with their values, or with themselves."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            values = [node.value] if parts == [target] else getattr(node.value, "elts", parts)
            # x = None often comes before the list.
            yield from (p for p in zip(parts, values, strict=False) if not _is_constant(p[1]))
    elif isinstance(node, ast.For | ast.comprehension):
        yield node.target, node.target


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant)


def _uses(node: ast.AST, aliases: dict[str, str]) -> Iterator[tuple[ast.expr, frozenset[str]]]:
    """Yield what a node uses as a list, and the results that it refuses."""
    if isinstance(node, ast.Subscript):
        yield node.value, BUT_RANGES if isinstance(node.ctx, ast.Load) else ALL
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for side in (node.left, node.right):
            if isinstance(side, ast.Subscript) and isinstance(side.slice, ast.Slice):
                side = side.value
            yield side, ALL
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        yield node.target, ALL
    elif isinstance(node, ast.Call):
        name = resolve(node.func, aliases) or ast.unparse(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _LIST_METHODS:
            yield node.func.value, ALL
        elif node.args and name in _CONSUMERS:
            yield node.args[0], _CONSUMERS[name]
