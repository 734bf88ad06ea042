"""`BoundFunction`: forward and backward of a graph function on bound arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from .. import dtypes
from ..accelerator import get_rng_state, set_rng_state
from ..context import Context, torch_device
from ..error import MXNetError, ShapeError
from ..graph.gradient_flow import reaches_variable
from ..graph.graph import Graph
from ..ndarray import NDArray
from ..ndarray.sparse import BaseSparseNDArray
from ..ndarray.sparse.dispatch import dense_of
from ..torch_private import set_grad_enabled
from .array import wrap_plain
from .array_kernels import member_of_graph, tensor_of
from .backends import BackendProgram, chosen_backend
from .backward import backward
from .bound_arrays import BoundArrays
from .capture.replay import Repetition
from .function import GraphFunction, Request, new_request
from .monitoring import Watcher
from .program import Program

if TYPE_CHECKING:
    from ..graph.node import Node

Head = Any  # a tensor, or an array without a dense tensor
Show = Callable[[str, "Tensor | BaseSparseNDArray"], None]


NEEDS_HEAD_GRADIENT = (
    "Because the last operator is not Loss function, head_gradient is required when calling "
    "backward. If you are attempting to minimize the output as an objective, please modify your "
    "network and pass it through the make_loss symbol."
)


class BoundFunction:
    """Runs a graph on bound arrays, and backward through the last run.

    Parameters
    ----------
    graph : what to compute.
    bound : the arrays of its variables.
    ctx : where it runs.
    group2ctx : where nodes of a ``ctx_group`` run.
    data_names : the arguments that change with each batch, if known.
    """

    def __init__(
        self,
        graph: Graph,
        bound: BoundArrays,
        ctx: Context,
        group2ctx: Mapping[str, Context],
        data_names: Sequence[str] | None,
    ) -> None:
        self.bound, self.repetition = bound, Repetition()
        self._device = torch_device(ctx)
        names = enumerate(node.name for node in graph.variables)
        self.function = GraphFunction(
            graph,
            placement=_placement(graph, ctx, group2ctx),
            storage=bound.stypes,
            records=bound.records_by_node,
            backend=None if bound.is_sparse else chosen_backend(graph),
            data=None if data_names is None else [i for i, name in names if name in data_names],
        )
        self._head_gradients = HeadGradients(graph, bound.differentiated_nodes)
        self._draws = any(n.op is not None and n.op.facts.random for n in graph.nodes)
        self._random_state: Tensor | None = None  # of the last forward
        self._mode: bool | None = None  # whether the last forward was in training mode
        # Heads of a training forward, kept until backward; None for heads without a gradient.
        self._members: list[Tensor | None] | None = None
        self._show: Show | None = None
        self._shows_inputs = False
        self._watcher: Watcher | None = None  # of the last forward

    def watch(self, show: Show | None, shows_inputs: bool) -> None:
        """Pass every result of later runs to `show`. If `shows_inputs`, pass every input too."""
        self._show, self._shows_inputs, self._watcher = show, shows_inputs, None

    def forward(self, training: bool) -> list[Tensor | BaseSparseNDArray]:
        """Return the heads."""
        self._mode = training
        self.forget()
        if self._draws:
            self._random_state = get_rng_state(self._device)
        if self._show is not None:
            self._watcher = Watcher(self._show, self._shows_inputs)
        if training:
            heads, self._members = self._forward_in_training()
        else:
            heads = self._run(self.bound.feed(False), self._request(False, False), False)
        return [h if type(h) is Tensor else _shown(h) for h in heads]

    def _forward_in_training(self) -> tuple[Sequence[Head], list[Tensor | None]]:
        """Return the heads of a training step, and the heads that have gradients; see `capture`."""
        repetition = self.repetition
        inputs: list[Tensor] | None = None
        if self._watcher is None and repetition.is_possible():
            inputs = self.bound.tensors()
            if (repeated := repetition.forward(inputs)) is not None:
                return repeated
        feed, request = self.bound.feed(True), self._request(True, True)
        repetition.consider(self.function.program(feed, request))
        if inputs is None:
            heads = self._run(feed, request, True)
        else:
            heads = repetition.watch_forward(feed, inputs, lambda: self._run(feed, request, True))
        return heads, _members(heads)

    def forget(self) -> None:
        """Free the values saved for backward."""
        self._members = None
        self.repetition.reset()

    def program(self) -> Program | BackendProgram:
        """Return the program of the last forward, or that of inference before the first forward."""
        training = bool(self._mode)
        return self.function.program(self.bound.feed(False), self._request(training, training))

    def _request(self, training: bool, differentiable: bool) -> Request:
        arrays = self.bound.array_positions(differentiable)
        return new_request((training, differentiable, self._show is not None, self._device, arrays))

    def _run(self, feed: Sequence[Any], request: Request, records: bool) -> list[Head]:
        grad_mode = torch.is_grad_enabled()
        set_grad_enabled(records)
        try:
            return self.function.run(feed, request, self._watcher)
        finally:
            set_grad_enabled(grad_mode)

    def backward(self, out_grads: Any, is_train: bool) -> None:
        """Write the gradients of the arguments; see `Executor.backward`."""
        if not self.bound.differentiated:
            return
        given = self._head_gradients.list_given(out_grads)
        members = self._members if is_train else None
        is_unseen = self._show is not None and self._watcher is None
        if members is None or is_unseen:
            members = self._replay(is_train)
        starts = self._head_gradients.starts(members, given)
        if self.repetition.is_repeated and not self.repetition.can_start(starts):
            members = self._replay(is_train)
            starts = self._head_gradients.starts(members, given)
        self._members = None  # backward frees the graph
        if self.repetition.is_repeated:
            gradients = self.repetition.backward(starts)
        else:
            gradients = self._differentiate(members, starts)
        self.bound.receive(gradients)

    def _replay(self, is_train: bool) -> list[Tensor | None]:
        """Rerun the last forward pass only to rebuild its graph; return the heads with gradients.

        Torch frees a graph during backward. A second backward is rare, and keeping the graph for it
        would hold all activations until the next forward (9 % more peak memory for six
        convolutions). Instead, a second backward runs forward again, with the same random numbers
        and the current arguments. The auxiliary states are not changed.
        """
        self.forget()
        training = is_train if self._mode is None else bool(self._mode and is_train)
        feed = self.bound.feed(True, copies_states=True)
        if self._show is not None:
            self._watcher = Watcher(self._show, False, silent=True)
        with _random_stream(self._device, self._random_state):
            return _members(self._run(feed, self._request(training, True), True))

    def _differentiate(
        self, heads: Sequence[Tensor | None], starts: Mapping[int, Tensor]
    ) -> Sequence[Tensor | None]:
        leaves, watcher = self.bound.leaves, self._watcher
        if not starts:
            return [None] * len(leaves)
        views = () if watcher is None else watcher.views
        with self.repetition.watch_backward():
            chosen = cast("list[Tensor]", [heads[number] for number in starts])
            gradients = backward(chosen, tuple(starts.values()), (*leaves, *views))
        self.repetition.finish(starts, gradients)
        if watcher is not None and views:
            nodes = self.bound.differentiated_nodes
            watcher.show_gradients(self.function.graph, nodes, starts, gradients[len(leaves) :])
        self._watcher = None
        return gradients[: len(leaves)]


def _members(heads: Sequence[Head]) -> list[Tensor | None]:
    """Return the tensors of the heads in torch's graph, None for heads without gradients."""
    members = [h if type(h) is Tensor else member_of_graph(h) for h in heads]
    return [m if m is not None and m.requires_grad else None for m in members]


