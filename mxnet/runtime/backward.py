"""Gradients of arrays on torch's autograd: leaves, what backward writes where, and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, cast

import torch
from torch import Tensor

from .. import accelerator
from ..error import InvalidValue, MXNetError, ShapeError, memory_error, reporting_memory
from ..memory import has_one_owner, untouched_zeros
from .array import leave_graphs, plain, set_leaf, wrap, wrap_plain
from .integers import leaf_tensor, truncate
from .recording import (
    UNKNOWN,
    Constant,
    HistoryNode,
    Leaf,
    graph_tensor,
    is_constant,
    is_constant_now,
    leaves_of,
    mark_used_up,
    may_come_from,
    node_of,
)
from .state import IntegerSession, state

if TYPE_CHECKING:
    from ..ndarray.ndarray import NDArray
    from ..ndarray.sparse.arrays import BaseSparseNDArray

GRAD_REQS = ("write", "add", "null")
MIN_LARGE = 2**14  # elements of a gradient that does not wait for others to be written
_engine = torch.autograd.Variable._execution_engine.run_backward

NOT_RECORDED = (
    "Cannot differentiate node because it is not in a computational graph. You need to set "
    "is_recording to true or use autograd.record() to save computational graphs for backward. If "
    "you want to differentiate the same graph twice, you need to pass retain_graph=True to "
    "backward."
)


def run_engine(heads: tuple[Tensor, ...], *options: Any, accumulate_grad: bool) -> Any:
    """Run torch's engine, all of it in this thread.

    The options are: head gradients, keep graph, create graph, inputs, allow unreachable inputs.
    `torch.autograd.backward` checks much before it comes here, and that shows in small networks.
    """
    with _in_this_thread(heads):
        return _engine(heads, *options, accumulate_grad=accumulate_grad)


def _in_this_thread(heads: Sequence[Tensor]) -> AbstractContextManager:
    """Return a scope in which torch's engine starts no threads for devices.

    Recording, training mode, np_shape and names are facts of a thread, and gradients that users
    wrote ask for them; what backward finds is collected in one as well.
    """
    if heads[0].is_cpu and not accelerator.is_used():
        return _NO_SCOPE
    return torch.autograd.grad_mode.set_multithreading_enabled(False)


_NO_SCOPE = nullcontext()


class GradientWatcher(Protocol):
    """Follows one gradient through a backward."""

    def receive(self, gradient: Tensor) -> None:
        """Look at what torch has computed, while backward continues with the rest."""
        ...

    def note_written(self) -> None:
        """Take note that the gradient stands in its array."""
        ...


class Gradient(Leaf):
    """Where backward writes an array's gradient, and how."""

    __slots__ = ("array", "fresh", "is_separate", "req", "sparse", "watcher")

    def __init__(self, array: NDArray | None, req: str) -> None:
        self.array, self.req = array, req
        self.watcher: GradientWatcher | None = None
        self.sparse = array is not None and array.stype != "default"
        self.is_separate = self.sparse  # whether it cannot be written together with others
        self.fresh = False  # True once backward wrote here; Trainer looks for stale gradients

    def receive(self, leaf: Tensor) -> None:
        """Take what torch has just accumulated in the leaf.

        A large gradient is written at once, and torch's memory is free for the next one: gradients
        that wait for the end of backward lie between those of activations, and 200 dense layers
        need 1.7 times the memory. Small ones wait, to be written together.
        """
        gradient, leaf.grad = leaf.grad, None
        if gradient is None:  # an operator's rule gives this input no gradient: leave it alone
            return
        if self.watcher is not None:
            self.watcher.receive(gradient)
        is_large = gradient.numel() >= MIN_LARGE
        # The program itself may call torch's backward, which has no end that we see.
        if state.received is None or (is_large and self.can_be_written()):
            write_gradients([(self, gradient)])
        else:
            state.received.append((self, gradient))

    def can_be_written(self) -> bool:
        """Return whether the array may change during backward: nothing else is on its memory."""
        return not self.is_separate and has_one_owner(plain(self.array))

    def write(self, gradient: Tensor) -> None:
        """Write a sparse gradient; dense ones are written together."""
        cast("BaseSparseNDArray", self.array)._receive_sparse(gradient, self.req)

    def receive_zeros(self) -> None:
        """Take zeros: nothing came back to an array that has a part in the result."""
        self.fresh = True
        if self.req != "write":
            return
        if self.sparse:
            from ..ndarray.sparse import zeros  # lazy import: sparse arrays build on this module

            target = cast("BaseSparseNDArray", self.array)
            none = zeros(target.stype, target.shape, ctx=target.context, dtype=target.dtype)
            empty = cast("BaseSparseNDArray", none)
            target._set(empty._shape, *empty._parts())
        else:
            plain(self.array).zero_()


