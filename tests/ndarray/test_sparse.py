"""Sparse arrays: memory, files, warnings, SciPy, and results of MXNet 1.9.1."""

from __future__ import annotations

import copy
import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import mxnet as mx
from mxnet import nd
from mxnet.error import MXNetError
from mxnet.ndarray import contrib, sparse
from mxnet.ndarray.sparse import arrays
from tests.golden import HERE
from tests.golden.record.sparse_programs import GROUPS, answer

VALUES = np.array([[0, 1, 0], [0, 0, 0], [2, 0, 3]], "float32")


@pytest.fixture(autouse=True)
def forget_warnings():
    arrays._warned.clear()


@pytest.fixture(params=["csr", "row_sparse"])
def array(request):
    return nd.array(VALUES).tostype(request.param)


def test_sparse_classes_are_subclasses_of_ndarray(array):
    assert isinstance(array, nd.NDArray) and isinstance(array, sparse.BaseSparseNDArray)
    assert (
        type(array).__name__ == {"csr": "CSRNDArray", "row_sparse": "RowSparseNDArray"}[array.stype]
    )


def test_each_storage_fallback_warns_once(array):
    with pytest.warns(UserWarning, match="Storage type fallback detected: operator = exp"):
        nd.exp(array)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nd.exp(array)
    with pytest.warns(UserWarning, match="operator = cos"):
        nd.cos(array)


def test_storage_fallback_warning_can_be_disabled(array, monkeypatch):
    monkeypatch.setenv("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "0")
    np.testing.assert_allclose(nd.exp(array).asnumpy(), np.exp(VALUES), rtol=1e-6)


def test_data_attribute_is_a_copy(array):
    array.data[:] = 9
    assert_array_equal(array.asnumpy(), VALUES)


def test_tostype_default_of_full_row_sparse_is_a_copy():
    rows = nd.ones((2, 2)).tostype("row_sparse")
    dense = rows.tostype("default")
    dense[:] = 5
    assert_array_equal(rows.asnumpy(), np.ones((2, 2)))


def test_save_and_load(array, tmp_path):
    nd.save(str(tmp_path / "x"), {"x": array, "y": nd.ones((2,))})
    loaded = nd.load(str(tmp_path / "x"))
    assert loaded["x"].stype == array.stype and loaded["y"].stype == "default"
    assert_array_equal(loaded["x"].asnumpy(), VALUES)


def test_deep_copies_do_not_share_memory(array):
    made = copy.deepcopy(array)
    made[:] = nd.zeros((3, 3)).tostype(array.stype)
    assert_array_equal(array.asnumpy(), VALUES)


def test_iteration_over_rows():
    rows = [r.asnumpy() for r in nd.array(VALUES).tostype("csr")]
    assert_array_equal(np.concatenate(rows), VALUES)


def test_to_and_from_scipy():
    spsp = pytest.importorskip("scipy.sparse")
    matrix = spsp.csr_matrix(VALUES)
    array = nd.array(matrix)
    assert array.stype == "csr"
    assert (array.asscipy() != matrix).nnz == 0
    twice = spsp.csr_matrix(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 2))
    assert_array_equal(sparse.array(twice).asnumpy(), [[3, 0]])


def test_writable_of_sparse_arrays_raises(array):
    from mxnet.runtime.array import writable

    with pytest.raises(MXNetError, match="no dense memory"):
        writable(array)


def test_subtract_with_a_scalar_on_the_left(array):
    # MXNet 1.9.1 computes x - 2 here.
    with pytest.warns(UserWarning, match="_rminus_scalar"):
        assert_array_equal(sparse.subtract(2, array).asnumpy(), 2 - VALUES)


def test_retain_method():
    rows = nd.array(VALUES).tostype("row_sparse").retain(nd.array([2]))
    assert_array_equal(rows.indices.asnumpy(), [2])
    assert_array_equal(rows.data.asnumpy(), VALUES[2:])


