"""Processes of a job that are not workers: `import mxnet` turns them into servers.

MXNet's launchers start the same program in every role, and expect that a process whose
``DMLC_ROLE`` is server or scheduler serves from ``import mxnet`` on and never returns to the
program. Serving inside the import would hold the import lock, for which every thread waits that
imports something. So the process becomes ``python -m mxnet.kvstore`` instead, with the same number
and the same output. This module is imported before all others.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SERVING_ROLES = ("server", "scheduler")


def hand_over() -> None:
    """Run as a server if the process has that role; in that case it never returns."""
    if os.environ.get("DMLC_ROLE", "").lower() not in SERVING_ROLES:
        return
    if not (os.environ.get("DMLC_PS_ROOT_URI") or os.environ.get("MASTER_ADDR")):
        return  # a leftover: there is no job
    own = ["-m", "mxnet.kvstore"]
    if sys.orig_argv[-2:] == own:
        return
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    folder = str(Path(__file__).parents[2])  # the program may have extended sys.path
    paths = [p for p in (folder, os.environ.get("PYTHONPATH")) if p]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined] (as in multiprocessing)
    os.execve(sys.executable, [sys.executable, *flags, *own], environment)
