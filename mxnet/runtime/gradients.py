"""Gradients of arrays: leaves, gradient arrays, backward, and `autograd.grad`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from .._process.caches import ForkSafeLock
from .._process.memory import untouched_zeros
from ..error import InvalidValue, MXNetError, ShapeError, reporting_memory
from ..torch_private import count_dispatch_modes, foreach, has_one_owner, is_zero_tensor
from .array import leave_graphs, plain, set_leaf, set_member, wrap_plain
from .backward import NOT_RECORDED, backward
from .integers import leaf_tensor, truncate
from .recording import (
    CONSTANT,
    RECORDED,
    UNKNOWN,
    HistoryNode,
    Session,
    Source,
    enter_leaf,
    graph_tensor,
    is_constant,
    is_constant_now,
    leaves_of,
    mark_used_up,
    may_come_from,
    node_of,
    state,
)

if TYPE_CHECKING:
    from ..ndarray.ndarray import NDArray
    from ..ndarray.sparse.arrays import BaseSparseNDArray

GRAD_REQS = ("write", "add", "null")
_ADDING = ForkSafeLock()  # threads that share a parameter sum their gradients
MIN_LARGE = 2**14  # elements of a gradient that is written before backward ends
MAX_WAITING_BYTES = 1 << 23  # of large gradients that are collected and written together


class Received(dict["Gradient", "Tensor | None"]):
    """Gradients that leaf hooks received in one backward. None for those already written."""

    __slots__ = ("large",)

    def __init__(self) -> None:
        # Gradients that the engine no longer references.
        self.large: list[tuple[Gradient, Tensor]] = []

    def add_large(self, record: Gradient, gradient: Tensor) -> None:
        """Collect large gradients, and write them together when their size reaches a limit."""
        self[record] = gradient
        self.large.append((record, gradient))
        if sum([g.nbytes for _, g in self.large]) >= MAX_WAITING_BYTES:
            self.write(self.large)

    def write(self, pairs: Sequence[tuple[Gradient, Tensor]]) -> None:
        """Write gradients immediately."""
        write_gradients(pairs)
        self.update(dict.fromkeys([record for record, _ in pairs]))
        self.large = [pair for pair in self.large if self[pair[0]] is not None]


class Gradient(Source):
    """The destination of an array's gradient, and how backward writes it."""

    __slots__ = ("array", "fresh", "is_observed", "is_separate", "is_sparse", "req", "watcher")

    def __init__(self, array: NDArray | None, req: str) -> None:
        self.array, self.req = array, req
        # Observes the gradient: `receive` is called during backward when torch has computed it,
        # `note_written` when it is stored in its array.
        self.watcher: Any = None
        self.is_observed = False  # whether a hook of the leaf calls `receive`
        self.is_sparse = array is not None and array._dtype is None
        # Whether it has to be written separately.
        self.is_separate = array is not None and (
            self.is_sparse or not array._dtype.is_floating_point
        )
        self.fresh = False  # set by backward; Trainer checks it to find stale gradients

    def receive(self, gradient: Tensor | None) -> Tensor | None:
        """Leaf hook: receive a gradient during backward.

        Large gradients are written soon, a few at a time, so that torch can reuse their memory.
        Writing them at the end of backward fragments the memory: 200 dense layers need 1.7 times
        as much. The engine continues with zeros instead. Small gradients are written together at
        the end.
        """
        found = state.found
        if found is None or gradient is None:  # `autograd.grad` or torch code; or no gradient
            return None
        if self.watcher is not None:
            self.watcher.receive(gradient)
        if gradient.numel() < MIN_LARGE or not self.can_be_written():
            found[self] = gradient
            return None
        found.add_large(self, gradient)
        return _zero_like(gradient).expand(gradient.shape)

    def can_be_written(self) -> bool:
        """Return whether the array can be written during backward: it does not share its memory."""
        return not self.is_separate and has_one_owner(plain(self.array))

    def take_accumulated(self, leaf: Tensor) -> None:
        """Take the gradient that torch accumulated in the leaf in a backward of torch code."""
        gradient, leaf.grad = leaf.grad, None
        if gradient is None:  # the operator has no gradient for this input: do not write
            return
        if self.watcher is not None:
            self.watcher.receive(gradient)
        write_gradients([(self, gradient)])

    def write_separately(self, gradient: Tensor) -> None:
        """Write a gradient into a sparse or integer array."""
        array = self.array
        if self.is_sparse:
            cast("BaseSparseNDArray", array)._receive_sparse(gradient, self.req)
            return
        target = plain(array)
        integers = truncate(_with_memory(gradient), target.dtype)
        if self.req == "add":
            with _ADDING:
                target.add_(integers)
        else:
            target.copy_(integers)

    def write_zeros(self) -> None:
        """Write zeros, for an array that contributes to the result but received no gradient."""
        self.fresh = True
        if self.req != "write":
            return
        if self.is_sparse:
            from ..ndarray.sparse import zeros  # lazy import: sparse arrays build on this module

            target = cast("BaseSparseNDArray", self.array)
            none = zeros(target.stype, target.shape, ctx=target.context, dtype=target.dtype)
            empty = cast("BaseSparseNDArray", none)
            target._set(empty._shape, *empty._parts())
        else:
            plain(self.array).zero_()


