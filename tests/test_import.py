"""`import mxnet` loads only needed modules; other packages load lazily."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import mxnet as mx
from tests.programs import run_program

# Packages and modules that `import mxnet` adds to those of `import torch`.
REASONS = {
    "mxnet": "itself",
    "multiprocessing.pool": "MXNet brings it in, and old programs name it without an import",
    "html": "arrays and drawings escape what they show",
    "secrets": "names of temporary files, by which savers do not meet",
    "hmac": "part of secrets",
    "sysconfig": "where the standard library is, for readers of old pickles",
}
# Our packages that are imported lazily.
LATE = (
    "contrib",
    "formats.checkpoints",
    "gluon.contrib",
    "gluon.model_zoo",
    "interop",
    "model",
    "module",
    "rnn",
    "test_utils",
    "visualization.costs",
    "visualization.live_curves",
    "visualization.tracking",
)
# Imported by the modules above in other versions of Python, torch or NumPy.
PARTS = ("_", "cython_runtime", "numpy.", "multiprocessing.", "html.", "importlib", "decimal")
PARTS += ("ipaddress",)  # of urllib, in some versions of Python

SCRIPT = """
import gc, json, sys
import torch
def settings():
    return [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), torch.get_num_threads()]
before, first = set(sys.modules), settings()
import mxnet
print(json.dumps([sorted(set(sys.modules) - before), first, settings()]))
"""


COLLECTION = """
import gc, weakref
from mxnet._process.memory import pause_collection

at_start = gc.get_freeze_count()  # Python 3.12 freezes objects of its own
try:
    with pause_collection():
        assert not gc.isenabled()
        raise KeyError
except KeyError:
    assert gc.isenabled() and gc.get_freeze_count() == at_start
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
assert cycle() is not None or at_start  # it is old
gc.collect()
assert cycle() is None
gc.freeze()  # as programs do before they fork
frozen = gc.get_freeze_count()
with pause_collection():
    pass
assert gc.get_freeze_count() == frozen > 0
"""


@pytest.fixture(scope="module")
def imported():
    """Modules that the import adds, and settings of the process before and after it."""
    command = [sys.executable, "-c", SCRIPT + COLLECTION]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    return json.loads(result.stdout)


def test_import_loads_only_needed_modules_and_restores_gc(imported):
    modules, (_, _, frozen_before, _), (is_enabled, _, frozen, _) = imported
    extra = [
        name
        for name in modules
        if not any(name == reason or name.startswith(f"{reason}.") for reason in REASONS)
        and not name.startswith(PARTS)
    ]
    assert not extra, f"import mxnet loads {extra}: import them where they are used, or say why not"
    early = {f"mxnet.{name}" for name in LATE} & set(modules)
    assert not early, f"import mxnet loads {early}: import them where they are used"
    assert is_enabled and frozen == frozen_before


def test_import_does_not_change_process_settings(imported):
    _, before, after = imported
    assert before == after


SHOWN = """
import importlib, sys
import mxnet

for name in sys.argv[1:]:
    parent, _, short = f"mxnet.{name}".rpartition(".")
    package = sys.modules[parent]
    assert short in dir(package) and short in package.__all__, name
    shown = getattr(package, short)
    assert shown is importlib.import_module(f"mxnet.{name}") is vars(package)[short], name
star = {}
exec("from mxnet import *", star)
assert star["mod"] is star["module"] is mxnet.module and star["gluon"] is mxnet.gluon
"""


def test_lazy_packages_are_listed(tmp_path):
    others = ("formats", "interop", "visualization")  # these have shorter names
    names = [name for name in LATE if not name.startswith(others)]
    names += ["checkpoint", "convert", "onnx", "serving", "tracking"]
    done = run_program("-c", SHOWN, *names, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


MAKES = """
import sys, types
import mxnet as mx

def made():
    return sum(isinstance(f, types.FunctionType) for f in get(mx.nd).values())

assert {"onnxruntime", "openvino", "onednn_graph"} <= set(mx.runtime.backends.backend_names())
assert "mxnet.interop" not in sys.modules
get = vars(types.ModuleType)["__dict__"].__get__
few, names = made(), dir(mx.nd)
assert made() == few, "dir makes no functions"
assert mx.nd.dot is mx.nd.op.dot is get(mx.nd)["dot"]
every = vars(mx.nd)
assert every is mx.nd.__dict__ is get(mx.nd) and set(every) == set(names) and made() > few + 200
assert mx.np.add is mx.nd.np.add is vars(mx.np)["add"]
assert set(vars(mx.sym.np)) == set(dir(mx.sym.np))
"""


def test_operator_functions_are_created_on_access_or_by_vars(tmp_path):
    done = run_program("-c", MAKES, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_unknown_names_raise_attribute_error():
    for module in (mx, mx.nd, mx.sym, mx.np, mx.npx, mx.np.linalg, mx.gluon, mx.viz):
        with pytest.raises(AttributeError, match="no attribute 'nothing_of_the_kind'"):
            module.nothing_of_the_kind  # noqa: B018


def test_operator_modules_keep_their_lazy_names() -> None:
    assert mx.npx.image.imread is mx.image.imread
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = mx.npx.image.no_such_name


TRAINS = """
import sys
import numpy as np
import mxnet as mx

net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2), name="softmax")
data = mx.io.NDArrayIter(np.zeros((40, 3)), np.zeros(40), 4)
module = mx.mod.Module(net)
module.fit(data, num_epoch=1)
(executor,) = module._exec_group.execs
assert executor._function.repetition._step is not None, "a step was captured"
assert "torch._dynamo" not in sys.modules
"""


def test_training_does_not_import_torch_dynamo(tmp_path):
    done = run_program("-c", TRAINS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


FAILING_IMPORT = """
import gc, sys
sys.modules["torch"] = None
try:
    import mxnet
except ImportError:
    assert gc.isenabled()
else:
    raise AssertionError("it was imported without torch")
"""


def test_a_failed_import_leaves_garbage_collection_enabled():
    ran = subprocess.run(
        [sys.executable, "-c", FAILING_IMPORT], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
