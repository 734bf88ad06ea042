"""Rows of layers: products, convolution, pooling, normalization and attention."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from ..builder import UNKNOWN, Builder, Call, numpy_dtype, row

CHANNELS_LAST = ("NWC", "NHWC", "NDHWC")
NEEDS_IMAGE_SIZE = "needs height and width as numbers."


@row("FullyConnected")
def fully_connected(g: Builder, call: Call, x: str, weight: str, bias: str | None = None) -> str:
    """``y = x W^T + b``; data of more than two axes is flattened unless specified otherwise."""
    flatten = call.attrs["flatten"]
    if flatten and call.ndim != 2:
        x = g.Flatten(x, axis=1)
    if flatten or call.ndim == 2:
        return g.Gemm(x, weight, *([bias] if bias else []), transB=1)
    product = g.MatMul(x, g.Transpose(weight, perm=[1, 0]))
    return g.Add(product, bias) if bias else product


def swap_last(g: Builder, x: str, rank: int) -> str:
    """Transpose the matrices of the last two axes."""
    return g.Transpose(x, perm=[*range(rank - 2), rank - 1, rank - 2])


@row("dot")
def dot(g: Builder, call: Call, a: str, b: str) -> str:
    """Sum over the last axis of one and the first of the other."""
    left, right = list(call.shapes[0]), list(call.shapes[1])
    turn_a = call.attrs["transpose_a"] and len(left) > 1
    turn_b = call.attrs["transpose_b"] and len(right) > 1
    if turn_a:
        a = g.Transpose(a, perm=[*range(1, len(left)), 0])
        left = [*left[1:], left[0]]
    if turn_b:
        b = g.Transpose(b, perm=[len(right) - 1, *range(len(right) - 1)])
        right = [right[-1], *right[:-1]]
    if len(right) > 2:
        b = g.reshape(b, [right[0] if right[0] != UNKNOWN else 0, -1])
    if len(right) == 1 and len(left) > 1:  # runtimes fuse a transposition with vectors wrongly
        return g.squeeze(g.MatMul(a, g.unsqueeze(b, 1)), len(left) - 1)
    product = g.MatMul(a, b)
    if len(right) > 2:
        product = g.reshape_to(call, product, (*left[:-1], -1), call.out_shapes[0])
    return g.reshape(product, [1]) if len(left) == 1 and len(right) == 1 else product


@row("batch_dot")
def batch_dot(g: Builder, call: Call, a: str, b: str) -> str:
    """Multiply matrices pairwise."""
    if call.attrs["transpose_a"]:
        a = swap_last(g, a, call.ndim)
    if call.attrs["transpose_b"]:
        b = swap_last(g, b, len(call.shapes[1]))
    return g.MatMul(a, b)


@row("_linalg_gemm2")
def gemm2(g: Builder, call: Call, a: str, b: str) -> str:
    """``alpha A B``."""
    rank = call.ndim
    order = [i for i in range(rank) if i not in (call.axis, rank - 1)] + [call.axis, rank - 1]
    a, b = g.transpose(a, *order), g.transpose(b, *order)
    if call.attrs["transpose_a"]:
        a = swap_last(g, a, rank)
    if call.attrs["transpose_b"]:
        b = swap_last(g, b, rank)
    output = g.Mul(g.MatMul(a, b), g.scalar(call.attrs["alpha"], call.dtype))
    return g.transpose(output, *(int(i) for i in np.argsort(order)))


@row("_linalg_gemm")
def gemm(g: Builder, call: Call, a: str, b: str, c: str) -> str:
    """``alpha A B + beta C``."""
    scaled = g.Mul(c, g.scalar(call.attrs["beta"], call.dtype))
    return g.Add(gemm2(g, call, a, b), scaled)


@row("_linalg_syrk")
def syrk(g: Builder, call: Call, a: str) -> str:
    """``alpha A A^T`` or ``alpha A^T A``."""
    turned = swap_last(g, a, call.ndim)
    pair = (turned, a) if call.attrs["transpose"] else (a, turned)
    return g.Mul(g.MatMul(*pair), g.scalar(call.attrs["alpha"], call.dtype))


def _with_axis(g: Builder, call: Call, number: str) -> str:
    """Reshape the result for one matrix to MXNet's shape."""
    is_one = call.out_shapes[0] == (1,) and call.ndim == 2
    return g.reshape(number, [1]) if is_one else number


