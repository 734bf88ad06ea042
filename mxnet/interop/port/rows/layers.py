"""Converts operators to layers of torch.

Rows are keyed by the operator's record. Operators without a row use the row of `to_torch`
(`torch_rows`), or a function of `functions/`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ....ops import registry
from ....ops.nn.recurrent import GATES, unpack_parameters
from ...torch_rows import NoRow
from ..tree import Argument, Call, Const, Group, Infix, Item, TensorSource

if TYPE_CHECKING:
    from ..steps import PortCall, Source, StepWriter

LayerRow = Callable[..., Any]
PORT_ROWS: dict[Any, LayerRow] = {}  # by operator record


def row(*names: str) -> Callable[[LayerRow], LayerRow]:
    """Register the conversion of operators: ``build(writer, call, *inputs)``."""

    def register(build: LayerRow) -> LayerRow:
        for name in names:
            PORT_ROWS[registry.get(name)] = build
        return build

    return register


def size(values: Sequence[int], default: int, rank: int) -> Any:
    """Return window sizes as an argument of a torch layer: one number if all are equal."""
    full = tuple(values[:rank]) or (default,) * rank
    return full[0] if len(set(full)) == 1 else full


def option(name: str, value: Any, default: Any, role: str = "") -> Argument:
    """Return a keyword argument that is written unless it is the default."""
    return Argument(name, Const(value, role or name), default)


def required(name: str, value: Any, role: str = "channels") -> Argument:
    """Return a positional argument."""
    return Argument(name, Const(value, role), None, True)


def channels_in(value: int, name: str = "in_channels") -> Argument:
    """Return the number of channels that a layer reads."""
    return required(name, value, "channels:in")


def channels_out(value: int, name: str = "out_channels") -> Argument:
    """Return the number of channels that a layer writes."""
    return required(name, value, "channels:out")


CHANNELS_FIRST = (None, "NCW", "NCHW", "NCDHW")


def _check_layout(a: dict[str, Any]) -> None:
    if a["layout"] not in CHANNELS_FIRST:
        raise NoRow


@row("Convolution")
def convolution(w: StepWriter, call: PortCall, x: Any, weight: Source, bias: Any = None) -> Any:
    """nn.Conv1d, nn.Conv2d or nn.Conv3d."""
    a, rank = call.attrs, len(call.attrs["kernel"])
    _check_layout(a)
    args = (
        channels_in(call.rank_checked(0)[1]),
        channels_out(a["num_filter"]),
        required("kernel_size", size(a["kernel"], 1, rank), "kernel"),
        option("stride", size(a["stride"], 1, rank), 1),
        option("padding", size(a["pad"], 0, rank), 0),
        option("dilation", size(a["dilate"], 1, rank), 1),
        option("groups", a["num_group"], 1),
        option("bias", bias is not None, True),
    )
    return w.layer(call, f"nn.Conv{rank}d", args, {"weight": weight, "bias": bias}, x)


@row("Deconvolution")
def deconvolution(w: StepWriter, call: PortCall, x: Any, weight: Source, bias: Any = None) -> Any:
    """nn.ConvTranspose1d, 2d or 3d."""
    a, rank = call.attrs, len(call.attrs["kernel"])
    _check_layout(a)
    if any(a["target_shape"]):
        raise NoRow
    args = (
        channels_in(call.rank_checked(0)[1]),
        channels_out(a["num_filter"]),
        required("kernel_size", size(a["kernel"], 1, rank), "kernel"),
        option("stride", size(a["stride"], 1, rank), 1),
        option("padding", size(a["pad"], 0, rank), 0),
        option("output_padding", size(a["adj"], 0, rank), 0),
        option("groups", a["num_group"], 1),
        option("bias", bias is not None, True),
        option("dilation", size(a["dilate"], 1, rank), 1),
    )
    tensors = {"weight": weight, "bias": bias}
    return w.layer(call, f"nn.ConvTranspose{rank}d", args, tensors, x)


@row("FullyConnected")
def linear(w: StepWriter, call: PortCall, x: Any, weight: Source, bias: Any = None) -> Any:
    """nn.Linear, after nn.Flatten unless the data is flat."""
    shape = call.rank_checked(0)
    if call.attrs["flatten"] and len(shape) != 2:
        x = w.add(Call("torch.flatten", (x, Const(1))))
    sizes = call.rank_checked(1)
    args = (
        channels_in(sizes[1], "in_features"),
        channels_out(sizes[0], "out_features"),
        option("bias", bias is not None, True),
    )
    return w.layer(call, "nn.Linear", args, {"weight": weight, "bias": bias}, x)


@row("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm")
def batch_norm(w: StepWriter, call: PortCall, x: Any, *tensors: Any) -> Any:
    """nn.BatchNorm1d, 2d or 3d. Its momentum is ``1 - momentum`` of MXNet."""
    a, shape = call.attrs, call.rank_checked(0)
    if a["output_mean_var"]:
        raise w.unsupported(call, "with output_mean_var=True has no layer in torch.")
    axis = a.get("axis", 1) % len(shape)
    rank = {2: 1, 3: 1, 4: 2, 5: 3}.get(len(shape))
    if rank is None:
        raise w.unsupported(call, f"normalizes an array of {len(shape)} axes.")
    gamma, beta, mean, var = tensors
    args = (
        channels_in(shape[axis], "num_features"),
        option("eps", float(a["eps"]), 1e-5),
        option("momentum", round(1 - a["momentum"], 10), 0.1),
    )
    if axis != 1:
        x = w.add(Call(".movedim", (x, Const(axis), Const(1))))
    names = {"weight": gamma, "bias": beta, "running_mean": mean, "running_var": var}
    wrapper = ""
    if a["fix_gamma"]:
        names["weight"] = w.ones(gamma)
        wrapper = w.use_function("fixed_scale")
    cls = f"nn.BatchNorm{rank}d"
    if a["use_global_stats"]:
        cls = w.use_function(f"FrozenBatchNorm{rank}d", "frozen_batch_norm")
    output = w.layer(call, cls, args, names, x, wrapper=wrapper)
    return output if axis == 1 else w.add(Call(".movedim", (output, Const(1), Const(axis))))


@row("LayerNorm")
def layer_norm(w: StepWriter, call: PortCall, x: Any, gamma: Any, beta: Any) -> Any:
    """nn.LayerNorm over the last axis."""
    a, shape = call.attrs, call.rank_checked(0)
    if a["axis"] % len(shape) != len(shape) - 1 or a["output_mean_var"]:
        raise NoRow
    args = (channels_in(shape[-1], "normalized_shape"), option("eps", float(a["eps"]), 1e-5))
    return w.layer(call, "nn.LayerNorm", args, {"weight": gamma, "bias": beta}, x)


@row("GroupNorm")
def group_norm(w: StepWriter, call: PortCall, x: Any, gamma: Any, beta: Any) -> Any:
    """nn.GroupNorm if there is one scale per channel, else the function `group_norm`."""
    a, shape = call.attrs, call.rank_checked(0)
    if a["output_mean_var"]:
        raise NoRow
    if call.rank_checked(1)[0] != shape[1]:  # one scale for each group
        name = w.use_function("group_norm")
        gamma, beta = w.operand(gamma), w.operand(beta)
        return w.add(Call(name, (x, gamma, beta), (("eps", Const(float(a["eps"]))),)))
    args = (
        required("num_groups", a["num_groups"], "groups"),
        channels_in(shape[1], "num_channels"),
        option("eps", float(a["eps"]), 1e-5),
    )
    return w.layer(call, "nn.GroupNorm", args, {"weight": gamma, "bias": beta}, x)


@row("InstanceNorm")
def instance_norm(w: StepWriter, call: PortCall, x: Any, gamma: Any, beta: Any) -> Any:
    """nn.InstanceNorm1d, 2d or 3d with a scale."""
    shape = call.rank_checked(0)
    args = (
        channels_in(shape[1], "num_features"),
        option("eps", float(call.attrs["eps"]), 1e-5),
        option("affine", True, False),
    )
    cls = f"nn.InstanceNorm{len(shape) - 2}d"
    return w.layer(call, cls, args, {"weight": gamma, "bias": beta}, x)


@row("Embedding")
def embedding(w: StepWriter, call: PortCall, x: Any, weight: Source) -> Any:
    """nn.Embedding. MXNet accepts float indices, and clips them to the table."""
    rows, width = call.rank_checked(1)
    args = (
        required("num_embeddings", rows, "rows"),
        channels_out(width, "embedding_dim"),
    )
    numbers = w.definition(x)
    if isinstance(numbers, Call) and numbers.function == "torch.arange":
        kwargs = tuple((k, v) for k, v in numbers.kwargs if k != "dtype")
        x = w.add(Call(numbers.function, numbers.args, kwargs))
    elif call.dtypes[0].is_floating_point:
        x = w.add(Call(".long", (x,)))
    return w.layer(call, "nn.Embedding", args, {"weight": weight}, x)


@row("Dropout")
def dropout(w: StepWriter, call: PortCall, x: Any) -> Any:
    """nn.Dropout."""
    a = call.attrs
    if a["mode"] == "always":
        p = Const(float(a["p"]), "rate")
        return w.add(Call("F.dropout", (x, p), (("training", Const(True)),)))
    if not a["p"]:
        return x
    if a["axes"]:
        name = w.use_function("LockedDropout", "locked_dropout")
        args = (required("p", float(a["p"]), "rate"), option("dim", tuple(a["axes"]), (0,)))
        return w.layer(call, name, args, {}, x)
    return w.layer(call, "nn.Dropout", (required("p", float(a["p"]), "rate"),), {}, x)


@row("Pooling", "Pooling_v1")
def pooling(w: StepWriter, call: PortCall, x: Any) -> Any:
    """nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d and similar layers."""
    a, shape = call.attrs, call.rank_checked(0)
    if a.get("layout") not in CHANNELS_FIRST:
        raise NoRow
    rank, kind = len(shape) - 2, a["pool_type"]
    titles = {"max": "Max", "avg": "Avg"}
    if kind not in titles or not 1 <= rank <= 3:
        raise NoRow
    title = f"{titles[kind]}Pool{rank}d"
    if a["global_pool"]:
        return w.layer(call, f"nn.Adaptive{title}", (required("output_size", 1, "size"),), {}, x)
    kernel, stride = size(a["kernel"], 1, rank), size(a["stride"], 1, rank)
    pad = size(a["pad"], 0, rank)
    is_full = a["pooling_convention"] == "full"
    if a["pooling_convention"] == "same" or not _fits(a, rank):
        raise NoRow
    if is_full and not _rounds_alike(shape[2:], call.out_shape()[2:], a, rank):
        raise NoRow
    args = [
        required("kernel_size", kernel, "kernel"),
        option("stride", stride, kernel),
        option("padding", pad, 0),
    ]
    if is_full:
        args.append(option("ceil_mode", True, False))
    if kind == "avg":
        counted = a.get("count_include_pad") is not False
        if is_full and not _windows_inside(shape[2:], call.out_shape()[2:], a, rank):
            raise NoRow
        args.append(option("count_include_pad", counted, True))
    return w.layer(call, f"nn.{title}", tuple(args), {}, x)


def _fits(a: dict[str, Any], rank: int) -> bool:
    pads = tuple(a["pad"][:rank]) or (0,) * rank
    return all(2 * p <= k for p, k in zip(pads, a["kernel"], strict=False))


def _rounds_alike(sizes: Any, outputs: Any, a: dict[str, Any], rank: int) -> bool:
    """Return whether torch's ceil_mode results in the same number of windows."""
    strides = tuple(a["stride"][:rank]) or (1,) * rank
    pads = tuple(a["pad"][:rank]) or (0,) * rank
    return all(
        (out - 1) * s < n + p for n, out, s, p in zip(sizes, outputs, strides, pads, strict=True)
    )


