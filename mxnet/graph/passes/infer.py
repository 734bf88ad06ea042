"""Inference of the shapes and data types in a graph.

Operators' rules complete the information about inputs and outputs, in both directions. Nodes with
changed neighbors are processed until nothing changes; an ordinary network needs one sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from ... import dtypes
from ..._process.caches import store
from ...base import is_np_shape
from ...error import DTypeError, FormatError, MXNetError, ShapeError
from ...ops.attributes import _Refused, parse_shape, to_string
from ...ops.shapes import UNKNOWN, Shape, unify
from ..graph import Graph
from ..node import Entry, Node

Solve = Callable[[Graph, dict[Node, Any]], tuple[list, list]]
Merge = Callable[[Any, Any], Any]


class Axis(NamedTuple):
    """The relation between a slice and the stack of all slices, for shapes or types."""

    first: Callable[[Any], int]
    slice: Callable[[Any], Any]
    stack: Callable[[Any, int], Any]
    is_of_types: bool = False


SHAPE_AXIS = Axis(
    lambda shape: shape[0] if shape else -1,
    lambda shape: (shape[1:] or (1,)) if shape else None,  # a slice of a vector has one element
    lambda shape, length: None if shape is None else (length, *shape),
)
TYPE_AXIS = Axis(lambda dtype: -1, lambda dtype: dtype, lambda dtype, length: dtype, True)


def infer_subgraphs(
    node: Node, ins: tuple, outs: tuple, solve: Solve, merge: Merge, axis: Axis
) -> tuple[tuple, tuple]:
    """Complete the inputs and outputs of a loop or branch.

    `solve` takes a graph and the known information about its variables, and returns that about its
    variables and heads.
    """
    rule = node.operator.subgraph_rule
    if rule is None:
        return ins, outs
    return rule(node, list(ins), solve, merge, axis)


def _run(
    graph: Graph, positions: Sequence[int], ins: list, solve: Solve, merge: Merge
) -> tuple[list, list]:
    """Infer one body whose variables are at `positions` among the inputs."""
    variables = graph.variables
    values = {v: ins[p] for v, p in zip(variables, positions, strict=True) if ins[p] is not None}
    solved, heads = solve(graph, values)
    for value, position in zip(solved, positions, strict=True):
        ins[position] = merge(value, ins[position])
    return ins, heads


def infer_foreach(
    node: Node, ins: list, solve: Solve, merge: Merge, axis: Axis
) -> tuple[tuple, tuple]:
    """Infer the body for one slice; states keep their type over the steps."""
    attrs, (body,) = node.typed, node.subgraphs
    n_data, n_out = len(attrs["in_data_locs"]), attrs["num_out_data"]
    order = [*attrs["in_data_locs"], *attrs["in_state_locs"], *attrs["remain_locs"]]
    positions = [order.index(i) for i in range(len(order))]
    length = _one_length([axis.first(s) for s in ins[:n_data]])
    inner = [axis.slice(s) if i < n_data else s for i, s in enumerate(ins)]
    inner, heads = _run(body, positions, inner, solve, merge)
    for i, state in enumerate(heads[n_out:], n_data):  # a state keeps its shape over the steps
        inner[i] = merge(state, inner[i])
    outer = list(inner)
    for i, data in enumerate(ins[:n_data]):
        outer[i] = data if inner[i] == axis.slice(data) else axis.stack(inner[i], length)
    stacked = [axis.stack(s, length) for s in heads[:n_out]]
    return tuple(outer), (*stacked, *inner[n_data : n_data + len(heads) - n_out])


def _one_length(lengths: list[int]) -> int:
    """Return the number of slices, which must be equal for all arrays."""
    sizes = [n for n in lengths if n > 0]
    if sizes and min(sizes) != max(sizes):
        raise ShapeError(
            "foreach: the data must have equal lengths along axis 0, but the lengths are "
            f"{lengths}."
        )
    return max(lengths, default=-1)


def infer_while_loop(
    node: Node, ins: list, solve: Solve, merge: Merge, axis: Axis
) -> tuple[tuple, tuple]:
    """Infer the condition and the body; outputs are stacked to the maximum number of steps."""
    attrs, (test, body) = node.typed, node.subgraphs
    ins, _ = _run(test, attrs["cond_input_locs"], ins, solve, merge)
    ins, heads = _run(body, attrs["func_input_locs"], ins, solve, merge)
    n_out = attrs["num_out_data"]
    steps = attrs["max_iterations"] if attrs["pad_outputs"] else -1
    stacked = [axis.stack(s, steps) for s in heads[:n_out]]
    return tuple(ins), (*stacked, *heads[n_out:])


def infer_cond(
    node: Node, ins: list, solve: Solve, merge: Merge, axis: Axis
) -> tuple[tuple, tuple]:
    """Infer the condition and both branches, whose outputs have the same type."""
    attrs, (test, then, other) = node.typed, node.subgraphs
    ins, _ = _run(test, attrs["cond_input_locs"], ins, solve, merge)
    ins, first = _run(then, attrs["then_input_locs"], ins, solve, merge)
    ins, second = _run(other, attrs["else_input_locs"], ins, solve, merge)
    return tuple(ins), tuple(merge(b, a) for a, b in zip(first, second, strict=True))


# Errors raised by rules for conflicting values.
_RULE_ERRORS = (MXNetError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)
MAX_CACHED = 20_000
MAX_SIZE = 2**63 - 1
MAX_CACHED_TEXT = 100  # maximum length of a declared shape in the cache
MAX_DIMENSIONS = 32


class Completed(NamedTuple):
    """The result of a rule: inputs and outputs, and whether each is complete."""

    ins: tuple
    outs: tuple
    has_all_ins: bool  # known before and unchanged
    has_all_outs: bool


_shape_cache: dict[tuple, Completed] = {}
_type_cache: dict[tuple, Completed] = {}


class Inferred(NamedTuple):
    """Inferred information about every entry of a graph; None (or -1 in a shape) is unknown."""

    graph: Graph
    values: dict[Node, Sequence]
    complete: bool

    def of(self, entry: Entry) -> Any:
        """Return the information about one entry."""
        return self.values[entry.node][entry.index]

    @property
    def arguments(self) -> list:
        """In the order of `Graph.arguments`."""
        return [self.values[n][0] for n in self.graph.arguments]

    @property
    def auxiliary(self) -> list:
        """In the order of `Graph.auxiliary`."""
        return [self.values[n][0] for n in self.graph.auxiliary]

    @property
    def heads(self) -> list:
        """In the order of `Graph.heads`."""
        return [self.of(e) for e in self.graph.heads]


class _Kind(NamedTuple):
    """How shapes or types are read from variables, completed by rules and merged."""

    attribute: str  # attribute of variables with the declared value
    cache: dict[tuple, Completed]
    of_variable: Callable[[Node], Any]
    step: Callable[[Node, tuple, tuple], Completed]
    merge: Callable[[Any, Any], Any]
    known: Callable[[Any], bool]
    show: Callable[[Any], str]
    error: type[MXNetError]
    axis: Axis


def infer_shapes(
    graph: Graph, known: Mapping[str, Shape | None], *, zero_is_unknown: bool = True
) -> Inferred:
    """Infer the shapes of a graph from those of some variables, by name.

    In MXNet's classic semantics a size of 0 in attributes is unknown too.
    """
    kind = _LEGACY_SHAPES if zero_is_unknown else _SHAPES
    return _solve(graph, known, kind)


def infer_from_given(graph: Graph, given: Mapping[str, Sequence[int]]) -> Inferred:
    """Infer the shapes of a graph from the user's shapes, with -1 for unknown sizes.

    Without `np_shape`, 0 is unknown too.
    """
    if is_np_shape():
        sizes = {name: tuple(max(int(n), UNKNOWN) for n in shape) for name, shape in given.items()}
        return infer_shapes(graph, sizes, zero_is_unknown=False)
    return infer_shapes(graph, {n: unknown_for_zero(tuple(map(int, s))) for n, s in given.items()})


def infer_types(graph: Graph, known: Mapping[str, Any], default: Any = None) -> Inferred:
    """Infer the (torch) data types of a graph from those of some variables, by name.

    Variables whose type cannot be inferred get the `default`, as in MXNet's bind.
    """
    inferred = _solve(graph, known, _TYPES)
    if default is None or inferred.complete:
        return inferred
    open_ones = {n.name: default for n in graph.variables if inferred.values[n][0] is None}
    return _solve(graph, {**open_ones, **known}, _TYPES)


def _solve(graph: Graph, known: Mapping[str, Any], kind: _Kind) -> Inferred:
    return _solve_from(graph, {n: known.get(n.name) for n in graph.variables}, kind)


def _solve_from(graph: Graph, known: Mapping[Node, Any], kind: _Kind) -> Inferred:
    inferred = _sweep_once(graph, known, kind)
    if inferred is not None:
        return inferred
    values = {
        node: [_start(node, known, kind)] if node.op is None else [None] * node.signature.outputs
        for node in graph.nodes
    }
    _sweep_until_stable(graph, values, kind)
    complete = all(map(kind.known, chain.from_iterable(values.values())))
    return Inferred(graph, {**values}, complete)


def _sweep_once(graph: Graph, known: Mapping[Node, Any], kind: _Kind) -> Inferred | None:
    """Infer in one forward sweep; return None if that is not enough.

    It is enough for nearly all networks, in which each node completes only its own variables.
    """
    cache, mode, attribute = kind.cache, is_np_shape(), kind.attribute
    values: dict[Node, Sequence] = {}
    open_ones: set[Node] = set()  # incomplete variables that a node has read
    is_complete = True
    for node in graph.nodes:
        if node.op is None:
            declares = attribute in node.extra
            values[node] = (_start(node, known, kind) if declares else known.get(node),)
            continue
        entries = node.inputs
        if node.subgraphs or not entries:
            return None
        ins = tuple([values[e[0]][e[1]] for e in entries])
        _, _, _, key, outs, _ = node._signature or node.signature
        completed = cache.get((key, ins, outs, mode))
        if completed is None:
            try:
                completed = kind.step(node, ins, outs)
            except _RULE_ERRORS:
                return None  # the full search raises the error
        new_ins, values[node], has_all_ins, has_all_outs = completed
        is_complete = is_complete and has_all_outs
        if not has_all_ins and not _complete_variables(
            entries, new_ins, ins, values, open_ones, kind
        ):
            return None
    # Other variables are known: the nodes that read them had all of their inputs.
    heads = [e[0] for e in graph.heads if e[0].op is None]
    is_complete = is_complete and all(kind.known(values[n][0]) for n in (*open_ones, *heads))
    return Inferred(graph, values, is_complete)


def _complete_variables(
    entries: Sequence[Entry],
    new_ins: tuple,
    ins: tuple,
    values: dict[Node, Sequence],
    open_ones: set[Node],
    kind: _Kind,
) -> bool:
    """Store the information about a node's variables; return False if other nodes need it."""
    for entry, new, old in zip(entries, new_ins, ins, strict=True):
        maker = entry[0]
        if new != old and new is not None:
            if maker.op is not None or maker in open_ones:
                return False
            (here,) = values[maker]
            if here is not None and here != old:  # read twice by this node
                new = kind.merge(new, here)
            values[maker] = (new,)
        if maker.op is None and (new is None or not kind.known(new)):
            open_ones.add(maker)
    return True


