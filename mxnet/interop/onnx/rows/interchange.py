"""Rows of the operators that came from ONNX: each is one node."""

from __future__ import annotations

import numpy as np
import torch

from ..builder import INT64, Builder, Call, is_float, onnx_dtype, row


def _same(name: str, op_type: str, since: int = 12, **renamed: str) -> None:
    """Export an operator as one node; `renamed` are attributes under ONNX's names."""

    @row(name, since=since)
    def emit(g: Builder, call: Call, *xs: str) -> str | list[str]:
        attrs = {theirs: _plain(call.attrs[ours]) for ours, theirs in renamed.items()}
        count = len(call.out_shapes)
        return g.add(op_type, *xs, outputs=count, **attrs)


def _plain(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    return list(value) if isinstance(value, tuple) else value


_same("_onnx_expand", "Expand")
_same("_onnx_slice", "Slice")
_same("_onnx_tile", "Tile")
_same("_onnx_topk", "TopK", axis="axis", largest="largest")
_same("_onnx_gather", "Gather", axis="axis")
_same("_onnx_gather_elements", "GatherElements", axis="axis")
_same("_onnx_gather_nd", "GatherND", batch_dims="batch_dims")
_same("_onnx_nonzero", "NonZero")
_same("_onnx_matmul_integer", "MatMulInteger")
_same("_onnx_dynamic_quantize", "DynamicQuantizeLinear")
_same("_onnx_tensor_scatter", "TensorScatter", 24, axis="axis", mode="mode")
_same(
    "_onnx_max_pool",
    "MaxPool",
    kernel="kernel_shape",
    stride="strides",
    dilate="dilations",
    pads="pads",
    storage_order="storage_order",
)
_same(
    "_onnx_conv_integer",
    "ConvInteger",
    stride="strides",
    dilate="dilations",
    pads="pads",
    num_group="group",
)


def _one(g: Builder, x: str) -> str:
    return g.reshape(x, [])


@row("_onnx_reshape")
def reshape(g: Builder, call: Call, x: str, shape: str) -> str:
    """Reshape to computed sizes."""
    target = g.cast(shape, call.dtypes[1], INT64)
    if not call.attrs["allowzero"]:
        return g.Reshape(x, target)
    if g.opset >= 14:
        return g.Reshape(x, target, allowzero=1)
    sizes = call.constant(1)
    # There a size of 0 copies the one in its place.
    fits = sizes is not None and all(
        n or (i < call.ndim and call.shape[i] == 0) for i, n in enumerate(sizes)
    )
    if not fits:
        raise call.unsupported("with allowzero needs opset_version=14 or newer.")
    return g.Reshape(x, target)


@row("_onnx_range")
def arange(g: Builder, call: Call, *ends: str) -> str:
    """Numbers at equal distances."""
    dtype = call.out_dtypes[0]
    kind = torch.float32 if dtype is torch.float16 else dtype  # ONNX has no such range
    ends = tuple(g.cast(e, d, kind) for e, d in zip(ends, call.dtypes, strict=True))
    return g.cast(g.Range(*(_one(g, e) for e in ends)), kind, dtype)


@row("_onnx_pad")
def pad(g: Builder, call: Call, x: str, pads: str, value: str) -> str:
    """Pad by computed widths."""
    widths = g.cast(pads, call.dtypes[1], INT64)
    return g.Pad(x, widths, _one(g, value), mode=call.attrs["mode"])


row("_onnx_fmod")(lambda g, call, a, b: g.Mod(a, b, fmod=1))


@row("_onnx_mod")
def mod(g: Builder, call: Call, a: str, b: str) -> str:
    """Remainder with the sign of the divisor; for floats computed by its definition."""
    if not is_float(call.dtype):
        return g.Mod(a, b)
    return g.Sub(a, g.Mul(g.Floor(g.Div(a, b)), b))


@row("_onnx_reduce_pool", since=19)
def reduce_pool(g: Builder, call: Call, x: str) -> str:
    """Mean or p-norm over windows."""
    a = call.attrs
    if any(a["extra"]):
        raise call.unsupported("that rounds up has no ONNX form.")
    options = {
        "kernel_shape": list(a["kernel"]),
        "strides": list(a["stride"]),
        "dilations": list(a["dilate"]),
        "pads": list(a["pads"]),
    }
    if a["kind"] == "lp":
        return g.LpPool(x, p=a["p"], **options)
    return g.AveragePool(x, count_include_pad=int(a["count_include_pad"]), **options)


@row("_onnx_stft", since=17)
def stft(g: Builder, call: Call, x: str, window: str = "") -> str:
    """Fourier transforms of frames."""
    a = call.attrs
    step, length = (g.array(np.array(a[k], np.int64)) for k in ("frame_step", "frame_length"))
    return g.STFT(x, step, window, length, onesided=int(a["onesided"]))


def _scatter(name: str, op_type: str, has_axis: bool) -> None:
    @row(name)
    def emit(g: Builder, call: Call, x: str, indices: str, updates: str) -> str:
        how = call.attrs["reduction"]
        if how != "none" and g.opset < (18 if how in ("max", "min") else 16):
            raise call.unsupported(f"with reduction={how!r} needs a newer opset_version (18).")
        options = {"axis": call.attrs["axis"]} if has_axis else {}
        options |= {"reduction": how} if how != "none" else {}
        return g.add(op_type, x, g.cast(indices, call.dtypes[1], INT64), updates, **options)


_scatter("_onnx_scatter_elements", "ScatterElements", True)
_scatter("_onnx_scatter_nd", "ScatterND", False)


@row("_onnx_non_max_suppression")
def non_max_suppression(g: Builder, call: Call, *xs: str) -> str:
    """Keep boxes that do not overlap with a better one."""
    boxes, scores, limit, *bounds = xs
    most = g.cast(limit, call.dtypes[2], INT64)
    center = int(call.attrs["center_point_box"])
    return g.NonMaxSuppression(boxes, scores, most, *bounds, center_point_box=center)


@row("_onnx_grid_sample", since=16)
def grid_sample(g: Builder, call: Call, x: str, grid: str) -> str:
    """Sample at places of a grid."""
    a = call.attrs
    newer = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}
    return g.GridSample(
        x,
        grid,
        mode=newer[a["mode"]] if g.opset >= 20 else a["mode"],
        padding_mode=a["padding_mode"],
        align_corners=int(a["align_corners"]),
    )


