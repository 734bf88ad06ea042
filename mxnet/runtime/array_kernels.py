"""Kernels for values that torch has no gradients of: integers, and sparse arrays.

Slots hold tensors; those of such values hold the arrays themselves, and a call that may meet one
looks. Where MXNet lets a gradient flow through integers, as from ``cast(cast(x, 'int32'),
'float32')`` to ``x``, it goes through `runtime/integers`. With a sparse argument it goes through
`ndarray/sparse/dispatch`, which has MXNet's sparse kernels and its fallback to dense ones. Which
results and gradients are row_sparse or csr follows from rules on the operator records
(`ops/sparse/storage_rules.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import autograd
from ..error import MXNetError
from ..graph.graph import Graph
from ..graph.node import Entry, Node
from ..ndarray import NDArray
from ..ndarray.sparse import BaseSparseNDArray, CSRNDArray, cast_storage
from ..ndarray.sparse.creation import zeros
from ..ndarray.sparse.dispatch import run as run_sparse
from ..ops.declare import Op
from ..ops.sparse import CSR, DENSE, ROWS
from ..ops.sparse import cast_storage as op_cast_storage
from ..ops.tensor.products import dot as op_dot
from .apply import apply
from .array import plain, set_leaf, wrap
from .gradients import Gradient
from .integers import leaf_tensor, run_on_integers
from .program import Wrap
from .recording import graph_tensor, is_stand_in, state


def integer_kernels(
    graph: Graph, members: Collection[Node] = (), from_heads: bool = False
) -> Wrap | None:
    """Return what chooses kernels for a graph in which gradients flow through integers.

    `members` are variables that hold integers with gradients; `from_heads` says that gradients
    may start at outputs of integers. Returns None if there are neither such variables nor casts
    to integers that a cast to floating point follows, or that are such outputs.
    """
    casts = {n: dtype for n in graph.nodes if (dtype := _cast_dtype(n)) is not None}
    entries = {n for n, dtype in casts.items() if not dtype.is_floating_point}
    touched = _downstream(graph, {*members, *entries})
    starts = from_heads and any(e.node in entries for e in graph.heads)
    if not (members or starts or any(n in touched and n not in entries for n in casts)):
        return None

    def choose(node: Node, kernel: Callable, entries: Sequence[Entry | None]) -> Callable:
        return _dispatch_integers(node, kernel) if node in touched else kernel

    return choose


def cast_arguments(graph: Graph, arrays: Sequence[NDArray]) -> set[int]:
    """Return the positions of integer arguments that a cast reads: its gradient is theirs."""
    read = {e.node for n in graph.nodes if _cast_dtype(n) is not None for e in n.inputs}
    rows = enumerate(zip(graph.arguments, arrays, strict=True))
    return {i for i, (n, a) in rows if n in read and not plain(a).dtype.is_floating_point}


def integer_leaf(tensor: Tensor) -> NDArray:
    """Return an array of integers at which a graph begins."""
    array = wrap(NDArray, tensor)
    set_leaf(array, leaf_tensor(tensor), None)
    return array


def _cast_dtype(node: Node) -> torch.dtype | None:
    """Return what a node casts to, if it casts."""
    if node.op is None or not node.op.facts.casts:
        return None
    return node.typed["dtype"]


def _downstream(graph: Graph, sources: Collection[Node]) -> set[Node]:
    touched = set(sources)
    for node in graph.nodes:
        if any(e.node in touched for e in node.inputs):
            touched.add(node)
    return touched


def _dispatch_integers(node: Node, kernel: Callable) -> Callable:
    op, dtype = node.operator, _cast_dtype(node)
    makes_integers = dtype is not None and not dtype.is_floating_point

    def dispatching(*arguments: Any, **attrs: Any) -> Any:
        has_integers = any(isinstance(a, NDArray) for a in arguments)
        if not has_integers and not (makes_integers and arguments[0].requires_grad):
            return kernel(*arguments, **attrs)
        arrays = [wrap(NDArray, a) if isinstance(a, Tensor) else a for a in arguments]
        training = state.training
        scope = autograd.record if torch.is_grad_enabled() else autograd.pause
        with scope(training):
            output = run_on_integers(op, arrays, attrs, NDArray, None)
        return (
            _integer_value(output)
            if isinstance(output, NDArray)
            else tuple(_integer_value(m) for m in output)
        )

    return dispatching


def _integer_value(array: NDArray) -> Tensor | NDArray:
    """Return an array that is an integer in the graph as it is, any other one as a tensor."""
    if is_stand_in(array):
        return array
    tracked = graph_tensor(array)
    return plain(array) if tracked is None else tracked


def tensor_of(value: Tensor | NDArray) -> Tensor:
    """Return what a slot holds as a tensor outside any graph of integers."""
    return plain(value) if isinstance(value, NDArray) else value


NAMES = {"0": DENSE, "1": ROWS, "2": CSR}  # as variables store them
Values = dict[Node, list[str]]


def stored_stype(node: Node) -> str:
    """Return the storage type that a variable was declared with."""
    return NAMES.get(node.extra.get("__storage_type__", "0"), DENSE)


def infer_storage(graph: Graph, known: Mapping[str, str] | None = None) -> Values:
    """Return the storage types of all nodes' outputs; `known` are those of variables by name."""
    known = known or {}
    values: Values = {}
    for node in graph.nodes:
        if node.op is None:
            values[node] = [known.get(node.name) or stored_stype(node)]
            continue
        stypes = [values[e.node][e.index] for e in node.inputs]
        rule = node.op.storage_rule
        sparse = any(s != DENSE for s in stypes) or node.op is op_cast_storage
        stype = rule(node.typed, stypes) if sparse and rule is not None else DENSE
        values[node] = [stype, *[DENSE] * (node.outputs - 1)]
    return values


