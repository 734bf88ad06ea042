"""Fused convolutions equal their separate operators."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd
from mxnet.ops.fused import convolution as prepared_convolution
from mxnet.ops.fused.convolution import fused_convolution
from mxnet.ops.fused.prepared_values import Fallback

SIZES = {"kernel": (3, 3), "num_filter": 16, "pad": (1, 1)}


@pytest.fixture(autouse=True)
def packed_weights(monkeypatch):
    monkeypatch.setattr(prepared_convolution, "MIN_MULTIPLICATIONS", 1)


def arrays(*shapes):
    rng = np.random.RandomState(0)
    return [nd.array(rng.standard_normal(s)) for s in shapes]


def expected(x, w, b, norm, other, activate):
    out = nd.Convolution(x, w, b, **SIZES)
    out = nd.BatchNorm(out, *norm, fix_gamma=False, eps=0.1) + other
    return activate(out).asnumpy()


@pytest.fixture
def parts():
    x, w, b, gamma, beta, mean, other = arrays(
        (2, 8, 20, 20), (16, 8, 3, 3), (16,), (16,), (16,), (16,), (2, 16, 20, 20)
    )
    return x, w, b, (gamma, beta, mean, nd.ones((16,)) * 2), other


def fused_attrs(**more):
    raw = {**SIZES, "normalized": True, "eps": 0.1, "fix_gamma": False, "addition": "same_shape"}
    return fused_convolution.complete(fused_convolution.parse({**raw, **more}))


def tensors(x, w, b, norm, other):
    return [a._data for a in (x, w, b, *norm, other)]


def test_convolution_with_all_fused_steps(parts):
    wanted = expected(*parts, nd.relu)
    given = tensors(*parts)
    plain = fused_convolution.function(*given, **fused_attrs(epilogue="relu"))
    np.testing.assert_allclose(plain.numpy(), wanted, rtol=1e-5, atol=1e-5)
    kernel = fused_convolution.find_variant("node", fused_attrs(epilogue="relu"), False)
    for _ in range(3):
        np.testing.assert_allclose(kernel(*given).numpy(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("epilogue", "constants", "function"),
    [
        ("clip", (0, 6), lambda x: nd.clip(x, 0, 6)),
        ("leaky", (0.2,), lambda x: nd.LeakyReLU(x, slope=0.2)),
        ("sigmoid", (), nd.sigmoid),
        ("tanh", (), nd.tanh),
    ],
)
def test_convolution_with_fused_activation(epilogue, constants, function):
    x, w = arrays((2, 8, 20, 20), (16, 8, 3, 3))
    attrs = {**SIZES, "no_bias": True}
    wanted = function(nd.Convolution(x, w, **attrs)).asnumpy()
    attrs.update(epilogue=epilogue, constants=constants)
    made = nd._internal._fused_convolution(x, w, **attrs).asnumpy()
    np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-6)
    typed = fused_convolution.complete(fused_convolution.parse(attrs))
    kernel = fused_convolution.find_variant("node", typed, False)
    np.testing.assert_allclose(kernel(x._data, w._data).numpy(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("where", range(8))
def test_nan_inputs_fall_back_to_plain_kernels(parts, where):
    given = [t.clone() for t in tensors(*parts)]
    given[where].view(-1)[0] = float("nan")
    kernel = fused_convolution.find_variant("node", fused_attrs(epilogue="relu"), False)
    with pytest.raises(Fallback):
        kernel(*given)
    assert torch.isnan(fused_convolution.function(*given, **fused_attrs(epilogue="relu"))).any()


def test_addend_of_a_different_shape_raises_or_is_broadcast(parts):
    *rest, other = tensors(*parts)
    one = other[:1]
    with pytest.raises(mx.MXNetError, match="other"):
        fused_convolution.function(*rest, one, **fused_attrs())
    wide = fused_convolution.function(*rest, one, **fused_attrs(addition="broadcast"))
    same = fused_convolution.function(*rest, one.expand_as(other), **fused_attrs())
    torch.testing.assert_close(wide, same)


def test_moving_statistics_are_auxiliary_states():
    x = mx.sym.Variable("x")
    net = mx.sym._internal._fused_convolution(x, normalized=True, no_bias=True, name="c", **SIZES)
    assert net.list_auxiliary_states() == ["c_moving_mean", "c_moving_var"]
    args, outs, aux = net.infer_shape(x=(1, 4, 5, 5))
    assert args == [(1, 4, 5, 5), (16, 4, 3, 3), (16,), (16,)]
    assert outs == [(1, 16, 5, 5)] and aux == [(16,), (16,)]
    types = net.infer_type(x="float16")
    assert [np.dtype(t).name for t in types[0]] == ["float16", "float16", "float32", "float32"]


@pytest.mark.parametrize("shape", [(2, 8, 9, 9), (1, 1, 9, 9), (1, 64, 2, 2)])
def test_channels_last_convolution_equals_plain_convolution(shape):
    x, w, b = arrays(shape, (16, shape[1], 3, 3), (16,))
    for array in (x, w, b):
        array.attach_grad()
    found = []
    for op in (nd.Convolution, nd._internal._convolution_channels_last):
        with mx.autograd.record():
            out = op(x, w, b, **SIZES)
            loss = (out * out).sum()
        loss.backward()
        found.append([out.asnumpy(), *(a.grad.asnumpy() for a in (x, w, b))])
    for first, second in zip(*found, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-4 * np.abs(first).max())
