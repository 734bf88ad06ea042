"""Whole programs under `npx.set_np()` train as MXNet 1.9.1 trained them, step by step."""

from __future__ import annotations

import importlib
import json

import numpy as onp
import pytest

import mxnet as mx
from tests.golden import HERE

FOLDER = HERE / "np_programs"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_program(name: str) -> None:
    """Every number of every step agrees with the recorded one."""
    history = importlib.import_module(f"tests.golden.np_programs.{name}").train(mx)
    recorded = json.loads((FOLDER / f"{name}.json").read_text())
    assert len(history) == len(recorded)
    for step, (given, wanted) in enumerate(zip(history, recorded, strict=True)):
        onp.testing.assert_allclose(given, wanted, rtol=2e-4, atol=2e-5, err_msg=f"step {step}")
