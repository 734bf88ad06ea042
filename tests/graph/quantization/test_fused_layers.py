"""Fused layers of MXNet's oneDNN backend: loading, running, saving, fusing."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd, sym
from mxnet.contrib import quantization as quant
from tests.closeness import assert_equal_up_to_rounding
from tests.golden import HERE as GOLDEN

HERE = GOLDEN / "quantized_models"
RESULTS = np.load(HERE / "results.npz")
KINDS = ["tensor", "channel"]


def close_to(found, wanted, share):
    np.testing.assert_allclose(found, wanted, atol=share * abs(RESULTS["float"]).max())


@pytest.mark.parametrize("kind", KINDS)
def test_network_quantized_by_mxnet_matches_its_results(kind):
    files = f"{HERE}/{kind}-symbol.json", ["data"], f"{HERE}/{kind}-0000.params"
    net = mx.gluon.SymbolBlock.imports(*files)
    found = net(mx.nd.array(RESULTS["data"])).asnumpy()
    close_to(found, RESULTS[kind], 0.08)  # MXNet rounds weights as well
    close_to(found, RESULTS["float"], 0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_module_loads_a_network_quantized_by_mxnet(kind, tmp_path):
    symbol, arguments, auxiliary = mx.model.load_checkpoint(str(HERE / kind), 0)
    assert sorted(symbol.list_auxiliary_states()) == sorted(auxiliary)
    assert len(auxiliary) == 6
    mx.model.save_checkpoint(str(tmp_path / "again"), 0, symbol, arguments, auxiliary)
    symbol, arguments, auxiliary = mx.model.load_checkpoint(str(tmp_path / "again"), 0)
    module = mx.mod.Module(symbol, label_names=None)
    module.bind([("data", RESULTS["data"].shape)], for_training=False)
    module.set_params(arguments, auxiliary)
    module.forward(mx.io.DataBatch([mx.nd.array(RESULTS["data"])]), is_train=False)
    close_to(module.get_outputs()[0].asnumpy(), RESULTS["float"], 0.02)


def test_infer_shape_and_type_of_fused_layers():
    symbol = mx.sym.load(f"{HERE}/tensor-symbol.json")
    shapes, (out,), _ = symbol.infer_shape(data=(2, 4, 8, 8))
    named = dict(zip(symbol.list_arguments(), shapes, strict=True))
    assert out == (2, 5) and named["net_conv0_weight"] == (8, 4, 3, 3)
    internals = symbol.get_internals()
    name = next(n for n in internals.list_outputs() if "conv_bn_act" in n)
    _, types, _ = internals[name].infer_type(data="float32")
    assert types[0] == np.uint8


def compiled(kind):
    files = f"{HERE}/{kind}-symbol.json", ["data"], f"{HERE}/{kind}-0000.params"
    net = mx.gluon.SymbolBlock.imports(*files)
    net.hybridize()
    return net, mx.nd.array(RESULTS["data"])


def operators(net, data):
    rows = str(net.compiled(data)).splitlines()[3:]
    return [row.split()[1] for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_layers_compute_in_8_bits(kind):
    net, data = compiled(kind)
    found = operators(net, data)
    assert found.count("_fused_int8_convolution") == 3 and found.count("_fused_int8_dense") == 2
    assert found.count("_fused_int8_quantize") == 1  # relu between layers is part of them
    assert not any("mkldnn" in name or "dequantize" in name for name in found)
    close_to(net(data).asnumpy(), RESULTS["float"], 0.02)


@pytest.mark.parametrize("kind", ["residual", "residual_entropy"])
def test_quantize_model_mkldnn_models_match_mxnet_1_9_1(kind):
    """Additions and relu are fused into the layers; sigmoid and leaky run in float32."""
    net, data = compiled(kind)
    found = operators(net, data)
    assert found.count("_fused_int8_convolution") == 4 and found.count("_fused_int8_dense") == 2
    assert not any(name.startswith(("_sg_", "_contrib_", "elemwise_add")) for name in found)
    largest = abs(RESULTS["residual_float"]).max()
    np.testing.assert_allclose(net(data).asnumpy(), RESULTS[kind], atol=0.03 * largest)
    np.testing.assert_allclose(net(data).asnumpy(), RESULTS["residual_float"], atol=0.03 * largest)


@pytest.mark.parametrize("kind", [*KINDS, "residual"])
def test_compiled_int8_layers_equal_unoptimized_ones(kind, monkeypatch):
    net, data = compiled(kind)
    fast = net(data).asnumpy()
    monkeypatch.setenv("MXNET_GRAPH_PASSES", "0")
    net.hybridize()
    np.testing.assert_allclose(net(data).asnumpy(), fast, atol=0.03 * abs(fast).max())


def run_changed(old, new):
    """Return the result of a file in which a text is replaced."""
    text = (HERE / "tensor-symbol.json").read_text()
    assert old in text
    symbol = mx.sym.load_json(text.replace(old, new))
    _, arguments, auxiliary = mx.model.load_checkpoint(str(HERE / "tensor"), 0)
    given = {**arguments, "data": mx.nd.array(RESULTS["data"])}
    return symbol.bind(mx.cpu(), given, aux_states=auxiliary, grad_req="null").forward()[0]


DAMAGE = {
    "no weight": ("[[0, 0, 0], [1, 0, 0]]", "[[0, 0, 0]]"),
    "reads itself": ("[[2, 0, 0], [3, 0, 0]", "[[7, 0, 0], [3, 0, 0]"),
    "no layer": ('"op": "Convolution"', '"op": "exp"'),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_layers_raise(name):
    with pytest.raises(mx.MXNetError):
        run_changed(*DAMAGE[name])


def test_batch_norm_of_a_different_axis_is_not_folded(monkeypatch):
    change = '"axis": "1"', '"axis": "3"'
    found = run_changed(*change).asnumpy()
    monkeypatch.setenv("MXNET_GRAPH_PASSES", "0")
    np.testing.assert_allclose(found, run_changed(*change).asnumpy(), rtol=1e-5)


def test_output_names_and_ranges_match_mxnet():
    internals = mx.sym.load(f"{HERE}/tensor-symbol.json").get_internals()
    names = [n for n in internals.list_outputs() if "bn_act" in n or "eltwise" in n]
    layer, dense = "quantized_sg_mkldnn_conv_bn_act_2", names[-1].rsplit("_max", 1)[0]
    assert names == [
        *(f"{layer}_{end}" for end in ("output", "output_min", "output_max")),
        *(f"{dense}_{end}" for end in ("output", "min_output", "max_output")),
    ]


def test_calling_a_fused_layer_directly_raises():
    with pytest.raises(mx.MXNetError, match="loading a file"):
        mx.nd._internal._sg_mkldnn_conv(mx.nd.ones((1,)), num_args=1)


S, SHAPE = mx.sym, (2, 3, 6, 6)
DATA = S.var("data")


def _conv(name="conv", **options):
    return S.Convolution(DATA, kernel=(3, 3), pad=(1, 1), num_filter=3, name=name, **options)


def _dense(**options):
    return S.FullyConnected(DATA, num_hidden=4, name="fc", **options)


def _act(x, kind="relu"):
    return S.Activation(x, act_type=kind)


_HEADS = {"enable_float_output": "False", "heads": "2", "quantized": "False"}


def _attention():
    x = S.reshape(DATA, shape=(6, 3, 12))
    scores = S.softmax(S.contrib.interleaved_matmul_selfatt_qk(x, heads=2))
    return S.contrib.interleaved_matmul_selfatt_valatt(x, scores, heads=2)


# The nodes and their attributes are those of MXNet 1.9.1.
CASES = {
    "conv": (lambda: _conv(), {"sg_mkldnn_conv_0": {}}),
    "act": (lambda: _act(_conv()), {"sg_mkldnn_conv_act_0": {"with_act": "true"}}),
    "bn act": (
        lambda: _act(S.BatchNorm(_conv(), name="bn", fix_gamma=False)),
        {"sg_mkldnn_conv_bn_act_0": {"with_act": "true", "with_bn": "true"}},
    ),
    "add": (lambda: DATA + _conv(), {"sg_mkldnn_conv_add_0": {"with_sum": "true"}}),
    "two layers": (
        lambda: _act(_act(S.BatchNorm(_conv(), name="bn")) + _conv("conv2", no_bias=True)),
        {
            "sg_mkldnn_conv_bn_act_0": {"with_act": "true", "with_bn": "true"},
            "sg_mkldnn_conv_add_act_1": {"with_postsum_act": "true", "with_sum": "true"},
        },
    ),
    "softsign stays": (lambda: _act(_conv(), "softsign"), {"sg_mkldnn_conv_0": {}}),
    "twice read": (lambda: (lambda c: _act(c) + c)(_conv()), {"sg_mkldnn_conv_0": {}}),
    "dense": (
        lambda: S.square(_dense()),
        {"sg_mkldnn_fully_connected_eltwise_0": {"with_eltwise": "True"}},
    ),
    "attention": (
        lambda: _attention(),
        {
            "sg_mkldnn_selfatt_qk_0": _HEADS,
            "sg_mkldnn_selfatt_valatt_1": _HEADS,
        },
    ),
    "dense relu": (
        lambda: _act(_dense(flatten=False, no_bias=True)),
        {"sg_mkldnn_fully_connected_eltwise_0": {"with_eltwise": "True"}},
    ),
}


def _arrays(symbol):
    rng = np.random.RandomState(0)
    shapes, _, states = symbol.infer_shape(data=SHAPE)
    args = {
        n: mx.nd.array(rng.uniform(-1, 1, s))
        for n, s in zip(symbol.list_arguments(), shapes, strict=True)
    }
    aux = {
        n: mx.nd.array(rng.uniform(0.5, 1, s))
        for n, s in zip(symbol.list_auxiliary_states(), states, strict=True)
    }
    return args, aux


def _run(symbol, args, aux):
    given = {n: args[n] for n in symbol.list_arguments()}
    return symbol.bind(mx.cpu(), given, aux_states=aux, grad_req="null").forward()[0].asnumpy()


@pytest.mark.parametrize("name", CASES)
def test_fused_layers_equal_the_unfused_graph(name):
    """Also after a JSON roundtrip."""
    build, wanted = CASES[name]
    symbol = build()
    fused = symbol.get_backend_symbol("MKLDNN")
    found = {k: v for k, v in fused.attr_dict().items() if k.startswith("sg_")}
    names = [n.removesuffix("_output") for n in fused.get_internals().list_outputs()]
    assert [n for n in names if n.startswith("sg_")] == list(wanted)
    assert found == {k: v for k, v in wanted.items() if v}
    args, aux = _arrays(symbol)
    for each in (fused, S.load_json(fused.tojson())):
        np.testing.assert_allclose(_run(each, args, aux), _run(symbol, args, aux), atol=1e-5)


@pytest.mark.parametrize("mode", ["naive", "none"])
@pytest.mark.parametrize("name", ["bn act", "add", "two layers", "dense", "attention"])
def test_fused_layers_are_quantized(name, mode):
    """Calibrated layers return 8 bits and have the range in their attributes."""
    symbol = CASES[name][0]()
    args, aux = _arrays(symbol)
    data = args["data"]
    small, params, states = quant.quantize_model(
        symbol.get_backend_symbol("MKLDNN_QUANTIZE"),
        {n: a for n, a in args.items() if n != "data"},
        aux, label_names=None, calib_mode=mode, calib_data=[data],
        quantized_dtype="auto", quantize_mode="full",
    )  # fmt: skip
    layers = {k: v for k, v in small.attr_dict().items() if k.startswith("quantized_sg_mkldnn")}
    assert len(layers) == len(CASES[name][1])
    assert all(("min_calib_range" in v) == (mode == "naive") for v in layers.values())
    found, wanted = _run(small, {**params, "data": data}, states), _run(symbol, args, aux)
    assert np.abs(found - wanted).max() < 0.03 * np.abs(wanted).max()


def test_optimize_for_fuses_as_get_backend_symbol_does():
    dense = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    net = mx.sym.Activation(dense, act_type="relu")
    fused = net.optimize_for("MKLDNN", dedup_subgraph=True, skip_infer=True)
    assert fused.tojson() == net.get_backend_symbol("MKLDNN").tojson()
    assert "_sg_mkldnn_fully_connected" in fused.tojson()
    assert "_sg_mkldnn" not in net.tojson()


@pytest.fixture
def plain():
    data = sym.var("data")
    out = sym.Convolution(data, kernel=(3, 3), num_filter=4, name="conv")
    out = sym.Activation(sym.BatchNorm(out, name="bn"), act_type="relu", name="act")
    return sym.FullyConnected(out, num_hidden=3, name="fc")


def bind(symbol):
    shapes, _, states = symbol.infer_shape(data=(2, 3, 6, 6))
    rng = np.random.RandomState(0)
    values = {}
    names = symbol.list_arguments() + symbol.list_auxiliary_states()
    for name, shape in sorted(zip(names, shapes + states, strict=True)):
        values[name] = nd.array(rng.uniform(0.5, 1, shape))
    args, aux = ({n: values[n] for n in names} for names in (
        symbol.list_arguments(), symbol.list_auxiliary_states()
    ))  # fmt: skip
    return symbol.bind(mx.cpu(), args, aux_states=aux, grad_req="null")


def test_layers_in_subgraph_nodes_are_folded_like_plain_ones(plain):
    held = plain.optimize_for("MKLDNN")
    assert '"_sg_mkldnn_conv"' in held.tojson()
    executors = [bind(plain), bind(held)]
    results = [e.forward(is_train=False)[0].asnumpy() for e in executors]
    assert_equal_up_to_rounding(*results)
    compiled = [[n.op.name for n in e.compiled.after.nodes if n.op] for e in executors]
    assert compiled[0] == compiled[1]


def test_subgraph_nodes_remain_if_the_pass_is_off(plain, monkeypatch):
    monkeypatch.setenv("MXNET_GRAPH_PASSES", "0")
    held = bind(plain.optimize_for("MKLDNN"))
    held.forward(is_train=False)
    assert "_sg_mkldnn_conv" in [n.op.name for n in held.compiled.after.nodes if n.op]
