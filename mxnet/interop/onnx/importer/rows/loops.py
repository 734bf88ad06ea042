"""Import rows of loops and branches, whose bodies become graphs inside nodes, and of recurrence."""

from __future__ import annotations

from typing import Any

import numpy as np

from .....base import is_np_shape
from ..value import F, OnnxNode, SequenceValue, Value, as_scalar, axis_within, imports, internal

MAX_STEPS = 2**31 - 1
MAX_COUNTED = 1 << 20  # steps whose numbers are a constant of the graph
MAX_UNROLLED = 1024


def _inner(node: OnnxNode, name: str, symbol: Any, like: Value, shape: Any) -> Value:
    """Return an input of a body; `shape` is None where steps may change it."""
    value = Value(name, symbol, None, shape, like.dtype, node.importer)
    for variable in symbol.list_inputs():
        node.importer.stand_ins.setdefault(variable, value)
    return value


def _check_tensors(node: OnnxNode, values: Any) -> None:
    if any(v is None or isinstance(v, SequenceValue) for v in values):
        raise node.unsupported("carries sequences or optional values, which has no operator.")


@imports("If")
def branch(node: OnnxNode, condition: Value) -> Any:
    """Run one of two bodies; with a constant condition only that body is imported."""
    importer, attrs = node.importer, node.attrs
    if condition.constant is not None:
        chosen = attrs["then_branch" if condition.constant.all() else "else_branch"]
        return importer.run_body(chosen, {})

    def part(graph: Any) -> Any:
        values = importer.run_body(graph, {})
        _check_tensors(node, values)
        return [F.identity(v.symbol) for v in values]

    return F.contrib.cond(
        F.identity(condition.symbol),
        lambda: part(attrs["then_branch"]),
        lambda: part(attrs["else_branch"]),
        name=node.name,
    )


def _always_true(graph: Any) -> bool:
    """Whether the body of a Loop never stops it: it passes its condition on."""
    source = graph.output[0].name
    makers = {n.output[0]: n for n in graph.node if n.output}
    while source in makers and makers[source].op_type == "Identity":
        source = makers[source].input[0]
    if source == graph.input[1].name:
        return True
    maker = makers.get(source)
    if maker is None or maker.op_type != "Constant":
        return any(t.name == source and any(t.raw_data) for t in graph.initializer)
    tensor = next((a.t for a in maker.attribute if a.name == "value"), None)
    return tensor is not None and any((*tensor.raw_data, *tensor.int32_data))


@imports("Loop")
def loop(node: OnnxNode, trips: Value | None, condition: Value | None, *states: Value) -> Any:
    """A loop with a count, a condition, or both; scan outputs are stacked."""
    graph = node.attrs["body"]
    starts_true = condition is None or (
        condition.constant is not None and bool(condition.constant.all())
    )
    if trips is not None and trips.constant is not None and starts_true and _always_true(graph):
        count = int(trips.constant.item())
        if any(isinstance(s, SequenceValue) for s in states) and count <= MAX_UNROLLED:
            return _unroll(node, graph, count, states)
        if 0 < count <= MAX_COUNTED:
            return _count_loop(node, graph, count, states)
    _check_tensors(node, states)
    return _while(node, graph, trips, condition, states)


def _unroll(node: OnnxNode, graph: Any, count: int, states: Any) -> list[Any]:
    """Run the body at import for every step: sequences exist at import only."""
    importer, names = node.importer, [i.name for i in graph.input]
    held, columns = list(states), []
    for step in range(count):
        values = [np.array(step), np.array(True)]
        numbers = [
            Value(n, None, v, (), v.dtype, importer) for n, v in zip(names, values, strict=False)
        ]
        outputs = importer.run_body(graph, dict(zip(names, [*numbers, *held], strict=True)))
        held, outs = outputs[1 : 1 + len(states)], outputs[1 + len(states) :]
        columns.append(outs)
    if graph.output[1 + len(states) :] and not columns:
        raise node.unsupported("stacks the results of no steps.")
    stacked = [
        F.stack(*(v.symbol for v in column), axis=0) for column in zip(*columns, strict=True)
    ]
    return [*held, *stacked]


