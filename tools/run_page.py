"""Run the Python blocks of a Markdown page as one program: ``python -m tools.run_page PAGE``.

An ``output`` block must be what the program printed since the last one. What a page needs but
should not show stands in a comment: ``<!--run``, the code, ``-->``.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import sys

BLOCK = re.compile(r"^(?:```(python|output)|<!--(run))\n(.*?)^(?:```|-->)", re.M | re.S)


def run(page: pathlib.Path) -> None:
    """Run the page; raise when a block fails or prints something else."""
    text = page.read_text(encoding="utf-8")
    program = sys.modules["__main__"].__dict__
    program["__name__"] = "page"
    printed = io.StringIO()
    for match in BLOCK.finditer(text):
        kind, block = match[1] or match[2], match[3]
        line = text.count("\n", 0, match.start(3))
        if kind != "output":
            code = compile("\n" * line + block, str(page), "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, program)
            continue
        found = [row.rstrip() for row in printed.getvalue().strip().splitlines()]
        wanted = [row.rstrip() for row in block.strip().splitlines()]
        if found != wanted:
            raise AssertionError(f"{page.name}, line {line}: printed\n" + "\n".join(found))
        printed = io.StringIO()


if __name__ == "__main__":
    run(pathlib.Path(sys.argv[1]))
