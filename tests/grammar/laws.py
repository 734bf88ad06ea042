"""Helpers of the laws: which rows they hold for, and a report of every row that breaks one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tests.grammar.sampling import Row

Test = TypeVar("Test", bound=Callable)


def for_rows(applies: Callable[[Row], bool], at_most: int | None = None) -> Callable[[Test], Test]:
    """Run a test that takes `rows` only on those it applies to, up to a number of each operator.

    An operator without such a row is not a test.
    """

    def mark(test: Test) -> Test:
        test.applies, test.at_most = applies, at_most
        return test

    return mark


def rows_for(test: Callable, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of one operator that a test holds for."""
    applies = getattr(test, "applies", lambda row: True)
    return [r for r in rows if applies(r)][: getattr(test, "at_most", None)]


def hold_for_all(rows: Sequence[Row], law: Callable[[Row], None]) -> None:
    """Run a law on each row; raise one error that names the rows that break it."""
    assert rows, "there are no rows to check"
    broken = []
    for row in rows:
        try:
            law(row)
        except Exception as error:
            said = f"{type(error).__name__}: {error}".strip()
            broken.append((row, said, error))
    if broken:
        lines = [f"{row.key} {row.attrs}\n    {said[:600]}" for row, said, _ in broken[:5]]
        raise AssertionError(
            f"{len(broken)} of {len(rows)} rows break this law:\n" + "\n".join(lines)
        ) from broken[0][2]
