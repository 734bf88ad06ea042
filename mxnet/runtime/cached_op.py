"""`CachedOp`: a graph as one callable operator, prepared once and run on arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from ..caches import ForkSafeLock
from ..context import Context, torch_device
from ..error import MXNetError
from ..graph.passes.simplify import open_sources
from ..graph.typed import Inputs, Mode
from ..ndarray import NDArray
from ..ops.interpreters import Interpreter
from .apply import assign, stored_context
from .array import alias, is_sparse, operand_in, plain, wrap, written_in
from .array_kernels import apply_to_arrays, integer_kernels, makes_sparse, tensor_of
from .backends import BackendProgram, find_backend
from .compiled import Compiled
from .head_gradients import INLINE_LIMIT, has_partial_outputs, join_gradients
from .monitoring import Callback, OpHook
from .program import Program, Value
from .recording import (
    Session,
    Step,
    StepKind,
    graph_tensor,
    is_stand_in,
    reachable,
    record_step,
    state,
)

if TYPE_CHECKING:
    from ..graph.node import Node
    from ..symbol import Symbol

PREPARING = ForkSafeLock()  # one thread at a time makes programs
MAX_PROGRAMS = 128  # of one graph: some need one for each shape; the oldest goes first


class CachedOp:
    """A symbol that is called with arrays, as an operator is.

    Parameters
    ----------
    sym
        What to compute.
    flags
        Pairs of option and value, such as ``static_alloc``; memory is planned the same way whatever
        they say.
    thread_safe
        Accepted for compatibility, without effect.

    >>> x = mx.sym.Variable('x')
    >>> double = mx.nd.CachedOp(x + x)
    >>> double(mx.nd.array([1, 2])).asnumpy()
    array([2., 4.], dtype=float32)
    """

    __slots__ = (
        "_flags",
        "_hook",
        "_joins_gradients",
        "_kernels",
        "_makes_sparse",
        "_passed",
        "_programs",
        "_run",
        "_sources",
        "_states",
        "_sym",
    )

    def __init__(
        self,
        sym: Symbol,
        flags: Iterable[tuple[str, Any]] = (),
        thread_safe: bool = False,
    ) -> None:
        self._sym = sym
        self._flags = tuple(flags)
        self._programs: dict[tuple, Program | BackendProgram] = {}
        self._kernels: dict = {}
        self._sources = open_sources(sym._graph)
        variables, states = sym._graph.variables, set(sym._graph.auxiliary)
        self._states = {i for i, node in enumerate(variables) if node in states}
        self._passed = [
            (i, variables.index(e.node))
            for i, e in enumerate(sym._graph.heads)
            if e.node.op is None
        ]
        limit = dict(self._flags).get("inline_limit", INLINE_LIMIT)
        self._joins_gradients = has_partial_outputs(sym._graph, int(limit))
        self._makes_sparse = makes_sparse(sym._graph)
        self._hook: OpHook | None = None
        self._run = Step(StepKind.GRAPH, sym._graph)

    def __call__(
        self, *args: NDArray, out: Any = None, default_ctx: Context | None = None
    ) -> NDArray | Sequence[NDArray]:
        """Run on one array for each input, in the order of ``sym.list_inputs()``."""
        variables = self._sym._graph.variables
        if len(args) != len(variables):
            names = ", ".join(n.name for n in variables)
            raise MXNetError(
                f"CachedOp expects {len(variables)} inputs ({names}), but got {len(args)}."
            )
        heads = self.run(args, default_ctx)
        if out is not None:
            targets = out if isinstance(out, list | tuple) else [out]
            for target, head in zip(targets, heads, strict=True):
                assign("CachedOp", target, _tensor(head))
                if target._member is not None and head._member is not None:
                    target._member.node = head._member.node
            return out
        return heads[0] if len(heads) == 1 else heads

    def run(self, args: Sequence[NDArray], default_ctx: Context | None = None) -> list[NDArray]:
        """Return the outputs as a list, for inputs that are known to be complete."""
        integers: tuple[int, ...] = ()  # inputs that are integers with gradients
        session = state.session
        feed: list[Tensor | NDArray]
        if self._makes_sparse:
            return self._run_by_operators(args)
        if any(map(is_sparse, args)):
            return self._run_by_operators(args)
        if session is None:
            feed = [operand_in(None, a) if a._data is None else a._data for a in args]
        elif any(map(is_stand_in, args)):
            feed = [a if is_stand_in(a) else operand_in(session, a) for a in args]
            integers = tuple(i for i, t in enumerate(feed) if type(t) is not Tensor)
        else:
            feed = self._operands(session, args)
        if feed:
            first = feed[0]
            device = (first if type(first) is Tensor else tensor_of(first)).device
            ctx = args[0]._ctx
        else:
            device = torch_device(default_ctx or Context.default_ctx)
            ctx = stored_context(default_ctx)
        program = self._program(device, feed, integers)
        heads = program.run(feed) if self._hook is None else program.run(feed, self._hook)
        if session is not None and self._joins_gradients:
            heads = join_gradients(heads)
        cls = type(args[0]) if args else NDArray
        outputs = [wrap(cls, t, ctx) if isinstance(t, Tensor) else t._as(cls) for t in heads]
        if session is not None:
            record_step(outputs, self._run, args)
            if program.hides_inputs is None:
                program.hides_inputs = _hides_inputs(heads, feed)
            if program.hides_inputs:
                session.hides = True
        for head, variable in self._passed:  # an input that is an output stays itself
            if args[variable].stype == "default" and not (session and self._joins_gradients):
                outputs[head] = alias(args[variable])
        return outputs

    def _run_by_operators(self, args: Sequence[NDArray]) -> list[NDArray]:
        """Return the outputs for inputs of which some are sparse, one operator after another."""
        graph = self._sym._graph
        values: dict[Node, Sequence[NDArray]] = {
            variable: [array] for variable, array in zip(graph.variables, args, strict=True)
        }
        for node in graph.nodes:
            if node.op is None:
                continue
            if node.subgraphs:
                raise MXNetError(
                    f"Operator {node.op.name} ({node.name!r}) runs a graph, which takes no sparse "
                    "inputs. Convert them: x.tostype('default')."
                )
            inputs: Sequence[NDArray | None] = [values[e.node][e.index] for e in node.inputs]
            if node.op.variadic is None:
                by_name = dict(zip(node.input_names, inputs, strict=True))
                inputs = [by_name.get(i.name) for i in node.op.inputs]
            result = apply_to_arrays(node.op, inputs, node.attrs)
            values[node] = [result] if isinstance(result, NDArray) else result
        outputs = [values[e.node][e.index] for e in graph.heads]
        for head, variable in self._passed:
            array = args[variable]
            outputs[head] = alias(array) if array.stype == "default" else array.copy()
        return outputs

    def _operands(self, session: Session, args: Sequence[NDArray]) -> list[Tensor | NDArray]:
        """Return the tensors of inputs while recording; auxiliary states are written."""
        states = self._states
        if not states:
            return [operand_in(session, a) for a in args]
        return [
            written_in(session, a) if i in states else operand_in(session, a)
            for i, a in enumerate(args)
        ]

    def _program(
        self, device: torch.device, feed: Sequence[Tensor | NDArray], integers: tuple[int, ...] = ()
    ) -> Program | BackendProgram:
        key = (state.training, device, integers or self._demands(feed))
        if self._sources:
            key += tuple(t.shape for t in feed)
        program = self._programs.get(key)
        if program is None:
            with PREPARING:
                program = self._programs.get(key)
                if program is None:
                    program = self._prepare(device, feed, integers)
                    if len(self._programs) >= MAX_PROGRAMS:
                        del self._programs[next(iter(self._programs))]
                    self._programs[key] = program
        return program

    def _demands(self, feed: Sequence[Tensor | NDArray]) -> str:
        """Return what is asked besides results: a look at every node, or gradients."""
        if self._hook is not None:
            return "watched"
        if state.training or not state.recording:
            return ""
        return "tracked" if any(isinstance(t, Tensor) and t.requires_grad for t in feed) else ""

    def _prepare(
        self, device: torch.device, feed: Sequence[Tensor | NDArray], integers: tuple[int, ...]
    ) -> Program | BackendProgram:
        graph, training = self._sym._graph, state.training
        demands = "tracked" if integers else self._demands(feed)
        names = [n.name for n in graph.variables]
        inputs = Inputs(
            {n: tuple(t.shape) for n, t in zip(names, feed, strict=True)},
            {n: tensor_of(t).dtype for n, t in zip(names, feed, strict=True)},
            device_of=lambda node: device,
        )
        flags = dict(self._flags)
        differentiable = training or demands == "tracked"
        program = Prepared(
            graph,
            Mode(training, differentiable),
            device,
            inputs,
            kernels=self._kernels,
            wrap=integer_kernels(graph, [graph.variables[i] for i in integers], from_heads=True)
            if differentiable
            else None,
            optimized=demands != "watched",
            recompute=flags.get("recompute"),
        )
        if flags.get("backend") is None or training or demands:
            return program
        return BackendProgram(find_backend(flags["backend"]), program, flags["data_indices"])

    def compiled(self, args: Sequence[NDArray], training: bool = False) -> Compiled:
        """Return a report of the graph that runs for these inputs."""
        feed = [plain(a) for a in args]
        device = feed[0].device if feed else torch_device(Context.default_ctx)
        before, state.training = state.training, training
        try:
            return Compiled(self._program(device, feed))
        finally:
            state.training = before

    # -- looking inside -----------------------------------------------------------------------

    def _register_op_hook(self, callback: Callback | None, monitor_all: bool = False) -> None:
        """Call ``callback(name, operator, array)`` for every result, perhaps every input too."""
        self._hook = None if callback is None else OpHook(callback, monitor_all, self._sym._graph)

    def __reduce__(self) -> tuple:
        return CachedOp, (self._sym, self._flags)


class Prepared(Program):
    """A program whose outputs have memory of their own: users write into them."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        heads = self.graph.heads
        self._copied = [
            i
            for i, e in enumerate(heads)
            if e.node.op is None or e[:2] in {h[:2] for h in heads[:i]}
        ]

    def run(self, feed: Sequence[Value], *watchers: Interpreter) -> list[Value]:
        """Return the heads' values for one tensor per variable."""
        heads: list[Any] = super().run(feed, *watchers)
        for i in self._copied:  # inputs, and outputs that are there already
            heads[i] = heads[i].clone() if type(heads[i]) is Tensor else heads[i].copy()
        return heads


def _hides_inputs(outputs: Sequence[Any], feed: Sequence[Any]) -> bool | None:
    """Return whether torch's graph of the outputs lacks some inputs; None if there is none."""
    heads = {t.grad_fn for t in outputs if type(t) is Tensor and t.requires_grad}
    if not heads:
        return None
    leaves = [get_gradient_edge(t).node for t in feed if type(t) is Tensor and t.requires_grad]
    return not reachable(heads).issuperset(leaves)


def _tensor(array: NDArray) -> Tensor:
    tensor = graph_tensor(array)
    return plain(array) if tensor is None else tensor
