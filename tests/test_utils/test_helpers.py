"""Random arrays, statistics, scopes, and the names of `import *`."""

from __future__ import annotations

import os

import numpy as np
import pytest

import mxnet as mx
from mxnet import test_utils as t


@pytest.fixture(autouse=True)
def seed():
    np.random.seed(0)  # noqa: NPY002 (what the helpers use)


def test_star_import_provides_commonly_used_names():
    names = {}
    exec("from mxnet.test_utils import *", names)
    wanted = "mx np os sys array Context rnd logging npt time assert_almost_equal default_context"
    assert set(wanted.split()) <= names.keys()
    less_common = "DummyIter get_mnist_iterator ss json gzip zipfile OrderedDict verify_generator"
    assert set(less_common.split()) <= names.keys()
    assert not {"iterators", "comparison", "annotations", "Any"} & names.keys()
    assert names["mx"] is mx and names["np"] is np


def test_seeded_random_shapes_and_arrays_match_mxnet():
    assert t.rand_shape_2d() == (6, 1) and t.rand_shape_3d() == (4, 4, 8)
    assert t.rand_shape_nd(4) == (10, 4, 6, 3) and t.rand_shape_2d(2, 2, True) == (0, 2)
    np.random.seed(0)  # noqa: NPY002
    vector, scalar = t.random_arrays((2,), ())
    assert vector.dtype == scalar.dtype == np.float32 and scalar.shape == ()
    np.testing.assert_allclose(vector, [1.7640524, 0.4001572])
    assert t.random_arrays((2,)).shape == (2,)


def test_random_value_helpers():
    (u,) = t.random_uniform_arrays((50,), low=3, high=4, dtype=np.float64)
    assert u.dtype == np.float64 and (u >= 3).all() and (u < 4).all()
    assert sorted(t.random_sample(range(5), 5)) == [0, 1, 2, 3, 4]
    px, py = t.rand_coord_2d(0, 5, 10, 12)
    assert 0 <= px < 5 and 10 <= py < 12
    assert t.rand_ndarray((2, 3), dtype="float64", ctx=mx.cpu(1)).context == mx.cpu(1)


def test_small_array_helpers():
    assert (t.create_2d_tensor(3, 2).asnumpy() == [[0, 0], [1, 1], [2, 2]]).all()
    assert t.create_vector(3).dtype == np.int64
    assert t.get_identity_mat_batch(3).shape == (2, 3, 3)
    assert (t.assign_each(np.ones(2), lambda v: v * 2) == 2).all()
    assert (t.assign_each2(np.ones(2), np.ones(2), lambda a, b: a - b) == 0).all()
    assert (t.assign_each(np.ones(2), None) == 1).all()
    ones = np.ones((2, 3, 4))
    assert t.np_reduce(ones, (0, -1), True, np.sum).shape == (1, 3, 1)
    assert t.np_reduce(ones, None, False, np.sum) == 24
    assert (t.collapse_sum_like(ones, (3, 1)) == 8).all()


def test_random_matrix_helpers():
    q = t.new_orthonormal_matrix_2d(4)
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=1e-12)
    for make in (t.new_matrix_with_real_eigvals_nd, t.new_sym_matrix_with_real_eigvals_nd):
        made = make((2, 1, 5, 5))
        values = np.linalg.eigvals(made)
        assert made.shape == (2, 1, 5, 5) and np.isreal(values).all() and abs(values).max() < 12
    m = t.new_sym_matrix_with_real_eigvals_2d(3)
    assert (m == m.T).all() and t.new_matrix_with_real_eigvals_2d(3).shape == (3, 3)


def test_rand_sparse_ndarray_and_create_sparse_array():
    csr, (indptr, indices, data) = t.rand_sparse_ndarray((30, 20), "csr", density=0.3)
    assert csr.stype == "csr" and indptr.shape == (31,) and indices.shape == data.shape
    assert 0.2 < np.count_nonzero(csr.asnumpy()) / 600 < 0.4
    rsp, (values, rows) = t.rand_sparse_ndarray((9, 4), "row_sparse", density=0.5)
    assert rsp.stype == "row_sparse" and values.shape == (len(rows), 4)
    made = t.create_sparse_array((3, 4), "row_sparse", data_init=0.5, rsp_indices=(2, 0))
    assert (made.asnumpy() == [[0.5] * 4, [0] * 4, [0.5] * 4]).all()
    made = t.create_sparse_array((3, 4), "row_sparse", rsp_indices=(1,), modifier_func=lambda v: 7)
    assert (made.asnumpy()[1] == 7).all()
    assert (t.create_sparse_array_zd((3, 4), "csr", density=0).asnumpy() == 0).all()
    assert (t.create_sparse_array_zd((3, 4), "row_sparse", density=1).asnumpy() == 0).all()


def test_powerlaw_distribution_doubles_row_lengths():
    csr = t.rand_ndarray((5, 16), "csr", density=0.5, distribution="powerlaw")
    assert csr.indptr.asnumpy().tolist() == [0, 2, 6, 14, 30, 40]
    full = t.rand_ndarray((3, 4), "csr", density=1.0, distribution="powerlaw")
    assert full.indptr.asnumpy().tolist() == [0, 4, 8, 12]
    with pytest.raises(ValueError, match="every row"):
        t.rand_ndarray((5, 16), "csr", density=0.01, distribution="powerlaw")


