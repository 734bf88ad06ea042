"""The rule about divisions: ``5 / 2`` is 2 in Python 2 and 2.5 in Python 3, which fits no size."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..run.program import import_aliases, resolve
from ..run.python2 import divides_as_python_3
from .finding import Edit, Finding
from .names import look_up, operator_of
from .source import Source

INTEGER_FUNCTIONS = frozenset({"range", "xrange"})
INTEGER_LABELS = ("int", "Shape")
_SIZES = (
    "units channels in_channels in_units num_filter num_hidden num_group kernel_size kernel "
    "strides stride padding pad hidden_size num_layers input_size input_dim output_dim shape "
    "batch_size numpy_batch_size num_outputs num_args begin end repeats"
)
INTEGER_ARGUMENTS = frozenset(_SIZES.split())  # of Gluon's layers and of iterators
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.FloorDiv)


def check_divisions(source: Source) -> Iterator[Finding]:
    """Give the divisions whose result must be an integer: sizes, counts and positions."""
    if divides_as_python_3(source.tree):
        return  # the author meant fractions
    lines = source.text.encode().splitlines(keepends=True)
    aliases, assigned = import_aliases(source.tree), _assigned_once(source.tree)
    seen: set[tuple[int, int]] = set()
    for node in ast.walk(source.tree):
        for value in _integer_values(node, aliases):
            if isinstance(value, ast.Name):
                value = assigned.get(value.id, value)
            for division in _divisions(value):
                position = (division.lineno, division.col_offset)
                if position not in seen:
                    seen.add(position)
                    yield _report(division, lines)


def _assigned_once(tree: ast.AST) -> dict[str, ast.expr]:
    """Return the values of names that a program binds in one place only, by an assignment."""
    values: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            values.setdefault(node.id, []).append(None)
        elif isinstance(node, ast.arg):
            values.setdefault(node.arg, []).append(None)
    # An assignment is seen twice: as a statement, and by the name that is its target.
    return {n: v for n, (v, *rest) in values.items() if v is not None and rest == [None]}


def _integer_values(node: ast.AST, aliases: dict[str, str]) -> Iterator[ast.expr]:
    """Give the expressions of a node that only integers fit."""
    if isinstance(node, ast.Subscript):
        yield from _indices(node.slice)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from (
            other
            for items, other in ((node.left, node.right), (node.right, node.left))
            if isinstance(items, ast.List | ast.Tuple)
        )
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in INTEGER_FUNCTIONS:
            yield from node.args
        integers = _integer_arguments(node, aliases)
        yield from (k.value for k in node.keywords if k.arg in integers)


def _integer_arguments(call: ast.Call, aliases: dict[str, str]) -> frozenset[str]:
    """Return the arguments of a function of MXNet that are integers or shapes."""
    name = resolve(call.func, aliases)
    if name is None or not name.startswith("mxnet."):
        return frozenset()
    operator = operator_of(look_up(name)[0])
    if operator is None:
        return INTEGER_ARGUMENTS
    attributes = operator.attributes.values()
    return frozenset(a.name for a in attributes if a.type.label.startswith(INTEGER_LABELS))


def _indices(index: ast.expr) -> Iterator[ast.expr]:
    if isinstance(index, ast.Slice):
        yield from (part for part in (index.lower, index.upper, index.step) if part is not None)
    elif isinstance(index, ast.Tuple):
        for part in index.elts:
            yield from _indices(part)
    else:
        yield index


def _divisions(value: ast.expr) -> Iterator[ast.BinOp]:
    """Give the divisions whose result reaches a value through arithmetic alone."""
    if isinstance(value, ast.Tuple | ast.List):
        for part in value.elts:
            yield from _divisions(part)
    elif isinstance(value, ast.UnaryOp):
        yield from _divisions(value.operand)
    elif isinstance(value, ast.BinOp) and isinstance(value.op, _ARITHMETIC):
        if isinstance(value.op, ast.Div):
            yield value
        if not isinstance(value.op, ast.FloorDiv):
            yield from _divisions(value.left)
            yield from _divisions(value.right)


def _report(division: ast.BinOp, lines: list[bytes]) -> Finding:
    text = ast.unparse(division)
    new = ast.unparse(ast.BinOp(division.left, ast.FloorDiv(), division.right))
    edit = _edit(division, lines)
    hint = f"write {new}: an integer is needed here"
    return Finding(division.lineno, text, "division", hint, False, (edit,) if edit else ())


def _edit(division: ast.BinOp, lines: list[bytes]) -> Edit | None:
    """Return the edit that doubles the slash, if it is on the line on which its left side ends."""
    line, start = division.left.end_lineno, division.left.end_col_offset
    if line is None or start is None or division.right.lineno != line:
        return None
    slash = lines[line - 1].find(b"/", start, division.right.col_offset)
    return Edit(line, slash, line, slash + 1, "//") if slash >= 0 else None