row("_linalg_det")(lambda g, call, a: _with_axis(g, call, g.Det(a)))


@row("_linalg_sumlogdiag")
def sumlogdiag(g: Builder, call: Call, a: str) -> str:
    """Sum of the logarithms of the diagonal."""
    size = call.shape[-1]
    eye = g.array(np.eye(size, dtype=bool))
    logs = g.Log(g.Where(eye, a, g.scalar(1, call.dtype)))
    output = g.reduce("ReduceSum", logs, [call.ndim - 2, call.ndim - 1], False)
    return g.reshape(output, [1]) if call.ndim == 2 else output


@row("khatri_rao")
def khatri_rao(g: Builder, call: Call, *xs: str) -> str:
    """Kronecker products of columns."""
    columns = call.shape[1]
    product, rows = xs[0], call.shape[0]
    for x, shape in zip(xs[1:], call.shapes[1:], strict=True):
        product = g.Mul(g.reshape(product, [rows, 1, columns]), g.reshape(x, [1, *shape]))
        rows *= shape[0]
        product = g.reshape(product, [rows, columns])
    return g.Identity(product) if len(xs) == 1 else product


@row("_linalg_trmm")
def trmm(g: Builder, call: Call, a: str, b: str) -> str:
    """Product with a triangular matrix."""
    o = call.attrs
    triangle = g.Trilu(a, upper=int(not o["lower"])) if g.opset >= 14 else _triangle(g, call, a)
    if o["transpose"]:
        triangle = swap_last(g, triangle, call.ndim)
    pair = (b, triangle) if o["rightside"] else (triangle, b)
    return g.Mul(g.MatMul(*pair), g.scalar(o["alpha"], call.dtype))


def _triangle(g: Builder, call: Call, a: str) -> str:
    rows, columns = call.shape[-2:]
    mask = np.tri(rows, columns) > 0
    return g.Where(g.array(mask if call.attrs["lower"] else mask.T), a, g.scalar(0, call.dtype))


@row("_linalg_slogdet")
def slogdet(g: Builder, call: Call, a: str) -> list[str]:
    """Sign and logarithm of determinants."""
    det = g.Det(a)
    return [_with_axis(g, call, part) for part in (g.Sign(det), g.Log(g.Abs(det)))]


def _einsum(g: Builder, call: Call, equation: str, xs: tuple[str, ...]) -> str:
    return g.Einsum(*g.cast_all(call, xs, call.out_dtypes[0]), equation=equation)


row("_npi_einsum")(lambda g, call, *xs: _einsum(g, call, call.attrs["subscripts"], xs))
row("_npi_matmul")(lambda g, call, *xs: g.MatMul(*g.cast_all(call, xs, call.out_dtypes[0])))


@row("_np_dot")
def numpy_dot(g: Builder, call: Call, a: str, b: str) -> str:
    """NumPy's dot: the last axis of one with the last but one of the other."""
    left, right = (len(s) for s in call.shapes)
    if not left or not right or right <= 2:
        pair = g.cast_all(call, (a, b), call.out_dtypes[0])
        return g.add("MatMul" if left and right else "Mul", *pair)
    return _contract(g, call, a, b, [left - 1], [right - 2])


