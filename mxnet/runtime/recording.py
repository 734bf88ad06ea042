"""What made a recorded array: operators without arrays, for `autograd.get_symbol` and backward.

A recorded array has a *node*, which says what step made it of which other nodes (`step_node`). The
node of an array with a gradient is its gradient record, that of any other one an `Untracked`. Its
`Member` has the node, and what represents the array in torch's graph. No node refers to an array's
data, and a node lives no longer than torch's graph of the same results: an array whose graph is
used up forgets it.

Torch's graph ends at results without gradients, such as those of `BlockGrad` and comparisons; nodes
continue. A session where that happened *hides* arrays: backward looks for them, to write zeros.

Backward uses a graph up: arrays that were members of it continue as constants. Old programs rely on
this. A recurrent net's state goes from batch to batch without being detached (``for s in state:
s.detach()`` does nothing), and backward still ends where the batch began. Whether an array's graph
is used up is determined when a later session takes the array.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import torch
from torch import Tensor

from ..error import MXNetError
from ..ops.gradients import OutputLayers, comes_from_output_layer, keep_path
from .state import IntegerSession, Session, state

if TYPE_CHECKING:
    from ..graph.graph import Graph
    from ..ndarray.ndarray import NDArray
    from ..ndarray.sparse import BaseSparseNDArray
    from ..ops.declare import Op

DIFFERENTIABLE = frozenset({torch.float32, torch.float64, torch.float16, torch.bfloat16})


class Step:
    """What makes results of inputs."""

    __slots__ = ()


class Call(Step):
    """A call of an operator; a number among its inputs is the operator's `scalar`."""

    __slots__ = ("attrs", "op")

    def __init__(self, op: Op, attrs: Mapping[str, Any] | None = None) -> None:
        self.op, self.attrs = op, attrs or {}


class GraphRun(Step):
    """A run of a graph, with one input for each of its variables."""

    __slots__ = ("graph",)

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class FunctionRun(Step):
    """A call of a function that a user wrote with its gradient; it keeps the shapes of results."""

    __slots__ = ("shapes",)

    def __init__(self, shapes: list[tuple[int, ...]]) -> None:
        self.shapes = shapes


class Result(Step):
    """One of several results of a step; the detail is its number."""

    __slots__ = ()


class Indexing(Step):
    """A read of a part; the details are the key and the shape of the part."""

    __slots__ = ()


class Gathering(Step):
    """A read by lists of indices; the details represent them, and those in the graph."""

    __slots__ = ()


class Reshaping(Step):
    """A change of the shape; the detail is the shape."""

    __slots__ = ()


class Copying(Step):
    """A copy."""

    __slots__ = ()


class _Unknown(Step):
    __slots__ = ()


class Untracked:
    """Represents an array without a gradient."""

    __slots__ = ()


class Leaf:
    """Represents an array with a gradient: the base of gradient records."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        _leaf_kinds.add(cls)


_leaf_kinds: set[type] = set()  # faster than isinstance


# What made an array: a step (see `step_node`), or what represents an array that no step made.
HistoryNode: TypeAlias = "tuple[Any, ...] | Leaf | Untracked"

RESULT, INDEXING, GATHERING = Result(), Indexing(), Gathering()
RESHAPING, COPYING = Reshaping(), Copying()
UNKNOWN_STEP = _Unknown()
UNKNOWN: HistoryNode = (UNKNOWN_STEP,)  # of recorded arrays of which nothing is known


class Member:
    """What an array is to recordings; an array that none has met has no member.

    Parameters
    ----------
    tensor : represents the array in torch's graph; None where nothing flows back.
    session : the recording that made it; None for what belongs to every one.
    node : what made it, or represents it.
    """

    __slots__ = ("node", "session", "tensor")

    def __init__(self, tensor: Tensor | None, session: Session | None, node: HistoryNode) -> None:
        self.tensor, self.session, self.node = tensor, session, node


class LeafMember(Member):
    """Graphs begin at the array; its node is the record of where its gradient goes."""

    __slots__ = ()


class Recorded(Member):
    """A recorded operator made the array."""

    __slots__ = ()


class Constant(Member):
    """A recorded operator made the array, but nothing flows back from it: ``x > 0``.

    Later sessions take it for any other array.
    """

    __slots__ = ()


class Input(Member):
    """A recorded operator has read the array, which is in no graph."""

    __slots__ = ()


def graph_tensor(array: Any) -> Tensor | None:
    """Return what represents an array in torch's graph, if it is in one."""
    member = array._member
    return None if member is None else member.tensor


def is_constant(array: Any) -> bool:
    """Return whether a recorded operator without a gradient made an array."""
    return type(array._member) is Constant


def step_node(step: Step, sources: Iterable[Any], *details: Any) -> tuple[Any, ...]:
    """Return the node of what a step made of arrays: their nodes, then the details of the step.

    The hottest code, which `Handle` names, has this tuple in its own lines.
    """
    return (step, *[None if a is None else node_of(a) for a in sources], *details)


