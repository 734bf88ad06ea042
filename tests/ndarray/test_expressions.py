"""Reading, writing, views, arithmetic and methods of arrays give what MXNet 1.9.1 gave."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import mxnet as mx
from tests.golden import HERE
from tests.golden.array_expressions import EXPRESSIONS, SETUP, WRITING
from tests.golden.describing import describe

RECORDED = json.loads((HERE / "array_expressions.json").read_text())


def _evaluate(statement: str, expression: str) -> Any:
    space = {"mx": mx, "nd": mx.nd, "np": np}
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
        np.testing.assert_allclose(
            np.array(found, dtype="float64"),
            np.array(values, dtype="float64"),
            rtol=2e-3 if wanted["dtype"] == "float16" else 1e-5,
        )
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


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression(expression: str) -> None:
    """Values, shapes, dtypes, printed forms, or an error of the same kind."""
    _check("", expression, RECORDED[expression])


@pytest.mark.parametrize(("statement", "expression"), WRITING)
def test_writing(statement: str, expression: str) -> None:
    """What a statement leaves behind, in the array itself or through a view."""
    _check(statement, expression, RECORDED[f"{statement} => {expression}"])
