"""Names with an underscore that packages use, with MXNet 1.9.1's meaning."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ((slice(0, 2, 1), slice(0, 3, 1)), True),
        ((slice(0, 2, 1), slice(0, 2, 1)), False),
        ((slice(0, 1, 1), slice(0, 2, 1)), True),
        ((slice(2, 0, -1), slice(0, 3, 1)), False),
        ((slice(0, 2, 2), slice(0, 3, 1)), True),
    ],
)
def test_which_slices_are_one_block(key, expected):
    assert nd.NDArray._basic_indexing_slice_is_contiguous(key, (4, 3)) is expected


def test_where_a_block_begins_and_ends():
    key = slice(1, 2, 1), slice(0, 3, 1)
    assert nd.NDArray._basic_indexing_contiguous_flat_begin_end(key, (4, 3)) == (3, 6)


def test_index_arrays_of_sparse_arrays():
    rows, csr = nd.ones((2, 2)).tostype("row_sparse"), nd.ones((2, 2)).tostype("csr")
    assert (rows._num_aux, csr._num_aux) == (1, 2)
    assert csr._aux_types == [np.int64, np.int64]


def test_activations_of_cells():
    cell, x = mx.rnn.RNNCell(4), mx.sym.Variable("x")
    assert cell._get_activation(x, "relu", name="n").attr("act_type") == "relu"
    assert cell._get_activation(x, mx.sym.tanh, name="t").name == "t"


def test_functions_of_modules():
    assert mx.optimizer.optimizer._flatten_list([[1, 2], [3]]) == [1, 2, 3]
    assert mx.io.io._init_data(np.ones((2, 2)), False, "data")[0][0] == "data"
    assert mx.io.io._init_data(None, True, "data") == []
    assert (mx.base.py_str(b"a"), mx.base.py_str("a")) == ("a", "a")
    cells = [mx.gluon.rnn.LSTMCell(2), mx.gluon.rnn.GRUCell(2)]
    assert len(mx.gluon.rnn.rnn_cell._cells_state_info(cells, 1)) == 3


def test_shapes_of_unknown_names_are_ignored():
    net = mx.sym.FullyConnected(mx.sym.Variable("d"), num_hidden=2, name="fc")
    executor = net.simple_bind(mx.cpu(), d=(1, 2), other=(3,))
    assert sorted(executor.arg_dict) == ["d", "fc_bias", "fc_weight"]


def test_a_block_saved_under_other_names_is_loaded(tmp_path):
    def build(prefix):
        net = mx.gluon.nn.HybridSequential(prefix=prefix)
        with net.name_scope():
            net.add(mx.gluon.nn.Dense(3, in_units=2), mx.gluon.nn.Dense(1, in_units=3))
        return net

    first = build("a_")
    first.initialize(mx.init.Constant(0.5))
    first.hybridize()
    first(nd.ones((1, 2)))
    first.save(str(tmp_path / "net"))
    second = build("c_")
    second.load(str(tmp_path / "net"))
    assert second(nd.ones((1, 2))).asscalar() == 1.5


def test_empty_bins_of_a_histogram_get_a_little_of_the_others():
    smooth = mx.contrib.quantization._smooth_distribution
    np.testing.assert_allclose(smooth(np.array([0, 0, 2]), eps=1e-3), [1e-3, 1e-3, 1.998])
    with pytest.raises(ValueError, match="malformed"):
        smooth(np.zeros(2), eps=1e-3)


def test_codes_of_storage_types():
    from mxnet.ndarray.ndarray import (
        _STORAGE_TYPE_CSR,
        _STORAGE_TYPE_DEFAULT,
        _STORAGE_TYPE_ROW_SPARSE,
        _STORAGE_TYPE_STR_TO_ID,
        _STORAGE_TYPE_UNDEFINED,
    )

    names = ("undefined", "default", "row_sparse", "csr")
    codes = _STORAGE_TYPE_UNDEFINED, _STORAGE_TYPE_DEFAULT
    codes += _STORAGE_TYPE_ROW_SPARSE, _STORAGE_TYPE_CSR
    assert dict(zip(names, codes, strict=True)) == _STORAGE_TYPE_STR_TO_ID
