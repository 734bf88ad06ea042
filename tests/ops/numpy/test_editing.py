"""Inserting and deleting elements."""

from __future__ import annotations

import pytest

import mxnet as mx
from mxnet.error import ShapeError
from mxnet.util import use_np
from tests.batches import check_each

ONE = mx.np.array([1], dtype="int64")
# (index, shape of 100, 110, 120 ..., axis): what MXNet inserts into [[0, 1], [2, 3], [4, 5]].
INSERTED = {
    "array, row": (ONE, (2,), 1, [[0, 100, 110, 1], [2, 100, 110, 3], [4, 100, 110, 5]]),
    "array, column": (ONE, (3, 1), 1, [[0, 100, 1], [2, 110, 3], [4, 120, 5]]),
    "array, block": (ONE, (3, 2), 1, [[0, 100, 110, 1], [2, 120, 130, 3], [4, 140, 150, 5]]),
    "array, longer row": (
        ONE,
        (3,),
        -1,
        [[0, 100, 110, 120, 1], [2, 100, 110, 120, 3], [4, 100, 110, 120, 5]],
    ),
    "array, rows": (ONE, (2, 1), 0, [[0, 1], [100, 100], [110, 110], [2, 3], [4, 5]]),
    "slice, row": (
        slice(0, 1),
        (3,),
        1,
        [[100, 110, 120, 0, 1], [100, 110, 120, 2, 3], [100, 110, 120, 4, 5]],
    ),
    "slice, column": (slice(0, 1), (3, 1), 1, [[100, 0, 1], [110, 2, 3], [120, 4, 5]]),
    "int, row": (1, (3,), 1, [[0, 100, 1], [2, 110, 3], [4, 120, 5]]),
    "int, column": (
        1,
        (3, 1),
        1,
        [[0, 100, 110, 120, 1], [2, 100, 110, 120, 3], [4, 100, 110, 120, 5]],
    ),
    "int, more axes": (1, (1, 1, 1), 0, [[0, 1], [100, 100], [2, 3], [4, 5]]),
    "array, more axes": (ONE, (1, 1, 1), 1, [[0, 100, 1], [2, 100, 3], [4, 100, 5]]),
    "flat": (1, (1, 3), None, [0, 100, 110, 120, 1, 2, 3, 4, 5]),
    "flat array": (ONE, (1, 2), None, [0, 100, 110, 1, 2, 3, 4, 5]),
    "two": (slice(0, 2), (1, 1, 1), 1, [[100, 0, 100, 1], [100, 2, 100, 3], [100, 4, 100, 5]]),
}


@use_np
def test_insert_moves_the_axis_of_values_only_for_integer_index() -> None:
    array = mx.np.arange(6).reshape(3, 2)

    def check(case: tuple) -> None:
        index, shape, axis, expected = case
        values = (mx.np.arange(20)[: mx.np.ones(shape).size] * 10 + 100).reshape(shape)
        assert mx.np.insert(array, index, values, axis=axis).tolist() == expected

    check_each(INSERTED, check)


@use_np
def test_insert_with_wrong_shapes_raises() -> None:
    array = mx.np.zeros((3, 2))
    for index, shape in ((1, (3, 2)), (ONE, (2, 3)), (slice(0, 1), (2, 2))):
        with pytest.raises(ShapeError, match="do not broadcast"):
            mx.np.insert(array, index, mx.np.ones(shape), axis=1)
    with pytest.raises(ShapeError, match="at most one axis"):
        mx.np.insert(array, mx.np.array([[1]], dtype="int64"), mx.np.ones(2), axis=0)


@use_np
def test_delete_everything_or_out_of_range_indices() -> None:
    array = mx.np.arange(6).reshape(3, 2)
    for axis, shape in ((0, (0, 2)), (1, (3, 0)), (None, (0,))):
        assert mx.np.delete(array, slice(None), axis).shape == shape
    for dtype in ("int32", "int64"):
        indices = mx.np.array([1, 7, -9], dtype=dtype)
        assert mx.np.delete(mx.np.arange(3), indices).tolist() == [0, 2]
        assert mx.np.delete(array, indices, 0).tolist() == [[0, 1], [4, 5]]


@use_np
def test_boolean_mask_assignment_to_scalars() -> None:
    assign = mx.nd._internal._npi_boolean_mask_assign_tensor
    for value in (mx.np.array(5.0), mx.np.array([5.0])):
        for chosen, expected in ((True, 5), (False, 3)):
            array = mx.np.array(3.0)
            assign(array, mx.np.array(chosen), value, start_axis=0, out=array)
            assert array.shape == () and array.item() == expected
