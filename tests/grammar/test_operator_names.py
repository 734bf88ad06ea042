"""Facts about operators are on their records: nothing outside `mxnet/ops` lists their names.

A name that cannot be an ordinary word (``FullyConnected``, ``_plus_scalar``, ``broadcast_add``)
may not stand as text outside `mxnet/ops` at all; an ordinary word (``sum``) may not be looked up.
`operator_names.txt` has the exceptions: tables keyed by registered operators, and MXNet's own
parameters. It may only shrink, and every name in an excepted file must be registered.
"""

from __future__ import annotations

import ast
import pathlib
import re

import mxnet
from mxnet.ops import registry

ROOT = pathlib.Path(mxnet.__file__).parent
EXCEPTIONS = pathlib.Path(__file__).parent / "operator_names.txt"


def exceptions() -> dict[str, int | None]:
    """Return how many names each excepted file may have; None for tables of any size."""
    rows = [line.split("#")[0].split() for line in EXCEPTIONS.read_text().splitlines()]
    return {path: None if count == "*" else int(count) for path, count in filter(None, rows)}


def is_allowed(place: str, count: int) -> bool:
    """Return whether a file may have this many names."""
    allowed = exceptions()
    tables = [name for name, count in allowed.items() if count is None]
    if any(place == name or place.startswith(f"{name}/") for name in tables):
        return True
    return count <= (allowed.get(place) or 0)


def is_distinct(name: str) -> bool:
    """Return whether a registered name cannot be an ordinary word or parameter."""
    return name[:1] == "_" or name[:1].isupper() or bool(re.match("broadcast_|elemwise_", name))


def _skipped(tree: ast.AST) -> set[int]:
    """Return docstrings, and lists of a module's own public names."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr):
                found.add(id(first.value))
        if isinstance(node, ast.Assign):
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id in ("__all__", "__slots__"):
                found.update(map(id, ast.walk(node)))
    return found


def names_in(path: pathlib.Path) -> list[tuple[int, str]]:
    """Return the operator names in the strings of a file, with their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = _skipped(tree)
    known = set(registry.names())
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in skipped and node.value in known and is_distinct(node.value):
                found.append((node.lineno, node.value))
        elif isinstance(node, ast.Call) and node.args:
            owner, word = getattr(getattr(node.func, "value", None), "id", None), node.args[0]
            if owner == "registry" and isinstance(word, ast.Constant) and word.value in known:
                found.append((word.lineno, str(word.value)))
    return sorted(set(found))


def test_operator_names_occur_only_in_the_ops_package() -> None:
    wrong = {}
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place.startswith("ops/"):
            continue
        found = names_in(path)
        if not is_allowed(place, len(found)):
            wrong[place] = found
    assert not wrong, "ask the operator's record instead of its name: " + str(wrong)


def test_operator_name_exceptions_are_up_to_date() -> None:
    for place, count in exceptions().items():
        if count is None:
            continue
        assert len(names_in(ROOT / place)) == count, f"{place}: update {EXCEPTIONS.name}"
