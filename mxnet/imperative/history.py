"""What made a recorded array: operators without arrays, for `autograd.get_symbol` and backward.

A recorded array has a *node*: a tuple of the step that made it and the nodes of the step's inputs.
The node of an array with a gradient is its gradient record, that of another is a mark of its own.
No node refers to an array's data, and a node lives no longer than torch's graph of the same
results: an array whose graph is used up forgets it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .state import Session, state

if TYPE_CHECKING:
    from ..graph.graph import Graph
    from ..ops.declare import Op


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


class Result(Step):
    """One of several results: after the node of what made them all stands its number."""

    __slots__ = ()


class Indexing(Step):
    """A read of a part; after the source stand the key and the shape of the part."""

    __slots__ = ()


class Gathering(Step):
    """A read by lists of indices; after the source stands a mark of the indices."""

    __slots__ = ()


class Reshaping(Step):
    """A change of the shape; after the source stands the shape."""

    __slots__ = ()


class Copying(Step):
    """A copy."""

    __slots__ = ()


class _Unknown(Step):
    __slots__ = ()


class Mark:
    """Stands for an array without a gradient."""

    __slots__ = ()


class Leaf:
    """Stands for an array with a gradient: the base of gradient records."""

    __slots__ = ()


RESULT, INDEXING, GATHERING = Result(), Indexing(), Gathering()
RESHAPING, COPYING = Reshaping(), Copying()
UNKNOWN = (_Unknown(),)  # the node of recorded arrays that no operator made


class Constant:
    """Stands where a gradient record would: recorded, but nothing flows back from it.

    Parameters
    ----------
    session : the recording that made it; later ones take the array for any other.
    """

    __slots__ = ("node", "session")
    array, req, fresh = None, "null", False

    def __init__(self, session: Session | None) -> None:
        self.session = session
        self.node: tuple | None = None


def mark(array: Any) -> Any:
    """Return the node of an array that has none of its own yet."""
    if array._tracked is not None or getattr(array, "_ghost", None) is not None:
        return UNKNOWN
    constant = array._grad
    if type(constant) is Constant and constant.node and constant.session is state.session:
        return constant.node
    made = array._node = Mark()
    return made


def node_of(array: Any) -> Any:
    """Return the node of an array, None of an absent one."""
    return None if array is None else array._node or mark(array)


def inputs_of(node: Any) -> list[Any]:
    """Return the nodes of the inputs of what made this; there are keys and shapes, too."""
    if type(node) is not tuple:
        return []
    return [n for n in node[1:] if _is_made(n) or isinstance(n, Mark | Leaf)]


def _is_made(node: Any) -> bool:
    return type(node) is tuple and len(node) > 0 and isinstance(node[0], Step)


def note(made: Any, step: Step, inputs: Sequence[Any], *more: Any) -> None:
    """Give the results of a step their nodes, if they are recorded."""
    several = isinstance(made, list | tuple)
    node: tuple | None = None
    for index, array in enumerate(made if several else (made,)):
        constant = array._grad
        is_constant = type(constant) is Constant
        if array._tracked is None and not is_constant and getattr(array, "_ghost", None) is None:
            continue
        if node is None:
            nodes = [None if a is None else a._node or mark(a) for a in inputs]
            node = (step, *nodes, *more)
        own = (RESULT, node, index) if several else node
        if is_constant:
            constant.node = own
        else:
            array._node = own
