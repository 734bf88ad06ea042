"""Helpers to call the operator of a sample row."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mxnet as mx
from mxnet.ndarray import NDArray
from mxnet.ndarray.codegen import make_function
from mxnet.ops import registry
from mxnet.runtime.recording import graph_tensor
from mxnet.symbol import codegen
from tests.grammar.sampling import Row


@functools.cache
def eager_function(name: str) -> Callable[..., Any]:
    """Return a function of an operator; like those of `mx.nd`, it caches its calls."""
    return make_function(registry.get(name), name, NDArray)


@functools.cache
def symbol_function(name: str) -> Callable[..., Any]:
    """Return a function of an operator that composes symbols."""
    return codegen.make_function(registry.get(name), name)


def compose(row: Row, inputs: Sequence[mx.sym.Symbol], name: str = "it") -> mx.sym.Symbol:
    """Return the row's operator on symbols.

    Its inputs are given by name: unlike an array, a symbol at the place of an input that is not in
    force, such as `data_lengths` of ``CTCLoss(use_label_lengths=True)``, is an error.
    """
    op, function = registry.get(row.op), symbol_function(row.op)
    if op.variadic is not None:
        return function(*inputs, name=name, **row.attrs)
    names = op.wanted_inputs(op.parse(row.attrs))
    return function(**dict(zip(names[: len(inputs)], inputs, strict=True)), name=name, **row.attrs)


def arrays_of(row: Row) -> list[NDArray]:
    """Return the row's inputs as arrays of their own dtype."""
    return [mx.nd.array(a, dtype=a.dtype) for a in row.arrays()]


def call(row: Row, arrays: list[NDArray], **more: Any) -> list[NDArray]:
    """Run the operator eagerly and return its outputs as a list."""
    out = eager_function(row.op)(*arrays, **row.attrs, **more)
    return out if isinstance(out, list) else [out]


def differentiable(arrays: list[NDArray]) -> list[int]:
    """Return the positions of floating-point inputs."""
    return [i for i, a in enumerate(arrays) if np.dtype(a.dtype).kind == "f"]


def run_backward(
    row: Row, arrays: list[NDArray], wanted: list[int], grad_req: str = "write"
) -> list:
    """Record the call, start backward from the row's head gradients, and return the outputs."""
    for i in wanted:
        arrays[i].attach_grad(grad_req)
    with mx.autograd.record(train_mode=row.train):
        outs = call(row, arrays)
    heads = [
        (o, mx.nd.array(row.head_gradient(i, o.shape), dtype=o.dtype))
        for i, o in enumerate(outs)
        if graph_tensor(o) is not None
    ]
    if heads:
        mx.autograd.backward([h[0] for h in heads], [h[1] for h in heads])
    return outs
