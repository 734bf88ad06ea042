"""Iterators give MXNet 1.9.1's batches: order, padding, indices, descriptions."""

from __future__ import annotations

import json
import pathlib

import pytest

import mxnet.io
from tests.golden.record_io import MAKERS, describe

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "iterators.json"
ROWS = json.loads(GOLDEN.read_text())


@pytest.mark.parametrize(
    ("maker", "arguments", "provided", "epochs"),
    ROWS,
    ids=[f"{i}-{row[0]}" for i, row in enumerate(ROWS)],
)
def test_batches_as_mxnet(maker, arguments, provided, epochs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = describe(MAKERS[maker](mxnet.io, **arguments))
    assert found == [provided, epochs]
