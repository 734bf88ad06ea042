"""Recurrent layers with all of ONNX's options, one step at a time.

`RNN` runs the usual layers in one kernel; this operator serves peepholes, other functions, clipped
gates and the GRU that resets before its product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from ...error import MXNetError
from ..attributes import Floats
from ..declare import op

# Functions by name, with their default alpha and beta.
FUNCTIONS: dict[str, tuple[Callable[..., Tensor], float, float]] = {
    "relu": (lambda x, a, b: torch.relu(x), 0, 0),
    "tanh": (lambda x, a, b: torch.tanh(x), 0, 0),
    "sigmoid": (lambda x, a, b: torch.sigmoid(x), 0, 0),
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": (lambda x, a, b: functional.leaky_relu(x, a), 0.01, 0),
    "thresholdedrelu": (lambda x, a, b: torch.where(x >= a, x, 0), 1.0, 0),
    "scaledtanh": (lambda x, a, b: a * torch.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": (lambda x, a, b: (a * x + b).clamp(0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: functional.elu(x, a), 1.0, 0),
    "softsign": (lambda x, a, b: functional.softsign(x), 0, 0),
    "softplus": (lambda x, a, b: functional.softplus(x), 0, 0),
}
GATES = {"lstm": 4, "gru": 3, "rnn": 1}
Activation = Callable[[Tensor], Tensor]


def _functions(
    names: str, alphas: Sequence[float], betas: Sequence[float], limit: float
) -> list[Activation]:
    """Return the functions of the gates, which limit what they take."""
    found: list[Activation] = []
    left, right = list(alphas), list(betas)
    for name in names.split(","):
        if name not in FUNCTIONS:
            raise MXNetError(f"_onnx_rnn: unknown function {name!r}; known are {list(FUNCTIONS)}.")
        function, alpha, beta = FUNCTIONS[name]
        alpha = left.pop(0) if alpha and left else alpha
        beta = right.pop(0) if beta and right else beta
        found.append(_limited(function, alpha, beta, limit))
    return found


def _limited(function: Callable[..., Tensor], a: float, b: float, limit: float) -> Activation:
    if limit <= 0:
        return lambda x: function(x, a, b)
    return lambda x: function(x.clamp(-limit, limit), a, b)


def _lstm_step(x, h, c, r, bias, f: list[Activation], peepholes: Tensor | None, options: dict):
    i, o, z, g = (x + functional.linear(h, r, bias)).chunk(4, -1)  # `z` is the forget gate
    p_o = None
    if peepholes is not None:
        p_i, p_o, p_f = peepholes.chunk(3)
        i, z = i + p_i * c, z + p_f * c
    i = f[0](i)
    z = 1 - i if options["input_forget"] else f[0](z)
    cell = z * c + i * f[1](g)
    if p_o is not None:
        o = o + p_o * cell
    return f[0](o) * f[2](cell), cell


def _gru_step(x, h, c, r, bias, f: list[Activation], peepholes: Tensor | None, options: dict):
    size = h.shape[-1]
    gates = functional.linear(h, r[: 2 * size], bias[: 2 * size])
    z, reset = f[0](x[:, : 2 * size] + gates).chunk(2, -1)
    rows, shift = r[2 * size :], bias[2 * size :]
    if options["linear_before_reset"]:
        inner = reset * functional.linear(h, rows, shift)
    else:
        inner = functional.linear(reset * h, rows, shift)
    new = f[1](x[:, 2 * size :] + inner)
    return (1 - z) * new + z * h, None


def _rnn_step(x, h, c, r, bias, f: list[Activation], peepholes: Tensor | None, options: dict):
    return f[0](x + functional.linear(h, r, bias)), None


STEPS = {"lstm": _lstm_step, "gru": _gru_step, "rnn": _rnn_step}


def _one_direction(data, lengths, weights, states, functions, options, is_reverse):
    """Run one direction; beyond a sequence's length outputs are 0 and states stay."""
    w, r, b, peepholes = weights
    half = b.shape[0] // 2
    projected = functional.linear(data, w, b[:half])
    h, c = states
    times = range(data.shape[0])
    outs: list[Tensor] = [torch.empty(0)] * data.shape[0]
    for t in reversed(times) if is_reverse else times:
        new_h, new_c = STEPS[options["kind"]](
            projected[t], h, c, r, b[half:], functions, peepholes, options
        )
        if lengths is None:
            h, c, outs[t] = new_h, new_c, new_h
            continue
        is_on = (lengths > t)[:, None]
        h = torch.where(is_on, new_h, h)
        c = c if new_c is None else torch.where(is_on, new_c, c)
        outs[t] = torch.where(is_on, new_h, 0)
    return torch.stack(outs), h, c


