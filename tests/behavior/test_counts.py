"""Limits for the number of kernels and host reads in steps of small networks."""

from __future__ import annotations

import re

import pytest
import torch

from benchmarks import counted, counts

SMALL = ("Module", "2 x (conv", "LSTM", "MLP", "Dense", "Attention", "Adam", "RMSProp")
TEXT = counts.TABLE.read_text(encoding="utf-8")


def limits() -> dict[str, tuple[int, int]]:
    """Return kernels and reads of each row of the table."""
    rows = [line.split(" | ") for line in TEXT.splitlines() if line.startswith("| ")]
    return {row[0][2:]: (int(row[1].replace(",", "")), int(row[7])) for row in rows[1:]}


def test_count_limits_cover_every_row() -> None:
    assert list(limits()) == [row.name for row in counted.ROWS]


@pytest.mark.parametrize(
    "row", [row for row in counted.ROWS if row.name.startswith(SMALL)], ids=lambda row: row.name
)
def test_kernel_and_read_counts_are_within_limits(row: counted.Row) -> None:
    counts_of = re.search(r"With torch (\d+\.\d+)", TEXT)
    if counts_of is None or not torch.__version__.startswith(counts_of[1]):
        pytest.skip("another version of torch has other kernels")
    ours = counts.count(row.ours())
    kernels, reads = limits()[row.name]
    assert ours.total <= kernels, dict(ours.kernels)
    assert ours.reads <= reads
