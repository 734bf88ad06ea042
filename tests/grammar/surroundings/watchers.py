"""Monitors, hooks, casts, the profiler and checks around an operator."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import mxnet as mx
from mxnet.contrib.amp.amp import mixed_precision
from tests.grammar.surroundings import DEFAULT_ROUNDINGS, in_every_form, surrounding
from tests.grammar.surroundings.blocks import Outer
from tests.grammar.surroundings.calls import (
    HYBRIDIZED,
    Call,
    CallBlock,
    Form,
    Results,
    bind,
    run_block,
    step,
)

# bfloat16 products crash on some processors unless oneDNN is told what to use, so they are tested
# in a process of their own, which sets this variable.
HALF = os.environ.get("MXNEXT_TEST_HALF", "float16")
TOLERANCES = {"float16": 32 * 2**-10, "bfloat16": 16 * 2**-7}
HALF_ROUNDINGS = TOLERANCES[HALF] / float(np.finfo(np.float32).eps)


class Watcher:
    """Something that is active while a block and an executor run."""

    roundings = float(DEFAULT_ROUNDINGS)

    def scope(self) -> contextlib.AbstractContextManager:
        """Return a scope around the creation and the run of both."""
        return contextlib.nullcontext()

    def watch_block(self, block: Outer) -> None:
        """Watch a hybridized block."""

    def watch_executor(self, executor: mx.executor.Executor) -> None:
        """Watch an executor."""


def _read(*values: Any) -> None:
    """Read the arrays that a hook or a monitor is shown."""
    for value in values:
        if isinstance(value, mx.nd.NDArray):
            value.asnumpy()


class Monitor(Watcher):
    def watch_executor(self, executor):
        monitor = mx.mon.Monitor(1, monitor_all=True)
        monitor.install(executor)
        monitor.tic()


class ForwardHook(Watcher):
    def watch_block(self, block):
        block.register_forward_hook(lambda block, inputs, outputs: _read(*inputs))
        block.register_forward_pre_hook(lambda block, inputs: _read(*inputs))


class OperatorHook(Watcher):
    def watch_block(self, block):
        block.register_op_hook(_read, monitor_all=True)


class Casts(Watcher):
    roundings = HALF_ROUNDINGS

    def scope(self):
        return half_precision()


@functools.cache
def half_precision() -> contextlib.AbstractContextManager:
    """Return the scope that `amp.init` enters permanently."""
    return mixed_precision(HALF)


WATCHERS = {
    "monitor": Monitor(),
    "forward hook": ForwardHook(),
    "operator hook": OperatorHook(),
    "casts": Casts(),
}


def _watched(watchers: tuple[Watcher, ...], call: Call) -> Results:
    with contextlib.ExitStack() as scopes:
        for watcher in watchers:
            scopes.enter_context(watcher.scope())
        block = Outer(CallBlock(call))
        block.hybridize()
        for watcher in watchers:
            watcher.watch_block(block)
        results = run_block(call, block)
        executor = bind(call, call.symbol(after=lambda F, y: F.identity(y)))
        for watcher in watchers:
            watcher.watch_executor(executor)
        by_executor = step(call, executor)
    by_executor.compare(results, max(w.roundings for w in watchers))
    return results


def _may_be_cast(call: Call) -> bool:
    """Return whether 16-bit results are comparable: eager casts start only from float32."""
    reals = (a.dtype for a in call.row.arrays() if a.dtype.kind == "f")
    return not call.is_random and all(dtype == np.float32 for dtype in reals)


def _may_be_watched(watchers: tuple[Watcher, ...], call: Call) -> bool:
    casts = any(isinstance(w, Casts) for w in watchers)
    return HYBRIDIZED.applies(call) and (_may_be_cast(call) or not casts)


for _names in (*itertools.combinations(WATCHERS, 1), *itertools.combinations(WATCHERS, 2)):
    _watchers = tuple(WATCHERS[n] for n in _names)
    surrounding(
        functools.partial(_watched, _watchers),
        name=f"watched by {' and '.join(_names)}",
        applies=functools.partial(_may_be_watched, _watchers),
        roundings=max(w.roundings for w in _watchers),
    )


@in_every_form(roundings=HALF_ROUNDINGS, applies=_may_be_cast)
def mixed_precision_casts(form: Form, call: Call) -> Results:
    with half_precision():
        return form(call)


@in_every_form
def profiled(form: Form, call: Call) -> Results:
    with tempfile.TemporaryDirectory() as folder:
        mx.profiler.set_config(filename=str(Path(folder) / "profile.json"), profile_all=True)
        mx.profiler.set_state("run")
        try:
            return form(call)
        finally:
            mx.profiler.set_state("stop")
            mx.profiler.dumps(reset=True)


def _is_finite(call: Call) -> bool:
    values = [*call.expected.outputs, *call.expected.gradients.values(), *call.row.arrays()]
    return all(np.isfinite(v).all() for v in values if v.dtype.kind == "f")


@in_every_form(applies=_is_finite)
def anomaly_detection(form: Form, call: Call) -> Results:
    with mx.autograd.detect_anomaly():
        return form(call)
