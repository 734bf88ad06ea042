"""Seeded faults in files, saves, memory and threads: nothing crashes, hangs or is lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.faults.attempts import ROOT, attempts, run_child

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="fault tests use limits of Linux")
MEMORY = 300_000  # kilobytes that hostile files may take on top


def test_damaged_files_of_every_format_are_read_or_refused():
    pytest.importorskip("cv2")
    found = run_child("mutations", 11, attempts(60))
    assert not found["errors"], found
    assert found["refused"] > found["read"] > 0
    assert found["grown"] < MEMORY, found


def test_hostile_pickles_run_nothing_and_take_no_memory():
    found = run_child("pickles", 12, attempts(8000))
    assert not found["errors"], found
    assert found["refused"] > 0 < found["read"]
    assert found["grown"] < MEMORY and found["slowest"] < 2, found


def test_killed_saves_leave_the_old_set_or_the_new_one():
    found = run_child("kills", 13, attempts(8))
    assert not found["wrong"] and not found["leftovers"], found
    assert found.keys() == {"whole", "wrong", "leftovers"}


def test_a_full_disk_keeps_the_old_set():
    found = run_child("disks", 14, attempts(10))
    assert found.keys() <= {"saved", "refused", "wrong"} and not found["wrong"], found


def test_out_of_memory_is_an_error_and_the_process_survives():
    found = run_child("memory", 15, attempts(30))
    assert not found["errors"], found
    assert found["out of memory"] > 0


def test_threads_share_blocks_from_the_first_call_on():
    found = run_child("threads", 16, attempts(4))
    assert found["failed"] == 0, found


def test_full_shared_memory_is_given_back():
    """Run a loader on a /dev/shm of 8 MB, in a mount namespace of its own."""
    program = (
        "import numpy as np, mxnet as mx\n"
        "data = mx.gluon.data.SimpleDataset([np.ones(200_000, 'float32')] * 32)\n"
        "try:\n"
        "    list(mx.gluon.data.DataLoader(data, 8, num_workers=2))\n"
        "except MemoryError as error:\n"
        "    assert 'shared memory' in str(error)\n"
        "    print('refused')\n"
    )
    script = 'mount -t tmpfs -o size=8m tmpfs /dev/shm || exit 77; "$0" -c "$1"; ls /dev/shm'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, sys.executable, program],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode == 77 or "Operation not permitted" in done.stderr:
        pytest.skip("no right to mount a file system")
    assert done.stdout.split() == ["refused"], done.stdout + done.stderr[-2000:]