def _windows_inside(sizes: Any, outputs: Any, a: dict[str, Any], rank: int) -> bool:
    strides = tuple(a["stride"][:rank]) or (1,) * rank
    pads = tuple(a["pad"][:rank]) or (0,) * rank
    rows = zip(sizes, outputs, strides, pads, a["kernel"], strict=False)
    return all((out - 1) * s + k <= n + 2 * p for n, out, s, p, k in rows)


ACTIVATIONS = {
    "relu": ("F.relu", "nn.ReLU"),
    "sigmoid": ("torch.sigmoid", "nn.Sigmoid"),
    "tanh": ("torch.tanh", "nn.Tanh"),
    "softrelu": ("F.softplus", "nn.Softplus"),
    "softsign": ("F.softsign", "nn.Softsign"),
}


@row("Activation")
def activation(w: StepWriter, call: PortCall, x: Any) -> Any:
    """The function selected by `act_type`."""
    if call.attrs["act_type"] not in ACTIVATIONS:
        raise NoRow
    return w.add(Call(ACTIVATIONS[call.attrs["act_type"]][0], (x,)))


@row("relu")
def relu(w: StepWriter, call: PortCall, x: Any) -> Any:
    """F.relu."""
    return w.add(Call("F.relu", (x,)))


@row("LeakyReLU")
def leaky_relu(w: StepWriter, call: PortCall, x: Any, gamma: Any = None) -> Any:
    """nn.PReLU, or the function selected by `act_type`."""
    a, kind = call.attrs, call.attrs["act_type"]
    if kind == "prelu":
        count = call.rank_checked(1)[0]
        args = (option("num_parameters", count, 1, "channels:in"),)
        return w.layer(call, "nn.PReLU", args, {"weight": gamma}, x)
    slope = Const(float(a["slope"]), "slope")
    if kind == "leaky":
        return w.add(Call("F.leaky_relu", (x, slope)))
    if kind == "elu":
        return w.add(Call("F.elu", (x, slope)))
    if kind in ("gelu", "selu"):
        return w.add(Call(f"F.{kind}", (x,)))
    raise NoRow


