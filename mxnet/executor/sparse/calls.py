"""Sparse arrays in prepared programs.

Slots hold tensors; those of sparse values hold the sparse arrays themselves. A call that may meet
one looks: with a sparse argument it goes through `ndarray/sparse/dispatch`, which has MXNet's
sparse kernels and its fallback to dense ones, else it runs the kernel as always.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ... import autograd
from ...graph.graph import Graph
from ...graph.node import Entry, Node
from ...imperative.gradient import Gradient, graph_member
from ...imperative.handle import wrap
from ...imperative.history import graph_tensor
from ...ndarray import NDArray
from ...ndarray.sparse import BaseSparseNDArray, CSRNDArray, cast_storage
from ...ndarray.sparse.creation import zeros
from ...ndarray.sparse.dispatch import run
from ...ops.sparse import cast_storage as op_cast_storage
from ...ops.tensor.products import dot as op_dot
from ..schedule import Wrap

Value = Tensor | BaseSparseNDArray | None


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
        return _dispatching(node, kernel, [e and gradients.get(e.node) for e in entries])

    return wrap


def _dispatching(node: Node, kernel: Callable, gradients: list[Gradient | None]) -> Callable:
    op = node.operator
    given = {k: v for k, v in node.typed.items() if k in node.attrs}
    makes_sparse = op is op_cast_storage

    def dispatching(*arguments: Value, **attrs: Any) -> Any:
        if not makes_sparse and not any(isinstance(a, BaseSparseNDArray) for a in arguments):
            return kernel(*arguments, **attrs)
        training = attrs[op.context_parameter].training if op.context_parameter else False
        scope = autograd.record if torch.is_grad_enabled() else autograd.pause
        with scope(train_mode=training):
            inputs = [_array(a, g) for a, g in zip(arguments, gradients, strict=True)]
            first = inputs[0]
            if op is op_dot and isinstance(first, CSRNDArray):
                inputs[0] = first.detach()  # MXNet gives a csr factor no gradient
            if makes_sparse:
                assert first is not None
                made = cast_storage(first, given["stype"])
            else:
                made = run(op, inputs, given, None, NDArray)
        return _value(made) if isinstance(made, NDArray) else tuple(_value(m) for m in made)

    return dispatching


def _array(value: Value, gradient: Gradient | None) -> NDArray | None:
    if value is None or isinstance(value, BaseSparseNDArray):
        return value
    array = wrap(NDArray, value)
    array._grad = gradient
    return array


def _value(array: NDArray) -> Value:
    if isinstance(array, BaseSparseNDArray):
        return array
    tensor = graph_tensor(array)
    return array._data if tensor is None else tensor


def member_of_graph(value: Value | NDArray) -> Tensor | None:
    """Return what stands for a value in torch's graph."""
    return graph_member(value) if isinstance(value, NDArray) else value


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
