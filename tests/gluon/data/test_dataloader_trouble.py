"""A loader with workers never hangs, leaves nothing behind, and says what went wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STORIES = Path(__file__).with_name("stories.py")
ROOT = Path(__file__).parents[3]
ALL = [
    "all_arrive",
    "large_batches",
    "worker_raises",
    "worker_is_killed",
    "consumer_breaks",
    "nested_loaders",
    "time_runs_out",
    "threads_share",
    "thread_pool",
    "parent_is_killed",
    "python_ends",
    "random_repeats",
    "reloads",
    "many_kept",
    "arrays_and_structures",
    "unsendable_data",
]
ANEW = ["all_arrive", "large_batches", "worker_raises", "consumer_breaks", "unsendable_data"]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stories speak of POSIX processes")


def shared_files():
    folder = Path("/dev/shm")
    return {f for f in os.listdir(folder) if "mxnet" in f} if folder.is_dir() else set()


def tell(story, method, limit):
    before = shared_files()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    told = subprocess.run(
        [sys.executable, STORIES, story, method],
        env=environment,
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[-1] == "done"
    assert "Traceback" not in told.stderr, told.stderr
    assert shared_files() == before


@pytest.mark.parametrize("story", ALL)
def test_forked_workers(story):
    tell(story, "fork", 120)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("story", ANEW)
def test_workers_that_start_anew(story, method):
    tell(story, method, 240)
