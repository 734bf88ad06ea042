"""Every sampled operator becomes a test parameter, as in the grammar tests."""

from __future__ import annotations

import pytest

from tests.grammar.conftest import parametrize_by_operator, shape_meaning

__all__ = ["shape_meaning"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each law that takes `rows` every operator that has rows for it."""
    if "rows" in metafunc.fixturenames:
        parametrize_by_operator(metafunc)