def makes_sparse(graph: Graph) -> bool:
    """Return whether dense values become sparse in a graph."""
    return any(n.op is op_cast_storage and n.typed["stype"] != DENSE for n in graph.nodes)


def is_sparse(values: Values) -> bool:
    """Return whether anything is not dense."""
    return any(s != DENSE for stypes in values.values() for s in stypes)


def check_stypes(stypes: Mapping[str, str] | None) -> dict[str, str]:
    """Return storage types by name, or say which ones there are."""
    for name, stype in (stypes or {}).items():
        if stype not in (DENSE, ROWS, CSR):
            raise MXNetError(
                f"stype_dict: {stype!r} of {name!r} is none of {DENSE}, {ROWS}, {CSR}."
            )
    return dict(stypes or {})


def infer_gradient_storage(graph: Graph, values: Values) -> dict[Node, str]:
    """Return the storage types of the variables' gradients; outputs' are those of the outputs."""
    parts: dict[tuple[Node, int], list[str]] = {}
    for head in graph.heads:
        parts.setdefault((head.node, head.index), []).append(values[head.node][head.index])
    for node in reversed(graph.nodes):
        if node.op is None:
            continue
        outer = _sum_stypes(parts.get((node, 0), ()))
        stypes = [values[e.node][e.index] for e in node.inputs]
        for position, entry in enumerate(node.inputs):
            rule = node.op.gradient_storage_rule
            stype = DENSE if rule is None else rule(node.typed, position, outer, stypes)
            parts.setdefault((entry.node, entry.index), []).append(stype)
    return {n: _sum_stypes(parts.get((n, 0), ())) for n in graph.variables}


def _sum_stypes(parts: Sequence[str]) -> str:
    """Return the storage type of a sum: only row_sparse arrays keep theirs."""
    if len(parts) == 1:
        return parts[0]
    return ROWS if parts and set(parts) == {ROWS} else DENSE


SparseValue = Tensor | BaseSparseNDArray | None


def sparse_kernels(
    graph: Graph, stypes: Mapping[Node, list[str]], gradients: Mapping[Node, Gradient]
) -> Wrap:
    """Return what chooses kernels for a graph with sparse variables.

    `gradients` says of variables where their gradients go: kernels make row_sparse gradients for
    row_sparse arrays.
    """
    touched = {n for n in graph.variables if stypes[n][0] != "default"}
    for node in graph.nodes:
        if node.op is op_cast_storage or any(e.node in touched for e in node.inputs):
            touched.add(node)

    def wrap(node: Node, kernel: Callable, entries: Sequence[Entry | None]) -> Callable:
        if node not in touched:
            return kernel
        return _dispatch_sparse(node, kernel, [e and gradients.get(e.node) for e in entries])

    return wrap


