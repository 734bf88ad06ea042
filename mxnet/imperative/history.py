"""What made a recorded array: operators without arrays, for `autograd.get_symbol` and backward.

A recorded array has a *node*, which says what step made it of which other nodes (`step_node`). The
node of an array with a gradient is its gradient record, that of any other one an `Untracked`. Its
`Member` has the node, and what represents the array in torch's graph. No
node refers to an array's data, and a node lives no longer than torch's graph of the same results:
an array whose graph is used up forgets it.

Torch's graph ends at results without gradients, such as those of `BlockGrad` and comparisons; nodes
go on. A session where that happened *hides* arrays: backward looks for them, to write zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from ..ops.gradients import OutputLayers, comes_from_output_layer, keep_path
from .state import Session, state

if TYPE_CHECKING:
    from ..graph.graph import Graph
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
    """A read by lists of indices; the details stand for them, and for those in the graph."""

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
    """Stands for an array without a gradient."""

    __slots__ = ()


class Leaf:
    """Stands for an array with a gradient: the base of gradient records."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        _leaf_kinds.add(cls)


_leaf_kinds: set[type] = set()  # faster than isinstance


# What made an array: a step (see `step_node`), or what stands for an array that no step made.
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
    """Return the step that made a node; None for one that stands for an array."""
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
    found: set[Any] = set()
    waiting: list[Any] = [tuple(nodes)]
    for node in waiting:
        for each in node:  # a step, numbers and keys among them
            kind = type(each)
            if kind is tuple:
                if id(each) not in seen:
                    seen.add(id(each))
                    waiting.append(each)
            elif kind in _leaf_kinds:
                found.add(each)
    return found


def may_come_from(nodes: Iterable[HistoryNode], wanted: HistoryNode) -> bool:
    """Return whether some recorded arrays were made of another, as far as their history is known.

    >>> x, other = Untracked(), Untracked()
    >>> may_come_from([(COPYING, x)], x), may_come_from([(COPYING, x)], other)
    (True, False)
    """
    seen: set[int] = set()
    waiting = [tuple(nodes)]
    for node in waiting:
        for each in node:
            if each is wanted or each is UNKNOWN:
                return True
            if type(each) is tuple and id(each) not in seen:
                seen.add(id(each))
                waiting.append(each)
    return False


def record_step(made: Any, step: Step, inputs: Sequence[Any], *details: Any) -> None:
    """Set the nodes of a step's results, if any of its inputs is recorded."""
    session = state.session
    if session is None or not any(map(_is_recorded, inputs)):
        return
    if isinstance(step, Call) and step.op.facts.without_gradient:
        hide_inputs(step.op, inputs, session)
    several = isinstance(made, list | tuple)
    node = step_node(step, inputs, *details)
    for index, array in enumerate(made if several else (made,)):
        own = (RESULT, node, index) if several else node
        member = array._member
        if member is not None and member.tensor is not None:
            member.node = own
        elif getattr(array, "_ghost", None) is not None:
            array._member = Recorded(None, session, own)
        elif array._grad is None:
            make_constant(array, session, own, inputs)


def hide_inputs(op: Op, inputs: Sequence[Any], session: Session) -> None:
    """Let backward look for what is an index, a condition or a shape: torch does not see it."""
    for name in op.facts.without_gradient:
        place = op.input_index[name]
        if place < len(inputs) and inputs[place] is not None:
            session.hides |= graph_tensor(inputs[place]) is not None


def _is_recorded(array: Any) -> bool:
    if array is None:
        return False
    if graph_tensor(array) is not None or is_constant(array):
        return True
    return getattr(array, "_ghost", None) is not None


def make_constant(array: Any, session: Session, node: tuple, inputs: Sequence[Any]) -> None:
    """Remember that a recorded operator without a gradient made this from members of a graph.

    Backward from such an array is no mistake, it just finds zeros: ``(x > 0).backward()``.
    """
    array._member = Constant(None, session, node)
    session.hides = True
    if OutputLayers.recorded and array._dtype in DIFFERENTIABLE:
        _keep_path(array, session, node, inputs)


def _keep_path(made: Any, session: Session, node: tuple, inputs: Sequence[Any]) -> None:
    """Let backward from an array reach the output layers behind it."""
    tensors = [graph_tensor(a) for a in inputs if a is not None]
    sources = [
        t for t in tensors if t is not None and t.requires_grad and comes_from_output_layer(t)
    ]
    if sources:
        made._member = Recorded(keep_path(made._data, sources), session, node)
        made._data = None