def _shown(head: Head) -> Tensor | BaseSparseNDArray:
    """Return the user-visible array of a head that is an array."""
    return head if isinstance(head, BaseSparseNDArray) else tensor_of(head)


def context_of_node(node: Node, ctx: Context, group2ctx: Mapping[str, Context]) -> Context:
    """Return the context of a node, by its ``ctx_group`` attribute."""
    return group2ctx.get(node.extra.get("__ctx_group__", ""), ctx) if group2ctx else ctx


def _placement(
    graph: Graph, ctx: Context, group2ctx: Mapping[str, Context]
) -> dict[Node, torch.device] | None:
    """Return the device of each node, if there are several."""
    if not group2ctx:
        return None
    devices = {n: torch_device(context_of_node(n, ctx, group2ctx)) for n in graph.nodes}
    return devices if len(set(devices.values())) > 1 else None


class HeadGradients:
    """Computes the initial gradients of a backward pass through a graph.

    `variables` are those whose gradients are computed.
    """

    def __init__(self, graph: Graph, variables: Collection[Node]) -> None:
        self._graph = graph
        # If a Group lists an output several times, the last gradient is used, as in MXNet.
        last = {entry[:2]: number for number, entry in enumerate(graph.heads)}
        chosen = set(last.values())
        self._rows = [
            (number in chosen, reaches_variable(entry.node, variables))
            for number, entry in enumerate(graph.heads)
        ]

    def list_given(self, out_grads: Any) -> list[NDArray | None]:
        """Return the gradients passed to backward, one for each output, None for missing ones."""
        if out_grads is None:
            return [None] * len(self._rows)
        if isinstance(out_grads, NDArray):
            out_grads = [out_grads]
        elif isinstance(out_grads, Mapping):
            out_grads = [out_grads[name] for name in self._graph.output_names()]
        listed = [g if g is None or isinstance(g, NDArray) else _array(g) for g in out_grads]
        count = len(self._rows)
        return [*listed, *[None] * (count - len(listed))][:count]

    def starts(
        self, heads: Sequence[Tensor | None], given: Sequence[NDArray | None]
    ) -> dict[int, Tensor]:
        """Return the initial gradients, keyed by output index.

        Outputs that are None are skipped.
        """
        starts: dict[int, Tensor] = {}
        for number, (is_chosen, is_needed) in enumerate(self._rows):
            head, grad = heads[number], given[number]
            if head is None:
                continue
            if grad is not None and (is_needed or grad.shape == tuple(head.shape)):
                value = _fit(dense_of(grad), head)
            elif not is_needed:
                value = torch.ones_like(head)  # the value is not used, so its shape does not matter
            else:
                raise self._missing(number)
            if is_chosen:
                starts[number] = value
        return starts

    def _missing(self, number: int) -> MXNetError:
        entry = self._graph.heads[number]
        return MXNetError(
            f"backward: no out_grad was given for output {number}, "
            f"{entry.node.output_names()[entry.index]!r}. {NEEDS_HEAD_GRADIENT}"
        )


def _array(value: Any) -> NDArray:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"backward: out_grads must be NDArrays, not {type(value)}.")
    return wrap_plain(NDArray, dtypes.from_numpy(value))


def _fit(grad: Tensor, head: Tensor) -> Tensor:
    if grad.shape != head.shape:
        raise ShapeError(
            f"backward: an out_grad has shape {tuple(grad.shape)}, its output {tuple(head.shape)}."
        )
    return grad.to(device=head.device, dtype=head.dtype)


@contextmanager
def _random_stream(device: torch.device, state: Tensor | None) -> Iterator[None]:
    """Draw from a saved state of the random stream, and restore the current state afterward."""
    if state is None:
        yield
        return
    before = get_rng_state(device)
    set_rng_state(device, state)
    try:
        yield
    finally:
        set_rng_state(device, before)
