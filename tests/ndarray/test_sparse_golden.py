"""Sparse programs against MXNet 1.9.1: storage types, what is stored, values, and warnings."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import mxnet as mx
from mxnet.ndarray.sparse import base
from tests.golden import HERE
from tests.golden.sparse_programs import GROUPS, answer

GOLDEN = json.loads((HERE / "sparse.json").read_text())
# MXNet refuses these without need.
MORE_THAN_MXNET = {
    "csr[5]",  # an array without rows can be made there, but not read
    "csr[2:1]",
    "sp.dot(csr, wr, transpose_a=True, forward_stype='default')",
}


@pytest.fixture(autouse=True)
def forget_warnings():
    base._warned.clear()


def assert_same(mine, wanted, text):
    if isinstance(wanted, list):
        assert isinstance(mine, list) and len(mine) == len(wanted), text
        for m, w in zip(mine, wanted, strict=True):
            assert_same(m, w, text)
        return
    assert {k: v for k, v in mine.items() if k != "values"} == {
        k: v for k, v in wanted.items() if k != "values"
    }, text
    if "values" in wanted:
        np.testing.assert_allclose(
            mine["values"], wanted["values"], rtol=2e-5, atol=1e-6, err_msg=text
        )


def run(text):
    """Return the answer, or None for an error, and whether a fallback was reported."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = answer(text, mx, np)
        except Exception as error:
            assert not isinstance(error, SyntaxError | NameError), text
            found = None
    messages = [str(w.message) for w in caught]
    assert all("fallback detected" in m for m in messages), messages
    return found, bool(messages)


@pytest.mark.parametrize("group", GROUPS)
def test_sparse_programs_as_mxnet(group):
    assert list(GOLDEN[group]) == GROUPS[group], "record anew: tests/golden/record_sparse.py"
    for text, wanted in GOLDEN[group].items():
        base._warned.clear()
        found, falls_back = run(text)
        if "error" in wanted:
            assert found is None or text in MORE_THAN_MXNET, text
            continue
        assert found is not None, text
        assert_same(found, wanted["answer"], text)
        if group != "gradients":  # torch's backward has other kernels than MXNet's
            assert falls_back == wanted["falls_back"], text
