"""Recordings: sessions, the entries of arrays in them, and the history of recorded arrays.

`mxnet.autograd` is the public interface. Each `record()` scope is a `Session`. An array that a
session has read or computed has a `Member`: its tensor in torch's graph, and its *node*, which
holds the step that computed it and the nodes of the inputs (`step_node`). The node of an array with
a gradient is its gradient record. The node of any other array that no step computed is a `Source`.
Nodes hold no reference to an array's data. An array drops its node when torch's graph is freed.

Torch's graph ends at results without gradients, such as those of `BlockGrad` and comparisons, but
nodes continue. Backward uses them to find leaves that torch did not reach, and writes zeros there.

Backward frees a graph: arrays that were members of it continue as constants. Old programs rely on
this. A recurrent net's state is passed from batch to batch without being detached (``for s in
state: s.detach()`` does nothing), and backward still ends where the batch began. Whether an array's
graph is freed is determined when a later session reads the array.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from ..ops.gradients import (
    OutputLayers,
    comes_from_output_layer,
    keep_path,
    nodes_below,
    walk,
)
from ..torch_private import is_freed

if TYPE_CHECKING:
    from ..ndarray.ndarray import NDArray
    from ..ops.declare import Op

DIFFERENTIABLE = frozenset({torch.float32, torch.float64, torch.float16, torch.bfloat16})


class Session:
    """One recording. Members of recorded arrays refer to their session."""

    __slots__ = ("finished", "has_torch_leaves", "later", "leaves", "runs_user_code")

    def __init__(self) -> None:
        # The arrays with gradients that were read: records, and leaves in the graph.
        self.leaves: dict[Any, Tensor] = {}
        self.has_torch_leaves = False  # whether torch code added tensors to the graph
        self.runs_user_code = False  # whether backward runs user code
        self.finished: list[Any] = []  # torch's nodes from which backward has freed graphs
        self.later: set[Session] = set()  # sessions that continued from its arrays

    def continue_from(self, earlier: Session) -> None:
        """Include the graph of an array of an earlier session."""
        earlier.later.add(self)
        self.has_torch_leaves |= earlier.has_torch_leaves
        self.runs_user_code |= earlier.runs_user_code
        self.leaves.update(earlier.leaves)


class AutogradState(threading.local):
    """Thread-local state of autograd. Class attributes are the defaults of each new thread."""

    session: Session | None = None  # set while this thread records
    training = False
    # Value of `train_mode=` in the current backward call, for user-defined gradients.
    backward_training = True
    # Gradients that leaf hooks received in the current backward; see `gradients.Received`.
    found: Any = None
    # Arrays that currently replace those of parameters; see `gluon.torch_module`.
    substitutes: dict[Any, Any] | None = None
    # The custom operator whose Python code is running. Profiles use its name as prefix.
    custom_operator: str | None = None

    @property
    def recording(self) -> bool:
        """Whether operators are being recorded in this thread."""
        return self.session is not None


state = AutogradState()


@contextmanager
def backward_mode(training: bool) -> Iterator[None]:
    """Run user-defined gradients in training or prediction mode."""
    previous, state.backward_training = state.backward_training, bool(training)
    try:
        yield
    finally:
        state.backward_training = previous


# -- nodes: the history of arrays ---------------------------------------------------------------


class StepKind(Enum):
    """The kind of a recorded step."""

    CALL = "a call of an operator; a number among its inputs is the operator's `scalar`"
    GRAPH = "a run of a graph, with one input for each of its variables"
    FUNCTION = "a function that a user wrote with its gradient; it keeps the shapes of results"
    RESULT = "one of several results of a step; the detail is its index"
    INDEXING = "a slicing; the details are the index and the shape of the result"
    GATHERING = "an indexing by arrays; the details represent the indices"
    RESHAPING = "a change of the shape; the detail is the shape"
    COPYING = "a copy"
    UNKNOWN = "something that is not an operator"


class Step:
    """A step: its kind, and its operator, graph or shapes.

    `labels` are the positions of inputs whose gradients are not written.
    """

    __slots__ = ("attrs", "kind", "labels", "what")

    def __init__(
        self,
        kind: StepKind,
        what: Any = None,
        attrs: Mapping[str, Any] | None = None,
        labels: Container[int] = (),
    ) -> None:
        self.kind, self.what, self.attrs, self.labels = kind, what, attrs or {}, labels


def call_step(op: Op, attrs: Mapping[str, Any] | None = None) -> Step:
    """Return the step of an operator's call."""
    has_labels = op.facts.loss or op.facts.has_labels
    return Step(CALL, op, attrs, range(1, len(op.inputs)) if has_labels else ())