def _sweep_until_stable(graph: Graph, values: dict[Node, list], kind: _Kind) -> None:
    """Process nodes with changed neighbors, forward and backward, until none is left."""
    nodes, consumers = graph.nodes, graph.consumers
    waiting = {position for position, node in enumerate(nodes) if node.op is not None}
    order = range(len(nodes))
    while waiting:
        for position in order:
            if position not in waiting:
                continue
            for changed in _complete(nodes[position], values, kind):
                waiting.update(consumers[changed])
                if changed.op is not None:
                    waiting.add(graph.position[changed])
            waiting.remove(position)
        order = order[::-1]


def _complete(node: Node, values: dict[Node, list], kind: _Kind) -> list[Node]:
    """Apply the rule of a node; return the nodes with new information about their results."""
    ins = tuple([values[e[0]][e[1]] for e in node.inputs])
    outs = tuple(values[node])
    changed: list[Node] = []
    try:
        if node.subgraphs:
            new_ins, new_outs = _solve_subgraphs(node, ins, outs, kind)
        else:
            new_ins, new_outs, *_ = kind.step(node, ins, outs)
        if new_outs != outs:
            entries = [(node, i) for i in range(len(outs))]
            changed += _merge(values, entries, new_outs, outs, kind)
        if new_ins != ins:
            changed += _merge(values, node.inputs, new_ins, ins, kind)
    except MXNetError as error:
        raise _explain(node, ins, outs, kind, error) from None
    except _RULE_ERRORS as error:
        raise _explain(node, ins, outs, kind, error) from error
    return changed


