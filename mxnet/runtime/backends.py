"""Engines that run graphs instead of our own kernels: ``net.hybridize(backend=...)``.

An engine is a function that prepares a graph for given inputs. Its results are compared with our
own before they are used. `inductor` (torch.compile), `onnxruntime` and `openvino` are registered
here, `onednn_graph` in its own module. Users register others with `register_backend`. `auto`
selects the fastest engine by measurement.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._process import caches, env
from ..error import MXNetError, did_you_mean
from ..graph.graph import Graph
from ..graph.typed_graph import TypedGraph
from ..ops.fused.prepared_values import Unchanged
from ..ops.interpreters import Interpreter
from ..symbol.symbol import BUILT_IN_BACKENDS
from .program import Program

__all__ = ["Backend", "BackendProgram", "backend_names", "register_backend"]
TOLERANCE = 1e-3  # relative to the largest value
MAX_PREPARED = 8
TRIAL_TURNS, TRIAL_RUNS = 3, 2  # of ``backend="auto"``

Run = Callable[[Sequence[Tensor]], Sequence[Tensor]]
Prepare = Callable[[TypedGraph, Sequence[Tensor], Sequence[int]], Run]


class Backend(NamedTuple):
    """An engine.

    ``prepare(graph, feed, data)`` takes a graph, one tensor for each of its variables and the
    positions of variables that change between calls. It returns ``run(feed) -> outputs``. If
    `keeps_parameters`, that function holds copies of the other tensors, so the graph is prepared
    again when they change. ``backend="auto"`` only tries engines with `prepares_quickly`.
    """

    name: str
    prepare: Prepare
    keeps_parameters: bool = True
    prepares_quickly: bool = False


_backends: dict[str, Backend] = {}


def register_backend(
    name: str, prepare: Prepare, *, keeps_parameters: bool = True, prepares_quickly: bool = False
) -> None:
    """Register an engine for ``hybridize(backend=name)``; see `Backend`.

    The engine must not write into its inputs.

    Parameters
    ----------
    name
        Name of the backend.
    prepare
        Function that prepares a graph and returns a function that runs it.
    keeps_parameters
        Whether it copies parameters, so that it must prepare again when they change.
    prepares_quickly
        Whether ``backend="auto"`` tries it.

    >>> mx.executor.register_backend("my engine", lambda *args: None)  # doctest: +SKIP
    """
    _backends[name] = Backend(name, prepare, keeps_parameters, prepares_quickly)


def backend_names() -> list[str]:
    """Return the registered names."""
    return sorted(_backends)


def find_backend(name: str) -> Backend:
    """Return a registered engine."""
    if name not in _backends:
        hint = did_you_mean(name, _backends)
        raise MXNetError(
            f"There is no backend {name!r}. Known are {', '.join(backend_names())}. {hint}".rstrip()
        )
    return _backends[name]


def chosen_backend(graph: Graph) -> Backend | None:
    """Return the engine that runs a bound graph: the symbol's, or ``MXNET_SUBGRAPH_BACKEND``."""
    name = graph.backend or env.get("MXNET_SUBGRAPH_BACKEND")
    if name in ("", "NONE", *BUILT_IN_BACKENDS):
        return None
    return find_backend(name)


