"""Objects used by several threads are safe or raise."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.base import MXNetError

LIMIT = 60  # seconds
THREADS = 4


def test_prefetched_batches_are_delivered_to_one_thread_each() -> None:
    data = np.arange(400, dtype=np.float32)
    batches = mx.io.PrefetchingIter(mx.io.NDArrayIter(data, batch_size=2))

    def take() -> list[float]:
        taken: list[float] = []
        for batch in batches:
            taken += batch.data[0].asnumpy().tolist()
        return taken

    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(take) for _ in range(THREADS)]
        taken = [value for future in futures for value in future.result(LIMIT)]
    assert sorted(taken) == data.tolist()


class Waiting(mx.operator.CustomOp):
    """Signals that it runs, and waits until it may end."""

    entered, may_end = threading.Event(), threading.Event()

    def forward(self, is_train, req, in_data, out_data, aux):
        Waiting.entered.set()
        assert Waiting.may_end.wait(LIMIT)
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("waiting")
class WaitingProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Waiting()


def refused_beside(first: Callable[[], object], second: Callable[[], object]) -> MXNetError:
    """Return the error of a call that starts while another one runs."""
    Waiting.entered.clear()
    Waiting.may_end.clear()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(first)
        try:
            assert Waiting.entered.wait(LIMIT)
            with pytest.raises(MXNetError, match="another thread is running it") as caught:
                second()
        finally:
            Waiting.may_end.set()
        running.result(LIMIT)
    return caught.value


def network() -> mx.sym.Symbol:
    return mx.sym.Custom(mx.sym.Variable("data"), op_type="waiting", name="wait")


def test_concurrent_use_of_an_executor_raises() -> None:
    executor = network().simple_bind(mx.cpu(), data=(2,))
    refused_beside(executor.forward, executor.forward)
    Waiting.may_end.set()
    assert executor.forward(data=nd.ones(2))[0].asnumpy().tolist() == [1, 1]


def test_concurrent_use_of_a_module_raises() -> None:
    module = mx.mod.Module(network(), label_names=None)
    module.bind([("data", (2,))], for_training=False)
    module.init_params()
    first, second = (mx.io.DataBatch([nd.full((2,), value)]) for value in (1, 2))
    refused_beside(lambda: module.forward(first), lambda: module.forward(second))
    assert module.get_outputs()[0].asnumpy().tolist() == [1, 1]


def test_monitor_callback_can_run_its_executor() -> None:
    executor = (mx.sym.Variable("x") * 2).bind(mx.cpu(), {"x": nd.ones(1)})
    seen: list[float] = []

    def watch(name: str, array: nd.NDArray) -> None:
        if not seen:
            seen.append(array.asscalar())
            executor.forward()

    executor.set_monitor_callback(watch)
    executor.forward()
    assert seen == [2]
