"""The row of the fused recurrent operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..builder import Builder, Call
from ..table import row

# The places of ONNX's gates in MXNet's order: LSTM i f c o -> i o f c, GRU r z n -> z r n.
ORDER = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_relu": (0,), "rnn_tanh": (0,)}
OP_TYPES = {"lstm": "LSTM", "gru": "GRU", "rnn_relu": "RNN", "rnn_tanh": "RNN"}


class _NumberedWeights:
    """Cuts packed parameters that are known numbers; runtimes then get plain constants."""

    def __init__(self, g: Builder, packed: np.ndarray) -> None:
        self.g, self.packed = g, packed.ravel()

    def cut(self, sizes: list[int]) -> list[np.ndarray]:
        return np.split(self.packed, np.cumsum(sizes)[:-1])

    def order(self, piece: np.ndarray, gates: list[int], shape: list[int]) -> np.ndarray:
        return piece.reshape(len(gates), -1)[gates].reshape(shape)

    def join(self, pieces: list[np.ndarray], axis: int) -> np.ndarray:
        return np.concatenate(pieces, axis)

    def name(self, array: np.ndarray) -> str:
        return self.g.array(array)


class _FedWeights:
    """Cuts packed parameters that are an input of the model, when it runs."""

    def __init__(self, g: Builder, packed: str) -> None:
        self.g, self.packed = g, packed

    def cut(self, sizes: list[int]) -> list[str]:
        return self.g.split(self.packed, sizes, 0)

    def order(self, piece: str, gates: list[int], shape: list[int]) -> str:
        apart = self.g.reshape(piece, [len(gates), -1])
        return self.g.reshape(self.g.Gather(apart, self.g.ints(*gates), axis=0), shape)

    def join(self, pieces: list[str], axis: int) -> str:
        return self.g.Concat(*pieces, axis=axis)

    def name(self, value: str) -> str:
        return value


def _weights(g: Builder, call: Call, parameters: str) -> list[tuple[str, str, str]]:
    """Return the input matrix, state matrix and bias of each layer, in ONNX's order of gates."""
    a = call.attrs
    gates, size, directions = list(ORDER[a["mode"]]), a["state_size"], 1 + a["bidirectional"]
    rows, count = len(gates) * size, 2 * directions * a["num_layers"]
    widths = []
    for layer in range(a["num_layers"]):
        width = call.shape[-1] if layer == 0 else size * directions
        widths += [width, size] * directions
    packed = call.constant(1)
    at = _FedWeights(g, parameters) if packed is None else _NumberedWeights(g, packed)
    pieces = at.cut([rows * w for w in widths] + [rows] * count)
    matrices = [
        at.order(p, gates, [1, rows, w]) for p, w in zip(pieces[:count], widths, strict=True)
    ]
    biases = [at.order(p, gates, [1, rows]) for p in pieces[count:]]
    found = []
    for first in range(0, count, 2 * directions):
        part = slice(first, first + 2 * directions)
        pairs = [at.join(biases[i : i + 2], 1) for i in range(first, part.stop, 2)]
        kinds = [at.join(matrices[part][kind::2], 0) for kind in (0, 1)]
        found.append(tuple(map(at.name, (*kinds, at.join(pairs, 0)))))
    return found


def _layer(
    g: Builder, call: Call, x: str, weights: tuple[str, ...], states: list[str], lengths: str
) -> tuple[str, list[str]]:
    """Add one layer; it returns ``(time, batch, directions * size)`` and the last states."""
    a = call.attrs
    mode, size, directions = a["mode"], a["state_size"], 1 + a["bidirectional"]
    options: dict[str, Any] = {"hidden_size": size}
    if directions == 2:
        options["direction"] = "bidirectional"
    if mode == "gru":
        options["linear_before_reset"] = 1
    if mode == "rnn_relu":
        options["activations"] = ["Relu"] * directions
    inputs = [x, *weights, lengths, *states]
    made, *last = g.add(OP_TYPES[mode], *inputs, outputs=1 + len(states), **options)
    joined = g.Transpose(made, perm=[0, 2, 1, 3])
    return g.reshape(joined, [0, 0, directions * size]), last


@row("RNN")
def rnn(g: Builder, call: Call, x: str, parameters: str, *rest: str) -> list[str]:
    """Stacked LSTM, GRU or RNN layers."""
    a = call.attrs
    if a["projection_size"] or a["lstm_state_clip_min"] or a["lstm_state_clip_max"]:
        raise call.unsupported("with a projection or clipped states has no ONNX form.")
    count = 2 if a["mode"] == "lstm" else 1
    states, lengths = list(rest[:count]), ""
    if a["use_sequence_length"]:
        lengths = g.cast(rest[count], call.dtypes[2 + count], torch.int32)
    weights = _weights(g, call, parameters)
    directions, layers = 1 + a["bidirectional"], a["num_layers"]
    parts = [[s] if layers == 1 else g.split(s, [directions] * layers, 0) for s in states]
    found: list[list[str]] = [[] for _ in states]
    for layer in range(layers):
        x, last = _layer(g, call, x, weights[layer], [p[layer] for p in parts], lengths)
        for store, state in zip(found, last, strict=True):
            store.append(state)
    if not a["state_outputs"]:
        return [x]
    return [x, *(f[0] if layers == 1 else g.Concat(*f, axis=0) for f in found)]
