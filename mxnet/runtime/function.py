"""`GraphFunction`: a graph as a function of tensors, prepared once for each mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from .._process import caches
from .._process.memory import return_gaps
from ..graph.graph import Graph
from ..graph.passes.simplify import open_sources
from ..graph.typed_graph import Inputs, Mode
from ..ops.interpreters import Interpreter
from .array_kernels import array_kernels, dtype_of
from .backends import Backend, BackendProgram
from .program import Program

if TYPE_CHECKING:
    from ..graph.node import Node
    from .gradients import Gradient

PREPARING = caches.ForkSafeLock()  # one thread at a time prepares programs
MAX_PROGRAMS = 128  # per graph: some need one for each shape; the oldest is evicted

Value = Any  # a tensor, or an array (sparse, or an integer array with a gradient)


class Request(NamedTuple):
    """The mode, device and kinds of inputs of a run; the key of the program cache.

    Parameters
    ----------
    training : whether operators see training mode.
    differentiable : whether gradients may be requested (possible in inference, too).
    watched : whether every node is kept, so that a watcher sees its results.
    device : the default device; with a placement, that of nodes without their own.
    arrays : the positions of variables that are fed with arrays.
    """

    training: bool
    differentiable: bool
    watched: bool
    device: torch.device
    arrays: tuple[int, ...] = ()


new_request = partial(tuple.__new__, Request)  # from a tuple of its fields, without a Python frame


class GraphFunction:
    """A graph as a function of one value for each of its variables.

    Parameters
    ----------
    graph : the graph.
    placement : the device of each node, if there are several.
    storage : storage types of the values, where some are not dense.
    records : the gradient records of variables; kernels make row_sparse gradients for some.
    backend : the engine that runs inference instead of our kernels.
    data : positions of the variables that change between calls, for the engine.
    recompute : see `Program`.
    keeps_layout : see `Program`.
    copies_heads : whether outputs have memory of their own, so that users may write into them.
    is_inside : whether the graph belongs to a node of another one; all its values are tensors.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        placement: Mapping[Node, torch.device] | None = None,
        storage: Mapping[Node, Sequence[str]] | None = None,
        records: Mapping[Node, Gradient] | None = None,
        backend: Backend | None = None,
        data: Sequence[int] | None = None,
        recompute: int | bool | None = None,
        keeps_layout: bool = False,
        copies_heads: bool = False,
        is_inside: bool = False,
    ) -> None:
        self.graph = graph
        self.programs: dict[tuple, Program | BackendProgram] = {}
        self._placement, self._storage, self._records = placement, storage or {}, records
        self._backend, self._data = backend, data
        self._recompute, self._keeps_layout, self._is_inside = recompute, keeps_layout, is_inside
        self._has_open_sources = bool(open_sources(graph))
        self._kernels: dict[Node, Callable] = {}  # of operators with memory: all programs share it
        heads = [e[:2] for e in graph.heads]
        self._copied = [
            i for i, (node, _) in enumerate(heads) if node.op is None or heads[i] in heads[:i]
        ]
        self._copied = self._copied if copies_heads else []

    def program(self, feed: Sequence[Value], request: Request) -> Program | BackendProgram:
        """Return the program for these inputs. Prepare it if needed."""
        key: tuple = request
        if self._has_open_sources:
            key += tuple(value.shape for value in feed)
        with PREPARING:
            program = self.programs.get(key)
            if program is None:
                program = self._prepare(feed, request)
                if len(self.programs) >= MAX_PROGRAMS:
                    del self.programs[next(iter(self.programs))]
                self.programs[key] = program
                return_gaps()
        return program

    def run(
        self, feed: Sequence[Value], request: Request, watcher: Interpreter | None = None
    ) -> list[Value]:
        """Return the heads for one value per variable."""
        # Keys of programs that are specialized for shapes include the shapes.
        program = self.programs.get(request) or self.program(feed, request)
        heads = program.run(feed) if watcher is None else program.run(feed, watcher)
        for i in self._copied:  # inputs, and outputs that occur twice
            heads[i] = heads[i].clone() if type(heads[i]) is Tensor else heads[i].copy()
        return heads

    def _prepare(self, feed: Sequence[Value], request: Request) -> Program | BackendProgram:
        graph, placement = self.graph, self._placement
        names = [node.name for node in graph.variables]
        inputs = Inputs(
            {name: tuple(value.shape) for name, value in zip(names, feed, strict=True)},
            {name: dtype_of(value) for name, value in zip(names, feed, strict=True)},
            self._storage,
            (lambda node: request.device) if placement is None else placement.get,
        )
        mode = Mode(request.training, request.differentiable)
        arrays = [graph.variables[i] for i in request.arrays]
        wrap = None
        if not self._is_inside:
            wrap = array_kernels(graph, arrays, mode, self._records or {})
        program = Program(
            graph,
            mode,
            request.device,
            inputs,
            devices=placement,
            kernels=self._kernels,
            wrap=wrap,
            optimized=not request.watched,
            recompute=self._recompute,
            keeps_layout=self._keeps_layout,
        )
        is_inference = not (request.differentiable or request.watched or request.arrays)
        if self._backend is None or not is_inference or placement is not None:
            return program
        return BackendProgram(self._backend, program, self._data)
