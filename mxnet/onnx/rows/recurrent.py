"""The row of the fused recurrent operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...ops.nn.recurrent import unpack_parameters
from ..builder import Builder, Call, onnx_dtype
from ..library import load_onnx
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
    clip = (a["lstm_state_clip_min"], a["lstm_state_clip_max"])
    if a["mode"] == "lstm" and (a["projection_size"] or clip != (None, None)):
        return _stepped_lstm(g, call, x, *rest)
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


def _stepped_lstm(g: Builder, call: Call, x: str, *states: str) -> list[str]:
    """LSTM layers with projected or clipped states, which ONNX has as a scan over time only."""
    a, packed = call.attrs, call.constant(1)
    if packed is None or a["use_sequence_length"]:
        raise call.unsupported(
            "with a projection or clipped states needs its parameters as arrays in `params`, and "
            "no sequence lengths."
        )
    directions, layers = 1 + a["bidirectional"], a["num_layers"]
    sizes = (call.shape[-1], a["state_size"], layers, directions, 4, a["projection_size"])
    weights = unpack_parameters(torch.from_numpy(packed), *sizes)
    each, cells = len(weights) // (layers * directions), layers * directions
    firsts = [g.split(s, [1] * cells, 0) if cells > 1 else [s] for s in states[:2]]
    lasts: list[list[str]] = [[], []]
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            before = [g.squeeze(f[at], 0) for f in firsts]
            cell = [w.numpy() for w in weights[at * each : (at + 1) * each]]
            *after, made = _scan_lstm(g, call, x, before, cell, direction)
            outputs.append(made)
            for store, state in zip(lasts, after, strict=True):
                store.append(g.unsqueeze(state, 0))
        x = outputs[0] if directions == 1 else g.Concat(*outputs, axis=2)
    if not a["state_outputs"]:
        return [x]
    return [x, *(s[0] if cells == 1 else g.Concat(*s, axis=0) for s in lasts)]


def _scan_lstm(
    g: Builder, call: Call, x: str, states: list[str], weights: list[np.ndarray], direction: int
) -> list[str]:
    """Add one direction of a layer; it returns the last states and the outputs of all steps."""
    helper = load_onnx().helper
    body = Builder(g.opset, g)
    body.scope = g.scope
    hidden, cell, step = (body.unique(f"{g.scope}_{n}") for n in ("hidden", "cell", "step"))
    into, back = (g.array(np.ascontiguousarray(w.T)) for w in weights[:2])
    gates = body.Add(body.MatMul(step, into), body.MatMul(hidden, back))
    gates = body.Add(gates, g.array(weights[2] + weights[3]))
    i, f, c, o = body.split(gates, [call.attrs["state_size"]] * 4, 1)
    kept = body.Mul(body.Sigmoid(f), cell)
    new_cell = body.Add(kept, body.Mul(body.Sigmoid(i), body.Tanh(c)))
    ends = (call.attrs["lstm_state_clip_min"], call.attrs["lstm_state_clip_max"])
    if ends != (None, None):
        limits = ["" if e is None else g.scalar(e, call.dtype) for e in ends]
        new_cell = body.Clip(new_cell, *limits)
    made = body.Mul(body.Sigmoid(o), body.Tanh(new_cell))
    if len(weights) == 5:
        made = body.MatMul(made, g.array(np.ascontiguousarray(weights[4].T)))
    heads = [made, new_cell, body.Identity(made)]
    infos = [
        [helper.make_tensor_value_info(n, onnx_dtype(call.dtype), None) for n in names]
        for names in ((hidden, cell, step), heads)
    ]
    graph = helper.make_graph(body.nodes, f"{g.scope}_step", *infos)
    return g.Scan(
        *states,
        x,
        body=graph,
        num_scan_inputs=1,
        scan_input_directions=[direction],
        scan_output_directions=[direction],
        outputs=3,
    )
