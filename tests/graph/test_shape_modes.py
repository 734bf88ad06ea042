"""Inference follows the shape mode, whatever was inferred before."""

from __future__ import annotations

import mxnet as mx


def test_a_scalar_is_a_vector_of_one_in_legacy_mode_only() -> None:
    det = mx.sym.linalg.det(mx.sym.var("a"))
    for _ in range(2):
        with mx.util.np_shape(True):
            assert det.infer_shape(a=(3, 3))[1] == [()]
        with mx.util.np_shape(False):
            assert det.infer_shape(a=(3, 3))[1] == [(1,)]
