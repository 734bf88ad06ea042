"""Concurrency scenarios with threads and processes: ``python concurrency.py NAME...``.

Runs each scenario and prints its name; a scenario that fails or hangs ends the process with a
traceback of all threads.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mxnet as mx
from mxnet.gluon import nn

THREADS, LIMIT = 8, 60.0


def in_threads(work: Callable[[int], Any]) -> list[Any]:
    """Run work in threads that begin together; return the results, raise the first error."""
    barrier, results, errors = threading.Barrier(THREADS), [None] * THREADS, []

    def run(number: int) -> None:
        try:
            barrier.wait(LIMIT)
            results[number] = work(number)
        except BaseException:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive(), "a thread hangs"
    assert not errors, errors[0]
    return results


def train(steps: int, net: Any = None, trainer: Any = None) -> tuple[Any, Any]:
    """Train a small network on fixed data, from its beginning or further."""
    if net is None:
        net = nn.HybridSequential()
        net.add(nn.Dense(6, activation="tanh", in_units=5), nn.Dense(2, in_units=6))
        net.initialize(mx.init.One())
        net.hybridize()
        trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    data = mx.nd.array(np.linspace(-1, 1, 20, dtype="float32").reshape(4, 5))
    for _ in range(steps):
        with mx.autograd.record():
            loss = (net(data) ** 2).sum()
        loss.backward()
        trainer.step(4)
    return net, trainer


def weights(net: Any) -> np.ndarray:
    return np.concatenate([p.data().asnumpy().ravel() for p in net.collect_params().values()])


# -- threads --------------------------------------------------------------------------------


def scopes_are_each_threads_own() -> None:
    """Contexts, names, attributes, recording and NumPy semantics are thread-local."""

    def work(number: int) -> list[Any]:
        seen = []
        for turn in range(20):
            is_odd = bool((number + turn) % 2)
            with (
                mx.Context("cpu", number),
                mx.AttrScope(group=str(number)),
                mx.name.Prefix(f"t{number}_"),
                mx.util.np_shape(is_odd),
                mx.autograd.record() if is_odd else mx.autograd.pause(),
            ):
                symbol = mx.sym.relu(mx.sym.var("x"))
                seen.append(mx.current_context().device_id == number)
                seen.append(mx.nd.ones((1,)).context.device_id == number)
                seen.append(symbol.attr("group") == str(number))
                seen.append(symbol.name.startswith(f"t{number}_relu"))
                seen.append(mx.util.is_np_shape() is is_odd)
                seen.append(mx.autograd.is_recording() is is_odd)
        mx.Context.default_ctx = mx.Context("cpu", number)
        seen.append(mx.current_context().device_id == number)
        return seen

    assert all(all(seen) for seen in in_threads(work))
    assert mx.current_context() == mx.cpu(0)
    assert mx.sym.var("x").list_attr() == {}
    assert not mx.autograd.is_recording()
    assert not mx.util.is_np_shape()


def one_file_is_saved_and_read_by_all() -> None:
    """Each reader gets a complete file of one writer."""
    path = str(Path(tempfile.mkdtemp()) / "x.params")
    mx.nd.save(path, {"w": mx.nd.zeros((500,))})

    def work(number: int) -> None:
        for _ in range(15):
            mx.nd.save(path, {"w": mx.nd.full((500,), number)})
            assert len(np.unique(mx.nd.load(path)["w"].asnumpy())) == 1

    in_threads(work)


def training_in_each_thread() -> None:
    """Networks with trainers, and modules, give the same results as in a single thread."""
    expected = weights(train(10)[0])

    def fit() -> np.ndarray:
        net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
        module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
        data = np.linspace(-1, 1, 24, dtype="float32").reshape(8, 3)
        batches = mx.io.NDArrayIter(data, np.arange(8) % 2, 4)
        module.fit(batches, num_epoch=2, initializer=mx.init.One())
        return module.get_params()[0]["fc_weight"].asnumpy()

    alone = fit()
    for number, result in enumerate(
        in_threads(lambda n: weights(train(10)[0]) if n % 2 else fit())
    ):
        np.testing.assert_allclose(result, expected if number % 2 else alone, rtol=1e-4, atol=1e-5)


def one_block_is_called_by_all() -> None:
    """First calls and several shapes of a hybridized block in many threads."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Flatten(), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    inputs = [mx.nd.random.uniform(shape=(n + 1, 2, 6, 6)) for n in range(THREADS)]
    outputs = in_threads(lambda n: [net(inputs[n]).asnumpy() for _ in range(5)][-1])
    for x, output in zip(inputs, outputs, strict=True):
        np.testing.assert_allclose(net(x).asnumpy(), output, rtol=1e-4, atol=1e-5)


# -- processes ------------------------------------------------------------------------------


def a_fork_in_the_middle_of_training() -> None:
    """Child and parent continue from the same step to the same weights."""
    expected = weights(train(12)[0])
    net, trainer = train(6)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            train(6, net, trainer)
            os.write(writer, weights(net).tobytes())
        finally:
            os._exit(0)
    os.close(writer)
    train(6, net, trainer)
    with os.fdopen(reader, "rb") as file:
        theirs = np.frombuffer(file.read(), "float32")
    os.waitpid(child, 0)
    np.testing.assert_allclose(weights(net), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(theirs, expected, rtol=1e-4, atol=1e-5)


def _square(number: int) -> list[float]:
    return (mx.nd.full((3,), number) ** 2).asnumpy().tolist()


def _pool(method: str) -> None:
    mx.nd.dot(mx.nd.ones((64, 64)), mx.nd.ones((64, 64))).wait_to_read()
    with multiprocessing.get_context(method).Pool(2) as pool:
        squares = pool.map_async(_square, range(6)).get(LIMIT)
    assert squares == [[n * n] * 3 for n in map(float, range(6))]


def forked_workers_compute() -> None:
    """A pool of forks after the library has run."""
    _pool("fork")


def workers_that_start_anew_compute() -> None:
    """A pool of new processes."""
    _pool("spawn")


def a_loader_forks_while_training_goes_on() -> None:
    """Workers of a `DataLoader` are started between the steps of a training in two threads."""
    dataset = mx.gluon.data.ArrayDataset(np.arange(24, dtype="float32").reshape(12, 2))
    stop, failures = threading.Event(), []

    def keep_training() -> None:
        try:
            net, trainer = train(1)
            while not stop.is_set():
                train(1, net, trainer)
        except BaseException:
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=keep_training, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(2):
            loader = mx.gluon.data.DataLoader(dataset, 4, num_workers=2, timeout=int(LIMIT))
            rows = np.concatenate([batch.asnumpy() for batch in loader])
            np.testing.assert_array_equal(rows, np.arange(24, dtype="float32").reshape(12, 2))
    finally:
        stop.set()
        for thread in threads:
            thread.join(LIMIT)
    assert not failures, failures[0]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        faulthandler.dump_traceback_later(4 * LIMIT, exit=True)
        globals()[name]()
        print(name, flush=True)
