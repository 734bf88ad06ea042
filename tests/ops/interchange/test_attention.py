"""Attention with caches and masks, compared with torch's."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

import mxnet as mx

RNG = np.random.RandomState(0)
attention = mx.nd._internal._onnx_attention


def _normal(*shape: int) -> mx.nd.NDArray:
    return mx.nd.array(RNG.standard_normal(shape))


def _torch(x: mx.nd.NDArray) -> torch.Tensor:
    return torch.from_numpy(x.asnumpy())


def test_grouped_query_attention_equals_torch() -> None:
    """Four query heads share two key heads, with a causal mask."""
    q, k, v = _normal(2, 4, 5, 8), _normal(2, 2, 5, 8), _normal(2, 2, 5, 8)
    keys, values = (_torch(x).repeat_interleave(2, dim=1) for x in (k, v))
    wanted = functional.scaled_dot_product_attention(_torch(q), keys, values, is_causal=True)
    found = attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(found.asnumpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_attention_with_a_cache_equals_attention_over_the_full_sequence() -> None:
    """Two steps with a cache equal the last step without one."""
    q, k, v = _normal(1, 2, 3, 4), _normal(1, 2, 3, 4), _normal(1, 2, 3, 4)
    whole = attention(q, k, v, is_causal=True)
    last = [x.slice_axis(axis=2, begin=2, end=3) for x in (q, k, v)]
    past = [x.slice_axis(axis=2, begin=0, end=2) for x in (k, v)]
    found = attention(
        *last,
        past_key=past[0],
        past_value=past[1],
        given="past_key,past_value",
        num_outputs=3,
        is_causal=True,
    )
    np.testing.assert_allclose(found[0].asnumpy(), whole.asnumpy()[:, :, 2:], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[1].asnumpy(), k.asnumpy())


def test_fully_masked_queries_give_zeros() -> None:
    """Softmax over a fully masked row would be NaN."""
    x = _normal(1, 1, 2, 4)
    mask = mx.nd.array([[0, 0], [1, 1]], dtype="bool")
    found = attention(x, x, x, mask=mask, given="mask").asnumpy()
    assert not found[0, 0, 0].any()
    assert found[0, 0, 1].any()
