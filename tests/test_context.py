"""Contexts as values and scopes; what a missing GPU says."""

from __future__ import annotations

import pickle

import pytest

import mxnet as mx
from mxnet import nd

NO_GPU = pytest.mark.skipif(mx.context.num_gpus() > 0, reason="this machine has a GPU")


def test_contexts_are_values():
    assert mx.cpu() == mx.cpu(0) == mx.Context("cpu") and mx.cpu(1) != mx.cpu(0)
    assert mx.gpu(1) == mx.Context("gpu", 1) == mx.Context(mx.gpu(1))
    assert len({mx.cpu(), mx.cpu(0), mx.cpu(1)}) == 2
    assert repr(mx.cpu_pinned(2)) == "cpu_pinned(2)"
    assert pickle.loads(pickle.dumps(mx.gpu(3))) == mx.gpu(3)
    with pytest.raises(KeyError):
        mx.Context("tpu")


def test_scope_decides_where_new_arrays_live():
    with mx.cpu(1):
        assert mx.current_context() == mx.cpu(1) == mx.Context.default_ctx
        assert nd.zeros((2,)).context == mx.cpu(1)
        with mx.cpu(2):
            assert nd.array([1]).context == mx.cpu(2)
        assert nd.random.uniform(shape=(2,)).context == mx.cpu(1)
    assert mx.current_context() == mx.cpu(0)


def test_results_live_where_their_first_input_does():
    x, y = nd.ones((2,), ctx=mx.cpu(1)), nd.ones((2,))
    assert (x + y).context == mx.cpu(1) and (y + x).context == mx.cpu(0)
    assert nd.relu(x).context == x[0:1].context == x.reshape((2, 1)).context == mx.cpu(1)
    assert x.as_in_context(mx.cpu(1)) is x
    assert x.copyto(mx.cpu(3)).context == mx.cpu(3)


@NO_GPU
def test_a_missing_gpu_is_explained():
    with pytest.raises(mx.MXNetError, match=r"gpu\(0\).*no GPU.*mx\.cpu\(\)"):
        nd.zeros((2,), ctx=mx.gpu())
    with pytest.raises(mx.MXNetError, match="GPU"):
        mx.context.gpu_memory_info()
    assert mx.context.num_gpus() == 0
