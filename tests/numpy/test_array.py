"""`mx.np.ndarray`: class, memory, gradients, pickles and interoperability."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as onp
import pytest
import torch

import mxnet as mx
from mxnet import autograd, np, npx


def test_np_arrays_are_instances_of_legacy_ndarray() -> None:
    x = np.ones(2)
    assert isinstance(x, mx.nd.NDArray)
    assert type(x + 1) is type(x.sum()) is type(x[0]) is np.ndarray


def test_as_nd_ndarray_and_as_np_ndarray_share_memory() -> None:
    x = np.zeros(3)
    x.as_nd_ndarray()[:] = 4
    assert x.tolist() == [4, 4, 4]
    assert type(x.as_nd_ndarray()) is mx.nd.NDArray
    assert type(mx.nd.ones(2).as_np_ndarray()) is np.ndarray


def test_legacy_functions_return_the_array_class_of_their_input() -> None:
    x = np.array([-1.0, 2.0])
    for _ in range(2):  # the second call is a cached one
        assert type(mx.nd.relu(x)) is np.ndarray
        assert type(mx.nd.concat(x, x, dim=0)) is np.ndarray
        assert type(mx.nd.maximum(x, 0.5)) is np.ndarray
    assert type(mx.nd.relu(mx.nd.ones(2))) is mx.nd.NDArray


def test_np_functions_on_legacy_arrays_raise() -> None:
    with pytest.raises(TypeError, match="as_np_ndarray"):
        np.exp(mx.nd.ones(2))
    with pytest.raises(TypeError, match="as_np_ndarray"):
        npx.softmax(mx.nd.ones((2, 2)))


@pytest.mark.parametrize(("grad_req", "wanted"), [("write", 6), ("add", 12)])
def test_grad_req_write_add_and_null(grad_req: str, wanted: float) -> None:
    x = np.array(3.0)
    x.attach_grad(grad_req)
    for _ in range(2):
        with autograd.record():
            y = x * x + np.exp(x) * 0
        y.backward()
    assert type(x.grad) is np.ndarray and x.grad.shape == ()
    assert float(x.grad) == wanted


def test_gradients_of_indexing_and_masks() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    x.attach_grad()
    with autograd.record():
        y = (x[x > 1] ** 2).sum() + x[0, 0] * 5 + x[:, None, 1].sum()
    y.backward()
    assert x.grad.tolist() == [[5, 5], [6, 9]]


def test_second_order_gradients() -> None:
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        (slope,) = autograd.grad((x**3).sum(), [x], create_graph=True, retain_graph=True)
        total = slope.sum()
    total.backward()
    assert x.grad.tolist() == [6, 12]


def test_writing_to_a_recorded_array_raises() -> None:
    x = np.ones(2)
    x.attach_grad()
    with autograd.record():
        y = x * 2
        with pytest.raises(mx.MXNetError, match="computational graph"):
            y[0] = 1
        with pytest.raises(mx.MXNetError, match="computational graph"):
            y += 1


@pytest.mark.parametrize("value", [np.array(2.5), np.zeros((0, 3)), np.ones(2, dtype="bool")])
def test_pickles_keep_scalars_and_empty_arrays(value: np.ndarray) -> None:
    copy = pickle.loads(pickle.dumps(value))
    assert type(copy) is np.ndarray
    assert repr(copy) == repr(value)


def test_files_keep_scalars_names_and_empty_arrays(tmp_path: Path) -> None:
    file = str(tmp_path / "arrays")
    npx.save(file, {"x": np.array(1.5), "y": np.zeros((0, 2))})
    found = npx.load(file)
    assert found["x"].shape == () and found["y"].shape == (0, 2)
    assert type(found["x"]) is np.ndarray
    npx.save(file, [np.ones(2)])
    assert npx.load(file)[0].tolist() == [1, 1]
    with mx.util.np_array(False), pytest.raises(ValueError, match="set_np"):
        npx.save(file, np.ones(2))


def test_savez_accepts_arrays(tmp_path: Path) -> None:
    onp.savez(tmp_path / "a.npz", x=np.ones(2))
    assert onp.load(tmp_path / "a.npz")["x"].tolist() == [1, 1]


def test_dlpack_shares_memory_both_ways() -> None:
    x = np.zeros(2)
    torch.from_dlpack(x)[0] = 5
    assert x.tolist() == [5, 0]
    assert onp.from_dlpack(x).tolist() == [5, 0]
    tensor = torch.ones(2)
    y = np.from_dlpack(tensor)
    y[1] = 7
    assert tensor.tolist() == [1, 7]


def test_np_semantics_are_thread_local() -> None:
    import threading

    seen = []
    thread = threading.Thread(target=lambda: seen.append((npx.is_np_array(), npx.is_np_shape())))
    thread.start()
    thread.join(timeout=60)
    assert seen == [(False, False)]
    assert npx.is_np_array()


def test_use_np_decorates_functions_and_classes() -> None:
    npx.reset_np()

    @mx.util.use_np
    def inside() -> tuple[bool, bool]:
        return npx.is_np_array(), npx.is_np_shape()

    assert inside() == (True, True)
    assert not npx.is_np_array()


def test_copyto_returns_its_target() -> None:
    x, y = np.ones(2), np.zeros(2)
    assert x.copyto(y) is y
    assert y.tolist() == [1, 1]


def test_assigning_values_with_leading_ones_to_reversed_slices() -> None:
    x = np.zeros((2, 3))
    x[::-1] = np.array([[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]])
    assert x.tolist() == [[4, 5, 6], [1, 2, 3]]


def test_backward_from_a_non_differentiable_hybridized_output() -> None:
    class Largest(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.np.argmax(x, axis=1), F.np.isnan(x)

    net = Largest()
    net.hybridize()
    x = np.ones((2, 3))
    x.attach_grad()
    with autograd.record():
        outputs = net(x)
    autograd.backward(outputs)
    assert x.grad.sum() == 0


def test_norm_accepts_fro_for_vectors() -> None:
    x = np.array([[3.0, 4.0], [6.0, 8.0]])
    assert np.linalg.norm(x, "fro", axis=1).tolist() == [5, 10]
    assert np.linalg.eigh(np.eye(2), "u")[0].tolist() == [1, 1]


def test_choice_returns_elements_of_the_array() -> None:
    assert np.random.choice(np.array([7.0]), 2).tolist() == [7, 7]
    assert np.random.choice(np.full((1, 2), 3.0), 2).shape == (2, 2)


def test_gradients_of_integer_reductions_with_dtype() -> None:
    x = np.array([[1, 2], [3, 4]], dtype="int32")
    x.attach_grad()
    for function, expected in (
        (np.sum, [[1, 1], [1, 1]]),
        (np.prod, [[3, 4], [1, 2]]),
        (np.cumsum, [[2, 2], [1, 1]]),
    ):
        with autograd.record():
            y = function(x, axis=0, dtype="int64")
        y.backward()
        assert y.dtype == "int64"
        assert x.grad.tolist() == expected


def test_samplers_with_invalid_parameters_raise() -> None:
    for name in ("pareto", "weibull", "power", "gamma"):
        with pytest.raises(ValueError, match="> 0"):
            getattr(np.random, name)(0)
    with pytest.raises(mx.MXNetError, match="sum"):
        np.random.multinomial(3, [0.6, 0.7])


def test_get_builtin_op_has_a_signature() -> None:
    from mxnet._compat.numpy_op_signature import _get_builtin_op

    assert "axis" in str(_get_builtin_op("_np_sum").__signature__)


def test_element_of_legacy_array_is_a_scalar_with_np_shape() -> None:
    x = mx.nd.array([[1.0, 2.0]])
    with mx.util.np_shape(False):
        assert x[0, 1].shape == (1,)
    with mx.util.np_shape(True):
        assert x[0, 1].shape == x[0][1].shape == ()


def test_clip_and_unravel_index_with_scalars() -> None:
    x = np.array([1.0, 2.0, 3.0])
    assert np.clip(x, np.array(1.5), np.array(2.5)).tolist() == [1.5, 2, 2.5]
    assert np.clip(5, 1, 3) == 3
    assert np.unravel_index(5, (2, 3)) == (1, 2)


def test_as_in_ctx_accepts_the_keyword_ctx() -> None:
    assert np.ones(2).as_in_ctx(ctx=mx.cpu(1)).ctx == mx.cpu(1)


def test_einsum_of_booleans_is_boolean() -> None:
    x = np.array([[True, False], [True, True]], dtype="bool")
    out = np.einsum("ij,jk->ik", x, x)
    assert out.dtype == "bool"
    assert out.tolist() == [[True, False], [True, True]]


# -- names of the Python array API standard -----------------------------------------------------


def test_array_namespace() -> None:
    assert np.ones(2).__array_namespace__() is np


def test_asarray_dtypes_and_copying() -> None:
    x = np.ones(2)
    assert np.asarray(x) is x
    assert np.asarray([1, 2]).dtype == np.int64
    assert np.asarray([True]).dtype == np.bool_
    assert np.asarray([0.5]).dtype == np.float32
    with pytest.raises(ValueError, match="copy"):
        np.asarray([1], copy=False)


def test_array_api_standard_function_names() -> None:
    x = np.array([[0.5, 1.0]])
    assert np.concat([x, x]).shape == (2, 2)
    assert np.permute_dims(x, (1, 0)).shape == x.mT.shape == (2, 1)
    assert np.pow(x, 2).tolist() == [[0.25, 1.0]]
    assert np.astype(x, "int32").dtype == np.int32
    assert np.isdtype(x.dtype, ("integral", "real floating"))
    assert np.logical_and(x, x > 0.7).tolist() == [[False, True]]


def test_array_namespace_dispatch_like_in_scikit_learn() -> None:
    def standardize(values):
        xp = values.__array_namespace__()
        return (values - xp.mean(values, axis=0)) / xp.std(values, axis=0)

    assert standardize(np.array([[1.0], [3.0]])).tolist() == [[-1], [1]]


# -- keywords of ufuncs: only defaults are accepted ---------------------------------------------


# As in MXNet 1.9.1: NotImplementedError for NumPy's keywords, TypeError for others.
REFUSED = [
    ({"where": False}, NotImplementedError),
    ({"subok": False}, NotImplementedError),
    ({"subok": "no"}, TypeError),
    ({"dtype": "int8"}, NotImplementedError),
    ({"dtype": int}, TypeError),
    ({"dtype": "abc"}, TypeError),
    ({"casting": "safe"}, NotImplementedError),
    ({"casting": "fast"}, TypeError),
    ({"order": "C"}, NotImplementedError),
    ({"order": "other"}, NotImplementedError),
    ({"order": 3}, TypeError),
    ({"signature": "dd"}, TypeError),
    ({"anything": 1}, TypeError),
]
UNARY = ["exp", "abs", "fabs", "round", "around", "nan_to_num"]
CALLS = {
    **{name: (mx.nd.ones((2, 2)),) for name in UNARY},
    "invert": (mx.nd.ones((2, 2), dtype="int32"),),
    "bitwise_not": (mx.nd.ones((2, 2), dtype="int32"),),
    "add": (mx.nd.ones((2, 2)), mx.nd.ones((2, 2))),
    "matmul": (mx.nd.ones((2, 2)), mx.nd.ones((2, 2))),
}


@pytest.mark.parametrize("name", CALLS)
def test_keywords_of_ufuncs(name):
    arrays = [x.as_np_ndarray() for x in CALLS[name]]
    function = getattr(np, name)
    plain = function(*arrays).asnumpy()
    defaults = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}
    assert (function(*arrays, **defaults).asnumpy() == plain).all()
    for keywords, error in REFUSED:
        with pytest.raises(error):
            function(*arrays, **keywords)


def test_multinomial_rejects_unknown_keywords():
    with pytest.raises(TypeError, match="dtype"):
        np.random.multinomial(3, [0.5, 0.5], dtype="int32")


def test_format_spec_of_non_scalar_arrays_raises() -> None:
    assert f"{np.array(3.14):.2f}" == "3.14" and f"{np.array([3.0])}" == "[3.]"
    for array in (np.array([3.14]), np.array([[3.0]]), np.array([1.0, 2.0])):
        for spec in ("30", ".2f", ">8", "s"):
            with pytest.raises(TypeError, match=r"Cannot format mxnet\.numpy\.ndarray"):
                format(array, spec)
