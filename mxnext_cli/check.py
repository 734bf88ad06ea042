"""`mx check`: which names, operators and files of a project are covered, with their lines.

Programs are read, not run. Names are looked up in the installed package, so the answer is that of
this version.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import inspect
import json
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mxnet import ndarray, symbol
from mxnet.error import did_you_mean
from mxnet.ops.declare import Op

from . import CommandError
from .info import READERS, read_facts
from .output import print_json, print_table
from .run import removed
from .run.program import Use, find_uses, python_2_lines

PACKAGE = "mxnet"
SKIPPED_FOLDERS = frozenset({".git", ".venv", "venv", "__pycache__", "node_modules", "build"})


class Name(NamedTuple):
    """A use of a name in a file, and what was found out about it.

    `status` is ``covered``, ``absent``, ``removed`` (put back by `mx run`), ``syntax`` or
    ``missing package``.
    """

    file: str
    line: int
    name: str
    status: str
    hint: str = ""
    is_operator: bool = False


def run(args: argparse.Namespace) -> int:
    """Print what is not covered; return 1 if there is something."""
    sources, models = _files(args.paths)
    names = [name for path in sources for name in check_source(path)]
    files = [_check_file(path) for path in models]
    facts = _facts(names, files, len(sources), everything=args.all)
    if args.json:
        print_json(facts)
    else:
        _print(facts)
    bad = any(n.status in ("absent", "syntax") for n in names)
    return 1 if bad or any(f["problems"] for f in files) else 0


def _files(paths: list[str]) -> tuple[list[Path], list[Path]]:
    """Return the programs and the model files below the paths."""
    files: list[Path] = []
    for text in paths:
        path = Path(text)
        if path.is_dir():
            files += [
                p for p in sorted(path.rglob("*")) if p.is_file() and not _is_skipped(p, path)
            ]
        elif path.is_file():
            files.append(path)
        else:
            raise CommandError(f"{path}: there is no such file or folder")
    sources = [p for p in files if p.suffix in (".py", ".ipynb")]
    models = [p for p in files if p.suffix in READERS and _is_model(p)]
    if not sources and not models:
        raise CommandError(f"{', '.join(paths)}: no programs or model files there")
    return sources, models


def _is_skipped(path: Path, root: Path) -> bool:
    return any(part in SKIPPED_FOLDERS for part in path.relative_to(root).parts)


def _is_model(path: Path) -> bool:
    return path.suffix != ".json" or path.name.endswith("symbol.json")


# -- programs --------------------------------------------------------------------------------------


def check_source(path: Path) -> list[Name]:
    """Return every name of the package, and every removed one, that a program uses."""
    try:
        source = _read_source(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about its escapes and comparisons
            tree = ast.parse(source, str(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        lines = python_2_lines(path)
        names = [Name(str(path), f.line, f.name, "syntax", f"write {f.instead}") for f in lines]
        return names or [Name(str(path), line, str(error), "syntax", "this is not Python 3")]
    names = [name for use in find_uses(tree) if (name := _check_use(path, use)) is not None]
    names += [_check_namespace_use(path, name, line) for name, line in _uses_of_namespace(tree)]
    return sorted(set(names), key=lambda n: (n.line, n.name))


def _read_source(path: Path) -> bytes | str:
    if path.suffix == ".py":
        return path.read_bytes()
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        lines = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (KeyError, TypeError, ValueError) as error:
        raise CommandError(f"{path}: it is not a notebook: {error!r}") from None
    text = "\n".join(lines).splitlines()
    # Lines for the shell and magics are not Python.
    return "\n".join("pass" if line.lstrip()[:1] in ("!", "%") else line for line in text)


def _check_use(path: Path, use: Use) -> Name | None:
    root, _, rest = use.name.partition(".")
    if root == PACKAGE:
        if not rest:
            return None
        value, hint = look_up(use.name)
        status = "absent" if value is None else "covered"
        return Name(str(path), use.line, use.name, status, hint, _is_operator(value))
    module, _, name = use.name.rpartition(".")
    row = removed.ATTRIBUTES.get(module, {}).get(name)
    if row is not None and _is_gone(module, name):
        hint = f"write {removed.read_row(row)[1]}, or use mx run"
        return Name(str(path), use.line, use.name, "removed", hint)
    if use.is_import and not _is_installed(root) and not (path.parent / f"{root}.py").exists():
        return Name(str(path), use.line, root, "missing package", f"pip install {root}")
    return None


def look_up(dotted: str) -> tuple[Any, str]:
    """Return what a dotted name means here, or None and a hint.

    >>> look_up("mxnet.nd.zeross")
    (None, "Did you mean 'zeros'?")
    """
    parts = dotted.split(".")
    value: Any = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 1):
        if part == "*":
            return value, ""
        inner = _member(value, part, ".".join(parts[: i + 1]))
        if inner is None:
            if not isinstance(value, types.ModuleType | type):
                return value, ""  # an attribute of an object: only running it would show
            return None, did_you_mean(part, [n for n in dir(value) if not n.startswith("_")])
        value = inner
    return value, ""


def _member(owner: Any, name: str, dotted: str) -> Any:
    missing = object()
    value = getattr(owner, name, missing)
    if value is not missing:
        return value if value is not None else missing
    if isinstance(owner, types.ModuleType) and hasattr(owner, "__path__"):
        try:
            return importlib.import_module(dotted)
        except ImportError:
            return None
    return None


def _is_operator(value: Any) -> bool:
    return isinstance(value, Op) or isinstance(inspect.getattr_static(value, "op", None), Op)


def _is_gone(module: str, name: str) -> bool:
    if not _is_installed(module.partition(".")[0]):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return not hasattr(importlib.import_module(module), name)
    except ImportError:
        return True


def _is_installed(root: str) -> bool:
    try:
        return importlib.util.find_spec(root) is not None
    except (ImportError, ValueError):
        return False


def _uses_of_namespace(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Give (name, line) of what ``hybrid_forward(self, F, ...)`` calls on its F."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or node.name != "hybrid_forward":
            continue
        if len(node.args.args) < 2:
            continue
        space = node.args.args[1].arg
        inner = {
            id(n.value) for n in ast.walk(node) if isinstance(n, ast.Attribute)
        }  # parts of longer chains
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and id(part) not in inner:
                root, _, rest = ast.unparse(part).partition(".")
                if root == space:
                    yield rest, part.lineno


def _check_namespace_use(path: Path, name: str, line: int) -> Name:
    value: Any = None
    for space in (ndarray, symbol):
        value, hint = look_up(f"{space.__name__}.{name}")
        if value is None:
            return Name(str(path), line, f"F.{name}", "absent", hint)
    return Name(str(path), line, f"F.{name}", "covered", "", _is_operator(value))


# -- files and report ------------------------------------------------------------------------------


def _check_file(path: Path) -> dict[str, Any]:
    try:
        facts = read_facts(path)
    except (CommandError, OSError) as error:
        return {"file": str(path), "kind": None, "problems": [str(error)]}
    return {"file": str(path), "kind": facts["kind"], "problems": facts["problems"]}


def _facts(
    names: list[Name], files: list[dict[str, Any]], sources: int, *, everything: bool
) -> dict[str, Any]:
    own = [n for n in names if n.status in ("covered", "absent")]
    shown = names if everything else [n for n in names if n.status != "covered"]
    return {
        "programs": sources,
        "uses": len(own),
        "names": len({n.name for n in own}),
        "operators": len({n.name for n in own if n.is_operator}),
        "absent": len({n.name for n in own if n.status == "absent"}),
        "removed": len({n.name for n in names if n.status == "removed"}),
        "found": [n._asdict() for n in shown],
        "files": files,
    }


def _print(facts: dict[str, Any]) -> None:
    rows = [(f"{n['file']}:{n['line']}", n["name"], n["status"], n["hint"]) for n in facts["found"]]
    if rows:
        print_table(("place", "name", "status", "hint"), rows)
    for file in facts["files"]:
        for problem in file["problems"]:
            print(f"{file['file']}: {problem}")
    print(
        f"{facts['programs']} programs use {facts['names']} names of MXNet "
        f"({facts['operators']} operators) in {facts['uses']} places: {facts['absent']} are absent."
    )
    if facts["files"]:
        good = sum(not file["problems"] for file in facts["files"])
        print(f"{good} of {len(facts['files'])} model and data files are fine.")
    if facts["removed"]:
        print(f"{facts['removed']} names of other libraries are gone; mx run puts them back.")
