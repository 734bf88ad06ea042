"""Indexing, views, arithmetic, methods and functions of `mx.np` match MXNet 1.9.1."""

from __future__ import annotations

import importlib
import json

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np, npx
from tests.batches import check_each
from tests.expressions import Expressions
from tests.golden import HERE
from tests.golden.record.numpy_expressions import EXPRESSIONS, SETUP, WRITING

NAMES = {"mx": mx, "np": np, "npx": npx, "onp": onp}
RECORDED = Expressions("numpy_expressions.json", SETUP, NAMES, atol=1e-6)
# MXNet 1.9.1 raises here; docs/operators.md lists what these do instead.
SUPERSETS = frozenset(
    {
        "l / i",
        "v > i",
        "i == l",
        "np.rad2deg(v)",
        "np.deg2rad(v)",
        "np.greater_equal(v, i)",
        "np.pad(v, ((1, 2),))",
        "np.pad(v, ((1, 1),), constant_values=7)",
        "np.concatenate((v, i))",
        "np.insert(a, 1, 5., axis=1)",
        "np.linalg.norm(v, ord=np.inf)",
        "z[...] = 5",
    }
)


def test_expressions_match_mxnet() -> None:
    """Compare values, shapes, dtypes, reprs, or error types."""
    check_each({e: e for e in EXPRESSIONS if e not in SUPERSETS}, RECORDED.check)


def test_assignments_match_mxnet() -> None:
    """Compare the array after a statement, also through a view."""
    pairs = {f"{s}; {e}": (e, s) for s, e in WRITING if s not in SUPERSETS}
    check_each(pairs, lambda pair: RECORDED.check(*pair))


# -- training programs under `npx.set_np()` -----------------------------------------------------


FOLDER = HERE / "np_programs"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_programs_match_mxnet(name: str) -> None:
    """Compare all recorded values of every step."""
    history = importlib.import_module(f"tests.golden.record.np_programs.{name}").train(mx)
    recorded = json.loads((FOLDER / f"{name}.json").read_text())
    assert len(history) == len(recorded)
    for step, (given, wanted) in enumerate(zip(history, recorded, strict=True)):
        onp.testing.assert_allclose(given, wanted, rtol=2e-4, atol=2e-5, err_msg=f"step {step}")
