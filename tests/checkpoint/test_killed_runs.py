"""Trainings that are killed by SIGKILL at random moments end with the same bits."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize("kind", ["module", "estimator", "loop"])
def test_a_killed_training_ends_with_the_same_bits(kind):
    command = [sys.executable, "-m", "tests.checkpoint.killed_runs", kind, "--kills", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert f"{kind}: 3 kills" in done.stdout
