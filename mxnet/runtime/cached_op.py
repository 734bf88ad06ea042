"""`CachedOp`: a graph as one callable operator, run on the arrays that are passed to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..context import Context, torch_device
from ..error import MXNetError
from ..graph.gradient_flow import INLINE_LIMIT, has_partial_outputs, label_variables
from ..graph.graph import Graph
from ..graph.node import Node
from ..graph.passes.storage import makes_sparse
from ..ndarray import NDArray
from .apply import assign, stored_context
from .array import alias, is_sparse, operand_in, plain, wrap, written_in
from .backends import find_backend
from .compiled import Compiled
from .function import GraphFunction, Request, new_request
from .monitoring import Callback, OpHook
from .recording import (
    STAND_IN,
    Step,
    StepKind,
    graph_tensor,
    record_step,
    state,
)

if TYPE_CHECKING:
    from ..symbol import Symbol


class CachedOp:
    """A symbol that is called with arrays, like an operator.

    Parameters
    ----------
    sym
        What to compute.
    flags
        Pairs of option and value, such as ``static_alloc``. They do not affect memory planning.
    thread_safe
        Accepted for compatibility; has no effect.

    >>> x = mx.sym.Variable('x')
    >>> double = mx.nd.CachedOp(x + x)
    >>> double(mx.nd.array([1, 2])).asnumpy()
    array([2., 4.], dtype=float32)
    """

    __slots__ = (
        "_flags",
        "_hook",
        "_joins_gradients",
        "_makes_sparse",
        "_passed",
        "_states",
        "_steps",
        "_sym",
        "function",
    )

    def __init__(
        self,
        sym: Symbol,
        flags: Iterable[tuple[str, Any]] = (),
        thread_safe: bool = False,
    ) -> None:
        graph = sym._graph
        variables, states = graph.variables, set(graph.auxiliary)
        self._sym, self._flags = sym, tuple(flags)
        options = dict(self._flags)
        backend = options.get("backend")
        self.function = GraphFunction(
            graph,
            backend=None if backend is None else find_backend(backend),
            data=options.get("data_indices"),
            recompute=options.get("recompute"),
            copies_heads=True,
        )
        self._states = {i for i, node in enumerate(variables) if node in states}
        # Inputs that are outputs: (head, variable).
        self._passed = [
            (i, variables.index(e.node)) for i, e in enumerate(graph.heads) if e.node.op is None
        ]
        limit = int(options.get("inline_limit", INLINE_LIMIT))
        self._joins_gradients = has_partial_outputs(graph, limit)
        self._makes_sparse = makes_sparse(graph)
        self._hook: OpHook | None = None
        # Recorded as one step. Graphs of few operators record one step per output, as in MXNet.
        is_whole = len(graph.heads) < 2 or self._joins_gradients
        parts = [graph] if is_whole else [Graph([head]) for head in graph.heads]
        self._steps = [_step_of(part, variables) for part in parts]

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
                tensor = graph_tensor(head)
                assign("CachedOp", target, plain(head) if tensor is None else tensor)
                if target._member is not None and head._member is not None:
                    target._member.node = head._member.node
            return out
        return heads[0] if len(heads) == 1 else heads

    def run(self, args: Sequence[NDArray], default_ctx: Context | None = None) -> list[NDArray]:
        """Return the outputs as a list. The inputs must be complete."""
        session, training, function = state.session, state.training, self.function
        # 1. The feed: a tensor for each array, in the graph that is recorded.
        feed: list[Any] = []
        takes_arrays = self._makes_sparse
        for i, array in enumerate(args):
            member = None if session is None else array._member
            if array._dtype is None or (member is not None and member.kind is STAND_IN):
                takes_arrays = True  # no tensor has both the values and their gradients
                break
            if session is None:
                data = array._data
                feed.append(plain(array) if data is None else data)
            elif i in self._states:
                feed.append(written_in(session, array))
            else:
                feed.append(operand_in(session, array))
        if takes_arrays:
            feed = [*args]
            device, positions = torch_device(args[0].context), tuple(range(len(args)))
        else:
            device, positions = feed[0].device if feed else _device_of(default_ctx), ()
        tracked = training or takes_arrays
        if session is not None and not tracked:
            tracked = any(t.requires_grad for t in feed)
        request = new_request((training, tracked, self._hook is not None, device, positions))
        # 2. The function.
        heads = function.run(feed, request, self._hook)
        if session is not None and self._joins_gradients:
            heads = _join_gradients(heads)
        # 3. The outputs.
        first = args[0] if args else None
        ctx = stored_context(default_ctx) if first is None else first._ctx
        cls = NDArray if first is None or first._dtype is None else type(first)
        outputs: list[NDArray] = []
        for head in heads:
            if type(head) is Tensor:
                outputs.append(wrap(cls, head, ctx))
            else:
                outputs.append(head if is_sparse(head) else head._as(cls))
        if session is not None:
            if len(self._steps) == 1:
                record_step(outputs, self._steps[0][0], args)
            else:
                for output, (step, positions) in zip(outputs, self._steps, strict=True):
                    record_step(output, step, [args[i] for i in positions])
        for head, variable in self._passed:
            if not is_sparse(args[variable]) and not (session and self._joins_gradients):
                outputs[head] = alias(args[variable])
        return outputs

    def compiled(self, args: Sequence[NDArray], training: bool = False) -> Compiled:
        """Return a report of the graph that runs for these inputs."""
        feed = [plain(a) for a in args]
        device = feed[0].device if feed else _device_of(None)
        return Compiled(self.function.program(feed, Request(training, training, False, device)))

    # -- looking inside -----------------------------------------------------------------------

    def _register_op_hook(self, callback: Callback | None, monitor_all: bool = False) -> None:
        """Call ``callback(name, operator, array)`` for every result.

        If `monitor_all`, include inputs.
        """
        self._hook = None if callback is None else OpHook(callback, monitor_all, self._sym._graph)

    def __reduce__(self) -> tuple:
        return CachedOp, (self._sym, self._flags)


def _step_of(graph: Graph, variables: Sequence[Node]) -> tuple[Step, list[int]]:
    """Return the step of a graph, and the positions of the variables that are its inputs."""
    index = {node: i for i, node in enumerate(variables)}
    labels = label_variables(graph)
    skipped = {i for i, node in enumerate(graph.variables) if node in labels}
    return Step(StepKind.GRAPH, graph, labels=skipped), [index[n] for n in graph.variables]


def _device_of(default_ctx: Context | None) -> torch.device:
    """Return the device of a graph without inputs."""
    return torch_device(default_ctx or Context.default_ctx)


def _join_gradients(heads: Sequence[Any]) -> list[Any]:
    """Return the same values, connected so that a gradient of one gives all others a gradient.

    Integer arrays with gradients are not connected: torch cannot differentiate them.
    """
    tracked = [i for i, h in enumerate(heads) if isinstance(h, Tensor) and h.requires_grad]
    if len(tracked) < 2:
        return list(heads)
    joined = list(heads)
    for i, head in zip(tracked, _JoinGradients.apply(*(heads[i] for i in tracked)), strict=True):
        joined[i] = head
    return joined


class _JoinGradients(torch.autograd.Function):
    """Identity on values and gradients. Torch replaces missing gradients by zeros."""

    @staticmethod
    def forward(ctx: Any, *heads: Tensor) -> tuple[Tensor, ...]:
        return heads

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        return grads
