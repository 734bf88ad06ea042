"""`Handle`: the base of every array, and the conversion of tensors to arrays.

An array holds a plain torch tensor, a tracked one, or both. The tracked tensor is a leaf created by
`attach_grad`, or the result of a recorded operator; plain and tracked share their memory. Only
recording operators read tracked tensors, so nothing else ever builds a graph.

An array is memory, as in MXNet: backward reads the values that the memory holds when backward runs.
Only torch's version counter tracks writes between forward and backward:

- All writes go through plain tensors (`writable`), whose views share one counter.
- Graphs hold tensors on the same memory with counters of their own (`Tensor.data`), so torch does
  not raise an error in backward if values were overwritten after forward.
- Counters are never incremented by hand. Memory that torch code, NumPy or user code can write
  without the counter noticing is marked once (`memory.expose`). Cached values (packed weights,
  folded layers) are valid while the counter is unchanged and the memory is not marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import torch
from torch import Tensor

from .._process.memory import expose
from ..error import MXNetError
from ..torch_private import is_view
from .recording import (
    LEAF,
    RECORDED,
    STAND_IN,
    UNKNOWN,
    Member,
    Session,
    Step,
    graph_tensor,
    is_constant,
    is_constant_now,
    make_constant,
    state,
    step_node,
)

if TYPE_CHECKING:
    from ..context import Context
    from ..ndarray.ndarray import NDArray

ArrayT = TypeVar("ArrayT", bound="NDArray")
new_object = object.__new__


class NoDenseOperand(MXNetError):
    """Raised if an array has no dense tensor: it is sparse, or an integer array with a gradient."""


class Handle:
    """Slots of an array; kept apart from its many methods.

    The functions below fill them. The hottest code sets them inline to save a call: generated
    functions (`calls`), `overloads`, `NDArray.reshape` and `__getitem__`.
    """

    __slots__ = ("__weakref__", "_ctx", "_data", "_dtype", "_grad", "_member")

    _data: Tensor | None  # the plain tensor; None while only a recorded result exists
    _member: Member | None  # the array's entry in a recorded graph
    # Cached, because reading it from the tensor is slower. None for sparse arrays.
    _dtype: torch.dtype
    _ctx: Context | None  # only if the device does not imply it
    _grad: Any  # a Gradient record, after attach_grad

    # Whether NumPy semantics apply: true of `mx.np.ndarray`.
    is_numpy: ClassVar[bool] = False
    numpy_class: ClassVar[type | None] = None  # `mx.np.ndarray`, once it is defined


def is_sparse(array: Any) -> bool:
    """Return whether an array is sparse: only sparse arrays have no dense dtype."""
    return array._dtype is None


def plain(array: Any) -> Tensor:
    """Return the array's tensor outside any graph; it shares the array's memory."""
    data = array._data
    if data is None:
        if array._dtype is None:  # a sparse array: a dense copy, and a warning
            return array._densified()
        tracked = array._member.tensor
        data = array._data = tracked.data
        if is_view(tracked):  # the version counter of its base counts other writes
            expose(data)
    return data


def exported(array: Any) -> Tensor:
    """Return a tensor on the array's memory. Foreign code may write into it at any time."""
    data = plain(array)
    expose(data)
    return data.detach()


def wrap_foreign(cls: type[ArrayT], tensor: Tensor) -> ArrayT:
    """Return a new array on memory that foreign code may write into at any time."""
    expose(tensor)
    return wrap_plain(cls, tensor.detach())


def shared_tensor(array: Any, grad: bool | None = None) -> Tensor:
    """Return a tensor on the array's memory for torch code, in the array's graph if it is in one.

    `grad` says whether to keep the graph; None keeps it while recording.
    """
    data = exported(array)
    member = array._member
    if not (state.recording if grad is None else grad) or member is None:
        return data
    if member.tensor is None or member.kind is STAND_IN:
        return data  # torch has no gradients of integers
    return data if is_constant_now(array, state.session) else member.tensor


def wrap_shared(cls: type[ArrayT], tensor: Tensor, grad: bool | None = None) -> ArrayT:
    """Return a new array on a tensor's memory, in the tensor's graph if it is in one.

    `grad` says whether to keep the graph; None keeps it while recording.
    """
    if tensor.requires_grad and (state.recording if grad is None else grad):
        with torch.enable_grad():
            tensor = tensor.contiguous()
        expose(tensor)
        array = wrap_plain(cls, tensor)
        session = state.session or Session()
        session.has_torch_leaves = True
        array._data, array._member = None, Member(tensor, session, UNKNOWN)
        return array
    return wrap_foreign(cls, tensor.detach().contiguous())


def current(array: Any) -> Tensor:
    """Return the tensor for views and copies: tracked while recording, else plain."""
    session = state.session
    if session is not None:
        member = array._member
        if member is not None:
            return operand_in(session, array)
    data = array._data
    return _plain_operand(array) if data is None else data


def operand_in(session: Session | None, array: Any) -> Tensor:
    """Return the tensor that an operator reads in a session.

    Without a session, nothing is recorded.
    """
    data = array._data
    if session is not None:
        member = array._member
        if member is not None and (tensor := member.tensor) is not None:
            kind = member.kind
            if kind is RECORDED and member.session is session:
                return tensor
            if kind is LEAF:
                session.leaves[member.node] = tensor
                return tensor
            return _read_member(session, array, member)
        if data is not None:
            return data.data  # a graph may keep it
    return _plain_operand(array) if data is None else data


