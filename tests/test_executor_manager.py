"""How batches are split over devices."""

from __future__ import annotations

import pytest

import mxnet as mx
from mxnet.error import ShapeError
from mxnet.executor_manager import _check_arguments, _load_general, _split_input_slice


def test_parts_are_in_proportion_to_the_work_load():
    assert _split_input_slice(8, [1, 1]) == [slice(0, 4), slice(4, 8)]
    assert _split_input_slice(10, [1, 1, 1]) == [slice(0, 3), slice(3, 6), slice(6, 10)]
    with pytest.raises(ValueError, match="Too many slices"):
        _split_input_slice(2, [1, 1, 1])


def test_arrays_are_copied_part_by_part_along_their_batch_axis():
    targets = [mx.nd.zeros((2, 2)), mx.nd.zeros((2, 1))]
    places = [(slice(0, 2), targets[0]), (slice(2, 3), targets[1])]
    _load_general([mx.nd.arange(6).reshape((2, 3))], [places], [1])
    assert [x.asnumpy().tolist() for x in targets] == [[[0, 1], [3, 4]], [[2], [5]]]
    with pytest.raises(ShapeError, match=r"is \(3,\), but needs \(2, 2\)"):
        _load_general([mx.nd.ones(3)], [targets[0]], [0])


def test_names_that_occur_twice_are_refused():
    _check_arguments(mx.sym.var("x") + mx.sym.var("y"))
    with pytest.raises(ValueError, match=r"duplicated argument name.*x"):
        _check_arguments(mx.sym.var("x") + mx.sym.var("x"))
