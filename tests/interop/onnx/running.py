"""Helpers to run ONNX models and compare their outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from mxnet.interop.onnx.importer import reading

onnxruntime.set_default_logger_severity(4)


def check_files_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check files with the ONNX library in this process, without the fork that protects it.

    Files that a test has made are harmless; `test_import.py` and `test_bombs.py` have others.
    """
    monkeypatch.setattr(reading, "run_isolated", lambda work, name, size=0: work())


def run(model: Any, feed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Check a model and run it with onnxruntime.

    Where that has no kernel for a type, the reference evaluator of the onnx library runs.
    """
    if not isinstance(model, onnx.ModelProto):
        model = onnx.load(str(model))
    onnx.checker.check_model(model)
    given = {i.name for i in model.graph.initializer}
    wanted = [i.name for i in model.graph.input if i.name not in given]
    feed = {name: feed[name] for name in wanted}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return ReferenceEvaluator(model).run(None, feed)
    return session.run(None, feed)


def relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return the largest difference, relative to the largest value."""
    difference = np.abs(found.astype("float64") - wanted).max(initial=0.0)
    return float(difference / max(np.abs(wanted).max(initial=0.0), 1e-12))


def assert_equal_outputs(
    found: Sequence[np.ndarray],
    wanted: Sequence[np.ndarray],
    rtol: float = 1e-4,
    atol: float = 1e-5,
) -> None:
    """Compare number, shapes, dtypes and values of outputs."""
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
