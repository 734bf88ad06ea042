"""Optimizer states that are split over workers: the same weights and files, less memory."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.distributed.sharding import Partition
from tests.distributed import sharding_stories
from tests.distributed.forked import run_forked
from tests.distributed.jobs import succeeded


@pytest.mark.parametrize("workers", [2, 3])
def test_sharded_states_give_the_weights_of_whole_ones(workers):
    for process in succeeded(run_forked(sharding_stories.run_all, workers)):
        last = "small_models_and_unknown_optimizers_stay_whole"
        assert process.out.split()[-1] == last, process.out


def test_another_number_of_workers_loads_the_states(tmp_path):
    path = str(tmp_path / "run.states")
    for workers in (3, 2):
        succeeded(run_forked(sharding_stories.train_and_save, workers, path, 2))
    updater = mx.optimizer.get_updater(mx.optimizer.Adam())
    updater.set_states((tmp_path / "run.states").read_bytes())
    for key, shape in sharding_stories.SHAPES.items():
        mean, square = updater.states[key]
        assert mean.shape == square.shape == shape
        assert np.all(square.asnumpy() > 0)


def test_a_partition_is_balanced_and_keeps_what_it_assigned():
    partition = Partition(3, splits=True)
    partition.add({"a": (100, 100), "b": (2, 10_000), "c": (10,), "d": (9,)})
    assert partition["a"] == [(0, 34), (34, 67), (67, 100)]
    assert [stop - start for start, stop in partition["b"]] == [2, 0, 0]  # too few rows to split
    before = partition["a"], partition["c"]
    partition.add({"e": (4097,)})
    assert (partition["a"], partition["c"]) == before
    whole = Partition(2, splits=False)
    whole.add({"a": (100, 100), "b": (60, 100), "c": (50, 100)})
    assert [whole[key][0][1] for key in "abc"] == [100, 0, 0]
