"""What the rules report: a line, what is the matter with it, and the edits that mend it."""

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

    `status` is one of `STATUSES`; `edits` mend the line, if that can be done by a program.
    """

    line: int
    name: str
    status: str
    hint: str = ""
    is_operator: bool = False
    edits: tuple[Edit, ...] = ()
    new_import: str = ""  # a module that the edited line needs
    new_definition: str = ""  # a function of `scipy_misc` that it needs


# What each status means, and whether the program stops there even under `mx run`.
STATUSES: dict[str, tuple[str, bool]] = {
    "covered": ("a name of MXNet that MXNext has", False),
    "absent": ("a name of MXNet that MXNext does not have", True),
    "removed": ("a name that Python or a library removed; `mx run` puts it back", False),
    "python 2": ("a line that only Python 2 reads; `mx run` translates it", False),
    "division": ("a division that gives a float where an integer is needed", True),
    "syntax": ("a line that neither Python 3 nor Python 2 reads", True),
    "missing package": ("a package that is not installed here", False),
}


def replace_node(node: ast.expr | ast.stmt, text: str) -> Edit:
    """Return the edit that puts a text in place of a node."""
    end_line, end_column = node.end_lineno, node.end_col_offset
    assert end_line is not None and end_column is not None, "parsed nodes have an end"
    return Edit(node.lineno, node.col_offset, end_line, end_column, text)


def apply_edits(source: str, edits: Iterable[Edit]) -> str:
    r"""Return a source with all edits applied; of two that overlap, the first in the text is taken.

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
