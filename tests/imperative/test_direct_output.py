"""Pointwise operators write large results into the array that the user gave."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mxnet import autograd, nd
from tests.closeness import assert_equal_up_to_rounding

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
def test_results_and_memory(call):
    a, b = arrays()
    wanted, out = call(a, b).asnumpy(), nd.zeros(SHAPE)
    place = out._data.data_ptr()
    assert call(a, b, out=out) is out
    assert_equal_up_to_rounding(out.asnumpy(), wanted)
    assert out._data.data_ptr() == place


def test_nothing_else_is_allocated():
    a, b = arrays()
    out = nd.zeros(SHAPE)
    with torch.profiler.profile(profile_memory=True) as profile:
        nd.elemwise_add(a, b, out=out)
    assert not any(e.self_cpu_memory_usage >= out.size for e in profile.key_averages())


def test_the_result_may_be_an_operand_or_overlap_one():
    a, b = arrays()
    wanted = a.asnumpy() - b.asnumpy()
    nd.elemwise_sub(a, b, out=a)
    np.testing.assert_array_equal(a.asnumpy(), wanted)
    long = nd.arange(200 * 101).reshape((-1,))
    wanted = long[: 200 * 100].asnumpy() * 2
    nd.elemwise_add(long[: 200 * 100], long[: 200 * 100], out=long[100 : 200 * 100 + 100])
    np.testing.assert_array_equal(long[100 : 200 * 100 + 100].asnumpy(), wanted)


def test_other_types_are_still_refused():
    a, b = arrays()
    with pytest.raises(TypeError, match="float64"):
        nd.elemwise_add(a, b, out=nd.zeros(SHAPE, dtype="float64"))


def test_gradients_pass_through_out():
    a, b = arrays()
    a.attach_grad()
    out = nd.zeros(SHAPE)
    with autograd.record():
        nd.elemwise_mul(a, b, out=out)
    out.backward()
    np.testing.assert_array_equal(a.grad.asnumpy(), b.asnumpy())
