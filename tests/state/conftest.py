"""Parametrize by family: one test checks a property for all its sample rows."""

from __future__ import annotations

import pytest

from tests.grammar.conftest import parametrize_by_family, shape_meaning

__all__ = ["shape_meaning"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize each test that takes `rows` with every family that has rows for it."""
    if "rows" in metafunc.fixturenames:
        parametrize_by_family(metafunc)
