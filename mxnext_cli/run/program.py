"""A program under `mx run`: its files, the names that it uses, and the restored names.

Names are read from the syntax tree, with import aliases resolved: ``np.x`` is ``numpy.x``.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from . import arithmetic, removed
from .python2 import parse_program

PACKAGE = Path(__file__).resolve().parents[1]


class Finding(NamedTuple):
    """A line of the program that uses a removed name, and what to write instead."""

    file: str
    line: int
    name: str
    instead: str


class Program:
    """Collects a program's uses of removed names."""

    def __init__(self, script: Path) -> None:
        self.script = script.resolve()
        _library_folders()  # before imports are hooked, because it imports
        self.findings: set[Finding] = set()
        self.trees: dict[str, ast.Module] = {}  # of its files that were loaded
        self.translated: list[str] = []  # files of Python 2 among them

    def note(self, frame: FrameType, name: str, instead: str) -> None:
        """Record that a line needed a name."""
        self.findings.add(Finding(frame.f_code.co_filename, frame.f_lineno, name, instead))

    def add_file(self, filename: str, source: bytes) -> ast.Module:
        """Record the syntax tree of a file before it runs; Python 2 is translated."""
        tree, is_translated = parse_program(source, filename)
        if is_translated:
            self.translated.append(filename)
        self.trees[filename] = tree
        return tree

    def caller(self) -> FrameType | None:
        """Return the frame that accesses a name, if it belongs to the program."""
        frame = next(_outside(sys._getframe(1)), None)
        return frame if frame is not None and owns(frame.f_code.co_filename) else None


def _outside(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the callers outside this package and the import system."""
    while frame is not None:
        filename = frame.f_code.co_filename
        if not filename.startswith(("<frozen importlib", str(PACKAGE))):
            yield frame
        frame = frame.f_back


@cache
def _library_folders() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_path(name) for name in names}
    folders |= {str(PACKAGE), str(PACKAGE.parent / "mxnet")}
    return tuple(f"{Path(path).resolve()}/" for path in folders if path)


@lru_cache(maxsize=4096)
def owns(filename: str) -> bool:
    """Return whether a file is the program's own rather than of Python or an installed library."""
    if filename.startswith("<"):
        return False
    path = str(Path(filename).resolve())
    if "/site-packages/" in path or "/dist-packages/" in path:
        return False
    return not path.startswith(_library_folders())


_SCOPES = (
    ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


class Use(NamedTuple):
    """A dotted name, its line, and the expression or import that names it."""

    name: str
    line: int
    node: ast.Attribute | ast.Import | ast.ImportFrom

    @property
    def is_import(self) -> bool:
        """Whether it is named by an import."""
        return not isinstance(self.node, ast.Attribute)


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
    """Yield every use of an imported name, and every import itself.

    A name that its scope binds in another way means something else there.
    """
    waiting: list[tuple[ast.AST, dict[str, str]]] = [(tree, import_aliases(tree))]
    while waiting:
        node, aliases = waiting.pop()
        if isinstance(node, _SCOPES) and (hidden := aliases.keys() & _bound_in(node)):
            aliases = {name: module for name, module in aliases.items() if name not in hidden}
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield Use(f"{node.module}.{alias.name}", node.lineno, node)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield Use(alias.name, node.lineno, node)
        elif isinstance(node, ast.Attribute) and (name := resolve(node, aliases)) is not None:
            if isinstance(node.ctx, ast.Load):
                yield Use(name, node.end_lineno or node.lineno, node)
            continue
        waiting.extend((part, aliases) for part in ast.iter_child_nodes(node))


def _bound_in(scope: ast.AST) -> set[str]:
    """Return the names that a scope binds, other than by imports or as parts of modules."""
    names: set[str] = set()
    waiting: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute | ast.Name):
            waiting.append(node.value)  # nd = mx.nd is an alias
        elif not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))
    return names


def all_findings(program: Program) -> list[Finding]:
    """Return the lines that needed a name, and other lines of the same files that will."""
    findings = set(program.findings)
    findings |= {Finding(*place, *row) for place, row in arithmetic.conversions.items()}
    for filename, tree in program.trees.items():
        findings |= set(_unused_yet(filename, tree, {f.name for f in program.findings}))
    return sorted(findings)


