"""Operators in every surrounding on a device equal plain calls on the CPU."""

from __future__ import annotations

import functools

import pytest

import mxnet as mx
from tests.batches import check_each
from tests.grammar.properties import for_rows
from tests.grammar.sampling import Row
from tests.grammar.surroundings import load_all
from tests.grammar.surroundings.calls import Call

ON_DEVICES = [
    surrounding
    for name, surrounding in load_all().items()
    if name.startswith(
        (
            "plain (bound",
            "plain (hybridized",
            "custom_operator_before",
            "custom_operator_after",
            "function_after",
            "in_a_group_of_another_device",
            "in_cond (hybridized",
            "backward_in_another_thread",
            "second_backward",
        )
    )
]


@pytest.mark.filterwarnings("ignore:The .*-th input to HybridBlock is not used")
@for_rows(lambda row: True, at_most=1)
def test_operators_on_a_device_equal_plain_calls_in_every_surrounding(
    family: str, rows: list[Row], last: mx.Context
) -> None:
    calls = [Call(row) for row in rows]
    for call in calls:
        assert call.expected  # on the CPU
    with last:
        check_each(
            {
                f"{call.row.op}, {surrounding.name}": functools.partial(surrounding.check, call)
                for call in calls
                for surrounding in ON_DEVICES
                if surrounding.applies(call)
            },
            lambda check: check(),
        )
