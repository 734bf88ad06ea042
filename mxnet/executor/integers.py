"""Integers with gradients in prepared programs.

Torch has no gradients of integers, so where MXNet lets one flow through them, as from
``cast(cast(x, 'int32'), 'float32')`` to ``x``, the slots of those integers hold arrays, and the
calls between go through `imperative/gradient`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import autograd
from ..graph.graph import Graph
from ..graph.node import Entry, Node
from ..imperative.gradient import leaf_tensor, run_on_integers
from ..imperative.handle import plain, set_leaf, wrap
from ..imperative.history import graph_tensor
from ..imperative.state import IntegerSession, state
from ..ndarray import NDArray
from .schedule import Wrap

__all__ = ["cast_arguments", "integer_kernels", "integer_leaf", "tensor_of"]


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
        return _dispatching(node, kernel) if node in touched else kernel

    return choose


def cast_arguments(graph: Graph, arrays: Sequence[NDArray]) -> set[int]:
    """Return the places of integer arguments that a cast reads: its gradient is theirs."""
    read = {e.node for n in graph.nodes if _cast_dtype(n) is not None for e in n.inputs}
    places = enumerate(zip(graph.arguments, arrays, strict=True))
    return {i for i, (n, a) in places if n in read and not plain(a).dtype.is_floating_point}


def integer_leaf(tensor: Tensor) -> NDArray:
    """Return an array of integers at which a graph begins."""
    array = wrap(NDArray, tensor)
    set_leaf(array, leaf_tensor(tensor), None, IntegerSession(None))
    return array


def _cast_dtype(node: Node) -> torch.dtype | None:
    """Return what a node casts to, if it is a cast."""
    if node.op is None or not node.op.facts.straight_through:
        return None
    return node.typed["dtype"]


def _downstream(graph: Graph, sources: Collection[Node]) -> set[Node]:
    touched = set(sources)
    for node in graph.nodes:
        if any(e.node in touched for e in node.inputs):
            touched.add(node)
    return touched


def _dispatching(node: Node, kernel: Callable) -> Callable:
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
            made = run_on_integers(op, arrays, attrs, NDArray, None)
        return _value(made) if isinstance(made, NDArray) else tuple(_value(m) for m in made)

    return dispatching


def _value(array: NDArray) -> Tensor | NDArray:
    """Return an array that is an integer in the graph as it is, any other one as a tensor."""
    tracked = graph_tensor(array)
    if tracked is None:
        return plain(array)
    return tracked if tracked.dtype is array._dtype else array


def tensor_of(value: Tensor | NDArray) -> Tensor:
    """Return what a slot holds as a tensor outside any graph of integers."""
    return plain(value) if isinstance(value, NDArray) else value