def _contract(g: Builder, call: Call, a: str, b: str, left: list[int], right: list[int]) -> str:
    ranks = [len(s) for s in call.shapes]
    first = list(string.ascii_lowercase[: ranks[0]])
    second = list(string.ascii_lowercase[ranks[0] : sum(ranks)])
    for i, j in zip(left, right, strict=True):
        second[j % ranks[1]] = first[i % ranks[0]]
    shared = {first[i % ranks[0]] for i in left}
    out = [c for c in (*first, *second) if c not in shared]
    return _einsum(g, call, f"{''.join(first)},{''.join(second)}->{''.join(out)}", (a, b))


@row("_npi_tensordot")
def tensordot(g: Builder, call: Call, a: str, b: str) -> str:
    """Sum over pairs of axes."""
    axes = [list(call.attrs[k]) for k in ("a_axes_summed", "b_axes_summed")]
    return _contract(g, call, a, b, *axes)


@row("_npi_tensordot_int_axes")
def tensordot_int(g: Builder, call: Call, a: str, b: str) -> str:
    """Sum over the last axes of one and the first of the other."""
    count, rank = call.attrs["axes"], call.ndim
    return _contract(g, call, a, b, list(range(rank - count, rank)), list(range(count)))


def per_axis(values: Sequence[int], default: int, rank: int) -> list[int]:
    """Return a stride, pad or dilation for every spatial axis."""
    return list(values[:rank]) or [default] * rank


def channels_first(g: Builder, x: str, rank: int) -> str:
    """Move the last axis to the second place."""
    return g.Transpose(x, perm=[0, rank - 1, *range(1, rank - 1)])


def channels_last(g: Builder, x: str, rank: int) -> str:
    """Move the second axis to the last place."""
    return g.Transpose(x, perm=[0, *range(2, rank), 1])


def _write_convolution(
    g: Builder, call: Call, op_type: str, xs: Sequence[str], pad: list[int], **options: Any
) -> str:
    """Write a convolution; channels-last data is transposed around it."""
    a, rank = call.attrs, len(call.attrs["kernel"])
    is_last = a["layout"] in CHANNELS_LAST
    x, weight, *bias = xs
    if is_last:
        x, weight = (channels_first(g, v, call.ndim) for v in (x, weight))
    output = g.add(
        op_type,
        *(x, weight, *bias),
        kernel_shape=list(a["kernel"]),
        strides=per_axis(a["stride"], 1, rank),
        dilations=per_axis(a["dilate"], 1, rank),
        pads=pad + pad,
        group=a["num_group"],
        **options,
    )
    return channels_last(g, output, call.ndim) if is_last else output


@row("Convolution")
def convolution(g: Builder, call: Call, *xs: str) -> str:
    """Write Conv."""
    pad = per_axis(call.attrs["pad"], 0, len(call.attrs["kernel"]))
    return _write_convolution(g, call, "Conv", xs, pad)


