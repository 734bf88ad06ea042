"""What is imported can be exported again: node tests go in, out, and through onnxruntime."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import mxnet as mx
from mxnet.onnx.export import build_model
from tests.onnx.running import run
from tests.onnx.test_node_tests import LIST, _arrays, _imported

NEWEST = 24
STEP = 6  # a part of all cases; all of them take minutes
# What cannot go out again, or what onnxruntime computes otherwise.
EXCEPTIONS = (
    r"bfloat16|BFLOAT16|bf16|bitshift|bitcast|cumprod|dft|stft|roialign_mode_max|_ceil_|"
    r"mod_float_edge|qk_matmul|attention.*(causal|window)|align_corners|convinteger|float16_type|reordered|"
    r"expanded"
)


def _goes_out_again(case: object) -> None:
    inputs, wanted = (_arrays(side) for side in case.data_sets[0])
    feed = dict(zip([i.name for i in case.model.graph.input], inputs, strict=True))
    with mx.util.np_shape(True):
        importer, symbol, args, aux = _imported(case, feed)
        used = set(symbol.list_inputs())
        free = {n: np.asarray(feed[n]) for n in importer.inputs if n in used}
        model = build_model(
            symbol,
            {**args, **aux},
            {n: a.shape for n, a in free.items()},
            {n: a.dtype for n, a in free.items()},
            opset=NEWEST,
        )
    flat = [b for side in wanted for b in (side if isinstance(side, list) else [side])]
    for found, each in zip(run(model, free), flat, strict=True):
        assert found.shape == np.shape(each)
        np.testing.assert_allclose(
            found.astype("float64"), np.asarray(each, "float64"), rtol=2e-3, atol=2e-5
        )


@pytest.mark.slow
def test_imported_models_are_exported() -> None:
    """Every sixth node test gives its outputs after import, export and onnxruntime."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the ONNX library's own cases divide by zero
        from onnx.backend.test.case.node import collect_testcases

        cases = {case.name: case for case in collect_testcases(None)}
        names = [n for n in LIST.read_text().split() if not re.search(EXCEPTIONS, n)]
        failed = []
        for name in names[::STEP]:
            try:
                _goes_out_again(cases[name])
            except Exception as error:
                failed.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
    assert len(names) > 900
    assert not failed, "\n".join(failed)