_ZEROS: dict[tuple[torch.dtype, torch.device], Tensor] = {}


def _zero_like(tensor: Tensor) -> Tensor:
    """Return a scalar zero with the tensor's dtype and device.

    It is cached and shared, so it must not be modified.
    """
    # Tensor subclasses and dispatch modes need tensors of their own type, so nothing is cached.
    if type(tensor) is not Tensor or count_dispatch_modes():
        return tensor.new_zeros(())
    key = tensor.dtype, tensor.device
    zero = _ZEROS.get(key)
    if zero is None:
        zero = _ZEROS[key] = tensor.new_zeros(())
    return zero


def write_gradients(received: Iterable[tuple[Gradient, Tensor]]) -> None:
    """Write torch's gradients into the memory of their arrays.

    Torch's gradients may share memory with each other, a head gradient or a saved value, so they
    are copied. All gradients of one dtype are copied at once, in a third of the time.
    """
    groups: dict[tuple[str, torch.dtype], tuple[list[Tensor], list[Tensor]]] = {}
    watched = []
    for record, gradient in received:
        record.fresh = True
        if record.watcher is not None:
            watched.append(record.watcher)
        if record.is_separate:
            record.write_separately(gradient)
            continue
        array = record.array
        target = array._data  # pyright: ignore[reportOptionalMemberAccess]
        if target is None:
            target = plain(array)
        if gradient.layout is not torch.strided or is_zero_tensor(gradient):
            gradient = _with_memory(gradient)
        key = record.req, target.dtype
        group = groups.get(key)
        if group is None:
            group = groups[key] = [], []
        group[0].append(target)
        group[1].append(gradient)
    for (req, _), (targets, gradients) in groups.items():
        if req == "add":
            with _ADDING:
                foreach("add_")(targets, gradients)
        else:
            foreach("copy_")(targets, gradients)
    for watcher in watched:
        watcher.note_written()


def _with_memory(gradient: Tensor) -> Tensor:
    """Convert a gradient to a dense, allocated tensor.

    Autograd may also return sparse gradients and zero tensors without storage.
    """
    if gradient.layout is not torch.strided:
        return gradient.to_dense()
    if is_zero_tensor(gradient):
        return torch.zeros(gradient.shape, dtype=gradient.dtype, device=gradient.device)
    return gradient


class UnknownGradReq(InvalidValue, KeyError):
    """Raised for a grad_req other than 'write', 'add' or 'null'."""

    __str__ = MXNetError.__str__  # KeyError's would quote the message


def check_req(req: Any) -> str:
    """Validate `grad_req`. Raise an error that lists the valid values."""
    if req not in GRAD_REQS:
        raise UnknownGradReq(f"grad_req must be one of {', '.join(GRAD_REQS)}, got {req!r}.")
    return req


