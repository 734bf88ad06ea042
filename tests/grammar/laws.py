"""Helpers of the laws: judge all rows of an operator and report every one that fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.grammar.sampling import Row


def hold_for_all(rows: Sequence[Row], law: Callable[[Row], None]) -> None:
    """Run a law on each row; raise one error that names the rows that break it."""
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