def _count_loop(node: OnnxNode, graph: Any, count: int, states: tuple[Value, ...]) -> list[Any]:
    _check_tensors(node, states)
    steps = node.parameter(np.arange(count, dtype=np.int64), "steps")
    yes = node.parameter(np.array([True]), "condition")

    def body(step: Any, held: Any) -> tuple[list, list]:
        _, outputs = _step(node, graph, as_scalar(step), yes, states, held)
        return outputs[len(states) :] + _keep(step, held), outputs[: len(states)]

    outs, last = F.contrib.foreach(body, steps, [s.symbol for s in states], name=node.name)
    count_stacked = len(graph.output) - 1 - len(states)
    return [
        *last,
        *(_drop_axis(node, graph, o, i) for i, o in enumerate(outs[:count_stacked], len(states))),
    ]


def _step(
    node: OnnxNode, graph: Any, step: Any, going: Any, states: tuple[Value, ...], held: Any
) -> tuple[Any, list[Any]]:
    """Build one step; return the continue condition, and the new states with stacked outputs."""
    importer = node.importer
    names = [i.name for i in graph.input]
    shape = () if is_np_shape() else (1,)
    feed = {
        names[0]: Value(names[0], step, None, shape, np.dtype(np.int64), importer),
        names[1]: Value(names[1], as_scalar(going), None, shape, np.dtype(bool), importer),
    }
    for name, like, one in zip(names[2:], states, held, strict=True):
        state_shape = importer.shapes.get(name) or _stable_shape(importer, graph, name, like)
        feed[name] = _inner(node, name, one, like, state_shape)
    outputs = importer.run_body(graph, feed)
    _check_tensors(node, outputs)
    return outputs[0].symbol, [F.identity(v.symbol) for v in outputs[1:]]


def _stable_shape(importer: Any, graph: Any, name: str, like: Value) -> Any:
    """Return the shape of a state if no step changes it as far as ONNX infers."""
    at = [i.name for i in graph.input].index(name) - 1
    after = importer.shapes.get(graph.output[at].name)
    if like.shape is None:
        return None
    if after is not None and len(after) == len(like.shape):
        return tuple(a if a == b else None for a, b in zip(like.shape, after, strict=True))
    return like.shape


def _keep(step: Any, held: Any) -> list[Any]:
    """Return the loop's variables as further outputs: MXNet requires all of them to be used."""
    return [F.identity(x) for x in (step, *held)]


def _drop_axis(node: OnnxNode, graph: Any, stacked: Any, output: int) -> Any:
    """Drop the axis that scalars have outside NumPy shape semantics."""
    name = graph.output[output + 1].name
    is_scalar = node.importer.shapes.get(name) == ()
    return F.reshape(stacked, shape=(-1,)) if is_scalar and not is_np_shape() else stacked


def _while(
    node: OnnxNode,
    graph: Any,
    trips: Value | None,
    condition: Value | None,
    states: tuple[Value, ...],
) -> list[Any]:
    zero = node.parameter(np.zeros(1, np.int64), "start")
    first = (
        F.reshape(condition.symbol, shape=(1,))
        if condition is not None
        else node.parameter(np.ones(1, bool), "condition")
    )
    limit = None if trips is None else F.reshape(trips.symbol, shape=(1,))

    def holds(step: Any, going: Any, *held: Any) -> Any:
        going = F.cast(going, dtype="int64")
        return going if limit is None else going * (step < limit)

    def body(step: Any, going: Any, *held: Any) -> tuple[list, list]:
        more, outputs = _step(node, graph, as_scalar(step), going, states, held)
        on = F.reshape(more, shape=(1,))
        outs = outputs[len(states) :] + _keep(going, held)
        return outs, [step + 1, on, *outputs[: len(states)]]

    variables = [F.identity(zero), F.identity(first), *(s.symbol for s in states)]
    count = None if trips is None or trips.constant is None else int(trips.constant.item())
    outs, last = F.contrib.while_loop(
        holds,
        body,
        variables,
        max_iterations=MAX_STEPS if count is None else min(count, MAX_STEPS),
        name=node.name,
        pad_outputs=False,
    )
    count_stacked = len(graph.output) - 1 - len(states)
    stacked = [
        _drop_axis(node, graph, o, i) for i, o in enumerate(outs[:count_stacked], len(states))
    ]
    return [*last[2:], *stacked]


