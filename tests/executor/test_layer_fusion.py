"""Layers fused as MXNet's oneDNN backend does: names, attributes, values and 8-bit forms."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib import quantization as quant

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
def test_fused_layers_compute_the_same(name):
    """Also after a round through JSON."""
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
    """Calibrated layers give 8 bits at once and have the range in their attributes."""
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
