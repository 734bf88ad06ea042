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
