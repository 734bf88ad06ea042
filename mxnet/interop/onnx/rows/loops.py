"""Rows of loops and branches, whose bodies are graphs, and of recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ....graph import Graph
from ....ops.nn.recurrent import unpack_parameters
from ..builder import INT64, Builder, Call, load_onnx, onnx_dtype, row

BOOL = torch.bool
Info = tuple[str, torch.dtype, list[int] | None]


def _child(g: Builder) -> Builder:
    child = Builder(g.opset, g)
    child.scope = g.scope
    return child


def _graph_of(name: str, g: Builder, inputs: Sequence[Info], outputs: Sequence[Info]) -> Any:
    helper = load_onnx().helper
    infos = [
        [helper.make_tensor_value_info(n, onnx_dtype(t), s) for n, t, s in side]
        for side in (inputs, outputs)
    ]
    return helper.make_graph(g.nodes, name, *infos)


def _infos(names: Sequence[str], dtypes: Sequence[torch.dtype]) -> list[Info]:
    return [(n, t, None) for n, t in zip(names, dtypes, strict=True)]


def _truth(g: Builder, value: str, dtype: torch.dtype) -> str:
    """Return a condition as a bool without axes."""
    return g.reshape(g.cast(value, dtype, BOOL), [])


def _run(
    g: Builder, call: Call, graph: Graph, names: Sequence[str], facts: Sequence[tuple]
) -> tuple[list[str], list[torch.dtype]]:
    """Export a body into a builder; outputs are fresh names."""
    outputs, dtypes = call.export_graph(graph, g, names, facts)
    return [g.Identity(m) for m in outputs], dtypes


def _loop_inputs(body: Builder, count: int) -> tuple[str, str, list[str]]:
    """Return the names that a loop gives its body: the step, the condition, the states."""
    step, condition = body.unique("step"), body.unique("going")
    body.inputs = [step, condition, *(body.unique("state") for _ in range(count))]
    return step, condition, body.inputs[2:]


def _write_loop(
    g: Builder,
    call: Call,
    body: Builder,
    bounds: tuple[str, str],
    condition: str,
    starts: Sequence[str],
    outputs: Sequence[str],
    dtypes: Sequence[torch.dtype],
) -> list[str]:
    """Add a Loop whose body returns outputs, which are stacked, and then states."""
    count = call.attrs["num_out_data"]
    states, stacked = _infos(outputs, dtypes)[count:], _infos(outputs, dtypes)[:count]
    step, going, *carried = body.inputs
    inputs: list[Info] = [(step, INT64, []), (going, BOOL, [])]
    inputs += _infos(carried, [t for _, t, _ in states])
    graph = _graph_of(f"{call.name}_body", body, inputs, [(condition, BOOL, []), *states, *stacked])
    names = [g.unique(f"{g.scope}_loop") for _ in outputs]
    results = g.add("Loop", *bounds, *starts, outputs=names, body=graph)
    return [*results[len(states) :], *results[: len(states)]]


@row("_foreach")
def foreach(g: Builder, call: Call, *xs: str) -> list[str]:
    """Loop over axis 0 of the data; outputs are stacked, states are carried."""
    a, (graph,) = call.attrs, call.node.subgraphs
    data_at, state_at, rest_at = (a[k] for k in ("in_data_locs", "in_state_locs", "remain_locs"))
    n_data, n_states = len(data_at), len(state_at)
    body = _child(g)
    step, going, carried = _loop_inputs(body, n_states)
    feed: list[str] = [""] * len(xs)
    facts: list[tuple] = [()] * len(xs)
    for i, slot in enumerate(data_at):
        feed[slot] = body.Gather(xs[i], step, axis=0)
        if len(call.shapes[i]) == 1:
            feed[slot] = body.reshape(feed[slot], [1])
        facts[slot] = (call.shapes[i][1:] or (1,), call.dtypes[i])
    for i, slot in enumerate(state_at):
        feed[slot] = carried[i]
        facts[slot] = (call.shapes[n_data + i], call.dtypes[n_data + i])
    for i, slot in enumerate(rest_at):
        at = n_data + n_states + i
        feed[slot], facts[slot] = xs[at], (call.shapes[at], call.dtypes[at])
    outputs, dtypes = _run(body, call, graph, feed, facts)
    trips = g.squeeze(g.size_of(xs[0], 0), 0)
    starts = xs[n_data : n_data + n_states]
    return _write_loop(g, call, body, (trips, ""), body.Identity(going), starts, outputs, dtypes)


@row("_while_loop")
def while_loop(g: Builder, call: Call, *xs: str) -> list[str]:
    """Loop while a condition holds; outputs are stacked and padded with zeros."""
    a, (test, graph) = call.attrs, call.node.subgraphs
    n_out, slots = a["num_out_data"], [a["func_input_locs"][i] for i in a["func_var_locs"]]
    facts = list(zip(call.shapes, call.dtypes, strict=True))

    def holds(b: Builder, values: list[str]) -> str:
        at = a["cond_input_locs"]
        chosen: list[str] = [values[i] for i in at]
        results, dtypes = _run(b, call, test, chosen, [facts[i] for i in at])
        return _truth(b, results[0], dtypes[0])

    body = _child(g)
    _, _, carried = _loop_inputs(body, len(slots))
    values: list[str] = list(xs)
    for slot, name in zip(slots, carried, strict=True):
        values[slot] = name
    at = a["func_input_locs"]
    results, dtypes = _run(body, call, graph, [values[i] for i in at], [facts[i] for i in at])
    for slot, name in zip(slots, results[n_out:], strict=True):
        values[slot] = name
    more = holds(body, values)
    bounds = (g.scalar(a["max_iterations"], INT64), holds(g, list(xs)))
    starts = [xs[p] for p in slots]
    outputs = _write_loop(g, call, body, bounds, more, starts, results, dtypes)
    if not a["pad_outputs"]:
        return outputs
    stacked = [_pad_steps(g, call, name, i) for i, name in enumerate(outputs[:n_out])]
    return [*stacked, *outputs[n_out:]]


def _pad_steps(g: Builder, call: Call, x: str, output: int) -> str:
    """Pad the stacked outputs of a loop with zeros, up to the maximum number of steps."""
    rank = len(call.out_shapes[output])
    limit = g.ints(call.attrs["max_iterations"])
    missing = g.Sub(limit, g.size_of(x, 0))
    rest = [g.ints(*[0] * (rank - 1))] if rank > 1 else []
    around = g.Concat(g.ints(*[0] * rank), missing, *rest, axis=0)
    return g.Pad(x, around, g.scalar(0, call.out_dtypes[output]))


@row("_cond")
def cond(g: Builder, call: Call, *xs: str) -> list[str]:
    """Run one of two bodies."""
    a, graphs = call.attrs, call.node.subgraphs
    facts = list(zip(call.shapes, call.dtypes, strict=True))

    def part(b: Builder, graph: Graph, key: str) -> tuple[list[str], list[torch.dtype]]:
        return _run(b, call, graph, [xs[i] for i in a[key]], [facts[i] for i in a[key]])

    test, dtypes = part(g, graphs[0], "cond_input_locs")
    branches = []
    for graph, key in zip(graphs[1:], ("then_input_locs", "else_input_locs"), strict=True):
        body = _child(g)
        outputs, kinds = part(body, graph, key)
        branches.append(_graph_of(f"{call.name}_{key[:4]}", body, [], _infos(outputs, kinds)))
    return g.add(
        "If",
        _truth(g, test[0], dtypes[0]),
        outputs=[g.unique(f"{g.scope}_if") for _ in call.out_shapes],
        then_branch=branches[0],
        else_branch=branches[1],
    )


# -- recurrent layers -----------------------------------------------------------------------

# The places of ONNX's gates in MXNet's order: LSTM i f c o -> i o f c, GRU r z n -> z r n.
ORDER = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_relu": (0,), "rnn_tanh": (0,)}
OP_TYPES = {"lstm": "LSTM", "gru": "GRU", "rnn_relu": "RNN", "rnn_tanh": "RNN"}


class _NumberedWeights:
    """Splits constant packed parameters; runtimes then get plain constants."""

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
    """Splits packed parameters that are an input of the model, at run time."""

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
    at: Any = _FedWeights(g, parameters) if packed is None else _NumberedWeights(g, packed)
    pieces = at.cut([rows * w for w in widths] + [rows] * count)
    matrices = [
        at.order(p, gates, [1, rows, w]) for p, w in zip(pieces[:count], widths, strict=True)
    ]
    biases = [at.order(p, gates, [1, rows]) for p in pieces[count:]]
    layers = []
    for first in range(0, count, 2 * directions):
        part = slice(first, first + 2 * directions)
        pairs = [at.join(biases[i : i + 2], 1) for i in range(first, part.stop, 2)]
        kinds = [at.join(matrices[part][kind::2], 0) for kind in (0, 1)]
        layers.append(tuple(map(at.name, (*kinds, at.join(pairs, 0)))))
    return layers


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
    output, *last = g.add(OP_TYPES[mode], *inputs, outputs=1 + len(states), **options)
    joined = g.Transpose(output, perm=[0, 2, 1, 3])
    return g.reshape(joined, [0, 0, directions * size]), last


@row("RNN", first_suffix=lambda call: "")
def rnn(g: Builder, call: Call, x: str, parameters: str, *rest: str) -> list[str]:
    """Stacked LSTM, GRU or RNN layers."""
    a = call.attrs
    clip = (a["lstm_state_clip_min"], a["lstm_state_clip_max"])
    if a["mode"] == "lstm" and (a["projection_size"] or clip != (None, None)):
        return _step_lstm(g, call, x, *rest)
    count = 2 if a["mode"] == "lstm" else 1
    # ONNX's layers begin with zeros where no state is given.
    states = ["" if s in g.unsized and g.unsized[s].value == 0 else s for s in rest[:count]]
    lengths = ""
    if a["use_sequence_length"]:
        lengths = g.cast(rest[count], call.dtypes[2 + count], torch.int32)
    weights = _weights(g, call, parameters)
    directions, layers = 1 + a["bidirectional"], a["num_layers"]
    parts = [
        [s] * layers if layers == 1 or not s else g.split(s, [directions] * layers, 0)
        for s in states
    ]
    last_states: list[list[str]] = [[] for _ in states]
    for layer in range(layers):
        x, last = _layer(g, call, x, weights[layer], [p[layer] for p in parts], lengths)
        for store, state in zip(last_states, last, strict=True):
            store.append(state)
    if not a["state_outputs"]:
        return [x]
    return [x, *(f[0] if layers == 1 else g.Concat(*f, axis=0) for f in last_states)]


def _step_lstm(g: Builder, call: Call, x: str, *states: str) -> list[str]:
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
            *after, output = _scan_lstm(g, call, x, before, cell, direction)
            outputs.append(output)
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
    body = _child(g)
    hidden, cell, step = (body.unique(f"{g.scope}_{n}") for n in ("hidden", "cell", "step"))
    into, back = (g.array(np.ascontiguousarray(w.T)) for w in weights[:2])
    gates = body.Add(body.MatMul(step, into), body.MatMul(hidden, back))
    gates = body.Add(gates, g.array(weights[2] + weights[3]))
    i, f, c, o = body.split(gates, [call.attrs["state_size"]] * 4, 1)
    remembered = body.Mul(body.Sigmoid(f), cell)
    new_cell = body.Add(remembered, body.Mul(body.Sigmoid(i), body.Tanh(c)))
    ends = (call.attrs["lstm_state_clip_min"], call.attrs["lstm_state_clip_max"])
    if ends != (None, None):
        limits = ["" if e is None else g.scalar(e, call.dtype) for e in ends]
        new_cell = body.Clip(new_cell, *limits)
    output = body.Mul(body.Sigmoid(o), body.Tanh(new_cell))
    if len(weights) == 5:
        output = body.MatMul(output, g.array(np.ascontiguousarray(weights[4].T)))
    heads = [output, new_cell, body.Identity(output)]
    inputs, outputs = (_infos(names, [call.dtype] * 3) for names in ((hidden, cell, step), heads))
    graph = _graph_of(f"{g.scope}_step", body, inputs, outputs)
    return g.Scan(
        *states,
        x,
        body=graph,
        num_scan_inputs=1,
        scan_input_directions=[direction],
        scan_output_directions=[direction],
        outputs=3,
    )