def test_invalid_sparse_arguments_raise():
    for args, word in (
        (((5, 6), "zz"), "unknown storage type"),
        (((5, 6), "row_sparse", 0.5, None, "powerlaw"), "not supported for row_sparse"),
        (((5, 6), "csr", 0.5, None, "zz"), "Distribution not supported"),
    ):
        with pytest.raises(AssertionError, match=word):
            t.rand_sparse_ndarray(*args)
    with pytest.raises(ValueError, match="two axes"):
        t.rand_sparse_ndarray((5, 6, 7), "csr")


def test_shuffle_csr_column_indices():
    sparse = pytest.importorskip("scipy.sparse")
    csr = sparse.csr_matrix(np.triu(np.ones((8, 8))))
    t.shuffle_csr_column_indices(csr)
    assert (csr.toarray() == np.triu(np.ones((8, 8)))).all()
    assert not (csr.indices == np.triu(np.ones((8, 8))).nonzero()[1]).all()


def test_verify_generator_detects_wrong_distributions():
    right = lambda n: np.random.uniform(0, 10, n)  # noqa: E731, NPY002
    wrong = lambda n: np.random.uniform(0, 9, n)  # noqa: E731, NPY002
    buckets, probs = t.gen_buckets_probs_with_ppf(lambda q: 10 * q, 5)
    assert buckets[0] == (0.0, 2.0) and probs == [0.2] * 5
    assert len(t.verify_generator(right, buckets, probs, nsamples=10000, nrepeat=5)) == 5
    with pytest.raises(AssertionError, match="Generator test fails"):
        t.verify_generator(wrong, buckets, probs, nsamples=10000, nrepeat=3)
    assert t.mean_check(right, 5, 10 / 12**0.5, 10000) and not t.mean_check(wrong, 5, 2.9, 10000)
    normal = lambda n: np.random.normal(0, 2, n)  # noqa: E731, NPY002
    assert t.var_check(normal, 2, 10000) and not t.var_check(normal, 3, 10000)


def test_chi_square_check():
    stats = pytest.importorskip("scipy.stats")
    values = mx.nd.array(np.repeat([0, 1, 2, 3], [255, 253, 241, 251]))
    p, observed, expected = t.chi_square_check(lambda n: values, [0, 1, 2, 3], [0.25] * 4, 1000)
    assert p == pytest.approx(stats.chisquare([255, 253, 241, 251]).pvalue)
    assert observed.tolist() == [255, 253, 241, 251] and expected.tolist() == [250] * 4
    with pytest.raises(AssertionError, match="buckets must be a list"):
        t.chi_square_check(lambda n: values, 5, [1.0])
    with pytest.raises(AssertionError, match="overlap"):
        t.chi_square_check(lambda n: values, [(0, 3), (2, 4)], [0.5, 0.5])


def test_environment_scope():
    with t.environment({"MXNEXT_A": "1", "MXNEXT_B": "2"}), t.environment("MXNEXT_A", None):
        assert "MXNEXT_A" not in os.environ and os.environ["MXNEXT_B"] == "2"
    assert "MXNEXT_B" not in os.environ
    with pytest.raises(AssertionError, match="Expecting one dict"), t.environment("a", "b", "c"):
        pass


def test_default_context():
    assert t.default_context() == mx.cpu()
    t.set_default_context(mx.cpu(1))
    try:
        assert t.default_context() == mx.current_context() == mx.nd.ones((1,)).context == mx.cpu(1)
        with mx.cpu(2):
            t.set_default_context(mx.cpu(3))
            assert mx.current_context() == mx.Context._default_ctx.value == mx.cpu(3)
        assert mx.current_context() == mx.cpu(1)
    finally:
        t.set_default_context(mx.cpu(0))
    assert list(t.list_gpus()) == list(range(mx.context.num_gpus()))


def test_retry():
    calls = []

    @t.retry(3)
    def third_time():
        calls.append(1)
        assert len(calls) == 3
        return "done"

    assert third_time() == "done"
    with pytest.raises(AssertionError):
        t.retry(2)(lambda: t.assert_almost_equal(1, 2))()
    with pytest.raises(ZeroDivisionError):
        t.retry(2)(lambda: 1 / 0)()
    with pytest.raises(AssertionError, match="positive"):
        t.retry(0)


def test_discard_stderr(capfd):
    with t.discard_stderr():
        os.write(2, b"hidden")
    os.write(2, b"seen")
    assert capfd.readouterr().err == "seen"


def test_has_tvm_ops_and_is_cd_run(monkeypatch):
    assert not t.has_tvm_ops() and t.is_op_runnable()
    monkeypatch.setenv("CD_JOB", "1")
    assert t.is_cd_run()


def test_dummy_iter_repeats_its_first_batch():
    real = mx.io.NDArrayIter(np.arange(8).reshape(4, 2), batch_size=2)
    dummy = t.DummyIter(real)
    first, second = next(dummy), next(dummy)
    assert first is second and dummy.batch_size == 2
    with pytest.raises(AttributeError, match="nothing"):
        t.nothing  # noqa: B018
