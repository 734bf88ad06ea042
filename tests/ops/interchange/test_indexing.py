"""Gather and scatter operators, compared with torch and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx

internal = mx.nd._internal


@pytest.mark.parametrize(
    ("how", "wanted"),
    [("none", [1, 7, 1]), ("add", [1, 13, 1]), ("mul", [1, 35, 1]), ("max", [1, 7, 1])],
)
def test_scatter_updates_of_one_element_are_combined(how: str, wanted: list[float]) -> None:
    """5 and 7 both update element 1 of ones."""
    data, updates = mx.nd.ones((3,)), mx.nd.array([5, 7])
    by_element = internal._onnx_scatter_elements(
        data, mx.nd.array([1, -2], dtype="int64"), updates, reduction=how
    )
    by_coordinate = internal._onnx_scatter_nd(
        data, mx.nd.array([[1], [-2]], dtype="int64"), updates, reduction=how
    )
    np.testing.assert_array_equal(by_element.asnumpy(), wanted)
    np.testing.assert_array_equal(by_coordinate.asnumpy(), wanted)


def test_gather_nd_with_batch_dims() -> None:
    """Each sample of the batch indexes its own rows."""
    data = mx.nd.arange(8).reshape((2, 2, 2))
    places = mx.nd.array([[[1]], [[0]]], dtype="int64")
    found = internal._onnx_gather_nd(data, places, batch_dims=1)
    np.testing.assert_array_equal(found.asnumpy(), [[[2, 3]], [[4, 5]]])


def test_scatter_nd_replaces_rows() -> None:
    """Partial coordinates write whole rows."""
    rows = mx.nd.array([[1, 2], [3, 4]])
    made = internal._onnx_scatter_nd(
        mx.nd.zeros((3, 2)), mx.nd.array([[2], [0]], dtype="int64"), rows
    )
    np.testing.assert_array_equal(made.asnumpy(), [[3, 4], [0, 0], [1, 2]])


def test_scatter_nd_with_too_many_coordinates_raises() -> None:
    """Three coordinates into a matrix."""
    with pytest.raises(mx.MXNetError, match="3 coordinates for 2 axes"):
        internal._onnx_scatter_nd(
            mx.nd.zeros((2, 2)), mx.nd.array([[0, 0, 0]], dtype="int64"), mx.nd.ones((1,))
        )