@imports("Scan")
def scan(node: OnnxNode, *values: Value) -> Any:
    """Run a body over slices of arrays, in any direction and along any axis."""
    graph, count = node.attrs["body"], node.attrs["num_scan_inputs"]
    if node.opset < 9:
        return _batched_scan(node, graph, count, values[1:])
    _check_tensors(node, values)
    states, datas = values[: len(values) - count], values[len(values) - count :]
    n_outs = len(graph.output) - len(states)
    axes = node.get("scan_input_axes") or [0] * count
    reverse = node.get("scan_input_directions") or [0] * count
    prepared = [
        _to_front(d, d.axis(a), bool(r)) for d, a, r in zip(datas, axes, reverse, strict=True)
    ]
    outs, last = _scan_body(node, graph, states, datas, prepared, axes)
    out_axes = node.get("scan_output_axes") or [0] * n_outs
    out_reverse = node.get("scan_output_directions") or [0] * n_outs
    arranged = []
    for i, (out, axis, back) in enumerate(zip(outs, out_axes, out_reverse, strict=True)):
        stacked = _drop_axis(node, graph, out, len(states) + i - 1)
        stacked = F.reverse(stacked, axis=0) if back else stacked
        if axis:
            name = graph.output[len(states) + i].name
            rank = len(node.importer.shapes[name]) + 1
            at = axis_within(axis, rank)
            stacked = F.transpose(stacked, axes=(*range(1, at + 1), 0, *range(at + 1, rank)))
        arranged.append(stacked)
    return [*last, *arranged]


def _to_front(value: Value, axis: int, is_reverse: bool) -> Any:
    output = value.symbol
    if axis:
        rest = [i for i in range(value.rank) if i != axis]
        output = F.transpose(output, axes=(axis, *rest))
    return F.reverse(output, axis=0) if is_reverse else F.identity(output)


def _scan_body(
    node: OnnxNode, graph: Any, states: Any, datas: Any, prepared: Any, axes: Any
) -> tuple[list, list]:
    importer = node.importer
    names = [i.name for i in graph.input]
    n_outs = len(graph.output) - len(states)

    def body(slices: Any, held: Any) -> tuple[list, list]:
        feed = {}
        for name, like, one in zip(names, states, held, strict=False):
            feed[name] = _inner(node, name, one, like, like.shape)
        for name, like, one, axis in zip(names[len(states) :], datas, slices, axes, strict=True):
            shape = None
            if like.shape is not None:
                at = like.axis(axis)
                shape = (*like.shape[:at], *like.shape[at + 1 :])
            symbol = as_scalar(one) if shape == () else one
            feed[name] = _inner(node, name, symbol, like, shape)
        outputs = importer.run_body(graph, feed)
        _check_tensors(node, outputs)
        results = [F.identity(v.symbol) for v in outputs]
        passed = [F.identity(x) for x in (*slices, *held)]
        return results[len(states) :] + passed, results[: len(states)]

    outs, last = F.contrib.foreach(body, prepared, [s.symbol for s in states], name=node.name)
    return outs[:n_outs], last


def _batched_scan(node: OnnxNode, graph: Any, count: int, values: tuple[Value, ...]) -> Any:
    """The first version of Scan, which runs separately for every sample of a batch."""
    _check_tensors(node, values)
    batch = values[0].sizes[0]
    n_states = len(values) - count
    columns = []
    for sample in range(batch):
        parts = []
        for v in values:
            one = F.slice_axis(v.symbol, axis=0, begin=sample, end=sample + 1)
            symbol = F.reshape(one, shape=v.sizes[1:] or (1,))
            parts.append(Value(v.name, symbol, None, v.sizes[1:], v.dtype, node.importer))
        states, datas = parts[:n_states], parts[n_states:]
        prepared = [F.identity(d.symbol) for d in datas]
        outs, last = _scan_body(node, graph, states, datas, prepared, [0] * count)
        columns.append([*last, *outs])
    return [F.stack(*column, axis=0) for column in zip(*columns, strict=True)]


# -- recurrent layers -----------------------------------------------------------------------

# The places of MXNet's gates in ONNX's order: LSTM i o f c -> i f c o, GRU z r n -> r z n.
ORDER = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


def _swap(node: OnnxNode, x: Any) -> Any:
    """Exchange time or directions with the batch if the batch is the first axis."""
    return F.swapaxes(x, dim1=0, dim2=1) if node.flag("layout") else x


