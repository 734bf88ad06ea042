"""Bulk sizes are remembered and have no effect; forked processes can compute."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mxnet import engine

FORKS = """
import multiprocessing
import torch
import mxnet as mx

def compute(_):
    return (mx.nd.ones((256, 1024, 4)) * 2).sum().asscalar() / 2**21

torch.set_num_threads(4)
assert compute(0) == 1  # threads are there now
with multiprocessing.get_context("fork").Pool(1) as pool:
    assert pool.map_async(compute, range(2)).get(30) == [1, 1]
assert torch.get_num_threads() == 4
"""


def test_bulk_size_is_restored():
    first = engine.set_bulk_size(5)
    with engine.bulk(7):
        assert engine.set_bulk_size(9) == 7
    assert engine.set_bulk_size(first) == 5
    with pytest.raises(ZeroDivisionError), engine.bulk(3):
        1 / 0  # noqa: B018
    assert engine.set_bulk_size(first) == first


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_process_does_not_wait_for_threads_it_has_not():
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    environment.pop("OMP_NUM_THREADS", None)
    subprocess.run([sys.executable, "-c", FORKS], env=environment, timeout=100, check=True)
