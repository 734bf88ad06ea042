"""The oneDNN graph backend matches the native kernels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd
from mxnet.gluon import nn
from mxnet.runtime import backends

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available() or not hasattr(torch.jit, "enable_onednn_fusion"),
    reason="this torch has no oneDNN",
)
ENGINE = "onednn_graph"


@pytest.fixture
def net():
    mx.random.seed(3)
    block = nn.HybridSequential()
    block.add(nn.Conv2D(8, 3, in_channels=3), nn.BatchNorm(in_channels=8), nn.Activation("relu"))
    block.add(nn.Conv2D(8, 3, groups=8, in_channels=8), nn.LeakyReLU(0.1), nn.MaxPool2D())
    block.add(nn.GlobalAvgPool2D(), nn.Dense(5, in_units=8))
    block.initialize(mx.init.Normal(0.3))
    return block


@pytest.fixture
def x():
    return nd.random.normal(shape=(2, 3, 12, 12))


def assert_as_eager(net, x):
    results = [net(x).asnumpy() for _ in range(3)]
    net.hybridize(active=False)
    wanted = net(x).asnumpy()
    net.hybridize(backend=ENGINE)
    for result in results:
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)
    return wanted


def test_onednn_graph_matches_native_kernels(net, x):
    net.hybridize(backend=ENGINE)
    assert_as_eager(net, x)
    assert_as_eager(net, x[:1] * 2)
    net(x)
    (program,) = net._cached_op.function.programs.values()
    assert isinstance(program, backends.BackendProgram) and program.backend.name == ENGINE


@pytest.mark.parametrize("kind", ["set_data", "view", "torch", "numpy"])
def test_onednn_graph_uses_updated_parameters(net, x, kind):
    net.hybridize(backend=ENGINE)
    weight = net[0].weight.data()
    before = assert_as_eager(net, x)
    for _ in range(2):
        if kind == "set_data":
            net[0].weight.set_data(weight * -2)
        elif kind == "view":
            weight[0:4] *= -2
        elif kind == "torch":
            weight.to_torch().mul_(-2)
        else:
            shared = np.from_dlpack(weight)
            if not shared.flags.writeable:
                pytest.skip("NumPy cannot write into arrays of this version of torch")
            shared[:] *= -2
        assert np.abs(assert_as_eager(net, x) - before).max() > 1e-3


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_propagated(net, x, value):
    net.hybridize(backend=ENGINE)
    net(x)
    x[0, 0, 3, 3] = value
    assert not np.isfinite(assert_as_eager(net, x)[0]).all()
    net[0].weight.data()[0] = value
    assert not np.isfinite(assert_as_eager(net, nd.ones((2, 3, 12, 12)))).all()


def test_onednn_graph_outputs_do_not_share_memory(x):
    class Several(nn.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.relu(x), F.relu(x), F.reshape(x, shape=(-1,)), F.transpose(x)

    net = Several()
    net.hybridize(backend=ENGINE)
    net(x)
    before, outs = x.asnumpy(), net(x)
    wanted = [out.asnumpy() for out in outs]
    for i, out in enumerate(outs):
        out[:] = -7
        for other, value in zip(outs[i + 1 :], wanted[i + 1 :], strict=True):
            np.testing.assert_array_equal(other.asnumpy(), value)
    np.testing.assert_array_equal(x.asnumpy(), before)
    for out, value in zip(net(x), wanted, strict=True):
        np.testing.assert_array_equal(out.asnumpy(), value)


class Draws(nn.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.relu(x) + F.random.normal(shape=(2, 3, 12, 12))


class Looks(nn.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.contrib.boolean_mask(x, F.ones((2,)))


class Constant(nn.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.relu(x), F.ones((2,))


@pytest.mark.parametrize(
    ("block", "message"), [(Draws, "random"), (Looks, "values"), (Constant, "constant")]
)
def test_untraceable_blocks_raise(block, message, x):
    net = block()
    net.hybridize(backend=ENGINE)
    with pytest.raises(mx.MXNetError, match=message):
        net(x)


def test_onednn_fusion_setting_of_torchscript_is_unchanged(net, x):
    before = torch.jit.onednn_fusion_enabled()
    net.hybridize(backend=ENGINE)
    net(x)
    assert torch.jit.onednn_fusion_enabled() is before
