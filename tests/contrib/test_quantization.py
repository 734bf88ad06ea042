"""Quantized models: graphs, parameters, calibration and results."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib import quantization as quant
from tests.closeness import assert_equal_up_to_rounding

RNG = np.random.RandomState


def small_model():
    data = mx.sym.Variable("data")
    x = mx.sym.Convolution(data, kernel=(3, 3), num_filter=4, name="conv1")
    x = mx.sym.Activation(x, act_type="relu", name="relu1")
    x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool1")
    y = mx.sym.Convolution(x, kernel=(1, 1), num_filter=4, name="conv2", no_bias=True)
    x = mx.sym.elemwise_add(x, y, name="add")
    x = mx.sym.Flatten(x, name="flat")
    x = mx.sym.FullyConnected(x, num_hidden=10, name="fc1")
    out = mx.sym.SoftmaxOutput(x, name="softmax")
    rng = RNG(0)
    shapes, _, _ = out.infer_shape(data=(2, 1, 8, 8))
    named = zip(out.list_arguments(), shapes, strict=True)
    args = {
        n: mx.nd.array(rng.uniform(-1, 1, s))
        for n, s in named
        if n not in ("data", "softmax_label")
    }
    return out, args, rng.uniform(-1, 1, (4, 1, 8, 8)).astype("float32")


def quantized(mode="naive", **options):
    sym, args, data = small_model()
    batches = None if mode == "none" else mx.io.NDArrayIter(data, batch_size=2)
    made = quant.quantize_model(sym, args, {}, calib_mode=mode, calib_data=batches, **options)
    return sym, args, data, made


def nodes_of(sym):
    return json.loads(sym.tojson())["nodes"]


def attributes_of(sym, name):
    return next(n.get("attrs", {}) for n in nodes_of(sym) if n["name"] == name)


def test_graph_nodes_match_mxnet_1_9_1():
    *_, (sym, _, _) = quantized()
    operators = [(n["op"], n["name"]) for n in nodes_of(sym) if n["op"] != "null"]
    assert operators == [
        ("_contrib_quantize_v2", "data_quantize"),
        ("_contrib_quantized_conv", "quantized_conv1"),
        ("_contrib_requantize", "requantize_conv1"),
        ("_contrib_quantized_act", "quantized_relu1"),
        ("_contrib_quantized_pooling", "quantized_pool1"),
        ("_contrib_quantized_conv", "quantized_conv2"),
        ("_contrib_requantize", "requantize_conv2"),
        ("_contrib_quantized_elemwise_add", "quantized_add"),
        ("_contrib_requantize", "requantize_add"),
        ("_contrib_quantized_flatten", "quantized_flat"),
        ("_contrib_quantized_fully_connected", "quantized_fc1"),
        ("_contrib_requantize", "requantize_fc1"),
        ("_contrib_dequantize", "fc1_dequantize"),
        ("SoftmaxOutput", "softmax"),
    ]
    conv = next(n for n in nodes_of(sym) if n["name"] == "quantized_conv1")
    inputs = [(nodes_of(sym)[i]["name"], output) for i, output, _ in conv["inputs"]]
    assert inputs == [
        ("data_quantize", 0),
        ("conv1_weight_quantize", 0),
        ("conv1_bias_quantize", 0),
        ("data_quantize", 1),
        ("data_quantize", 2),
        ("conv1_weight_quantize_min", 0),
        ("conv1_weight_quantize_max", 0),
        ("conv1_bias_quantize_min", 0),
        ("conv1_bias_quantize_max", 0),
    ]


def test_parameter_names_and_ranges_match_mxnet_1_9_1():
    *_, (_, args, _) = quantized()
    assert list(args)[:3] == [
        "conv1_weight_quantize",
        "conv1_weight_quantize_min",
        "conv1_weight_quantize_max",
    ]
    assert args["fc1_weight_quantize"].dtype == np.int8
    ends = {k: args[f"{k}_quantize_max"].asscalar() for k in ("conv1_weight", "fc1_bias")}
    assert ends == pytest.approx({"conv1_weight": 0.9624204, "fc1_bias": 0.98069}, abs=1e-6)


def test_naive_calibration_uses_minimum_and_maximum():
    *_, data, (sym, _, _) = quantized()
    found = attributes_of(sym, "data_quantize")
    assert float(found["min_calib_range"]) == pytest.approx(data.min())
    assert float(found["max_calib_range"]) == pytest.approx(data.max())


def test_entropy_calibration_threshold_matches_mxnet_1_9_1():
    *_, data = small_model()
    collector = quant.LayerHistogramCollector(include_layer=["data"])
    for batch in (data[:2], data[2:]):
        collector.collect("data", mx.nd.array(batch))
    assert collector.post_collect()["data"] == pytest.approx((-0.998571, 0.998571), abs=1e-6)


@pytest.mark.parametrize(
    ("dtype", "wanted"), [("int8", (-5.853945, 5.853945)), ("auto", (0, 5.351152))]
)
def test_thresholds_of_positive_outputs_match_mxnet_1_9_1(dtype, wanted):
    data = abs(RNG(0).normal(size=(4, 500))).astype("float32")
    options = {"include_layer": ["x"], "quantized_dtype": dtype}
    collector = quant.LayerHistogramCollector(1501, **options)
    for batch in (data, 2 * data[:2]):
        collector.collect("x", mx.nd.array(batch))
    assert collector.post_collect()["x"] == pytest.approx(wanted, abs=1e-6)


def test_outliers_do_not_inflate_the_entropy_threshold():
    values = np.append(RNG(0).normal(size=20000), 50.0)
    hist, edges = np.histogram(values, bins=2001, range=(-50, 50))
    assert 2 < quant.find_threshold(hist, edges) < 10


def test_histograms_grow_by_whole_bins():
    old = np.array([1, 2, 3]), np.array([-3.0, -1, 1, 3]), -2, 2.5, 3.0
    hist, edges, low, high, end = quant.combine_histogram(old, np.array([-4.0, 0.5, 5]), -4, 5, 5.0)
    assert hist.tolist() == [0, 1, 1, 3, 3, 0, 1]
    assert edges.tolist() == [-7, -5, -3, -1, 1, 3, 5, 7]
    assert (low, high, end) == (-4, 5, 7.0)


@pytest.mark.parametrize("mode", ["none", "naive"])
@pytest.mark.parametrize("dtype", ["int8", "auto"])
@pytest.mark.parametrize("granularity", ["tensor-wise", "channel-wise"])
def test_quantized_results_are_close_to_float32(mode, dtype, granularity):
    options = {"quantized_dtype": dtype, "quantize_granularity": granularity}
    sym, args, data, (qsym, qargs, _) = quantized(mode, **options)
    wanted = sym.get_internals()["fc1_output"].eval(data=mx.nd.array(data), **args)[0].asnumpy()
    layer = qsym.get_internals()["fc1_dequantize_output"]
    found = layer.eval(data=mx.nd.array(data), **qargs)[0].asnumpy()
    np.testing.assert_allclose(found, wanted, atol=0.04 * abs(wanted).max())


def test_excluded_nodes_and_operators_stay_in_float32():
    *_, (sym, args, _) = quantized(
        excluded_sym_names=["conv1"], excluded_op_names=["FullyConnected"]
    )
    kinds = {n["name"]: n["op"] for n in nodes_of(sym)}
    assert kinds["conv1"] == "Convolution" and kinds["fc1"] == "FullyConnected"
    assert "conv1_weight" in args and "quantized_conv2" in kinds


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "best"}, "calibration mode best received"),
        ({"quantized_dtype": "int4"}, "quantized_dtype int4 received"),
        ({"quantize_mode": "half"}, "quantize_mode half received"),
    ],
)
def test_unknown_option_values_raise(options, said):
    with pytest.raises(ValueError, match=said):
        quantized(**options)


def test_channel_wise_quantization_has_one_range_per_filter():
    sym, args, data = small_model()
    args["fc1_weight"][0] *= 100  # a single range would round the others to zero
    wanted = sym.get_internals()["fc1_output"].eval(data=mx.nd.array(data), **args)[0]
    errors = {}
    for granularity in ("tensor-wise", "channel-wise"):
        batches = mx.io.NDArrayIter(data, batch_size=2)
        options = {"calib_mode": "naive", "calib_data": batches}
        qsym, qargs, _ = quant.quantize_model(
            sym, args, {}, quantize_granularity=granularity, **options
        )
        layer = qsym.get_internals()["fc1_dequantize_output"]
        found = layer.eval(data=mx.nd.array(data), **qargs)[0]
        errors[granularity] = float(abs(found - wanted)[:, 1:].max().asscalar())
    assert qargs["fc1_weight_quantize_max"].shape == (10,)
    assert qargs["conv1_weight_quantize_max"].shape == (4,)
    assert errors["channel-wise"] < 0.1 * errors["tensor-wise"]


def test_calibration_without_data_raises():
    sym, args, _ = small_model()
    with pytest.raises(ValueError, match="calib_data must be provided"):
        quant.quantize_model(sym, args, {}, calib_mode="naive")


# An image whose results were recorded from MXNet 1.9.1.
IMAGE = [88, 106, 114, 120, 95, -31, -41, 14, 106, 10, -120, -64, -66, -105, -70, -126]


@pytest.mark.parametrize(
    ("kind", "wanted"), [("max", [106, 120, 106, -64]), ("avg", [64, 52, -14, -95])]
)
def test_quantized_pooling_matches_mxnet_1_9_1(kind, wanted):
    image = mx.nd.array(IMAGE, dtype="int8").reshape((1, 1, 4, 4))
    end = mx.nd.array([2.0])
    options = {"kernel": (2, 2), "stride": (2, 2), "pool_type": kind}
    out, low, high = mx.nd.contrib.quantized_pooling(image, -end, end, **options)
    assert out.dtype == np.int8 and out.asnumpy().ravel().tolist() == wanted
    assert (low.asscalar(), high.asscalar()) == (-2.0, 2.0)


def test_quantized_elemwise_add_matches_mxnet_1_9_1():
    image = mx.nd.array([88, 106, -31], dtype="int8")
    wide, narrow = mx.nd.array([2.0]), mx.nd.array([1.0])
    out, _, high = mx.nd.contrib.quantized_elemwise_add(image, image, -wide, wide, -narrow, narrow)
    assert high.asscalar() == 3.0
    np.testing.assert_allclose(out.asnumpy(), [1482184832, 1785359104, -522133312], rtol=1e-6)


def digits():
    from sklearn.datasets import load_digits  # takes seconds to import

    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32").reshape(-1, 1, 8, 8)
    # The last writers are the test set.
    return images[:1400], labels[:1400].astype("float32"), images[1400:], labels[1400:]


def trained_net(images, labels, epochs):
    mx.random.seed(1)
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix="digits_")
    with net.name_scope():
        net.add(nn.Conv2D(16, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"))
        net.add(nn.MaxPool2D(), nn.Conv2D(32, 3, activation="relu"), nn.Flatten(), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.005})
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    batches = mx.io.NDArrayIter(images, labels, 100)
    for _ in range(epochs):
        batches.reset()
        for batch in batches:
            with mx.autograd.record():
                total = loss(net(batch.data[0]), batch.label[0])
            total.backward()
            trainer.step(100)
    return net


@pytest.fixture(scope="module")
def net():
    return trained_net(*digits()[:2], 8)


def accuracy(net, images=None, labels=None):
    if images is None or labels is None:
        _, _, images, labels = digits()
    return float((net(mx.nd.array(images)).asnumpy().argmax(1) == labels).mean())


@pytest.mark.parametrize(
    ("dtype", "mode"),
    [
        ("auto", "naive"),
        ("auto", "entropy"),
        ("auto", "none"),
        ("int8", "naive"),
        ("uint8", "none"),
    ],
)
def test_accuracy_on_digits_is_within_one_percent(net, dtype, mode):
    batches = mx.io.NDArrayIter(digits()[0][:300], batch_size=100)
    small = quant.quantize_net(net, dtype, calib_data=batches, calib_mode=mode)
    assert accuracy(net) > 0.9
    assert abs(accuracy(small) - accuracy(net)) < 0.01


def test_batch_norm_and_relu_are_folded_into_the_layers(net):
    images = mx.nd.array(digits()[0][:50])
    small = quant.quantize_net_v2(net, calib_data=[images], calib_mode="naive")
    shown = str(small.compiled(images))
    assert "BatchNorm" not in shown and "quantized_act" not in shown
    assert shown.count("_fused_int8_convolution") == 2 and shown.count("_fused_int8_dense") == 1


def test_quantized_block_export_and_import_roundtrip(net, tmp_path):
    images = mx.nd.array(digits()[0][:50])
    small = quant.quantize_net_v2(net, calib_data=[images], calib_mode="naive")
    wanted = small(images).asnumpy()
    small.export(str(tmp_path / "small"))
    files = (str(tmp_path / "small-symbol.json"), ["data"], str(tmp_path / "small-0000.params"))
    again = mx.gluon.SymbolBlock.imports(*files)
    assert_equal_up_to_rounding(again(images).asnumpy(), wanted)


def test_calibration_with_a_data_loader_with_labels(net):
    images, labels, _, _ = digits()
    dataset = mx.gluon.data.ArrayDataset(images[:60], labels[:60])
    loader = mx.gluon.data.DataLoader(dataset, batch_size=30)
    small = quant.quantize_net_v2(net, calib_data=loader, calib_mode="naive")
    assert abs(accuracy(small) - accuracy(net)) < 0.01


def test_exclude_layers_match(net):
    images = mx.nd.array(digits()[0][:20])
    options = {"calib_data": [images], "calib_mode": "naive"}
    small = quant.quantize_net_v2(net, exclude_layers_match=["dense"], **options)
    assert "digits_dense0_weight" in small.collect_params()


class Twice(quant.LayerOutputCollector):
    def collect(self, name, arr):
        self.min_max_dict[name] = -2.0, 2.0


class TwiceForMXNet2(quant.LayerOutputCollector):
    def collect(self, name, op_name, arr):
        self.min_max_dict[name] = -2.0, 2.0


@pytest.mark.parametrize("own", [Twice, TwiceForMXNet2])
def test_custom_collector_sets_the_ranges(net, own):
    images = mx.nd.array(digits()[0][:20])
    options = {"calib_data": [images], "calib_mode": "naive"}
    small = quant.quantize_net_v2(net, LayerOutputCollector=own, **options)
    _, graph = small._cached_graph
    assert attributes_of(graph, "data_quantize")["max_calib_range"] == "2"


FASHION = Path("/usr/share/datasets/fashion-mnist")  # of the Debian package


def fashion(part, count):
    with gzip.open(FASHION / f"{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)[:count]
    with gzip.open(FASHION / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)[:count]
    return images.astype("float32") / 255, labels.astype("float32")


@pytest.mark.slow
@pytest.mark.skipif(not FASHION.exists(), reason="needs the package dataset-fashion-mnist")
def test_accuracy_on_fashion_mnist_is_within_one_percent():
    images, labels = fashion("train", 6000)
    net = trained_net(images, labels, 2)
    held_out = fashion("t10k", 4000)
    wanted = accuracy(net, *held_out)
    assert wanted > 0.75
    for mode in ("naive", "entropy", "none"):
        batches = mx.io.NDArrayIter(images[:300], batch_size=100)
        small = quant.quantize_net(net, calib_data=batches, calib_mode=mode)
        assert abs(accuracy(small, *held_out) - wanted) < 0.01


def _branches():
    x = mx.sym.Pooling(mx.sym.var("data"), kernel=(1, 1), name="pool")
    x = mx.sym.elemwise_add(
        x, mx.sym.Convolution(x, kernel=(1, 1), num_filter=2, name="conv"), name="add"
    )
    symbol = mx.sym.FullyConnected(mx.sym.Flatten(x, name="flat"), num_hidden=2, name="fc")
    shapes, _, _ = symbol.infer_shape(data=(1, 2, 3, 3))
    arrays = zip(symbol.list_arguments()[1:], shapes[1:], strict=True)
    return symbol, {name: mx.nd.ones(shape) for name, shape in arrays}


def test_quantize_nodes_are_named_after_their_input():
    """MXNet numbers the outputs of operators without output names, such as Flatten."""
    symbol, params = _branches()
    made, _, _ = quant.quantize_model(symbol, params, {}, label_names=None, calib_mode="none")
    found = [n for n in made.get_internals().list_outputs() if "_quantize_output0" in n]
    assert found == ["pool_output_quantize_output0", "flat_0_quantize_output0"]


def test_smart_mode_keeps_sums_of_float_arrays_in_float32():
    """As in MXNet; only the convolution reads the pooled array in 8 bits."""
    symbol, params = _branches()
    for mode, wanted in (("smart", False), ("full", True)):
        made, _, _ = quant.quantize_model(
            symbol, params, {}, label_names=None, calib_mode="none", quantize_mode=mode
        )
        assert ("quantized_add_output" in made.get_internals().list_outputs()) == wanted


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"excluded_sym_names": "conv"}, "excluded_sym_names must be a list of strings"),
        ({"excluded_op_names": "Convolution"}, "excluded_op_names must be a list of strings"),
        ({"quantized_dtype": "int4"}, "unknown quantized_dtype int4 received, expected `int8`"),
        ({"calib_mode": "best"}, "unknown calibration mode best received, expected `none`"),
        ({"calib_mode": "naive", "calib_data": np.ones((1, 2, 3, 3))}, "calib_data must be a Data"),
    ],
)
def test_invalid_options_raise(options, match):
    symbol, params = _branches()
    options = {"calib_mode": "none", "label_names": None, **options}
    with pytest.raises(ValueError, match=match):
        quant.quantize_model(symbol, params, {}, **options)


STEPS_RNG = np.random.RandomState(0)
S = mx.sym


def _layers():
    x = S.Convolution(S.var("data"), kernel=(1, 1), num_filter=4, name="conv")
    return S.FullyConnected(S.Activation(x, act_type="relu", name="relu"), num_hidden=3, name="fc")


def _params(symbol, shape):
    shapes, _, _ = symbol.infer_shape(data=shape)
    named = zip(symbol.list_arguments(), shapes, strict=True)
    return {n: mx.nd.array(STEPS_RNG.uniform(-1, 1, s)) for n, s in named if n != "data"}


@pytest.mark.parametrize("granularity", ["tensor-wise", "channel-wise"])
def test_module_binds_a_quantized_model_with_biases(granularity):
    """Dtypes of biases and shapes of ranges are inferred or set on the variables."""
    net, shape = _layers(), (2, 3, 4, 4)
    args = _params(net, shape)
    data = mx.nd.array(STEPS_RNG.uniform(-1, 1, shape))
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


def test_dtype_of_8_bit_bias_is_inferred():
    """As in MXNet 1.9.1; a bias declared as int32 keeps its dtype."""
    small, _ = quant._quantize_symbol(_layers(), mx.cpu(), offline_params=["conv_weight"])
    assert "conv_weight" in small.list_arguments()
    params = ["conv_weight", "conv_bias", "fc_weight", "fc_bias"]
    small, layers = quant._quantize_symbol(_layers(), mx.cpu(), offline_params=params)
    types = dict(zip(small.list_arguments(), small.infer_type(data="float32")[0], strict=True))
    assert types["conv_bias_quantize"] == types["fc_bias_quantize"] == np.int8
    assert layers == ["data", "conv_output", "fc_output"]


def test_private_steps_quantize_parameters_and_write_ranges():
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
def test_optimal_threshold_of_a_single_bin_is_its_edge(dtype):
    """Nothing is clipped if all values are in the last bin."""
    edges = [4 / 999 * i - 2 for i in range(999)] + [2]
    histogram = ([0] * 998 + [1000], edges, -2, 2, 2)
    assert quant._get_optimal_threshold(histogram, dtype, num_quantized_bins=5)[2] == 2
    found = quant._get_optimal_thresholds({"layer": histogram}, dtype, num_quantized_bins=5)
    assert found == {"layer": (-2.0, 2.0)}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("rank", [2, 3])
def test_quantized_convolution_adds_biases_along_channels(dtype, rank):
    """With quantization steps of 1, sums equal those of integers up to 1."""
    x = STEPS_RNG.randint(0 if dtype == "uint8" else -127, 127, (1, 3, *(6,) * rank))
    w, b = STEPS_RNG.randint(-127, 127, (6, 3, *(3,) * rank)), STEPS_RNG.randint(-127, 127, 6)
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


def test_infer_shape_of_ranges_of_pooling_and_flatten():
    """`simple_bind` needs only the shape of the data."""
    data = S.var("data", shape=(1, 2, 8, 8), dtype="int8")
    low, high = S.var("low"), S.var("high")
    pooled = S.contrib.quantized_pooling(data, low, high, kernel=(2, 2), pool_type="max")
    for symbol in (pooled, S.contrib.quantized_flatten(data, low, high)):
        assert symbol.simple_bind(mx.cpu(), grad_req="null").arg_dict["low"].shape == (1,)


def test_recurrent_networks_with_states_are_quantized():
    """A batch can contain a list of states; layers without an 8-bit version are unchanged."""
    net = mx.gluon.rnn.LSTM(hidden_size=4)
    net.initialize()
    net.hybridize()
    data, states = (
        mx.nd.array(STEPS_RNG.rand(5, 2, 3)),
        [mx.nd.zeros((1, 2, 4)), mx.nd.ones((1, 2, 4))],
    )
    wanted = net(data, states)[0].asnumpy()
    small = quant.quantize_net(net, calib_data=[[data, states]], calib_mode="naive")
    for found in (small(data, states), small(data, *states)):
        np.testing.assert_allclose(found[0].asnumpy(), wanted, atol=1e-6)
