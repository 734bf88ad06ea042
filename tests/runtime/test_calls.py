"""Cached operator calls behave like first calls."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import autograd, nd
from tests.closeness import assert_equal_up_to_rounding


def twice(call):
    """Return the result of a call, which must be equal when the call is cached."""
    first, second = call(), call()
    np.testing.assert_array_equal(first.asnumpy(), second.asnumpy())
    assert first.dtype == second.dtype and first.context == second.context
    return second.asnumpy()


def test_optional_inputs_that_attributes_omit():
    x, w, b = nd.ones((2, 3)), nd.ones((4, 3)), nd.ones((4,))
    assert twice(lambda: nd.FullyConnected(x, w, b, num_hidden=4))[0, 0] == 4
    assert twice(lambda: nd.FullyConnected(x, w, num_hidden=4, no_bias=True))[0, 0] == 3
    assert twice(lambda: nd.FullyConnected(x, w, bias=None, num_hidden=4, no_bias=True)).sum() == 24
    assert twice(lambda: nd.softmax(x, length=None)).sum() == pytest.approx(2)
    for _ in range(2):
        with pytest.raises(mx.MXNetError, match="expects 3 inputs, but got 2"):
            nd.FullyConnected(x, w, num_hidden=4)
        with pytest.raises(mx.MXNetError, match="has 5 rows"):
            nd.FullyConnected(x, w, b, num_hidden=5)


def test_attributes_by_position_keyword_and_string():
    x = nd.array([[-1, 0.5, 3]])
    for call in (
        lambda: nd.clip(x, 0, 1),
        lambda: nd.clip(x, a_min=0, a_max=1),
        lambda: nd.clip(x, a_max="1", a_min="0"),
        lambda: nd.clip(data=x, a_min=0, a_max=1),
        lambda: nd.clip(x, 0, a_max=1, name="cut"),
    ):
        assert twice(call).tolist() == [[0, 0.5, 1]]
    assert twice(lambda: nd.sum(x, axis=[0, 1])).tolist() == [2.5]
    for _ in range(2):
        with pytest.raises(mx.MXNetError, match="Cannot find argument"):
            nd.clip(x, 0, 1, upper=2)


def test_out_argument_with_cached_calls():
    x, target = nd.ones((2, 2)), nd.zeros((2,))
    for n in (1, 2):
        assert nd.sum(x * n, axis=1).asnumpy().tolist() == [2 * n] * 2
        assert nd.sum(x * n, axis=1, out=target) is target
        assert target.asnumpy().tolist() == [2 * n] * 2


def test_training_mode_is_read_on_each_call():
    x = nd.ones((100,))
    for training in (False, True, False, True):
        with autograd.record(train_mode=training):
            dropped = nd.Dropout(x, p=0.5)
        assert (dropped.asnumpy() == 0).any() == training


def test_alternating_recorded_and_plain_calls():
    x = nd.array([[1.0, 2.0]])
    x.attach_grad()
    for _ in range(2):
        assert nd.log_softmax(x, axis=-1).grad is None
        with autograd.record():
            y = nd.concat(x, nd.softmax(x, axis=-1), dim=1).sum()
        y.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), [[1, 1]], atol=1e-6)


def test_alternating_sparse_and_dense_calls():
    dense = nd.array([[0, 1], [2, 0]])
    rows = dense.tostype("csr")
    for _ in range(2):
        assert nd.dot(dense, dense).asnumpy().tolist() == [[2, 0], [0, 2]]
        assert nd.dot(rows, dense).asnumpy().tolist() == [[2, 0], [0, 2]]


def test_variadic_operators_accept_lists_and_positional_arrays():
    x, y = nd.ones((1, 2)), nd.zeros((1, 2))
    assert twice(lambda: nd.concat(x, y, dim=0)).tolist() == [[1, 1], [0, 0]]
    assert twice(lambda: nd.concat(*[x, y, x], dim=0)).shape == (3, 2)
    assert twice(lambda: nd.concat([x, y], dim=0)).tolist() == [[1, 1], [0, 0]]
    assert twice(lambda: nd.add_n(x, x, y)).tolist() == [[2, 2]]


def test_results_are_on_the_context_of_the_first_input():
    x = nd.ones((2, 2), ctx=mx.cpu(1))
    for call in (
        lambda: nd.sum(x, axis=0),
        lambda: nd.dot(x, x),
        lambda: nd.FullyConnected(x, x, num_hidden=2, no_bias=True),
        lambda: -x,
    ):
        twice(call)
        assert call().context == mx.cpu(1)


def test_errors_of_cached_calls_name_the_operator():
    x = nd.ones((2, 3))
    nd.dot(x, nd.ones((3, 2)))
    with pytest.raises(mx.MXNetError, match=r"dot"):
        nd.dot(x, x)


def test_call_cache_is_shared_by_threads():
    x, found = nd.ones((3, 4)), []

    def work(axis):
        for _ in range(200):
            found.append(nd.sum(x, axis=axis).shape)

    threads = [threading.Thread(target=work, args=(axis,), daemon=True) for axis in (0, 1) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(set(found)) == [(3,), (4,)] and len(found) == 1200


def test_arithmetic_errors_name_the_operator():
    for _ in range(2):
        with pytest.raises(mx.MXNetError, match="Error in operator Convolution"):
            nd.Convolution(
                nd.ones((1, 1, 4, 4)),
                nd.ones((1, 1, 2, 2)),
                nd.ones((1,)),
                kernel=(2, 2),
                num_filter=1,
                stride=(0, 0),
            )


def test_cache_keys_distinguish_the_sign_of_zero():
    from mxnet.ops.nn.activation import softmax
    from mxnet.runtime.calls import _key, _Names

    text = _key(softmax, _Names(softmax), ["0"])
    given = dict.fromkeys(softmax.attributes) | {"_Null": object(), "_type": type}
    keys = [eval(text, given | {"temperature": zero}) for zero in (0.0, -0.0)]
    assert keys[0] != keys[1]


def test_cache_keys_omit_unset_attributes():
    from mxnet.ops.nn.activation import softmax
    from mxnet.runtime.calls import _key, _Names

    text = _key(softmax, _Names(softmax), ["0"])
    null = object()
    absent = dict.fromkeys(softmax.attributes, null) | {"_Null": null, "_type": type}
    head, *others = softmax.attributes
    short = eval(text, absent | {head: 1})
    assert short == (0, 1, int)
    assert all(len(eval(text, absent | {other: 1})) > len(short) for other in others)


def test_mixed_dtypes_after_cached_calls():
    one, other = mx.np.ones((2,), dtype="float32"), mx.np.ones((2,), dtype="int32")
    for arrays in ((one, one), (other, other), (one, other), (other, one)):
        for _ in range(2):
            made = mx.np.concatenate(arrays)
            assert made.dtype == made.asnumpy().dtype and made.shape == (4,)
    assert mx.np.concatenate((other, other)).dtype == "int32"


def test_alternating_matrix_and_vector_products():
    matrix, vector = nd.array([[1, 2], [3, 4]]), nd.array([1, 1])
    for _ in range(3):
        assert nd.dot(matrix, matrix).asnumpy().tolist() == [[7, 10], [15, 22]]
        assert nd.dot(matrix, vector).asnumpy().tolist() == [3, 7]
        assert nd.dot(vector, vector).asnumpy().tolist() == [2]


def test_transpose_and_reshape_return_copies():
    for shape in ((1, 3), (3, 1), (2, 3), (2, 3, 4), (3,)):
        x = nd.zeros(shape)
        for make in (nd.transpose, lambda a: nd.reshape(a, shape=(-1,))):
            for _ in range(3):
                made = make(x)
                made[:] = 1
                assert x.sum().asscalar() == 0


def test_zeros_are_created_on_the_current_context():
    for _ in range(3):
        assert nd.zeros((2,)).context == mx.np.zeros((2,)).context == mx.cpu(0)
        with mx.cpu(1):
            assert nd.zeros((2,)).context == mx.np.zeros((2,)).context == mx.cpu(1)
        assert nd.zeros((2,), dtype="int32").dtype == np.int32


def test_basic_indexing_matches_numpy():
    values = np.arange(24.0).reshape(2, 3, 4)
    x, y = nd.array(values), mx.np.array(values)
    for key in (1, -1, slice(1), slice(-1, None), (0, 1), (slice(None), 2), (1, slice(0, 2), 3)):
        assert x[key].asnumpy().tolist() == y[key].asnumpy().tolist() == values[key].tolist()
    assert x[0, 1, 2].shape == (1,) and y[0, 1, 2].shape == ()
    assert x[:, ::-1].asnumpy().tolist() == y[:, ::-1].asnumpy().tolist()
    assert x[:] is x
    for array in (x, y):
        with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 2"):
            array[5]
        with pytest.raises(IndexError, match="out of bounds"):
            array[5] = 1


def test_basic_index_assignment_matches_numpy():
    for make in (nd.array, mx.np.array):
        x = make([[1, 2], [3, 4]])
        x[0] = 7
        x[-1:] = make([5, 6])
        assert x.asnumpy().tolist() == [[7, 7], [5, 6]]
        whole = make([1, 2], dtype="int32")
        whole[0] = 2.9
        whole[1] = make([4.5])[0]
        assert whole.asnumpy().tolist() == [2, 4]


# -- pointwise operators with `out=` on large arrays --------------------------------------------


SHAPE = (200, 100)


def arrays():
    state = np.random.RandomState(0)
    return [nd.array(state.normal(size=SHAPE)) for _ in range(2)]


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b, **out: nd.elemwise_add(a, b, **out),
        lambda a, b, **out: nd.broadcast_mul(a, b, **out),
        lambda a, b, **out: nd.relu(a, **out),
        lambda a, b, **out: nd.Activation(b, act_type="tanh", **out),
        lambda a, b, **out: nd.broadcast_greater(a, b, **out),
        lambda a, b, **out: nd.maximum(a, 0.5, **out) if not out else nd._internal._maximum_scalar(
            a, scalar=0.5, **out
        ),
        lambda a, b, **out: nd.elemwise_sub(a, b, **out),
    ],
)  # fmt: skip
def test_out_receives_the_result_in_place(call):
    a, b = arrays()
    wanted, out = call(a, b).asnumpy(), nd.zeros(SHAPE)
    place = out._data.data_ptr()
    assert call(a, b, out=out) is out
    assert_equal_up_to_rounding(out.asnumpy(), wanted)
    assert out._data.data_ptr() == place


def test_out_allocates_no_temporary():
    a, b = arrays()
    out = nd.zeros(SHAPE)
    with torch.profiler.profile(profile_memory=True) as profile:
        nd.elemwise_add(a, b, out=out)
    assert not any(e.self_cpu_memory_usage >= out.size for e in profile.key_averages())


def test_out_can_alias_or_overlap_an_operand():
    a, b = arrays()
    wanted = a.asnumpy() - b.asnumpy()
    nd.elemwise_sub(a, b, out=a)
    np.testing.assert_array_equal(a.asnumpy(), wanted)
    long = nd.arange(200 * 101).reshape((-1,))
    wanted = long[: 200 * 100].asnumpy() * 2
    nd.elemwise_add(long[: 200 * 100], long[: 200 * 100], out=long[100 : 200 * 100 + 100])
    np.testing.assert_array_equal(long[100 : 200 * 100 + 100].asnumpy(), wanted)


def test_out_of_a_different_dtype_raises():
    a, b = arrays()
    with pytest.raises(TypeError, match="float64"):
        nd.elemwise_add(a, b, out=nd.zeros(SHAPE, dtype="float64"))


def test_gradients_with_out_argument():
    a, b = arrays()
    a.attach_grad()
    out = nd.zeros(SHAPE)
    with autograd.record():
        nd.elemwise_mul(a, b, out=out)
    out.backward()
    np.testing.assert_array_equal(a.grad.asnumpy(), b.asnumpy())
