"""Inference follows the shape mode, whatever was inferred before."""

from __future__ import annotations

import pytest

import mxnet as mx


def test_a_scalar_is_a_vector_of_one_in_legacy_mode_only() -> None:
    det = mx.sym.linalg.det(mx.sym.var("a"))
    for _ in range(2):
        with mx.util.np_shape(True):
            assert det.infer_shape(a=(3, 3))[1] == [()]
        with mx.util.np_shape(False):
            assert det.infer_shape(a=(3, 3))[1] == [(1,)]


@pytest.mark.parametrize("sizes", [(2, -1), (-1, 3), (-1, -1)])
def test_sources_take_open_sizes_from_their_readers(sizes):
    with mx.np_shape():
        total = mx.sym.ones(shape=sizes) + mx.sym.transpose(mx.sym.ones(shape=(3, 2)))
        assert total.bind(mx.cpu(), {}).forward()[0].shape == (2, 3)
        behind = mx.sym.ones(shape=(3, 2)) + mx.sym.transpose(mx.sym.zeros(shape=sizes))
        assert behind.bind(mx.cpu(), {}).forward()[0].shape == (3, 2)


def test_sources_whose_sizes_nobody_knows_are_an_error():
    with mx.np_shape(), pytest.raises(mx.MXNetError, match="cannot be inferred"):
        mx.sym.ones(shape=(2, -1)).bind(mx.cpu(), {}).forward()
