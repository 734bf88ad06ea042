"""Run the Python blocks of a Markdown page as one program: ``python -m tools.run_page PAGE``.

An ``output`` block must be what the program printed since the last one; ``--update`` writes it
there. What a page needs but should not show stands in a comment: ``<!--run``, the code, ``-->``.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import sys

from tools.shown_numbers import is_same_text

BLOCK = re.compile(r"^(?:```(python|output)|<!--(run))\n(.*?)^(?:```|-->)", re.M | re.S)


def run(page: pathlib.Path, update: bool = False) -> None:
    """Run the page; raise when a block fails or prints something else."""
    text = page.read_text(encoding="utf-8")
    program = {"__name__": "page"}
    printed = io.StringIO()
    pieces: list[str] = []
    end = 0
    for match in BLOCK.finditer(text):
        block, start = match[3], match.start(3)
        line = text.count("\n", 0, start)
        if match[1] != "output":
            code = compile("\n" * line + block, str(page), "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, program)
            continue
        found = "".join(f"{row.rstrip()}\n" for row in printed.getvalue().strip().splitlines())
        if not update and not is_same_text(block, found):
            raise AssertionError(f"{page.name}, line {line}: printed\n{found}")
        pieces += [text[end:start], found]
        end = match.end(3)
        printed = io.StringIO()
    if update:
        page.write_text("".join(pieces) + text[end:], encoding="utf-8")


if __name__ == "__main__":
    *options, path = sys.argv[1:]
    run(pathlib.Path(path).resolve(), update="--update" in options)
