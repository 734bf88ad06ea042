"""Operators as torch functions, for readable code.

Rows are keyed by registered operators. Operators without a row are converted by tracing their
kernel (see `to_torch`), so rows only improve readability.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..graph import Entry
from ..ops.nn.recurrent import GATES, unpack_parameters

if TYPE_CHECKING:
    from .to_torch import TorchCall, TorchWriter

TorchRow = Callable[..., Any]
TORCH_ROWS: dict[str, TorchRow] = {}  # by the registered name of the operator
IGNORED_INPUTS: dict[str, tuple[str, ...]] = {}
REFUSED: dict[str, str] = {}  # why an operator is not converted


class NoRow(Exception):
    """Raised if a row does not support these attributes; the kernel is traced instead."""


def row(*names: str, ignores: tuple[str, ...] = ()) -> Callable[[TorchRow], TorchRow]:
    """Register how operators are written: ``build(writer, call, *inputs)``."""

    def register(build: TorchRow) -> TorchRow:
        for name in names:
            TORCH_ROWS[name] = build
            if ignores:
                IGNORED_INPUTS[name] = ignores
        return build

    return register


def refuse(*names: str, why: str) -> None:
    """Register the reason why operators cannot be converted, and an alternative."""
    REFUSED.update(dict.fromkeys(names, why))


def _per_axis(values: Sequence[int], default: int, rank: int) -> tuple[int, ...]:
    return tuple(values[:rank]) or (default,) * rank


def _check_layout(layout: str | None) -> None:
    if layout not in (None, "NCW", "NCHW", "NCDHW"):
        raise NoRow


@row("Convolution")
def convolution(w: TorchWriter, call: TorchCall, x: Any, weight: Any, bias: Any = None) -> Any:
    """F.conv1d, F.conv2d or F.conv3d."""
    a, rank = call.attrs, len(call.attrs["kernel"])
    _check_layout(a["layout"])
    function = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    return w.call(
        function,
        x,
        weight,
        bias,
        stride=_per_axis(a["stride"], 1, rank),
        padding=_per_axis(a["pad"], 0, rank),
        dilation=_per_axis(a["dilate"], 1, rank),
        groups=a["num_group"],
    )


@row("Deconvolution")
def deconvolution(w: TorchWriter, call: TorchCall, x: Any, weight: Any, bias: Any = None) -> Any:
    """F.conv_transpose1d, 2d or 3d."""
    a, rank = call.attrs, len(call.attrs["kernel"])
    _check_layout(a["layout"])
    if any(a["target_shape"]):
        raise NoRow
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    return w.call(
        function,
        x,
        weight,
        bias,
        stride=_per_axis(a["stride"], 1, rank),
        padding=_per_axis(a["pad"], 0, rank),
        output_padding=_per_axis(a["adj"], 0, rank),
        groups=a["num_group"],
        dilation=_per_axis(a["dilate"], 1, rank),
    )


@row("FullyConnected")
def fully_connected(w: TorchWriter, call: TorchCall, x: Any, weight: Any, bias: Any = None) -> Any:
    """F.linear, after flattening if ``flatten=True``."""
    if call.attrs["flatten"] and (call.shapes is None or call.rank(0) != 2):
        x = w.call(torch.flatten, x, 1)
    return w.call(F.linear, x, weight, bias)


@row("BatchNorm")
def batch_norm(w: TorchWriter, call: TorchCall, x: Any, gamma: Any, beta: Any, *states: Any) -> Any:
    """F.batch_norm with the moving statistics."""
    a = call.attrs
    if a["axis"] != 1 or a["output_mean_var"]:
        raise NoRow
    mean, var = states
    scale = None if a["fix_gamma"] else gamma  # MXNet uses 1 for any gamma
    return w.call(F.batch_norm, x, mean, var, scale, beta, training=False, eps=a["eps"])


@row("LayerNorm")
def layer_norm(w: TorchWriter, call: TorchCall, x: Any, gamma: Any, beta: Any) -> Any:
    """F.layer_norm over the last axis."""
    a = call.attrs
    if a["axis"] != -1 or a["output_mean_var"] or call.shapes is None:
        raise NoRow
    return w.call(F.layer_norm, x, (call.shapes[0][-1],), gamma, beta, eps=a["eps"])


@row("Pooling")
def pooling(w: TorchWriter, call: TorchCall, x: Any) -> Any:
    """F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d and similar functions."""
    a = call.attrs
    _check_layout(a["layout"])
    if a["global_pool"]:
        return _pool_all(w, call, x)
    rank = len(a["kernel"])
    kernel, stride = tuple(a["kernel"]), _per_axis(a["stride"], 1, rank)
    pad = _per_axis(a["pad"], 0, rank)
    fits = all(2 * p <= k for p, k in zip(pad, kernel, strict=True))
    is_full = a["pooling_convention"] == "full"
    # torch leaves out windows that start beyond the data; without padding there are none.
    rounds_alike = not any(pad) and all(s <= k for s, k in zip(stride, kernel, strict=True))
    if not fits or a["pooling_convention"] == "same" or (is_full and not rounds_alike):
        raise NoRow
    if a["pool_type"] == "max":
        function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
        options = {"ceil_mode": True} if is_full else {}
        return w.call(function, x, kernel, stride, pad, **options)
    if is_full:
        raise NoRow
    if a["pool_type"] == "avg":
        function = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1]
        counted = a["count_include_pad"] is not False
        return w.call(function, x, kernel, stride, pad, count_include_pad=counted)
    raise NoRow


def _pool_all(w: TorchWriter, call: TorchCall, x: Any) -> Any:
    rank = len(call.attrs["kernel"]) or call.rank(0) - 2
    tables = {
        "avg": (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d),
        "max": (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d),
    }
    if call.attrs["pool_type"] not in tables or not 1 <= rank <= 3:
        raise NoRow
    return w.call(tables[call.attrs["pool_type"]][rank - 1], x, 1)


ACTIVATIONS = {
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "softrelu": F.softplus,
    "softsign": F.softsign,
    "tanh": torch.tanh,
}


@row("Activation")
def activation(w: TorchWriter, call: TorchCall, x: Any) -> Any:
    """The function that `act_type` names."""
    return w.call(ACTIVATIONS[call.attrs["act_type"]], x)


@row("LeakyReLU")
def leaky_relu(w: TorchWriter, call: TorchCall, x: Any, gamma: Any = None) -> Any:
    """F.leaky_relu, elu, gelu, selu or prelu."""
    kind, slope = call.attrs["act_type"], call.attrs["slope"]
    if kind == "leaky":
        return w.call(F.leaky_relu, x, negative_slope=slope)
    if kind == "elu":
        return w.call(F.elu, x, alpha=slope)
    if kind == "prelu":
        return w.call(F.prelu, x, gamma)
    if kind in ("gelu", "selu"):
        return w.call({"gelu": F.gelu, "selu": F.selu}[kind], x)
    raise NoRow


def _softmax(names: tuple[str, ...], function: Callable) -> None:
    @row(*names)
    def build(w: TorchWriter, call: TorchCall, x: Any, length: Any = None) -> Any:
        a = call.attrs
        if length is not None or a["dtype"] is not None or a["temperature"] not in (None, 1.0):
            raise NoRow
        return w.call(function, x, dim=a["axis"])


_softmax(("softmax",), F.softmax)
_softmax(("log_softmax",), F.log_softmax)


@row("SoftmaxOutput", ignores=("label",))
def softmax_output(w: TorchWriter, call: TorchCall, x: Any, *_: Any) -> Any:
    """F.softmax; the label is for training."""
    a = call.attrs
    if a["multi_output"]:
        return w.call(F.softmax, x, dim=1)
    if not a["preserve_shape"] and call.rank(0) != 2:
        raise NoRow
    return w.call(F.softmax, x, dim=-1)


@row("LogisticRegressionOutput", ignores=("label",))
def logistic_output(w: TorchWriter, call: TorchCall, x: Any, *_: Any) -> Any:
    """torch.sigmoid; the label is for training."""
    return w.call(torch.sigmoid, x)


@row("LinearRegressionOutput", "MAERegressionOutput", "SVMOutput", ignores=("label",))
def regression_output(w: TorchWriter, call: TorchCall, x: Any, *_: Any) -> Any:
    """The data, unchanged; the label is for training."""
    return x


@row("_copy", "BlockGrad", "MakeLoss", "make_loss", "_contrib_gradientmultiplier", "_copyto")
def identity(w: TorchWriter, call: TorchCall, x: Any) -> Any:
    """The data, unchanged."""
    return x


@row("Dropout")
def dropout(w: TorchWriter, call: TorchCall, x: Any) -> Any:
    """The data: no effect in inference."""
    if call.attrs["mode"] == "always":
        raise NoRow
    return x


@row("Flatten")
def flatten(w: TorchWriter, call: TorchCall, x: Any) -> Any:
    """torch.flatten from axis 1 on."""
    if call.shapes is not None and call.rank(0) < 2:
        raise NoRow
    return w.call(torch.flatten, x, 1)


@row("UpSampling")
def up_sampling(w: TorchWriter, call: TorchCall, *xs: Any) -> Any:
    """F.interpolate of one array, in mode 'nearest'."""
    if call.attrs["sample_type"] != "nearest" or len(xs) != 1:
        raise NoRow
    return w.call(F.interpolate, xs[0], scale_factor=float(call.attrs["scale"]), mode="nearest")


@row("Reshape")
def reshape(w: TorchWriter, call: TorchCall, x: Any) -> Any:
    """torch.reshape; leading sizes that are copied are read when the module runs."""
    sizes = call.attrs["shape"]
    if call.attrs["reverse"] or not sizes or any(n < -1 for n in sizes):
        raise NoRow
    shape = tuple(w.size(x, i) if n == 0 else n for i, n in enumerate(sizes))
    return w.call(torch.reshape, x, shape)


@row("Concat")
def concat(w: TorchWriter, call: TorchCall, *xs: Any) -> Any:
    """torch.cat."""
    return w.call(torch.cat, list(xs), dim=call.attrs["dim"])


@row("stack")
def stack(w: TorchWriter, call: TorchCall, *xs: Any) -> Any:
    """torch.stack."""
    return w.call(torch.stack, list(xs), dim=call.attrs["axis"])


@row("SliceChannel")
def split(w: TorchWriter, call: TorchCall, x: Any) -> Any:
    """torch.chunk, or torch.unbind if `squeeze_axis` is set."""
    count, axis = call.attrs["num_outputs"], call.attrs["axis"]
    if call.attrs["squeeze_axis"]:
        parts = w.call(torch.unbind, x, dim=axis)
    else:
        parts = w.call(torch.chunk, x, count, dim=axis)
    return [w.call(operator.getitem, parts, i) for i in range(count)]


@row("transpose")
def transpose(w: TorchWriter, call: TorchCall, x: Any) -> Any:
    """torch.permute."""
    axes = call.attrs["axes"] or tuple(range(call.rank(0) - 1, -1, -1))
    return w.call(torch.permute, x, tuple(axes))


@row("SwapAxis")
def swap_axis(w: TorchWriter, call: TorchCall, x: Any) -> Any:
    """torch.transpose."""
    return w.call(torch.transpose, x, call.attrs["dim1"], call.attrs["dim2"])


@row("expand_dims")
def expand_dims(w: TorchWriter, call: TorchCall, x: Any) -> Any:
    """torch.unsqueeze."""
    return w.call(torch.unsqueeze, x, call.attrs["axis"])


@row("slice_axis")
def slice_axis(w: TorchWriter, call: TorchCall, x: Any) -> Any:
    """Indexing with a slice."""
    axis = call.attrs["axis"] % call.rank(0)
    index = (slice(None),) * axis + (slice(call.attrs["begin"], call.attrs["end"]),)
    return w.call(operator.getitem, x, index)


@row("clip")
def clip(w: TorchWriter, call: TorchCall, x: Any) -> Any:
    """torch.clamp."""
    if not call.is_float:
        raise NoRow
    return w.call(torch.clamp, x, min=call.attrs["a_min"], max=call.attrs["a_max"])


@row("Embedding")
def embedding(w: TorchWriter, call: TorchCall, x: Any, weight: Any) -> Any:
    """F.embedding; MXNet takes floats as indices and clips them."""
    index = w.method("clamp", w.method("long", x), 0, call.attrs["input_dim"] - 1)
    return w.call(F.embedding, index, weight)


@row("add_n")
def add_n(w: TorchWriter, call: TorchCall, *xs: Any) -> Any:
    """Sums of pairs."""
    total = xs[0]
    for x in xs[1:]:
        total = w.call(torch.add, total, x)
    return total


def _reduction(name: str, function: Callable) -> None:
    @row(name)
    def build(w: TorchWriter, call: TorchCall, x: Any) -> Any:
        a = call.attrs
        if not a["axis"] or a["exclude"] or not call.is_float:
            raise NoRow
        return w.call(function, x, dim=tuple(a["axis"]), keepdim=a["keepdims"])


_reduction("mean", torch.mean)
_reduction("sum", torch.sum)
_reduction("max", torch.amax)
_reduction("min", torch.amin)


@row("dot")
def dot(w: TorchWriter, call: TorchCall, a: Any, b: Any) -> Any:
    """torch.matmul of matrices."""
    if call.rank(0) != 2 or call.rank(1) != 2:
        raise NoRow
    left = w.call(torch.t, a) if call.attrs["transpose_a"] else a
    right = w.call(torch.t, b) if call.attrs["transpose_b"] else b
    return w.call(torch.matmul, left, right)


@row("batch_dot")
def batch_dot(w: TorchWriter, call: TorchCall, a: Any, b: Any) -> Any:
    """torch.matmul of stacks of matrices."""
    left = w.call(torch.transpose, a, -2, -1) if call.attrs["transpose_a"] else a
    right = w.call(torch.transpose, b, -2, -1) if call.attrs["transpose_b"] else b
    return w.call(torch.matmul, left, right)


def _pair(names: tuple[str, ...], function: Callable) -> None:
    @row(*names)
    def build(w: TorchWriter, call: TorchCall, a: Any, b: Any) -> Any:
        if not call.is_float:
            raise NoRow
        return w.call(function, a, b)


_pair(("broadcast_div", "elemwise_div"), torch.div)
_pair(("broadcast_power", "_power"), torch.pow)
_pair(("broadcast_maximum", "_maximum"), torch.maximum)
_pair(("broadcast_minimum", "_minimum"), torch.minimum)


def _scalar(name: str, function: Callable, is_reversed: bool = False) -> None:
    @row(name)
    def build(w: TorchWriter, call: TorchCall, x: Any) -> Any:
        if not call.is_float:
            raise NoRow
        number = float(call.attrs["scalar"])
        return w.call(function, *((number, x) if is_reversed else (x, number)))


_scalar("_plus_scalar", operator.add)
_scalar("_minus_scalar", operator.sub)
_scalar("_mul_scalar", operator.mul)
_scalar("_div_scalar", operator.truediv)
_scalar("_rminus_scalar", operator.sub, True)
_scalar("_rdiv_scalar", operator.truediv, True)
_scalar("_power_scalar", torch.pow)

RECURRENT: dict[str, Callable[..., nn.RNNBase]] = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "rnn_tanh": nn.RNN,
    "rnn_relu": partial(nn.RNN, nonlinearity="relu"),
}


@row("RNN")
def rnn(w: TorchWriter, call: TorchCall, x: Any, parameters: Any, *states: Any) -> Any:
    """nn.LSTM, nn.GRU or nn.RNN. Initial states are omitted if they are zero."""
    a = call.attrs
    packed = w.model.constant(call.node.inputs[1])
    clips = a["lstm_state_clip_min"] is not None or a["lstm_state_clip_max"] is not None
    if packed is None or call.shapes is None or a["use_sequence_length"] or clips:
        raise NoRow
    args: tuple[Any, ...] = (x,)
    if not all(_is_zeros(entry) for entry in call.node.inputs[2:]):
        args = (x, tuple(states)) if a["mode"] == "lstm" else (x, states[0])
    output = w.call_layer(call, _recurrent_layer(packed, call.shapes[0][-1], a), *args)
    sequence = w.call(operator.getitem, output, 0)
    if not a["state_outputs"]:
        return sequence
    last = w.call(operator.getitem, output, 1)
    if a["mode"] != "lstm":
        return [sequence, last]
    return [sequence, *(w.call(operator.getitem, last, i) for i in range(2))]


def _is_zeros(entry: Entry) -> bool:
    return entry.node.op is not None and entry.node.op.name == "_zeros"


def _recurrent_layer(packed: Tensor, features: int, attrs: dict[str, Any]) -> nn.RNNBase:
    directions = 2 if attrs["bidirectional"] else 1
    sizes = (features, attrs["state_size"], attrs["num_layers"], directions)
    projection = attrs["projection_size"]
    weights = unpack_parameters(packed, *sizes, GATES[attrs["mode"]], projection)
    options = {"proj_size": projection} if projection else {}
    layer = RECURRENT[attrs["mode"]](
        *sizes[:3], bidirectional=attrs["bidirectional"], dtype=packed.dtype, **options
    )
    with torch.no_grad():
        for parameter, tensor in zip(layer.parameters(), weights, strict=True):
            parameter.copy_(tensor)
    return layer


# The code of longer loops is unreadable and takes minutes to compile.
MAX_STEPS = 512


def _known(w: TorchWriter, call: TorchCall, what: str) -> list[tuple[int, ...]]:
    if call.shapes is None:
        raise w.unsupported(call, f"needs the shapes of its inputs: {what}. Give shapes=...")
    return call.shapes


def _check_steps(w: TorchWriter, call: TorchCall, steps: int) -> None:
    if not 0 < steps <= MAX_STEPS:
        raise w.unsupported(call, f"has {steps} steps; loops of 1 to {MAX_STEPS} are written out.")


@row("_foreach")
def foreach(w: TorchWriter, call: TorchCall, *xs: Any) -> list[Any]:
    """The body once for each slice; outputs are stacked."""
    a, (graph,) = call.attrs, call.node.subgraphs
    shapes = _known(w, call, "how many steps there are follows from them")
    data_at, state_at, rest_at = (a[k] for k in ("in_data_locs", "in_state_locs", "remain_locs"))
    n_data, n_states, n_out = len(data_at), len(state_at), a["num_out_data"]
    _check_steps(w, call, shapes[0][0])
    order = [*data_at, *state_at, *rest_at]
    facts: list[Any] = [None] * len(order)
    for i, position in enumerate(order):
        shape = (shapes[i][1:] or (1,)) if i < n_data else shapes[i]
        facts[position] = (shape, call.dtypes[i])
    states, rows = list(xs[n_data : n_data + n_states]), []
    for step in range(shapes[0][0]):
        feed: list[Any] = [None] * len(order)
        for i, position in enumerate(data_at):
            is_vector = len(shapes[i]) == 1
            at = slice(step, step + 1) if is_vector else step
            feed[position] = w.call(operator.getitem, xs[i], at)
        for position, value in zip(state_at, states, strict=True):
            feed[position] = value
        for position, value in zip(rest_at, xs[n_data + n_states :], strict=True):
            feed[position] = value
        output = w.inline_body(graph, feed, [f[0] for f in facts], [f[1] for f in facts])
        rows.append(output[:n_out])
        states = output[n_out:]
    stacked = [w.call(torch.stack, list(column)) for column in zip(*rows, strict=True)]
    return [*stacked, *states]


@row("_while_loop")
def while_loop(w: TorchWriter, call: TorchCall, *xs: Any) -> list[Any]:
    """Repeat the body up to the maximum of steps; steps after the loop's end change nothing."""
    a, (test, graph) = call.attrs, call.node.subgraphs
    shapes = _known(w, call, "they are those of the body's inputs")
    limit, n_out = a["max_iterations"], a["num_out_data"]
    _check_steps(w, call, limit)
    if not a["pad_outputs"] and n_out:
        raise w.unsupported(call, "returns as many rows as there were steps, which is dynamic.")
    positions = [a["func_input_locs"][i] for i in a["func_var_locs"]]
    values, rows, going = list(xs), [], None

    def body(part: Any, at: Any) -> list[Any]:
        chosen = [[source[i] for i in at] for source in (values, shapes, call.dtypes)]
        return w.inline_body(part, *chosen)

    for _ in range(limit):
        holds = w.method("bool", w.method("reshape", body(test, a["cond_input_locs"])[0], ()))
        going = holds if going is None else w.call(torch.logical_and, going, holds)
        output = body(graph, a["func_input_locs"])
        rows.append([w.call(torch.where, going, m, 0) for m in output[:n_out]])
        for position, new in zip(positions, output[n_out:], strict=True):
            values[position] = w.call(torch.where, going, new, values[position])
    stacked = [w.call(torch.stack, list(column)) for column in zip(*rows, strict=True)]
    return [*stacked, *(values[p] for p in positions)]


