"""Which dtypes operators take, and the dtypes of their results: one line of text for each."""

# ruff: noqa: E501, SIM905 (a question a line, names in a row)

NUMPY = True

SETUP = """
import numpy as onp
DTYPES = ['float16', 'float32', 'float64', 'uint8', 'int8', 'int32', 'int64', 'bool']

def name_of(result):
    if isinstance(result, (list, tuple)):
        return '+'.join(name_of(r) for r in result)
    if result is None:
        return 'None'
    return onp.dtype(getattr(result, 'dtype', type(result))).name

def attempt(function, *arrays):
    try:
        result = function(*arrays)
        mx.nd.waitall()
        return name_of(result)
    except Exception:
        return 'error'

def sample(module, dtype, shape=(3,)):
    host = onp.ones(shape, dtype=dtype)
    return np.array(host, dtype=dtype) if module in (np, npx) else mx.nd.array(host, dtype=dtype)

def one(module, name, shape=(3,), **attrs):
    function = getattr(module, name)
    return ' '.join(attempt(lambda x: function(x, **attrs), sample(module, d, shape)) for d in DTYPES)

def two(module, name, shape=(3,), **attrs):
    function = getattr(module, name)
    return ' '.join(attempt(lambda x, y: function(x, y, **attrs), sample(module, d, shape),
                            sample(module, e, shape)) for d in DTYPES for e in DTYPES)

def number(module, name, other):
    function = getattr(module, name)
    return ' '.join(attempt(lambda x: function(x, other), sample(module, d)) for d in DTYPES)

def swapped(module, name, other):
    function = getattr(module, name)
    return ' '.join(attempt(lambda x: function(other, x), sample(module, d)) for d in DTYPES)

import operator
def overload(module, name, other):
    function = getattr(operator, name)
    return ' '.join(attempt(lambda x: function(x, other), sample(module, d)) for d in DTYPES)

def overload_swapped(module, name, other):
    function = getattr(operator, name)
    return ' '.join(attempt(lambda x: function(other, x), sample(module, d)) for d in DTYPES)

def overload_two(module, name):
    function = getattr(operator, name)
    return ' '.join(attempt(function, sample(module, d), sample(module, e)) for d in DTYPES for e in DTYPES)
"""

from .special_points import (  # noqa: E402
    ND_BINARY,
    ND_UNARY,
    NP_BINARY,
    NP_UNARY,
    NPX_UNARY,
)

