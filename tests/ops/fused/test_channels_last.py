"""Convolution algorithms of training graphs give equal results."""

import pytest
import torch

import mxnet as mx  # noqa: F401 (registers the operators)
from mxnet.ops.fused import convolution as channels_last
from mxnet.ops.fused.convolution import convolution_channels_last
from tests.closeness import assert_equal_up_to_rounding

PLACES = [
    {"kernel": (3, 3), "pad": (1, 1)},
    {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)},
    {"kernel": (3, 2), "dilate": (2, 1)},
]


def run(data, weight, bias, attrs):
    """Return the result and all gradients."""
    leaves = [t.clone().requires_grad_() for t in (data, weight, bias)]
    out = convolution_channels_last.function(*leaves, num_filter=len(weight), **attrs)
    (out * out).sum().backward()
    return [out.detach(), *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize("attrs", PLACES)
def test_convolution_with_few_windows_runs_as_matmul(attrs, monkeypatch):
    torch.manual_seed(2)
    data = torch.randn(2, 6, 7, 5).contiguous(memory_format=torch.channels_last)
    weight, bias = torch.randn(4, 6, *attrs["kernel"]), torch.randn(4)
    convolved = run(data, weight, bias, attrs)
    monkeypatch.setattr(channels_last, "MIN_MATRIX", 1)
    place = tuple(attrs.get(k, (d, d)) for k, d in (("stride", 1), ("pad", 0), ("dilate", 1)))
    assert channels_last._is_small_product(data, weight, *place)
    multiplied = run(data, weight, bias, attrs)
    for one, other in zip(convolved, multiplied, strict=True):
        assert_equal_up_to_rounding(one, other, roundings=32)


def test_many_windows_or_1x1_kernels_do_not_run_as_matmul(monkeypatch):
    monkeypatch.setattr(channels_last, "MIN_MATRIX", 1)
    place = ((1, 1), (0, 0), (1, 1))
    data = torch.zeros(1, 2, 20, 20)
    assert not channels_last._is_small_product(data, torch.zeros(4, 2, 3, 3), *place)
    assert not channels_last._is_small_product(data[..., :2, :2], torch.zeros(4, 2, 1, 1), *place)
    assert not channels_last._is_small_product(data[..., :2, :2], torch.zeros(4, 2, 3, 3), *place)


@pytest.mark.parametrize("kernel", [(3, 3), (1, 1)])
def test_channels_last_format_of_data_is_kept(kernel):
    torch.manual_seed(3)
    data, weight = torch.randn(2, 16, 6, 6), torch.randn(16, 16, *kernel)
    last = data.contiguous(memory_format=torch.channels_last)
    attrs = {"kernel": kernel, "num_filter": 16}
    plain, kept = (convolution_channels_last.function(d, weight, **attrs) for d in (data, last))
    assert kept.is_contiguous(memory_format=torch.channels_last)
    assert_equal_up_to_rounding(plain, kept, roundings=32)
    if kernel == (3, 3):
        assert plain.is_contiguous()
