"""Every sample row becomes a test parameter, named by operator and attributes."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tests.grammar.sampling import Row, families, rows_of
from tests.golden import HERE


@functools.cache
def _rows() -> list[tuple[str, Row]]:
    return [(family, row) for family in families() for row in rows_of(family)]


@functools.cache
def golden_file(family: str) -> dict[str, np.ndarray]:
    """Return the recorded answers of a family."""
    with np.load(HERE / f"{family}.npz") as stored:
        return dict(stored)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test that takes `row` every sample row."""
    if "row" in metafunc.fixturenames:
        rows = _rows()
        ids = [f"{family}-{row.key}" for family, row in rows]
        metafunc.parametrize(("family", "row"), rows, ids=ids)
