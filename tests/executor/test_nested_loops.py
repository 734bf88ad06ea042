"""Random loops and branches inside of each other: graphs compute what eager code computes."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mxnet as mx

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
def test_nested_loops_agree_eager_and_symbol(seed):
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
