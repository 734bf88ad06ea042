"""Pairs of operators: neighbors of different kinds, before and after an operator of a sample row.

A neighbor is a function of `F` (`mx.nd` or `mx.sym`) and one array. Before an operator it keeps the
shape; `NEIGHBORS` has two functions where one could not do both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mxnet import autograd
from mxnet.ndarray import NDArray
from tests.grammar.surroundings.calls import Call, Results, Wrapper, is_recorded, recording
from tests.grammar.surroundings.neighbors import custom_operator


@dataclass(frozen=True)
class Neighbor:
    """An operator that precedes or follows another one.

    Parameters
    ----------
    after : what is made of a result.
    before : what is made of an input, of the same shape; by default as `after`.
    parameters : values of further inputs.
    states : how many of these, at the end, are auxiliary states.
    """

    after: Callable[..., Any]
    before: Callable[..., Any] | None = None
    parameters: tuple[np.ndarray, ...] = ()
    states: int = 0


def _row(*values: float) -> np.ndarray:
    return np.array(values, "float32")


def _as_column(function: Callable) -> Callable:
    """Return a function that runs another one on a matrix of one column and restores the shape."""

    def run(F: Any, x: Any, *parameters: Any) -> Any:
        return F.reshape_like(function(F, F.reshape(x, shape=(-1, 1)), *parameters), x)

    return run


def _batch_norm(F: Any, x: Any, *parameters: Any) -> Any:
    return F.BatchNorm(x, *parameters, fix_gamma=False, name="normalize")


def _twice(F: Any, x: Any) -> Any:
    return F.concat(x, x, dim=0)


NEIGHBORS: dict[str, Neighbor] = {
    "saves its output": Neighbor(lambda F, x: F.sigmoid(x)),
    "saves a mask": Neighbor(lambda F, x: F.relu(x)),
    "saves its input": Neighbor(lambda F, x: F.square(x)),
    "view": Neighbor(
        lambda F, x: F.reshape(x, shape=(-1,)),
        lambda F, x: F.reshape_like(F.reshape(x, shape=(-1,)), x),
    ),
    "transposed view": Neighbor(
        lambda F, x: F.transpose(x), lambda F, x: F.transpose(F.transpose(x))
    ),
    "part": Neighbor(
        lambda F, x: F.slice_axis(x, axis=0, begin=0, end=1),
        lambda F, x: F.slice_like(_twice(F, x), x),
    ),
    "reduction": Neighbor(
        lambda F, x: F.sum(x), lambda F, x: F.broadcast_mul(x, F.mean(x, keepdims=True))
    ),
    "concatenation": Neighbor(
        lambda F, x: _twice(F, x), lambda F, x: F.split(_twice(F, x), num_outputs=2, axis=0)[1]
    ),
    "same input twice": Neighbor(lambda F, x: F.elemwise_mul(x, x)),
    "several uses": Neighbor(lambda F, x: F.elemwise_add(F.tanh(x), F.elemwise_add(x, x))),
    "output layer": Neighbor(lambda F, x: F.LinearRegressionOutput(x, F.zeros_like(x))),
    "loss": Neighbor(lambda F, x: F.MakeLoss(F.square(x))),
    "auxiliary states": Neighbor(
        _as_column(_batch_norm),
        parameters=(_row(0.7), _row(0.2), _row(0.0), _row(1.0)),
        states=2,
    ),
    "without a gradient": Neighbor(
        lambda F, x: F.sign(x), lambda F, x: F.elemwise_mul(x, F.sign(x))
    ),
    "stopped gradient": Neighbor(
        lambda F, x: F.BlockGrad(x), lambda F, x: F.elemwise_mul(x, F.BlockGrad(x))
    ),
    "random": Neighbor(lambda F, x: F.Dropout(x, p=0.5, mode="always")),
    "sparse": Neighbor(
        lambda F, x: F.cast_storage(F.cast_storage(x, stype="row_sparse"), stype="default")
    ),
    "cast": Neighbor(lambda F, x: F.cast(F.cast(x, dtype="float64"), dtype="float32")),
    "selection": Neighbor(lambda F, x: F.where(F.zeros_like(x), x, F.exp(x))),
    "dense layer": Neighbor(
        _as_column(
            lambda F, x, w, b: F.FullyConnected(x, w, b, num_hidden=1, name="dense"),
        ),
        parameters=(_row(0.7).reshape(1, 1), _row(0.2)),
    ),
    "copy": Neighbor(lambda F, x: F.identity(x)),
    "custom operator": Neighbor(custom_operator),
}


class Pair(Call):
    """A call with a neighbor after its first real output, or before its first real input."""

    neighbor: Neighbor
    is_after: bool

    @classmethod
    def of(cls, call: Call, neighbor: Neighbor, *, after: bool) -> Pair:
        """Return the pair of a call and a neighbor."""
        pair = call.like(cls)
        pair.neighbor, pair.is_after = neighbor, after
        first = call.count
        pair.count = first + len(neighbor.parameters)
        pair.names = [*call.names, *(f"p{i}" for i in range(len(neighbor.parameters)))]
        trained = range(first, pair.count - neighbor.states)
        pair.differentiated = [*call.differentiated, *trained]
        pair.written = [*call.written, *range(pair.count - neighbor.states, pair.count)]
        pair.is_train = True
        return pair

    def arrays(self) -> list[NDArray]:
        """Return new arrays of the row's values and of the neighbor's parameters."""
        from mxnet import nd

        return [*super().arrays(), *(nd.array(p) for p in self.neighbor.parameters)]

    def compute(
        self,
        F: Any,
        inputs: list[Any],
        before: Wrapper | None = None,
        after: Wrapper | None = None,
    ) -> list[Any]:
        """Run the operator and its neighbor."""
        own = len(self.row.arrays())
        inputs, parameters = list(inputs[:own]), inputs[own:]
        if not self.is_after:
            i = self.differentiated[0]
            beside = self.neighbor.before or self.neighbor.after
            inputs[i] = beside(F, inputs[i], *parameters)
        outputs = super().compute(F, inputs)
        if self.is_after:
            i = self.real_outputs.index(True)
            outputs[i] = self.neighbor.after(F, outputs[i], *parameters)
        return outputs


def by_hand(pair: Pair) -> Results:
    """Return the results of an operator and its neighbor, recorded separately."""
    from mxnet import nd

    arrays = pair.attach(pair.arrays())
    own = len(pair.row.arrays())
    with recording(pair):
        outputs = Call.compute(pair, nd, arrays[:own])
    i = pair.real_outputs.index(True)
    between = outputs[i].copy()
    between.attach_grad()
    with autograd.record():
        last = pair.neighbor.after(nd, between, *arrays[own:])
    gradients = pair.head_gradients([*outputs[:i], last, *outputs[i + 1 :]])
    if is_recorded(last):
        autograd.backward([last], [gradients[i]])
    gradients[i] = between.grad
    heads = [(o, g) for o, g in zip(outputs, gradients, strict=True) if is_recorded(o)]
    if heads:
        autograd.backward([o for o, _ in heads], [g for _, g in heads])
    outputs[i] = last
    return pair.results(outputs, arrays)