def _unused_yet(filename: str, tree: ast.Module, missing: set[str]) -> list[Finding]:
    """Return uses of removed names in lines that were not executed."""
    findings = []
    for use in find_uses(tree):
        module, _, name = use.name.rpartition(".")
        row = removed.ATTRIBUTES.get(module, {}).get(name)
        gone = module in sys.modules and name not in vars(sys.modules[module])
        if row is not None and (gone or use.name in missing):
            findings.append(Finding(filename, use.line, use.name, removed.read_row(row)[1]))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            row = removed.BUILTINS.get(node.id)
            if row is not None and not hasattr(builtins, node.id) and node.id in missing:
                findings.append(Finding(filename, node.lineno, node.id, removed.read_row(row)[1]))
    return findings


def print_report(findings: list[Finding], translated: list[str]) -> None:
    """Print the findings, the divisions and the translated files to stderr."""
    if translated:
        verbs = ("is", "was") if len(translated) == 1 else ("are", "were")
        sys.stderr.write(
            f"\nmx run: {', '.join(map(_relative, translated))} {verbs[0]} Python 2 and "
            f"{verbs[1]} translated for this run; mx fix shows the changes.\n"
        )
    if arithmetic.quotients:
        sys.stderr.write("\nmx run: quotients of integers that Python 2 would have cut:\n")
        rows = [(_at(*place), text) for place, text in sorted(arithmetic.quotients.items())]
        _print_rows(rows)
    if not findings:
        return
    names = len({f.name for f in findings})
    sys.stderr.write(
        f"\nmx run: replaced {names} old {'names' if names > 1 else 'name'} for this program; "
        "to run without mx run, write:\n"
    )
    width = max(len(f.name) for f in findings)
    _print_rows(
        [(_at(f.file, f.line), f"{f.name.ljust(width)}  ->  {f.instead}") for f in findings]
    )


def _at(filename: str, line: int) -> str:
    return f"{_relative(filename)}:{line}"


def _print_rows(rows: list[tuple[str, str]]) -> None:
    width = max(len(position) for position, _ in rows)
    for position, text in rows:
        sys.stderr.write(f"  {position.ljust(width)}  {text}\n")


def write_report(path: str, findings: list[Finding], error: str | None) -> None:
    """Write the findings as JSON."""
    rows = [f._asdict() for f in findings]
    quotients = [
        {"file": file, "line": line, "text": text}
        for (file, line), text in sorted(arithmetic.quotients.items())
    ]
    facts = {"restored_names": rows, "quotients": quotients, "error": error}
    text = json.dumps(facts, indent=2, ensure_ascii=False)
    Path(path).write_text(text + "\n", encoding="utf-8")


def _relative(filename: str) -> str:
    try:
        relative = os.path.relpath(filename)
    except ValueError:  # another drive
        return filename
    return filename if relative.startswith("..") else relative


def hint(error: BaseException) -> str:
    """Return the known cause of a failure of an old program, or an empty string."""
    text = str(error)
    rows = {
        "has no attribute 'iteritems'": "dict.iteritems() became dict.items()",
        "has no attribute 'itervalues'": "dict.itervalues() became dict.values()",
        "has no attribute 'iterkeys'": "dict.iterkeys() became dict.keys()",
        "has no attribute 'has_key'": "d.has_key(k) became k in d",
        "has no attribute 'tostring'": "array.tostring() became array.tobytes()",
        "has no attribute 'itemset'": "array.itemset(i, v) became array[i] = v",
        "has no attribute 'newbyteorder'": "use array.view(array.dtype.newbyteorder())",
        "has no attribute 'ptp'": "array.ptp() became np.ptp(array)",
        "inhomogeneous shape": "NumPy makes ragged arrays only with dtype=object",
        "allow_pickle=False": "np.load(file, allow_pickle=True), for files that you trust",
        "cannot be interpreted as an integer": "Python 3 divides to float: use // for sizes",
        "only 0-dimensional arrays can be converted": "NumPy 2.4 converts no arrays: array.item()",
        "'float' object cannot be": "Python 3 divides to float: use // for sizes",
        "a bytes-like object is required": "files of bytes are opened with 'rb' or 'wb'",
        "load() missing 1 required positional argument: 'Loader'": "yaml.safe_load(file)",
    }
    return next((advice for part, advice in rows.items() if part in text), "")
