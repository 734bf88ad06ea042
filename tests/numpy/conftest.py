"""Every test of this folder runs under NumPy semantics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mxnet import npx


@pytest.fixture(autouse=True)
def numpy_semantics() -> Iterator[None]:
    """Turn NumPy's shapes and arrays on for one test."""
    npx.set_np()
    yield
    npx.reset_np()
