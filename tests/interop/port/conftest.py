"""Ported files are checked in forks of a process that has imported torch, which saves seconds."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from mxnet.interop.comparison import isolated
from tests import without_mxnet


@pytest.fixture(autouse=True)
def _forked_checks(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Run checks in forks, but in tests marked with `new_interpreter`."""
    if "new_interpreter" not in request.fixturenames:
        stand_in = SimpleNamespace(run=without_mxnet.run, TimeoutExpired=subprocess.TimeoutExpired)
        monkeypatch.setattr(isolated, "subprocess", stand_in)
    yield


@pytest.fixture
def new_interpreter() -> None:
    """Ask for checks in a new interpreter, as users have them."""
