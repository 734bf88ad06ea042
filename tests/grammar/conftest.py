"""Parametrize by family: one test checks a property for all its sample rows."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import pytest

from mxnet.util import np_shape
from tests.golden import HERE
from tests.grammar.properties import rows_for
from tests.grammar.sampling import Row, families, rows_of


@functools.cache
def sampled() -> dict[tuple[str, str], list[Row]]:
    """Return the rows by (family, operator)."""
    found: dict[tuple[str, str], list[Row]] = {}
    for family in families():
        for row in rows_of(family):
            found.setdefault((family, row.op), []).append(row)
    return found


@functools.lru_cache(maxsize=2)
def golden_file(family: str) -> dict[str, np.ndarray]:
    """Return the recorded results of a family."""
    with np.load(HERE / f"{family}.npz") as stored:
        return dict(stored)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize each test that takes `rows` with every family that has rows for it."""
    if "rows" in metafunc.fixturenames:
        parametrize_by_family(metafunc)


def parametrize_by_family(metafunc: pytest.Metafunc) -> None:
    """Create one test per family that has rows for a property."""
    chosen: dict[str, list[Row]] = {}
    for (family, _), rows in sampled().items():
        chosen.setdefault(family, []).extend(rows_for(metafunc.function, rows))
    cases = [pytest.param(family, rows, id=family) for family, rows in chosen.items() if rows]
    assert cases, f"{metafunc.function.__name__}: no operator has a row for it"
    metafunc.parametrize(("family", "rows"), cases)


@pytest.fixture(autouse=True)
def shape_meaning(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the rows of NumPy operators with NumPy shape semantics."""
    family = (
        request.node.callspec.params.get("family", "") if hasattr(request.node, "callspec") else ""
    )
    with np_shape(family.startswith("numpy_")):
        yield
