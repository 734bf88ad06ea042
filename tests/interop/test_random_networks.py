"""Random networks compute the same in ONNX Runtime, after reimport, and in torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import dtypes
from mxnet.interop import to_torch
from mxnet.interop.onnx.export import build_model
from mxnet.interop.source import as_model
from tests.interop.onnx.running import run
from tests.interop.random_networks import Network, draw

LIMITS = {"float32": 2e-4, "float16": 2e-2, "float64": 1e-6}


def assert_same(outputs: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Compare shapes, dtypes and values, relative to the largest value."""
    assert [(o.shape, o.dtype) for o in outputs] == [(e.shape, e.dtype) for e in expected]
    for output, array in zip(outputs, expected, strict=True):
        limit = LIMITS[array.dtype.name] * max(1.0, abs(array).max(initial=0.0))
        np.testing.assert_allclose(output, array, rtol=0, atol=limit)


def check_onnx(net: Network, expected: list[np.ndarray]) -> None:
    """Export, run, import, run."""
    shapes = {n: a.shape for n, a in net.feed.items()}
    types = {n: a.dtype for n, a in net.feed.items()}
    model = build_model(net.symbol, net.params, shapes, types, opset=16)
    assert_same(run(model, net.feed), expected)
    symbol, arguments, states = mx.contrib.onnx.import_model(model.SerializeToString())
    assert_same(Network(symbol, {**arguments, **states}, net.feed, []).run(), expected)


def check_torch(net: Network, expected: list[np.ndarray]) -> None:
    """Convert and run."""
    shapes = {n: a.shape for n, a in net.feed.items()}
    types = {n: dtypes.to_torch(a.dtype) for n, a in net.feed.items()}
    module = to_torch(as_model(net.symbol, net.params, shapes, types))
    names = [n.name for n in module.graph.nodes if n.op == "placeholder"]
    with torch.no_grad():
        outputs = module(*(torch.from_numpy(net.feed[n]) for n in names))
    several = outputs if isinstance(outputs, tuple) else (outputs,)
    assert_same([o.numpy() for o in several], expected)


CASES = [*((seed, "float32") for seed in range(6)), (1000, "float16"), (2000, "float64")]


@pytest.mark.parametrize(("seed", "dtype"), CASES)
def test_random_networks_convert_to_onnx_and_torch(seed: int, dtype: str) -> None:
    """The seeds are a small sample."""
    net = draw(seed, dtype)
    expected = net.run()
    check_onnx(net, expected)
    check_torch(net, expected)


def test_duplicate_layer_and_parameter_names_convert() -> None:
    """Torch modules need a unique name for each part."""
    rng = np.random.RandomState(0)
    x = mx.sym.var("data")
    for name in ("same", "other"):
        state, weight = mx.sym.zeros((1, 2, 4)), mx.sym.var(name)
        x = mx.sym.RNN(x, weight, state, mode="gru", state_size=4, num_layers=1, name="same")
    feed = {"data": rng.standard_normal((3, 2, 4)).astype(np.float32)}
    params = {n: mx.nd.array(rng.standard_normal(120)) for n in ("same", "other")}
    net = Network(x, params, feed, [])
    check_torch(net, net.run())


def test_float16_max_pooling_roundtrips_through_onnx() -> None:
    """One-sided padding is the lowest value of the dtype."""
    x = mx.sym.var("data")
    symbol = mx.sym.Pooling(
        x, kernel=(2, 2), stride=(2, 2), pool_type="max", pooling_convention="full"
    )
    data = -np.arange(1, 31, dtype=np.float16).reshape(1, 1, 5, 6)
    net = Network(symbol, {}, {"data": data}, [])
    check_onnx(net, net.run())


def test_float16_cumsum_converts_to_torch() -> None:
    """We round at every step, torch at the end; small integers are exact."""
    data = np.arange(12, dtype=np.float16).reshape(3, 4)
    net = Network(mx.sym.cumsum(mx.sym.var("data"), axis=1), {}, {"data": data}, [])
    check_torch(net, net.run())
