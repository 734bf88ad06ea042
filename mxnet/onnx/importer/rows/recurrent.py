"""Import rows of LSTM, GRU and RNN."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions import F
from ..table import imports
from ..value import OnnxNode, Value

# The places of MXNet's gates in ONNX's order: LSTM i o f c -> i f c o, GRU z r n -> r z n.
ORDER = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


def _reordered(weight: np.ndarray, kind: str, size: int) -> np.ndarray:
    order = ORDER[kind]
    return weight.reshape(len(order), size, -1)[list(order)].reshape(len(order) * size, -1)


def _mode(node: OnnxNode, directions: int) -> str | None:
    """Return MXNet's name of the layer, None if it has no such functions."""
    kind = node.op_type
    functions = node.get("activations") or DEFAULTS[kind] * directions
    per_direction = len(DEFAULTS[kind])
    sets = {
        tuple(functions[i : i + per_direction]) for i in range(0, len(functions), per_direction)
    }
    if len(sets) != 1:
        return None
    chosen = list(sets.pop())
    if kind == "RNN" and chosen in (["Tanh"], ["Relu"]):
        return f"rnn_{chosen[0].lower()}"
    if kind != "RNN" and chosen == DEFAULTS[kind]:
        return kind.lower()
    return None


def _needs_steps(node: OnnxNode, rest: tuple[Value | None, ...], *weights: Value | None) -> bool:
    """Whether `RNN` has no such layer, so that it runs step by step."""
    kind, direction = node.op_type, node.get("direction", "forward")
    lengths = rest[1] if len(rest) > 1 else None
    directions = 2 if direction == "bidirectional" else 1
    return (
        bool(node.get("clip"))
        or (kind == "LSTM" and len(rest) > 4 and rest[4] is not None)
        or (kind == "GRU" and not node.get("linear_before_reset", 0))
        or bool(node.get("input_forget", 0))
        or (direction == "reverse" and lengths is not None)
        or any(v is not None and v.constant is None for v in weights)
        or _mode(node, directions) is None
    )


def _stepped(node: OnnxNode, x: Value, w: Value, r: Value, *rest: Value | None) -> Any:
    """Return a layer that runs step by step."""
    kind, is_batch_first = node.op_type, bool(node.get("layout", 0))
    directions = 2 if node.get("direction", "forward") == "bidirectional" else 1
    names = ("bias", "lengths", "state", "cell", "peepholes")
    given = {n: v for n, v in zip(names, rest, strict=False) if v is not None}
    symbols = {n: v.symbol for n, v in given.items()}
    data = x.symbol
    if is_batch_first:
        data = F.swapaxes(data, dim1=0, dim2=1)
        symbols |= {
            n: F.swapaxes(symbols[n], dim1=0, dim2=1) for n in ("state", "cell") if n in symbols
        }
    functions = node.get("activations") or DEFAULTS[kind] * directions
    made = F._internal._onnx_rnn(
        data,
        w.symbol,
        r.symbol,
        **symbols,
        kind=kind.lower(),
        given=",".join(given),
        activations=",".join(f.lower() for f in functions),
        direction=node.get("direction", "forward"),
        alphas=tuple(node.get("activation_alpha") or ()),
        betas=tuple(node.get("activation_beta") or ()),
        clip=node.get("clip", 0.0),
        linear_before_reset=bool(node.get("linear_before_reset", 0)),
        input_forget=bool(node.get("input_forget", 0)),
        name=node.name,
    )
    outs = [made[i] for i in range(3 if kind == "LSTM" else 2)]
    if not is_batch_first:
        return outs
    whole = F.transpose(outs[0], axes=(2, 0, 1, 3))
    return [whole, *(F.swapaxes(s, dim1=0, dim2=1) for s in outs[1:])]


def _packed(node: OnnxNode, w: np.ndarray, r: np.ndarray, b: np.ndarray | None) -> np.ndarray:
    """Return all weights and biases as MXNet packs them."""
    kind, size = node.op_type, node.get("hidden_size")
    gates, directions = len(ORDER[kind]), w.shape[0]
    if b is None:
        b = np.zeros((directions, 2 * gates * size), w.dtype)
    pieces = []
    for d in range(directions):
        pieces += [_reordered(w[d], kind, size).ravel(), _reordered(r[d], kind, size).ravel()]
    for d in range(directions):
        for half in np.split(b[d], 2):
            pieces.append(_reordered(half, kind, size).ravel())
    return np.concatenate(pieces)


def _zeros(x: Any, directions: int, size: int) -> Any:
    """Return zeros ``(directions, batch, size)`` for data ``(time, batch, features)``."""
    one = F.slice_axis(F.slice_axis(x, axis=0, begin=0, end=1), axis=2, begin=0, end=1)
    return F.broadcast_axis(F.zeros_like(one), axis=(0, 2), size=(directions, size))


@imports("LSTM", "GRU", "RNN")
def recurrent(node: OnnxNode, x: Value, w: Value, r: Value, *rest: Value | None) -> Any:
    """A recurrent layer in one or both directions."""
    bias, lengths, state, cell = [*rest, *[None] * 4][:4]
    if _needs_steps(node, rest, bias, w, r):
        return _stepped(node, x, w, r, *rest)
    direction, size = node.get("direction", "forward"), node.get("hidden_size")
    directions = 2 if direction == "bidirectional" else 1
    biases = None if bias is None else node.constant(bias, "B")
    weights = _packed(node, node.constant(w, "W"), node.constant(r, "R"), biases)
    packed = node.importer.constant(weights, f"{node.name}_parameters")
    data = F.swapaxes(x.symbol, dim1=0, dim2=1) if node.get("layout", 0) else x.symbol
    if direction == "reverse":
        data = F.reverse(data, axis=0)
    states = [state] if node.op_type != "LSTM" else [state, cell]
    starts = [_start(node, s, data, directions, size) for s in states]
    options = {}
    if lengths is not None:
        if direction == "reverse":
            raise node.unsupported("in reverse with sequence_lens has no operator.")
        starts.append(F.cast(lengths.symbol, dtype="int32"))
        options["use_sequence_length"] = True
    made = F.RNN(
        data,
        packed,
        *starts,
        state_size=size,
        num_layers=1,
        bidirectional=directions == 2,
        mode=_mode(node, directions),
        state_outputs=True,
        name=node.name,
        **options,
    )
    return _outputs(node, made, directions, size, direction)


def _start(node: OnnxNode, state: Value | None, data: Any, directions: int, size: int) -> Any:
    if state is None:
        return _zeros(data, directions, size)
    return F.swapaxes(state.symbol, dim1=0, dim2=1) if node.get("layout", 0) else state.symbol


def _outputs(node: OnnxNode, made: Any, directions: int, size: int, direction: str) -> list:
    """Return ``(time, directions, batch, size)`` and the last states."""
    out = F.reverse(made[0], axis=0) if direction == "reverse" else made[0]
    split = F.reshape(out, shape=(0, 0, directions, size))
    states = [made[i] for i in range(1, len(made.list_outputs()))]
    if node.get("layout", 0):
        return [
            F.swapaxes(split, dim1=0, dim2=1),
            *(F.swapaxes(s, dim1=0, dim2=1) for s in states),
        ]
    return [F.transpose(split, axes=(0, 2, 1, 3)), *states]
