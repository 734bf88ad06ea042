"""Runs `cases/` on two emulated devices, in a subprocess."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.device import second_device

CASES = Path(__file__).parent / "cases"
MAX_SECONDS = 900
_REASON = second_device.reason_to_skip()


@pytest.mark.skipif(_REASON is not None, reason=str(_REASON))
def test_device_cases_on_an_emulated_second_device() -> None:
    second_device.build()  # outside the limit of the tests
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", CASES],
        env={**os.environ, "MXNEXT_TEST_DEVICE": "1", "OMP_NUM_THREADS": "1"},
        cwd=CASES.parents[2],
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
    )
    assert answer.returncode == 0, answer.stdout[-8000:] + answer.stderr[-2000:]
    assert " passed" in answer.stdout