class BackendProgram:
    """Runs a graph by an engine, prepared for each shape of data and checked on its first run.

    `data` are the positions of variables that change between calls. If None, these are the
    variables that have changed so far.
    """

    def __init__(self, backend: Backend, own: Program, data: Sequence[int] | None) -> None:
        self.backend, self.own = backend, own
        self.source, self.graph, self.mode = own.source, own.graph, own.mode
        self.nodes, self.variables = own.nodes, own.variables
        self._discovers = data is None
        self._set_data(data or ())
        self._prepared: dict[tuple, Run] = {}
        self._sources: list[Unchanged] | None = None  # the parameters of the prepared functions
        positions = {node: i for i, node in enumerate(own.variables)}
        heads = enumerate(own.source.heads)
        self._passed = [(i, positions[e.node]) for i, e in heads if e.node.op is None]

    def _set_data(self, data: Sequence[int]) -> None:
        self.data = tuple(data)
        self._parameters = [i for i in range(len(self.own.variables)) if i not in set(data)]

    def run(self, feed: Sequence[Any], *watchers: Interpreter) -> list[Any]:
        """Return the heads' values for one tensor per variable.

        Watchers see no results of engines.
        """
        if watchers or (self.backend.keeps_parameters and not self._can_keep_parameters(feed)):
            return self.own.run(feed, *watchers)
        key = tuple((feed[i].shape, feed[i].dtype) for i in self.data)
        run = self._prepared.get(key)
        if run is None:
            return self._prepare(key, feed)
        heads = list(run(feed))
        for i, position in self._passed:  # an input that is an output is the same array
            heads[i] = feed[position]
        return heads

    def _can_keep_parameters(self, feed: Sequence[Tensor]) -> bool:
        """Return whether an engine may hold copies of the parameters; drop outdated ones."""
        changed: list[int] = []
        if self._sources is not None:
            pairs = zip(self._parameters, self._sources, strict=True)
            changed = [i for i, source in pairs if not source.holds_for((feed[i],))]
            if not changed:
                return True
        self._prepared = {}
        exposed = [i for i in self._parameters if Unchanged.of((feed[i],)) is None]
        if self._discovers:
            self._set_data(sorted({*self.data, *changed, *exposed}))
            exposed = []
        self._sources = None if exposed else [Unchanged((feed[i],)) for i in self._parameters]
        return not exposed

    def _prepare(self, key: tuple, feed: Sequence[Tensor]) -> list[Tensor]:
        """Prepare the engine, compare its result with ours, and return ours."""
        prepared = self._prepared  # another thread may replace it if parameters change
        expected = self.own.run(feed)
        run = self.backend.prepare(self.own.source, feed, self.data)
        _check(self.backend.name, self.own.source, expected, run(feed))
        caches.store(prepared, key, run, MAX_PREPARED)
        return expected


def _check(
    name: str, graph: TypedGraph, expected: Sequence[Tensor], outputs: Sequence[Tensor]
) -> None:
    for label, first, second in zip(graph.output_names(), expected, outputs, strict=True):
        if first.shape != second.shape or first.dtype is not second.dtype:
            raise MXNetError(
                f"Backend {name!r} makes {label} of shape {tuple(second.shape)} and type "
                f"{second.dtype}; our own result has {tuple(first.shape)} and {first.dtype}."
            )
        if not first.numel():
            continue
        scale = float(first.double().abs().nan_to_num().max())
        difference = float((first.double() - second.double()).abs().nan_to_num().max())
        if difference > TOLERANCE * (1.0 + scale):
            raise MXNetError(
                f"Backend {name!r} computes {label} with a difference of {difference:.3g} from our "
                f"own result (largest value {scale:.3g}). Use another backend for this network."
            )


def prepare_inductor(graph: TypedGraph, feed: Sequence[Tensor], data: Sequence[int]) -> Run:
    """Compile the plain kernels of a graph with ``torch.compile``."""
    program = Program(graph, graph.mode, feed[0].device, optimized=False)
    return torch.compile(program.function, dynamic=False)


def prepare_fastest(graph: TypedGraph, feed: Sequence[Tensor], data: Sequence[int]) -> Run:
    """Measure our own kernels and the engines that prepare quickly; return the fastest."""
    runs: list[Run] = [Program(graph, graph.mode, feed[0].device, graph.inputs).run]
    expected = runs[0](feed)
    runs[0](feed)  # the second run compiles the steps
    for backend in _backends.values():
        if not backend.prepares_quickly:
            continue
        try:
            run = backend.prepare(graph, feed, data)
            _check(backend.name, graph, expected, run(feed))
        except (MXNetError, RuntimeError, ValueError):  # not installed, or not for this graph
            continue
        runs.append(run)
    return runs[_index_of_fastest(runs, feed)]


def _index_of_fastest(runs: Sequence[Run], feed: Sequence[Tensor]) -> int:
    """Return the index of the fastest function.

    They are timed in turns, so that other load affects all equally. The first run of
    a turn is not timed: threads of the previous engine may still be spinning.
    """
    best = [math.inf] * len(runs)
    for _ in range(TRIAL_TURNS):
        for i, run in enumerate(runs):
            run(feed)
            for _ in range(TRIAL_RUNS):
                start = time.perf_counter()
                run(feed)
                best[i] = min(best[i], time.perf_counter() - start)
    return best.index(min(best))


def _prepare_by_onnx(
    name: str, graph: TypedGraph, feed: Sequence[Tensor], data: Sequence[int]
) -> Run:
    """Export the graph to ONNX Runtime or OpenVINO."""
    from ..interop.onnx import backend  # lazy import: it imports a lot

    return getattr(backend, f"prepare_{name}")(graph, feed, data)


for _name in ("onnxruntime", "openvino"):
    register_backend(_name, partial(_prepare_by_onnx, _name), prepares_quickly=True)
register_backend("inductor", prepare_inductor, keeps_parameters=False)
register_backend("auto", prepare_fastest)
