"""Indexing, views, arithmetic, methods and functions of `mx.np` give what MXNet 1.9.1 gave."""

from __future__ import annotations

import json
from typing import Any

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np, npx
from tests.golden import HERE
from tests.golden.describing import describe
from tests.golden.numpy_expressions import EXPRESSIONS, SETUP, WRITING

RECORDED = json.loads((HERE / "numpy_expressions.json").read_text())
# MXNet 1.9.1 raises here; docs/differences.md lists what these do instead.
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


def _evaluate(statement: str, expression: str) -> Any:
    space = {"mx": mx, "np": np, "npx": npx, "onp": onp}
    exec(SETUP, space)
    exec(statement, space)
    return eval(expression, space)


def _compare(given: Any, wanted: Any) -> None:
    if isinstance(wanted, list):
        assert len(given) == len(wanted)
        for g, w in zip(given, wanted, strict=True):
            _compare(g, w)
        return
    values = wanted.pop("values", None)
    if values is not None:
        found = given.pop("values")
        onp.testing.assert_allclose(
            onp.array(found, dtype="float64"),
            onp.array(values, dtype="float64"),
            rtol=2e-3 if wanted["dtype"] == "float16" else 1e-5,
            atol=1e-6,
        )
    if "number" in wanted:
        assert given["number"] == pytest.approx(wanted["number"])
        return
    assert given == wanted


def _check(statement: str, expression: str, wanted: Any) -> None:
    wanted = json.loads(json.dumps(wanted))
    if not (isinstance(wanted, dict) and "error" in wanted):
        _compare(describe(_evaluate(statement, expression)), wanted)
        return
    with pytest.raises(Exception) as caught:
        describe(_evaluate(statement, expression))
    # An error of MXNet's class, or a class that says more and still is one.
    kinds = [c.__name__ for c in type(caught.value).__mro__]
    bare = wanted["error"][0] == "AssertionError"  # ours say more
    assert bare or wanted["error"][0] in kinds or "MXNetError" in kinds


@pytest.mark.parametrize("expression", [e for e in EXPRESSIONS if e not in SUPERSETS])
def test_expression(expression: str) -> None:
    """Values, shapes, dtypes, printed forms, or an error of the same kind."""
    _check("", expression, RECORDED[expression])


@pytest.mark.parametrize(
    ("statement", "expression"), [pair for pair in WRITING if pair[0] not in SUPERSETS]
)
def test_writing(statement: str, expression: str) -> None:
    """What a statement leaves behind, in the array itself or through a view."""
    _check(statement, expression, RECORDED[f"{statement} => {expression}"])
