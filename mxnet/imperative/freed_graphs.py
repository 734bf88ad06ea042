"""Backward uses a graph up: arrays that were members of it go on as constants.

Old programs rely on this. A recurrent net's state goes from batch to batch without being
detached (``for s in state: s.detach()`` does nothing), and backward still ends where the batch
began.

Whether an array's graph is used up is asked when a later session takes the array.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor

from ..error import MXNetError
from .state import IntegerSession, Session, state

if TYPE_CHECKING:
    from ..ndarray.ndarray import NDArray
    from ..ndarray.sparse import BaseSparseNDArray
    from .history import Member


class IntegerInGraph(MXNetError):
    """A member of a graph has an integer type; `integers` runs operators on it."""


def mark_used_up(heads: Sequence[NDArray]) -> None:
    """Remember that backward from these arrays has used their graphs up."""
    for head in heads:
        member = head._member
        if member is None or member.tensor is None:  # a constant, or a sparse array
            continue
        session = member.session
        if type(session) is IntegerSession:
            session = session.origin
        if session is None:  # a leaf
            continue
        session.finished.append(member.tensor.grad_fn)
        _become_constant(head, member)
        if session is state.session:  # backward inside record(): what follows is another session
            state.session = Session()


def reuse_across_sessions(array: NDArray, session: Session) -> Tensor:
    """Return the tensor that stands for an array of an earlier session in this one."""
    member = array._member
    if member is not None and type(member.session) is IntegerSession:
        raise IntegerInGraph(
            f"An array of {array._dtype} has a gradient here, and torch's functions of integers "
            "have none. Convert it first: x.astype('float32')."
        )
    is_constant_now(array, session)
    member = array._member
    if member is not None and member.tensor is not None:
        return member.tensor
    return array._data.data  # pyright: ignore[reportOptionalMemberAccess] (a constant has data)


def is_constant_now(array: NDArray, session: Session | None) -> bool:
    """Make an array a constant if its graph is used up; return whether that is so."""
    member = array._member
    if member is None:
        return False
    origin = member.session
    if type(origin) is IntegerSession:
        origin = origin.origin
    if origin is None or origin is session:
        return False
    starts = _ends_of(origin)
    tensor = member.tensor
    if tensor is None:
        tensor = cast("BaseSparseNDArray", array)._ghost
    if starts and tensor is not None and _is_used_up(tensor.grad_fn, starts):
        _become_constant(array, member)
        return True
    if session is not None:
        origin.later.add(session)
        session.hides |= origin.hides
    return False


def _become_constant(array: NDArray, member: Member) -> None:
    if member.tensor is None:
        cast("BaseSparseNDArray", array)._ghost = None
    elif array._data is None:
        array._data = member.tensor.data
    array._member = None


def _ends_of(session: Session) -> set:
    """Return where backward began, in a session and in all that went on from it."""
    seen, waiting = {session}, [session]
    starts = set()
    while waiting:
        here = waiting.pop()
        starts.update(here.finished)
        waiting += here.later - seen
        seen |= here.later
    starts.discard(None)
    return starts


def _is_used_up(node: Any, starts: set) -> bool:
    if node in starts:
        return True
    freed = _is_freed_below(node)
    return node in reachable(starts) if freed is None else freed


def _is_freed_below(node: Any) -> bool | None:
    """Return whether torch has freed the graph below a node; None if no node there shows it.

    A node shows it by the tensors that it saved. Of an operator made of several nodes with several
    results, backward may have come through one result only; hence the look at the nodes below.
    """
    seen, waiting = {node}, [node]
    for current in waiting:
        if (found := _is_freed(current)) is not None:
            return found
        for below, _ in current.next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                waiting.append(below)
    return None


@functools.lru_cache(maxsize=1024)
def _saved_names(kind: type) -> tuple[str, ...]:
    names = [name for name in dir(kind) if name.startswith("_saved_")]
    return (*names, *(["saved_tensors"] if hasattr(kind, "saved_tensors") else []))


def _is_freed(node: Any) -> bool | None:
    if (freed := getattr(node, "is_freed", None)) is not None:
        return freed
    for name in _saved_names(type(node)):
        try:
            saved = getattr(node, name)
        except RuntimeError as error:
            if "second time" in str(error):
                return True
            continue
        if isinstance(saved, Tensor) or (isinstance(saved, tuple) and _has_tensor(saved)):
            return False
    return None


def _has_tensor(saved: tuple) -> bool:
    return any(isinstance(s, Tensor) for s in saved)


def reachable(starts: set) -> set:
    """Return all nodes of torch's graph below some nodes, and these."""
    seen, waiting = set(starts), list(starts)
    while waiting:
        for below, _ in waiting.pop().next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                waiting.append(below)
    return seen
