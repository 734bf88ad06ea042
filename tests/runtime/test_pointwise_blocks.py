"""Chains of pointwise operators on large arrays run block by block with equal results.

Equal up to rounding: torch computes the end of an array with other instructions than the rest, and
the ends of blocks are elsewhere than the end of the whole array.
"""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.runtime import control_flow as pointwise_blocks
from tests.closeness import assert_equal_up_to_rounding

SHAPE = (1025, 600)  # more than 2 ** 19 elements, and not a multiple of a block


@pytest.fixture(autouse=True, params=[8192, 10_001], ids=["filled_vectors", "ragged_blocks"])
def small_blocks(request, monkeypatch):
    monkeypatch.setattr(pointwise_blocks, "BLOCK", request.param)


def array(seed, shape=SHAPE):
    return nd.array(np.random.RandomState(seed).normal(size=shape))


def run(symbol, monkeypatch, passes, **arrays):
    monkeypatch.setenv("MXNET_GRAPH_PASSES", passes)
    executor = symbol.bind(mx.cpu(), arrays)
    outputs = [o.asnumpy() for o in executor.forward()]
    return outputs, executor.compiled.rules.get("block_pointwise", 0)


def check(symbol, monkeypatch, count=1, **arrays):
    blocked, found = run(symbol, monkeypatch, "1", **arrays)
    plain, _ = run(symbol, monkeypatch, "0", **arrays)
    assert found == count
    for a, b in zip(blocked, plain, strict=True):
        assert_equal_up_to_rounding(a, b)


x, y = mx.sym.Variable("x"), mx.sym.Variable("y")


def test_chain_with_two_inputs(monkeypatch):
    h = mx.sym.tanh(x * y + x) * mx.sym.sigmoid(y) - 0.5 * x
    out = mx.sym.exp(-h * h) + mx.sym.Activation(h, act_type="relu")
    check(out, monkeypatch, x=array(0), y=array(1))


def test_chain_with_several_outputs(monkeypatch):
    first = mx.sym.exp(x)
    second = 2 / (first + 1)
    check(mx.sym.Group([second, first, second * first]), monkeypatch, x=array(2))


def test_chain_with_operators_lacking_an_out_variant(monkeypatch):
    out = mx.sym.Activation(mx.sym.clip(x * 2, -1, 1), act_type="softrelu") > 0.5
    check(mx.sym.round(out + 0.5), monkeypatch, x=array(3))


def test_nan_and_infinity_are_propagated(monkeypatch):
    data = array(4)
    data[0, :3] = nd.array([np.nan, np.inf, -np.inf])
    check(mx.sym.relu(mx.sym.relu(x) * 2) + 1, monkeypatch, x=data)


def test_short_chains_small_arrays_and_broadcasts_run_unblocked(monkeypatch):
    check(mx.sym.exp(x * 2), monkeypatch, 0, x=array(5))
    check(mx.sym.exp(mx.sym.tanh(x * 2)), monkeypatch, 0, x=array(5, (10, 10)))
    row = array(6, (1, 600))
    chain = mx.sym.exp(mx.sym.broadcast_mul(mx.sym.broadcast_add(x, y), y))
    check(chain, monkeypatch, 0, x=array(5), y=row)


def test_compiled_chain_with_different_shapes_and_layouts(monkeypatch):
    net = mx.nd.CachedOp(mx.sym.exp(mx.sym.tanh(x * 2) + x))
    for data in (array(7), array(8, (3, 4)), array(9, (600, 1025)).T, array(10).astype("float64")):
        expected = nd.exp(nd.tanh(data * 2) + data)
        assert_equal_up_to_rounding(net(data).asnumpy(), expected.asnumpy())


def test_pointwise_chains_run_unblocked_when_training():
    executor = mx.sym.exp(mx.sym.tanh(x * 2)).simple_bind(mx.cpu(), x=SHAPE)
    executor.forward(is_train=True)
    assert "block_pointwise" not in executor.compiled.rules