def _read_member(session: Session, array: Any, member: Member) -> Tensor:
    """Return the tensor that a session reads for an array from outside of the session."""
    if member.kind is STAND_IN:
        raise NoDenseOperand(
            f"An array of {array._dtype or array.stype} has a gradient here, and torch has none of "
            "its kind. Convert it first: x.astype('float32'), or x.tostype('default')."
        )
    if is_constant_now(array, session):
        return _plain_operand(array).data
    return member.tensor  # pyright: ignore[reportReturnType] (only members with tensors come here)


def _plain_operand(array: Any) -> Tensor:
    if array._dtype is None:
        raise NoDenseOperand(
            f"An array of storage type {array.stype} came where a dense one is needed. Convert it: "
            "x.tostype('default')."
        )
    return plain(array)


def written_in(session: Session | None, array: Any) -> Tensor:
    """Return the tensor of an input that an operator writes into, such as a moving average."""
    data = array._data
    if data is None or graph_tensor(array) is not None:
        return operand_in(session, array)
    return data


def wrap(cls: type[ArrayT], tensor: Tensor, ctx: Context | None = None) -> ArrayT:
    """Return a new array that wraps an operator's result."""
    array = new_object(cls)
    if tensor.requires_grad:
        array._data = None
        array._member = Member(tensor, state.session or Session(), UNKNOWN)
    else:
        array._data, array._member = tensor, None
    array._dtype = tensor.dtype
    array._ctx = ctx
    array._grad = None
    return array


def wrap_constant(
    cls: type[NDArray],
    tensor: Tensor,
    dtype: torch.dtype,
    session: Session,
    step: Step,
    sources: Sequence[Any],
    *details: Any,
) -> NDArray:
    """Wrap the result of a recorded step without a gradient, computed from `sources`."""
    array = new_object(cls)
    array._data, array._dtype, array._ctx = tensor, dtype, sources[0]._ctx
    array._grad = array._member = None
    for source in sources:
        if source is not None and (graph_tensor(source) is not None or is_constant(source)):
            make_constant(array, session, step_node(step, sources, *details), sources)
            break
    return array


def wrap_plain(cls: type[ArrayT], tensor: Tensor, ctx: Context | None = None) -> ArrayT:
    """Return a new array that wraps a tensor outside of any graph."""
    array = new_object(cls)
    array._data, array._ctx, array._dtype = tensor, ctx, tensor.dtype
    array._grad = array._member = None
    return array


def alias(array: Any) -> Any:
    """Return another array on the same memory and with the same node of the graph.

    It has no gradient array of its own.
    """
    other = new_object(type(array))
    other._data, other._member, other._grad = array._data, array._member, None
    other._dtype, other._ctx = array._dtype, array._ctx
    return other


def set_empty(array: Any) -> None:
    """Fill the slots of an array that holds no tensor: sparse, or not unpickled yet."""
    array._data = array._member = array._dtype = array._ctx = array._grad = None


def set_plain(array: Any, tensor: Tensor, ctx: Context | None) -> None:
    """Fill the slots of an array that holds a tensor outside any graph, and nothing else."""
    array._data, array._ctx, array._dtype = tensor, ctx, tensor.dtype
    array._grad = array._member = None


def set_leaf(array: Any, leaf: Tensor, record: Any) -> None:
    """Make an array a leaf of graphs. The record says where its gradient is stored."""
    kind = LEAF if leaf.dtype is array._dtype else STAND_IN
    array._member, array._grad = Member(leaf, None, record, kind), record


def set_member(array: Any, tracked: Tensor, session: Session | None) -> None:
    """Make an array a member of a graph; `tracked` has the values that it holds."""
    session = session or Session()
    is_stand_in = tracked.dtype is not array._dtype
    array._member = Member(tracked, session, UNKNOWN, STAND_IN if is_stand_in else RECORDED)


def leave_graphs(array: Any, record: Any = None) -> None:
    """Remove an array from all graphs; a record may still say that it has a gradient array."""
    array._member, array._grad = None, record


def writable(array: Any) -> Tensor:
    """Return the tensor to write into. Members of the graph raise an error inside `record()`."""
    member = array._member
    if array._dtype is None:
        raise NoDenseOperand(
            f"An array of storage type {array.stype} has no dense memory to write into. Assign "
            "to all of it, x[:] = value, or convert it: x.tostype('default')."
        )
    if state.session is not None and _is_in_graph(array, member, state.session):
        raise MXNetError(
            "Assigning to NDArrays that are already in a computational graph will cause undefined "
            "behavior when evaluating gradients. Please call backward first to clear the graph or "
            "do this out side of a record section. Also note that you cannot use inplace "
            "operations like +=, *=, relu(x, out=x), y[idx]=x, etc inside a record section."
        )
    return plain(array)


def _is_in_graph(array: Any, member: Member | None, session: Session) -> bool:
    """Return whether the graph that a session records needs an array's values."""
    if member is None or member.tensor is None:
        return False
    return not is_constant_now(array, session)


def is_same_memory(first: Tensor, second: Tensor) -> bool:
    """Return whether two tensors start at the same address."""
    return first.data_ptr() == second.data_ptr() and first.device == second.device
