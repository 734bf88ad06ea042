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


def test_such_layers_come_from_files_only():
    with pytest.raises(mx.MXNetError, match="loading a file"):
        mx.nd._internal._sg_mkldnn_conv(mx.nd.ones((1,)), num_args=1)
