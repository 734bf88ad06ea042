"""Findings of the rules: a line, its problem, and the edits that fix it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple


class Edit(NamedTuple):
    """Replaces a piece of a source. Lines count from 1, columns are bytes, as in `ast`."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class Finding(NamedTuple):
    """A use of a name in a program, and what is known about it.

    `status` is one of `STATUSES`; `edits` fix the line, if that can be automated.
    Findings of one `kind` in a file are shown as one.
    """

    line: int
    name: str
    status: str
    hint: str = ""
    is_operator: bool = False
    edits: tuple[Edit, ...] = ()
    new_import: str = ""  # a module that the edited line needs
    new_module: str = ""  # a file that it needs beside the program
    kind: str = ""  # the name, if it is empty


class Status(NamedTuple):
    """The meaning and the consequence of a status."""

    meaning: str
    level: str  # one of LEVELS
    stops: bool = False  # even under `mx run`, with all packages there


# What follows, in the order of its weight.
LEVELS: dict[str, str] = {
    "stops": "Stops the program",
    "value": "Changes a value",
    "rewrite": "Needs rewriting: mx run does it on the fly, mx fix writes it",
    "note": "To look at",
    "covered": "Names that MXNext has",
}
STATUSES: dict[str, Status] = {
    "syntax": Status("neither Python 3 nor Python 2 reads the line", "stops", True),
    "unchecked": Status("the file could not be checked", "stops", True),
    "fork": Status("a name of a fork of MXNet, or of a plugin", "stops", True),
    "absent": Status("a name of MXNet that MXNext does not have", "stops", True),
    "division": Status("a division gives a float where an integer is needed", "stops", True),
    "missing package": Status("a package that is not installed here", "stops"),
    "quotient": Status("a quotient of integers, which Python 2 cut", "value"),
    "relative import": Status("Python 2 looked for the module beside the program", "rewrite"),
    "removed": Status("Python or a library removed the name", "rewrite"),
    "python 2": Status("only Python 2 reads the line, or reads it so", "rewrite"),
    "nd only": Status("a function of mx.nd that mx.sym does not have, as in MXNet", "note"),
    "conversion": Status("a conversion of an array to a number, if it is an array", "note"),
    "covered": Status("a name of MXNet that MXNext has", "covered"),
}


def replace_node(node: ast.expr | ast.stmt, text: str) -> Edit:
    """Return the edit that replaces a node by a text."""
    end_line, end_column = node.end_lineno, node.end_col_offset
    assert end_line is not None and end_column is not None, "parsed nodes have an end"
    return Edit(node.lineno, node.col_offset, end_line, end_column, text)


def apply_edits(source: str, edits: Iterable[Edit]) -> str:
    r"""Return a source with all edits applied; of two overlapping edits, the first is applied.

    >>> apply_edits("a / b\n", [Edit(1, 2, 1, 3, "//")])
    'a // b\n'
    """
    text = source.encode()
    offsets = [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", text))]
    pieces, position = [], 0
    for edit in sorted(set(edits)):
        start = offsets[edit.line - 1] + edit.column
        if start < position:
            continue
        pieces += [text[position:start], edit.text.encode()]
        position = offsets[edit.end_line - 1] + edit.end_column
    return b"".join([*pieces, text[position:]]).decode()
