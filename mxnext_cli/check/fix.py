"""`mx fix`: writes the changes that an old program needs as a patch, each explained."""

from __future__ import annotations

import argparse
import ast
import difflib
import io
import sys
import tokenize
from pathlib import Path
from typing import NamedTuple

from .. import CommandError
from ..run.python2 import first_statement, translate
from . import check_source, list_files
from .finding import apply_edits
from .modules import Project
from .rewrites import IMAGE_MODULE, image_module_source
from .source import UnreadableSource, parse_source

MAX_ROUNDS = 5  # edits that overlap are applied one round after the other


class Change(NamedTuple):
    """A line that is changed, and why."""

    line: int
    reason: str


def run(args: argparse.Namespace) -> int:
    """Print a patch, or change the files with ``--apply``; return 1 if a program is unreadable."""
    files = list_files(args.paths)
    changed, unreadable = 0, 0
    modules: set[Path] = set()
    for path in files.programs:
        if path.suffix != ".py":
            continue
        try:
            old, encoding = _read(path)
            new, changes = fix_source(old, path, files.project)
        except (UnreadableSource, CommandError) as error:
            unreadable += 1
            sys.stderr.write(f"mx fix: {path}: {error}; it is left as it is\n")
            continue
        for change in changes:
            print(f"# {path}:{change.line}: {change.reason}")
        if new == old:
            continue
        changed += 1
        if args.apply:
            path.write_bytes(new.encode(encoding))
        else:
            print(_patch(path, old, new), end="")
        if f"{IMAGE_MODULE}" in new and IMAGE_MODULE not in old:
            modules.add(path.parent / f"{IMAGE_MODULE}.py")
    _write_modules(modules, apply=args.apply)
    verb = "changed" if args.apply else "can be changed"
    sys.stderr.write(f"mx fix: {changed} of {len(files.programs)} programs {verb}.\n")
    if changed and not args.apply:
        sys.stderr.write("mx fix: nothing was written; --apply changes the files.\n")
    return 1 if unreadable else 0


def _write_modules(paths: set[Path], *, apply: bool) -> None:
    """Write the modules that changed programs import, or print them as new files."""
    source = image_module_source()
    for path in sorted(paths):
        if path.exists():
            continue
        if apply:
            path.write_text(source, encoding="utf-8")
        else:
            print(_patch(path, "", source, old_name="/dev/null"), end="")


def _read(path: Path) -> tuple[str, str]:
    content = path.read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding), encoding
    except (SyntaxError, UnicodeDecodeError, LookupError):
        raise CommandError("its bytes are not text in the encoding that it declares") from None


def fix_source(text: str, path: Path, project: Project) -> tuple[str, list[Change]]:
    """Return a program as Python 3 and today's libraries read it, and what was changed."""
    source = parse_source(text, path)
    changes = [Change(f.line, f"Python 2: {f.hint}") for f in source.findings]
    if source.is_python_2:
        text = translate(text) or source.text
    for _ in range(MAX_ROUNDS):
        current = parse_source(text, path)
        if source.is_python_2:  # keep the meaning of `/` in Python 2
            current = current._replace(original_lines=tuple(range(1, text.count("\n") + 2)))
        everything = list(check_source(current, project))
        findings = [f for f in everything if f.edits]
        if not findings:
            left = [f for f in everything if f.status in ("removed", "quotient")]
            changes += [Change(f.line, f"left to you: {f.name}: {f.hint}") for f in left]
            break
        modules = sorted({f.new_import for f in findings if f.new_import})
        changes += [Change(f.line, f"{f.name}: {f.hint}") for f in findings]
        text = apply_edits(text, [edit for f in findings for edit in f.edits])
        text = _add_imports(text, modules)
    tree = parse_source(text, path).tree  # what is written can be read
    if source.is_python_2:
        changes += _describe_divisions(tree)
    return text, sorted(set(changes))


def _describe_divisions(tree: ast.Module) -> list[Change]:
    """Return a message about divisions of Python 2 whose operands may be integers."""
    lines = {n.lineno for n in ast.walk(tree) if isinstance(n, ast.BinOp) and _may_cut(n)}
    reason = "left as it is: Python 2 cut this quotient if both sides were integers; then write //"
    return [Change(line, reason) for line in sorted(lines)]


def _may_cut(node: ast.BinOp) -> bool:
    if not isinstance(node.op, ast.Div):
        return False
    sides = (node.left, node.right)
    has_float = any(
        (isinstance(part, ast.Constant) and isinstance(part.value, float))
        or (isinstance(part, ast.Call) and ast.unparse(part.func) in ("float", "np.float32"))
        for side in sides
        for part in ast.walk(side)
    )
    return not has_float


def _add_imports(text: str, modules: list[str]) -> str:
    tree = parse_source(text, Path("source.py")).tree
    imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    lines = [
        f"{module}\n" if " " in module else f"import {module}\n"
        for module in modules
        if module not in imported and not (" " in module and module in text)
    ]
    if not lines:
        return text
    index = first_statement(tree)
    if index == len(tree.body):
        return text
    node = tree.body[index]
    before = text.splitlines(keepends=True)
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return "".join([*before[: first - 1], *lines, *before[first - 1 :]])


def _patch(path: Path, old: str, new: str, old_name: str = "") -> str:
    name = path.as_posix().removeprefix("./")
    lines = difflib.unified_diff(
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        old_name or f"a/{name}",
        f"b/{name}",
    )
    ended = (
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    return "".join(ended)
