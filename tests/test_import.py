"""What `import mxnet` loads besides torch, with reasons; everything else waits until it is used."""

from __future__ import annotations

import json
import subprocess
import sys

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


COLLECTION = """
import gc, weakref
from mxnet.memory import pause_collection

try:
    with pause_collection():
        assert not gc.isenabled()
        raise KeyError
except KeyError:
    assert gc.isenabled() and not gc.get_freeze_count()
gc.disable()
with pause_collection():
    pass
assert not gc.isenabled()
gc.enable()

class Cycle:
    def __init__(self):
        self.itself = self

with pause_collection():
    cycle = weakref.ref(Cycle())
gc.collect(1)
assert cycle() is not None  # it is old
gc.collect()
assert cycle() is None
gc.freeze()  # as programs do before they fork
frozen = gc.get_freeze_count()
with pause_collection():
    pass
assert gc.get_freeze_count() == frozen > 0
"""


def test_the_import_loads_what_is_needed_and_pauses_collection_only_meanwhile():
    command = [sys.executable, "-c", SCRIPT + COLLECTION]
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
