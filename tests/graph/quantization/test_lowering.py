"""Calibrated 8-bit graphs are lowered to fused 8-bit kernels."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib import quantization as quant


def residual(x, name):
    y = mx.sym.Convolution(x, kernel=(1, 1), num_filter=4, name=f"{name}_conv")
    return mx.sym.relu(mx.sym.elemwise_add(x, y, name=f"{name}_add"), name=f"{name}_relu")


def network():
    x = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="first")
    x = mx.sym.clip(x, a_min=0, a_max=6, name="relu6")
    x = residual(residual(x, "a"), "b")
    x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), name="pool")
    return mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=3, name="last")


def quantized_block(sym, mode="naive", shape=(2, 2, 8, 8), **options):
    rng = np.random.RandomState(0)
    mx.random.seed(0)
    net = mx.gluon.SymbolBlock(sym, mx.sym.var("data"))
    net.initialize(mx.init.Normal(0.5))
    data = mx.nd.array(rng.uniform(-1, 1, shape))
    wanted = net(data).asnumpy()
    given = {"calib_data": [data]} if mode != "none" else {"data_shapes": [shape]}
    return quant.quantize_net_v2(net, calib_mode=mode, **given, **options), data, wanted


def test_calibrated_network_is_lowered_to_fused_nodes_only():
    net, data, wanted = quantized_block(network())
    shown = str(net.compiled(data))
    assert "_contrib_" not in shown and "_fused_int8_add" not in shown
    assert shown.count("_fused_int8_convolution") == 3 and shown.count("_fused_int8_dense") == 1
    np.testing.assert_allclose(net(data).asnumpy(), wanted, atol=0.06 * abs(wanted).max())


def test_fused_int8_nodes_equal_unfused_ones(monkeypatch):
    net, data, wanted = quantized_block(network())
    fused = net(data).asnumpy()
    monkeypatch.setenv("MXNET_GRAPH_PASSES", "0")
    net.hybridize()
    np.testing.assert_allclose(net(data).asnumpy(), fused, atol=0.04 * abs(wanted).max())


@pytest.mark.parametrize("mode", ["none", "naive"])
def test_concat_runs_in_8_bits(mode):
    x = mx.sym.var("data")
    left = mx.sym.relu(mx.sym.Convolution(x, kernel=(1, 1), num_filter=4, name="left"))
    right = mx.sym.Convolution(x, kernel=(1, 1), num_filter=2, name="right")
    joined = mx.sym.concat(left, right, dim=1, name="joined")
    out = mx.sym.Convolution(joined, kernel=(1, 1), num_filter=3, name="out")
    net, data, wanted = quantized_block(out, mode)
    shown = str(net.compiled(data))
    assert ("_fused_int8_concat" if mode == "naive" else "_contrib_quantized_concat") in shown
    np.testing.assert_allclose(net(data).asnumpy(), wanted, atol=0.06 * abs(wanted).max())


@pytest.mark.parametrize("mode", ["none", "naive"])
def test_in_place_sum_does_not_overwrite_values_used_later(mode):
    """The block's input is added, and used again afterwards."""
    x = mx.sym.Convolution(mx.sym.var("data"), kernel=(1, 1), num_filter=4, name="first")
    late = mx.sym.Convolution(x, kernel=(1, 1), num_filter=4, name="late")
    early = mx.sym.elemwise_add(x, mx.sym.Convolution(x, kernel=(1, 1), num_filter=4, name="c"))
    total = mx.sym.elemwise_add(mx.sym.Pooling(early, kernel=(1, 1)), late)
    net, data, wanted = quantized_block(total, mode)
    np.testing.assert_allclose(net(data).asnumpy(), wanted, atol=0.06 * abs(wanted).max())


def test_in_place_sum_does_not_overwrite_the_layer_input():
    """A block that adds its input to its convolution: both inputs are one array."""
    x = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="a")
    x = mx.sym.clip(x, a_min=0, a_max=6)
    y = mx.sym.Convolution(x, kernel=(1, 1), num_filter=4, num_group=2, name="b")
    net, data, wanted = quantized_block(mx.sym.elemwise_add(x, y), shape=(2, 3, 8, 8))
    np.testing.assert_allclose(net(data).asnumpy(), wanted, atol=0.04 * abs(wanted).max())


def test_float32_layers_receive_dequantized_inputs():
    net, data, wanted = quantized_block(network(), exclude_layers=["a_add", "pool"])
    shown = str(net.compiled(data))
    assert "elemwise_add" in shown and "_fused_int8_dequantize" in shown
    np.testing.assert_allclose(net(data).asnumpy(), wanted, atol=0.06 * abs(wanted).max())


def test_uncalibrated_nodes_receive_integers_and_ranges():
    data = mx.sym.var("data")
    made = mx.sym.contrib.quantize_v2(data, min_calib_range=-1, max_calib_range=1, name="q")
    total = mx.sym.contrib.quantized_elemwise_add(
        made[0], made[0], made[1], made[2], made[1], made[2]
    )
    real = mx.sym.contrib.requantize(*total, name="narrow")
    out = mx.sym.contrib.dequantize(*real)
    x = mx.nd.array([0.5, -0.25])
    (found,) = out.eval(data=x)
    np.testing.assert_allclose(found.asnumpy(), [1.0, -0.5], atol=0.02)


@pytest.mark.parametrize("low", [-1.0, 0.0, 0.25])
def test_ranges_of_uint8_outputs_equal_the_calibrated_ones(low):
    quantize = {"out_type": "uint8", "min_calib_range": low, "max_calib_range": 1.5}
    symbol = mx.sym.contrib.quantize_v2(mx.sym.var("x"), **quantize)
    x = mx.nd.array([[0.5, 1.0]])
    outputs = symbol.bind(mx.cpu(), {"x": x}).forward()
    expected = mx.nd.contrib.quantize_v2(x, **quantize)
    assert [o.asnumpy().tolist() for o in outputs] == [e.asnumpy().tolist() for e in expected]


def test_lowered_networks_run_with_any_batch_size():
    net, data, _ = quantized_block(network())
    both = net(data).asnumpy()
    # A number between two steps may be rounded to either, by the kernels of a batch size.
    np.testing.assert_allclose(net(data[:1]).asnumpy(), both[:1], atol=0.04 * abs(both).max())