def _merge(
    values: dict[Node, list],
    entries: Sequence[tuple],
    new_values: tuple,
    before: tuple,
    kind: _Kind,
) -> list[Node]:
    """Merge the result of a rule into the values; return the nodes with new information."""
    changed = []
    for entry, new, old in zip(entries, new_values, before, strict=True):
        if new is None or new == old:
            continue
        slots, index = values[entry[0]], entry[1]
        current = slots[index]
        merged = new if current is None else kind.merge(new, current)
        if merged != current:
            slots[index] = merged
            changed.append(entry[0])
    return changed


def _start(node: Node, known: Mapping[Node, Any], kind: _Kind) -> Any:
    """Return the initial information about a variable."""
    value = known.get(node)
    if kind.attribute not in node.extra:
        return value
    if value is not None and kind.known(value):
        return value
    declared = kind.of_variable(node)
    if declared is None or value is None:
        return value if declared is None else declared
    try:
        return kind.merge(value, declared)
    except MXNetError:
        return declared  # as in MXNet, the declared shape takes precedence over a partial one


def _explain(node: Node, ins: tuple, outs: tuple, kind: _Kind, error: Exception) -> MXNetError:
    """Return the error with the node, its operator, its inputs and the user's line."""
    text = str(error)
    if isinstance(error, ShapeError) and "differ: expected" in text:
        text = f"Shape inconsistent, {text}"
    elif not isinstance(error, MXNetError):
        text = f"{type(error).__name__} in the rule of {node.operator.name}: {text}"
    inputs = ", ".join(
        f"{name}={e.node.output_names()[e.index]}:{kind.show(value)}"
        for name, e, value in zip(_names(node), node.inputs, ins, strict=True)
    )
    outputs = "".join(
        f", output {i} is {kind.show(v)}" for i, v in enumerate(outs) if v is not None
    )
    explained = (type(error) if isinstance(error, MXNetError) else kind.error)(
        f"Error in operator {node.name}: {text} "
        f"[{node.operator.name}({inputs}){outputs}{_made_at(node)}]"
    )
    explained.node = node.name
    return explained