ND_REDUCTIONS = "sum mean prod max min nansum nanprod norm argmax argmin sort argsort topk".split()
NP_REDUCTIONS = """
sum mean prod max min std var argmax argmin sort argsort cumsum unique any all median average
flip roll squeeze ravel transpose diff ediff1d bincount nonzero diag tril triu trace histogram
percentile quantile
""".split()
OVERLOADS = "add sub mul truediv mod pow eq ne lt le gt ge and_ or_ xor matmul".split()
ONE = """
one(mx.nd, 'softmax'); one(mx.nd, 'log_softmax'); one(mx.nd, 'Flatten', (2, 3))
one(mx.nd, 'transpose', (2, 3)); one(mx.nd, 'reshape', (4,), shape=(2, 2)); one(mx.nd, 'tile', reps=2)
one(mx.nd, 'repeat', repeats=2); one(mx.nd, 'reverse', axis=0); one(mx.nd, 'expand_dims', axis=0)
one(mx.nd, 'clip', a_min=0, a_max=1); one(mx.nd, 'one_hot', depth=3); one(mx.nd, 'Cast', dtype='int8')
one(mx.nd, 'cast', dtype='float16'); one(mx.nd, 'slice', begin=(0,), end=(2,)); one(mx.nd, 'diag')
one(mx.nd, 'L2Normalization', (2, 3)); one(mx.nd, 'Activation', act_type='relu'); one(mx.nd, 'shape_array')
one(mx.nd, 'Pooling', (1, 1, 4, 4), kernel=(2, 2)); one(mx.nd, 'LeakyReLU', act_type='leaky')
one(mx.nd, 'cumsum'); one(mx.nd, 'split', (4,), num_outputs=2, axis=0); one(mx.nd, 'size_array')
one(mx.nd, 'Pad', (1, 1, 2, 2), mode='edge', pad_width=(0, 0, 0, 0, 1, 1, 1, 1)); one(mx.nd, 'moments', axes=(0,))
one(mx.nd, 'UpSampling', (1, 1, 2, 2), scale=2, sample_type='nearest'); one(mx.nd, 'depth_to_space', (1, 4, 2, 2), block_size=2)
two(mx.nd, 'dot', (2, 2)); two(mx.nd, 'batch_dot', (1, 2, 2)); two(mx.nd, 'take'); two(mx.nd, 'concat', dim=0)
two(mx.nd, 'stack'); two(mx.nd, 'add_n'); two(mx.nd, 'broadcast_like'); two(mx.nd, 'batch_take', (3,)); two(mx.nd, 'pick', (3,), axis=0)
two(np, 'dot', (2, 2)); two(np, 'matmul', (2, 2)); two(np, 'tensordot', (2, 2), axes=1); two(np, 'vdot'); two(np, 'inner'); two(np, 'outer')
two(np, 'kron'); two(np, 'cross'); two(np, 'lcm'); two(np, 'bitwise_and'); two(np, 'bitwise_or'); two(np, 'bitwise_xor'); two(np, 'polyval')
two(np, 'take'); two(np, 'append'); two(np, 'array_equal'); two(np, 'interp') ; one(np, 'atleast_2d'); one(np, 'expand_dims', axis=0)
one(np, 'full_like', fill_value=2); one(np, 'zeros_like'); one(np, 'ones_like'); one(np, 'repeat', repeats=2); one(np, 'tile', reps=2)
one(np, 'rot90', (2, 2)); one(np, 'swapaxes', (2, 2), axis1=0, axis2=1); one(np, 'pad', pad_width=1); one(np, 'broadcast_to', shape=(2, 3))
one(np, 'clip', a_min=0, a_max=1); one(np, 'around'); one(np, 'split', (4,), indices_or_sections=2); one(np, 'delete', obj=0)
one(np, 'insert', obj=0, values=1); one(np, 'where'); one(np, 'mean', dtype='int32'); one(np, 'sum', dtype='int8'); one(np, 'cumsum', dtype='float16')
one(np.linalg, 'norm'); one(np.linalg, 'inv', (2, 2)); one(np.linalg, 'det', (2, 2)); one(np.linalg, 'svd', (2, 2)); one(np.linalg, 'cholesky', (1, 1))
one(npx, 'one_hot', depth=3); one(npx, 'topk'); one(npx, 'relu'); one(npx, 'leaky_relu'); one(npx, 'activation', act_type='tanh'); two(npx, 'pick', (3,), axis=0)
two(npx, 'batch_dot', (1, 2, 2)); one(npx, 'reshape', newshape=(-1,)); two(npx, 'gather_nd', (1,)); one(npx, 'batch_flatten', (2, 3)); two(npx, 'embedding', (2, 2), input_dim=2, output_dim=2)
""".replace("\n", ";").split(";")

EXPRESSIONS = [
    *(f"one(mx.nd, '{name}')" for name in (*ND_UNARY, *ND_REDUCTIONS)),
    *(f"one(np, '{name}')" for name in (*NP_UNARY, *NP_REDUCTIONS)),
    *(f"one(npx, '{name}')" for name in NPX_UNARY),
    *(f"two(mx.nd, '{name}')" for name in ND_BINARY),
    *(f"two(np, '{name}')" for name in NP_BINARY),
    *(f"number(np, '{name}', {other})" for name in NP_BINARY for other in ("2", "0.5", "True")),
    *(f"swapped(np, '{name}', {other})" for name in NP_BINARY for other in ("2", "0.5", "True")),
    *(
        f"overload{swap}({module}, '{name}', {other})"
        for module in ("mx.nd", "np")
        for name in OVERLOADS
        for swap in ("", "_swapped")
        for other in ("2", "0.5", "True", "onp.float32(2)", "onp.int64(2)")
    ),
    *(f"overload_two({module}, '{name}')" for module in ("mx.nd", "np") for name in OVERLOADS),
    *(text.strip() for text in ONE if text.strip()),
]
ON_PURPOSE = ()
