"""Models that go in and out: node tests by import and export, the zoo by export and import."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib import onnx as contrib_onnx
from mxnet.gluon.model_zoo import vision
from mxnet.onnx.export import build_model
from tests.golden.zoo_cases import SEEN
from tests.onnx.running import relative_error, run
from tests.onnx.test_node_tests import _arrays, _imported, passing_names

NEWEST = 24
STEP = 6  # a part of all cases; all of them take minutes
# What cannot go out again, or what onnxruntime computes otherwise.
EXCEPTIONS = (
    r"bfloat16|BFLOAT16|bf16|bitshift|bitcast|cumprod|dft|stft|roialign_mode_max|_ceil_|"
    r"mod_float_edge|qk_matmul|attention.*(causal|window)|align_corners|convinteger|float16_type|reordered|"
    r"expanded|uint16|uint32|uint64|_int16|ui16|ui32|ui64|_i16"  # types that MXNet lacks
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
        names = [n for n in passing_names(cases) if not re.search(EXCEPTIONS, n)]
        failed = []
        for name in names[::STEP]:
            try:
                _goes_out_again(cases[name])
            except Exception as error:
                failed.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
    assert len(names) > 900
    assert not failed, "\n".join(failed)


QUICK = ("squeezenet1.1", "resnet18_v2", "mobilenetv2_0.25")
# The other networks repeat the layers of these, as `tests/gluon/test_model_zoo.py` proves.
CASES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SEEN]


def _network(name: str) -> mx.gluon.HybridBlock:
    """Return a network with statistics of normalization that are not 0 and 1."""
    mx.random.seed(3)
    net = vision.get_model(name, classes=10)
    net.initialize(mx.init.Xavier(magnitude=2.0))
    net.hybridize()
    return net


def _move_statistics(net: mx.gluon.HybridBlock) -> None:
    for parameter in net.collect_params(".*running_(mean|var)").values():
        is_mean = parameter.name.endswith("mean")
        low, high = (-0.2, 0.2) if is_mean else (0.5, 1.5)
        parameter.set_data(mx.nd.random.uniform(low, high, shape=parameter.shape))


@pytest.mark.parametrize("name", CASES)
def test_zoo_model_goes_out_and_comes_back(name: str) -> None:
    """The error stays below 1e-5 in onnxruntime, and below 2e-6 after the way back."""
    size = max(64, SEEN[name])
    net = _network(name)
    data = mx.nd.random.normal(shape=(1, 3, size, size))
    net(data)
    _move_statistics(net)
    wanted = net(data).asnumpy()
    params = {p.name: p.data() for p in net.collect_params().values()}
    model = build_model(net(mx.sym.var("data")), params, [data.shape])
    assert relative_error(run(model, {"data": data.asnumpy()})[0], wanted) < 1e-5
    again = contrib_onnx.import_to_gluon(model.SerializeToString())(data).asnumpy()
    assert relative_error(again, wanted) < 2e-6
