"""Files with the fused layers of MXNet's oneDNN backend load, run, and are saved again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mxnet as mx

HERE = Path(__file__).parents[1] / "golden" / "quantized_models"
RESULTS = np.load(HERE / "results.npz")
KINDS = ["tensor", "channel"]


def close_to(found, wanted, share):
    np.testing.assert_allclose(found, wanted, atol=share * abs(RESULTS["float"]).max())


@pytest.mark.parametrize("kind", KINDS)
def test_a_network_that_mxnet_1_9_1_quantized_gives_its_results(kind):
    files = f"{HERE}/{kind}-symbol.json", ["data"], f"{HERE}/{kind}-0000.params"
    net = mx.gluon.SymbolBlock.imports(*files)
    found = net(mx.nd.array(RESULTS["data"])).asnumpy()
    close_to(found, RESULTS[kind], 0.08)  # MXNet rounds weights as well
    close_to(found, RESULTS["float"], 0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_module_runs_it_and_finds_the_auxiliary_states(kind, tmp_path):
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


def test_shapes_and_types_are_inferred():
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
def test_models_of_quantize_model_mkldnn_give_the_results_of_mxnet_1_9_1(kind):
    """Additions and relu are part of the layers; sigmoid and leaky run on their real numbers."""
    net, data = compiled(kind)
    found = operators(net, data)
    assert found.count("_fused_int8_convolution") == 4 and found.count("_fused_int8_dense") == 2
    assert not any(name.startswith(("_sg_", "_contrib_", "elemwise_add")) for name in found)
    largest = abs(RESULTS["residual_float"]).max()
    np.testing.assert_allclose(net(data).asnumpy(), RESULTS[kind], atol=0.03 * largest)
    np.testing.assert_allclose(net(data).asnumpy(), RESULTS["residual_float"], atol=0.03 * largest)


@pytest.mark.parametrize("kind", [*KINDS, "residual"])
def test_compiled_layers_are_those_that_run_one_by_one(kind, monkeypatch):
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
def test_damaged_layers_are_errors(name):
    with pytest.raises(mx.MXNetError):
        run_changed(*DAMAGE[name])


def test_a_normalization_of_another_axis_is_not_folded(monkeypatch):
    change = '"axis": "1"', '"axis": "3"'
    found = run_changed(*change).asnumpy()
    monkeypatch.setenv("MXNET_GRAPH_PASSES", "0")
    np.testing.assert_allclose(found, run_changed(*change).asnumpy(), rtol=1e-5)


def test_outputs_have_the_names_and_ranges_of_mxnet():
    internals = mx.sym.load(f"{HERE}/tensor-symbol.json").get_internals()
    names = [n for n in internals.list_outputs() if "bn_act" in n or "eltwise" in n]
    layer, dense = "quantized_sg_mkldnn_conv_bn_act_2", names[-1].rsplit("_max", 1)[0]
    assert names == [
        *(f"{layer}_{end}" for end in ("output", "output_min", "output_max")),
        *(f"{dense}_{end}" for end in ("output", "min_output", "max_output")),
    ]


def test_such_layers_come_from_files_only():
    with pytest.raises(mx.MXNetError, match="loading a file"):
        mx.nd._internal._sg_mkldnn_conv(mx.nd.ones((1,)), num_args=1)
