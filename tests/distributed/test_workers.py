"""Workers of a job together: stores, Trainer, layers and Horovod's names, against one process."""

from __future__ import annotations

import pytest

from tests.distributed import stories
from tests.distributed.forked import run_forked
from tests.distributed.jobs import succeeded


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_agree_with_one_process(workers):
    for process in succeeded(run_forked(stories.run_all, workers)):
        assert process.out.split()[-1] == "asynchronous_pushes_are_not_lost", process.out


def test_compressed_sums_of_four_workers():
    for process in succeeded(run_forked(stories.run_compressed, 4)):
        assert process.out == "done\n"


def test_a_job_may_have_one_worker():
    (process,) = succeeded(run_forked(stories.run_some, 1))
    assert process.out == "done\n"


@pytest.mark.slow
def test_the_example_learns():
    pytest.importorskip("sklearn")
    first, second = succeeded(run_forked(stories.train_the_example, 2))
    assert float(first.out.split()[-1]) > 0.8
    assert second.out == ""


def test_a_process_group_of_the_program_is_used():
    ended = succeeded(run_forked(stories.the_program_may_start_torch_itself, 2))
    assert [e.out for e in ended] == ["0 [2.0, 2.0]\n", "1 [2.0, 2.0]\n"]