def test_row_sparse_gradients_accumulate_by_rows():
    weight = nd.ones((5, 2))
    weight.attach_grad("add", stype="row_sparse")
    for index in (1, 3, 1):
        with mx.autograd.record():
            y = nd.Embedding(nd.array([index]), weight, 5, 2, sparse_grad=True)
        y.backward()
    assert_array_equal(weight.grad.indices.asnumpy(), [1, 3])
    assert_array_equal(weight.grad.data.asnumpy(), [[2, 2], [1, 1]])


def test_sparse_gradients_are_written_to_dense_arrays():
    weight = nd.ones((3, 2))
    weight.attach_grad()
    with mx.autograd.record():
        y = nd.Embedding(nd.array([1, 1]), weight, 3, 2, sparse_grad=True)
    y.backward()
    assert_array_equal(weight.grad.asnumpy(), [[0, 0], [2, 2], [0, 0]])


def test_training_a_linear_model_on_csr_data():
    data = nd.array(VALUES).tostype("csr")
    weight = nd.zeros((3, 1))
    weight.attach_grad(stype="row_sparse")
    wanted = nd.array([[1], [0], [5]])
    for _ in range(200):
        with mx.autograd.record():
            loss = ((sparse.dot(data, weight) - wanted) ** 2).sum()
        loss.backward()
        nd.sgd_update(weight, weight.grad, lr=0.05, out=weight)
    np.testing.assert_allclose(sparse.dot(data, weight).asnumpy(), wanted.asnumpy(), atol=1e-3)


def test_row_sparse_weights_are_updated():
    weight = nd.ones((4, 2)).tostype("row_sparse")
    weight.attach_grad()
    with mx.autograd.record():
        loss = nd.Embedding(nd.array([1, 2]), weight, 4, 2, sparse_grad=True).sum()
    loss.backward()
    assert weight.grad.stype == "row_sparse"
    nd.sgd_update(weight, weight.grad, lr=0.5, out=weight)
    assert_array_equal(weight.asnumpy(), [[1, 1], [0.5, 0.5], [0.5, 0.5], [1, 1]])


def test_updating_weights_with_missing_rows_raises():
    weight = sparse.row_sparse_array(([[1, 2]], [0]), shape=(3, 2))
    grad = sparse.row_sparse_array(([[1, 1]], [1]), shape=(3, 2))
    with pytest.raises(MXNetError, match="store all its rows"):
        nd.sgd_update(weight, grad, lr=0.1, out=weight)


def test_updates_without_out_do_not_change_the_weight():
    weight, grad = nd.ones((3, 2)), sparse.row_sparse_array(([[1, 1]], [1]), shape=(3, 2))
    made = nd.sgd_update(weight, grad, lr=0.5)
    assert_array_equal(weight.asnumpy(), np.ones((3, 2)))
    assert_array_equal(made.asnumpy(), [[1, 1], [0.5, 0.5], [1, 1]])


def test_large_sparse_dot_equals_dense_dot():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(50, 40)).astype("float32") * (rng.random((50, 40)) < 0.1)
    dense = dense.astype("float32")
    csr = nd.array(dense).tostype("csr")
    csr.check_format()
    right = rng.normal(size=(40, 7)).astype("float32")
    np.testing.assert_allclose(
        sparse.dot(csr, nd.array(right)).asnumpy(), dense @ right, rtol=1e-4, atol=1e-5
    )
    below = rng.normal(size=(50, 7)).astype("float32")
    made = sparse.dot(csr, nd.array(below), transpose_a=True)
    assert made.stype == "row_sparse"
    np.testing.assert_allclose(made.asnumpy(), dense.T @ below, rtol=1e-4, atol=1e-5)
    half = sparse.dot(csr, nd.array(right), transpose_a=False, forward_stype="default")
    assert half.shape == (50, 7)


def test_sparse_dot_of_integers():
    csr = nd.array([[0, 2], [3, 0]], dtype="int32").tostype("csr")
    made = sparse.dot(csr, nd.array([[1, 2], [3, 4]], dtype="int32"))
    assert_array_equal(made.asnumpy(), [[6, 8], [3, 6]])


