"""The arrays that are bound to a graph: what represents them in a run, and other shapes of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from ..error import MXNetError, ShapeError
from ..graph.graph import Graph
from ..graph.passes.infer import infer_from_given
from ..ndarray import NDArray
from ..ndarray.sparse import BaseSparseNDArray, zeros
from ..ops.shapes import is_known
from .array import plain, wrap_plain
from .array_kernels import (
    cast_arguments,
    in_graph,
    infer_storage,
    integer_kernels,
    integer_leaf,
    is_sparse,
    leaf_for,
    receive,
    sparse_kernels,
)
from .gradients import Gradient, write_gradients
from .integers import truncate
from .program import Wrap
from .recording import graph_tensor

if TYPE_CHECKING:
    from ..graph.node import Node
    from .executor import Executor


class BoundArrays:
    """Arguments, gradients and auxiliary states of a graph.

    Parameters
    ----------
    graph : the graph.
    args : one array for each argument.
    grads : where their gradients go; None where nothing is to be written.
    aux : one array for each auxiliary state.
    reqs : how gradients are stored.
    """

    def __init__(
        self,
        graph: Graph,
        args: list[NDArray],
        grads: list[NDArray | None],
        aux: list[NDArray],
        reqs: Sequence[str],
    ) -> None:
        self.graph, self.args, self.grads, self.aux = graph, args, grads, aux
        self._integers = cast_arguments(graph, args)
        # Other integers have no gradients: an array bound for them is left alone, unless an
        # operator writes zeros for them.
        has_gradient = [_is_real(a) or i in self._integers for i, a in enumerate(args)]
        self.reqs = [r if h else "null" for r, h in zip(reqs, has_gradient, strict=True)]
        self.differentiated = [i for i, req in enumerate(self.reqs) if req != "null"]
        stypes = {n.name: a.stype for n, a in zip(graph.arguments, args, strict=True)}
        self.stypes = infer_storage(graph, stypes)
        self.is_sparse = is_sparse(self.stypes)
        self.leaves: list[Tensor | None] = [None] * len(args)  # of torch's graph
        self._argument_at = {node: i for i, node in enumerate(graph.arguments)}
        self._state_at = {node: i for i, node in enumerate(graph.auxiliary)}
        zeroed = _without_gradients(graph)
        self._zeroed = [
            grad
            for node, grad, req, has in zip(graph.arguments, grads, reqs, has_gradient, strict=True)
            if node in zeroed and req == "write" and grad is not None and not has
        ]
        labels = _labels(graph)  # backward leaves their gradients alone
        self._labels = {i for node, i in self._argument_at.items() if node in labels}

    def is_state(self, node: Node) -> bool:
        """Return whether a variable is an auxiliary state."""
        return node in self._state_at

    def value(self, node: Node, training: bool) -> Tensor | NDArray:
        """Return what a run is fed for a variable; in training a leaf, if its gradient counts."""
        position = self._argument_at.get(node)
        if position is None:
            return plain(self.aux[self._state_at[node]])
        array = self.args[position]
        if self.is_sparse and isinstance(array, BaseSparseNDArray):
            return self._sparse_value(array, position, training)
        tensor = plain(array)
        if not training:
            return tensor
        if self.reqs[position] == "null":
            return tensor.data  # as memory: see `handle`
        if position in self._integers:
            member = integer_leaf(tensor)
            self.leaves[position] = graph_tensor(member)
            return member
        leaf = self.leaves[position] = tensor.data.requires_grad_()
        return leaf

    def tensors(self, nodes: Sequence[Node]) -> list[Tensor]:
        """Return the memory of variables, none of which is sparse."""
        positions, states = self._argument_at, self._state_at
        return [
            plain(self.args[positions[n]] if n in positions else self.aux[states[n]]) for n in nodes
        ]

    def _sparse_value(
        self, array: BaseSparseNDArray, position: int, training: bool
    ) -> BaseSparseNDArray:
        req = self.reqs[position]
        if not training or req == "null":
            return in_graph(array, None, None)
        if self.leaves[position] is None:
            self.leaves[position] = leaf_for(array)
        record = Gradient(self.grads[position], req)
        return in_graph(array, self.leaves[position], record)

    def kernels(self, training: bool) -> Wrap | None:
        """Return what gives nodes other kernels: sparse arrays and integers with gradients do."""
        return self._sparse_kernels() if self.is_sparse else self._integer_kernels(training)

    def _sparse_kernels(self) -> Wrap:
        """Return what gives nodes that may meet sparse arrays their kernels."""
        gradients = {}
        for node, position in self._argument_at.items():
            if self.reqs[position] != "null":
                grad = self.grads[position]
                gradients[node] = Gradient(grad, self.reqs[position])
        return sparse_kernels(self.graph, self.stypes, gradients)

    def _integer_kernels(self, training: bool) -> Wrap | None:
        if not (training and self.differentiated):
            return None
        members = [self.graph.arguments[i] for i in self.differentiated if i in self._integers]
        return integer_kernels(self.graph, members, from_heads=True)

    def receive(self, gradients: Sequence[Tensor | None]) -> None:
        """Write what backward found for the arguments that have gradients."""
        received = []
        for position, gradient in zip(self.differentiated, gradients, strict=True):
            target, req = self.grads[position], self.reqs[position]
            assert target is not None  # as `req` is not 'null'
            if isinstance(target, BaseSparseNDArray):
                receive(target, gradient, req)
            elif gradient is None:
                if req == "write" and position not in self._labels:
                    plain(target).zero_()
            else:
                if position in self._integers:
                    gradient = truncate(gradient, plain(target).dtype)
                received.append((Gradient(target, req), gradient))
        write_gradients(received)
        for grad in self._zeroed:
            plain(grad).zero_()


def _without_gradients(graph: Graph) -> set[Node]:
    """Return the variables that operators read as indices, conditions or lengths."""
    return {
        entry.node
        for node in graph.nodes
        if node.op is not None and node.op.facts.without_gradient
        for name, entry in zip(node.input_names, node.inputs, strict=True)
        if name in node.op.facts.without_gradient
    }


def _labels(graph: Graph) -> set[Node]:
    """Return what losses read as labels and lengths: they define no gradients for them."""
    return {
        entry.node
        for node in graph.nodes
        if node.op is not None and (node.op.facts.loss or node.op.facts.has_labels)
        for entry in node.inputs[1:]
    }


def _is_real(array: NDArray) -> bool:
    tensor = array._values if isinstance(array, BaseSparseNDArray) else plain(array)
    return tensor.dtype.is_floating_point


Arrays = list[NDArray]


def reshape_arrays(
    executor: Executor,
    shapes: Mapping[str, Sequence[int]],
    partial_shaping: bool,
    allow_up_sizing: bool,
) -> tuple[Arrays, list[NDArray | None], Arrays]:
    """Return arguments, gradients and auxiliary states of these shapes for an executor's graph."""
    graph = executor._graph
    inferred = infer_from_given(graph, shapes)
    names = [n.name for n in graph.arguments]
    missing = [n for n, s in zip(names, inferred.arguments, strict=True) if not is_known(s)]
    if missing:
        raise ShapeError(
            f"reshape: the shapes of {', '.join(shapes) or 'no arguments'} are not enough to infer "
            f"those of {', '.join(missing)}. Give them too."
        )
    args, grads = [], []
    for name, shape, old, grad in zip(
        names, inferred.arguments, executor.arg_arrays, executor.grad_arrays, strict=True
    ):
        if old.shape == shape:
            args.append(old)
            grads.append(grad)
            continue
        if not partial_shaping and name not in shapes:
            raise _unexpected_change(name, old.shape, shape)
        if not allow_up_sizing and math.prod(shape) > old.size:
            raise _larger(name)
        args.append(_fresh_like(old, shape))
        grads.append(None if grad is None else _fresh_like(grad, shape))
    aux = [
        old if old.shape == shape else _fresh_like(old, shape)
        for old, shape in zip(executor.aux_arrays, inferred.auxiliary, strict=True)
    ]
    return args, grads, aux


def _unexpected_change(name: str, old: tuple[int, ...], new: tuple[int, ...]) -> MXNetError:
    return MXNetError(
        f"Shape of unspecified arg: {name} changed from {old} to {new}. This can cause the new "
        "executor to not share parameters with the old one. Please check for error in the "
        "network. If this is intended, set partial_shaping=True to suppress this warning."
    )


def _larger(name: str) -> MXNetError:
    return MXNetError(
        f"New shape of arg: {name} is larger than original. First making a big executor and then "
        "down sizing it is more efficient than the reverse. If you really want to up size, set "
        "allow_up_sizing=True to enable allocation of new arrays."
    )


def _fresh_like(old: NDArray, shape: tuple[int, ...]) -> NDArray:
    if old.stype != "default":
        return zeros(old.stype, shape, ctx=old.context, dtype=old.dtype)
    tensor, size = plain(old), math.prod(shape)
    if size <= tensor.numel():  # smaller: a part of the old memory, as MXNet has it
        return wrap_plain(NDArray, tensor.reshape(-1)[:size].reshape(shape), old._ctx)
    return wrap_plain(NDArray, tensor.new_zeros(shape), old._ctx)
