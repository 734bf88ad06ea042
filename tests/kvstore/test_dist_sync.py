"""Synchronous distributed stores: several processes on loopback answer as MXNet 1.9.1's did."""

from __future__ import annotations

import json
import pathlib

from tests.distributed.jobs import run_roles, run_workers, succeeded
from tests.golden import record_dist_kvstore as recorder

RECORDER = pathlib.Path(recorder.__file__)
GOLDEN = json.loads((RECORDER.parent / "dist_kvstore.json").read_text())


def check(process, jobs):
    for job, line in zip(jobs, process.out.splitlines(), strict=True):
        recorder.assert_close(json.loads(line), GOLDEN[job], job)


def test_two_workers_hold_what_mxnet_holds():
    # One process may have several stores, so all stories share it; MXNet needed one for each.
    names = [which for which, workers, _ in recorder.JOBS if workers == 2]
    for worker in succeeded(run_workers(RECORDER, 2, *names)):
        check(worker, [f"{name} 2" for name in names])


def test_three_workers_and_the_roles_of_mxnets_launcher():
    for process in succeeded(run_roles(RECORDER, 3, 1, "dist_sync:store")):
        if process.role == "worker":
            check(process, ["dist_sync:store 3"])
