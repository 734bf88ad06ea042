"""Loops and branches, eager and symbolic, forward and backward."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, nd

DATA = np.arange(6, dtype="float32").reshape(3, 2)


def _step(x, states):
    return x * states[0] + 1, [states[0] + x]


def test_foreach_eager_equals_symbol():
    x, s = nd.array(DATA), nd.ones(2)
    x.attach_grad()
    s.attach_grad()
    with autograd.record():
        out, last = nd.contrib.foreach(_step, x, [s])
        loss = (out * out).sum() + last[0].sum()
    loss.backward()
    sym_out, sym_last = mx.sym.contrib.foreach(_step, mx.sym.var("x"), [mx.sym.var("s")])
    loss = mx.sym.sum(sym_out * sym_out) + mx.sym.sum(sym_last[0])
    net = mx.sym.Group([mx.sym.BlockGrad(sym_out), loss])
    net = mx.sym.load_json(net.tojson())
    executor = net.simple_bind(mx.cpu(), x=(3, 2), s=(2,))
    executor.forward(is_train=True, x=x, s=s)
    executor.backward([out, nd.ones(1)])
    np.testing.assert_allclose(executor.outputs[0].asnumpy(), out.asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), x.grad.asnumpy(), rtol=1e-5)
    np.testing.assert_allclose(executor.grad_dict["s"].asnumpy(), s.grad.asnumpy(), rtol=1e-5)


def test_foreach_with_weights_from_the_outer_scope():
    w = mx.sym.var("w")
    out, _ = mx.sym.contrib.foreach(lambda x, s: (x * w, s + x), mx.sym.var("x"), mx.sym.var("s"))
    args = {"x": nd.array(DATA), "w": nd.full(2, 3), "s": nd.zeros(2)}
    np.testing.assert_allclose(out.bind(mx.cpu(), args).forward()[0].asnumpy(), DATA * 3)


def test_while_loop_eager_equals_symbol():
    def condition(i, total):
        return i <= 3

    def body(i, total):
        return [i + total], [i + 1, total + i]

    outs, last = nd.contrib.while_loop(condition, body, [nd.zeros(1), nd.ones(1)], max_iterations=6)
    assert outs[0].asnumpy().ravel().tolist() == [1, 2, 4, 7, 0, 0]
    assert [v.asscalar() for v in last] == [4, 7]
    sym_outs, sym_last = mx.sym.contrib.while_loop(
        condition, body, [mx.sym.var("i"), mx.sym.var("t")], max_iterations=6
    )
    net = mx.sym.Group([*sym_outs, *sym_last])
    executor = net.bind(mx.cpu(), {"i": nd.zeros(1), "t": nd.ones(1)})
    found = executor.forward()
    assert found[0].asnumpy().ravel().tolist() == [1, 2, 4, 7, 0, 0]
    assert [v.asscalar() for v in found[1:]] == [4, 7]
    executor = net.bind(mx.cpu(), {"i": nd.full(1, 9), "t": nd.ones(1)})
    assert executor.forward()[0].asnumpy().ravel().tolist() == [0] * 6


def test_while_loop_never_entered_returns_no_outputs():
    outs, last = nd.contrib.while_loop(
        lambda i: i < 0, lambda i: (i, [i]), [nd.ones(1)], max_iterations=3
    )
    assert outs == [] and last[0].asscalar() == 1
    with pytest.raises(ValueError, match="max_iterations"):
        nd.contrib.while_loop(lambda i: i, lambda i: (i, [i]), [nd.ones(1)])


@pytest.mark.parametrize(("value", "wanted", "slope"), [(5.0, 10, 2), (-5.0, -6, 1)])
def test_cond_eager_equals_symbol(value, wanted, slope):
    a = nd.array([value])
    a.attach_grad()
    with autograd.record():
        y = nd.contrib.cond(a > 0, lambda: a * 2, lambda: a - 1)
    y.backward()
    assert y.asscalar() == wanted and a.grad.asscalar() == slope
    x = mx.sym.var("x")
    out = mx.sym.contrib.cond(x > 0, lambda: x * 2, lambda: x - 1)
    executor = out.simple_bind(mx.cpu(), x=(1,))
    assert executor.forward(is_train=True, x=a)[0].asscalar() == wanted
    executor.backward(nd.ones(1))
    assert executor.grad_dict["x"].asscalar() == slope


def test_loops_with_layers_and_training_mode():
    def body(x, states):
        h = mx.sym.FullyConnected(mx.sym.concat(x, states, dim=1), num_hidden=4, name="cell")
        h = mx.sym.Dropout(mx.sym.tanh(h), p=0.5)
        return h, h

    out, _ = mx.sym.contrib.foreach(body, mx.sym.var("x"), mx.sym.var("h"))
    executor = out.simple_bind(mx.cpu(), x=(5, 2, 3), h=(2, 4))
    assert executor.arg_dict["cell_weight"].shape == (4, 7)
    executor.arg_dict["cell_bias"][:] = 1
    assert (executor.forward(is_train=False)[0].asnumpy() != 0).all()
    assert (executor.forward(is_train=True)[0].asnumpy() == 0).any()


def test_loop_outputs_keep_their_nesting():
    out, _ = nd.contrib.foreach(lambda x, s: ((x, [x + 1, (x,)]), s), nd.array(DATA), nd.ones(2))
    first, (second, (third,)) = out
    np.testing.assert_array_equal(first.asnumpy(), DATA)
    np.testing.assert_array_equal(second.asnumpy(), DATA + 1)
    np.testing.assert_array_equal(third.asnumpy(), DATA)
    out, last = nd.contrib.while_loop(
        lambda i: i < 2, lambda i: ([i, [i]], i + 1), [nd.zeros(1)], 3
    )
    assert [out[0].shape, out[1][0].shape] == [(3, 1), (3, 1)]
    assert isinstance(last, list) and last[0].asscalar() == 2


def test_symbolic_loop_outputs_keep_their_nesting():
    x, state = mx.sym.var("x"), mx.sym.var("s")
    out, _ = mx.sym.contrib.foreach(lambda x, s: ((x, [x + 1, (x * s,)]), s), x, state)
    first, (second, (third,)) = out
    results = mx.sym.Group([first, second, third]).eval(x=nd.array(DATA), s=nd.array([2, 2]))
    for result, expected in zip(results, (DATA, DATA + 1, DATA * 2), strict=True):
        np.testing.assert_array_equal(result.asnumpy(), expected)
    i = mx.sym.var("i")
    out, _ = mx.sym.contrib.while_loop(lambda i: i < 2, lambda i: ([i, [i * 2]], i + 1), [i], 2)
    both = mx.sym.Group([out[0], out[1][0]]).eval(i=nd.zeros(1))
    assert [b.asnumpy().ravel().tolist() for b in both] == [[0, 1], [0, 2]]


@pytest.mark.parametrize("output", [None, 1.0])
def test_foreach_outputs_other_than_arrays_raise(output):
    with pytest.raises(AssertionError, match="must be an NDArray"):
        nd.contrib.foreach(lambda x, s: (output, s), nd.array(DATA), nd.ones(2))


def test_invalid_while_loop_variables_and_outputs_raise():
    with pytest.raises(ValueError, match="at least one element"):
        nd.contrib.while_loop(lambda: True, lambda: ([], []), [], 3)
    with pytest.raises(ValueError, match="returned 1 outputs, but 2"):
        nd.contrib.while_loop(
            lambda i: i < 2,
            lambda i: ([i, i] if i.asscalar() < 1 else [i], [i + 1]),
            [nd.zeros(1)],
            3,
        )


def test_nested_states_and_data_of_loops():
    a, b, s, t = map(mx.sym.var, "abst")

    def body(data, states):
        return [data[0][0], [data[1]]], [states[0] + data[1], [states[1][0]]]

    out, states = mx.sym.contrib.foreach(body, [[a], b], [s, [t]])
    leaves = [out[0], out[1][0], states[0], states[1][0]]
    assert [leaf.list_outputs()[0][-1] for leaf in leaves] == ["0", "1", "2", "3"]
    bound = mx.sym.Group([out[0], states[0]]).bind(
        mx.cpu(), {"a": mx.nd.ones((2, 1)), "b": mx.nd.ones((2, 1)), "s": mx.nd.ones((1,)),
                   "t": mx.nd.ones((1,))},
    )  # fmt: skip
    assert [o.asnumpy().ravel().tolist() for o in bound.forward()] == [[1, 1], [3]]


def test_loop_variables_keep_their_nesting():
    s, t = mx.sym.var("s"), mx.sym.var("t")
    loop = mx.sym.contrib.while_loop
    _, last = loop(lambda i: i < 3, lambda i: (i, i + 1), [s], max_iterations=3)
    assert isinstance(last, list) and len(last) == 1
    _, last = loop(lambda i: i < 3, lambda i: (i, [i + 1]), s, max_iterations=3)
    assert isinstance(last, mx.sym.Symbol)
    out, last = loop(
        lambda i, j: i < 3, lambda i, j: (None, [i + 1, [j[0] + i]]), [s, [t]], max_iterations=3
    )
    assert out == [] and isinstance(last[1], list)
    _, last = mx.nd.contrib.while_loop(
        lambda i: i < 3, lambda i: (i, [i + 1]), mx.nd.array([0]), max_iterations=3
    )
    assert last.asscalar() == 3


def test_branches_with_nested_outputs():
    p, s, t = map(mx.sym.var, "pst")
    made = mx.sym.contrib.cond(p < 3, lambda: [s, [t]], lambda: [t, s])
    assert isinstance(made[0], mx.sym.Symbol) and isinstance(made[1], list)
    with pytest.raises(TypeError, match="cond needs at least one output"):
        mx.sym.contrib.cond(p < 3, list, list)


def test_states_with_different_nesting_raise():
    a, s = mx.sym.var("a"), mx.sym.var("s")
    with pytest.raises(AssertionError, match="have different format"):
        mx.sym.contrib.foreach(lambda x, states: (x, states[0]), a, [s])
    with pytest.raises(AssertionError, match="must be \\(nested\\) list of Symbol, but got None"):
        mx.sym.contrib.foreach(lambda x, states: (None, states), a, [s])


def test_loop_bodies_can_use_the_initial_variables():
    """Values of MXNet 1.9.1; the captured variable must not change with the loop."""
    y, w = mx.sym.var("y"), mx.sym.var("w")
    _, (last, product) = mx.sym.contrib.while_loop(
        lambda i, p: i < 3, lambda i, p: (i * w, [i + 1, p * 2 * w]), [y, w], max_iterations=4
    )
    net = mx.sym.load_json(mx.sym.Group([last, product]).tojson())
    assert net.attr_dict()[last.name]["func_input_locs"] == "[0, 1, 2]"
    results = net.bind(mx.cpu(), {"y": nd.array([0]), "w": nd.array([3])}).forward()
    assert [r.asscalar() for r in results] == [3, 648]


def test_two_loop_variables_with_the_same_initial_symbol():
    y = mx.sym.var("y")
    _, (last, other) = mx.sym.contrib.while_loop(
        lambda a, b: a < 3, lambda a, b: (a + b, [a + 1, b * 2 + 1]), [y, y], max_iterations=4
    )
    results = mx.sym.Group([last, other]).bind(mx.cpu(), {"y": nd.array([0])}).forward()
    assert [r.asscalar() for r in results] == [3, 7]


def test_foreach_data_of_different_lengths_raises():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    out, _ = mx.sym.contrib.foreach(lambda d, s: (d[0] + d[1], s), [a, b], [])
    with pytest.raises(mx.MXNetError, match=r"equal lengths.*\[2, 4\]"):
        out.infer_shape(a=(2, 3), b=(4, 3))


@pytest.mark.parametrize("states", [None, "a", [1]])
def test_eager_loop_states_other_than_arrays_raise(states):
    with pytest.raises(AssertionError, match="foreach's states"):
        nd.contrib.foreach(lambda d, s: (d, s), nd.ones((2, 3)), states)


@pytest.mark.parametrize("shape", [(0,), (2,)])
def test_conditions_with_several_elements_raise(shape):
    condition = nd.array(np.ones(shape))
    with pytest.raises(ValueError, match="not a scalar"):
        nd.contrib.cond(condition, lambda: nd.ones(1), lambda: nd.zeros(1))
    with pytest.raises(ValueError, match="not a scalar"):
        nd.contrib.while_loop(lambda i: condition, lambda i: (i, i), nd.ones(1), max_iterations=2)


def test_invalid_symbolic_loops_raise_as_in_mxnet():
    x, y, contrib = mx.sym.var("x"), mx.sym.var("y"), mx.sym.contrib
    with pytest.raises(AssertionError, match="have to be used"):
        contrib.foreach(lambda d, s: (s, s), x, y)
    with pytest.raises(AssertionError, match="different format"):
        contrib.foreach(lambda d, s: (d, [d, *s]), x, [y])
    with pytest.raises(ValueError, match="loop_vars should be consistent"):
        contrib.while_loop(lambda i: i, lambda i: (i, [i, i]), [x], max_iterations=2)
    with pytest.raises(ValueError, match="must be a Symbol"):
        contrib.while_loop(lambda i: 1, lambda i: (i, i), x, max_iterations=2)
    with pytest.raises(mx.MXNetError, match="greater equal to 1"):
        contrib.while_loop(lambda i: i, lambda i: (i, i), x, max_iterations=0)
    with pytest.raises(mx.MXNetError, match="one output"):
        contrib.cond(mx.sym.split(x, num_outputs=2), lambda: x, lambda: y)


VALUES = {"x": [0.1, 0.2], "y": [0.3, -0.4], "w": [1.5, 0.5], "start": [0.0], "choice": [2.0]}


def program(rnd, depth=0):
    """Return a random function of a namespace, its variables and the values at hand."""
    kind = rnd.choice(["foreach", "while_loop", "cond"]) if depth < 2 else "formula"
    first, second = rnd.randrange(2), rnd.randrange(2)
    if kind == "formula":
        formula = rnd.choice([lambda F, a, b, w: a + b * w, lambda F, a, b, w: F.tanh(a) - b])
        return lambda F, v, here: formula(F, here[-1 - first], here[second], v["w"])
    inner = program(rnd, depth + 1)
    if kind == "foreach":

        def loop(F, v, here):
            def step(row, state):
                return row + inner(F, v, [*here, row, state]), state + row

            rows = F.stack(here[first], here[-1] * 2)
            outs, last = F.contrib.foreach(step, rows, here[second])
            return F.sum(outs, axis=0) + last

        return loop
    if kind == "while_loop":

        def loop(F, v, here):
            def step(i, a):
                return [], [i + 1, inner(F, v, [*here, a]) + a]

            start = [v["start"], here[first]]
            return F.contrib.while_loop(lambda i, a: i < v["choice"], step, start, 3)[1][1]

        return loop
    other, limit = program(rnd, depth + 1), rnd.choice([1, 9])
    return lambda F, v, here: F.contrib.cond(
        v["choice"] > limit, lambda: inner(F, v, here) + 0, lambda: other(F, v, here) * 1
    )


@pytest.mark.parametrize("seed", range(24))
def test_nested_loops_eager_equals_symbol(seed):
    call = program(random.Random(seed))
    arrays = {name: mx.nd.array(value) for name, value in VALUES.items()}
    wanted = call(mx.nd, arrays, [arrays["x"], arrays["y"]])
    symbols = {name: mx.sym.var(name) for name in VALUES}
    net = call(mx.sym, symbols, [symbols["x"], symbols["y"]])
    loaded = mx.sym.load_json(net.tojson())
    assert loaded.tojson() == net.tojson()
    arguments = {name: arrays[name] for name in loaded.list_arguments()}
    (found,) = loaded.bind(mx.cpu(), arguments).forward()
    np.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-6)
