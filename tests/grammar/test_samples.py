"""Every operator has a sample row, or is listed with the tests that check it instead."""

from __future__ import annotations

import pathlib

from mxnet.ops import registry
from tests.grammar.conftest import sampled

LIST = pathlib.Path(__file__).parent / "without_rows.txt"


def test_every_operator_has_a_sample_row_or_is_listed() -> None:
    """Operators that are random, mutate inputs or hold graphs have separate tests."""
    listed = {line.split("#")[0].strip() for line in LIST.read_text().splitlines()} - {""}
    rows = {registry.get(op).name for _, op in sampled()}
    without = {op.name for op in registry.operators()} - rows
    assert without - listed == set(), "operators without a sample row"
    assert listed - without == set(), "these have rows now (or are gone): take them off the list"