def write_received() -> None:
    """Write the gradients that backward has found so far, before code of users runs in it."""
    if not state.received:
        return
    ready, waiting = [], []
    for record, gradient in state.received:
        (ready if record.can_be_written() else waiting).append((record, gradient))
    state.received[:] = waiting
    write_gradients(ready)


def write_gradients(received: Sequence[tuple[Gradient, Tensor]]) -> None:
    """Write torch's gradients into the memory of their arrays.

    Torch's tensors may be views of one another, of a head gradient or of a saved value, so they
    are copied; all of one type at once, which takes a third of the time of single copies.
    """
    groups: dict[tuple[str, torch.dtype], tuple[list[Tensor], list[Tensor]]] = {}
    for record, gradient in received:
        record.fresh = True
        if record.is_separate:
            record.write(gradient)
            continue
        target = plain(record.array)
        key = record.req, target.dtype
        if key not in groups:
            groups[key] = [], []
        targets, gradients = groups[key]
        targets.append(target)
        gradients.append(_with_memory(gradient))
    for (req, _), (targets, gradients) in groups.items():
        if req == "add":
            torch._foreach_add_(targets, gradients)
        else:
            torch._foreach_copy_(targets, gradients)
    for record, _ in received:
        if record.watcher is not None:
            record.watcher.note_written()


def _with_memory(gradient: Tensor) -> Tensor:
    """Return a gradient as an ordinary tensor: torch has sparse ones, and zeros without memory."""
    if gradient.layout is not torch.strided:
        return gradient.to_dense()
    if gradient._is_zerotensor():
        return torch.zeros(gradient.shape, dtype=gradient.dtype, device=gradient.device)
    return gradient


class IntegerGradient(Gradient):
    """Where backward puts the gradient of an integer array."""

    __slots__ = ()

    def __init__(self, array: NDArray | None, req: str) -> None:
        super().__init__(array, req)
        self.is_separate = True

    def write(self, gradient: Tensor) -> None:
        """Write a gradient as integers."""
        target = plain(self.array)
        integers = truncate(_with_memory(gradient), target.dtype)
        if self.req == "add":
            target.add_(integers)
        else:
            target.copy_(integers)


