"""`mx.image` gives the pixels, places and boxes that MXNet 1.9.1 gave for the same draws."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

import mxnet as mx
from mxnet.image import chance
from tests.batches import check_each
from tests.golden import image_cases
from tests.image.scripted import ScriptedGenerator

pytest.importorskip("cv2")
GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
FACTS = json.loads((GOLDEN / "image.results.json").read_text())
ARRAYS = np.load(GOLDEN / "image.results.npz")
CASES = list(image_cases.calls(mx))


def tolerance(name: str, dtype: np.dtype) -> float:
    """Whole numbers may differ by one where JPEG or OpenCV's version rounds otherwise."""
    if dtype == np.uint8:
        return 1 if "jpeg" in name or "esize" in name or "rop" in name.lower() else 0
    return 2e-2 if dtype == np.float16 else 2e-3


def test_calls(monkeypatch):
    check_each({case[0]: case for case in CASES}, lambda case: _check_call(*case, monkeypatch))


def _check_call(name, fractions, call, monkeypatch):
    script = ScriptedGenerator(fractions)
    monkeypatch.setattr(chance, "generator", lambda: script)
    result = call()
    parts = result if isinstance(result, tuple) else (result,)
    expected = FACTS[name]
    assert len(parts) == len(expected)
    for number, (part, fact) in enumerate(zip(parts, expected, strict=True)):
        if fact is not None:
            assert json.loads(json.dumps(part)) == fact
            continue
        wanted = ARRAYS[f"{name}|{number}"]
        found = part.asnumpy() if isinstance(part, mx.nd.NDArray) else part
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        far = np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max()
        assert far <= tolerance(name, wanted.dtype), far
