"""The dotted names that a program uses, with its import aliases resolved: ``np.x`` is ``numpy.x``.

It reads the syntax tree only; nothing of the program runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Use", "find_uses", "import_aliases"]


class Use(NamedTuple):
    """A dotted name, the line where it stands, and how the program spells it."""

    name: str
    line: int
    spelling: str
    is_import: bool = False


def import_aliases(tree: ast.AST) -> dict[str, str]:
    """Return what each imported local name means: ``{"np": "numpy"}``.

    Names that are assigned a part of an imported module once, as in ``nd = mx.nd``, count too.
    """
    aliases: dict[str, str] = {}
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                local = alias.asname or alias.name.partition(".")[0]
                aliases[local] = alias.name if alias.asname else local
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(node.value)
    for name, values in assigned.items():
        if len(values) == 1 and isinstance(values[0], ast.Attribute) and name not in aliases:
            resolved = resolve(values[0], aliases)
            if resolved is not None:
                aliases[name] = resolved
    return aliases


def resolve(node: ast.expr, aliases: dict[str, str]) -> str | None:
    """Return the dotted name of an expression such as ``np.random.x``, if it has one."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return None
    return ".".join([aliases[node.id], *reversed(parts)])


def find_uses(tree: ast.AST) -> Iterator[Use]:
    """Give every use of a name that comes from an import, and every import itself."""
    aliases = import_aliases(tree)
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield Use(name, node.lineno, f"from {node.module} import {alias.name}", True)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield Use(alias.name, node.lineno, f"import {alias.name}", True)
        elif isinstance(node, ast.Attribute) and (name := resolve(node, aliases)) is not None:
            yield Use(name, node.end_lineno or node.lineno, ast.unparse(node))
            continue
        waiting.extend(ast.iter_child_nodes(node))
