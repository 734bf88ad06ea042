"""Transforms that MXNet has only on a GPU, and the gradients of a Hawkes likelihood."""

from __future__ import annotations

import numpy as np

import mxnet as mx


def test_fourier_transforms_are_numpys() -> None:
    data = np.random.RandomState(0).rand(3, 6).astype("float32")
    wanted = np.fft.fft(data)
    found = mx.nd.contrib.fft(mx.nd.array(data)).asnumpy()
    np.testing.assert_allclose(found[:, ::2], wanted.real, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[:, 1::2], wanted.imag, rtol=1e-4, atol=1e-5)
    back = mx.nd.contrib.ifft(mx.nd.array(found)).asnumpy()
    np.testing.assert_allclose(back, data * 6, rtol=1e-4, atol=1e-5)


def test_a_sketch_hands_gradients_back_with_their_sign() -> None:
    data, place, sign = mx.nd.ones((2, 3)), mx.nd.array([[1, 0, 1]]), mx.nd.array([[1, -1, 1]])
    data.attach_grad()
    with mx.autograd.record():
        out = mx.nd.contrib.count_sketch(data, place, sign, out_dim=2)
    out.backward(mx.nd.array([[1, 2], [3, 4]]))
    assert out.asnumpy().tolist() == [[-1, 2], [-1, 2]]
    assert data.grad.asnumpy().tolist() == [[2, -1, 2], [4, -3, 4]]


def test_hawkes_gradients_are_mxnets() -> None:
    rates, alpha = mx.nd.array([[1.5, 2.0]]), mx.nd.array([0.2, 0.4])
    beta, state = mx.nd.array([1.0, 2.0]), mx.nd.array([[0.1, 0.2]])
    for array in (rates, alpha, beta):
        array.attach_grad()
    marks = mx.nd.array([[0, 1, 0]], dtype="int32")
    with mx.autograd.record():
        likelihood, memory = mx.nd.contrib.hawkesll(
            rates, alpha, beta, state, mx.nd.array([[0.5, 0.6, 0.7]]), marks,
            mx.nd.array([3]), mx.nd.array([4]),
        )  # fmt: skip
    likelihood.backward()
    near = {"rtol": 1e-3, "atol": 1e-4}
    np.testing.assert_allclose(likelihood.asnumpy(), [-13.3114], **near)
    np.testing.assert_allclose(memory.asnumpy(), [[0.1428, 0.0031]], **near)
    np.testing.assert_allclose(rates.grad.asnumpy(), [[-2.6968, -3.5044]], **near)
    np.testing.assert_allclose(alpha.grad.asnumpy(), [-1.7315, -1.1749], **near)
    np.testing.assert_allclose(beta.grad.asnumpy(), [-0.0795, -0.0089], **near)
