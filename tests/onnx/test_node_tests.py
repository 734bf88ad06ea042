"""The node tests of the ONNX project: those that pass are recorded, and the list may only grow."""

from __future__ import annotations

import pathlib
import warnings
from typing import Any

import numpy as np
import pytest

import mxnet as mx
from mxnet.onnx.importer.value import NeedsConstant
from mxnet.onnx.importer.walk import Importer

LIST = pathlib.Path(__file__).parent / "passing_node_tests.txt"
MOST_CONSTANTS = 8


def _imported(case: Any, feed: dict[str, np.ndarray]) -> tuple:
    """Import a model; inputs that a node needs as constants, such as shapes, become such."""
    constants: dict[str, np.ndarray] = {}
    for _ in range(MOST_CONSTANTS):
        try:
            importer = Importer(case.model, constants)
            return importer, *importer.run()
        except NeedsConstant as error:
            wanted = {n: feed[n] for n in error.roots if n in feed and n not in constants}
            if not wanted:
                raise
            constants.update(wanted)
    raise AssertionError("too many inputs must be constants")


def _run(case: Any) -> None:
    inputs, wanted = case.data_sets[0]
    names = [i.name for i in case.model.graph.input]
    feed = dict(zip(names, inputs, strict=True))
    with mx.util.np_shape(True):
        importer, symbol, args, aux = _imported(case, feed)
        used, states = set(symbol.list_inputs()), set(symbol.list_auxiliary_states())
        for name in importer.inputs:
            if name in used:
                target = aux if name in states else args
                target[name] = mx.nd.array(feed[name], dtype=feed[name].dtype)
        executor = symbol.bind(mx.cpu(), args, aux_states=aux, grad_req="null")
        found = [np.asarray(o.asnumpy()) for o in executor.forward(is_train=False)]
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == np.shape(b)
        assert a.dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=case.rtol, atol=max(case.atol, 1e-6))


@pytest.mark.slow
def test_recorded_node_tests_pass() -> None:
    """Every node test on the list gives the recorded outputs: values, shapes, dtypes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the ONNX library's own cases divide by zero
        from onnx.backend.test.case.node import collect_testcases

        cases = {case.name: case for case in collect_testcases(None)}
        failed = []
        for name in LIST.read_text().split():
            try:
                _run(cases[name])
            except Exception as error:
                failed.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
    assert not failed, "\n".join(failed)


def test_the_list_is_long() -> None:
    """The list grows; this number is what it had when last looked at."""
    assert len(LIST.read_text().split()) >= 1050
