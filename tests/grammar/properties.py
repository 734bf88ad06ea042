"""Select the sample rows for a property, and report every row that violates it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from tests.batches import check_each
from tests.grammar.sampling import Row

Test = TypeVar("Test", bound=Callable)


ALL_ROWS = bool(os.environ.get("MXNEXT_TEST_ALL_ROWS"))  # set by `make nightly`


def at_nightly_rate(at_most: int) -> int | None:
    """Return how many rows of each operator are checked: all of them in nightly runs."""
    return None if ALL_ROWS else at_most


def for_rows(applies: Callable[[Row], bool], at_most: int | None = None) -> Callable[[Test], Test]:
    """Run a test that takes `rows` only on rows it applies to, up to a number per operator.

    An operator without such a row is not a test.
    """

    def mark(test: Test) -> Test:
        test.applies, test.at_most = applies, at_most
        return test

    return mark


def rows_for(test: Callable, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of one operator that a test applies to."""
    applies = getattr(test, "applies", lambda row: True)
    return list(itertools.islice(filter(applies, rows), getattr(test, "at_most", None)))


def first_of_each_operator(rows: Iterable[Row]) -> list[Row]:
    """Return the first row of each operator."""
    return list({row.op: row for row in reversed(list(rows))}.values())


def check_all(rows: Sequence[Row], check: Callable[[Row], None]) -> None:
    """Check each row; raise one error that names the rows that break the property."""
    check_each({f"{row.key} {row.attrs}": row for row in rows}, check)
