"""Rows of pooling.

The convention ``full`` rounds sizes up. Padding by ``stride - 1`` more at the end and rounding
down is the same, and does not depend on how a runtime reads ONNX's `ceil_mode`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch

from ..builder import UNKNOWN, Builder, Call, numpy_dtype
from ..table import row
from .convolution import CHANNELS_LAST, channels_first, channels_last, per_axis

GLOBAL = {"avg": "GlobalAveragePool", "max": "GlobalMaxPool"}


class Windows(NamedTuple):
    """Where windows lie: spatial sizes (-1 unknown), kernel, stride, pads before and after."""

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
        """Return how many windows there are along each axis."""
        return [
            (n + b + a - k) // s + 1
            for n, k, s, b, a in zip(
                self.sizes, self.kernel, self.stride, self.before, self.after, strict=True
            )
        ]


def _windows(call: Call, sizes: list[int]) -> Windows:
    a = call.attrs
    rank, convention = len(a["kernel"]), a["pooling_convention"]
    kernel, stride = list(a["kernel"]), per_axis(a["stride"], 1, rank)
    pad = per_axis(a["pad"], 0, rank)
    if convention == "valid":
        return Windows(sizes, kernel, stride, pad, pad)
    if convention == "full":
        after = [p + s - 1 for p, s in zip(pad, stride, strict=True)]
        made = Windows(sizes, kernel, stride, pad, after)
        if not made.is_known:
            return made
        # Keep of the additional padding only what the last window covers.
        needed = [
            max((o - 1) * s + k - n - p, 0)
            for o, s, k, n, p in zip(made.counts(), stride, kernel, sizes, pad, strict=True)
        ]
        return made._replace(after=needed)
    if UNKNOWN in sizes:
        raise call.unsupported("with pooling_convention='same' needs the sizes as numbers.")
    after = [
        max((-(-n // s) - 1) * s + k - n - p, 0)
        for n, s, k, p in zip(sizes, stride, kernel, pad, strict=True)
    ]
    return Windows(sizes, kernel, stride, pad, after)


def _within_reach(windows: Windows) -> tuple[Windows, list[int]]:
    """Return the windows that touch data, and how many at the end do not."""
    if not windows.is_known:
        return windows, [0] * len(windows.sizes)
    after = [min(a, k - 1) for a, k in zip(windows.after, windows.kernel, strict=True)]
    made = windows._replace(after=after)
    pairs = zip(windows.counts(), made.counts(), strict=True)
    return made, [wanted - have for wanted, have in pairs]


def _completed(g: Builder, call: Call, x: str, missing: list[int], value: float) -> str:
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


def _covered(call: Call, windows: Windows, with_pad: bool) -> np.ndarray:
    """Return how many elements each window divides by, ``(1, 1, ...)``."""
    made = np.ones([1, 1], dtype=numpy_dtype(call.dtype))
    pads = per_axis(call.attrs["pad"], 0, len(windows.kernel))
    for axis, (n, k, s, before, pad, count) in enumerate(
        zip(
            windows.sizes,
            windows.kernel,
            windows.stride,
            windows.before,
            pads,
            windows.counts(),
            strict=True,
        )
    ):
        starts = np.arange(count) * s - before
        low, high = (-pad, n + pad) if with_pad else (0, n)
        length = np.minimum(starts + k, high) - np.maximum(starts, low)
        line = np.maximum(length, 0).reshape([1, 1, *[1] * axis, count])
        made = made[..., None] * line.astype(made.dtype)
    return np.maximum(made, 1)


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
        return g.Div(total, g.array(_covered(call, windows, with_pad)))
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
    return g.add(GLOBAL[kind], x)


def _power(g: Builder, call: Call, x: str, p: int) -> str:
    if p == 1:
        return x
    square = g.Mul(x, x)
    return square if p == 2 else g.Mul(square, x)


def _root(g: Builder, call: Call, x: str, p: int) -> str:
    if p == 1:
        return x
    if p == 2:
        return g.Sqrt(x)
    return g.Mul(g.Sign(x), g.Pow(g.Abs(x), g.scalar(1 / 3, call.dtype)))


def _pool(g: Builder, call: Call, x: str, kind: str, sizes: list[int]) -> str:
    if call.attrs["global_pool"]:
        return _pool_all(g, call, x, kind, call.ndim)
    windows, missing = _within_reach(_windows(call, sizes))
    if kind == "max":
        lowest = torch.finfo(call.dtype).min
        return _completed(g, call, _max(g, call, x, windows), missing, lowest)
    if kind == "sum":
        made = _sum(g, call.dtype, x, windows)
    else:
        made = _mean(g, call, x, windows, call.attrs["count_include_pad"] is not False)
    return _completed(g, call, made, missing, 0)


@row("Pooling")
def pooling(g: Builder, call: Call, x: str) -> str:
    """Maximum, mean, sum or p-norm over windows, or over everything."""
    kind, is_last = call.attrs["pool_type"], call.attrs["layout"] in CHANNELS_LAST
    sizes = list(call.shape[1:-1] if is_last else call.shape[2:])
    if is_last:
        x = channels_first(g, x, call.ndim)
    if kind == "lp":
        p = call.attrs["p_value"]
        made = _root(g, call, _pool(g, call, _power(g, call, x, p), "sum", sizes), p)
    else:
        made = _pool(g, call, x, kind, sizes)
    return channels_last(g, made, call.ndim) if is_last else made


@row("Pooling_v1")
def pooling_v1(g: Builder, call: Call, x: str) -> str:
    """Pool as MXNet's first version did: padding is zeros, a mean divides by the kernel."""
    kind = call.attrs["pool_type"]
    if call.attrs["global_pool"]:
        return _pool_all(g, call, x, kind, 4)
    windows, missing = _within_reach(_windows(call, list(call.shape[2:])))
    if kind == "max":
        made = _max(g, call, x, windows)
        if any(windows.before):
            made = g.Max(made, g.array(_zero_padding(call, windows)))
        return _completed(g, call, made, missing, -math.inf)
    total = _completed(g, call, _sum(g, call.dtype, x, windows), missing, 0)
    size = g.scalar(math.prod(windows.kernel), call.dtype)
    return g.Div(total, size) if kind == "avg" else total


