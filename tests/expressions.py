"""Compare the results of expressions with MXNet 1.9.1, including errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.golden import HERE
from tests.golden.record.describing import describe


class Expressions:
    """Recorded results of expressions, each evaluated after the same setup lines.

    Parameters
    ----------
    file : name of the JSON file in `tests/golden/data`.
    setup : the lines that run first.
    names : what setup and expressions can name.
    atol : absolute tolerance of values.
    """

    def __init__(self, file: str, setup: str, names: Mapping[str, Any], atol: float = 0.0) -> None:
        self._answers = json.loads((HERE / file).read_text())
        self._setup, self._names, self._atol = setup, names, atol

    def check(self, expression: str, statement: str = "") -> None:
        """Compare the result of an expression, after an optional statement."""
        wanted = self._answers[f"{statement} => {expression}" if statement else expression]
        if not (isinstance(wanted, dict) and "error" in wanted):
            self._compare(self.evaluate(expression, statement), wanted)
            return
        with pytest.raises(Exception) as caught:
            self.evaluate(expression, statement)
        # An error of MXNet's type, or of a subclass.
        kinds = [c.__name__ for c in type(caught.value).__mro__]
        bare = wanted["error"][0] == "AssertionError"  # ours say more
        assert bare or wanted["error"][0] in kinds or "MXNetError" in kinds

    def evaluate(self, expression: str, statement: str = "") -> Any:
        """Describe the result of an expression, after an optional statement."""
        space = dict(self._names)
        exec(self._setup, space)
        exec(statement, space)
        return describe(eval(expression, space))

    def _compare(self, given: Any, wanted: Any) -> None:
        if isinstance(wanted, list):
            assert len(given) == len(wanted)
            for g, w in zip(given, wanted, strict=True):
                self._compare(g, w)
            return
        if "number" in wanted:
            assert given["number"] == pytest.approx(wanted["number"])
            return
        if "values" in wanted:
            np.testing.assert_allclose(
                np.array(given["values"], dtype="float64"),
                np.array(wanted["values"], dtype="float64"),
                rtol=2e-3 if wanted["dtype"] == "float16" else 1e-5,
                atol=self._atol,
            )
        assert _without_values(given) == _without_values(wanted)


def _without_values(description: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in description.items() if key != "values"}
