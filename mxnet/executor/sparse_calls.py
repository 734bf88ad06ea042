"""Sparse arrays in prepared programs.

Slots hold tensors; those of sparse values hold the sparse arrays themselves. A call that may meet
one looks: with a sparse argument it takes the way of `ndarray/sparse/dispatch`, which has MXNet's
sparse kernels and its fallback to dense ones, else it runs the kernel as always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from .. import autograd
from ..imperative.gradient import Gradient
from ..imperative.handle import wrap
from ..ndarray import NDArray
from ..ndarray.sparse import BaseSparseNDArray, cast_storage
from ..ndarray.sparse.creation import zeros
from ..ndarray.sparse.dispatch import run
from .plan import Call, Plan
from .program import Pass

Value = Tensor | BaseSparseNDArray | None


def run_sparse(slots: Iterable[int], gradients: Mapping[int, Gradient]) -> Pass:
    """Return a pass for a graph with sparse variables in some slots.

    `gradients` tells of variables' slots where their gradients go: kernels make row_sparse
    gradients for row_sparse arrays.
    """

    def rewrite(plan: Plan) -> None:
        touched = set(slots)
        for call in plan.calls:
            if touched.isdisjoint(call.inputs) and call.node.op.name != "cast_storage":
                continue
            call.kernel = _either(call, [gradients.get(slot) for slot in call.inputs])
            touched.update(range(call.first, call.first + call.count))

    return rewrite


def _either(call: Call, gradients: list[Gradient | None]) -> Callable:
    op, kernel = call.node.op, call.kernel
    given = {k: v for k, v in call.node.typed.items() if k in call.node.attrs}
    makes_sparse = op.name == "cast_storage"

    def either(*arguments: Value, **attrs: Any) -> Any:
        if not makes_sparse and not any(isinstance(a, BaseSparseNDArray) for a in arguments):
            return kernel(*arguments, **attrs)
        training = attrs[op.context_parameter].training if op.context_parameter else False
        scope = autograd.record if torch.is_grad_enabled() else autograd.pause
        with scope(train_mode=training):
            inputs = [_array(a, g) for a, g in zip(arguments, gradients, strict=True)]
            if op.name == "dot" and inputs[0].stype == "csr":
                inputs[0] = inputs[0].detach()  # MXNet gives a csr factor no gradient
            if makes_sparse:
                made = cast_storage(inputs[0], given["stype"])
            else:
                made = run(op, inputs, given, None, NDArray)
        return _value(made) if isinstance(made, NDArray) else tuple(_value(m) for m in made)

    return either


def _array(value: Value, gradient: Gradient | None) -> NDArray | None:
    if value is None or isinstance(value, BaseSparseNDArray):
        return value
    array = wrap(NDArray, value)
    array._grad = gradient
    return array


def _value(array: NDArray) -> Value:
    if isinstance(array, BaseSparseNDArray):
        return array
    return array._data if array._tracked is None else array._tracked


def member_of_graph(value: Value) -> Tensor | None:
    """Return what stands for a value in torch's graph."""
    return value._ghost if isinstance(value, BaseSparseNDArray) else value


def leaf_for(array: BaseSparseNDArray) -> Tensor:
    """Return a leaf of the graph for a sparse argument: it carries gradients, but no memory."""
    return array._values.new_zeros(()).expand(array.shape).requires_grad_()


def in_graph(array: BaseSparseNDArray, leaf: Tensor | None, gradient: Any) -> BaseSparseNDArray:
    """Return the same parts as a member of a graph that begins at the leaf."""
    shadow = array.detach()
    shadow._ghost, shadow._grad = leaf, gradient
    return shadow


def receive(target: NDArray, gradient: Tensor | None, req: str) -> None:
    """Put a gradient of any layout into a sparse array."""
    if gradient is not None:
        target._receive_sparse(gradient, req)
    elif req == "write":
        empty = zeros(target.stype, target.shape, ctx=target.context, dtype=target.dtype)
        target._set(target.shape, *empty._parts())
