"""Helpers: arrays with gradients, aliases of arrays, bound symbols, comparison with numbers."""

from __future__ import annotations

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd


def check(array, expected):
    """Compare with a number, or with numbers in order; the shape is that of the array."""
    actual = array.asnumpy()
    flat = np.broadcast_to(np.asarray(expected, "float64").reshape(-1), actual.size)
    np.testing.assert_allclose(actual.reshape(-1), flat, rtol=1e-5, atol=1e-5)


def leaf(values, req="write"):
    array = nd.array(np.asarray(values, "float32"))
    array.attach_grad(req)
    return array


def ones(*shape):
    return leaf(np.ones(shape))


def backward(function, *heads):
    with autograd.record():
        y = function()
    y.backward(*heads)
    return y


def formula_block(formula):
    class Formula(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return formula(F, x)

    return Formula()


def bound(symbol, req="write", **shapes):
    args = {name: nd.ones(shape) for name, shape in shapes.items()}
    grads = {name: nd.zeros(shape) for name, shape in shapes.items()}
    return symbol.bind(mx.cpu(), args, args_grad=grads, grad_req=req)


def dlpack(array):
    return nd.from_dlpack(array.to_dlpack_for_write())


def read_dlpack(array):
    return nd.from_dlpack(array.to_dlpack_for_read())


ALIASES = {
    "row": lambda w: w[0:1],
    "reshape": lambda w: w.reshape((-1,)),
    "detach": lambda w: w.detach(),
    "dlpack": dlpack,
    "dlpack for reading": read_dlpack,
    "view of dlpack": lambda w: dlpack(w)[0:1],
    "dlpack of view": lambda w: dlpack(w[0:1]),
    "view of view": lambda w: w.reshape((-1,)).reshape(w.shape)[0:1],
    "numpy array": lambda w: w.as_np_ndarray().as_nd_ndarray(),
}
