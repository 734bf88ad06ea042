"""Ten seeds of `chaos`; a thousand run at night."""

from __future__ import annotations

import os
import sys

import pytest

from tests.faults import chaos

for package in ("granian", "starlette", "msgspec", "prometheus_client", "python_multipart"):
    pytest.importorskip(package)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="faults use signals and limits of Linux"),
]
SEEDS = range(int(os.environ.get("MXNEXT_CHAOS", "10")))


def test_jobs_end_with_a_clear_error_and_lose_nothing_at_any_fault() -> None:
    assert not chaos.run(SEEDS, at_once=2)


def test_every_fault_is_chosen_by_some_seed() -> None:
    chosen = {(name, fault.kind) for name, fault in map(chaos.choose, range(1000))}
    assert chosen == {(name, kind) for name, (_, kinds) in chaos.JOBS.items() for kind in kinds}
    assert {kind for name, kind in chosen if name != "serve"} == chaos.CAUSES.keys()
