"""What `mx run` says at the end: every line that should be changed, and hints about a failure."""

from __future__ import annotations

import ast
import builtins
import json
import os
import re
import sys
from pathlib import Path

from ..names import find_uses
from . import removed
from .program import Finding, Program
from .put_back import read_row

PYTHON_2 = {
    r"^\s*print\s+[^\s(=.,\[]": "print(...)",
    r"^\s*print\s*$": "print()",
    r"^\s*print\s*>>": "print(..., file=...)",
    r"^\s*except\s+[\w.() ,]+,\s*\w+\s*:": "except Error as name:",
    r"^\s*raise\s+\w+\s*,": "raise Error(message)",
    r"^\s*exec\s+['\"\w]": "exec(...)",
    r"<>": "!=",
    r"`[^`]+`": "repr(...)",
    r"\b0[0-7]{2,}\b(?!\.)": "0o...",
    r"\bur['\"]": "r'...'",
}


def all_findings(program: Program) -> list[Finding]:
    """Return the lines that needed a name, and others of the same files that will."""
    found = set(program.findings)
    for filename, tree in program.trees.items():
        found |= set(_unused_yet(filename, tree, {f.name for f in program.findings}))
    return sorted(found)


def _unused_yet(filename: str, tree: ast.Module, missing: set[str]) -> list[Finding]:
    """Return uses of removed names in lines that did not run this time."""
    found = []
    for use in find_uses(tree):
        module, _, name = use.name.rpartition(".")
        row = removed.ATTRIBUTES.get(module, {}).get(name)
        gone = module in sys.modules and name not in vars(sys.modules[module])
        if row is not None and (gone or use.name in missing):
            found.append(Finding(filename, use.line, use.name, read_row(row)[1]))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            row = removed.BUILTINS.get(node.id)
            if row is not None and not hasattr(builtins, node.id) and node.id in missing:
                found.append(Finding(filename, node.lineno, node.id, read_row(row)[1]))
    return found


def print_report(findings: list[Finding]) -> None:
    """Print the findings to stderr."""
    if not findings:
        return
    names = len({f.name for f in findings})
    sys.stderr.write(
        f"\nmx run: put back {names} removed name{'s' if names > 1 else ''} for this program; "
        "to run without mx run, change:\n"
    )
    rows = [(f"{_relative(f.file)}:{f.line}", f.name, f.instead) for f in findings]
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    for place, name, instead in rows:
        sys.stderr.write(f"  {place.ljust(widths[0])}  {name.ljust(widths[1])}  ->  {instead}\n")


def write_report(path: str, findings: list[Finding], error: str | None) -> None:
    """Write the findings as JSON."""
    rows = [f._asdict() for f in findings]
    text = json.dumps({"put_back": rows, "error": error}, indent=2, ensure_ascii=False)
    Path(path).write_text(text + "\n", encoding="utf-8")


def _relative(filename: str) -> str:
    try:
        relative = os.path.relpath(filename)
    except ValueError:  # another drive
        return filename
    return filename if relative.startswith("..") else relative


def python_2_lines(path: Path) -> list[Finding]:
    """Return the lines that look like Python 2, by their form."""
    found = []
    for number, line in enumerate(
        path.read_text(encoding="utf-8", errors="replace").splitlines(), 1
    ):
        code = line.partition("#")[0]
        for pattern, instead in PYTHON_2.items():
            if re.search(pattern, code):
                found.append(Finding(str(path), number, code.strip()[:60], instead))
                break
    return found


def hint(error: BaseException) -> str:
    """Return what is known to be behind a failure of an old program, or an empty text."""
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
        "'float' object cannot be": "Python 3 divides to float: use // for sizes",
        "a bytes-like object is required": "files of bytes are opened with 'rb' or 'wb'",
        "load() missing 1 required positional argument: 'Loader'": "yaml.safe_load(file)",
    }
    return next((said for part, said in rows.items() if part in text), "")