def _reorder(weight: np.ndarray, kind: str, size: int) -> np.ndarray:
    order = ORDER[kind]
    return weight.reshape(len(order), size, -1)[list(order)].reshape(len(order) * size, -1)


def _mode(node: OnnxNode, directions: int) -> str | None:
    """Return MXNet's name of the layer, or None if MXNet lacks its activation functions."""
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
        or (kind == "GRU" and not node.flag("linear_before_reset"))
        or node.flag("input_forget")
        or (direction == "reverse" and lengths is not None)
        or any(v is not None and v.constant is None for v in weights)
        or _mode(node, directions) is None
    )


def _run_steps(node: OnnxNode, x: Value, w: Value, r: Value, *rest: Value | None) -> Any:
    kind = node.op_type
    directions = 2 if node.get("direction", "forward") == "bidirectional" else 1
    names = ("bias", "lengths", "state", "cell", "peepholes")
    optional = {n: v for n, v in zip(names, rest, strict=False) if v is not None}
    symbols = {n: v.symbol for n, v in optional.items()}
    data = _swap(node, x.symbol)
    symbols |= {n: _swap(node, symbols[n]) for n in ("state", "cell") if n in symbols}
    functions = node.get("activations") or DEFAULTS[kind] * directions
    outputs = internal._onnx_rnn(
        data,
        w.symbol,
        r.symbol,
        **symbols,
        kind=kind.lower(),
        given=",".join(optional),
        activations=",".join(f.lower() for f in functions),
        direction=node.get("direction", "forward"),
        alphas=tuple(node.get("activation_alpha") or ()),
        betas=tuple(node.get("activation_beta") or ()),
        clip=node.get("clip", 0.0),
        linear_before_reset=node.flag("linear_before_reset"),
        input_forget=node.flag("input_forget"),
        name=node.name,
    )
    outs = [outputs[i] for i in range(3 if kind == "LSTM" else 2)]
    if node.flag("layout"):
        outs[0] = F.transpose(outs[0], axes=(2, 0, 1, 3))
    return [outs[0], *(_swap(node, s) for s in outs[1:])]


def _pack(node: OnnxNode, w: np.ndarray, r: np.ndarray, b: np.ndarray | None) -> np.ndarray:
    kind, size = node.op_type, node.get("hidden_size")
    gates, directions = len(ORDER[kind]), w.shape[0]
    if b is None:
        b = np.zeros((directions, 2 * gates * size), w.dtype)
    pieces = []
    for d in range(directions):
        pieces += [_reorder(w[d], kind, size).ravel(), _reorder(r[d], kind, size).ravel()]
    for d in range(directions):
        for half in np.split(b[d], 2):
            pieces.append(_reorder(half, kind, size).ravel())
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
        return _run_steps(node, x, w, r, *rest)
    direction, size = node.get("direction", "forward"), node.get("hidden_size")
    directions = 2 if direction == "bidirectional" else 1
    biases = None if bias is None else node.constant(bias, "B")
    weights = _pack(node, node.constant(w, "W"), node.constant(r, "R"), biases)
    packed = node.parameter(weights, "parameters")
    data = _swap(node, x.symbol)
    if direction == "reverse":
        data = F.reverse(data, axis=0)
    states = [state] if node.op_type != "LSTM" else [state, cell]
    starts = [
        _zeros(data, directions, size) if s is None else _swap(node, s.symbol) for s in states
    ]
    options = {}
    if lengths is not None:
        starts.append(F.cast(lengths.symbol, dtype="int32"))
        options["use_sequence_length"] = True
    outputs = F.RNN(
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
    return _outputs(node, outputs, directions, size, direction)


def _outputs(node: OnnxNode, outputs: Any, directions: int, size: int, direction: str) -> list:
    """Return ``(time, directions, batch, size)`` and the last states."""
    out = F.reverse(outputs[0], axis=0) if direction == "reverse" else outputs[0]
    split = F.reshape(out, shape=(0, 0, directions, size))
    states = [outputs[i] for i in range(1, len(outputs.list_outputs()))]
    if not node.flag("layout"):
        split = F.transpose(split, axes=(0, 2, 1, 3))
    return [_swap(node, split), *(_swap(node, s) for s in states)]
