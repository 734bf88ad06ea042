"""The programs of this folder return the same results as in MXNet 1.9.1."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import mxnet as mx
from tests.behavior.combinations import plain, programs
from tests.golden import HERE

RECORDED = json.loads((HERE / "combinations.json").read_text())
PROGRAMS = programs()


def assert_same(actual: Any, expected: Any, where: str) -> None:
    """Compare results; numbers up to rounding, errors by class."""
    if isinstance(expected, dict) and set(expected) == {"dtype", "values"}:
        assert actual["dtype"] == expected["dtype"], where
        np.testing.assert_allclose(
            actual["values"], expected["values"], rtol=1e-4, atol=1e-5, err_msg=where
        )
    elif isinstance(expected, dict):
        assert list(actual) == list(expected), where
        for key in expected:
            assert_same(actual[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(actual) == len(expected), f"{where}: {actual} and not {expected}"
        for i, (one, other) in enumerate(zip(actual, expected, strict=True)):
            assert_same(one, other, f"{where}[{i}]")
    elif isinstance(expected, float):
        assert actual == pytest.approx(expected, rel=1e-4, abs=1e-5), where
    elif isinstance(expected, str) and expected.startswith("raises "):
        assert is_error_of(actual, expected), f"{where}: {actual} and not {expected}"
    else:
        assert actual == expected, where


def is_error_of(actual: str, expected: str) -> bool:
    """Return whether an error is of MXNet's class, or of a subclass."""
    classes = [mx.MXNetError]
    for one in classes:
        classes.extend(one.__subclasses__())
    ours = [one for one in classes if one.__name__ == actual.removeprefix("raises ")]
    parents = [parent.__name__ for one in ours for parent in one.__mro__]
    return actual == expected or expected.removeprefix("raises ") in parents


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_results_match_mxnet(name: str) -> None:
    with mx.name.NameManager():  # automatic names begin at 0, as in the recorder's processes
        result = plain(PROGRAMS[name]())
    assert_same(json.loads(json.dumps(result)), RECORDED[name], name)


def test_no_recorded_program_failed() -> None:
    assert not [name for name, result in RECORDED.items() if "failed" in str(result)[:12]]
    assert set(RECORDED) == set(PROGRAMS)
