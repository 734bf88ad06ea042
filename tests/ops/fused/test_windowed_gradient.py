"""The gradient of a convolution's weight as a product of matrices."""

import pytest
import torch

import mxnet as mx  # noqa: F401 (registers the operators)
from mxnet.ops.fused import windowed_gradient
from mxnet.ops.fused.channels_last import convolution_channels_last

PLACES = [
    {"kernel": (3, 3), "pad": (1, 1)},
    {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)},
    {"kernel": (5, 2), "stride": (1, 2), "pad": (0, 1)},
    {"kernel": (3, 2), "dilate": (2, 1)},
]


@pytest.fixture
def always_pays(monkeypatch):
    monkeypatch.setattr(windowed_gradient, "LEAST_WINDOWS", 1)
    monkeypatch.setattr(windowed_gradient, "LEAST_CHANNELS", 1)
    monkeypatch.setattr(windowed_gradient, "_has_slow_kernel", lambda: True)


def convolve(leaves, attrs):
    return convolution_channels_last.function(*leaves, num_filter=len(leaves[1]), **attrs)


def make_leaves(kernel):
    torch.manual_seed(3)
    shapes = (3, 4, 9, 11), (5, 4, *kernel), (5,)
    return [torch.randn(shape, requires_grad=True) for shape in shapes]


def reference(leaves, attrs):
    place = [attrs.get(k, (d, d)) for k, d in (("stride", 1), ("pad", 0), ("dilate", 1))]
    return torch.conv2d(*leaves, *place)


@pytest.mark.parametrize("band", [1, 1 << 9, 1 << 10, 1 << 18])  # elements
@pytest.mark.parametrize("attrs", PLACES)
def test_all_gradients_are_those_of_the_convolution(attrs, band, always_pays, monkeypatch):
    monkeypatch.setattr(windowed_gradient, "BAND", band)
    leaves = make_leaves(attrs["kernel"])
    out, expected = convolve(leaves, attrs), reference(leaves, attrs)
    assert "_Convolution" in out.grad_fn.name()
    torch.testing.assert_close(out, expected)
    grads = torch.autograd.grad((out * out).sum(), leaves)
    wanted = torch.autograd.grad((expected * expected).sum(), leaves)
    torch.testing.assert_close(grads, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("attrs", PLACES)
def test_second_gradients(attrs, always_pays):
    leaves = make_leaves(attrs["kernel"])
    results = []
    for make in (convolve, reference):
        out = make(leaves, attrs)
        first = torch.autograd.grad((out**3).sum(), leaves, create_graph=True)
        results.append(torch.autograd.grad(sum((g * g).sum() for g in first), leaves))
    torch.testing.assert_close(results[0], results[1], rtol=1e-3, atol=1e-1)


@pytest.mark.parametrize("fixed", [0, 1, 2])
def test_inputs_that_want_no_gradient(fixed, always_pays):
    leaves = make_leaves((3, 3))
    leaves[fixed].requires_grad_(False)
    convolve(leaves, PLACES[0]).sum().backward()
    assert [leaf.grad is None for leaf in leaves] == [i == fixed for i in range(3)]


def test_single_pixels_small_batches_and_other_processors(always_pays, monkeypatch):
    data, weight = torch.zeros(1, 4, 5, 5), torch.zeros(2, 4, 3, 3, requires_grad=True)
    assert windowed_gradient.pays(data, weight, (3, 3))
    assert not windowed_gradient.pays(data, weight.detach(), (3, 3))
    assert not windowed_gradient.pays(data, weight[..., :1, :1], (5, 5))
    assert not windowed_gradient.pays(data.double(), weight, (3, 3))
    monkeypatch.setattr(windowed_gradient, "LEAST_CHANNELS", 5)
    assert not windowed_gradient.pays(data, weight, (3, 3))
    monkeypatch.setattr(windowed_gradient, "LEAST_CHANNELS", 4)
    monkeypatch.setattr(windowed_gradient, "LEAST_WINDOWS", 10)
    assert not windowed_gradient.pays(data, weight, (3, 3))
    monkeypatch.undo()
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    windowed_gradient._has_slow_kernel.cache_clear()
    assert not windowed_gradient.pays(data.expand(999, 4, 5, 5), weight, (3, 3))
    windowed_gradient._has_slow_kernel.cache_clear()