def step_of(node: HistoryNode) -> Step | None:
    """Return the step that made a node; None for one that represents an array."""
    return node[0] if type(node) is tuple else None


def details_of(node: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the details of a step that has one source."""
    return node[2:]


def numbers_of(node: tuple[Any, ...]) -> list[int | float]:
    """Return the numbers among the inputs of a step."""
    return [n for n in node[1:] if type(n) in (int, float)]


def node_of(array: Any) -> HistoryNode:
    """Return the node of an array in the recording of now."""
    member = array._member
    if member is None:
        if getattr(array, "_ghost", None) is not None:
            return UNKNOWN
        member = array._member = Input(None, None, Untracked())
    elif type(member) is Constant and member.session is not state.session:
        member = array._member = Input(None, None, Untracked())
    return member.node


def inputs_of(node: HistoryNode) -> list[HistoryNode]:
    """Return the nodes of a step's inputs, without the keys and shapes beside them."""
    if type(node) is not tuple:
        return []
    return [n for n in node[1:] if _is_made(n) or isinstance(n, Untracked | Leaf)]


def _is_made(node: Any) -> bool:
    return type(node) is tuple and len(node) > 0 and isinstance(node[0], Step)


def leaves_of(nodes: Iterable[HistoryNode]) -> set[Any]:
    """Return the gradient records of all arrays that some recorded arrays were made of."""
    seen: set[int] = set()
    leaves: set[Any] = set()
    waiting: list[Any] = [tuple(nodes)]
    for node in waiting:
        for each in node:  # a step, numbers and keys among them
            kind = type(each)
            if kind is tuple:
                if id(each) not in seen:
                    seen.add(id(each))
                    waiting.append(each)
            elif kind in _leaf_kinds:
                leaves.add(each)
    return leaves


def may_come_from(nodes: Iterable[HistoryNode], target: HistoryNode) -> bool:
    """Return whether some recorded arrays were made of another, as far as their history is known.

    >>> x, other = Untracked(), Untracked()
    >>> may_come_from([(COPYING, x)], x), may_come_from([(COPYING, x)], other)
    (True, False)
    """
    seen: set[int] = set()
    waiting = [tuple(nodes)]
    for node in waiting:
        for each in node:
            if each is target or each is UNKNOWN:
                return True
            if type(each) is tuple and id(each) not in seen:
                seen.add(id(each))
                waiting.append(each)
    return False


def record_step(outputs: Any, step: Step, inputs: Sequence[Any], *details: Any) -> None:
    """Set the nodes of a step's results, if any of its inputs is recorded."""
    session = state.session
    if session is None or not any(map(_is_recorded, inputs)):
        return
    if isinstance(step, Call) and step.op.facts.without_gradient:
        hide_inputs(step.op, inputs, session)
    several = isinstance(outputs, list | tuple)
    node = step_node(step, inputs, *details)
    for index, array in enumerate(outputs if several else (outputs,)):
        own = (RESULT, node, index) if several else node
        member = array._member
        if member is not None and member.tensor is not None:
            member.node = own
        elif getattr(array, "_ghost", None) is not None:
            array._member = Recorded(None, session, own)
        elif array._grad is None:
            make_constant(array, session, own, inputs)


def hide_inputs(op: Op, inputs: Sequence[Any], session: Session) -> None:
    """Note that backward must look for indices, conditions and shapes: torch does not see them."""
    for name in op.facts.without_gradient:
        index = op.input_index[name]
        if index < len(inputs) and inputs[index] is not None:
            session.hides |= graph_tensor(inputs[index]) is not None


def _is_recorded(array: Any) -> bool:
    if array is None:
        return False
    if graph_tensor(array) is not None or is_constant(array):
        return True
    return getattr(array, "_ghost", None) is not None


def make_constant(array: Any, session: Session, node: tuple, inputs: Sequence[Any]) -> None:
    """Remember that a recorded operator without a gradient made this from members of a graph.

    Backward from such an array is not an error, it just finds zeros: ``(x > 0).backward()``.
    """
    array._member = Constant(None, session, node)
    session.hides = True
    if OutputLayers.recorded and array._dtype in DIFFERENTIABLE:
        _keep_path(array, session, node, inputs)


def _keep_path(array: Any, session: Session, node: tuple, inputs: Sequence[Any]) -> None:
    """Keep the path on which backward from an array reaches the output layers behind it."""
    tensors = [graph_tensor(a) for a in inputs if a is not None]
    sources = [
        t for t in tensors if t is not None and t.requires_grad and comes_from_output_layer(t)
    ]
    if sources:
        array._member = Recorded(keep_path(array._data, sources), session, node)
        array._data = None


# -- graphs that backward has used up -----------------------------------------------------------


class IntegerInGraph(MXNetError):
    """A member of a graph has an integer type; `gradient.run_on_integers` runs operators on it."""


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
    """Return the tensor that represents an array of an earlier session in this one."""
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
    """Return where backward began, in a session and in all that continued from it."""
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
        if (freed := _is_freed(current)) is not None:
            return freed
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
