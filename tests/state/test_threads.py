"""Concurrent training of threads, on separate arrays and on shared parameters."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, nd
from mxnet.gluon import nn

THREADS, STEPS = 8, 40
LIMIT = 120  # seconds

Step = Callable[[], None]


def convolutional() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, activation="relu"), nn.BatchNorm(), nn.Flatten(), nn.Dense(10))
    net.initialize()
    net.hybridize()
    net(nd.ones((2, 1, 8, 8)))
    return net


def dense() -> nn.Sequential:
    net = nn.Sequential()  # the second gradient is written before backward ends
    net.add(nn.Dense(16, activation="relu"), nn.Dense(200), nn.Dense(200))
    net.initialize()
    net(nd.ones((2, 8)))
    return net


def steps_of_block(net: nn.Block, shape: tuple[int, ...]) -> list[Step]:
    """Return a step for each thread: all train the same block, each on separate data."""

    def make() -> Step:
        data = nd.random.normal(shape=shape)

        def step() -> None:
            with autograd.record():
                loss = (net(data) ** 2).sum()
            loss.backward()

        return step

    return [make() for _ in range(THREADS)]


def steps_of_executors() -> list[Step]:
    """Return a step for each thread, each with its own executor."""
    hidden = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=16)
    net = mx.sym.FullyConnected(mx.sym.Activation(hidden, act_type="relu"), num_hidden=4)
    net = mx.sym.SoftmaxOutput(net, name="softmax")

    def make() -> Step:
        executor = net.simple_bind(mx.cpu(), data=(2, 8))

        def step() -> None:
            executor.forward(is_train=True)
            executor.backward()

        return step

    return [make() for _ in range(THREADS)]


def run_together(steps: list[Step]) -> None:
    """Run each step in a thread, many times; raise the first error of any."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(steps), timeout=LIMIT)

    def work(step: Step) -> None:
        try:
            barrier.wait()
            for _ in range(STEPS):
                step()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(step,), daemon=True) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: steps_of_block(convolutional(), (2, 1, 8, 8)),
        lambda: steps_of_block(dense(), (2, 8)),
        steps_of_executors,
    ],
    ids=["hybridized", "eager", "executors"],
)
def test_threads_train_without_errors(make: Callable[[], list[Step]]) -> None:
    run_together(make())


@pytest.mark.parametrize("size", [3, 2**15])  # written at the end, and before it
def test_gradients_of_threads_on_separate_arrays_are_exact(size: int) -> None:
    weight = nd.arange(size) / size

    def make(factor: float) -> tuple[Step, nd.NDArray]:
        own = weight.copy()
        own.attach_grad()

        def step() -> None:
            with autograd.record():
                loss = (own * own * factor).sum()
            loss.backward()

        return step, own

    pairs = [make(float(k)) for k in range(THREADS)]
    run_together([step for step, _ in pairs])
    for factor, (_, own) in enumerate(pairs):
        np.testing.assert_array_equal(own.grad.asnumpy(), 2 * factor * weight.asnumpy())


def test_threads_that_share_a_parameter_sum_their_gradients() -> None:
    shared = nd.ones((4,))
    shared.attach_grad(grad_req="add")

    def step() -> None:
        with autograd.record():
            loss = (shared * 2).sum()
        loss.backward()

    run_together([step] * THREADS)
    np.testing.assert_array_equal(shared.grad.asnumpy(), np.full(4, 2.0 * THREADS * STEPS))
