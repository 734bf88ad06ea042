"""Reductions of scalars."""

from __future__ import annotations

import pytest

import mxnet as mx


@pytest.mark.parametrize("name", ["sum", "mean", "max", "prod"])
def test_reductions_of_a_scalar_return_shape_1(name: str) -> None:
    """As in MXNet, in a first call, a cached call and a graph."""
    with mx.np_shape(True):
        scalar = mx.nd.ones(())
        function = getattr(mx.nd, name)
        assert [function(scalar).shape, function(scalar).shape] == [(1,), (1,)]
        assert function(scalar, keepdims=True).shape == ()
        symbol = getattr(mx.sym, name)(mx.sym.var("x"))
        assert symbol.bind(mx.cpu(), {"x": scalar}).forward()[0].shape == (1,)
