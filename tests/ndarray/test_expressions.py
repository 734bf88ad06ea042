"""Reading, writing, views, arithmetic and methods of arrays give what MXNet 1.9.1 gave."""

from __future__ import annotations

import numpy as np

import mxnet as mx
from tests.batches import check_each
from tests.expressions import Expressions
from tests.golden.array_expressions import EXPRESSIONS, SETUP, WRITING

RECORDED = Expressions("array_expressions.json", SETUP, {"mx": mx, "nd": mx.nd, "np": np})


def test_expressions() -> None:
    """Values, shapes, dtypes, printed forms, or an error of the same kind."""
    check_each({e: e for e in EXPRESSIONS}, RECORDED.check)


def test_writing() -> None:
    """What a statement leaves behind, in the array itself or through a view."""
    pairs = {f"{s}; {e}": (e, s) for s, e in WRITING}
    check_each(pairs, lambda pair: RECORDED.check(*pair))
