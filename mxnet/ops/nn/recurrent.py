"""The fused recurrent operator: stacked, bidirectional RNN, LSTM and GRU on torch's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ...error import MXNetError, ShapeError
from ..attributes import Count
from ..declare import OpContext, op
from ..shapes import UNKNOWN, KnownShapes, Shape
from ..tracing import is_traced

Mode = Literal["gru", "lstm", "rnn_relu", "rnn_tanh"]
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}
KERNELS = {
    "rnn_relu": torch.rnn_relu,
    "rnn_tanh": torch.rnn_tanh,
    "gru": torch.gru,
    "lstm": torch.lstm,
}


def output_names(attrs: dict) -> tuple[str, ...]:
    """Return the names of the outputs: the sequence, then the final states with `state_outputs`."""
    if not attrs["state_outputs"]:
        return ("output",)
    states = ("state_output", "statecell_output")
    return ("output", *(states if attrs["mode"] == "lstm" else states[:1]))


@op(
    "RNN",
    "_npx_rnn",
    optional={
        "state_cell": lambda a: a["mode"] == "lstm",
        "sequence_length": lambda a: a["use_sequence_length"],
    },
    precision="half",
    bfloat16="full",
    random=True,
    outputs=output_names,
)
def rnn(
    data: Tensor,
    parameters: Tensor,
    state: Tensor,
    state_cell: Tensor | None = None,
    sequence_length: Tensor | None = None,
    *,
    state_size: Count,
    num_layers: Count,
    bidirectional: bool = False,
    mode: Mode,
    p: float = 0.0,
    state_outputs: bool = False,
    projection_size: int | None = None,
    lstm_state_clip_min: float | None = None,
    lstm_state_clip_max: float | None = None,
    lstm_state_clip_nan: bool = False,
    use_sequence_length: bool = False,
    run: OpContext,
) -> Tensor | tuple[Tensor, ...]:
    """Run stacked recurrent layers over ``(time, batch, features)``.

    `sequence_length` and the clipping of LSTM cells, which MXNet 1.9.1 does not support on the CPU,
    work on all devices: outputs beyond a sequence's length are zero.

    Parameters
    ----------
    data
        Sequences of shape ``(time, batch, features)``.
    parameters
        All weights, then all biases, as one vector, ordered by layer, direction, and input before
        hidden.
    state
        Initial hidden state of shape ``(layers * directions, batch, state_size)``.
    state_cell
        Initial cell state of an LSTM, of the same shape.
    state_size
        Number of features of the hidden state.
    num_layers
        Number of stacked layers.
    bidirectional
        Whether to run in both directions.
    mode
        Type of cell: ``rnn_relu``, ``rnn_tanh``, ``lstm`` or ``gru``.
    p
        Probability of dropout between layers, in training.
    state_outputs
        Whether to return the final states too.
    projection_size
        Number of features that the hidden state of an LSTM is projected to.
    lstm_state_clip_min
        Lower bound of an LSTM's cell state; requires `lstm_state_clip_max`.
    lstm_state_clip_max
        Upper bound of an LSTM's cell state.
    lstm_state_clip_nan
        Whether NaN in the cell state is clipped too.

    >>> x, w, h = mx.nd.ones((2, 1, 1)), mx.nd.array([1, 0, 0, 0]), mx.nd.zeros((1, 1, 1))
    >>> mx.nd.RNN(x, w, h, state_size=1, num_layers=1, mode='rnn_relu').asnumpy().ravel()
    array([1., 1.], dtype=float32)
    """
    if projection_size is not None and mode != "lstm":
        raise MXNetError(f"RNN: only mode='lstm' has a projection, mode is {mode!r}.")
    if data.ndim != 3:
        raise ShapeError(
            "RNN: Input data should be 3D (sequence, batch, features), or in layers with "
            f"layout='NTC' (batch, sequence, features), but its shape is {tuple(data.shape)}."
        )
    directions = 2 if bidirectional else 1
    sizes = (data.shape[-1], state_size, num_layers, directions, GATES[mode], projection_size)
    # Programs that skip the packing pass a list of arrays.
    weights = (
        unpack_parameters(parameters, *sizes) if isinstance(parameters, Tensor) else parameters
    )
    clip = (lstm_state_clip_min, lstm_state_clip_max, lstm_state_clip_nan)
    # torch's kernel does not support clipping, and warns about projections on the CPU.
    stepped = clip[:2] != (None, None) or (projection_size and data.device.type == "cpu")
    stepped = stepped or (sequence_length is not None and is_traced())  # packing needs values
    if mode == "lstm" and stepped:
        assert state_cell is not None  # `optional` requires it for an LSTM
        out, states = _stepped_lstm(
            data, weights, state, state_cell, sequence_length, directions, p, run.training, clip
        )
    else:
        options = (True, num_layers, p, run.training, bidirectional)
        hidden = (state, state_cell) if mode == "lstm" else state
        out, *states = _run(KERNELS[mode], data, hidden, weights, sequence_length, options)
    return (out, *states) if state_outputs else out


def needs_graph(*tensors: Tensor) -> bool:
    """Return whether torch records a call on these tensors.

    Torch's recurrent kernels keep a workspace for backward whenever gradients are enabled.
    """
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def _run(
    kernel, data: Tensor, hidden, weights: list[Tensor], lengths: Tensor | None, options: tuple
) -> tuple[Tensor, ...]:
    states = hidden if isinstance(hidden, tuple) else (hidden,)
    with torch.set_grad_enabled(needs_graph(data, *states, *weights)):
        return _run_kernel(kernel, data, hidden, weights, lengths, options)


def _run_kernel(
    kernel, data: Tensor, hidden, weights: list[Tensor], lengths: Tensor | None, options: tuple
) -> tuple[Tensor, ...]:
    if lengths is None:
        return kernel(data, hidden, weights, *options, False)
    packed = pack_padded_sequence(data, lengths.long().cpu(), enforce_sorted=False)
    order, back = packed.sorted_indices, packed.unsorted_indices
    if isinstance(hidden, tuple):
        hidden = tuple(h.index_select(1, order) for h in hidden)
    else:
        hidden = hidden.index_select(1, order)
    out, *states = kernel(packed.data, packed.batch_sizes, hidden, weights, *options)
    padded = pad_packed_sequence(packed._replace(data=out), total_length=data.shape[0])[0]
    return (padded, *(s.index_select(1, back) for s in states))


def _layer_sizes(
    features: int, state: int, layers: int, directions: int, gates: int, projection: int | None
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the shapes of all weight matrices in packed order, and the sizes of all biases."""
    out = projection or state
    matrices = []
    for layer in range(layers):
        width = features if layer == 0 else out * directions
        one = [(gates * state, width), (gates * state, out)]
        if projection:
            one.append((projection, state))
        matrices += one * directions
    return matrices, [gates * state] * (2 * layers * directions)


