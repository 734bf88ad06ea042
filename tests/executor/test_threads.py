"""Work on several Python threads: every item once, errors come back, torch's threads stay."""

from __future__ import annotations

import multiprocessing
import sys
import threading

import pytest
import torch

from mxnet.executor.threads import MOST_THREADS, run_on_threads, threads_at_once

LIMIT = 60  # seconds


@pytest.fixture(params=[1, 2, MOST_THREADS, 2 * MOST_THREADS + 1], autouse=True)
def every(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_each_item_is_worked_on_once(every):
    done = []
    run_on_threads(lambda items: done.extend(items), range(1000))
    assert sorted(done) == list(range(1000))
    assert torch.get_num_threads() == every


def test_threads_run_at_the_same_time_and_share_those_of_torch(every):
    threads, share = threads_at_once()
    meeting = threading.Barrier(threads, timeout=LIMIT)  # passes only if all are there
    seen = []

    def work(items):
        next(items)
        meeting.wait()
        seen.append((torch.get_num_threads(), torch.is_grad_enabled()))

    run_on_threads(work, range(threads))
    assert seen == [(share, False)] * threads
    assert torch.get_num_threads() == every and torch.is_grad_enabled()


def test_an_error_of_any_thread_is_raised(every):
    def work(items):
        for item in items:
            if item == 7:
                raise ValueError("seven")

    with pytest.raises(ValueError, match="seven"):
        run_on_threads(work, range(100))
    assert torch.get_num_threads() == every


def _run_in_child(answer):
    torch.set_num_threads(2)
    done = []
    run_on_threads(lambda items: done.extend(items), range(10))
    answer.put(sorted(done))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own():
    run_on_threads(lambda items: list(items), range(10))
    context = multiprocessing.get_context("fork")
    answer = context.SimpleQueue()
    child = context.Process(target=_run_in_child, args=(answer,))
    child.start()
    child.join(LIMIT)
    try:
        assert child.exitcode == 0
        assert answer.get() == list(range(10))
    finally:
        child.kill()
