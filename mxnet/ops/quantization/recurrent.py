"""The 8-bit LSTM: data and hidden states share a scale, each row of weights has its own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...error import MXNetError, ShapeError
from ..declare import op
from ..nn.recurrent import rnn, rnn_inputs, rnn_outputs, unpack_parameters
from ..shapes import Shape
from .conversions import _check_dtype

NAME = "_contrib_quantized_rnn"
GATES, STEPS, MAX_VALUE = 4, 127.0, 255.0


def _output_names(attrs: dict) -> tuple[str, ...]:
    states = ("state_output", "statecell_ouput")  # spelled as in MXNet's files
    return ("output", *(states if attrs["state_outputs"] else ()))


@op(NAME, attributes_of=rnn, types="uint8 float32 -> float32", outputs=_output_names)
def quantized_rnn(
    data: Tensor,
    parameters: Tensor,
    state: Tensor,
    state_cell: Tensor,
    data_scale: Tensor,
    data_shift: Tensor,
    *,
    quantized: bool = True,
    **attrs: Any,
) -> Tensor | tuple[Tensor, ...]:
    """Run LSTM layers over 8-bit sequences; results are float32.

    Hidden states are quantized with the scale of the data between steps and layers, so data should
    cover -1 to 1. Weights are float32 and quantized to 8 bits, each row by its largest magnitude in
    both directions.

    Parameters
    ----------
    data
        Unsigned sequences of shape ``(time, batch, features)``, the result of `quantize_asym`.
    parameters
        All weights, then all biases, as one float32 vector in the order of `RNN`.
    state, state_cell
        Initial hidden and cell states of shape ``(layers * directions, batch, state_size)``.
    data_scale, data_shift
        Scale and shift of `quantize_asym`: data is ``x * data_scale + data_shift``.
    mode
        Must be ``'lstm'``.
    p
        Not used: there is no dropout in inference.
    projection_size, use_sequence_length, lstm_state_clip_min, lstm_state_clip_max
        Not supported, as in MXNet.
    lstm_state_clip_nan
        Not used.
    quantized
        Not used; for compatibility with MXNet's files.

    >>> x, low, high = mx.nd.contrib.quantize_asym(mx.nd.array([[[-1, 1]]]))
    >>> w, h = mx.nd.ones(4 * (2 + 1 + 2)), mx.nd.zeros((1, 1, 1))
    >>> mx.nd.contrib.quantized_rnn(x, w, h, h, low, high, state_size=1, num_layers=1,
    ...                             mode="lstm").asnumpy().round(2)
    array([[[0.61]]], dtype=float32)
    """
    attrs = rnn.complete(attrs)
    _check(data, attrs)
    num_layers, directions = attrs["num_layers"], 2 if attrs["bidirectional"] else 1
    sizes = (data.shape[-1], attrs["state_size"], num_layers, directions, GATES, None)
    weights = unpack_parameters(parameters, *sizes)
    scale = _Scale(data_scale, data_shift)
    real, cells = scale.real(data.float()), []
    for layer in range(num_layers):
        first, outs = layer * directions, []
        rows = _rounded_rows([weights[4 * k : 4 * k + 2] for k in range(first, first + directions)])
        for direction in range(directions):
            k = first + direction
            x = real.flip(0) if direction else real
            bias = weights[4 * k + 2] + weights[4 * k + 3]
            out, c = _layer(x, rows[direction], bias, state[k], state_cell[k], scale)
            cells.append((out[-1], c))
            outs.append(out.flip(0) if direction else out)
        real = torch.cat(outs, -1)
    if not attrs["state_outputs"]:
        return real
    last, cell = zip(*cells, strict=True)
    return real, torch.stack(last), torch.stack(cell)


class _Scale:
    """The scale of data and hidden states: ``x * scale + shift`` in 0 to 255."""

    def __init__(self, scale: Tensor, shift: Tensor) -> None:
        self._scale, self._shift = scale.reshape(()), shift.reshape(())

    def real(self, steps: Tensor) -> Tensor:
        return (steps - self._shift) / self._scale

    def rounded(self, real: Tensor) -> Tensor:
        steps = (real * self._scale + self._shift).round_().clamp_(0, MAX_VALUE)
        return self.real(steps)


def _rounded_rows(matrices: list[list[Tensor]]) -> list[Tensor]:
    """Return the weights of both directions, quantized to 8 bits with the same steps."""
    joined = [torch.cat(pair, 1) for pair in matrices]
    largest = torch.cat(joined, 1).abs().amax(1, keepdim=True)
    step = torch.where(largest > 0, largest / STEPS, 1.0)
    return [(rows / step).round_() * step for rows in joined]


def _layer(
    x: Tensor, rows: Tensor, bias: Tensor, h: Tensor, c: Tensor, scale: _Scale
) -> tuple[Tensor, Tensor]:
    """Return the quantized hidden states of all steps, and the final cell state."""
    w_input, w_hidden = rows.split([x.shape[-1], h.shape[-1]], 1)
    gates, outs = torch.nn.functional.linear(x, w_input, bias), []
    h = scale.rounded(h)
    for gate in gates:
        i, f, g, o = (gate + h @ w_hidden.t()).chunk(GATES, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = scale.rounded(o.sigmoid() * c.tanh())
        outs.append(h)
    return torch.stack(outs), c


def _check(data: Tensor, attrs: dict[str, Any]) -> None:
    _check_dtype(NAME, data, torch.uint8)
    if attrs["mode"] != "lstm":
        raise MXNetError(
            f"{NAME}: Quantized recurrent neural network only supports LSTM operator, got "
            f"{attrs['mode']!r}."
        )
    unsupported = (attrs["projection_size"], attrs["lstm_state_clip_min"])
    if unsupported != (None, None) or attrs["use_sequence_length"]:
        raise MXNetError(f"{NAME}: projections, clipping and sequence lengths are not supported.")
    if data.ndim != 3 or not len(data):
        raise ShapeError(
            f"{NAME}: Input data should be 3D (sequence, batch, features) and have a step, but its "
            f"shape is {tuple(data.shape)}."
        )


@quantized_rnn.infer_inputs
def quantized_rnn_inputs(*shapes: Shape | None, **attrs: object) -> dict[str, Shape]:
    """All parameters in one vector; states, and two numbers of the scale."""
    inferred = rnn_inputs(*shapes, **attrs)
    inferred.pop("sequence_length", None)
    return {**inferred, "data_scale": (1,), "data_shift": (1,)}


@quantized_rnn.infer_outputs
def quantized_rnn_outputs(*shapes: Shape | None, **attrs: object) -> list[Shape] | None:
    """Both directions side by side; then the last states."""
    return rnn_outputs(*shapes, **attrs)
