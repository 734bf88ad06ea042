"""Assignment by a mask, which MXNet does in place only."""

from __future__ import annotations

import pytest

import mxnet as mx

assign_number = mx.nd._internal._npi_boolean_mask_assign_scalar
assign_values = mx.nd._internal._npi_boolean_mask_assign_tensor


def test_a_number_goes_where_the_mask_is_true() -> None:
    x, mask = mx.nd.ones((2, 2)), mx.nd.array([0, 1], dtype="bool")
    assert assign_number(x, mask, value=7).asnumpy().tolist() == [[1, 1], [7, 7]]
    assert assign_number(x, mask, value=7, start_axis=1).asnumpy().tolist() == [[1, 7], [1, 7]]


def test_out_assigns_in_place() -> None:
    x, mask = mx.nd.ones((2,)), mx.nd.array([0, 1], dtype="bool")
    assign_number(x, mask, value=7, out=x)
    assert x.asnumpy().tolist() == [1, 7]


def test_values_go_in_order_or_broadcast() -> None:
    x, mask = mx.nd.zeros((2, 2)), mx.nd.array([[1, 0], [1, 1]], dtype="bool")
    in_order = assign_values(x, mask, mx.nd.array([5, 6, 7]))
    assert in_order.asnumpy().tolist() == [[5, 0], [6, 7]]
    assert assign_values(x, mask, mx.nd.array([5])).asnumpy().tolist() == [[5, 0], [5, 5]]


def test_a_mask_of_another_shape_is_an_error() -> None:
    with pytest.raises(mx.MXNetError, match="does not fit"):
        assign_number(mx.nd.zeros((2,)), mx.nd.array([1, 0, 1], dtype="bool"), value=1)


def test_unique_orders_numbers_beside_nan() -> None:
    values, first, counts = mx.np.unique(
        mx.np.array([float("nan"), 1, float("nan"), 2, 1]), return_index=True, return_counts=True
    )
    assert values.asnumpy()[:2].tolist() == [1, 2]
    assert [v != v for v in values.asnumpy().tolist()] == [False, False, True, True]
    assert first.asnumpy().tolist() == [1, 3, 0, 2]
    assert counts.asnumpy().tolist() == [2, 1, 1, 1]
