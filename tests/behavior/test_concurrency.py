"""Programs with threads and processes behave as in MXNet, and none hangs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("concurrency.py")
THREADS = [
    "scopes_are_each_threads_own",
    "one_file_is_saved_and_read_by_all",
    "training_in_each_thread",
    "one_block_is_called_by_all",
]
PROCESSES = [
    "a_fork_in_the_middle_of_training",
    "forked_workers_compute",
    "workers_that_start_anew_compute",
    "a_loader_forks_while_training_goes_on",
]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("names", [THREADS, PROCESSES], ids=["threads", "processes"])
def test_thread_and_process_scenarios(names: list[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[2])}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", str(SCRIPT), *names],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        check=False,
    )
    assert (result.stdout.split(), result.returncode) == (names, 0), result.stderr[-3000:]
