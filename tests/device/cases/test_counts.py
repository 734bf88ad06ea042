"""Limits for the number of kernels and host reads in steps on a device."""

from __future__ import annotations

import pytest

import mxnet as mx
from benchmarks import counted, counts
from tests.behavior.test_counts import assert_within_limits
from tests.device import second_device

pytestmark = pytest.mark.skipif(
    not second_device.is_loaded(), reason="the table is that of the second device"
)


@pytest.mark.parametrize("row", counts.SMALL, ids=lambda row: row.name)
def test_counts_on_a_device_do_not_grow(row: counted.Row, last: mx.Context) -> None:
    with last:
        assert_within_limits(row, counts.DEVICE)
