"""Compares a case of `layer_cases` with what MXNet 1.9.1 answered."""

from __future__ import annotations

import functools
import json
import warnings
from pathlib import Path

import numpy as np
from numpy.testing import assert_allclose

import mxnet as mx
from tests.golden.layer_cases import FAMILIES, answer, description

GOLDEN = Path(__file__).parent.parent / "golden"


@functools.cache
def recorded(family):
    """Return {case: {part: array}} and {case: description} of a family."""
    arrays = {}
    with np.load(GOLDEN / f"layers_{family}.npz") as stored:
        for name in stored.files:
            key, _, part = name.partition(":")
            arrays.setdefault(key, {})[part] = stored[name]
    text = (GOLDEN / f"layers_{family}.json").read_text(encoding="utf-8")
    return arrays, json.loads(text)


def cases(family):
    """Return all cases of a family."""
    return FAMILIES[family]


def name_of(case):
    """Return the name of a test's case."""
    return case.key.partition("/")[2]


def check_answer(case, hybridize):
    """Assert that outputs, gradients and statistics are MXNet's."""
    wanted = recorded(case.key.partition("/")[0])[0][case.key]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All children of this Sequential layer")
        found = answer(mx, case, hybridize)
    assert found.keys() == wanted.keys()
    for part, value in wanted.items():
        assert found[part].shape == value.shape, part
        assert_allclose(found[part], value, rtol=2e-4, atol=2e-5, err_msg=part)


def check_description(case):
    """Assert that the printed form, the parameters and the graph's names are MXNet's."""
    wanted = recorded(case.key.partition("/")[0])[1][case.key]
    found = json.loads(json.dumps(description(mx, case)))
    for part, value in wanted.items():
        assert found[part] == value, part
