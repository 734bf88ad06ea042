"""Reading, writing, views, arithmetic and methods of arrays give what MXNet 1.9.1 gave."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from tests.expressions import Expressions
from tests.golden.array_expressions import EXPRESSIONS, SETUP, WRITING

RECORDED = Expressions("array_expressions.json", SETUP, {"mx": mx, "nd": mx.nd, "np": np})


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression(expression: str) -> None:
    """Values, shapes, dtypes, printed forms, or an error of the same kind."""
    RECORDED.check(expression)


@pytest.mark.parametrize(("statement", "expression"), WRITING)
def test_writing(statement: str, expression: str) -> None:
    """What a statement leaves behind, in the array itself or through a view."""
    RECORDED.check(expression, statement)
