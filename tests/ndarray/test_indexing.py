"""Reading and writing parts of arrays: what counts as a list of indices."""

from __future__ import annotations

import numpy as np
import pytest

from mxnet import nd

KEYS = [
    (0, (0, 1)),
    ((0, 1), (1, 2)),
    ([0, 1], (1, 2)),
    (slice(None), (1, 2)),
    ((0, 1),),
    (((0, 1),), 0),
    (0, ((0, 1), (1, 2))),
    (slice(None, None, -1), (0, 2)),
    (slice(None, None, -1), range(2)),
    (Ellipsis, (3, 0)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_tuples_inside_a_key_are_lists_of_indices(key):
    values = np.arange(24, dtype="float32").reshape(2, 3, 4)
    array = nd.array(values)
    np.testing.assert_array_equal(array[key].asnumpy(), values[key])
    array[key] = -1
    values[key] = -1
    np.testing.assert_array_equal(array.asnumpy(), values)


def test_tuples_inside_a_key_stay_in_range():
    with pytest.raises(IndexError):
        nd.zeros((2, 3))[0, (1, 3)]
