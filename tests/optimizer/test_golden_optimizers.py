"""Optimizers take MXNet 1.9.1's steps: 20 of them, with every option, states included."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import mxnet as mx
from tests.golden import record_optimizers as recorder

GOLDEN = np.load(pathlib.Path(recorder.__file__).parent / "optimizers.npz")
ROWS = recorder.rows()


def _told(name, setting):
    return name + "-" + ",".join(f"{k}={v}" for k, v in setting.items())


@pytest.mark.parametrize("in_lists", [True, False], ids=["lists", "one by one"])
@pytest.mark.parametrize("number", range(len(ROWS)), ids=[_told(*row) for row in ROWS])
def test_steps_as_mxnet(number, in_lists):
    name, setting = ROWS[number]
    updater, seen = recorder.run(mx, name, setting, in_lists)
    weights = np.concatenate([w.astype("float32").ravel() for step in seen for w in step])
    half = setting.get("float16", False)
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if half else {"rtol": 1e-5, "atol": 2e-6}
    np.testing.assert_allclose(weights, GOLDEN[f"{number}_weights"], **tolerance)
    states = recorder.flat_states(updater)
    tolerance = {"rtol": 2e-5, "atol": 1e-5}
    np.testing.assert_allclose(states, GOLDEN[f"{number}_states"], **tolerance)
