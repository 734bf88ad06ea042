"""Restarts: `fit(resume=...)` and Gluon loops go on from the last state that all workers have."""

from __future__ import annotations

import json
import sys

import pytest

from tests.distributed import restart_stories, stories
from tests.distributed.forked import run_forked
from tests.distributed.jobs import succeeded

QUICK = {"MXNET_KVSTORE_HEARTBEAT": 2}


def weights(processes):
    rows = [p.out.rpartition("]]")[0] + "]]" for p in succeeded(processes)]
    assert len(set(rows)) == 1  # all workers hold the same
    return json.loads(rows[0])[0]


def test_a_gluon_loop_restarts_with_the_same_and_with_fewer_workers(tmp_path):
    wanted = weights(run_forked(restart_stories.train_and_print, 2, str(tmp_path / "whole")))
    ended = run_forked(restart_stories.train_and_print, 2, str(tmp_path / "run"), 9, **QUICK)
    assert [e.status for e in ended] == [1, -9]
    again = run_forked(restart_stories.train_and_print, 2, str(tmp_path / "run"))
    assert weights(again) == wanted  # to the last bit
    assert all(p.out.endswith(" 10\n") for p in again)  # of 18 steps, 8 were done
    ended = run_forked(restart_stories.train_and_print, 3, str(tmp_path / "fewer"), 7, **QUICK)
    assert [e.status for e in ended] == [1, -9, 1]
    again = run_forked(restart_stories.train_and_print, 2, str(tmp_path / "fewer"))
    # Of 4 steps an epoch, 6 are done; with 6 an epoch, the second epoch goes on after 3.
    assert all(p.out.endswith(" 9\n") for p in again) and len(weights(again)) == 21


def test_a_restart_gives_the_result_of_an_uninterrupted_run(tmp_path):
    wanted = weights(run_forked(restart_stories.fit_and_print, 2, None))
    ended = run_forked(restart_stories.fit_and_print, 2, str(tmp_path), 9, **QUICK)
    assert [e.status for e in ended] == [1, -9]
    again = run_forked(restart_stories.fit_and_print, 2, str(tmp_path))
    assert weights(again) == wanted
    assert all(p.out.endswith(" 10\n") for p in again)  # of 18 batches, 8 were done


PROGRAM = """
import os, sys
from tests.distributed import restart_stories
first = os.environ["MXNET_LAUNCH_ATTEMPT"] == "0"
getattr(restart_stories, sys.argv[1])(sys.argv[2], 9 if first else None)
"""


@pytest.mark.slow
@pytest.mark.parametrize("story", ["fit_and_print", "train_and_print"])
def test_the_launcher_restarts_a_killed_job_to_the_same_result(story, tmp_path):
    uninterrupted = None if story == "fit_and_print" else str(tmp_path / "whole")
    wanted = weights(run_forked(getattr(restart_stories, story), 2, uninterrupted))
    (tmp_path / "run").mkdir()
    command = [sys.executable, "-c", PROGRAM, story, str(tmp_path / "run")]
    options = ["-n", "2", "--max-restarts", "1"]
    settings = {"PYTHONPATH": stories.ROOT, "OMP_NUM_THREADS": 1, **QUICK}
    (launcher,) = run_forked(stories.launch, 1, [*options, *command], timeout=240, **settings)
    assert launcher.status == 0, launcher.err
    assert "rank 1" in launcher.err and "restart 1 of 1" in launcher.err
    for rank in (0, 1):
        assert f"[rank {rank}] {[wanted]} 10\n" in launcher.out


def test_a_job_goes_on_with_fewer_workers(tmp_path):
    ended = run_forked(restart_stories.fit_and_print, 3, str(tmp_path), 7, **QUICK)
    assert [e.status for e in ended] == [1, -9, 1]
    again = run_forked(restart_stories.fit_and_print, 2, str(tmp_path))
    found = weights(again)
    assert max(abs(w - 1) for w in found) < 0.6  # it began with 0.1, and the data's weights are 1
    assert all(p.out.endswith(" 9\n") for p in again)  # epochs of 4, then of 6 batches