def _explain_sizes(
    count: int, needed: int, features: int, state: int, layers: int, directions: int, *rest: Any
) -> str:
    """Return a hint on the expected feature size, if only that is wrong."""
    gates = rest[0]
    fitting, remainder = divmod(count - needed, gates * state * directions)
    if remainder or features + fitting < 1:
        return (
            f" They belong to another state_size (here {state}), num_layers ({layers}) or number "
            f"of directions ({directions})."
        )
    return (
        f" The data has {features} features (its last axis), and these parameters are for "
        f"{features + fitting}: change the data, or make the layer with input_size={features}."
    )


def unpack_parameters(parameters: Tensor, *sizes: Any) -> list[Tensor]:
    """Return views of the packed parameters in the order of torch's kernels."""
    matrices, biases = _layer_sizes(*sizes)
    pieces = [rows * columns for rows, columns in matrices] + biases
    if parameters.numel() != sum(pieces):
        raise ShapeError(
            f"Shape inconsistent in RNN: parameters are {list(parameters.shape)}, but these "
            f"sizes need {[sum(pieces)]}.{_explain_sizes(parameters.numel(), sum(pieces), *sizes)}"
        )
    views = parameters.reshape(-1).split(pieces)
    count = len(matrices)
    shaped = [v.view(shape) for v, shape in zip(views[:count], matrices, strict=True)]
    return _in_kernel_order([*shaped, *views[count:]], len(biases) // 2)


def _in_kernel_order(packed: Sequence[Tensor], cells: int) -> list[Tensor]:
    """Reorder weights and biases cell by cell (layer, direction)."""
    each = len(packed) // cells - 2  # two matrices per cell, three with projection
    weights: list[Tensor] = []
    for i in range(cells):
        part = packed[i * each : (i + 1) * each]
        bias = each * cells + 2 * i
        weights += [*part[:2], packed[bias], packed[bias + 1], *part[2:]]
    return weights


def unpacked(packed: Sequence[Tensor], features: int, attrs: dict) -> list[Tensor] | None:
    """Return the arrays in kernel order, or None if their shapes do not match."""
    directions = 2 if attrs["bidirectional"] else 1
    layers, gates = attrs["num_layers"], GATES[attrs["mode"]]
    sizes = (attrs["state_size"], layers, directions, gates, attrs["projection_size"])
    matrices, biases = _layer_sizes(features, *sizes)
    if len(packed) != len(matrices) + len(biases):
        return None
    for tensor, shape in zip(packed, [*matrices, *((n,) for n in biases)], strict=True):
        if tensor.shape != shape:
            return None
    return _in_kernel_order(packed, layers * directions)


def _stepped_lstm(
    data: Tensor,
    weights: list[Tensor],
    state: Tensor,
    cell: Tensor,
    lengths: Tensor | None,
    directions: int,
    p: float,
    training: bool,
    clip: tuple[float | None, float | None, bool],
) -> tuple[Tensor, list[Tensor]]:
    """Run an LSTM step by step, for options that torch's kernel does not support."""
    each = len(weights) // len(cell)
    hidden_out, cell_out = [], []
    for layer in range(len(cell) // directions):
        results = []
        for direction in range(directions):
            k = layer * directions + direction
            mine = weights[k * each : (k + 1) * each]
            x = _reverse(data, lengths) if direction else data
            out, h, c = _stepped_layer(x, mine, state[k], cell[k], lengths, clip)
            results.append(_reverse(out, lengths) if direction else out)
            hidden_out.append(h)
            cell_out.append(c)
        data = torch.cat(results, -1) if directions == 2 else results[0]
        if p and training and layer + 1 < len(cell) // directions:
            data = torch.dropout(data, p, True)
    return data, [torch.stack(hidden_out), torch.stack(cell_out)]


def _stepped_layer(
    x: Tensor, weights: list[Tensor], h: Tensor, c: Tensor, lengths: Tensor | None, clip: tuple
) -> tuple[Tensor, Tensor, Tensor]:
    low, high, clip_nan = clip
    w_input, w_hidden, b_input, b_hidden, *projection = weights
    gates = torch.nn.functional.linear(x, w_input, b_input + b_hidden)
    outs = []
    for t, gate in enumerate(gates):
        i, f, g, o = (gate + h @ w_hidden.t()).chunk(4, -1)
        new_c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        if low is not None or high is not None:
            new_c = new_c.clamp(low, high)
            if clip_nan:
                new_c = new_c.nan_to_num(nan=low if low is not None else high)
        new_h = o.sigmoid() * new_c.tanh()
        if projection:
            new_h = new_h @ projection[0].t()
        if lengths is None:
            h, c = new_h, new_c
            outs.append(h)
            continue
        alive = (lengths > t).unsqueeze(-1)
        h, c = new_h.where(alive, h), new_c.where(alive, c)
        outs.append(new_h.masked_fill(~alive, 0.0))
    return torch.stack(outs), h, c


def _reverse(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Reverse a sequence; with lengths the padding stays at the end."""
    if lengths is None:
        return x.flip(0)
    time = torch.arange(len(x), device=x.device).unsqueeze(1)
    mirrored = lengths.long().unsqueeze(0) - 1 - time
    position = torch.where(mirrored >= 0, mirrored, time)
    return x.gather(0, position.unsqueeze(-1).expand_as(x))


@rnn.infer_inputs
def rnn_inputs(
    data: Shape | None,
    *_: Shape | None,
    state_size: int,
    num_layers: int,
    bidirectional: bool,
    mode: str,
    projection_size: int | None,
    **__: object,
) -> dict[str, Shape]:
    """Infer the parameter vector, and a state for each layer and direction."""
    if data is None:
        return {}
    directions = 2 if bidirectional else 1
    results: dict[str, Shape] = {
        "state": (num_layers * directions, data[1], projection_size or state_size),
        "state_cell": (num_layers * directions, data[1], state_size),
        "sequence_length": (data[1],),
    }
    if data[2] != UNKNOWN:
        matrices, biases = _layer_sizes(
            data[2], state_size, num_layers, directions, GATES[mode], projection_size
        )
        results["parameters"] = (sum(r * c for r, c in matrices) + sum(biases),)
    return results


@rnn.infer_outputs
def rnn_outputs(
    data: Shape | None,
    *_: Shape | None,
    state_size: int,
    num_layers: int,
    bidirectional: bool,
    mode: str,
    state_outputs: bool,
    projection_size: int | None,
    **__: object,
) -> list[Shape] | None:
    """Infer the concatenated directions, then the final states."""
    if data is None:
        return None
    directions, out = 2 if bidirectional else 1, projection_size or state_size
    shapes = [(data[0], data[1], out * directions)]
    if state_outputs:
        shapes.append((num_layers * directions, data[1], out))
        if mode == "lstm":
            shapes.append((num_layers * directions, data[1], state_size))
    return shapes


@rnn.work
def rnn_work(ins: KnownShapes, outs: KnownShapes, attrs: dict) -> int:
    """One multiply-add for each weight, step and sequence."""
    data = ins[0]
    directions = 2 if attrs["bidirectional"] else 1
    matrices, _ = _layer_sizes(
        data[2],
        attrs["state_size"],
        attrs["num_layers"],
        directions,
        GATES[attrs["mode"]],
        attrs["projection_size"],
    )
    return data[0] * data[1] * sum(rows * columns for rows, columns in matrices)