@row("_onnx_resize")
def resize(g: Builder, call: Call, x: str, target: str) -> str:
    """Resize to computed sizes or by computed scales."""
    a, is_scale = call.attrs, call.dtypes[1] in (torch.float32,)
    options = {"mode": a["mode"], "coordinate_transformation_mode": a["transform"]}
    if a["mode"] == "nearest":
        options["nearest_mode"] = a["rounding"]
    if a["mode"] == "cubic":
        options["cubic_coeff_a"] = a["cubic_coeff_a"]
    if is_scale:
        return g.resize(x, scales=target, **options)
    return g.resize(x, sizes=g.cast(target, call.dtypes[1], INT64), **options)


@row("_onnx_dft", since=17)
def dft(g: Builder, call: Call, x: str) -> str:
    """Discrete Fourier transform."""
    a = call.attrs
    length = "" if a["length"] is None else g.array(np.array(a["length"], np.int64))
    options = {"inverse": int(a["inverse"]), "onesided": int(a["onesided"])}
    if g.opset >= 20:
        return g.DFT(x, length, g.array(np.array(a["axis"], np.int64)), **options)
    return g.DFT(x, length, axis=a["axis"] % call.ndim, **options)


@row("_onnx_bit_shift")
def bit_shift(g: Builder, call: Call, x: str, count: str) -> str:
    """Shift bits; ONNX has it for unsigned numbers only."""
    if call.dtype is not torch.uint8:
        raise call.unsupported("of signed numbers has no ONNX form.")
    return g.BitShift(x, count, direction=call.attrs["direction"])


RNN_INPUTS = ("bias", "lengths", "state", "cell", "peepholes")


@row("_onnx_rnn")
def rnn(g: Builder, call: Call, x: str, w: str, r: str, *rest: str) -> list[str]:
    """A recurrent layer with all options."""
    a, names_given = call.attrs, call.attrs["given"].split(",")
    names = iter(rest)
    optional = {kind: next(names) for kind in RNN_INPUTS if kind in names_given}
    inputs = [optional.get(kind, "") for kind in RNN_INPUTS]
    if optional.get("lengths"):
        at = 3 + [k for k in RNN_INPUTS if k in names_given].index("lengths")
        inputs[1] = g.cast(inputs[1], call.dtypes[at], torch.int32)
    used = inputs[: 3 if a["kind"] != "lstm" else 5]
    while used and not used[-1]:
        used.pop()
    options = {"hidden_size": call.shapes[2][-1], "direction": a["direction"]}
    options["activations"] = [_function_name(f) for f in a["activations"].split(",")]
    if a["alphas"]:
        options["activation_alpha"] = list(a["alphas"])
    if a["betas"]:
        options["activation_beta"] = list(a["betas"])
    if a["clip"]:
        options["clip"] = a["clip"]
    if a["kind"] == "gru":
        options["linear_before_reset"] = int(a["linear_before_reset"])
    if a["kind"] == "lstm":
        options["input_forget"] = int(a["input_forget"])
    return g.add(a["kind"].upper(), x, w, r, *used, outputs=len(call.out_shapes), **options)


FUNCTION_NAMES = {
    n.lower(): n
    for n in (
        *("Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh"),
        *("HardSigmoid", "Elu", "Softsign", "Softplus"),
    )
}


def _function_name(name: str) -> str:
    return FUNCTION_NAMES[name]


@row("_onnx_attention", since=23)
def attention(g: Builder, call: Call, q: str, k: str, v: str, *rest: str) -> list[str]:
    """Scaled dot-product attention."""
    a, names_given = call.attrs, call.attrs["given"].split(",")
    names = iter(rest)
    kinds = ("mask", "past_key", "past_value", "lengths")
    inputs = [next(names) if kind in names_given else "" for kind in kinds]
    while inputs and not inputs[-1]:
        inputs.pop()
    options = {"is_causal": int(a["is_causal"]), "softcap": a["softcap"], "scale": a["scale"]}
    if a["q_num_heads"]:
        options |= {"q_num_heads": a["q_num_heads"], "kv_num_heads": a["kv_num_heads"]}
    if a["softmax_dtype"] is not None:
        options["softmax_precision"] = onnx_dtype(a["softmax_dtype"])
    if a["left_window"] >= 0 or a["right_window"] >= 0:
        raise call.unsupported("with windows needs an opset that cannot be written yet.")
    options["qk_matmul_output_mode"] = a["scores_mode"]
    outputs = g.add("Attention", q, k, v, *inputs, outputs=len(call.out_shapes), **options)
    return [outputs] if isinstance(outputs, str) else outputs