# Modules equivalent to functions, for use in sequences.
MODULE_FORMS = {
    **dict(ACTIVATIONS.values()),
    "F.relu6": "nn.ReLU6",
    "F.leaky_relu": "nn.LeakyReLU",
    "F.elu": "nn.ELU",
    "F.gelu": "nn.GELU",
    "F.selu": "nn.SELU",
    "F.softmax": "nn.Softmax",
    "F.log_softmax": "nn.LogSoftmax",
    "torch.flatten": "nn.Flatten",
}


@row("BlockGrad")
def stop_gradient(w: StepWriter, call: PortCall, x: Any) -> Any:
    """Detach."""
    return w.add(Call(".detach", (x,)))


@row("SliceChannel")
def split(w: StepWriter, call: PortCall, x: Any) -> Any:
    """chunk, or unbind if `squeeze_axis` is set."""
    count, axis = call.attrs["num_outputs"], Const(call.attrs["axis"], "dim")
    if count == 1:
        return w.add(Call(".squeeze", (x, axis))) if call.attrs["squeeze_axis"] else x
    if call.attrs["squeeze_axis"]:
        return w.add(Call(".unbind", (x,), (("dim", axis),)), count)
    return w.add(Call(".chunk", (x, Const(count)), (("dim", axis),)), count)


