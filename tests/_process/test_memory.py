"""Memory statistics, and returning freed memory to the operating system."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.ops.fused import convolution
from mxnet.runtime import function


def bytes_on_cpu():
    lines = mx.memory_summary().splitlines()
    (line,) = (x for x in lines if x.startswith("cpu "))
    return int(line.split()[-1].replace(",", ""))


def test_memory_summary_counts_live_arrays():
    before = bytes_on_cpu()
    kept = mx.nd.zeros((1 << 20,))
    view = kept[10:]
    assert bytes_on_cpu() - before >= 4 << 20
    assert bytes_on_cpu() - before < 8 << 20  # a view shares memory
    del kept, view
    assert bytes_on_cpu() - before < 4 << 20


def test_empty_cache_of_cpu_and_missing_gpu():
    mx.cpu().empty_cache()
    if not mx.context.num_gpus():
        with pytest.raises(MXNetError, match="no such GPU"):
            mx.gpu(0).empty_cache()


def test_gradients_are_allocated_on_first_use():
    layer = mx.gluon.nn.Dense(4096, in_units=4096)
    before = mx._process.memory._process_memory()[0]
    layer.initialize()
    weight = 4096 * 4096 * 4
    if before:  # on Linux
        assert mx._process.memory._process_memory()[0] - before < 2.8 * weight
    assert layer.weight.grad().asnumpy().any() == 0
    with mx.autograd.record():
        loss = layer(mx.nd.ones((1, 4096))).sum()
    loss.backward()
    assert layer.weight.grad().asnumpy().min() == 1


def test_simple_bind_of_huge_shapes_raises():
    with pytest.raises(MXNetError, match="memory"):
        mx.sym.Variable("x").simple_bind(mx.cpu(), x=(1 << 45, 1 << 10))


@pytest.mark.parametrize("size", [16, 1536])
def test_gradients_keep_their_memory_between_steps(size):
    layer = mx.gluon.nn.Dense(size, in_units=size)
    later = mx.gluon.nn.Dense(128)  # its gradients come first
    layer.initialize()
    later.initialize()
    trainer = mx.gluon.Trainer([*layer.params.values(), *later.params.values()], "sgd")
    places = set()
    for _ in range(3):
        with mx.autograd.record():
            loss = later(layer(mx.nd.ones((2, size)))).sum()
        loss.backward()
        trainer.step(1)
        places.add(layer.weight.grad()._data.data_ptr())
    assert len(places) == 1
    assert layer.weight.grad().asnumpy().any()


@pytest.mark.skipif(not mx._process.memory.KEEPS_FREED_MEMORY, reason="another allocator")
def test_freed_memory_is_returned_between_steps():
    returning = mx._process.memory.GapReturning(least=1 << 20, pause=3600)
    arrays = [mx.nd.ones((1 << 18,)) for _ in range(200)]
    for array in arrays:
        array.wait_to_read()
    kept = arrays[::50]
    del arrays, array
    before = mx._process.memory._process_memory()[0]
    returning.step()
    after = mx._process.memory._process_memory()[0]
    assert before - after > 100 << 20
    assert kept[2].asnumpy().min() == 1

    arrays = [mx.nd.ones((1 << 18,)) for _ in range(200)]
    del arrays
    returning.step()  # not again within an hour
    assert mx._process.memory._process_memory()[0] - after > 100 << 20


STATE_OF_A_PROCESS = """
import gc, locale, logging, os, random, signal, sys, threading, warnings
import numpy, torch

def state():
    return {
        "garbage collection": (gc.isenabled(), gc.get_freeze_count(), gc.get_threshold()),
        "environment": dict(os.environ),
        "threads of torch": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "modes of torch": (torch.get_default_dtype(), torch.is_grad_enabled()),
        "threads": threading.active_count(),
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "warnings": list(warnings.filters),
        "locale": locale.setlocale(locale.LC_ALL),
        "logging": (logging.root.level, list(logging.root.handlers)),
        "recursion": sys.getrecursionlimit(),
        "random": random.getstate(),
        "numpy.random": repr(numpy.random.get_state(legacy=False)),
        "numpy": (numpy.geterr(), repr(numpy.get_printoptions())),
        "torch.random": torch.get_rng_state().tolist(),
    }

numpy.set_printoptions(threshold=sys.maxsize)
"""
IMPORTS = """
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name == "mxnet.gluon":
            raise ImportError(name)

def try_import(collects, fails):
    if not collects:
        gc.disable()
    if fails:
        sys.meta_path.insert(0, Refusing())
    before = state()
    outcome = "imported"
    try:
        import mxnet
    except ImportError as error:
        outcome = str(error)
    after = state()
    changed = [name for name in before if before[name] != after[name]]
    print(collects, fails, outcome, changed, flush=True)

ways = [(way[0] == "1", way[1] == "1") for way in sys.argv[1:]]
for way in ways:
    # Each has the torch of this process, and an import of its own.
    child = os.fork() if len(ways) > 1 else 0
    if child == 0:
        try_import(*way)
        os._exit(0)
    os.waitpid(child, 0)
"""
WAYS = {
    "10": "True False imported []",
    "11": "True True mxnet.gluon []",
    "00": "False False imported []",
    "01": "False True mxnet.gluon []",
}


@pytest.mark.parametrize("ways", [list(WAYS)] if hasattr(os, "fork") else [[way] for way in WAYS])
def test_import_does_not_change_process_state(ways):
    run = subprocess.run(
        [sys.executable, "-c", STATE_OF_A_PROCESS + IMPORTS, *ways],
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert run.stdout.splitlines() == [WAYS[way] for way in ways], run.stderr


def test_import_does_not_change_environment_variables():
    program = "import os; before = dict(os.environ); import mxnet; print(before == os.environ)"
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert run.stdout.strip() == "True"


def test_freed_memory_is_returned_after_compiling_a_new_shape(monkeypatch):
    calls = []
    for module in (function, convolution):
        monkeypatch.setattr(module, "return_gaps", lambda: calls.append(1))
    net = mx.gluon.nn.Conv2D(4, 3, in_channels=2)
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 2, 8, 8)))
    assert len(calls) == 2, "a program and a shape"
    net(mx.nd.ones((1, 2, 8, 8)))
    assert len(calls) == 2
    net(mx.nd.ones((1, 2, 9, 9)))
    assert len(calls) == 3
