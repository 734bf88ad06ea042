"""Quantized models in `Module`, and the steps of quantization under MXNet's names."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib import quantization as quant

RNG = np.random.RandomState(0)
S = mx.sym


def _layers():
    x = S.Convolution(S.var("data"), kernel=(1, 1), num_filter=4, name="conv")
    return S.FullyConnected(S.Activation(x, act_type="relu", name="relu"), num_hidden=3, name="fc")


def _params(symbol, shape):
    shapes, _, _ = symbol.infer_shape(data=shape)
    named = zip(symbol.list_arguments(), shapes, strict=True)
    return {n: mx.nd.array(RNG.uniform(-1, 1, s)) for n, s in named if n != "data"}


@pytest.mark.parametrize("granularity", ["tensor-wise", "channel-wise"])
def test_a_module_binds_a_quantized_model_with_biases(granularity):
    """Types of biases and shapes of ranges are inferred or written on the variables."""
    net, shape = _layers(), (2, 3, 4, 4)
    args = _params(net, shape)
    data = mx.nd.array(RNG.uniform(-1, 1, shape))
    small, small_args, aux = quant.quantize_model(
        net, args, {}, label_names=None, calib_mode="naive", calib_data=[data],
        quantize_mode="full", quantize_granularity=granularity,
    )  # fmt: skip
    results = []
    for symbol, params in ((net, args), (small, small_args)):
        module = mx.mod.Module(symbol, label_names=None)
        module.bind([("data", shape)], for_training=False)
        module.set_params(params, aux)
        module.forward(mx.io.DataBatch([data]), is_train=False)
        results.append(module.get_outputs()[0].asnumpy())
    np.testing.assert_allclose(results[1], results[0], atol=0.03 * np.abs(results[0]).max())


def test_an_8_bit_bias_is_inferred():
    """As in MXNet 1.9.1; a bias that says int32 keeps its type."""
    small, _ = quant._quantize_symbol(_layers(), mx.cpu(), offline_params=["conv_weight"])
    assert "conv_weight" in small.list_arguments()
    params = ["conv_weight", "conv_bias", "fc_weight", "fc_bias"]
    small, layers = quant._quantize_symbol(_layers(), mx.cpu(), offline_params=params)
    types = dict(zip(small.list_arguments(), small.infer_type(data="float32")[0], strict=True))
    assert types["conv_bias_quantize"] == types["fc_bias_quantize"] == np.int8
    assert layers == ["data", "conv_output", "fc_output"]


def test_steps_quantize_parameters_and_write_ranges():
    net = _layers()
    args = _params(net, (2, 3, 4, 4))
    small, _ = quant._quantize_symbol(net, mx.cpu(), offline_params=list(args))
    stored = quant._quantize_params(small, args, th_dict={})
    assert sorted(stored) == sorted(set(small.list_arguments()) - {"data"})
    assert stored["fc_weight_quantize"].dtype == np.int8
    assert quant._calibrate_quantized_sym(small, {}) is small
    found = quant._calibrate_quantized_sym(small, {"conv_output": (-2.0, np.array([3.0]))})
    attributes = found.attr_dict()["requantize_conv"]
    assert (attributes["min_calib_range"], attributes["max_calib_range"]) == ("-2", "3")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "auto"])
def test_a_threshold_is_where_all_values_are(dtype):
    """All values at one end of the histogram leave nothing to clip."""
    edges = [4 / 999 * i - 2 for i in range(999)] + [2]
    histogram = ([0] * 998 + [1000], edges, -2, 2, 2)
    assert quant._get_optimal_threshold(histogram, dtype, num_quantized_bins=5)[2] == 2
    found = quant._get_optimal_thresholds({"layer": histogram}, dtype, num_quantized_bins=5)
    assert found == {"layer": (-2.0, 2.0)}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("rank", [2, 3])
def test_convolutions_add_biases_along_channels(dtype, rank):
    """Where one step of everything is one, sums are those of the integers, to one step."""
    x = RNG.randint(0 if dtype == "uint8" else -127, 127, (1, 3, *(6,) * rank))
    w, b = RNG.randint(-127, 127, (6, 3, *(3,) * rank)), RNG.randint(-127, 127, 6)
    ends = {
        f"{end}_{what}": mx.nd.array([sign * 127.0])
        for what in ("data", "weight", "bias")
        for end, sign in (("min", -1), ("max", 1))
    }
    options = {"kernel": (3,) * rank, "num_filter": 6}
    arrays = (mx.nd.array(x, dtype=dtype), *(mx.nd.array(a, dtype="int8") for a in (w, b)))
    found = mx.nd.contrib.quantized_conv(*arrays, **ends, **options)[0].asnumpy()
    wanted = mx.nd.Convolution(*map(mx.nd.array, (x, w, b)), **options).asnumpy()
    assert np.abs(found - wanted).max() <= 1


def test_ranges_of_pooling_and_flattening_are_inferred():
    """`simple_bind` needs the shape of the data only."""
    data = S.var("data", shape=(1, 2, 8, 8), dtype="int8")
    low, high = S.var("low"), S.var("high")
    pooled = S.contrib.quantized_pooling(data, low, high, kernel=(2, 2), pool_type="max")
    for symbol in (pooled, S.contrib.quantized_flatten(data, low, high)):
        assert symbol.simple_bind(mx.cpu(), grad_req="null").arg_dict["low"].shape == (1,)


def test_networks_with_states_are_quantized():
    """A batch may hold states in a list; layers without an 8-bit form stay as they are."""
    net = mx.gluon.rnn.LSTM(hidden_size=4)
    net.initialize()
    net.hybridize()
    data, states = mx.nd.array(RNG.rand(5, 2, 3)), [mx.nd.zeros((1, 2, 4)), mx.nd.ones((1, 2, 4))]
    wanted = net(data, states)[0].asnumpy()
    small = quant.quantize_net(net, calib_data=[[data, states]], calib_mode="naive")
    for found in (small(data, states), small(data, *states)):
        np.testing.assert_allclose(found[0].asnumpy(), wanted, atol=1e-6)
