"""Layers that nodes hold run as the nodes of any other graph."""

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd, sym
from tests.closeness import assert_equal_up_to_rounding


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


def test_held_layers_are_folded_like_plain_ones(plain):
    held = plain.optimize_for("MKLDNN")
    assert '"_sg_mkldnn_conv"' in held.tojson()
    executors = [bind(plain), bind(held)]
    results = [e.forward(is_train=False)[0].asnumpy() for e in executors]
    assert_equal_up_to_rounding(*results)
    compiled = [[n.op.name for n in e.compiled.after.nodes if n.op] for e in executors]
    assert compiled[0] == compiled[1]


def test_held_layers_stay_where_the_pass_is_off(plain, monkeypatch):
    monkeypatch.setenv("MXNET_GRAPH_PASSES", "0")
    held = bind(plain.optimize_for("MKLDNN"))
    held.forward(is_train=False)
    assert "_sg_mkldnn_conv" in [n.op.name for n in held.compiled.after.nodes if n.op]
