"""The recurrent operator on separate weights, for Gluon's layers and unrolled cells."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...error import ShapeError
from ..attributes import Count
from ..declare import OpContext, op
from ..nn.recurrent import (
    GATES,
    KERNELS,
    Mode,
    needs_graph,
    output_names,
    rnn,
    rnn_outputs,
    rnn_work,
    unpacked,
)
from ..shapes import UNKNOWN, KnownShapes, Shape, Shapes


def _shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    return ins, rnn_outputs(*ins, **attrs) or outs


@op(
    "_rnn_unpacked",
    attributes_of=rnn,
    count="num_args",
    outputs=output_names,
    shape=_shapes,
    random=True,
)
def rnn_unpacked(
    *data: Tensor, num_states: Count, run: OpContext, **attrs: Any
) -> Tensor | tuple[Tensor, ...]:
    """Run `RNN` on data, `num_states` states and lengths, then weights in the packed order.

    >>> x, h, zero = mx.nd.ones((2, 1, 1)), mx.nd.zeros((1, 1, 1)), mx.nd.zeros((1,))
    >>> weights = [mx.nd.ones((1, 1)), mx.nd.zeros((1, 1)), zero, zero]
    >>> mx.nd._internal._rnn_unpacked(x, h, *weights, num_states=1, state_size=1, num_layers=1,
    ...                               mode='rnn_relu').asnumpy().ravel()
    array([1., 1.], dtype=float32)
    """
    sequence, states, packed = data[0], data[1 : 1 + num_states], data[1 + num_states :]
    weights = unpacked(packed, sequence.shape[-1], rnn.complete(attrs))
    if weights is None:  # not Gluon's order of sizes, or an error
        weights = torch.cat([w.reshape(-1) for w in packed])
    return rnn.function(sequence, weights, *states, **attrs, run=run)


rnn_unpacked.work(rnn_work)


def _step_outputs(attrs: dict) -> tuple[str, ...]:
    return output_names({**attrs, "state_outputs": True})


@op(
    "_rnn_steps",
    optional={"state_cell": lambda a: a["mode"] == "lstm"},
    precision="half",
    bfloat16="full",
    outputs=_step_outputs,
)
def rnn_steps(
    data: Tensor,
    i2h_weight: Tensor,
    i2h_bias: Tensor,
    h2h_weight: Tensor,
    h2h_bias: Tensor,
    state: Tensor,
    state_cell: Tensor | None = None,
    *,
    num_steps: Count,
    state_size: Count,
    mode: Mode,
    axis: int = 0,
) -> tuple[Tensor, ...]:
    """Run a recurrent cell over the steps along an axis; return outputs and final states.

    Outputs are along axis 0. States have shape ``(batch, state_size)``.

    Parameters
    ----------
    data
        The sequence; a step with more than two axes is flattened.
    i2h_weight, i2h_bias
        Input-to-hidden weight and bias of all gates, stacked along axis 0.
    h2h_weight, h2h_bias
        Hidden-to-hidden weight and bias.
    state, state_cell
        Initial states; an LSTM has two.
    num_steps
        Number of steps of the data.
    state_size
        Number of features of a state.
    mode
        Type of cell.
    axis
        The time axis of the data.

    >>> x, one = mx.nd.ones((2, 1, 1)), mx.nd.ones((1, 1))
    >>> h, zero = mx.nd.zeros((1, 1)), mx.nd.zeros(1)
    >>> outputs, last = mx.nd._internal._rnn_steps(
    ...     x, one, zero, one, zero, h, num_steps=2, state_size=1, mode='rnn_relu')
    >>> outputs.asnumpy().ravel()
    array([1., 2.], dtype=float32)
    """
    steps = data.movedim(axis, 0)
    if len(steps) != num_steps:
        raise ShapeError(
            f"A cell unrolled to {num_steps} steps was given {len(steps)}: data is "
            f"{tuple(data.shape)}, with time along axis {axis}."
        )
    if steps.ndim != 3:  # a cell flattens its input
        steps = steps.reshape(*steps.shape[:2], i2h_weight.shape[1])
    hidden = state.unsqueeze(0)
    weights = [i2h_weight, h2h_weight, i2h_bias, h2h_bias]
    pair = hidden if state_cell is None else (hidden, state_cell.unsqueeze(0))
    is_recorded = needs_graph(steps, *(pair if isinstance(pair, tuple) else (pair,)), *weights)
    with torch.set_grad_enabled(is_recorded):
        out, *last = KERNELS[mode](steps, pair, weights, True, 1, 0.0, is_recorded, False, False)
    return out, *(state.squeeze(0) for state in last)


def _step_sizes(data: Shape, axis: int) -> tuple[int, int, int]:
    """Return the number of steps, the batch size and the size of one flattened step."""
    rest = [n for i, n in enumerate(data) if i != axis % len(data)]
    width = UNKNOWN if UNKNOWN in rest[1:] else math.prod(rest[1:])
    return data[axis], rest[0], width


@rnn_steps.infer_outputs
def rnn_steps_shapes(
    data: Shape | None, *_: Shape | None, state_size: int, mode: str, axis: int, **__: object
) -> list[Shape] | None:
    """The outputs of all steps, then the final states."""
    if data is None or len(data) < 2:
        return None
    steps, batch, _width = _step_sizes(data, axis)
    states = [(batch, state_size)] * (2 if mode == "lstm" else 1)
    return [(steps, batch, state_size), *states]


@rnn_steps.infer_inputs
def rnn_steps_inputs(
    data: Shape | None, *_: Shape | None, state_size: int, mode: str, axis: int, **__: object
) -> dict[str, Shape]:
    """Weights of all gates, and states, by the size of a step."""
    rows = GATES[mode] * state_size
    shapes: dict[str, Shape] = {
        "i2h_bias": (rows,),
        "h2h_weight": (rows, state_size),
        "h2h_bias": (rows,),
    }
    if data is not None and len(data) > 1:
        _steps, batch, width = _step_sizes(data, axis)
        shapes["i2h_weight"] = (rows, width)
        shapes["state"] = shapes["state_cell"] = (batch, state_size)
    return shapes


@rnn_steps.work
def rnn_steps_work(ins: KnownShapes, outs: KnownShapes, attrs: dict) -> int:
    """One multiply-add for each weight, step and sequence."""
    steps, batch, _ = outs[0]
    return steps * batch * (math.prod(ins[1]) + math.prod(ins[3]))
