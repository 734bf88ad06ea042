"""Run the Python blocks of a Markdown page as one program: ``python -m tools.run_page PAGE``.

An ``output`` block must be what the program printed since the last one; ``--update`` writes it
there. Real numbers may differ by roundings, which differ between processors. What a page needs but
should not show is in a comment: ``<!--run``, the code, ``-->``.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import math
import pathlib
import re
import sys

REAL = re.compile(r"[-+]?\d+\.\d*(?:e[-+]?\d+)?")


def is_same_text(expected: str, actual: str) -> bool:
    """Return whether two texts are equal but for roundings of real numbers.

    >>> is_same_text("[0.7310586]", "[0.7310585]"), is_same_text("[0.73]", "[0.74]")
    (True, False)
    """
    return expected == actual or (
        _has_close_numbers(expected, actual)
        and _without_numbers(expected) == _without_numbers(actual)
    )


def _has_close_numbers(expected: str, actual: str) -> bool:
    first, second = (list(map(float, REAL.findall(text))) for text in (expected, actual))
    return len(first) == len(second) and all(
        math.isclose(a, b, rel_tol=2e-6, abs_tol=1e-7) for a, b in zip(first, second, strict=True)
    )


def _without_numbers(text: str) -> str:
    return "".join(REAL.sub("#", text).split())  # digits and the blanks beside them change together


class UpToRounding(doctest.OutputChecker):
    """Accepts real numbers that differ by roundings; all other text must be as it is shown."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Return whether the output is what is wanted."""
        if super().check_output(want, got, optionflags):
            return True
        if not _has_close_numbers(want, got):
            return False
        return super().check_output(_without_numbers(want), _without_numbers(got), optionflags)


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
        shown = "".join(f"{row.rstrip()}\n" for row in printed.getvalue().strip().splitlines())
        if not update and not is_same_text(block, shown):
            raise AssertionError(f"{page.name}, line {line}: printed\n{shown}")
        pieces += [text[end:start], shown]
        end = match.end(3)
        printed = io.StringIO()
    if update:
        page.write_text("".join(pieces) + text[end:], encoding="utf-8")


if __name__ == "__main__":
    *options, path = sys.argv[1:]
    run(pathlib.Path(path).resolve(), update="--update" in options)