@pytest.mark.parametrize("name", ["__add__", "__mul__", "__sub__"])
def test_csr_arithmetic_equals_dense_arithmetic(name):
    rng = np.random.default_rng(1)
    x, y = (np.round(rng.random((20, 30)) * (rng.random((20, 30)) < 0.2), 3) for _ in range(2))
    made = getattr(sparse.csr_matrix(x), name)(sparse.csr_matrix(y))
    made.check_format()
    np.testing.assert_allclose(made.asnumpy(), getattr(x, name)(y))


def test_sparse_namespace_has_all_functions():
    names = "csr_matrix row_sparse_array array zeros empty add subtract multiply divide retain dot"
    for name in names.split():
        assert callable(getattr(mx.nd.sparse, name))


@pytest.mark.filterwarnings("ignore:Storage type fallback")
def test_backward_from_sparse_comparison_has_zero_gradient():
    for stype in ("csr", "row_sparse"):
        x = mx.nd.array([[0, 1], [2, 0]]).tostype(stype)
        x.attach_grad()
        with mx.autograd.record():
            y = x > 1
            z = mx.nd.argmax(x, axis=1)
        mx.autograd.backward([y, z])


@pytest.mark.filterwarnings("ignore:Storage")
def test_integer_indices_with_gradients_into_sparse_arrays():
    x = mx.nd.array([[0, 1], [2, 0]]).tostype("row_sparse")
    index = mx.nd.array([1, 1], dtype="int32")
    x.attach_grad()
    index.attach_grad()
    with mx.autograd.record():
        y = mx.nd.take(x, index)
    y.backward()
    assert x.grad.asnumpy().tolist() == [[0, 0], [2, 2]]


