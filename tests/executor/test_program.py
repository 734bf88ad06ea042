"""A program runs step by step, then as one function: the same results, the same errors."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd

RUNS = 4


def test_every_run_gives_the_same():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    parts = mx.sym.SliceChannel(a * 2 + b, num_outputs=2, axis=1)
    net = mx.sym.Group([parts[1] - parts[0], mx.sym.SliceChannel(b, num_outputs=1, axis=1), a])
    op = nd.CachedOp(net)
    x, y = nd.array([[1, 2]]), nd.array([[10, 30]])
    for _ in range(RUNS):
        first, second, third = op(x, y)
        assert first.asscalar() == 22
        np.testing.assert_array_equal(second.asnumpy(), y.asnumpy())
        third[:] = x + 1  # an input that is an output is itself
        np.testing.assert_array_equal(x.asnumpy(), [[2, 3]])
        x -= 1


def test_unread_outputs_and_unused_optional_inputs():
    x = mx.sym.Variable("x")
    top = mx.sym.topk(x, k=2, ret_typ="both")[1]
    net = mx.sym.FullyConnected(top, num_hidden=2, no_bias=True, name="fc")
    exe = net.simple_bind(mx.cpu(), x=(1, 3))
    exe.arg_dict["fc_weight"][:] = nd.array([[1, 0], [0, 1]])
    for _ in range(RUNS):
        out = exe.forward(x=nd.array([[3, 9, 5]]))[0]
        np.testing.assert_array_equal(out.asnumpy(), [[1, 2]])


def test_errors_tell_the_step_in_every_run():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    op = nd.CachedOp(mx.sym.elemwise_add(mx.sym.exp(a, name="fine"), b, name="broken") * 2)
    op(nd.ones((2, 2)), nd.ones((2, 2)))
    for _ in range(RUNS):
        with pytest.raises(mx.MXNetError, match=r"broken.*inputs: lhs \(2, 2\) float32"):
            op(nd.ones((2, 2)), nd.ones((2, 3)))
        op(nd.ones((2, 2)), nd.ones((2, 2)))


def test_values_die_after_their_last_use():
    x = mx.sym.Variable("x")
    op = nd.CachedOp(mx.sym.sin(mx.sym.cos(mx.sym.exp(x))))
    op(nd.ones((3,)))
    (program,) = op._programs.values()
    made, alive = [], []

    def spied(kernel):
        def run(*tensors, **attrs):
            alive.append(sum(r() is not None for r in made[:-1]))
            out = kernel(*tensors, **attrs)
            made.append(weakref.ref(out))
            return out

        return run

    program.steps = [s._replace(kernel=spied(s.kernel)) for s in program.steps]
    for _ in range(RUNS):
        made.clear()
        op(nd.ones((3,)))
    assert len(alive) == 3 * RUNS
    assert not any(alive)


def test_long_graphs_become_one_function():
    x = mx.sym.Variable("x")
    for _ in range(3000):
        x = x + 1
    op = nd.CachedOp(x)
    for _ in range(RUNS):
        assert op(nd.zeros((2,))).asnumpy().tolist() == [3000, 3000]
    (program,) = op._programs.values()
    assert program._function is not None