def _crop_to_target(call: Call) -> tuple[list[int], list[int]]:
    """Return the pads and the output padding that give the target size."""
    a, rank = call.attrs, len(call.attrs["kernel"])
    spatial = call.shape[1:-1] if a["layout"] in CHANNELS_LAST else call.shape[2:]
    call.require_sizes(spatial, "with target_shape needs height and width as numbers.")
    strides, dilations = per_axis(a["stride"], 1, rank), per_axis(a["dilate"], 1, rank)
    full = [
        s * (n - 1) + d * (k - 1) + 1
        for n, k, s, d in zip(spatial, a["kernel"], strides, dilations, strict=True)
    ]
    surplus = [f - t for f, t in zip(full, a["target_shape"], strict=True)]
    return [(s + 1) // 2 for s in surplus], [s % 2 for s in surplus]


@row("Deconvolution")
def deconvolution(g: Builder, call: Call, *xs: str) -> str:
    """Write ConvTranspose; `target_shape` overrides `pad` and `adj`."""
    a, rank = call.attrs, len(call.attrs["kernel"])
    pad, adj = per_axis(a["pad"], 0, rank), per_axis(a["adj"], 0, rank)
    if any(a["target_shape"]):
        pad, adj = _crop_to_target(call)
    return _write_convolution(g, call, "ConvTranspose", xs, pad, output_padding=adj)


@row("col2im", since=18)
def col2im(g: Builder, call: Call, x: str) -> str:
    """Add columns of windows up to images."""
    a, rank = call.attrs, len(call.attrs["kernel"])
    return g.Col2Im(
        x,
        g.ints(*a["output_size"]),
        g.ints(*a["kernel"]),
        strides=per_axis(a["stride"], 1, rank),
        dilations=per_axis(a["dilate"], 1, rank),
        pads=per_axis(a["pad"], 0, rank) * 2,
    )


class Windows(NamedTuple):
    """Geometry of windows: spatial sizes (-1 unknown), kernel, stride, pads before and after."""

    sizes: list[int]
    kernel: list[int]
    stride: list[int]
    before: list[int]
    after: list[int]

    @property
    def is_known(self) -> bool:
        """Whether all sizes are numbers."""
        return UNKNOWN not in self.sizes

    def counts(self) -> list[int]:
        """Return the number of windows along each axis."""
        return [(n + b + a - k) // s + 1 for n, k, s, b, a in zip(*self, strict=True)]


def _windows(call: Call, sizes: list[int]) -> Windows:
    a = call.attrs
    rank, convention = len(a["kernel"]), a["pooling_convention"]
    kernel, stride = list(a["kernel"]), per_axis(a["stride"], 1, rank)
    pad = per_axis(a["pad"], 0, rank)
    if convention == "valid":
        return Windows(sizes, kernel, stride, pad, pad)
    if convention == "full":
        after = [p + s - 1 for p, s in zip(pad, stride, strict=True)]
        windows = Windows(sizes, kernel, stride, pad, after)
        if not windows.is_known:
            return windows
        # Keep only the additional padding that the last window covers.
        needed = [
            max((o - 1) * s + k - n - p, 0)
            for o, s, k, n, p in zip(windows.counts(), stride, kernel, sizes, pad, strict=True)
        ]
        return windows._replace(after=needed)
    call.require_sizes(sizes, "with pooling_convention='same' needs the sizes as numbers.")
    after = [
        max((-(-n // s) - 1) * s + k - n - p, 0)
        for n, s, k, p in zip(sizes, stride, kernel, pad, strict=True)
    ]
    return Windows(sizes, kernel, stride, pad, after)


def _within_reach(windows: Windows) -> tuple[Windows, list[int]]:
    """Return the windows that cover data, and the number of those at the end that do not."""
    if not windows.is_known:
        return windows, [0] * len(windows.sizes)
    after = [min(a, k - 1) for a, k in zip(windows.after, windows.kernel, strict=True)]
    reached = windows._replace(after=after)
    pairs = zip(windows.counts(), reached.counts(), strict=True)
    return reached, [all_windows - have for all_windows, have in pairs]


def _complete(g: Builder, call: Call, x: str, missing: list[int], value: float) -> str:
    """Add windows that lie in the padding only."""
    if not any(missing):
        return x
    filler = g.scalar(value, call.dtype)
    return g.pad(x, [0] * (2 + len(missing)), [0, 0, *missing], filler)


def _fits(windows: Windows) -> bool:
    """Return whether runtimes accept the pads: less than a kernel."""
    ends = zip(windows.before, windows.after, windows.kernel, strict=True)
    return all(b < k and a < k for b, a, k in ends)


def _max(g: Builder, call: Call, x: str, windows: Windows) -> str:
    options = {"kernel_shape": windows.kernel, "strides": windows.stride}
    if _fits(windows):
        return g.MaxPool(x, pads=windows.before + windows.after, **options)
    lowest = g.scalar(torch.finfo(call.dtype).min, call.dtype)
    padded = g.pad(x, [0, 0, *windows.before], [0, 0, *windows.after], lowest)
    return g.MaxPool(padded, **options)


def _sum(g: Builder, dtype: torch.dtype, x: str, windows: Windows) -> str:
    options = {"kernel_shape": windows.kernel, "strides": windows.stride}
    if any(windows.before) or any(windows.after):
        zero = g.scalar(0, dtype)
        x = g.pad(x, [0, 0, *windows.before], [0, 0, *windows.after], zero)
    mean = g.AveragePool(x, **options)
    return g.Mul(mean, g.scalar(math.prod(windows.kernel), dtype))


def _count_covered(call: Call, windows: Windows, with_pad: bool) -> np.ndarray:
    """Return the divisor of each window, ``(1, 1, ...)``."""
    counts = np.ones([1, 1], dtype=numpy_dtype(call.dtype))
    pads = per_axis(call.attrs["pad"], 0, len(windows.kernel))
    sides = zip(*windows[:4], pads, windows.counts(), strict=True)
    for axis, (n, k, s, before, pad, count) in enumerate(sides):
        starts = np.arange(count) * s - before
        low, high = (-pad, n + pad) if with_pad else (0, n)
        length = np.minimum(starts + k, high) - np.maximum(starts, low)
        line = np.maximum(length, 0).reshape([1, 1, *[1] * axis, count])
        counts = counts[..., None] * line.astype(counts.dtype)
    return np.maximum(counts, 1)


def _mean(g: Builder, call: Call, x: str, windows: Windows, with_pad: bool) -> str:
    is_even = windows.before == windows.after == per_axis(call.attrs["pad"], 0, len(windows.kernel))
    if is_even and _fits(windows) and call.attrs["pooling_convention"] != "same":
        return g.AveragePool(
            x,
            kernel_shape=windows.kernel,
            strides=windows.stride,
            pads=windows.before + windows.after,
            count_include_pad=int(with_pad),
        )
    total = _sum(g, call.dtype, x, windows)
    if windows.is_known:
        return g.Div(total, g.array(_count_covered(call, windows, with_pad)))
    ones = g.Expand(g.scalar(1, call.dtype), g.Shape(x))
    if with_pad:
        pads = per_axis(call.attrs["pad"], 0, len(windows.kernel))
        ones = g.pad(ones, [0, 0, *pads], [0, 0, *pads], g.scalar(1, call.dtype))
        extra = [a - p for a, p in zip(windows.after, pads, strict=True)]
        windows = windows._replace(before=[0] * len(pads), after=extra)
    covered = g.Max(_sum(g, call.dtype, ones, windows), g.scalar(1, call.dtype))
    return g.Div(total, covered)


def _pool_all(g: Builder, call: Call, x: str, kind: str, rank: int) -> str:
    if kind == "sum":
        return g.reduce("ReduceSum", x, list(range(2, rank)), True)
    return g.add("GlobalMaxPool" if kind == "max" else "GlobalAveragePool", x)


def _power(g: Builder, x: str, p: int) -> str:
    if p == 1:
        return x
    square = g.Mul(x, x)
    return square if p == 2 else g.Mul(square, x)


def _root(g: Builder, x: str, p: int, dtype: torch.dtype) -> str:
    if p == 1:
        return x
    return g.Sqrt(x) if p == 2 else g.Mul(g.Sign(x), g.Pow(g.Abs(x), g.scalar(1 / 3, dtype)))


def _pool(g: Builder, call: Call, x: str, kind: str, sizes: list[int]) -> str:
    if call.attrs["global_pool"]:
        return _pool_all(g, call, x, kind, call.ndim)
    windows, missing = _within_reach(_windows(call, sizes))
    if kind == "max":
        lowest = torch.finfo(call.dtype).min
        return _complete(g, call, _max(g, call, x, windows), missing, lowest)
    if kind == "sum":
        output = _sum(g, call.dtype, x, windows)
    else:
        output = _mean(g, call, x, windows, call.attrs["count_include_pad"] is not False)
    return _complete(g, call, output, missing, 0)


@row("Pooling")
def pooling(g: Builder, call: Call, x: str) -> str:
    """Maximum, mean, sum or p-norm over windows, or over everything."""
    kind, is_last = call.attrs["pool_type"], call.attrs["layout"] in CHANNELS_LAST
    sizes = list(call.shape[1:-1] if is_last else call.shape[2:])
    if is_last:
        x = channels_first(g, x, call.ndim)
    if kind == "lp":
        p = call.attrs["p_value"]
        output = _root(g, _pool(g, call, _power(g, x, p), "sum", sizes), p, call.dtype)
    else:
        output = _pool(g, call, x, kind, sizes)
    return channels_last(g, output, call.ndim) if is_last else output


@row("Pooling_v1")
def pooling_v1(g: Builder, call: Call, x: str) -> str:
    """Pool as MXNet's first version: padding with zeros, means divided by the kernel size."""
    kind = call.attrs["pool_type"]
    if call.attrs["global_pool"]:
        return _pool_all(g, call, x, kind, 4)
    windows, missing = _within_reach(_windows(call, list(call.shape[2:])))
    if kind == "max":
        output = _max(g, call, x, windows)
        if any(windows.before):
            output = g.Max(output, g.array(_zero_padding(call, windows)))
        return _complete(g, call, output, missing, -math.inf)
    total = _complete(g, call, _sum(g, call.dtype, x, windows), missing, 0)
    size = g.scalar(math.prod(windows.kernel), call.dtype)
    return g.Div(total, size) if kind == "avg" else total


def _zero_padding(call: Call, windows: Windows) -> np.ndarray:
    """Return 0 for windows that reach into the padding, -inf for others."""
    call.require_sizes(windows.sizes, f"of padded maxima {NEEDS_IMAGE_SIZE}")
    lines = []
    for n, k, s, b, count in zip(*windows[:4], windows.counts(), strict=True):
        starts = np.arange(count) * s - b
        lines.append((b > 0) & ((starts < 0) | (starts + k > n)))
    touches = lines[0][:, None] | lines[1][None]
    return np.where(touches, 0.0, -np.inf).astype(numpy_dtype(call.dtype))


@row("_contrib_AdaptiveAvgPooling2D")
def adaptive_avg_pooling(g: Builder, call: Call, x: str) -> str:
    """Mean over a grid of regions that cover the image."""
    target = list(call.out_shapes[0][2:])
    if target == [1, 1]:
        return g.GlobalAveragePool(x)
    sizes = call.shape[2:]
    call.require_sizes(sizes, NEEDS_IMAGE_SIZE)
    if all(n % w == 0 for n, w in zip(sizes, target, strict=True)):
        kernel = [n // w for n, w in zip(sizes, target, strict=True)]
        return g.AveragePool(x, kernel_shape=kernel, strides=kernel)
    rows, columns = (
        _regions(n, w).astype(numpy_dtype(call.dtype)) for n, w in zip(sizes, target, strict=True)
    )
    return g.MatMul(g.MatMul(g.array(rows), x), g.array(columns.T.copy()))


def _regions(size: int, count: int) -> np.ndarray:
    """Return a matrix that averages `size` elements to `count`."""
    matrix = np.zeros((count, size))
    for i in range(count):
        start, end = i * size // count, -(-(i + 1) * size // count)
        matrix[i, start:end] = 1 / (end - start)
    return matrix


def _batch_norm(g: Builder, call: Call, xs: tuple[str, ...], axis: int) -> list[str]:
    x, gamma, beta, mean, var = xs
    a, wide = call.attrs, call.dtypes[1]
    if a["fix_gamma"]:  # MXNet uses 1 for any gamma
        gamma = g.array(np.ones(call.shape[axis], dtype=numpy_dtype(wide)))
    order = [0, axis, *(i for i in range(1, call.ndim) if i != axis)][: call.ndim]
    moved = g.transpose(g.cast(x, call.dtype, wide), *order)
    output = g.BatchNormalization(
        moved, gamma, beta, mean, var, epsilon=a["eps"], momentum=a["momentum"]
    )
    output = g.transpose(output, *(int(i) for i in np.argsort(order)))
    output = g.cast(output, wide, call.dtype)
    if not a["output_mean_var"]:
        return [output]
    if call.op.name == "_contrib_SyncBatchNorm":  # the variance is an output
        return [output, g.Identity(mean), g.Identity(var)]
    shifted = g.Add(var, g.scalar(a["eps"], wide))
    return [output, g.Identity(mean), g.Reciprocal(g.Sqrt(shifted))]


@row(
    *("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", "_contrib_BatchNormWithReLU"),
    first_suffix=lambda call: "",
)
def batch_norm(g: Builder, call: Call, *xs: str) -> str | list[str]:
    """Normalize by the running statistics, along axis 1 if the operator has no `axis`."""
    name = call.op.name
    outputs = _batch_norm(g, call, xs, call.axis if "axis" in call.attrs else 1)
    if name != "_contrib_BatchNormWithReLU":
        return outputs if len(outputs) > 1 else outputs[0]
    return [g.Relu(outputs[0]), *outputs[1:]]


def standardize(
    g: Builder, x: str, axes: list[int], eps: float, dtype: torch.dtype
) -> tuple[str, str, str]:
    """Return the standardized value, the mean and ``sqrt(var + eps)``."""
    mean = g.reduce("ReduceMean", x, axes, True)
    distance = g.Sub(x, mean)
    variance = g.reduce("ReduceMean", g.Mul(distance, distance), axes, True)
    deviation = g.Sqrt(g.Add(variance, g.scalar(eps, dtype)))
    return g.Div(distance, deviation), mean, deviation


def _as_axis(g: Builder, x: str, axis: int, rank: int) -> str:
    return x if axis == rank - 1 else g.reshape(x, [-1, *[1] * (rank - 1 - axis)])


@row("LayerNorm")
def layer_norm(g: Builder, call: Call, x: str, gamma: str, beta: str) -> str | list[str]:
    """Normalize along one axis."""
    axis, eps = call.axis, call.attrs["eps"]
    wants_statistics = call.attrs["output_mean_var"]
    if g.opset >= 17 and axis == call.ndim - 1 and not wants_statistics:
        return g.LayerNormalization(x, gamma, beta, axis=-1, epsilon=eps)
    output, mean, deviation = standardize(g, x, [axis], eps, call.dtype)
    output = g.Mul(output, _as_axis(g, gamma, axis, call.ndim))
    output = g.Add(output, _as_axis(g, beta, axis, call.ndim))
    return [output, mean, deviation] if wants_statistics else output


@row("GroupNorm")
def group_norm(g: Builder, call: Call, x: str, gamma: str, beta: str) -> str | list[str]:
    """Normalize groups of channels; gamma and beta have one element per group."""
    groups, eps = call.attrs["num_groups"], call.attrs["eps"]
    split = g.reshape(x, [0, groups, -1])
    output, mean, deviation = standardize(g, split, [2], eps, call.dtype)
    output = g.Add(g.Mul(output, g.reshape(gamma, [-1, 1])), g.reshape(beta, [-1, 1]))
    output = g.Reshape(output, g.sizes(x, call.shape))
    if not call.attrs["output_mean_var"]:
        return output
    return [output, g.squeeze(mean, 2), g.squeeze(deviation, 2)]


@row("InstanceNorm")
def instance_norm(g: Builder, call: Call, x: str, gamma: str, beta: str) -> str:
    """Normalize each channel of each sample."""
    wide = g.unsqueeze(x, 2) if call.ndim == 2 else x
    output = g.InstanceNormalization(wide, gamma, beta, epsilon=call.attrs["eps"])
    return g.squeeze(output, 2) if call.ndim == 2 else output


@row("L2Normalization")
def l2_normalization(g: Builder, call: Call, x: str) -> str:
    """Divide by the Euclidean norm."""
    mode, rank = call.attrs["mode"], call.ndim
    eps = g.scalar(call.attrs["eps"], call.dtype)
    square = g.Mul(x, x)
    if rank > 1:
        axes = [1] if mode == "channel" else list(range(1 if mode == "instance" else 2, rank))
        square = g.reduce("ReduceSum", square, axes, True)
    return g.Div(x, g.Sqrt(g.Add(square, eps)))


@row("LRN")
def lrn(g: Builder, call: Call, x: str) -> str:
    """Divide by the energy of neighboring channels."""
    a = call.attrs
    size, alpha = a["nsize"], a["alpha"]
    if size % 2 == 0:
        size, alpha = size - 1, alpha * (size - 1) / size
    return g.LRN(x, alpha=alpha, beta=a["beta"], bias=a["knorm"], size=size)


def _parts(g: Builder, x: str, heads: int, parts: int) -> list[str]:
    """Split interleaved projections (queries, keys, values).

    Each result has the shape ``(length, batch, heads, size)``.
    """
    split = g.reshape(x, [0, 0, heads, parts, -1])
    return [g.squeeze(g.slice(split, [i], [i + 1], [3]), 3) for i in range(parts)]


def _scores(g: Builder, call: Call, queries: str, keys: str, size: int) -> str:
    """Return ``Q K^T / sqrt(size)`` as ``(batch * heads, length, length)``."""
    q = g.Transpose(queries, perm=[1, 2, 0, 3])
    k = g.Transpose(keys, perm=[1, 2, 3, 0])
    scaled = g.Mul(q, g.scalar(size**-0.5, call.dtype))
    scores = g.MatMul(scaled, k)
    shape = g.Shape(scores)
    rest = g.Slice(shape, g.ints(2), g.ints(4), g.ints(0))
    return g.Reshape(scores, g.Concat(g.ints(-1), rest, axis=0))


def _attend(g: Builder, call: Call, attention: str, values: str, heads: int, size: int) -> str:
    """Return ``(length, batch, heads * size)``."""
    weights = g.Shape(attention)
    rest = g.Slice(weights, g.ints(1), g.ints(3), g.ints(0))
    split = g.Reshape(attention, g.Concat(g.ints(-1, heads), rest, axis=0))
    output = g.MatMul(split, g.Transpose(values, perm=[1, 2, 0, 3]))
    return g.reshape(g.Transpose(output, perm=[2, 0, 1, 3]), [0, 0, heads * size])


def _heads(call: Call, parts: int) -> tuple[int, int]:
    heads = call.attrs["heads"]
    return heads, call.shape[-1] // (parts * heads)


@row("_contrib_interleaved_matmul_selfatt_qk")
def selfatt_qk(g: Builder, call: Call, qkv: str) -> str:
    """Scores of self-attention."""
    heads, size = _heads(call, 3)
    queries, keys, _ = _parts(g, qkv, heads, 3)
    return _scores(g, call, queries, keys, size)


@row("_contrib_interleaved_matmul_encdec_qk")
def encdec_qk(g: Builder, call: Call, queries: str, keys_values: str) -> str:
    """Scores of attention to an encoder."""
    heads, size = _heads(call, 1)
    keys = _parts(g, keys_values, heads, 2)[0]
    return _scores(g, call, g.reshape(queries, [0, 0, heads, -1]), keys, size)


def _values(name: str, parts: int) -> None:
    @row(name)
    def attend(g: Builder, call: Call, data: str, attention: str) -> str:
        heads, size = _heads(call, parts)
        return _attend(g, call, attention, _parts(g, data, heads, parts)[-1], heads, size)


_values("_contrib_interleaved_matmul_selfatt_valatt", 3)
_values("_contrib_interleaved_matmul_encdec_valatt", 2)
