"""Families of expressions, compared with MXNet 1.9.1: `tests/golden/record/sweeps`."""

from __future__ import annotations

import importlib
import json
import re
from typing import Any

import pytest

import mxnet as mx
from mxnet import np, npx
from tests.batches import check_each
from tests.expressions import Expressions
from tests.golden import HERE

NAMES = {"mx": mx, "np": np, "npx": npx}
SWEEPS = sorted(path.stem for path in (HERE / "sweeps").glob("*.json"))


@pytest.mark.parametrize("name", SWEEPS)
def test_sweep_of_calls_matches_mxnet(name: str) -> None:
    """Compare values, shapes and dtypes. Calls that raise in MXNet are not recorded."""
    sweep = importlib.import_module(f"tests.golden.record.sweeps.{name}")
    recorded = json.loads((HERE / "sweeps" / f"{name}.json").read_text())
    answers = Expressions(f"sweeps/{name}.json", sweep.SETUP, NAMES, atol=1e-6)

    def check(expression: str) -> None:
        if "error" in str(recorded[expression]):
            _check_table(answers.evaluate(expression), recorded[expression])
        else:
            answers.check(expression)

    compared = [e for e in recorded if not any(re.fullmatch(p, e) for p in sweep.ON_PURPOSE)]
    with mx.util.np_shape(sweep.NUMPY), mx.util.np_array(sweep.NUMPY):
        check_each({e: e for e in compared}, check)


def _check_table(description: Any, recorded: Any) -> None:
    """Compare lines of words; where MXNet has an error, any word is accepted."""
    pairs = zip(description["text"].split(), recorded["text"].split(), strict=True)
    assert all(theirs in (ours, "error") for ours, theirs in pairs), (description, recorded)