class _RecordedGradient(torch.autograd.Function):
    """A gradient as a function of the variables: those it does not depend on get zeros."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *variables: Tensor) -> Tensor:
        """Return the gradient in memory of its own."""
        ctx.save_for_backward(*variables)
        return _copy(gradient)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:  # type: ignore[override]
        """Pass the gradient on, and zeros to each variable."""
        return grad, *(torch.zeros_like(v, requires_grad=False) for v in ctx.saved_tensors)


class UnknownGradReq(InvalidValue, KeyError):
    """What backward is to do with a gradient array is none of write, add and null."""

    __str__ = MXNetError.__str__  # KeyError's would quote the message


def check_req(req: Any) -> str:
    """Return a valid grad_req, or say which ones there are."""
    if req not in GRAD_REQS:
        raise UnknownGradReq(f"grad_req {req!r} is none of {', '.join(GRAD_REQS)}.")
    return req


def _zeros_like(data: Tensor) -> Tensor:
    if data.is_cpu and data.is_contiguous():
        return untouched_zeros(data.shape, data.dtype)
    return torch.zeros_like(data)


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
            target = wrap_plain(type(array), _zeros_like(data), array._ctx)
    if req == "null":
        leave_graphs(array, Gradient(target, req))
        return
    if not data.dtype.is_floating_point:
        integer_record = IntegerGradient(target, req)
        leaf = leaf_tensor(data)
        leaf.register_post_accumulate_grad_hook(integer_record.receive)
        set_leaf(array, leaf, integer_record, IntegerSession(None))
        return
    record = Gradient(target, req)
    leaf = data.data.requires_grad_()
    leaf.register_post_accumulate_grad_hook(record.receive)
    set_leaf(array, leaf, record)


def _head_gradient(head: Tensor, gradient: Any) -> Tensor:
    if gradient is None:
        return torch.ones_like(head, requires_grad=False)
    grad = plain(gradient).data  # one more tensor on that memory: no gradient is written there
    if grad.numel() != head.numel():
        raise ShapeError(
            f"backward: a head gradient has shape {tuple(grad.shape)}, its output "
            f"{tuple(head.shape)}; they must have equally many elements."
        )
    if grad.shape != head.shape:
        grad = grad.reshape(head.shape)
    return grad if grad.dtype is head.dtype else grad.to(head.dtype)


def graph_member(array: NDArray) -> Tensor | None:
    """Return the tensor of an array in the recorded graph; a sparse array keeps it in `_ghost`."""
    tensor = graph_tensor(array)
    return tensor if tensor is not None else getattr(array, "_ghost", None)


def recorded_node(array: NDArray) -> HistoryNode | None:
    """Return the node of a recorded array, None for one that is in no graph."""
    member = array._member
    if type(member) is Constant:
        return member.node
    if graph_member(array) is None or is_constant_now(array, None):
        return None
    return node_of(array)


def _starts(
    heads: Sequence[NDArray], head_grads: Sequence[NDArray | None] | None
) -> tuple[list[Tensor], list[NDArray | None]]:
    """Return the tensors to start from and their given gradients; constants start nothing."""
    if head_grads is None:
        head_grads = [None] * len(heads)
    if len(head_grads) != len(heads):
        raise InvalidValue(
            f"backward: {len(heads)} heads, but {len(head_grads)} head gradients were given."
        )
    tensors, gradients = [], []
    for head, grad in zip(heads, head_grads, strict=True):
        tensor = graph_member(head)
        if tensor is None:
            if is_constant(head):
                continue
            raise MXNetError(NOT_RECORDED)
        tensors.append(tensor)
        gradients.append(grad)
    return tensors, gradients


def explain(error: RuntimeError) -> MXNetError:
    """Return torch's complaint about a graph in MXNet's words."""
    said = str(error)
    if "second time" in said:
        return MXNetError(NOT_RECORDED)
    if "modified by an inplace operation" in said:
        return MXNetError(
            "backward: an array that the gradient needs was changed in place after it was used in "
            "record(). Write into it after backward, or change a copy: y = x.copy(). "
            f"(torch: {said})"
        )
    return memory_error(error, "backward") or MXNetError(f"backward: {said}")


def run_backward(
    heads: Sequence[NDArray],
    head_grads: Sequence[NDArray | None] | None = None,
    retain_graph: bool = False,
) -> None:
    """Run torch's engine from the heads; leaves pass their gradients to their arrays."""
    if head_grads is None and len(heads) == 1 and (head := graph_tensor(heads[0])) is not None:
        tensors, grads = (head,), (torch.ones_like(head, requires_grad=False),)  # nearly always
    else:
        starts, head_gradients = _starts(heads, head_grads)
        tensors = tuple(starts)
        grads = tuple(_head_gradient(t, g) for t, g in zip(starts, head_gradients, strict=True))
    hidden = _gradients_behind(heads) if any(map(_hides, heads)) else ()
    if tensors:
        _run_from(tensors, grads, retain_graph)
    for record in hidden:
        if not record.fresh:
            record.receive_zeros()
    if not retain_graph:
        mark_used_up(heads)


def _hides(head: NDArray) -> bool:
    """Return whether an array may have been made of some that torch's graph does not show."""
    member = head._member
    if member is None or member.tensor is None:
        return True
    return member.session is not None and member.session.hides