def _zero_padding(call: Call, windows: Windows) -> np.ndarray:
    """Return 0 for windows that reach into the padding, -inf for others."""
    if not windows.is_known:
        raise call.unsupported("of padded maxima needs height and width as numbers.")
    lines = []
    for n, k, s, b, count in zip(
        windows.sizes, windows.kernel, windows.stride, windows.before, windows.counts(), strict=True
    ):
        starts = np.arange(count) * s - b
        lines.append((b > 0) & ((starts < 0) | (starts + k > n)))
    touches = lines[0][:, None] | lines[1][None]
    return np.where(touches, 0.0, -np.inf).astype(numpy_dtype(call.dtype))


@row("_contrib_AdaptiveAvgPooling2D")
def adaptive_avg_pooling(g: Builder, call: Call, x: str) -> str:
    """Mean over a grid of regions that cover the image."""
    wanted = list(call.out_shapes[0][2:])
    if wanted == [1, 1]:
        return g.GlobalAveragePool(x)
    sizes = call.shape[2:]
    if UNKNOWN in sizes:
        raise call.unsupported("needs height and width as numbers.")
    if all(n % w == 0 for n, w in zip(sizes, wanted, strict=True)):
        kernel = [n // w for n, w in zip(sizes, wanted, strict=True)]
        return g.AveragePool(x, kernel_shape=kernel, strides=kernel)
    rows, columns = (
        _regions(n, w).astype(numpy_dtype(call.dtype)) for n, w in zip(sizes, wanted, strict=True)
    )
    return g.MatMul(g.MatMul(g.array(rows), x), g.array(columns.T.copy()))


def _regions(size: int, count: int) -> np.ndarray:
    """Return a matrix that averages `size` elements to `count`."""
    made = np.zeros((count, size))
    for i in range(count):
        start, end = i * size // count, -(-(i + 1) * size // count)
        made[i, start:end] = 1 / (end - start)
    return made