class Source:
    """Node of an array that was not computed by a recorded step.

    Gradient records are the subclass for arrays with a gradient.
    """

    __slots__ = ()


# The history of an array: a step (see `step_node`), or a source that no step computed.
HistoryNode: TypeAlias = "tuple[Any, ...] | Source"

CALL = StepKind.CALL
RESULT, INDEXING = Step(StepKind.RESULT), Step(StepKind.INDEXING)
GATHERING, RESHAPING = Step(StepKind.GATHERING), Step(StepKind.RESHAPING)
COPYING, UNKNOWN_STEP = Step(StepKind.COPYING), Step(StepKind.UNKNOWN)
UNKNOWN: HistoryNode = (UNKNOWN_STEP,)  # of recorded arrays with an unknown history


# -- members: the roles of arrays in recordings -------------------------------------------------


class Kind(Enum):
    """The role of an array in recordings."""

    LEAF = "graphs begin at the array; its node is the record of its gradient"
    TORCH_LEAF = "the array of a parameter of torch code, whose gradient is torch's affair"
    RECORDED = "a recorded operator made the array"
    STAND_IN = "its tensor carries gradients, but no values: of integers and sparse arrays"
    CONSTANT = "a recorded operator made the array, but nothing flows back from it: ``x > 0``"
    INPUT = "a recorded operator has read the array, which is in no graph"


LEAF, TORCH_LEAF, RECORDED, STAND_IN, CONSTANT, INPUT = Kind


class Member:
    """The entry of an array in a recorded graph. Arrays that were never recorded have none.

    Parameters
    ----------
    tensor : represents the array in torch's graph; None if it has no gradient.
    session : the recording that created it; None for entries of all recordings.
    node : the history of the array.
    kind : the role of the array.
    """

    __slots__ = ("kind", "node", "session", "tensor")

    def __init__(
        self,
        tensor: Tensor | None,
        session: Session | None,
        node: HistoryNode,
        kind: Kind = RECORDED,
    ) -> None:
        self.tensor = tensor
        self.session = session
        self.node = node
        self.kind = kind


def graph_tensor(array: Any) -> Tensor | None:
    """Return the tensor that represents an array in torch's graph, or None."""
    member = array._member
    return None if member is None else member.tensor


def is_constant(array: Any) -> bool:
    """Return whether an array is the result of a recorded operator without a gradient."""
    member = array._member
    return member is not None and member.kind is CONSTANT


def is_stand_in(array: Any) -> bool:
    """Return whether a placeholder that only carries gradients represents an array in a graph."""
    member = array._member
    return member is not None and member.kind is STAND_IN


def enter_leaf(member: Member, session: Session) -> None:
    """Register a leaf with the session, so that backward computes its gradient."""
    if member.kind is TORCH_LEAF:
        session.has_torch_leaves = True
    elif type(member.node) is not tuple:  # else an executor requests its gradient itself
        session.leaves[member.node] = member.tensor  # pyright: ignore[reportArgumentType]


def step_node(step: Step, sources: Iterable[Any], *details: Any) -> tuple[Any, ...]:
    """Return the node of a step's result: the step, the nodes of its inputs, then details.

    The hottest code (see `Handle`) creates this tuple inline.
    """
    node: list[Any] = [step]
    for array in sources:
        member = None if array is None else array._member
        if member is not None and member.kind is not CONSTANT:
            node.append(member.node)
        else:
            node.append(None if array is None else node_of(array))
    return (*node, *details)


