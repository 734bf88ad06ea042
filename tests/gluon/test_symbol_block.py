"""Blocks created from symbols."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn
from tests.closeness import assert_equal_up_to_rounding


def graph():
    data = mx.sym.var("data")
    fc = mx.sym.FullyConnected(data, num_hidden=3, name="fc")
    return data, fc, mx.sym.BatchNorm(fc, name="bn", fix_gamma=False)


def test_variables_other_than_inputs_are_parameters():
    data, _, out = graph()
    net = gluon.SymbolBlock(out, data)
    params = net.collect_params()
    assert list(params)[:2] == ["fc_weight", "fc_bias"]
    assert params["bn_moving_mean"].grad_req == "null"
    assert params["fc_weight"].shape is None
    net.initialize(mx.init.One())
    assert net(mx.nd.ones((2, 4))).shape == (2, 3)
    assert params["fc_weight"].shape == (3, 4)


def test_nested_lists_of_intermediate_outputs():
    data, fc, out = graph()
    net = gluon.SymbolBlock([fc, [out]], [data])
    net.initialize(mx.init.One())
    first, (second,) = net(mx.nd.ones((2, 4)))
    assert first.asnumpy()[0, 0] == 5
    assert second.shape == (2, 3)


def test_inputs_other_than_variables_raise():
    _, fc, out = graph()
    with pytest.raises(AssertionError, match="must be variable"):
        gluon.SymbolBlock(out, fc)


def test_params_argument_shares_parameters():
    data, _, out = graph()
    first = gluon.SymbolBlock(out, data)
    second = gluon.SymbolBlock(out, data, params=first.collect_params())
    assert second.params["fc_weight"] is first.params["fc_weight"]


def test_symbol_blocks_apply_to_symbols_and_nest_in_networks():
    data, _, out = graph()
    block = gluon.SymbolBlock(out, data)
    assert block(mx.sym.var("x")).list_arguments()[0] == "x"
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(block, nn.Dense(2))
    net.initialize(mx.init.One())
    eager = net(mx.nd.ones((2, 4))).asnumpy()
    net.hybridize()
    assert_equal_up_to_rounding(net(mx.nd.ones((2, 4))).asnumpy(), eager)
    assert "fc_weight" in net.collect_params()


def test_half_precision_keeps_batch_norm_in_float32():
    data, _, out = graph()
    net = gluon.SymbolBlock(out, data)
    net.initialize()
    net(mx.nd.ones((1, 2)))
    net.cast("float16")
    params = net.collect_params()
    assert params["fc_weight"].dtype == "float16"
    assert params["bn_gamma"].dtype == params["bn_moving_var"].dtype == "float32"


def exported(tmp_path, train=False):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(3), nn.BatchNorm(), nn.Dense(2))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((2, 4)))
    net.export(str(tmp_path / "net"), epoch=3)
    return net, str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0003.params")


def test_imported_block_predicts_and_trains(tmp_path):
    net, symbol, params = exported(tmp_path)
    other = gluon.SymbolBlock.imports(symbol, "data", params, ctx=mx.cpu(1))
    x = mx.nd.ones((2, 4), ctx=mx.cpu(1))
    net_out, out = net(mx.nd.ones((2, 4))).asnumpy(), other(x)
    assert_equal_up_to_rounding(out.asnumpy(), net_out)
    trainer = gluon.Trainer(other.collect_params(), "sgd", {"learning_rate": 0.1})
    with mx.autograd.record():
        loss = (other(x) ** 2).sum()
    loss.backward()
    trainer.step(1)
    assert not np.allclose(other(x).asnumpy(), net_out)


def test_imports_without_parameters_then_initialize(tmp_path):
    _, symbol, _ = exported(tmp_path)
    net = gluon.SymbolBlock.imports(symbol, ["data"])
    net.initialize()
    assert net(mx.nd.ones((1, 4))).shape == (1, 2)


def test_imports_error_names_missing_parameters(tmp_path):
    _, symbol, params = exported(tmp_path)
    arrays = mx.nd.load(params)
    arrays.pop("arg:net_dense0_bias")
    mx.nd.save(params, arrays)
    with pytest.raises(AssertionError, match="'net_dense0_bias' is missing in file"):
        gluon.SymbolBlock.imports(symbol, ["data"], params)
    gluon.SymbolBlock.imports(symbol, ["data"], params, allow_missing=True)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_copies_compute_the_same_outputs(tmp_path, how):
    _, symbol, params = exported(tmp_path)
    net = gluon.SymbolBlock.imports(symbol, ["data"], params)
    x = mx.nd.ones((2, 4))
    assert_equal_up_to_rounding(how(net)(x).asnumpy(), net(x).asnumpy())


def test_load_init_of_individual_parameters(tmp_path):
    net, symbol, params = exported(tmp_path)
    other = gluon.nn.SymbolBlock(outputs=mx.sym.load(symbol), inputs=mx.sym.var("data"))
    mine = other.collect_params()
    for name, array in mx.nd.load(params).items():
        mine[name[4:]]._load_init(array, ctx=mx.cpu())
    x = mx.nd.ones((2, 4))
    assert_equal_up_to_rounding(other(x).asnumpy(), net(x).asnumpy())


@pytest.mark.parametrize("inputs", ["data", ["data"]])
def test_names_as_inputs_raise(inputs):
    _, _, out = graph()
    with pytest.raises(ValueError, match="list of Symbol or NDArray"):
        gluon.SymbolBlock(out, inputs)


def test_wrong_number_of_input_symbols_raises():
    data, side = mx.sym.var("data"), mx.sym.var("side")
    net = gluon.SymbolBlock(data + side, [data, side])
    with pytest.raises(AssertionError, match="but 1 were given"):
        net(mx.sym.var("x"))


def test_input_can_be_an_output():
    net = gluon.nn.Dense(2, in_units=3, prefix="fc_")
    data = mx.sym.var("data")
    all_results = gluon.SymbolBlock(net(data).get_internals(), data, params=net.collect_params())
    found = all_results(mx.sym.var("image"))
    assert [s.name for s in found] == ["image", "fc_weight", "fc_bias", "fc_fwd"]


def test_sparse_parameters_raise():
    data, weight = mx.sym.var("data"), mx.sym.var("weight", stype="row_sparse")
    out = mx.sym.dot(data, weight)
    with pytest.raises(AssertionError, match="'weight' because its storage type is 'row_sparse'"):
        gluon.SymbolBlock(out, data)
    assert list(gluon.SymbolBlock(out, [data, weight]).collect_params()) == []
