"""Nothing in the interpreter holds up the event loop for long."""

from __future__ import annotations

import gc
import sys

import pytest

pytest.importorskip("granian")

from mxnext_cli.serve.server import shorten_pauses


def test_imports_are_not_collected_while_a_server_runs():
    before, has_frozen = gc.get_threshold(), bool(gc.get_freeze_count())
    interval = sys.getswitchinterval()
    try:
        shorten_pauses()
        assert gc.get_freeze_count() > 10_000
        assert len(gc.get_objects()) < 1000  # what a collection goes through
    finally:
        gc.set_threshold(*before)
        sys.setswitchinterval(interval)
        if not has_frozen:
            gc.unfreeze()
