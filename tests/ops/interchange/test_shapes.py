"""Operators whose shape argument is an array."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx

internal = mx.nd._internal


def _ints(*numbers: int) -> mx.nd.NDArray:
    return mx.nd.array(numbers, dtype="int64")


def test_reshape_by_a_computed_shape() -> None:
    """One graph runs with all batch sizes: the shape is computed from the input's."""
    x = mx.sym.var("x")
    rows = mx.sym.slice_axis(mx.sym.shape_array(x), axis=0, begin=0, end=1)
    rest = mx.sym.cast(mx.sym.full((1,), -1), dtype="int64")
    made = mx.sym._internal._onnx_reshape(x, mx.sym.concat(rows, rest, dim=0))
    for batch in (2, 3):
        executor = made.bind(mx.cpu(), {"x": mx.nd.ones((batch, 2, 3))})
        assert executor.forward()[0].shape == (batch, 6)


def test_padding_equals_numpy() -> None:
    """All modes, and negative widths, which crop."""
    data = np.arange(6, dtype="float32").reshape(2, 3)
    zero, widths = mx.nd.zeros((1,)), _ints(0, 2, 1, 1)
    for mode in ("constant", "edge", "reflect", "wrap"):
        found = internal._onnx_pad(mx.nd.array(data), widths, zero, mode=mode)
        np.testing.assert_array_equal(found.asnumpy(), np.pad(data, ((0, 1), (2, 1)), mode))
    cut = internal._onnx_pad(mx.nd.array(data), _ints(0, -1, 0, 0), zero)
    np.testing.assert_array_equal(cut.asnumpy(), data[:, 1:])


def test_huge_sizes_raise() -> None:
    """Shapes are data here, and can be invalid."""
    with pytest.raises(mx.MXNetError, match="cannot make an array"):
        internal._onnx_expand(mx.nd.ones((1,)), _ints(1 << 20, 1 << 20))
    with pytest.raises(mx.MXNetError, match="cannot make an array"):
        internal._onnx_range(_ints(0), _ints(1 << 40), _ints(1))