@row("Reshape")
def reshape(w: StepWriter, call: PortCall, x: Any) -> Any:
    """Reshape with a dynamic batch size."""
    codes = call.attrs["shape"]
    shape, target = call.rank_checked(0), call.out_shape()
    if codes and all(n >= -1 for n in codes):
        start = len(shape) - len(codes) if call.attrs["reverse"] else 0
        sizes = [
            w.add(Call(".shape", (x, Const(start + i)))) if n == 0 else Const(n, "size")
            for i, n in enumerate(codes)
        ]
        if tuple(codes) == (0, -1):
            return w.add(Call("torch.flatten", (x, Const(1))))
    else:
        sizes = _open_sizes(w, x, shape, target)
    before = w.definition(x)
    if isinstance(before, Call) and before.function == ".reshape" and all(map(_is_fixed, sizes)):
        x = before.args[0]  # merge consecutive reshapes
    return w.add(Call(".reshape", (x, *sizes)))


def _is_fixed(size: Any) -> bool:
    return isinstance(size, Const)


def _open_sizes(w: StepWriter, x: Any, shape: Any, target: Any) -> list[Any]:
    """Return the arguments of a reshape to `target`, with a dynamic batch size."""
    if target and shape and target[0] == shape[0]:
        return [w.add(Call(".shape", (x, Const(0)))), *(Const(n, "size") for n in target[1:])]
    return [Const(-1, "size"), *(Const(n, "size") for n in target[1:])]


@row("transpose")
def transpose(w: StepWriter, call: PortCall, x: Any) -> Any:
    """permute, or transpose of two axes."""
    rank = len(call.rank_checked(0))
    axes = tuple(call.attrs["axes"] or range(rank - 1, -1, -1))
    moved = [i for i, axis in enumerate(axes) if i != axis]
    if len(moved) == 2:
        return w.add(Call(".transpose", (x, Const(moved[0]), Const(moved[1]))))
    return w.add(Call(".permute", (x, *(Const(n) for n in axes))))


