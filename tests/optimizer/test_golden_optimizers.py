"""Optimizers take MXNet 1.9.1's steps: 20 of them, with every option, states included."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import mxnet as mx
from tests.batches import check_each, group_by
from tests.golden import record_optimizers as recorder

GOLDEN = np.load(pathlib.Path(recorder.__file__).parent / "optimizers.npz")
ROWS = recorder.rows()
NUMBERS = group_by(range(len(ROWS)), lambda number: ROWS[number][0])


def _title(name, setting):
    return name + "-" + ",".join(f"{k}={v}" for k, v in setting.items())


@pytest.mark.parametrize("in_lists", [True, False], ids=["lists", "one by one"])
@pytest.mark.parametrize("optimizer", NUMBERS)
def test_steps_as_mxnet(optimizer, in_lists):
    cases = {_title(*ROWS[number]): number for number in NUMBERS[optimizer]}
    check_each(cases, lambda number: _check_steps(number, in_lists))


def _check_steps(number, in_lists):
    name, setting = ROWS[number]
    updater, seen = recorder.run(mx, name, setting, in_lists)
    weights = np.concatenate([w.astype("float32").ravel() for step in seen for w in step])
    expected = GOLDEN[f"{number}_weights"]
    half = setting.get("float16", False)
    _assert_close(weights, expected, 1e-3 if half else 1e-5)
    # MXNet takes norms of the 16-bit weights, MXNext those of the 32-bit copies
    rough = half and name in ("lars", "lamb")
    expected = GOLDEN[f"{number}_states"]
    _assert_close(recorder.flat_states(updater), expected, 1e-3 if rough else 1e-5)


def _assert_close(found, expected, tolerance):
    """Compare relative to the largest value: small ones may be differences of large ones."""
    largest = np.abs(expected).max(initial=0)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * largest)
