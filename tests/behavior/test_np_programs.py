"""Training programs under ``npx.set_np()`` match MXNet 1.9.1 at every step."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator

import numpy as onp
import pytest

import mxnet as mx
from tests.golden import HERE
from tests.golden.record import np_programs

ANSWERS = HERE / "np_programs"


@pytest.fixture(autouse=True)
def numpy_semantics() -> Iterator[None]:
    """Turn NumPy's arrays and shapes on, and off again."""
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


@pytest.mark.parametrize("name", np_programs.PROGRAMS)
def test_every_step_matches_mxnet(name: str) -> None:
    """Compare losses, errors and outputs of each step."""
    program = importlib.import_module(f"tests.golden.record.np_programs.{name}")
    wanted = json.loads((ANSWERS / f"{name}.json").read_text(encoding="utf-8"))
    given = program.train(mx)
    assert len(given) == len(wanted)
    for number, (step, recorded) in enumerate(zip(given, wanted, strict=True)):
        onp.testing.assert_allclose(step, recorded, rtol=2e-4, atol=2e-5, err_msg=f"step {number}")
