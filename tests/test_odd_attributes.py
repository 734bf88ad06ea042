"""Attributes and sizes that no sane program has: clear errors, at once."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd


def altered(symbol, operator, **attrs):
    """Return a symbol from JSON in which an operator has other attributes."""
    described = json.loads(symbol.tojson())
    for node in described["nodes"]:
        if node["op"] == operator:
            node["attrs"].update(attrs)
    return mx.sym.load_json(json.dumps(described))


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"stride": "(-1, -1)"}, r"stride \(-1, -1\) at least 1"),
        ({"stride": "(0, 0)"}, r"stride \(0, 0\) at least 1"),
        ({"kernel": "(0, 2)"}, r"kernel size: \(0, 2\) must be at least 1"),
        ({"pad": "(-1, 0)"}, r"pad \(-1, 0\) not negative"),
    ],
)
def test_pooling_over_no_window_is_refused(attrs, message):
    pooled = mx.sym.Pooling(mx.sym.var("x"), kernel=(2, 2), stride=(2, 2))
    with pytest.raises(mx.MXNetError, match=message):
        altered(pooled, "Pooling", **attrs).eval(x=nd.ones((1, 1, 8, 8)))


@pytest.mark.parametrize("count", ["1e30", "1000000000", "1" + "0" * 30])
def test_no_file_makes_millions_of_outputs(count):
    split = mx.sym.SliceChannel(mx.sym.var("x"), num_outputs=2)
    with pytest.raises(mx.MXNetError, match=r"num_outputs should"):
        altered(split, "SliceChannel", num_outputs=count)
    with pytest.raises(mx.MXNetError, match=r"num_outputs should"):
        nd.SliceChannel(nd.ones((4, 4)), num_outputs=count)


def test_deeply_nested_control_flow_loads():
    def body(level):
        if level == 0:
            return lambda data, total: (data + total, total)
        inner = body(level - 1)

        def step(data, total):
            positive = mx.sym.sum(data) > 0
            return mx.sym.contrib.cond(positive, lambda: inner(data, total)[0], lambda: data), total

        return step

    out, _ = mx.sym.contrib.foreach(body(20), mx.sym.var("d"), mx.sym.var("s"))
    again = mx.sym.load_json(out.tojson())
    found = again.eval(d=nd.ones((2, 2)), s=nd.ones((2,)))[0]
    assert found.asnumpy().tolist() == [[2, 2], [2, 2]]


def test_the_norm_of_huge_and_of_tiny_values():
    assert nd.norm(nd.array([3e30, 4e30])).asscalar() == pytest.approx(5e30, rel=1e-6)
    assert nd.norm(nd.array([3e-30, 4e-30])).asscalar() == pytest.approx(5e-30, rel=1e-6)
    rows = nd.array([[3e30, 4e30], [0, 0], [3, 4]])
    rows.attach_grad()
    with mx.autograd.record():
        norms = nd.norm(rows, axis=1)
    norms.backward()
    np.testing.assert_allclose(norms.asnumpy(), [5e30, 0, 5], rtol=1e-6)
    np.testing.assert_allclose(rows.grad.asnumpy(), [[0.6, 0.8], [0, 0], [0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize(
    "allocate",
    [
        lambda shape: nd.full(shape, 1.0),
        nd.empty,
        nd.zeros,
        lambda shape: nd.broadcast_to(nd.ones((1, 1)), shape=shape),
        lambda shape: mx.sym.var("x").simple_bind(mx.cpu(), x=shape),
        lambda shape: mx.gluon.Parameter("w", shape=shape).initialize(),
        lambda shape: nd.sparse.zeros("row_sparse", shape).tostype("default"),
    ],
)
def test_memory_that_is_not_there_is_an_error_with_the_amount(allocate):
    with pytest.raises(MemoryError, match=r"out of memory: \d+\.\d GiB \(\d+ bytes\)") as error:
        allocate((1 << 30, 1 << 20))
    assert isinstance(error.value, mx.MXNetError)
    assert nd.ones(2).sum().asscalar() == 2
