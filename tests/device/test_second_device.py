"""Runs `cases/` on two devices without hardware, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.device import second_device

CASES = Path(__file__).parent / "cases"
MAX_SECONDS = 900
GROUPS = {
    "operators": ["test_operators.py"],
    "training": [],
}
_REASON = second_device.reason_to_skip()


def files_of(group: str) -> list[str]:
    """Return the files of a group; the last one has all that no other names."""
    if GROUPS[group]:
        return GROUPS[group]
    others = {name for names in GROUPS.values() for name in names}
    return [path.name for path in sorted(CASES.glob("test_*.py")) if path.name not in others]


@pytest.mark.skipif(_REASON is not None, reason=str(_REASON))
@pytest.mark.parametrize("group", GROUPS)
def test_cases(group: str) -> None:
    second_device.build()  # outside the limit of the tests
    files = [str(CASES / name) for name in files_of(group)]
    assert files
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", *files],
        env={**os.environ, "MXNEXT_TEST_DEVICE": "1", "OMP_NUM_THREADS": "1"},
        cwd=CASES.parents[2],
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
    )
    assert answer.returncode == 0, answer.stdout[-8000:] + answer.stderr[-2000:]
    assert " passed" in answer.stdout
