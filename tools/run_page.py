"""Run the Python blocks of a Markdown page as one program: ``python -m tools.run_page PAGE``.

An ``output`` block must be what the program printed since the last one; ``--update`` writes it
there. Real numbers may differ by roundings, which differ between processors; ``output
tolerance=0.03`` lets the results of training differ by that much. ``<!--plot: TITLE-->`` stands
where a block has drawn with matplotlib: the site shows the figure there. What a page needs but
should not show is in a comment: ``<!--run``, the code, ``-->``. ``--plots=PREFIX`` writes the
figures to ``PREFIX-0.svg``, ``PREFIX-1.svg`` and so on.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import io
import math
import os
import pathlib
import re

REAL = re.compile(r"[-+]?\d+\.\d*(?:e[-+]?\d+)?")


def is_same_text(expected: str, actual: str, tolerance: float = 1e-7) -> bool:
    """Return whether two texts are equal but for roundings of real numbers.

    >>> is_same_text("[0.7310586]", "[0.7310585]"), is_same_text("[0.73]", "[0.74]")
    (True, False)
    >>> is_same_text("[0.73]", "[0.74]", tolerance=0.02)
    True
    """
    return expected == actual or (
        _has_close_numbers(expected, actual, tolerance)
        and _without_numbers(expected) == _without_numbers(actual)
    )


def _has_close_numbers(expected: str, actual: str, tolerance: float = 1e-7) -> bool:
    first, second = (list(map(float, REAL.findall(text))) for text in (expected, actual))
    return len(first) == len(second) and all(
        math.isclose(a, b, rel_tol=2e-6, abs_tol=tolerance)
        for a, b in zip(first, second, strict=True)
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


OUTPUT_OPTION = re.compile(r"^```output tolerance=(\S+)$", re.M)
PLOT = re.compile(r"^<!--plot: ([^\n]+)-->$", re.M)
BLOCK = re.compile(
    r"^(?:```(python|output)(?: tolerance=(\S+))?|<!--(run))\n(.*?)^(?:```|-->)"
    rf"|{PLOT.pattern}",
    re.M | re.S,
)


def run(page: pathlib.Path, update: bool = False) -> list[str]:
    """Run a page and return its plots as SVG; raise when a block fails or prints something else."""
    os.environ["MPLBACKEND"] = "svg"  # no windows
    text = page.read_text(encoding="utf-8")
    program = {"__name__": "page"}
    printed = io.StringIO()
    pieces: list[str] = []
    plots: list[str] = []
    end = 0
    for match in BLOCK.finditer(text):
        kind, tolerance, _, block, title = match.groups()
        line = text.count("\n", 0, match.start() if title else match.start(4))
        if title:
            plots.append(_take_figure(f"{page.name}, line {line + 1}"))
        elif kind != "output":
            code = compile("\n" * line + block, str(page), "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, program)
        else:
            shown = "".join(f"{row.rstrip()}\n" for row in printed.getvalue().strip().splitlines())
            if not update and not is_same_text(block, shown, float(tolerance or 1e-7)):
                raise AssertionError(f"{page.name}, line {line}: printed\n{shown}")
            pieces += [text[end : match.start(4)], shown]
            end = match.end(4)
            printed = io.StringIO()
    if update:
        page.write_text("".join(pieces) + text[end:], encoding="utf-8")
    return plots


def _take_figure(place: str) -> str:
    """Return the figure that was drawn last, and close all."""
    import matplotlib.pyplot as plt

    if not plt.get_fignums():
        raise AssertionError(f"{place}: nothing was drawn")
    picture = io.StringIO()
    plt.gcf().savefig(picture, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close("all")
    return picture.getvalue()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--plots", metavar="PREFIX")
    options = parser.parse_args()
    for number, plot in enumerate(run(options.page.resolve(), options.update)):
        if options.plots:
            pathlib.Path(f"{options.plots}-{number}.svg").write_text(plot, encoding="utf-8")
