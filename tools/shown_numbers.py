"""Compares printed text: real numbers may differ by roundings, which differ between processors."""

from __future__ import annotations

import doctest
import math
import re

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
