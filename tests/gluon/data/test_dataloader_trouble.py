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
    "locks_are_lost",
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
    "lambdas_are_sent",
    "unsendable_data",
    "opencv_has_threads",
]
ANEW = [
    "all_arrive",
    "large_batches",
    "worker_raises",
    "locks_are_lost",
    "consumer_breaks",
    "lambdas_are_sent",
    "unsendable_data",
]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stories speak of POSIX processes")


def run_stories(method, limit, stories):
    """Return what each story ended in, and what it said before."""
    finished = subprocess.run(
        [sys.executable, STORIES, method, str(limit), *stories],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60 + limit * len(stories),
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    endings = dict(line.split(": ") for line in finished.stdout.splitlines() if ": " in line)
    texts = {}
    for part in finished.stderr.split("=== end of ")[:-1]:
        texts[len(texts)] = part
    return {name: (endings[name], texts[i]) for i, name in enumerate(stories)}


@pytest.fixture(scope="module")
def forked():
    return run_stories("fork", 60, ALL)


@pytest.mark.parametrize("story", ALL)
def test_forked_workers(forked, story):
    ending, text = forked[story]
    assert ending.startswith("0 "), f"{ending}\n{text}"
    assert "Traceback" not in text, text


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_start_anew(method):
    for story, (ending, text) in run_stories(method, 120, ANEW).items():
        assert ending.startswith("0 "), f"{story}: {ending}\n{text}"