def details_of(node: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the details of a step that has one source."""
    return node[2:]


def numbers_of(node: tuple[Any, ...]) -> list[int | float]:
    """Return the numbers among the inputs of a step."""
    return [n for n in node[1:] if type(n) in (int, float)]


def node_of(array: Any) -> HistoryNode:
    """Return the node of an array in the current recording."""
    member = array._member
    if member is None or (member.kind is CONSTANT and member.session is not state.session):
        member = array._member = Member(None, None, Source(), INPUT)
    return member.node


def inputs_of(node: HistoryNode, with_labels: bool = True) -> list[HistoryNode]:
    """Return the nodes of a step's inputs, without details such as keys and shapes."""
    if type(node) is not tuple or not _is_made(node):
        return []
    labels = () if with_labels else node[0].labels
    rows = enumerate(node[1:])
    return [n for i, n in rows if (_is_made(n) or isinstance(n, Source)) and i not in labels]


def _is_made(node: Any) -> bool:
    return type(node) is tuple and len(node) > 0 and isinstance(node[0], Step)


def leaves_of(nodes: Iterable[HistoryNode]) -> set[Any]:
    """Return the gradient records of all arrays that backward from these nodes reaches.

    Labels and lengths that losses read are excluded.
    """
    history = _history_of(nodes, lambda node: inputs_of(node, with_labels=False))
    return {i for i in history if isinstance(i, Source) and type(i) is not Source}


def may_come_from(nodes: Iterable[HistoryNode], target: HistoryNode) -> bool:
    """Return whether the known history of some recorded arrays contains another.

    >>> x, other = Source(), Source()
    >>> may_come_from([(COPYING, x)], x), may_come_from([(COPYING, x)], other)
    (True, False)
    """
    return any(item is target or item is UNKNOWN for item in _history_of(nodes))


def _history_of(
    nodes: Iterable[HistoryNode], inputs: Callable[[Any], Iterable[Any]] = lambda node: node
) -> Iterator[Any]:
    """Yield everything in the history of some nodes: nodes, and by default steps and details."""
    seen: set[int] = set()  # identities: details need not be hashable
    waiting: list[Any] = list(nodes)
    for item in waiting:
        yield item
        if type(item) is tuple and id(item) not in seen:
            seen.add(id(item))
            waiting.extend(inputs(item))


def record_step(outputs: Any, step: Step, inputs: Sequence[Any], *details: Any) -> None:
    """Set the nodes of a step's results, if any of its inputs is recorded."""
    session = state.session
    if session is None:
        return
    for array in inputs:
        member = None if array is None else array._member
        if member is not None and (member.tensor is not None or member.kind is CONSTANT):
            break
    else:
        return
    several = isinstance(outputs, list | tuple)
    node = step_node(step, inputs, *details)
    for index, array in enumerate(outputs if several else (outputs,)):
        own = (RESULT, node, index) if several else node
        member = array._member
        if member is not None and member.tensor is not None:
            member.node = own
        elif array._grad is None:
            make_constant(array, session, own, inputs)


def make_constant(array: Any, session: Session, node: tuple, inputs: Sequence[Any]) -> None:
    """Mark an array as the result of a recorded operator without a gradient.

    Backward from such an array is not an error; the gradients are zero: ``(x > 0).backward()``.
    """
    array._member = Member(None, session, node, CONSTANT)
    if OutputLayers.recorded and array._dtype in DIFFERENTIABLE:
        _keep_path(array, session, node, inputs)


def _keep_path(array: Any, session: Session, node: tuple, inputs: Sequence[Any]) -> None:
    """Keep an array connected to the output layers in its history, for backward."""
    tensors = [graph_tensor(a) for a in inputs if a is not None]
    sources = [
        t for t in tensors if t is not None and t.requires_grad and comes_from_output_layer(t)
    ]
    if sources:
        array._member = Member(keep_path(array._data, sources), session, node)
        array._data = None


# -- graphs that backward has freed --------------------------------------------------------------


def mark_used_up(heads: Sequence[NDArray]) -> None:
    """Record that backward from these arrays has freed their graphs."""
    for head in heads:
        member = head._member
        if member is None or member.tensor is None or member.session is None:
            continue  # a constant or a leaf
        session = member.session
        session.finished.append(member.tensor.grad_fn)
        _become_constant(head, member)
        if session is state.session:  # backward inside record(): another session follows
            state.session = Session()


def is_constant_now(array: NDArray, session: Session | None) -> bool:
    """Make an array a constant and return True if its graph is freed.

    Otherwise, the session continues from the array's session.
    """
    member = array._member
    if member is None:
        return False
    origin = member.session
    if origin is None:
        if session is not None and member.tensor is not None:
            enter_leaf(member, session)
        return False
    if origin is session:
        return False
    starts = _ends_of(origin)
    made_by = None if member.tensor is None else member.tensor.grad_fn
    if starts and made_by is not None and _is_used_up(made_by, starts):
        _become_constant(array, member)
        return True
    if session is not None:
        session.continue_from(origin)
    return False


def _become_constant(array: NDArray, member: Member) -> None:
    if array._data is None and member.kind is not STAND_IN:
        array._data = member.tensor.data  # pyright: ignore[reportOptionalMemberAccess]
    array._member = None


def _ends_of(session: Session) -> set:
    """Return the start nodes of backward passes in a session and its continuations."""
    sessions = walk([session], lambda each: each.later)
    return {end for each in sessions for end in each.finished if end is not None}


def _is_used_up(node: Any, starts: set) -> bool:
    if node in starts:
        return True
    # The saved tensors of a node show whether its graph is freed. If an operator has several nodes
    # and results, backward may have passed through one result only, so check the nodes below, too.
    shown = (freed for each in walk([node], nodes_below) if (freed := is_freed(each)) is not None)
    freed = next(shown, None)
    return node in reachable(starts) if freed is None else freed


def reachable(starts: Iterable[Any]) -> set:
    """Return these nodes of torch's graph and all nodes below them."""
    return set(walk(starts, nodes_below))
