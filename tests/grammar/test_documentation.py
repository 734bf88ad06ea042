"""Law: every operator says what it does, and its example runs."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import mxnet as mx
from mxnet.ops import registry
from mxnet.ops.declare import Op

OPERATORS = sorted(registry.operators(), key=lambda op: op.name)


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
def test_example_runs(op: Op) -> None:
    """The docstring has a sentence and an example, which gives what it shows."""
    text = op.function.__doc__ or ""
    assert len(text.strip()) > 20, "a sentence is missing"
    examples = doctest.DocTestParser().get_doctest(
        text, {"mx": mx, "nd": mx.nd, "np": np}, op.name, None, None
    )
    assert examples.examples, "an example is missing"
    failures = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(examples, out=failures.append)
    assert not runner.failures, "".join(failures)