def attach(
    array: NDArray, req: str = "write", *, target: NDArray | None = None, stype: str | None = None
) -> None:
    """Make an array a leaf whose gradient goes to `target`, or to a new array of zeros."""
    check_req(req)
    if array.stype != "default":
        cast("BaseSparseNDArray", array)._attach(req, target, stype)
        return
    data = plain(array)
    if target is None and stype not in (None, "default"):
        from ..ndarray.sparse import zeros as sparse_zeros

        target = sparse_zeros(stype, array.shape, ctx=array.context, dtype=array.dtype)
    elif target is None:
        with reporting_memory(f"attach_grad of an array of shape {tuple(data.shape)}"):
            zeros = untouched_zeros(data.shape, data.dtype, data.device)
            target = wrap_plain(type(array), zeros, array._ctx)
    if req == "null":
        leave_graphs(array, Gradient(target, req))
    elif data.dtype.is_floating_point:
        add_leaf(array, data.data.requires_grad_(), Gradient(target, req))
    else:
        add_leaf(array, leaf_tensor(data), Gradient(target, req))


def add_leaf(array: NDArray, leaf: Tensor, record: Gradient) -> None:
    """Make an array a leaf of graphs, represented by the tensor `leaf`."""
    leaf.register_post_accumulate_grad_hook(record.take_accumulated)
    if leaf.numel() >= MIN_LARGE and not record.is_separate:
        _observe(record, leaf)
    set_leaf(array, leaf, record)


def watch(array: NDArray, watcher: Any) -> Gradient:
    """Let a watcher observe the gradient of an array. Return the record."""
    record, leaf = array._grad, graph_tensor(array)
    if leaf is not None:
        _observe(record, leaf)
    record.watcher = watcher
    return record


def _observe(record: Gradient, leaf: Tensor) -> None:
    """Receive a small gradient during backward, as large ones always are."""
    if not record.is_observed:
        record.is_observed = True
        leaf.register_hook(record.receive)


@contextmanager
def running_user_code() -> Iterator[None]:
    """Run user-defined backward code.

    The gradients received so far are written first, so that the code can read them. A backward
    inside of the code does not add to the received gradients.
    """
    found, state.found = state.found, None
    waiting = [(r, g) for r, g in (found or {}).items() if g is not None and r.can_be_written()]
    if found is not None and waiting:
        found.write(waiting)
    try:
        yield
    finally:
        state.found = found


def _head_gradient(head: Tensor, gradient: Any, keeps_graph: bool = False) -> Tensor:
    """Return the initial gradient.

    If `keeps_graph`, a gradient that is part of a graph is not detached.
    """
    if gradient is None:
        return _ones(head)
    if keeps_graph and (tracked := graph_tensor(gradient)) is not None:
        return tracked
    grad = plain(gradient).data  # a new tensor on this memory, detached from its graph
    if grad.numel() != head.numel():
        raise ShapeError(
            f"backward: a head gradient has shape {tuple(grad.shape)}, its output "
            f"{tuple(head.shape)}; they must have the same number of elements."
        )
    if grad.shape != head.shape:
        grad = grad.reshape(head.shape)
    return grad if grad.dtype is head.dtype else grad.to(head.dtype)


def recorded_node(array: NDArray) -> HistoryNode | None:
    """Return the node of a recorded array, or None if it is in no graph."""
    member = array._member
    if member is not None and member.kind is CONSTANT:
        return member.node
    if graph_tensor(array) is None or is_constant_now(array, None):
        return None
    return node_of(array)


def _starts(
    heads: Sequence[NDArray], head_grads: Sequence[NDArray | None] | None
) -> tuple[list[NDArray], list[NDArray | None]]:
    """Return the heads that are not constants, and their gradients."""
    if head_grads is None:
        head_grads = [None] * len(heads)
    if len(head_grads) != len(heads):
        raise InvalidValue(
            f"backward: {len(heads)} heads, but {len(head_grads)} head gradients were given."
        )
    arrays, gradients = [], []
    for head, grad in zip(heads, head_grads, strict=True):
        if graph_tensor(head) is None:
            if is_constant(head):
                continue
            raise MXNetError(NOT_RECORDED)
        arrays.append(head)
        gradients.append(grad)
    return arrays, gradients


