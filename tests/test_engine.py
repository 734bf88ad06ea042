"""Bulk sizes are remembered and have no effect."""

from __future__ import annotations

import pytest

from mxnet import engine


def test_bulk_size_is_restored():
    first = engine.set_bulk_size(5)
    with engine.bulk(7):
        assert engine.set_bulk_size(9) == 7
    assert engine.set_bulk_size(first) == 5
    with pytest.raises(ZeroDivisionError), engine.bulk(3):
        1 / 0  # noqa: B018
    assert engine.set_bulk_size(first) == first
