"""What is known about memory, and giving it back."""

from __future__ import annotations

import pytest

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.imperative.gradient import MOST_TAKEN


def bytes_on_cpu():
    lines = mx.memory_summary().splitlines()
    (line,) = (x for x in lines if x.startswith("cpu "))
    return int(line.split()[-1].replace(",", ""))


def test_summary_counts_arrays_that_are_alive():
    before = bytes_on_cpu()
    kept = mx.nd.zeros((1 << 20,))
    view = kept[10:]
    assert bytes_on_cpu() - before >= 4 << 20
    assert bytes_on_cpu() - before < 8 << 20  # a view shares memory
    del kept, view
    assert bytes_on_cpu() - before < 4 << 20


def test_caches_of_any_device_can_be_emptied():
    mx.cpu().empty_cache()
    if not mx.context.num_gpus():
        with pytest.raises(MXNetError, match="no such GPU"):
            mx.gpu(0).empty_cache()


def test_gradients_take_memory_when_they_are_first_used():
    layer = mx.gluon.nn.Dense(4096, in_units=4096)
    before = mx.memory._process_memory()[0]
    layer.initialize()
    weight = 4096 * 4096 * 4
    if before:  # on Linux
        assert mx.memory._process_memory()[0] - before < 2.8 * weight
    assert layer.weight.grad().asnumpy().any() == 0
    with mx.autograd.record():
        loss = layer(mx.nd.ones((1, 4096))).sum()
    loss.backward()
    assert layer.weight.grad().asnumpy().min() == 1


def test_zeros_of_impossible_sizes_are_refused():
    with pytest.raises(MXNetError, match="memory"):
        mx.sym.Variable("x").simple_bind(mx.cpu(), x=(1 << 45, 1 << 10))


def test_large_gradients_stay_where_they_are():
    size = 1536
    assert size * size * 4 > MOST_TAKEN  # smaller ones may take torch's buffers over
    layer = mx.gluon.nn.Dense(size, in_units=size)
    later = mx.gluon.nn.Dense(128)  # its gradients come first, and those may take the buffers
    layer.initialize()
    later.initialize()
    trainer = mx.gluon.Trainer([*layer.params.values(), *later.params.values()], "sgd")
    places = set()
    for _ in range(3):
        with mx.autograd.record():
            loss = later(layer(mx.nd.ones((2, size)))).sum()
        loss.backward()
        trainer.step(1)
        places.add(layer.weight.grad()._data.data_ptr())
    if mx.memory.KEEPS_FREED_MEMORY:
        assert len(places) == 1
    assert layer.weight.grad().asnumpy().any()


@pytest.mark.skipif(not mx.memory.KEEPS_FREED_MEMORY, reason="another allocator")
def test_gaps_are_returned_between_steps():
    returning = mx.memory.GapReturning(least=1 << 20, pause=3600)
    arrays = [mx.nd.ones((1 << 18,)) for _ in range(200)]
    for array in arrays:
        array.wait_to_read()
    kept = arrays[::50]
    del arrays, array
    before = mx.memory._process_memory()[0]
    returning.step()
    after = mx.memory._process_memory()[0]
    assert before - after > 100 << 20
    assert kept[2].asnumpy().min() == 1

    arrays = [mx.nd.ones((1 << 18,)) for _ in range(200)]
    del arrays
    returning.step()  # not again within the hour
    assert mx.memory._process_memory()[0] - after > 100 << 20
