"""8-bit operators that a plain call of MXNet 1.9.1 cannot record."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx

X = mx.nd.array([44, -81, -11, 64, -61, 123], dtype="int8")
Y = mx.nd.array([-91, 107, 12, -56, 127, 9], dtype="int8")
TWO, ONE = mx.nd.array([2.0]), mx.nd.array([1.0])
RANGES = (-TWO, TWO, -ONE, ONE)


def test_quantized_elemwise_mul_matches_mxnet_1_9_1():
    out, low, high = mx.nd.contrib.quantized_elemwise_mul(X, Y, *RANGES)
    assert out.asnumpy().tolist() == [-4004, -8667, -132, -3584, -7747, 1107]
    assert (low.asscalar(), high.asscalar()) == (-266288.5, 266288.5)
    options = {"min_calib_range": -1.5, "max_calib_range": 1.5}
    out, _, high = mx.nd.contrib.quantized_elemwise_mul(X, Y, *RANGES, **options)
    assert out.asnumpy().tolist() == [-41, -90, -1, -37, -81, 11] and high.asscalar() == 1.5
    out = mx.nd.contrib.quantized_elemwise_mul(X, Y, *RANGES, enable_float_output=True)
    wanted = [-0.49261054, -1.0662975, -0.01623991, -0.44093812, -0.95311034, 0.13619377]
    np.testing.assert_allclose(out.asnumpy(), wanted, rtol=1e-6)


def test_infer_type_of_quantized_elemwise_mul():
    names = [mx.sym.var(n) for n in ("lhs", "rhs", "a", "b", "c", "d")]
    product = mx.sym.contrib.quantized_elemwise_mul(*names, enable_float_output=True)
    _, (found,), _ = product.infer_type(lhs="int8", rhs="int8")
    assert found == np.float32
    _, shapes, _ = product.infer_shape(lhs=(2, 3))
    assert shapes == [(2, 3)]


def test_asymmetric_quantization_uses_the_full_range():
    x = mx.nd.array([-1, 0, 0.5, 2])
    out, scale, shift = mx.nd.contrib.quantize_asym(x, min_calib_range=-1, max_calib_range=1.55)
    assert out.asnumpy().tolist() == [0, 100, 150, 255]
    assert (scale.asscalar(), shift.asscalar()) == pytest.approx((100, 100))


def test_quantized_convolution_sums_are_exact():
    x = mx.nd.array([[[[100, 2], [3, 255]]]], dtype="uint8")
    w = mx.nd.array([[[[-3, 1], [2, 127]]]], dtype="int8")
    out, low, high = mx.nd.contrib.quantized_conv(
        x, w, min_data=0 * ONE, max_data=TWO, min_weight=-ONE, max_weight=ONE, kernel=(2, 2),
        num_filter=1, no_bias=True,
    )  # fmt: skip
    assert out.asscalar() == -300 + 2 + 6 + 255 * 127
    assert high.asscalar() == pytest.approx(2 / 255 / 127 * (2**31 - 1)) == -low.asscalar()


def test_channel_wise_ranges_of_quantized_fully_connected():
    x = mx.nd.ones((1, 2), dtype="uint8")
    w = mx.nd.array([[10, 10], [10, 10]], dtype="int8")
    ends = mx.nd.array([1.27, 12.7])
    out = mx.nd.contrib.quantized_fully_connected(
        x, w, min_data=0 * ONE, max_data=255 * ONE, min_weight=-ends, max_weight=ends,
        num_hidden=2, no_bias=True,
    )  # fmt: skip
    real = out[0].asnumpy() * out[2].asnumpy().astype("float64") / (2**31 - 1)
    np.testing.assert_allclose(real, [[0.2, 2.0]], rtol=1e-6)
    made, _, high = mx.nd.contrib.requantize(*out)
    assert made.asnumpy().tolist() == [[13, 127]] and high.asscalar() == pytest.approx(2)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: mx.nd.contrib.quantized_concat(X, Y, *RANGES[:2], num_args=2), "6 inputs"),
        (lambda: mx.nd.contrib.quantized_elemwise_mul(X, Y, *RANGES[:3], X), "shape"),
        (
            lambda: mx.nd.contrib.quantized_batch_norm(
                X.reshape((1, 1, 2, 3)), ONE, ONE, ONE, ONE, -ONE, ONE
            ),
            "calibrate",
        ),
        (lambda: mx.nd.contrib.calibrate_entropy(ONE, ONE), "edges"),
    ],
)
def test_invalid_calls_raise(call, said):
    with pytest.raises(mx.MXNetError, match=said):
        call()


@pytest.mark.parametrize(
    ("dtype", "options", "wanted"),
    [
        ("int8", {}, ("int8", -127.5, 127.5)),
        ("int8", {"out_type": "uint8"}, ("uint8", -127.5, 127.5)),
        ("uint8", {}, ("int8", 0, 255.5)),
        ("uint8", {"min_calib_range": -1.0, "max_calib_range": 1.0}, ("int8", -1, 1)),
    ],
)
def test_quantize_v2_keeps_8_bit_input(dtype, options, wanted):
    x = mx.nd.array([1, 2, 3], dtype=dtype)
    made, low, high = mx.nd.contrib.quantize_v2(x, **options)
    assert made.asnumpy().tolist() == [1, 2, 3]
    assert (np.dtype(made.dtype).name, low.asscalar(), high.asscalar()) == wanted


def lstm(layers, mode="lstm"):
    """Return inputs and attributes of a stacked, bidirectional 8-bit LSTM."""
    rng, size, states = np.random.RandomState(0), 6, (2 * layers, 2, 6)
    attrs = {"state_size": size, "num_layers": layers, "bidirectional": True, "mode": mode}
    x = rng.uniform(-1, 1, (4, 2, 8))
    x[0, 0, :2] = -1, 1  # hidden states are on the scale of the data
    shapes, _, _ = mx.sym.RNN(mx.sym.var("data"), **{**attrs, "mode": "lstm"}).infer_shape(
        data=x.shape
    )
    given = (x, *(rng.uniform(-0.5, 0.5, s) for s in (shapes[1], states, states)))
    return [mx.nd.array(v) for v in given], {**attrs, "state_outputs": True}


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_8_bit_lstm_approximates_the_float_lstm(layers):
    (x, *rest), attrs = lstm(layers)
    data, scale, shift = mx.nd.contrib.quantize_asym(x)
    found = mx.nd.contrib.quantized_rnn(data, *rest, scale, shift, **attrs)
    for a, b in zip(found, mx.nd.RNN(x, *rest, **attrs), strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), atol=0.03)


def test_8_bit_rnn_from_json_runs_and_other_cells_raise():
    (x, *rest), attrs = lstm(1)
    node = mx.sym.contrib.quantized_rnn(
        *mx.sym.contrib.quantize_asym(mx.sym.var("data"))[:1],
        *(mx.sym.var(n) for n in ("w", "h", "c", "scale", "shift")), **attrs,
    )  # fmt: skip
    text = node.tojson().replace('"mode": "lstm"', '"mode": "lstm", "quantized": "true"')
    loaded = mx.sym.load_json(text)
    scale, shift = mx.nd.contrib.quantize_asym(x)[1:]
    given = dict(zip(loaded.list_arguments(), (x, *rest, scale, shift), strict=True))
    assert loaded.eval(**given)[0].shape == (4, 2, 12)
    (x, *rest), attrs = lstm(1, "gru")
    with pytest.raises(mx.MXNetError, match="only supports LSTM"):
        mx.nd.contrib.quantized_rnn(x.astype("uint8"), *rest, scale, shift, **attrs)


@pytest.mark.parametrize(
    ("bins", "scale", "quantized_bins", "threshold", "divergence"),
    [
        (1001, 500, 255, 6.593406677246094, 0.00010065313836093992),
        (1001, 2e6, 255, 7.072926998138428, 0.0008778982446528971),  # counts beyond float32
        (2000, 500, 255, 6.688000202178955, 0.00010854521678993478),
        (801, 40, 127, 4.5443196296691895, 0.00043984659714624286),
    ],
)
def test_entropy_thresholds_match_mxnet_1_9_1(bins, scale, quantized_bins, threshold, divergence):
    places = np.linspace(-8, 8, bins)
    counts = np.floor(scale * np.exp(-np.abs(places))) * (places >= -5)
    histogram = mx.nd.array(counts), mx.nd.array(np.linspace(-8, 8, bins + 1))
    made = mx.nd.contrib.calibrate_entropy(*histogram, num_quantized_bins=quantized_bins)
    assert made[0].asscalar() == np.float32(threshold)
    np.testing.assert_allclose(made[1].asscalar(), divergence, atol=1e-8)