def _comparison(name: str, sign: str) -> None:
    @row(name)
    def build(w: StepWriter, call: PortCall, a: Any, b: Any) -> Any:
        return w.add(Call(".to", (w.add(Infix(sign, a, b)), Const(call.out_dtypes[0]))))


COMPARISONS = {
    "greater": ">",
    "greater_equal": ">=",
    "lesser": "<",
    "lesser_equal": "<=",
    "equal": "==",
    "not_equal": "!=",
}
for _name, _sign in COMPARISONS.items():
    _comparison(f"broadcast_{_name}", _sign)


@row("L2Normalization")
def l2_normalization(w: StepWriter, call: PortCall, x: Any) -> Any:
    """The function `l2_normalize`."""
    name = w.use_function("l2_normalize")
    mode = Const(call.attrs["mode"], "mode")
    return w.add(Call(name, (x, mode), (("eps", Const(float(call.attrs["eps"]))),)))


@row("LRN")
def local_response_norm(w: StepWriter, call: PortCall, x: Any) -> Any:
    """F.local_response_norm, whose alpha is divided by the size as MXNet's is."""
    a = call.attrs
    options = tuple((k, Const(float(a[j]))) for k, j in (("alpha", "alpha"), ("beta", "beta"),
                                                         ("k", "knorm")))  # fmt: skip
    return w.add(Call("F.local_response_norm", (x, Const(a["nsize"])), options))


# -- recurrent layers ------------------------------------------------------------------------------

RECURRENT = {"lstm": "nn.LSTM", "gru": "nn.GRU", "rnn_tanh": "nn.RNN", "rnn_relu": "nn.RNN"}


@row("RNN")
def rnn(w: StepWriter, call: PortCall, x: Any, parameters: Any, *states: Any) -> Any:
    """nn.LSTM, nn.GRU or nn.RNN. Initial states are omitted if they are zero."""
    a, features = call.attrs, call.rank_checked(0)[-1]
    clips = a["lstm_state_clip_min"] is not None or a["lstm_state_clip_max"] is not None
    if a["use_sequence_length"] or clips:
        raise w.unsupported(call, "with sequence lengths or clipped states has no layer in torch.")
    directions = 2 if a["bidirectional"] else 1
    sizes = (features, a["state_size"], a["num_layers"], directions)
    args = [
        channels_in(features, "input_size"),
        channels_out(a["state_size"], "hidden_size"),
        option("num_layers", a["num_layers"], 1, "layers"),
        option("dropout", float(a["p"]) if a["num_layers"] > 1 else 0.0, 0.0, "rate"),
        option("bidirectional", a["bidirectional"], False),
    ]
    if a["mode"] == "rnn_relu":
        args.append(option("nonlinearity", "relu", "tanh"))
    if a["projection_size"]:
        args.append(option("proj_size", a["projection_size"], 0, "channels:out"))
    try:
        indices = w.gather(call, 1)
    except NoRow:
        raise w.unsupported(call, "reads parameters that are computed.") from None
    packed: Any = indices.index
    pieces = unpack_parameters(packed, *sizes, GATES[a["mode"]], a["projection_size"])
    tensors = dict(zip(_rnn_names(a, directions), pieces, strict=True))
    sources = {name: TensorSource(indices.names, piece) for name, piece in tensors.items()}
    zeros = all(w.is_zeros(call.node.inputs[i]) for i in range(2, len(call.node.inputs)))
    given: tuple[Any, ...] = () if zeros else (states[0],)
    if not zeros and a["mode"] == "lstm":
        given = (Group(tuple(states), False),)
    cls = RECURRENT[a["mode"]]
    sequence, last = w.layer(call, cls, tuple(args), sources, x, *given, outputs=2)
    if not a["state_outputs"]:
        return sequence
    if a["mode"] != "lstm":
        return [sequence, last]
    return [sequence, *(w.add(Item(last, Const(i))) for i in range(2))]


def _rnn_names(a: dict[str, Any], directions: int) -> list[str]:
    kinds = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    kinds += ["weight_hr"] if a["projection_size"] else []
    ends = ["", "_reverse"][:directions]
    return [f"{k}_l{i}{end}" for i in range(a["num_layers"]) for end in ends for k in kinds]
