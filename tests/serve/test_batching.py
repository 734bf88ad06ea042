"""Requests are batched, get their own rows back, and fail individually."""

from __future__ import annotations

import asyncio
import functools
import threading

import numpy as np
import pytest

pytest.importorskip("prometheus_client")

from mxnext_cli.serve.batching import Batcher, RowLimit
from mxnext_cli.serve.limits import Limits, Refused
from mxnext_cli.serve.monitoring import Metrics

LIMIT = 60


class Model:
    """Doubles its input, and remembers its batches; it can be held back."""

    def __init__(self):
        self.batches = []
        self.may_run = threading.Event()
        self.may_run.set()
        self.started = threading.Semaphore(0)

    def __call__(self, inputs):
        self.started.release()
        assert self.may_run.wait(LIMIT)
        (value,) = inputs.values()
        self.batches.append(len(value))
        if (value == 13).any():
            raise ValueError("13 is bad luck")
        if (value == 666).any():
            raise SystemExit
        return [value * 2]


def row(number, width=2):
    return {"data": np.full((1, width), number, np.float32)}


def in_loop(test):
    """Run a test in an event loop, within a time."""

    @functools.wraps(test)
    def run(**fixtures):
        asyncio.run(asyncio.wait_for(test(**fixtures), LIMIT))

    return run


def submit(batcher, request):
    return asyncio.ensure_future(batcher.run(request))


async def started(model):
    assert await asyncio.to_thread(model.started.acquire, timeout=LIMIT)


async def submit_behind(model, batcher, requests):
    """Submit a request, and others while it runs; return the tasks of all."""
    model.may_run.clear()
    tasks = [submit(batcher, row(0))]
    await started(model)
    tasks += [submit(batcher, request) for request in requests]
    await asyncio.sleep(0)
    model.may_run.set()
    return tasks


@pytest.fixture
def model():
    model = Model()
    yield model
    model.may_run.set()


@pytest.fixture
def make(model):
    def make_batcher(arriving=lambda: 0, runs_inline=False, **limits):
        return Batcher(model, Limits(timeout=LIMIT, **limits), Metrics(), arriving, runs_inline)

    return make_batcher


@in_loop
async def test_waiting_requests_become_one_batch(model, make):
    tasks = await submit_behind(model, make(max_batch=8), [row(i) for i in range(1, 7)])
    results = [(await task)[0] for task in tasks]
    assert [r.tolist() for r in results] == [[[2.0 * i] * 2] for i in range(7)]
    assert model.batches == [1, 6]


@in_loop
async def test_batches_have_a_limit(model, make):
    tasks = await submit_behind(model, make(max_batch=2), [row(i) for i in range(5)])
    assert [len((await task)[0]) for task in tasks] == [1] * 6
    assert max(model.batches) == 2


@in_loop
async def test_requests_with_different_shapes_are_not_batched(model, make):
    requests = [row(1, width=w) for w in (2, 3, 2, 3)]
    tasks = await submit_behind(model, make(max_batch=8), requests)
    assert [(await task)[0].shape[1] for task in tasks] == [2, 2, 3, 2, 3]
    assert sorted(model.batches) == [1, 2, 2]


@in_loop
async def test_a_lone_request_does_not_wait(make):
    batcher = make(max_delay=LIMIT * 10, arriving=lambda: 0)
    assert (await batcher.run(row(1)))[0].tolist() == [[2, 2]]


@in_loop
async def test_a_request_waits_for_one_that_arrives(model, make):
    batcher = make(max_batch=2, max_delay=LIMIT * 10, arriving=lambda: 1)
    first = submit(batcher, row(1))
    await asyncio.sleep(0.01)
    assert [(await task)[0][0, 0] for task in (first, submit(batcher, row(2)))] == [2, 4]
    assert model.batches == [2]


@in_loop
async def test_a_failing_request_does_not_fail_its_batch(model, make):
    tasks = await submit_behind(model, make(max_batch=8), [row(i) for i in (1, 13, 2)])
    assert (await tasks[1])[0][0, 0] == 2
    assert (await tasks[3])[0][0, 0] == 4
    with pytest.raises(ValueError, match="bad luck"):
        await tasks[2]


@in_loop
async def test_a_model_that_exits_does_not_end_the_server(make):
    for batcher in (make(), make(runs_inline=True)):
        for _ in range(2):
            assert (await batcher.run(row(1)))[0][0, 0] == 2
            with pytest.raises(Refused, match="SystemExit"):
                await batcher.run(row(666))


@in_loop
async def test_single_quick_requests_run_in_the_calling_thread(make):
    threads = []
    batcher = make(runs_inline=True)
    predict = batcher._predict

    def remember(inputs):
        threads.append(threading.current_thread() is threading.main_thread())
        return predict(inputs)

    batcher._predict = remember
    for _ in range(2):
        assert (await batcher.run(row(1)))[0][0, 0] == 2
        await asyncio.sleep(0.01)
    assert threads == [False, True]  # how long it takes was not known at first
    await batcher.close()
    with pytest.raises(Refused, match="stopping"):
        await batcher.run(row(1))


@in_loop
async def test_the_queue_has_a_limit(model, make):
    batcher = make(max_queue=2, max_batch=1)
    model.may_run.clear()
    tasks = [submit(batcher, row(0))]
    await started(model)
    tasks += [submit(batcher, row(i)) for i in (1, 2)]
    await asyncio.sleep(0)
    with pytest.raises(Refused, match="2 requests wait"):
        await batcher.run(row(3))
    model.may_run.set()
    assert len([await task for task in tasks]) == 3


@in_loop
async def test_canceled_requests_are_not_run(model, make):
    batcher = make(max_batch=1)
    model.may_run.clear()
    first = submit(batcher, row(0))
    await started(model)
    canceled = submit(batcher, row(1))
    await asyncio.sleep(0)
    canceled.cancel()
    await asyncio.sleep(0)
    model.may_run.set()
    await first
    await batcher.run(row(2))
    assert model.batches == [1, 1]


@in_loop
async def test_close_finishes_waiting_requests(model, make):
    batcher = make(max_batch=1)
    model.may_run.clear()
    tasks = [submit(batcher, row(i)) for i in range(5)]
    await started(model)
    closing = asyncio.ensure_future(batcher.close(LIMIT))
    await asyncio.sleep(0)
    with pytest.raises(Refused, match="stopping"):
        await batcher.run(row(1))
    model.may_run.set()
    await closing
    assert [(await task)[0][0, 0] for task in tasks] == [0, 2, 4, 6, 8]


@in_loop
async def test_many_tasks_get_their_own_answers(model, make):
    batcher = make(max_batch=16)
    wrong = []

    async def ask(start):
        for i in range(start, start + 50):
            if (await batcher.run(row(i + 1000)))[0][0, 0] != 2 * (i + 1000):
                wrong.append(i)

    await asyncio.gather(*(ask(i * 50) for i in range(8)))
    assert wrong == []
    assert sum(model.batches) == 400


def test_batches_shrink_to_the_target_and_grow_again():
    limit = RowLimit(32, target_ms=100)
    limit.learn(32, 0.2)
    assert limit.rows == 16
    limit.learn(16, 0.06)
    assert limit.rows == 8
    limit.learn(4, 0.01)  # a batch that was not full says nothing of larger ones
    assert limit.rows == 8
    limit.learn(8, 0.01)
    assert limit.rows == 9
    assert RowLimit(32, None).rows == 32
