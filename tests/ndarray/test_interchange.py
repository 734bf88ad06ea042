"""Arrays to and from NumPy, torch, DLPack, pickles, files and notebooks."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd
from tests.batches import check_each

DTYPES = ["float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_round_trip(dtype):
    host = np.array([[0, 1], [1, 0]], dtype=dtype)
    x = nd.array(host, dtype=dtype)
    assert x.dtype is np.dtype(dtype).type and x.asnumpy().dtype == host.dtype
    np.testing.assert_array_equal(x.asnumpy(), host)
    np.testing.assert_array_equal(np.asarray(x), host)


def test_asnumpy_is_a_copy():
    x = nd.ones((2,))
    x.asnumpy()[:] = 5
    assert x.asnumpy().tolist() == [1, 1]


def test_from_numpy_shares_memory_and_makes_it_read_only():
    host = np.array([1.0, 2.0], dtype="float32")
    x = nd.from_numpy(host)
    x[:] = 7
    assert host.tolist() == [7, 7] and not host.flags.writeable
    free = np.ones(2, dtype="float32")
    assert nd.from_numpy(free, zero_copy=False).asnumpy().tolist() == [1, 1]
    assert free.flags.writeable
    with pytest.raises(ValueError, match="contiguous"):
        nd.from_numpy(np.ones((4, 4), dtype="float32").T[::2])


def test_to_and_from_torch_share_memory():
    tensor = torch.zeros(3)
    x = nd.from_torch(tensor)
    x += 1
    assert tensor.tolist() == [1, 1, 1]
    x.to_torch().fill_(4)
    assert x.asnumpy().tolist() == [4, 4, 4]
    assert nd.array(torch.ones(2, dtype=torch.int64)).dtype is np.float32


def test_to_torch_of_recorded_results_does_not_require_grad():
    x = nd.ones((2,))
    x.attach_grad()
    with mx.autograd.record():
        y = x * 2
    assert not y.to_torch().requires_grad
    assert y.asnumpy().tolist() == [2, 2]


def test_to_and_from_dlpack_share_memory():
    x = nd.zeros((2, 2))
    tensor = torch.from_dlpack(x)
    tensor[0, 0] = 3
    assert x.asnumpy()[0, 0] == 3
    np.testing.assert_array_equal(np.from_dlpack(x), x.asnumpy())
    back = nd.from_dlpack(x.to_dlpack_for_write())
    back[:] = 8
    assert x.asnumpy().min() == 8
    assert nd.from_dlpack(nd.to_dlpack_for_read(x)).shape == (2, 2)


def test_pickles_keep_values_dtypes_and_contexts():
    x = nd.array([1, 2], dtype="int64", ctx=mx.cpu(1))
    y = pickle.loads(pickle.dumps(x))
    assert y.asnumpy().tolist() == [1, 2] and y.dtype is np.int64


def test_deep_copies_are_independent():
    x = nd.ones((2,))
    x.attach_grad("add")
    y = copy.deepcopy(x)
    y[:] = 5
    assert x.asnumpy().tolist() == [1, 1] and y.grad is not None and y.grad is not x.grad


@pytest.mark.parametrize("make", [nd.array, mx.np.array], ids=["nd", "np"])
def test_bfloat16_roundtrip_through_numpy(make):
    bits = nd.array([1.0, 2.5], dtype="bfloat16").asnumpy()
    assert make(bits, dtype="bfloat16").astype("float32").asnumpy().tolist() == [1.0, 2.5]
    other = np.array([1.0, 2.5], dtype=pytest.importorskip("ml_dtypes").bfloat16)
    assert make(other, dtype="float32").asnumpy().tolist() == [1.0, 2.5]


def test_bfloat16_asnumpy_keeps_the_bits():
    x = nd.cast(nd.array([1.0, 2.5]), dtype=mx.dtypes.bfloat16)
    assert x.dtype == mx.dtypes.bfloat16
    assert x.asnumpy().view("uint16").tolist() == [0x3F80, 0x4020]
    assert nd.cast(x, dtype="float32").asnumpy().tolist() == [1, 2.5]


@pytest.mark.parametrize("form", ["list", "dict", "single"])
def test_save_and_load(tmp_path, form):
    a, b = nd.array([[1, 2]]), nd.array([3], dtype="int32")
    data = {"list": [a, b], "dict": {"a": a, "b": b}, "single": a}[form]
    path = str(tmp_path / "x.params")
    nd.save(path, data)
    found = nd.load(path)
    if form == "dict":
        assert sorted(found) == ["a", "b"] and found["b"].dtype is np.int32
    else:
        assert len(found) == (1 if form == "single" else 2)
    again = nd.load_frombuffer((tmp_path / "x.params").read_bytes())
    assert type(again) is type(found)


def test_saving_non_arrays_raises(tmp_path):
    with pytest.raises(ValueError, match="NDArray"):
        nd.save(str(tmp_path / "x"), 5)
    with pytest.raises(TypeError, match="NDArray"):
        nd.save(str(tmp_path / "x"), [np.ones(2)])
    assert not list(tmp_path.iterdir())


def test_repr_html_is_a_table():
    page = nd.array([[1, 2], [3, 4]])._repr_html_()
    assert page.startswith("<table>") and "2x2" in page and page.count("<td>") == 4
    assert "<pre>" in nd.zeros((2, 2, 2))._repr_html_()


def test_numpy_functions_accept_arrays():
    x = nd.array([1, 2])
    assert np.array_equal(x, [1, 2]) and np.all(x)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nd.Convolution(nd.ones((1, 1, 3, 3)), num_filtr=2), "num_filter"),
        (lambda: nd.Activation(nd.ones(2), act_type="rlu"), "rlu.*valid values"),
        (lambda: nd.FullyConnected(nd.ones((2, 3)), nd.ones((4, 3))), "num_hidden"),
        (lambda: nd.FullyConnected(nd.ones((2, 3)), nd.ones((4, 3)), num_hidden=4), "3 inputs"),
        (lambda: nd.sum(nd.ones((2, 2)), axis="x"), "axis"),
        (lambda: nd.sum(nd.ones((2, 2)), axis=5), "5"),
        (lambda: nd.dot(nd.ones((2, 3)), nd.ones((2, 3))), "dot"),
        (lambda: nd.concat(nd.ones((2, 3)), nd.ones((3, 3))), "Concat"),
        (lambda: nd.ones((2, 3)) + nd.ones((4,)), r"\[2, 3\]"),
        (lambda: nd.relu(np.ones(2)), "NDArray"),
    ],
)
def test_invalid_calls_raise(call, words):
    with pytest.raises((mx.MXNetError, TypeError), match=words):
        call()


def test_private_at_and_slice_share_memory():
    x = nd.arange(12).reshape((4, 3))
    x._at(-1)[:] = 7
    x._slice(0, 2)[:] = 5
    assert x.asnumpy()[:, 0].tolist() == [5, 5, 6, 7]
    assert x._at(np.int64(2)).shape == (3,) and x._slice(-2, None).shape == (2, 3)
    with pytest.raises(TypeError):
        x._at(0.5)
    with pytest.raises(IndexError):
        x._at(-9)


def test_context_as_a_string():
    for make in (nd.zeros, nd.ones, nd.arange, nd.eye):
        assert make(2, ctx="cpu(1)").context == mx.cpu(1)
    with pytest.raises(mx.MXNetError, match="'5' is not a context"):
        nd.zeros(2, ctx=5)


@pytest.mark.parametrize("shape", [2.5, (2.5,), "x", ("x",), None], ids=repr)
def test_shapes_with_non_integers_raise(shape):
    with pytest.raises(mx.MXNetError, match="Invalid Parameter format for shape"):
        nd.zeros(shape)


@pytest.mark.parametrize("shape", [2, [2], np.int64(2), np.array([2])], ids=repr)
def test_shapes_as_lists_and_numpy_integers(shape):
    assert nd.zeros(shape).shape == (2,)


def test_concatenate_of_incompatible_arrays_raises():
    with pytest.raises(AssertionError, match=r"\(2, 3\) float32, \(3, 5\) float32"):
        nd.concatenate([nd.ones((2, 3)), nd.ones((3, 5))])
    with pytest.raises(AssertionError, match="int32"):
        nd.concatenate([nd.ones(2), nd.ones(2, dtype="int32")])
    assert nd.concatenate([nd.ones((2, 3)), nd.ones((2, 5))], axis=-1).shape == (2, 8)


def test_copying_an_array_to_itself_warns():
    x = mx.nd.ones(2)
    with pytest.warns(RuntimeWarning, match="copy an array to itself"):
        assert x.copyto(x) is x


@pytest.mark.parametrize("module", [mx.nd, mx.np], ids=["nd", "np"])
def test_numpy_arrays_with_negative_strides(module):
    """NumPy calls a flipped axis of one element contiguous; torch has no negative strides."""
    array = module.array([10.0, 20, 30])
    order, values = np.arange(3)[::-1], np.arange(3.0)[::-1]
    matrix = module.array([[1, 2], [3, 4]])

    def write(key, value):
        target = module.zeros((3,))
        target[key] = value
        return target

    cases = {
        "read": (lambda: array[order], [30, 20, 10]),
        "sorted": (lambda: array[np.argsort(np.array([3, 1, 2]))[::-1]], [10, 30, 20]),
        "two": (lambda: matrix[np.array([0, 1])[::-1], np.array([1, 0])[::-1]], [3, 2]),
        "write at": (lambda: write(order, np.arange(3.0)), [2, 1, 0]),
        "write all": (lambda: write(slice(None), values), [2, 1, 0]),
        "write some": (lambda: write(slice(0, 2), values[:2]), [2, 1, 0]),
        "write both": (lambda: write(order, values), [0, 1, 2]),
        "column": (lambda: module.array(np.ones((3, 1))[:, ::-1]), [[1], [1], [1]]),
        "row": (lambda: module.array(np.ones((1, 3))[::-1]), [[1, 1, 1]]),
        "matrix": (lambda: module.array(np.eye(2)[::-1]), [[0, 1], [1, 0]]),
        "copied": (lambda: nd.from_numpy(values, zero_copy=False), [2, 1, 0]),
        "shared column": (lambda: nd.from_numpy(np.ones((3, 1))[:, ::-1]), [[1], [1], [1]]),
        "shared one": (lambda: nd.from_numpy(np.arange(1.0)[::-1]), [0]),
    }

    def check(case):
        function, expected = case
        assert function().asnumpy().tolist() == expected

    check_each(cases, check)
    mask = np.array([True, False, False])[::-1]
    assert array[mask].asnumpy().tolist() == ([30] if module is mx.np else [10, 10, 20])


def test_executors_accept_numpy_arrays_with_negative_strides():
    executor = (mx.sym.var("x") * 2).simple_bind(mx.cpu(), x=(3,))
    values = np.arange(3.0, dtype="float32")[::-1]
    assert executor.forward(is_train=True, x=values)[0].asnumpy().tolist() == [4, 2, 0]
    executor.backward(nd.array(values))
    assert executor.grad_arrays[0].asnumpy().tolist() == [4, 2, 0]


def test_from_numpy_of_a_flipped_column_shares_memory():
    host = np.ones((3, 1), dtype="float32")
    x = nd.from_numpy(host[:, ::-1])
    x[:] = 7
    assert host.tolist() == [[7], [7], [7]]


def test_dlpack_exports_contiguous_memory():
    x = nd.arange(6).reshape((2, 3))
    x.attach_grad()
    with mx.autograd.record():
        y = x.sum()
    y.backward()
    arrays = {
        "transposed": x.T,
        "broadcast": nd.ones((1, 3)).broadcast_to((2, 3)),
        "column": x[:, 1],
        "row": x[1],
        "gradient": x.grad,
    }

    def check(array):
        for export in (array.to_dlpack_for_read, array.to_dlpack_for_write):
            tensor = torch.utils.dlpack.from_dlpack(export())
            assert tensor.is_contiguous()
            assert tensor.tolist() == array.asnumpy().tolist()

    check_each(arrays, check)


def test_one_element_views_and_empty_sparse_arrays_are_pickled(tmp_path):
    csr, rows = nd.sparse.csr_matrix, nd.sparse.row_sparse_array
    arrays = {
        "element": nd.arange(6).reshape((1, 6))[:, 3],
        "float16": nd.arange(6, dtype="float16").reshape((1, 6))[:, 4],
        "slice": nd.arange(6).reshape((1, 6))[:, 2:3],
        "csr": nd.sparse.zeros("csr", (2, 3)),
        "csr of lists": csr(([], [], [0, 0, 0]), shape=(2, 3)),
        "csr of NumPy": csr((np.array([]), np.array([]), np.array([0, 0, 0])), shape=(2, 3)),
        "csr of a matrix": csr(np.zeros((2, 3))),
        "copy": csr(([], [], [0, 0, 0]), shape=(2, 3)).copy(),
        "row_sparse": rows((np.zeros((0, 3)), []), shape=(2, 3)),
    }

    def check(array):
        nd.save(str(tmp_path / "x"), [array])
        for twin in (nd.load(str(tmp_path / "x"))[0], pickle.loads(pickle.dumps(array))):
            assert (twin.shape, twin.stype, twin.dtype) == (array.shape, array.stype, array.dtype)
            assert twin.asnumpy().tolist() == array.asnumpy().tolist()

    check_each(arrays, check)


@pytest.mark.skipif(
    tuple(map(int, np.__version__.split(".")[:2])) < (2, 4),
    reason="NumPy before 2.4 asks for `dtype`, which is a scalar type as in MXNet",
)
def test_arrays_as_numpy_dtype():
    arrays = {
        "float32": nd.ones((2, 3)),
        "int8": nd.ones((2,), dtype="int8"),
        "float64": mx.np.ones((2, 3), dtype="float64"),
        "float16": nd.sparse.zeros("csr", (2, 3), dtype="float16"),
    }

    def check(item):
        name, array = item
        assert np.dtype(array) == name and np.zeros(2, dtype=array).dtype == name

    check_each({name: (name, array) for name, array in arrays.items()}, check)
    assert arrays["float32"].size * np.dtype(arrays["float32"]).itemsize == 24
