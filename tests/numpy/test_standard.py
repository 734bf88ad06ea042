"""Names of the Python array API standard."""

from __future__ import annotations

import pytest

from mxnet import np


def test_arrays_name_their_namespace() -> None:
    assert np.ones(2).__array_namespace__() is np


def test_asarray_keeps_pythons_kinds_and_does_not_copy_arrays() -> None:
    x = np.ones(2)
    assert np.asarray(x) is x
    assert np.asarray([1, 2]).dtype == np.int64
    assert np.asarray([True]).dtype == np.bool_
    assert np.asarray([0.5]).dtype == np.float32
    with pytest.raises(ValueError, match="copy"):
        np.asarray([1], copy=False)


def test_functions_under_the_names_of_the_standard() -> None:
    x = np.array([[0.5, 1.0]])
    assert np.concat([x, x]).shape == (2, 2)
    assert np.permute_dims(x, (1, 0)).shape == x.mT.shape == (2, 1)
    assert np.pow(x, 2).tolist() == [[0.25, 1.0]]
    assert np.astype(x, "int32").dtype == np.int32
    assert np.isdtype(x.dtype, ("integral", "real floating"))
    assert np.logical_and(x, x > 0.7).tolist() == [[False, True]]


def test_scikit_learns_style_of_dispatch() -> None:
    def standardize(values):
        xp = values.__array_namespace__()
        return (values - xp.mean(values, axis=0)) / xp.std(values, axis=0)

    assert standardize(np.array([[1.0], [3.0]])).tolist() == [[-1], [1]]