def _names(node: Node) -> Sequence[str]:
    names = node.input_names
    return names if len(names) == len(node.inputs) else [f"arg{i}" for i in range(len(node.inputs))]


def _made_at(node: Node) -> str:
    return f", made at {node.source[0]}:{node.source[1]}" if node.source else ""


def _solve_subgraphs(node: Node, ins: tuple, outs: tuple, kind: _Kind) -> tuple[tuple, tuple]:
    """Complete a node with subgraphs."""

    def solve(graph: Graph, known: dict[Node, Any]) -> tuple[list, list]:
        inferred = _solve_from(graph, known, kind)
        return [inferred.values[n][0] for n in graph.variables], inferred.heads

    return infer_subgraphs(node, ins, outs, solve, kind.merge, kind.axis)


def _apply_rule(
    cache: dict[tuple, Completed],
    is_known: Callable[[Any], bool],
    node: Node,
    ins: tuple,
    outs: tuple,
    rule: Callable,
) -> Completed:
    signature = node.signature
    key = (signature.key, ins, outs, is_np_shape())  # rules depend on the mode
    completed = cache.get(key)
    if completed is None:
        new_ins, new_outs = map(tuple, rule(list(ins), list(outs), signature.attrs))
        has_all_ins = new_ins == ins and all(map(is_known, ins))
        completed = Completed(new_ins, new_outs, has_all_ins, all(map(is_known, new_outs)))
        if not node.operator.free_attributes:  # rules of custom operators may change over time
            store(cache, key, completed, MAX_CACHED)
    return completed


def _shape_step(node: Node, ins: tuple, outs: tuple) -> Completed:
    rule = node.operator.infer_shapes
    return _apply_rule(_shape_cache, _is_known_shape, node, ins, outs, rule)


