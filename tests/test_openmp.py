"""Threads sleep on a busy machine, and are ready on a calm one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mxnet import openmp

PROCESSORS = os.cpu_count() or 1
CALM = "0.10 0.20 0.30 1/300 4000"
BUSY = f"{3 * PROCESSORS}.00 1.00 1.00 {3 * PROCESSORS}/300 4000"
OVER = f"{3 * PROCESSORS}.00 1.00 1.00 1/300 4000"  # the others have just finished
SHARED = f"{PROCESSORS + 1}.00 1.00 1.00 {PROCESSORS + 1}/300 4000"


@pytest.fixture
def load(monkeypatch, tmp_path):
    monkeypatch.setattr(openmp, "LOAD_FILE", tmp_path / "loadavg")
    return openmp.LOAD_FILE.write_text


@pytest.mark.parametrize(
    ("text", "busy"), [(CALM, False), (BUSY, True), (OVER, False), (SHARED, False), ("?", False)]
)
def test_a_machine_is_busy_now_and_lately(load, text, busy):
    load(text)
    assert openmp.is_machine_busy() is busy


def test_machines_without_the_file_count_as_calm(monkeypatch, tmp_path):
    monkeypatch.setattr(openmp, "LOAD_FILE", tmp_path / "none")
    assert not openmp.is_machine_busy()


PROGRAM = """
import os, pathlib, sys, types
seen = []
class Torch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            seen.append(os.environ.get("OMP_WAIT_POLICY"))
sys.meta_path.insert(0, Torch())
read = pathlib.Path.read_text
pathlib.Path.read_text = lambda p, *a, **k: LOAD if p.name == "loadavg" else read(p, *a, **k)
import mxnet
print(seen[0], os.environ.get("OMP_WAIT_POLICY"))
"""


@pytest.mark.parametrize(
    ("text", "setting", "seen"),
    [
        (BUSY, None, "passive None"),
        (CALM, None, "None None"),
        (BUSY, "active", "active active"),
    ],
    ids=["busy", "calm", "decided"],
)
def test_torch_is_imported_with_the_policy_and_children_do_not_inherit_it(text, setting, seen):
    environment = {n: v for n, v in os.environ.items() if n not in openmp.SETTINGS}
    environment.update({} if setting is None else {"OMP_WAIT_POLICY": setting})
    program = f"LOAD = {text!r}\n{PROGRAM}"
    made = subprocess.run(
        [sys.executable, "-c", program],
        env=environment, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert made.stdout.strip() == seen
