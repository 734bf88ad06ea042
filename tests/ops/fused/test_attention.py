"""Attention is fused to one call in prediction."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd

q, k, v, x = (mx.sym.Variable(name) for name in "qkvx")


def normal(*shape, seed=0):
    return nd.array(np.random.RandomState(seed).normal(size=shape))


def scores(scale=None):
    made = mx.sym.batch_dot(q, k, transpose_b=True)
    return made if scale is None else scale(made)


def attend_to_self(heads=2):
    weights = mx.sym.softmax(mx.sym.contrib.interleaved_matmul_selfatt_qk(x, heads=heads))
    return mx.sym.contrib.interleaved_matmul_selfatt_valatt(x, weights, heads=heads)


def run(symbol, monkeypatch, arrays, passes):
    monkeypatch.setenv("MXNET_GRAPH_PASSES", passes)
    executor = symbol.bind(mx.cpu(), arrays)
    return executor.forward()[0].asnumpy(), executor.compiled.rules.get("fuse_attention", 0)


def check(symbol, monkeypatch, wanted=1, **arrays):
    fused, found = run(symbol, monkeypatch, arrays, "1")
    plain, _ = run(symbol, monkeypatch, arrays, "0")
    np.testing.assert_allclose(fused, plain, rtol=1e-5, atol=1e-5)
    assert found == wanted


@pytest.mark.parametrize(
    "scale", [None, lambda s: s * 0.3, lambda s: s / 8], ids=["plain", "times", "divided"]
)
def test_batch_dot_attention_is_fused(monkeypatch, scale):
    symbol = mx.sym.batch_dot(mx.sym.softmax(scores(scale)), v)
    arrays = {"q": normal(3, 40, 8), "k": normal(3, 50, 8, seed=1), "v": normal(3, 50, 6, seed=2)}
    check(symbol, monkeypatch, **arrays)


def test_interleaved_self_attention_is_fused(monkeypatch):
    check(attend_to_self(), monkeypatch, x=normal(40, 3, 2 * 3 * 8))


def test_nan_and_infinity_are_propagated(monkeypatch):
    data = normal(40, 1, 2 * 3 * 8)
    data[3, 0, 5] = np.nan
    data[7, 0, 9] = np.inf
    fused, _ = run(attend_to_self(), monkeypatch, {"x": data}, "1")
    plain, _ = run(attend_to_self(), monkeypatch, {"x": data}, "0")
    np.testing.assert_array_equal(np.isfinite(fused), np.isfinite(plain))


@pytest.mark.parametrize(
    "symbol",
    [
        mx.sym.batch_dot(mx.sym.softmax(scores(), axis=1), v),
        mx.sym.batch_dot(mx.sym.softmax(scores(), temperature=2.0), v),
        mx.sym.batch_dot(mx.sym.softmax(mx.sym.batch_dot(q, k)), v),
        mx.sym.batch_dot(mx.sym.softmax(scores()), v, transpose_b=True),
    ],
)
def test_unrelated_graphs_are_not_fused(monkeypatch, symbol):
    check(symbol, monkeypatch, 0, q=normal(2, 40, 40), k=normal(2, 40, 40), v=normal(2, 40, 40))


def test_short_sequences_are_not_fused(monkeypatch):
    check(attend_to_self(), monkeypatch, 0, x=normal(5, 3, 2 * 3 * 8))


def test_attention_with_weights_as_output_is_not_fused(monkeypatch):
    weights = mx.sym.softmax(scores())
    symbol = mx.sym.Group([mx.sym.batch_dot(weights, v), weights])
    check(symbol, monkeypatch, 0, q=normal(2, 40, 8), k=normal(2, 40, 8), v=normal(2, 40, 8))


def test_compiled_attention_runs_with_different_lengths():
    net = nd.CachedOp(attend_to_self())
    for length in (40, 60, 3):
        data = normal(length, 2, 2 * 3 * 8)
        weights = nd.softmax(nd.contrib.interleaved_matmul_selfatt_qk(data, heads=2))
        wanted = nd.contrib.interleaved_matmul_selfatt_valatt(data, weights, heads=2)
        np.testing.assert_allclose(net(data).asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-5)