def _legacy_shape_step(node: Node, ins: tuple, outs: tuple) -> Completed:
    """Treat sizes of 0 in an operator's attributes as unknown."""
    if not node.inputs:
        # Its consumers complete it: zeros((0, 2)) + x.
        declared = node.operator.infer_shapes([], [None] * len(outs), node.signature.attrs)[1]
        merged = [merge_shapes(unknown_for_zero(s), o) for s, o in zip(declared, outs, strict=True)]
        return Completed((), tuple(merged), True, all(map(_is_known_shape, merged)))
    return _shape_step(node, ins, outs)


def _type_step(node: Node, ins: tuple, outs: tuple) -> Completed:
    rule = node.operator.infer_types
    return _apply_rule(_type_cache, _is_known_type, node, ins, outs, rule)


def unknown_for_zero(shape: Shape | None) -> Shape | None:
    """Convert a shape in classic semantics: unknown sizes become -1.

    >>> unknown_for_zero((0, 3)), unknown_for_zero(())
    ((-1, 3), None)
    """
    if not shape:
        return None
    if min(shape) > 0:
        return shape
    return tuple(n if n > 0 else UNKNOWN for n in shape)


def merge_shapes(new: Shape | None, old: Shape | None) -> Shape | None:
    """Merge two shapes like `unify`; conflicts name the older one first."""
    return new if new == old else unify(old, new, "shapes")


def _merge_types(new: Any, old: Any) -> Any:
    if old is None or new is old:
        return new
    if new is None:
        return old
    raise DTypeError(
        f"data types differ: expected {dtypes.to_name(old)}, got {dtypes.to_name(new)}"
    )


def variable_shape(node: Node) -> Shape | None:
    """Return the declared shape of a variable (``__shape__``), with sizes of 0 kept."""
    text = node.extra.get("__shape__")
    if text is None:
        return None
    is_short = isinstance(text, str) and len(text) < MAX_CACHED_TEXT
    shape = _parse_short_shape(text) if is_short else _parse_declared_shape(text)
    if shape is None:
        raise FormatError(f"Variable {node.name}: __shape__={text[:80]!r} is not a shape.")
    return shape


def _parse_declared_shape(text: str) -> Shape | None:
    """Parse a shape; return None if invalid."""
    try:
        shape = parse_shape(text)
    except (_Refused, OverflowError):
        return None
    return None if len(shape) > MAX_DIMENSIONS or any(n > MAX_SIZE for n in shape) else shape


# A network has hundreds of parameters, but few different shapes.
_parse_short_shape = lru_cache(4096)(_parse_declared_shape)


def variable_type(node: Node) -> Any:
    """Return the declared torch dtype of a variable (``__dtype__``, a code)."""
    text = node.extra.get("__dtype__")
    if text is None or text == "-1":
        return None
    row = dtypes.BY_CODE.get(int(text)) if text.isdecimal() else dtypes.BY_NAME.get(text)
    if row is None:
        raise FormatError(f"Variable {node.name}: __dtype__={text[:80]!r} is not a data type.")
    return row.torch


def _exact_variable_shape(node: Node) -> Shape | None:
    shape = variable_shape(node)
    return None if shape is None else tuple(n if n >= 0 else UNKNOWN for n in shape)


def _show_shape(shape: Shape | None) -> str:
    if shape is None:
        return "unknown"
    return "(" + ", ".join("?" if n == UNKNOWN else str(n) for n in shape) + ")"


def _is_known_shape(shape: Shape | None) -> bool:
    return shape is not None and UNKNOWN not in shape


def _is_known_type(dtype: Any) -> bool:
    return dtype is not None


_SHAPES = _Kind(
    "__shape__",
    _shape_cache,
    _exact_variable_shape,
    _shape_step,
    merge_shapes,
    _is_known_shape,
    _show_shape,
    ShapeError,
    SHAPE_AXIS,
)
_LEGACY_SHAPES = _SHAPES._replace(
    of_variable=lambda node: unknown_for_zero(variable_shape(node)), step=_legacy_shape_step
)
_TYPES = _Kind(
    "__dtype__",
    _type_cache,
    variable_type,
    _type_step,
    _merge_types,
    _is_known_type,
    lambda t: "unknown" if t is None else to_string(t),
    DTypeError,
    TYPE_AXIS,
)
