"""Kernels for values that torch cannot differentiate: sparse arrays and integers.

The slots of a program hold tensors. For these values, they hold the arrays themselves. A node that
may receive an array gets a kernel that checks its inputs and calls `apply`, as an eager call does.
`apply` has MXNet's sparse kernels, the fallback to dense ones, and gradients through integers, from
``cast(cast(x, 'int32'), 'float32')`` to ``x``. Which results and gradients are row_sparse or csr
follows from rules on the operator records (`ops/sparse.py`).
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
from ..graph.passes.storage import makes_sparse
from ..graph.typed_graph import Mode
from ..ndarray import NDArray
from ..ndarray.sparse import BaseSparseNDArray, CSRNDArray, cast_storage
from ..ops.declare import Op
from ..ops.sparse import CSR, DENSE
from ..ops.sparse import cast_storage as op_cast_storage
from ..ops.tensor.products import dot as op_dot
from .apply import apply
from .array import plain, set_leaf, wrap, wrap_plain
from .gradients import Gradient
from .integers import leaf_tensor
from .program import Wrap
from .recording import graph_tensor, is_stand_in

Value = Tensor | NDArray


def array_kernels(
    graph: Graph, variables: Collection[Node], mode: Mode, records: Mapping[Node, Gradient]
) -> Wrap | None:
    """Return the wrapper of kernels for a graph in which some values are arrays, or None.

    `variables` are fed with arrays; `records` are the gradients of bound variables.
    """
    casts = {n: dtype for n in graph.nodes if (dtype := _cast_dtype(n)) is not None}
    integers = {n for n, dtype in casts.items() if not dtype.is_floating_point}
    if not mode.differentiable:
        integers.clear()
    touched = _downstream(graph, {*variables, *integers, *_casts_to_sparse(graph)})
    returns = any(n in touched and n not in integers for n in casts)
    shown = any(e.node in integers for e in graph.heads)
    if not (variables or returns or shown or makes_sparse(graph)):
        return None  # gradients end at the integers, if there are any

    def choose(node: Node, kernel: Callable, entries: Sequence[Entry | None]) -> Callable:
        if node not in touched:
            return kernel
        return _dispatch(node, kernel, mode, [e and records.get(e.node) for e in entries])

    return choose


def cast_arguments(graph: Graph, arrays: Sequence[NDArray]) -> set[int]:
    """Return the positions of integer arguments that are cast.

    They receive the gradient of the cast.
    """
    read = {e.node for n in graph.nodes if _cast_dtype(n) is not None for e in n.inputs}
    rows = enumerate(zip(graph.arguments, arrays, strict=True))
    return {i for i, (n, a) in rows if n in read and not dtype_of(a).is_floating_point}


def integer_leaf(tensor: Tensor) -> NDArray:
    """Return an integer array that is a leaf of a graph."""
    array = wrap_plain(NDArray, tensor)
    set_leaf(array, leaf_tensor(tensor), None)
    return array


def _cast_dtype(node: Node) -> torch.dtype | None:
    """Return the target dtype if a node is a cast, or None."""
    if node.op is None or not node.op.facts.casts:
        return None
    return node.typed["dtype"]


def _casts_to_sparse(graph: Graph) -> set[Node]:
    return {n for n in graph.nodes if n.op is op_cast_storage and n.typed["stype"] != DENSE}


def _downstream(graph: Graph, sources: Collection[Node]) -> set[Node]:
    touched = set(sources)
    for node in graph.nodes:
        if any(e.node in touched for e in node.inputs):
            touched.add(node)
    return touched


def _dispatch(
    node: Node, kernel: Callable, mode: Mode, records: Sequence[Gradient | None]
) -> Callable:
    op, dtype = node.operator, _cast_dtype(node)
    makes_integers = dtype is not None and not dtype.is_floating_point
    makes_sparse = op is op_cast_storage and node.typed["stype"] != DENSE
    bound = any(record is not None for record in records)

    def dispatching(*arguments: Value | None, **attrs: Any) -> Any:
        takes_arrays = makes_sparse or any(isinstance(a, NDArray) for a in arguments)
        if makes_integers and not takes_arrays:
            takes_arrays = any(isinstance(a, Tensor) and a.requires_grad for a in arguments)
        if not takes_arrays:
            return kernel(*arguments, **attrs)
        if node.subgraphs:
            return kernel(*[_in_subgraph(node, a) for a in arguments], **attrs)
        scope = autograd.record if torch.is_grad_enabled() else autograd.pause
        with scope(mode.training):
            inputs = [_array(a, record) for a, record in zip(arguments, records, strict=True)]
            if op is op_dot and bound:
                inputs = _without_csr_gradient(inputs, node.typed, records)
            output = apply_to_arrays(op, inputs, node.attrs)
        if isinstance(output, NDArray):
            return _value(output)
        return tuple(_value(each) for each in output)

    return dispatching


def _in_subgraph(node: Node, value: Value | None) -> Tensor | None:
    """Return the input of a graph inside a node. Gradients of integers end there."""
    if isinstance(value, BaseSparseNDArray):
        raise MXNetError(
            f"Operator {node.operator.name} ({node.name!r}) runs a graph, which takes no sparse "
            "inputs. Convert them: x.tostype('default')."
        )
    return plain(value) if isinstance(value, NDArray) else value


def _array(value: Value | None, record: Gradient | None) -> NDArray | None:
    if value is None or isinstance(value, NDArray):
        return value
    array = wrap(NDArray, value)
    array._grad = record
    return array


def _value(array: NDArray) -> Value:
    """Return the value to store in a slot: the array itself if it has no dense tensor."""
    if isinstance(array, BaseSparseNDArray) or is_stand_in(array):
        return array
    tensor = graph_tensor(array)
    return plain(array) if tensor is None else tensor


def dtype_of(value: Value) -> torch.dtype:
    """Return the dtype of a value."""
    return value._values.dtype if isinstance(value, BaseSparseNDArray) else tensor_of(value).dtype


def tensor_of(value: Tensor | NDArray) -> Tensor:
    """Return a slot's value as a tensor outside of the graph of integers."""
    return plain(value) if isinstance(value, NDArray) else value


def apply_to_arrays(
    op: Op, inputs: Sequence[NDArray | None], attrs: Mapping[str, str]
) -> NDArray | Sequence[NDArray]:
    """Run an operator of a graph on arrays of any storage type."""
    if op is op_cast_storage and inputs[0] is not None:
        return cast_storage(inputs[0], attrs["stype"])
    return apply(op, inputs, attrs, cls=NDArray)


def _without_csr_gradient(
    factors: Sequence[NDArray | None],
    attrs: Mapping[str, Any],
    records: Sequence[Gradient | None],
) -> list[NDArray | None]:
    """Return the operands of `dot`.

    Detach a csr operand if MXNet's kernel computes no gradient for it.
    """
    left, right = factors
    if isinstance(left, CSRNDArray):
        target = records[1]
        is_own = attrs["transpose_a"] or target is None or target.is_sparse
        if is_own and not attrs["transpose_b"] and attrs["forward_stype"] != CSR:
            return [left.detach(), right]
    elif isinstance(right, CSRNDArray) and left is not None and left.stype == DENSE:
        is_own = attrs["forward_stype"] == DENSE and not attrs["transpose_a"]
        return [left, right.detach() if is_own else right]
    return [left, right]


def member_of_graph(value: Value) -> Tensor | None:
    """Return the tensor that represents a value in torch's graph."""
    return graph_tensor(value) if isinstance(value, NDArray) else value
