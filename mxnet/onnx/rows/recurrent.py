"""The row of the fused recurrent operator."""

from __future__ import annotations

import numpy as np
import torch

from ..builder import Builder, Call
from ..table import row

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}
# The places of ONNX's gates in MXNet's order: LSTM i f c o -> i o f c, GRU r z n -> z r n.
ORDER = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_relu": (0,), "rnn_tanh": (0,)}
OP_TYPES = {"lstm": "LSTM", "gru": "GRU", "rnn_relu": "RNN", "rnn_tanh": "RNN"}


def _reordered(weight: np.ndarray, mode: str, size: int) -> np.ndarray:
    gates = weight.reshape(GATES[mode], size, -1)[list(ORDER[mode])]
    return gates.reshape(GATES[mode] * size, -1)


def _unpacked(call: Call, packed: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the matrices, two for each layer and direction, and the biases likewise."""
    a = call.attrs
    gates, size, directions = GATES[a["mode"]], a["state_size"], 1 + a["bidirectional"]
    shapes = []
    for layer in range(a["num_layers"]):
        width = call.shape[-1] if layer == 0 else size * directions
        shapes += [(gates * size, width), (gates * size, size)] * directions
    shapes += [(gates * size,)] * (2 * a["num_layers"] * directions)
    pieces, at = [], 0
    for shape in shapes:
        count = int(np.prod(shape))
        pieces.append(packed[at : at + count].reshape(shape))
        at += count
    half = len(pieces) // 2
    return pieces[:half], pieces[half:]


def _layer(
    g: Builder, call: Call, x: str, weights: list, states: list[str], lengths: str
) -> tuple[str, list[str]]:
    """Add one layer; it returns ``(time, batch, directions * size)`` and the last states."""
    a = call.attrs
    mode, size, directions = a["mode"], a["state_size"], 1 + a["bidirectional"]
    matrices, biases = weights
    stacked = [np.stack([_reordered(m, mode, size) for m in matrices[kind::2]]) for kind in (0, 1)]
    bias = np.stack(
        [
            np.concatenate([_reordered(b, mode, size).ravel() for b in biases[2 * d : 2 * d + 2]])
            for d in range(directions)
        ]
    )
    options = {"hidden_size": size}
    if directions == 2:
        options["direction"] = "bidirectional"
    if mode == "gru":
        options["linear_before_reset"] = 1
    if mode == "rnn_relu":
        options["activations"] = ["Relu"] * directions
    inputs = [x, g.array(stacked[0]), g.array(stacked[1]), g.array(bias), lengths, *states]
    made, *last = g.add(OP_TYPES[mode], *inputs, outputs=1 + len(states), **options)
    joined = g.Transpose(made, perm=[0, 2, 1, 3])
    return g.reshape(joined, [0, 0, directions * size]), last


@row("RNN")
def rnn(g: Builder, call: Call, x: str, parameters: str, *rest: str) -> list[str]:
    """Stacked LSTM, GRU or RNN layers."""
    a = call.attrs
    packed = call.constant(1)
    if packed is None:
        raise call.unsupported("needs its parameters as arrays in `params`, not as an input.")
    if a["projection_size"] or a["lstm_state_clip_min"] or a["lstm_state_clip_max"]:
        raise call.unsupported("with a projection or clipped states has no ONNX form.")
    count = 2 if a["mode"] == "lstm" else 1
    states, lengths = list(rest[:count]), ""
    if a["use_sequence_length"]:
        lengths = g.cast(rest[count], call.dtypes[2 + count], torch.int32)
    matrices, biases = _unpacked(call, packed.ravel())
    directions, layers = 1 + a["bidirectional"], a["num_layers"]
    parts = [[s] if layers == 1 else g.split(s, [directions] * layers, 0) for s in states]
    found: list[list[str]] = [[] for _ in states]
    for layer in range(layers):
        part = slice(2 * directions * layer, 2 * directions * (layer + 1))
        weights = [matrices[part], biases[part]]
        x, last = _layer(g, call, x, weights, [p[layer] for p in parts], lengths)
        for store, state in zip(found, last, strict=True):
            store.append(state)
    if not a["state_outputs"]:
        return [x]
    return [x, *(f[0] if layers == 1 else g.Concat(*f, axis=0) for f in found)]
