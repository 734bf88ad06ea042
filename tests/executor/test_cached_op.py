"""`CachedOp`: a graph as one callable."""

import mxnet as mx


def test_programs_for_many_shapes_do_not_pile_up(monkeypatch):
    monkeypatch.setattr("mxnet.executor.cached_op.MOST_PROGRAMS", 3)
    x = mx.sym.Variable("x")
    shifted = mx.nd.CachedOp(x + mx.sym.zeros(shape=(0, 2)))
    for _ in range(2):
        for rows in range(1, 7):
            assert shifted(mx.nd.ones((rows, 2))).shape == (rows, 2)
    assert len(shifted._programs) == 3
