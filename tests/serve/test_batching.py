"""Requests become batches, each is answered with its own rows, and failures stay alone."""

from __future__ import annotations

import threading

import numpy as np
import pytest

pytest.importorskip("orjson")

from mxnext_cli.serve.metrics import Counter, Histogram, Metrics, Table
from mxnext_cli.serve.models.batching import Batcher, QueueFull, RowLimit, Stopping, WorkerDied

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


def submit_behind(model, batcher, requests):
    """Submit a request, and others while it runs; return the futures of all."""
    model.may_run.clear()
    futures = [batcher.submit(row(0))]
    assert model.started.acquire(timeout=LIMIT)
    futures += [batcher.submit(request) for request in requests]
    model.may_run.set()
    return futures


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def make(model):
    batchers = []

    def make_batcher(**options):
        batchers.append(Batcher(model, **options))
        return batchers[-1]

    yield make_batcher
    model.may_run.set()
    for batcher in batchers:
        batcher.close(LIMIT)


def test_waiting_requests_become_one_batch(model, make):
    batcher = make(max_batch=8)
    futures = submit_behind(model, batcher, [row(i) for i in range(1, 7)])
    results = [f.result(LIMIT)[0] for f in futures]
    assert [r.tolist() for r in results] == [[[2.0 * i] * 2] for i in range(7)]
    assert model.batches == [1, 6]


def test_batches_have_a_limit(model, make):
    batcher = make(max_batch=2)
    futures = submit_behind(model, batcher, [row(i) for i in range(5)])
    assert [len(f.result(LIMIT)[0]) for f in futures] == [1] * 6
    assert max(model.batches) == 2


def test_other_shapes_are_not_joined(model, make):
    batcher = make(max_batch=8)
    futures = submit_behind(model, batcher, [row(1, width=w) for w in (2, 3, 2, 3)])
    assert [f.result(LIMIT)[0].shape[1] for f in futures] == [2, 2, 3, 2, 3]
    assert sorted(model.batches) == [1, 2, 2]


def test_a_lone_request_does_not_wait(model, make):
    batcher = make(max_delay=LIMIT * 10, arriving=lambda: 0)
    assert batcher.submit(row(1)).result(LIMIT)[0].tolist() == [[2, 2]]


def test_a_request_waits_for_one_that_arrives(model, make):
    batcher = make(max_batch=2, max_delay=LIMIT * 10, arriving=lambda: 1)
    futures = [batcher.submit(row(i)) for i in (1, 2)]
    assert [f.result(LIMIT)[0][0, 0] for f in futures] == [2, 4]
    assert model.batches == [2]


def test_a_bad_request_fails_alone(model, make):
    batcher = make(max_batch=8)
    futures = submit_behind(model, batcher, [row(i) for i in (1, 13, 2)])
    assert futures[1].result(LIMIT)[0][0, 0] == 2
    assert futures[3].result(LIMIT)[0][0, 0] == 4
    with pytest.raises(ValueError, match="bad luck"):
        futures[2].result(LIMIT)


def test_a_worker_that_dies_is_replaced(make):
    metrics = Metrics()
    batcher = make(metrics=metrics)
    with pytest.raises(WorkerDied):
        batcher.submit(row(666)).result(LIMIT)
    assert batcher.submit(row(1)).result(LIMIT)[0][0, 0] == 2
    assert metrics.restarts.value() == 1
    assert batcher.is_alive


def test_requests_can_run_in_the_thread_of_their_caller(model, make):
    batcher = make()
    assert batcher.times.estimate(row(1)) == float("inf")
    for _ in range(3):
        assert batcher.run_here(row(1))[0][0, 0] == 2
    assert batcher.times.estimate(row(1)) < LIMIT
    assert batcher.times.estimate(row(1, width=3)) == float("inf")
    with pytest.raises(ValueError, match="bad luck"):
        batcher.run_here(row(13))
    with pytest.raises(WorkerDied):
        batcher.run_here(row(666))
    batcher.close(LIMIT)
    with pytest.raises(Stopping):
        batcher.run_here(row(1))


def test_the_queue_has_a_limit(model, make):
    batcher = make(max_queue=2, max_batch=1)
    model.may_run.clear()
    futures = [batcher.submit(row(0))]
    assert model.started.acquire(timeout=LIMIT)
    futures += [batcher.submit(row(i)) for i in (1, 2)]
    with pytest.raises(QueueFull):
        batcher.submit(row(3))
    model.may_run.set()
    assert len([f.result(LIMIT) for f in futures]) == 3


def test_canceled_requests_are_not_run(model, make):
    batcher = make(max_batch=1)
    model.may_run.clear()
    first = batcher.submit(row(0))
    assert model.started.acquire(timeout=LIMIT)
    canceled = batcher.submit(row(1))
    assert canceled.cancel()
    model.may_run.set()
    first.result(LIMIT)
    batcher.submit(row(2)).result(LIMIT)
    assert model.batches == [1, 1]


def test_closing_finishes_what_waits(model, make):
    batcher = make(max_batch=1)
    model.may_run.clear()
    futures = [batcher.submit(row(i)) for i in range(5)]
    closing = threading.Thread(target=batcher.close, args=(LIMIT,))
    closing.start()
    model.may_run.set()
    closing.join(LIMIT)
    assert [f.result(0)[0][0, 0] for f in futures] == [0, 2, 4, 6, 8]
    with pytest.raises(Stopping):
        batcher.submit(row(1))
    assert not batcher.is_alive


def test_many_threads_get_their_own_answers(model, make):
    batcher = make(max_batch=16)
    wrong = []

    def ask(start):
        for i in range(start, start + 50):
            if batcher.submit(row(i + 1000)).result(LIMIT)[0][0, 0] != 2 * (i + 1000):
                wrong.append(i)

    threads = [threading.Thread(target=ask, args=(i * 50,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT * 3)
    assert wrong == []
    assert sum(model.batches) == 400


def test_text_of_metrics():
    counter = Counter(Table(), "c", "Counts.", "code", ["200"])
    counter.add(label="200")
    counter.add(label="599")
    assert counter.lines()[-2:] == ['c{code="200"} 1', 'c{code="other"} 1']
    histogram = Histogram(Table(), "h", "Values.", (1, 2))
    for value in (0.5, 2, 7):
        histogram.observe(value)
    assert histogram.lines()[2:] == [
        'h_bucket{le="1"} 1',
        'h_bucket{le="2"} 2',
        'h_bucket{le="+Inf"} 3',
        "h_sum 9.5",
        "h_count 3",
    ]


def test_metrics_of_processes_are_added():
    shared = np.zeros((2, 256))
    both = [Metrics(Table(shared, row)) for row in (0, 1)]
    for metrics in both:
        metrics.requests.add(label="200")
        metrics.seconds.observe(0.5)
    assert [m.requests.value("200") for m in both] == [2, 2]
    assert both[0].seconds.count == 2
    assert "mx_request_seconds_sum 1\n" in both[1].text()


def test_batches_shrink_to_the_target_and_grow_again():
    limit = RowLimit(32, target=0.1)
    limit.learn(32, 0.2)
    assert limit.rows == 16
    limit.learn(16, 0.06)
    assert limit.rows == 8
    limit.learn(4, 0.01)  # a batch that was not full says nothing of larger ones
    assert limit.rows == 8
    limit.learn(8, 0.01)
    assert limit.rows == 9
    assert RowLimit(32, None).rows == 32
