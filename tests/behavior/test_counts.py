"""Limits for the number of kernels and host reads in steps of small networks."""

from __future__ import annotations

import pytest
import torch

from benchmarks import counted, counts


def assert_within_limits(row: counted.Row, title: str) -> None:
    """Count a step here, and compare with a table; other versions of torch have other kernels."""
    if torch.__version__.split(".")[:2] != counts.version_of_table():
        pytest.skip("another version of torch has other kernels")
    ours = counts.count(row.ours())
    kernels, reads = counts.limits(title)[row.name]
    assert ours.total <= kernels, dict(ours.kernels)
    assert ours.reads <= reads


def test_tables_have_every_row() -> None:
    assert list(counts.limits(counts.CPU)) == [row.name for row in counts.ROWS]
    assert list(counts.limits(counts.DEVICE)) == [row.name for row in counts.SMALL]


@pytest.mark.parametrize("row", counts.SMALL, ids=lambda row: row.name)
def test_counts_on_a_cpu_do_not_grow(row: counted.Row) -> None:
    assert_within_limits(row, counts.CPU)
