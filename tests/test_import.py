"""What `import mxnet` loads besides torch, with reasons; everything else waits until it is used."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref

import pytest

from mxnet.memory import pause_collection

# Packages and modules that `import mxnet` adds to those of `import torch`.
REASONS = {
    "mxnet": "itself",
    "numpy.random": "programs seed it, and shuffling draws from it",
    "numpy.testing": "mx.test_utils has it under the name npt, as in MXNet",
    "multiprocessing.pool": "MXNet brings it in, and old programs name it without an import",
    "html": "arrays and drawings escape what they show",
    "secrets": "names of temporary files, by which savers do not meet",
    "hmac": "part of secrets",
    "sysconfig": "where the standard library is, for readers of old pickles",
}
# Of other versions of Python, torch or NumPy: what the modules above bring in.
PARTS = ("_", "cython_runtime", "numpy.", "multiprocessing.", "html.", "importlib", "decimal")

SCRIPT = """
import gc, json, sys
import torch
before = set(sys.modules)
import mxnet
state = [gc.isenabled(), gc.get_freeze_count()]
print(json.dumps([sorted(set(sys.modules) - before), state]))
"""


def test_only_what_is_needed_is_imported_at_the_start():
    command = [sys.executable, "-c", SCRIPT]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    modules, collection = json.loads(result.stdout)
    extra = [
        name
        for name in modules
        if not any(name == reason or name.startswith(f"{reason}.") for reason in REASONS)
        and not name.startswith(PARTS)
    ]
    assert not extra, f"import mxnet loads {extra}: import them where they are used, or say why not"
    assert collection == [True, 0]


def test_collection_is_paused_in_the_block_only():
    with pytest.raises(KeyError), pause_collection():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled() and not gc.get_freeze_count()
    gc.disable()
    try:
        with pause_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_garbage_of_the_block_is_collected_later_and_frozen_objects_stay_frozen():
    class Cycle:
        def __init__(self) -> None:
            self.itself = self

    with pause_collection():
        cycle = weakref.ref(Cycle())
    gc.collect(1)
    assert cycle() is not None  # it is old
    gc.collect()
    assert cycle() is None
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with pause_collection():
            pass
        assert gc.get_freeze_count() == frozen > 0
    finally:
        gc.unfreeze()
