"""The programs of a project: their syntax trees, and which lines are Python 2."""

from __future__ import annotations

import ast
import json
import re
import warnings
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from ..run.python2 import prints_as_python_2, read_text, translate
from .finding import Finding


class Source(NamedTuple):
    """A program as text and syntax tree.

    Those of a source of Python 2 are its translation's.
    """

    path: Path
    text: str
    tree: ast.Module
    findings: tuple[Finding, ...] = ()  # lines that only Python 2 reads
    original_lines: tuple[int, ...] = ()  # of each line of the translation

    @property
    def is_python_2(self) -> bool:
        """Whether it was translated."""
        return bool(self.original_lines)

    def original_line(self, line: int) -> int:
        """Return the line of the file that a line of the text comes from."""
        return self.original_lines[line - 1] if self.original_lines else line


class UnreadableSource(Exception):
    """A file that is not a program; `finding` says where and why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.name)
        self.finding = finding


def read_source(path: Path) -> Source:
    """Read and parse a program or a notebook."""
    text = _read_notebook(path) if path.suffix == ".ipynb" else read_text(path.read_bytes())
    return parse_source(text, path)


def parse_source(text: str, path: Path) -> Source:
    """Parse a program, as Python 2 if Python 3 cannot read it."""
    problem: BaseException | None = None
    try:
        source = Source(path, text, _parse(text))
        if not prints_as_python_2(source.tree):
            return source
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        problem = error
    translation = translate(text, only_syntax=True)
    try:
        if translation is not None and translation != text:
            tree = _parse(translation)
            findings, lines = _compare_lines(text, translation)
            return Source(path, translation, tree, findings, lines)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    line = getattr(problem, "lineno", None) or 1
    reason = getattr(problem, "msg", None) or str(problem) or type(problem).__name__
    raise UnreadableSource(Finding(line, reason, "syntax", "neither Python 3 nor Python 2"))


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about its escapes and comparisons
        return ast.parse(text)


def _read_notebook(path: Path) -> str:
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        lines = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (KeyError, TypeError, ValueError) as error:
        finding = Finding(1, repr(error), "syntax", "it is not a notebook")
        raise UnreadableSource(finding) from None
    text = "\n".join(lines).splitlines()
    # Lines for the shell and magics are not Python.
    return "\n".join("pass" if line.lstrip()[:1] in ("!", "%") else line for line in text)


# What the lines of Python 2 have in common.
_KINDS = {
    r"print\b": "print statement",
    r"except\b.*,": "except X, e",
    r"raise\b.*,": "raise X, y",
    r"exec\b": "exec statement",
    r".*<>": "<>",
    r".*`": "backticks",
    r"(def|lambda)\b": "arguments in tuples",
    r".*\b0\d|.*\d[lL]\b": "octal and long numbers",
}


def _kind_of_line(line: str) -> str:
    text = line.strip().rpartition(": ")[2] if re.search(r":\s+print\b", line) else line.strip()
    return next((kind for pattern, kind in _KINDS.items() if re.match(pattern, text)), "")


def _without_prefixes(line: str) -> str:
    """Return a line without the ``u`` of texts."""
    return re.sub(r"\b[uU](?=[\"'])", "", line)


def _compare_lines(text: str, translation: str) -> tuple[tuple[Finding, ...], tuple[int, ...]]:
    old, new = text.splitlines(), translation.splitlines()
    findings, lines = [], []
    for tag, start, end, new_start, new_end in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        lines += [min(start + i, max(end - 1, start)) + 1 for i in range(new_end - new_start)]
        if tag == "equal":
            continue
        for i in range(start, end):
            written = new[min(new_start + i - start, new_end - 1)] if new_end > new_start else ""
            if _without_prefixes(written) == _without_prefixes(old[i]):
                continue  # Python 3 reads u'...' too
            hint = f"write {written.strip()[:80]}"
            kind = _kind_of_line(old[i])
            findings.append(Finding(i + 1, old[i].strip()[:60], "python 2", hint, kind=kind))
    return tuple(findings), tuple(lines)
