"""Every operator and its parameters are documented, and its example runs."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import mxnet as mx
from mxnet.ops import registry
from mxnet.ops.declare import Op
from mxnet.ops.documentation import entries_of, parameter_items, sections
from tests.batches import check_each, group_by
from tools.run_page import UpToRounding

OPERATORS = sorted(registry.operators(), key=lambda op: op.name)
PACKAGES = group_by(OPERATORS, lambda op: ".".join(op.function.__module__.split(".")[2:4]))


@pytest.mark.parametrize("package", PACKAGES)
def test_docstring_examples_run(package: str) -> None:
    """Every docstring has a sentence and an example with correct output."""
    check_each({op.name: op for op in PACKAGES[package]}, _run_examples)


def _run_examples(op: Op) -> None:
    text = op.function.__doc__ or ""
    assert len(text.strip()) > 20, "a sentence is missing"
    examples = doctest.DocTestParser().get_doctest(
        text, {"mx": mx, "nd": mx.nd, "np": np}, op.name, None, None
    )
    assert examples.examples, "an example is missing"
    failures = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(UpToRounding(), optionflags=flags)
    runner.run(examples, out=failures.append)
    assert not runner.failures, "".join(failures)


def test_every_parameter_is_documented() -> None:
    """In the docstring or in the glossary; docstrings name only existing parameters."""
    check_each({op.name: op for op in OPERATORS}, _check_parameters)


def _check_parameters(op: Op) -> None:
    entries = entries_of(op)
    assert [e.name for e in entries if not e.sentence.endswith((".", "``."))] == []
    known = {e.name.lstrip("*") for e in entries}
    own = parameter_items(sections(op.function.__doc__ or "").get("Parameters", ""))
    assert set(own) <= known


def test_docstring_lists_types_defaults_and_descriptions() -> None:
    text = mx.nd.FullyConnected.__doc__
    assert "num_hidden : int\n    Number of output features.\n" in text
    assert "no_bias : bool, default False\n" in text
    assert "\n\nReturns\n-------\nNDArray\n\nExamples\n--------\n>>> " in text
    assert "out : NDArray" in text and "attr : dict" in mx.sym.FullyConnected.__doc__


def test_method_docstrings_omit_self() -> None:
    assert "data :" not in mx.nd.NDArray.sum.__doc__ and "data :" in mx.nd.sum.__doc__