def apply_to_arrays(
    op: Op, inputs: Sequence[NDArray | None], attrs: Mapping[str, str]
) -> NDArray | Sequence[NDArray]:
    """Return what an operator of a graph makes of arrays of any storage type."""
    if op is op_cast_storage and inputs[0] is not None:
        return cast_storage(inputs[0], attrs["stype"])
    return apply(op, inputs, attrs, cls=NDArray)


def _dispatch_sparse(node: Node, kernel: Callable, gradients: list[Gradient | None]) -> Callable:
    op = node.operator
    own_attrs = {k: v for k, v in node.typed.items() if k in node.attrs}
    casts = op is op_cast_storage

    def dispatching(*arguments: SparseValue, **attrs: Any) -> Any:
        if not casts and not any(isinstance(a, BaseSparseNDArray) for a in arguments):
            return kernel(*arguments, **attrs)
        training = attrs[op.context_parameter].training if op.context_parameter else False
        scope = autograd.record if torch.is_grad_enabled() else autograd.pause
        with scope(train_mode=training):
            inputs = [_array(a, g) for a, g in zip(arguments, gradients, strict=True)]
            first = inputs[0]
            if op is op_dot:
                inputs = _without_csr_gradient(inputs, node.typed, gradients)
            if casts:
                assert first is not None
                output = cast_storage(first, own_attrs["stype"])
            else:
                output = run_sparse(op, inputs, own_attrs, None, NDArray)
        return (
            _sparse_value(output)
            if isinstance(output, NDArray)
            else tuple(_sparse_value(m) for m in output)
        )

    return dispatching


def _without_csr_gradient(
    factors: Sequence[NDArray | None],
    attrs: Mapping[str, Any],
    gradients: Sequence[Gradient | None],
) -> list[NDArray | None]:
    """Return factors of `dot`, a csr one outside the graph if MXNet's kernel gives it nothing."""
    left, right = factors
    if isinstance(left, CSRNDArray):
        target = gradients[1]
        is_own = attrs["transpose_a"] or target is None or target.is_sparse
        if is_own and not attrs["transpose_b"] and attrs["forward_stype"] != CSR:
            return [left.detach(), right]
    elif isinstance(right, CSRNDArray) and left is not None and left.stype == DENSE:
        is_own = attrs["forward_stype"] == DENSE and not attrs["transpose_a"]
        return [left, right.detach() if is_own else right]
    return [left, right]


def _array(value: SparseValue, gradient: Gradient | None) -> NDArray | None:
    if value is None or isinstance(value, BaseSparseNDArray):
        return value
    array = wrap(NDArray, value)
    array._grad = gradient
    return array


def _sparse_value(array: NDArray) -> SparseValue:
    if isinstance(array, BaseSparseNDArray):
        return array
    tensor = graph_tensor(array)
    return array._data if tensor is None else tensor


def member_of_graph(value: SparseValue | NDArray) -> Tensor | None:
    """Return what represents a value in torch's graph."""
    return graph_tensor(value) if isinstance(value, NDArray) else value


def leaf_for(array: BaseSparseNDArray) -> Tensor:
    """Return a leaf of the graph for a sparse argument: it carries gradients, but no memory."""
    return array._values.new_zeros(()).expand(array.shape).requires_grad_()


def in_graph(array: BaseSparseNDArray, leaf: Tensor | None, gradient: Any) -> BaseSparseNDArray:
    """Return the same parts as a member of a graph that begins at the leaf."""
    shadow = array.detach()
    shadow._ghost, shadow._grad = leaf, gradient
    return shadow


def receive(target: BaseSparseNDArray, gradient: Tensor | None, req: str) -> None:
    """Put a gradient of any layout into a sparse array."""
    if gradient is not None:
        target._receive_sparse(gradient, req)
    elif req == "write":
        empty = zeros(target.stype, target.shape, ctx=target.context, dtype=target.dtype)
        assert isinstance(empty, BaseSparseNDArray)
        target._set(target.shape, *empty._parts())