@row("_cond")
def cond(w: TorchWriter, call: TorchCall, *xs: Any) -> list[Any]:
    """`torch.cond` with a module for each branch."""
    a, (test, then, other) = call.attrs, call.node.subgraphs
    shapes = _known(w, call, "they are those of the branches' inputs")
    at = a["cond_input_locs"]
    chosen = [[source[i] for i in at] for source in (xs, shapes, call.dtypes)]
    holds = w.inline_body(test, *chosen)[0]
    truth = w.method("bool", w.method("reshape", holds, ()))
    name = w.identifier(call.node.name)
    branches = [
        w.body_module(graph, a[key], shapes, call.dtypes, f"{name}_{key[:4]}")
        for graph, key in ((then, "then_input_locs"), (other, "else_input_locs"))
    ]
    output = w.call(torch.ops.higher_order.cond, truth, *branches, tuple(xs))
    return [w.call(operator.getitem, output, i) for i in range(a["num_outputs"])]


refuse("CTCLoss", why="is a loss of training: convert the network without it, by its output.")
refuse(
    *("_image_random_brightness", "_image_random_color_jitter", "_image_random_contrast"),
    *("_image_random_flip_left_right", "_image_random_flip_top_bottom", "_image_random_hue"),
    *("_image_random_lighting", "_image_random_saturation"),
    why="draws random numbers to change its data in training. Convert the model without it.",
)
refuse(
    "_npi_share_memory",
    why="asks where arrays lie in memory, which differs in a torch program.",
)
