"""Jobs started as by users: every role is a separate process that imports mxnet."""

from __future__ import annotations

import pytest

from tests.parallel.starts import run_by_launcher, run_by_variables
from tests.parallel.workers import succeeded


def test_all_stores_started_by_the_launcher():
    ended = run_by_launcher("-n", "2", "-s", "1")
    assert ended.returncode == 0, ended.stderr
    assert sorted(line for line in ended.stdout.splitlines() if "DONE" in line) == [
        "[rank 0] DONE 0 2",
        "[rank 1] DONE 1 2",
    ]
    assert "[server 0] a program" not in ended.stdout


@pytest.mark.slow
def test_all_stores_started_by_environment_variables():
    scheduler, first, second, *workers = succeeded(run_by_variables(2, 2))
    assert scheduler.out == first.out == second.out == ""
    assert sorted(w.out.splitlines()[-1] for w in workers) == ["DONE 0 2", "DONE 1 2"]