def _has(kind: str):
    return lambda attrs: kind in attrs["given"].split(",")


@op(
    "_onnx_rnn",
    types="T T T T I T -> T",
    optional={
        "bias": _has("bias"),
        "lengths": _has("lengths"),
        "state": _has("state"),
        "cell": _has("cell"),
        "peepholes": _has("peepholes"),
    },
    outputs=lambda a: 3 if a["kind"] == "lstm" else 2,
)
def rnn(
    data: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    state: Tensor | None = None,
    cell: Tensor | None = None,
    peepholes: Tensor | None = None,
    *,
    kind: Literal["lstm", "gru", "rnn"],
    activations: str,
    given: str = "",
    direction: Literal["forward", "reverse", "bidirectional"] = "forward",
    alphas: Floats = (),
    betas: Floats = (),
    clip: float = 0.0,
    linear_before_reset: bool = False,
    input_forget: bool = False,
) -> tuple[Tensor, ...]:
    """Run a recurrent layer over ``(time, batch, features)``.

    Weights and gates are in ONNX's order, with a first axis of directions. `activations` lists the
    functions of all directions; `given` names the optional inputs. Returns
    ``(time, directions, batch, size)`` and the last states.

    Parameters
    ----------
    recurrence
        Weights of the states.
    lengths
        Number of real elements in each sequence.
    state
        First states.
    cell
        First cells of an LSTM.
    peepholes
        Weights of the cell in the gates of an LSTM.
    kind
        Kind of layer.
    activations
        Names of the functions of the gates, with commas.
    given
        Names of the optional inputs that are given, with commas.
    direction
        Which way to go.
    alphas
        First numbers of the functions that have any.
    betas
        Second numbers of the functions that have any.
    clip
        Bound of what the functions take; 0 is none.
    linear_before_reset
        Whether a GRU multiplies before it resets.
    input_forget
        Whether an LSTM forgets what it does not take in.

    >>> x, w, r = mx.nd.ones((1, 1, 1)), mx.nd.zeros((1, 3, 1)), mx.nd.zeros((1, 3, 1))
    >>> h = mx.nd.ones((1, 1, 1))
    >>> out, last = mx.nd._internal._onnx_rnn(
    ...     x, w, r, state=h, kind="gru", activations="sigmoid,tanh", given="state")
    >>> last.asnumpy().ravel()
    array([0.5], dtype=float32)
    """
    directions, size = weight.shape[0], recurrence.shape[-1]
    zeros = data.new_zeros((directions, data.shape[1], size))
    start_h, start_c = zeros if state is None else state, zeros if cell is None else cell
    if bias is None:
        bias = data.new_zeros((directions, 2 * GATES[kind] * size))
    functions = _functions(activations, alphas, betas, clip)
    each = len(functions) // directions
    options = {
        "kind": kind,
        "linear_before_reset": linear_before_reset,
        "input_forget": input_forget,
    }
    runs = [
        _one_direction(
            data,
            lengths,
            (weight[d], recurrence[d], bias[d], None if peepholes is None else peepholes[d]),
            (start_h[d], start_c[d]),
            functions[d * each : (d + 1) * each],
            options,
            direction == "reverse" or d == 1,
        )
        for d in range(directions)
    ]
    outs, hs, cs = zip(*runs, strict=True)
    made = (torch.stack(outs, 1), torch.stack(hs))
    return (*made, torch.stack(cs)) if kind == "lstm" else made