@pytest.mark.parametrize("stype", ["row_sparse", "csr"])
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("_maximum", [[1, 0], [0, 3], [0, 1]]),
        ("_minimum", [[0, 0], [0, 0], [0, -2]]),
        ("_hypot", [[1, 0], [0, 3], [0, np.sqrt(5)]]),
        ("_grad_add", [[1, 0], [0, 3], [0, -1]]),
    ],
)
def test_operators_that_map_two_zeros_to_zero_keep_the_storage_type(name, wanted, stype):
    lhs = mx.nd.array([[1, 0], [0, 0], [0, -2]]).tostype(stype)
    rhs = mx.nd.array([[0, 0], [0, 3], [0, 1]]).tostype(stype)
    made = getattr(mx.nd._internal, name)(lhs, rhs)
    assert made.stype == stype
    np.testing.assert_allclose(made.asnumpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("row", [3, 5, -4])
def test_out_of_range_csr_row_raises(row):
    x = mx.nd.ones((3, 4)).tostype("csr")
    with pytest.raises(IndexError, match=f"3 rows has no row {row}"):
        x[row]
    assert x[-3].shape == (1, 4)


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_sparse_out_with_a_different_dtype_raises(stype):
    target = mx.nd.ones((3, 4), dtype="float16").tostype(stype)
    for x in (mx.nd.ones((3, 4)), mx.nd.ones((3, 4)).tostype(stype)):
        with pytest.raises(mx.MXNetError, match="expected float32, got float16"):
            mx.nd.square(x, out=target)
    assert target.dtype == np.float16


def test_retain_from_an_array_without_rows_is_empty():
    kept = mx.nd.sparse.retain(mx.nd.sparse.zeros("row_sparse", (3, 4)), mx.nd.array([0, 1]))
    assert kept.indices.shape == (0,)


@pytest.mark.parametrize("key", [0, [0, 1], None, slice(0, 1)])
def test_indexing_row_sparse_arrays_raises(key):
    with pytest.raises(ValueError, match=r"only supports \[:\]"):
        mx.nd.ones((3, 4)).tostype("row_sparse")[key]


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_views_of_sparse_arrays_raise(stype):
    x = mx.nd.ones((2, 2)).tostype(stype)
    for call in (lambda: x._at(0), lambda: x._slice(0, 1), lambda: x.reshape((4,))):
        with pytest.raises(mx.base.NotSupportedForSparseNDArray):
            call()


def test_row_sparse_values_with_a_wrong_shape_raise():
    with pytest.raises(ValueError, match="needs values"):
        mx.nd.sparse.row_sparse_array((np.zeros((2, 2)), [0, 1]), shape=(1,))


# -- sparse programs against MXNet 1.9.1: storage types, what is stored, values, and warnings ---


GOLDEN = json.loads((HERE / "sparse.json").read_text())
# MXNet raises here needlessly.
MORE_THAN_MXNET = {
    "csr[5]",  # an array without rows can be made there, but not read
    "csr[2:1]",
    "sp.dot(csr, wr, transpose_a=True, forward_stype='default')",
}


def assert_same(mine, wanted, text):
    if isinstance(wanted, list):
        assert isinstance(mine, list) and len(mine) == len(wanted), text
        for m, w in zip(mine, wanted, strict=True):
            assert_same(m, w, text)
        return
    assert {k: v for k, v in mine.items() if k != "values"} == {
        k: v for k, v in wanted.items() if k != "values"
    }, text
    if "values" in wanted:
        np.testing.assert_allclose(
            mine["values"], wanted["values"], rtol=2e-5, atol=1e-6, err_msg=text
        )


def run(text):
    """Return the answer, or None for an error, and whether a fallback was reported."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = answer(text, mx, np)
        except Exception as error:
            assert not isinstance(error, SyntaxError | NameError), text
            found = None
    messages = [str(w.message) for w in caught]
    assert all("fallback detected" in m for m in messages), messages
    return found, bool(messages)


@pytest.mark.parametrize("group", GROUPS)
def test_sparse_programs_match_mxnet(group):
    assert list(GOLDEN[group]) == GROUPS[group], "record anew: tests/golden/record/record_sparse.py"
    for text, wanted in GOLDEN[group].items():
        arrays._warned.clear()
        found, falls_back = run(text)
        if "error" in wanted:
            assert found is None or text in MORE_THAN_MXNET, text
            continue
        assert found is not None, text
        assert_same(found, wanted["answer"], text)
        if group != "gradients":  # torch's backward has other kernels than MXNet's
            assert falls_back == wanted["falls_back"], text


# -- graphs as csr matrices: subgraphs, edges and samples of neighbors --------------------------


@pytest.fixture
def graph():
    """Five vertices; the edge from u to v has the number 10 * u + v."""
    dense = 10 * np.arange(5)[:, None] + np.arange(5)
    rows, columns = np.nonzero(1 - np.eye(5))
    indptr = np.arange(0, 21, 4)
    return mx.nd.sparse.csr_matrix(
        (dense[rows, columns], columns, indptr), shape=(5, 5), dtype="int64"
    )


def vertices(*numbers):
    return mx.nd.array(numbers, dtype="int64")


def test_dgl_adjacency(graph):
    made = contrib.dgl_adjacency(graph)
    assert made.dtype == np.float32 and made.asnumpy().tolist() == (1 - np.eye(5)).tolist()


def test_edge_id(graph):
    found = contrib.edge_id(graph, vertices(0, 2, 4), vertices(3, 2, 1))
    assert found.asnumpy().tolist() == [3, -1, 41]


def test_dgl_subgraph_contains_edges_among_its_vertices(graph):
    made, edges = contrib.dgl_subgraph(graph, vertices(0, 2, 3), return_mapping=True)
    assert edges.asnumpy().tolist() == [[0, 2, 3], [20, 0, 23], [30, 32, 0]]
    assert made.data.asnumpy().tolist() == list(range(6))
    with pytest.raises(MXNetError, match="sorted"):
        contrib.dgl_subgraph(graph, vertices(3, 0), return_mapping=False)


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_uniform_neighbor_samples_respect_their_limits(graph, hops):
    limits = {"num_hops": hops, "num_neighbor": 2, "max_num_vertices": 4}
    found, part, layer = contrib.dgl_csr_neighbor_uniform_sample(graph, vertices(3), **limits)
    count = int(found[-1].asscalar())
    assert found.shape == (5,) and part.shape == (4, 5) and count <= 4
    assert layer.asnumpy()[:count].max() <= hops  # all neighbors may be there already
    counts = np.diff(part.indptr.asnumpy())
    assert counts.max() <= 2 and counts[count:].sum() == 0


def test_non_uniform_sampling_excludes_vertices_of_weight_zero(graph):
    weights, limits = mx.nd.array([1, 1, 0, 1, 0]), {"num_neighbor": 2, "max_num_vertices": 5}
    sample = contrib.dgl_csr_neighbor_non_uniform_sample
    found, part, chosen, layer = sample(graph, weights, vertices(0), **limits)
    assert found.asnumpy()[:3].tolist() == [0, 1, 3] and found[-1].asscalar() == 3
    assert part.indices.asnumpy().tolist() == [1, 3]
    assert chosen.asnumpy()[:3].tolist() == [1, 1, 1] and layer.asnumpy()[:3].tolist() == [0, 1, 1]


def test_dgl_graph_compact(graph):
    limits = {"num_neighbor": 2, "max_num_vertices": 9}
    found, part, _ = contrib.dgl_csr_neighbor_uniform_sample(graph, vertices(1, 4), **limits)
    count = int(found[-1].asscalar())
    made, edges = contrib.dgl_graph_compact(part, found, graph_sizes=count, return_mapping=True)
    assert made.shape == edges.shape == (count, count)
    assert found.asnumpy()[made.indices.asnumpy()].tolist() == part.indices.asnumpy().tolist()
    assert edges.data.asnumpy().tolist() == part.data.asnumpy().tolist()


def test_graph_functions_of_dense_arrays_raise():
    with pytest.raises(MXNetError, match="csr"):
        contrib.dgl_adjacency(mx.nd.ones((2, 2)))


def test_sparse_embedding_has_row_sparse_gradients():
    sizes = {"input_dim": 4, "output_dim": 2, "deterministic": True}
    for stype in ("default", "row_sparse"):
        weight = nd.arange(8).reshape((4, 2)).tostype(stype)
        weight.attach_grad(stype="row_sparse")
        with mx.autograd.record():
            out = contrib.SparseEmbedding(nd.array([1, 0, 1]), weight, **sizes)
        out.backward()
        assert weight.grad.stype == "row_sparse"
        assert weight.grad.asnumpy().tolist() == [[1, 1], [2, 2], [0, 0], [0, 0]]
    symbol = mx.sym.contrib.SparseEmbedding(mx.sym.var("d"), name="e", **sizes)
    assert json.loads(symbol.tojson())["nodes"][2]["attrs"]["deterministic"] == "True"
    bound = symbol.simple_bind(mx.cpu(), d=(3,))
    assert bound.grad_dict["e_weight"].stype == "row_sparse"
    # rows that were not looked up do not decay
    module = mx.mod.Module(mx.sym.MakeLoss(symbol.sum()), data_names=["d"], label_names=None)
    module.bind([("d", (3,))])
    module.init_params(mx.init.One())
    module.init_optimizer(optimizer_params={"learning_rate": 0.1, "wd": 0.5, "rescale_grad": 1.0})
    module.forward(mx.io.DataBatch([nd.array([1, 0, 1])]))
    module.backward()
    module.update()
    values = module.get_params()[0]["e_weight"].asnumpy()
    np.testing.assert_allclose(values[:, 0], [0.85, 0.75, 1, 1], rtol=1e-6)


def test_scatter_elemwise_div_by_csr_is_row_sparse():
    rows = nd.array([[1, 0], [0, 0], [2, 4]]).tostype("row_sparse")
    below = nd.array([[1, 2], [1, 1], [2, 2]]).tostype("csr")
    out = nd._internal._scatter_elemwise_div(rows, below)
    assert out.stype == "row_sparse"
    assert out.asnumpy().tolist() == [[1, 0], [0, 0], [1, 2]]


def test_cast_storage_of_a_scalar_to_row_sparse_raises():
    with mx.np_shape(True), pytest.raises(mx.MXNetError, match="needs an array with rows"):
        mx.nd.cast_storage(mx.nd.ones(()), stype="row_sparse")