def _session_of(heads: Sequence[NDArray]) -> Session:
    """Return a session that contains all leaves of the graphs of some arrays."""
    member = heads[0]._member if len(heads) == 1 else None
    if member is not None and member.session is not None:
        return member.session
    joint = Session()
    for head in heads:
        member = head._member
        assert member is not None  # checked by `_starts`
        if member.session is None:
            enter_leaf(member, joint)
        else:
            joint.leaves.update(member.session.leaves)
            joint.has_torch_leaves |= member.session.has_torch_leaves
            joint.runs_user_code |= member.session.runs_user_code
    return joint


def run_backward(
    heads: Sequence[NDArray],
    head_grads: Sequence[NDArray | None] | None = None,
    retain_graph: bool = False,
) -> None:
    """Write the gradients of the heads with respect to all leaves of their graphs."""
    member = heads[0]._member if len(heads) == 1 and head_grads is None else None
    if member is not None and member.kind is RECORDED and member.tensor is not None:
        session, tensors = cast("Session", member.session), [member.tensor]
        starts = [_ones(member.tensor)]
    else:
        arrays, given = _starts(heads, head_grads)
        session, tensors = _session_of(arrays), [cast("Tensor", graph_tensor(a)) for a in arrays]
        starts = [_head_gradient(t, g) for t, g in zip(tensors, given, strict=True)]
    written = _run_from(session, tensors, starts, retain_graph) if tensors else ()
    if len(written) < len(session.leaves) or len(tensors) < len(heads):
        # Torch's graph ends at indices, comparisons and `BlockGrad`; MXNet writes zeros there.
        for record in leaves_of(map(_history, heads)).difference(written):
            record.write_zeros()
    if not retain_graph:
        mark_used_up(heads)


def _run_from(
    session: Any, heads: Sequence[Tensor], starts: Sequence[Tensor], retain_graph: bool
) -> Sequence[Gradient]:
    """Run backward in a session's graph and write the gradients.

    Return the leaves that have one.
    """
    keep, leaves = bool(retain_graph), session.leaves
    if session.has_torch_leaves:  # the engine accumulates, as torch code expects; hooks write
        before = [record for record in leaves if record.fresh]
        for record in before:
            record.fresh = False
        try:
            backward(heads, starts, (), keep=keep)
            return [record for record in leaves if record.fresh]
        finally:
            for record in before:
                record.fresh = True
    if session.runs_user_code:
        for record, leaf in leaves.items():
            _observe(record, leaf)
    records, found = tuple(leaves), Received()
    gradients = backward(heads, starts, tuple(leaves.values()), keep=keep, found=found)
    received = [(r, g) for r, g in zip(records, gradients, strict=True) if g is not None]
    waiting = received
    if found:
        large = dict(found.large)
        waiting = [(r, large.get(r, g)) for r, g in received if found.get(r, g) is not None]
    write_gradients(waiting)
    return [record for record, _ in received]


def _ones(head: Tensor) -> Tensor:
    return torch.ones_like(head, requires_grad=False)


def differentiate(
    heads: Sequence[NDArray],
    variables: Sequence[NDArray],
    head_grads: Sequence[NDArray | None] | None,
    retain_graph: bool,
    create_graph: bool,
) -> list[NDArray]:
    """Return the gradients of the heads with respect to the variables."""
    arrays, given = _starts(heads, head_grads)
    leaves = _members(variables)
    tensors = [cast("Tensor", graph_tensor(a)) for a in arrays]
    starts = [
        _head_gradient(t, g, keeps_graph=create_graph) for t, g in zip(tensors, given, strict=True)
    ]
    gradients: Sequence[Tensor | None] = [None] * len(leaves)
    if tensors:
        gradients = backward(tensors, starts, leaves, keep=retain_graph, create=create_graph)
    _check_reached(heads, variables, gradients)
    session = state.session or Session()
    if create_graph:
        _continue_from([*arrays, *variables, *(g for g in given if g is not None)], session)
    if tensors and not retain_graph:
        mark_used_up(heads)
    return [
        gradient_array(v, each, session)
        for v, each in zip(variables, _own(gradients, leaves, create_graph), strict=True)
    ]


