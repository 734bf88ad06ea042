"""8-bit layers with known ranges: oneDNN's kernels equal the plain functions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.ops.quantization import int8

RNG = np.random.RandomState
ENDS = [torch.tensor([v]) for v in (-1.0, 1.0)]


def random_bytes(rng, *shape, low=0, high=256, dtype="uint8"):
    return torch.from_numpy(rng.randint(low, high, shape).astype(dtype))


def run_both(op, attrs, *inputs):
    """Return what the prepared kernel and the plain function give, as integers or floats."""
    attrs = op.complete(attrs)
    kernel = op.find_variant("node", attrs, False)
    copies = [None if t is None else t.clone() for t in inputs]
    kernel(*copies)  # prepares
    fast = kernel(*[None if t is None else t.clone() for t in inputs])
    plain = op.function(*inputs, **attrs)
    assert fast.dtype is plain.dtype and fast.shape == plain.shape
    return fast.double().numpy(), plain.double().numpy()


def convolution_inputs(rng, largest, weight_shape, other=None):
    weight = random_bytes(rng, *weight_shape, low=-largest, high=largest + 1, dtype="int8")
    bias = random_bytes(rng, weight_shape[0], low=-(2**20), high=2**20, dtype="int32")
    filter_ends = torch.linspace(0.1, 1, weight_shape[0])
    wide = torch.tensor([100.0 * 2**11])
    return weight, bias, -filter_ends, filter_ends, -wide, wide, *[None] * 4, other


@pytest.mark.parametrize("zero", [0, 128])
@pytest.mark.parametrize("out_zero", [0, 128])
@pytest.mark.parametrize("pad", [(0, 0), (1, 1)])
@pytest.mark.parametrize("largest", [63, 127])
def test_int8_convolution_equals_plain_function(zero, out_zero, pad, largest):
    rng = RNG(0)
    attrs = {"kernel": (3, 3), "pad": pad, "num_filter": 6, "num_group": 2, "data_step": 0.01}
    attrs.update(data_zero=zero, out_step=0.2, out_zero=out_zero)
    inputs = convolution_inputs(rng, largest, (6, 4, 3, 3))
    fast, plain = run_both(int8.int8_convolution, attrs, random_bytes(rng, 2, 8, 6, 6), *inputs)
    assert abs(fast - plain).max() <= 1  # halves may round differently
    assert plain.std() > 10


@pytest.mark.parametrize("other_zero", [0, 128])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("largest", [63, 127])
def test_int8_convolution_with_addend(other_zero, relu, largest):
    rng = RNG(1)
    attrs = {"kernel": (1, 1), "num_filter": 5, "data_step": 0.02, "adds": True, "relu": relu}
    attrs.update(other_step=0.5, other_zero=other_zero, out_step=0.5, out_zero=128)
    inputs = convolution_inputs(rng, largest, (5, 8, 1, 1), random_bytes(rng, 2, 5, 4, 4))
    fast, plain = run_both(int8.int8_convolution, attrs, random_bytes(rng, 2, 8, 4, 4), *inputs)
    assert abs(fast - plain).max() <= 1
    assert (plain.min() >= 128) == relu


@pytest.mark.parametrize("owns", [False, True])
def test_addend_is_not_overwritten_unless_owned(owns):
    rng = RNG(1)
    attrs = {"kernel": (1, 1), "num_filter": 8, "data_step": 0.02, "adds": True}
    attrs = int8.int8_convolution.complete({**attrs, "out_step": 0.5, "owns_other": owns})
    other = random_bytes(rng, 1, 8, 4, 4).contiguous(memory_format=torch.channels_last)
    before = other.clone()
    kernel = int8.int8_convolution.find_variant("node", attrs, False)
    inputs = convolution_inputs(rng, 63, (8, 8, 1, 1), other)
    kernel(random_bytes(rng, 1, 8, 4, 4), *inputs)
    assert owns or torch.equal(other, before)


@pytest.mark.parametrize("out_type", ["float32", "uint8"])
@pytest.mark.parametrize("zero", [0, 128])
@pytest.mark.parametrize("largest", [63, 127])
def test_int8_dense_equals_plain_function(out_type, zero, largest):
    rng = RNG(2)
    attrs = {"num_hidden": 6, "data_step": 0.01, "data_zero": zero, "out_type": out_type}
    attrs.update(out_step=1.0 if out_type == "float32" else 0.2, relu=True)
    inputs = convolution_inputs(rng, largest, (6, 12))[:6]
    fast, plain = run_both(int8.int8_dense, attrs, random_bytes(rng, 3, 3, 2, 2), *inputs)
    limit = 1e-4 * plain.max() if out_type == "float32" else 1
    assert abs(fast - plain).max() <= limit
    assert plain.max() > 1


def test_float_weights_are_folded_and_quantized_per_filter():
    rng = RNG(3)
    weight = torch.from_numpy(rng.standard_normal((4, 3, 3, 3)).astype("float32"))
    weight[0] *= 1000  # a range for each filter keeps the others
    gamma, beta, mean = (torch.from_numpy(rng.rand(4).astype("float32")) for _ in range(3))
    var = torch.tensor([1e6, 1, 1, 1])
    data = random_bytes(rng, 1, 3, 8, 8)
    attrs = {"kernel": (3, 3), "num_filter": 4, "no_bias": True, "stored": False}
    attrs.update(normalized=True, fix_gamma=False, data_step=0.01, out_type="float32")
    inputs = (weight, *[None] * 5, gamma, beta, mean, var, None)
    fast, plain = run_both(int8.int8_convolution, attrs, data, *inputs)
    real = torch.nn.functional.conv2d(data.float() * 0.01, weight)
    wanted = torch.batch_norm(real, gamma, beta, mean, var, False, 0.0, 1e-3, False).numpy()
    np.testing.assert_allclose(fast, plain, atol=1e-4)
    np.testing.assert_allclose(fast, wanted, atol=0.03 * abs(wanted).max())


def test_changed_weights_are_repacked():
    rng = RNG(4)
    attrs = {"num_hidden": 2, "data_step": 1.0, "out_type": "float32", "no_bias": True}
    kernel = int8.int8_dense.find_variant("node", int8.int8_dense.complete(attrs), False)
    data, weight = random_bytes(rng, 1, 4), torch.ones(2, 4, dtype=torch.int8)
    first = kernel(data, weight, None, *ENDS, None, None)
    weight.mul_(3)
    assert torch.allclose(kernel(data, weight, None, *ENDS, None, None), 3 * first)


def test_overflow_prone_weights_are_detected():
    stored = int8.stored_weights(torch.full((1, 2), 100, dtype=torch.int8), None, *ENDS)
    assert stored.are_exact == int8.HAS_VNNI


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("convention", ["valid", "full"])
def test_int8_pooling_equals_float_pooling(kind, convention):
    data = random_bytes(RNG(5), 1, 3, 7, 7)
    attrs = {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pool_type": kind}
    attrs["pooling_convention"] = convention
    made = int8.int8_pooling(data, zero=128, **attrs)
    real = mx.nd.array(data.numpy().astype("float32") - 128)
    wanted = mx.nd.Pooling(real, **attrs).asnumpy()
    np.testing.assert_allclose(made.numpy() - 128.0, wanted, atol=0.5)


def test_int8_add_and_concat_rescale_their_inputs():
    lhs, rhs = torch.tensor([[138, 118]]).to(torch.uint8), torch.tensor([[4, 6]]).to(torch.uint8)
    steps = {"lhs_step": 0.1, "lhs_zero": 128, "rhs_step": 0.5, "rhs_zero": 0}
    total = int8.int8_add(lhs, rhs, **steps, step=0.1, zero=128)
    assert total.tolist() == [[158, 148]]
    joined = int8.int8_concat(lhs, rhs, dim=1, steps=(0.1, 0.5), zeros=(128, 0), step=0.5, zero=0)
    assert joined.tolist() == [[2, 0, 4, 6]]


@pytest.mark.parametrize("zero", [0, 128])
def test_int8_with_range_returns_integers_and_range(zero):
    data = torch.tensor([1, 128, 255], dtype=torch.uint8)
    integers, low, high = int8.int8_with_range(data, end=2.0, zero=zero)
    assert integers.tolist() == [v - zero for v in (1, 128, 255)]
    assert (low.item(), high.item()) == ((-2.0, 2.0) if zero else (0.0, 2.0))
