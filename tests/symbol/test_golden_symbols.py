"""Every program makes the same symbol, field for field, as MXNet 1.9.1."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

import mxnet as mx
from tests.golden.symbol_programs import PROGRAMS, answer

# MXNet infers no shapes of these before they run; we do.
MORE_IS_KNOWN = {("loop_while", "shapes"), ("loop_while", "partial_shapes")}
MORE_IS_KNOWN |= {("branch", "shapes"), ("branch", "partial_shapes")}
RECORDED = Path(__file__).parent.parent / "golden" / "symbols"


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_answered_as_by_mxnet(name):
    wanted = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # incomplete inference warns, here as there
        found = json.loads(json.dumps(answer(mx, name)))
    for field in wanted:
        if (name, field) not in MORE_IS_KNOWN:
            assert found[field] == wanted[field], field


@pytest.mark.parametrize("name", PROGRAMS)
def test_recorded_file_is_read_and_written_unchanged(name):
    text = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))["tojson"]
    assert mx.sym.load_json(text).tojson() == text