def _gradients_behind(heads: Sequence[NDArray]) -> set[Gradient]:
    """Return the records of all gradients that backward has to write, marked as not written."""
    records = leaves_of(map(_history, heads))
    for record in records:
        record.fresh = False
    return records


def _run_from(tensors: tuple[Tensor, ...], grads: tuple[Tensor, ...], retain_graph: bool) -> None:
    """Run backward from some tensors of the graph, then write what it found."""
    session, outer = state.session, state.received
    state.session = None
    received = state.received = []
    try:
        run_engine(tensors, grads, bool(retain_graph), False, (), True, accumulate_grad=True)
    except MXNetError:
        raise
    except RuntimeError as error:
        raise explain(error) from error
    finally:
        state.session, state.received = session, outer
    write_gradients(received)


def differentiate(
    heads: Sequence[NDArray],
    variables: Sequence[NDArray],
    head_grads: Sequence[NDArray | None] | None,
    retain_graph: bool,
    create_graph: bool,
) -> list[Tensor]:
    """Return the gradients of the heads with respect to the variables."""
    tensors, head_gradients = _starts(heads, head_grads)
    leaves = _members(variables)
    if not tensors:
        _check_reached(heads, variables, [None] * len(leaves))
        return [torch.zeros_like(leaf) for leaf in leaves]
    grads = tuple(
        graph_tensor(g)
        if create_graph and g is not None and graph_tensor(g) is not None
        else _head_gradient(t, g)
        for t, g in zip(tensors, head_gradients, strict=True)
    )
    try:
        with _in_this_thread(tensors):
            gradients = torch.autograd.grad(
                tensors,
                leaves,
                grads,
                retain_graph=retain_graph,
                create_graph=create_graph,
                allow_unused=True,
            )
    except RuntimeError as error:
        raise explain(error) from error
    _check_reached(heads, variables, gradients)
    if not retain_graph:
        mark_used_up(heads)
    if create_graph:
        return [_RecordedGradient.apply(g, *leaves) for g in _without_gaps(gradients, leaves)]
    return [_copy(g) for g in _without_gaps(gradients, leaves)]


def _without_gaps(gradients: Sequence[Tensor | None], leaves: Sequence[Tensor]) -> list[Tensor]:
    """Return gradients, zeros where torch found none."""
    return [
        torch.zeros_like(v, requires_grad=False) if g is None else g
        for g, v in zip(gradients, leaves, strict=True)
    ]


def _copy(gradient: Tensor) -> Tensor:
    """Return a gradient in memory of its own; torch's may be that of another, or of a head's."""
    if gradient.layout is not torch.strided:
        return gradient.clone()
    if gradient._is_zerotensor():
        return _with_memory(gradient)
    return gradient.clone(memory_format=torch.contiguous_format)


def _members(variables: Sequence[NDArray]) -> list[Tensor]:
    """Return the tensors of variables in the recorded graph."""
    members = []
    for i, variable in enumerate(variables):
        member = graph_member(variable)
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
    """Raise if the heads do not depend on a variable; those that a gradient ends at have zeros."""
    for i, (variable, gradient) in enumerate(zip(variables, gradients, strict=True), 1):
        if gradient is None and not may_come_from(map(_history, heads), _history(variable)):
            raise MXNetError(
                f"autograd.grad: Cannot differentiate with respect to the {i}-th variable because "
                "it is unreachable from the outputs. Were the outputs computed from it inside "
                "record(), after attach_grad()?"
            )


def _history(array: NDArray) -> HistoryNode:
    """Return the node of a recorded array; `UNKNOWN` where it has none."""
    member = array._member
    return UNKNOWN if member is None else member.node


def gradient_array(variable: NDArray, gradient: Tensor) -> NDArray:
    """Return a gradient as an array: row_sparse if torch made it sparse."""
    if variable._dtype is not None and not variable._dtype.is_floating_point:
        return wrap_plain(type(variable), truncate(gradient, variable._dtype), variable._ctx)
    if gradient.layout is torch.strided and variable.stype == "default":
        return wrap(type(variable), gradient, variable._ctx)
    from ..ndarray.sparse.dispatch import sparse_gradient

    return sparse_gradient(variable, gradient)