def _continue_from(arrays: Sequence[NDArray], session: Session) -> None:
    """Add all leaves of the graphs of arrays of other sessions to a session."""
    for array in arrays:
        member = array._member
        if member is None or member.tensor is None or member.session is session:
            continue
        if member.session is None:
            enter_leaf(member, session)
        else:
            session.continue_from(member.session)


def _own(
    gradients: Sequence[Tensor | None], leaves: Sequence[Tensor], create_graph: bool
) -> list[Tensor]:
    """Return copies of the gradients, and zeros for missing ones."""
    dense = [
        torch.zeros_like(v, requires_grad=False) if g is None else g
        for g, v in zip(gradients, leaves, strict=True)
    ]
    if create_graph:
        return [_RecordedGradient.apply(g, *leaves) for g in dense]
    return [_copy(g) for g in dense]


class _RecordedGradient(torch.autograd.Function):
    """Identity on a gradient. In backward, the variables that it does not depend on get zeros."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *variables: Tensor) -> Tensor:
        """Return a copy of the gradient."""
        ctx.save_for_backward(*variables)
        return _copy(gradient)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:  # type: ignore[override]
        """Pass the gradient on, and zeros to each variable."""
        return grad, *(torch.zeros_like(v, requires_grad=False) for v in ctx.saved_tensors)


def _copy(gradient: Tensor) -> Tensor:
    """Copy a gradient.

    Autograd may return a tensor that shares memory with another gradient or with a head gradient.
    """
    if gradient.layout is not torch.strided:
        return gradient.clone()
    if is_zero_tensor(gradient):
        return _with_memory(gradient)
    return gradient.clone(memory_format=torch.contiguous_format)


def _members(variables: Sequence[NDArray]) -> list[Tensor]:
    """Return the tensors of variables in the recorded graph."""
    members = []
    for i, variable in enumerate(variables):
        member = graph_tensor(variable)
        if member is None:
            raise MXNetError(
                f"autograd.grad: variable {i} is not part of a graph. Call attach_grad() on it "
                "before record()."
            )
        members.append(member)
    return members


def _check_reached(
    heads: Sequence[NDArray], variables: Sequence[NDArray], gradients: Sequence[Tensor | None]
) -> None:
    """Raise if the heads do not depend on a variable. Variables where gradients end have zeros."""
    for i, (variable, gradient) in enumerate(zip(variables, gradients, strict=True), 1):
        if gradient is None and not may_come_from(map(_history, heads), _history(variable)):
            raise MXNetError(
                f"autograd.grad: Cannot differentiate with respect to the {i}-th variable because "
                "it is unreachable from the outputs. Were the outputs computed from it inside "
                "record(), after attach_grad()?"
            )


def _history(array: NDArray) -> HistoryNode:
    """Return the node of a recorded array, or `UNKNOWN` if it has none."""
    member = array._member
    return UNKNOWN if member is None else member.node


def gradient_array(variable: NDArray, gradient: Tensor, session: Session) -> NDArray:
    """Return a gradient as an array of a session: row_sparse if torch made it sparse."""
    dtype = variable._dtype
    if dtype is not None and not dtype.is_floating_point:
        return wrap_plain(type(variable), truncate(gradient, dtype), variable._ctx)
    if gradient.layout is not torch.strided or variable.stype != "default":
        from ..ndarray.sparse.dispatch import sparse_gradient

        return sparse_gradient(variable, gradient)
    array = wrap_plain(type(variable), gradient, variable._ctx)
    if gradient.requires_grad:
        array._data = None
        set_member(array, gradient, session)
    return array
