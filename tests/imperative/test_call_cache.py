"""Calls that were made before take a short way, with the same meaning."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, nd


def twice(call):
    """Return the result of a call, which is the same when the call is known."""
    first, second = call(), call()
    np.testing.assert_array_equal(first.asnumpy(), second.asnumpy())
    assert first.dtype == second.dtype and first.context == second.context
    return second.asnumpy()


def test_inputs_that_attributes_leave_out():
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


def test_attributes_by_position_by_keyword_and_as_text():
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


def test_out_is_never_forgotten():
    x, target = nd.ones((2, 2)), nd.zeros((2,))
    for n in (1, 2):
        assert nd.sum(x * n, axis=1).asnumpy().tolist() == [2 * n] * 2
        assert nd.sum(x * n, axis=1, out=target) is target
        assert target.asnumpy().tolist() == [2 * n] * 2


def test_modes_are_read_on_each_call():
    x = nd.ones((100,))
    for training in (False, True, False, True):
        with autograd.record(train_mode=training):
            dropped = nd.Dropout(x, p=0.5)
        assert (dropped.asnumpy() == 0).any() == training


def test_recorded_and_plain_calls_take_turns():
    x = nd.array([[1.0, 2.0]])
    x.attach_grad()
    for _ in range(2):
        assert nd.log_softmax(x, axis=-1).grad is None
        with autograd.record():
            y = nd.concat(x, nd.softmax(x, axis=-1), dim=1).sum()
        y.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), [[1, 1]], atol=1e-6)


def test_sparse_arrays_go_their_own_way():
    dense = nd.array([[0, 1], [2, 0]])
    rows = dense.tostype("csr")
    for _ in range(2):
        assert nd.dot(dense, dense).asnumpy().tolist() == [[2, 0], [0, 2]]
        assert nd.dot(rows, dense).asnumpy().tolist() == [[2, 0], [0, 2]]


def test_lists_and_any_number_of_arrays():
    x, y = nd.ones((1, 2)), nd.zeros((1, 2))
    assert twice(lambda: nd.concat(x, y, dim=0)).tolist() == [[1, 1], [0, 0]]
    assert twice(lambda: nd.concat(*[x, y, x], dim=0)).shape == (3, 2)
    assert twice(lambda: nd.concat([x, y], dim=0)).tolist() == [[1, 1], [0, 0]]
    assert twice(lambda: nd.add_n(x, x, y)).tolist() == [[2, 2]]


def test_results_stay_where_their_first_input_is():
    x = nd.ones((2, 2), ctx=mx.cpu(1))
    for call in (
        lambda: nd.sum(x, axis=0),
        lambda: nd.dot(x, x),
        lambda: nd.FullyConnected(x, x, num_hidden=2, no_bias=True),
        lambda: -x,
    ):
        twice(call)
        assert call().context == mx.cpu(1)


def test_errors_of_known_calls_name_the_operator():
    x = nd.ones((2, 3))
    nd.dot(x, nd.ones((3, 2)))
    with pytest.raises(mx.MXNetError, match=r"dot"):
        nd.dot(x, x)


def test_threads_share_what_is_known():
    x, found = nd.ones((3, 4)), []

    def work(axis):
        for _ in range(200):
            found.append(nd.sum(x, axis=axis).shape)

    threads = [threading.Thread(target=work, args=(axis,)) for axis in (0, 1) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(set(found)) == [(3,), (4,)] and len(found) == 1200


def test_arithmetic_errors_are_told_as_others():
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


def test_keys_keep_the_sign_of_an_optional_zero():
    from mxnet.imperative.call_functions import _key, _Names
    from mxnet.ops.nn.softmax import softmax

    text = _key(softmax, _Names(softmax), "0")
    keys = [eval(text, dict.fromkeys(softmax.attributes) | {"temperature": t}) for t in (0.0, -0.0)]
    assert keys[0] != keys[1]
