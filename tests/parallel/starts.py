"""Start programs in all roles of a job as launchers do: separate processes that import mxnet."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.parallel.workers import ROOT, Ended, free_port

PROGRAM = str(Path(__file__).with_name("program.py"))


def environment(**variables: str) -> dict[str, str]:
    """Return the environment without job variables, plus some more."""
    job = ("DMLC_", "MASTER_", "RANK", "WORLD_SIZE", "LOCAL_", "MXNET_JOB_SECRET")
    own = {k: v for k, v in os.environ.items() if not k.startswith(job)}
    return {**own, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}


def run_by_launcher(
    *options: str, program: Sequence[str] = (PROGRAM,), timeout: float = 300, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program by ``mx launch``."""
    command = [sys.executable, "-m", "mxnet.launch", *options, sys.executable, *program]
    return subprocess.run(
        command, env=environment(**variables), capture_output=True, text=True, timeout=timeout
    )


def run_by_variables(
    workers: int,
    servers: int,
    program: Sequence[str] = (PROGRAM,),
    timeout: float = 300,
    **variables: str,
) -> list[Ended]:
    """Run a program in all roles, configured only by ``DMLC_*``, as MXNet's launcher does."""
    job = {
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": str(free_port()),
        "DMLC_NUM_WORKER": str(workers),
        "DMLC_NUM_SERVER": str(servers),
        **variables,
    }
    roles = ["scheduler"] + ["server"] * servers + ["worker"] * workers
    with tempfile.TemporaryFile("w+") as nothing:
        started = [
            subprocess.Popen(
                [sys.executable, *program],
                env=environment(**job, DMLC_ROLE=role),
                stdin=nothing,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for role in roles
        ]
        try:
            texts = [process.communicate(timeout=timeout) for process in started]
        finally:
            for process in started:
                process.kill()
                process.wait(10)
    return [
        Ended(role, process.returncode, *text, 0.0)
        for role, process, text in zip(roles, started, texts, strict=True)
    ]
