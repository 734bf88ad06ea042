"""Imports torch so that its threads do not fight for the processors of a busy machine.

After each parallel loop OpenMP's threads spin for some milliseconds, ready for the next one. That
is fastest on a machine that runs nothing else. Where other programs take all processors, a spinning
thread keeps the thread that it waits for from running, and steps take ten times as long. There the
threads sleep instead; `OMP_WAIT_POLICY` set by the user (``active`` or ``passive``) decides first.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

WAIT_POLICY = "OMP_WAIT_POLICY"
SETTINGS = (WAIT_POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
LOAD_FILE = Path("/proc/loadavg")


def is_machine_busy() -> bool:
    """Return whether far more threads want to run than there are processors, now and recently.

    Twice as many: the threads of a program or two that run beside this one are no reason.

    >>> mx.openmp.is_machine_busy() in (True, False)
    True
    """
    try:
        words = LOAD_FILE.read_text().split()  # 0.52 0.58 0.59 3/602 11206
        last_minute, runnable = float(words[0]), int(words[3].split("/")[0])
    except (OSError, ValueError, IndexError):  # not Linux
        return False
    many = 2 * (os.cpu_count() or 1)
    return last_minute > many and runnable > many


def import_torch() -> None:
    """Import torch; on a busy machine its threads sleep while they wait.

    >>> mx.openmp.import_torch()  # nothing to do: it is there
    """
    is_decided = "torch" in sys.modules or any(name in os.environ for name in SETTINGS)
    if is_decided or not is_machine_busy():
        import torch

        return
    os.environ[WAIT_POLICY] = "passive"  # read once, when the library is loaded
    try:
        import torch  # noqa: F401
    finally:
        del os.environ[WAIT_POLICY]


import_torch()
