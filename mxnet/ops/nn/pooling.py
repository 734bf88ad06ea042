"""Pooling: maximum, mean, sum or p-norm over windows or all positions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ...error import InvalidValue, MXNetError, ShapeError
from ..attributes import Shape as ShapeAttribute
from ..declare import op
from ..shapes import UNKNOWN, Shape
from .convolution import (
    CHANNELS_LAST,
    channels_first,
    channels_last,
    check_data,
    shape_channels_first,
    shape_channels_last,
)

PoolType = Literal["avg", "lp", "max", "sum"]
Convention = Literal["full", "same", "valid"]
PoolLayout = Literal["NCDHW", "NCHW", "NCW", "NDHWC", "NHWC", "NWC"]
MAX_POOLS = {2: torch.max_pool2d, 3: torch.max_pool3d}
AVG_POOLS = {2: F.avg_pool2d, 3: F.avg_pool3d}


def _pooled_size(size: int, kernel: int, stride: int, pad: int, convention: str) -> int:
    if size == UNKNOWN:
        return UNKNOWN
    if convention == "same":
        return -(-size // stride)
    span = size + 2 * pad - kernel
    if span < 0:
        raise ShapeError(f"Pooling: kernel size ({kernel}) exceeds input ({size} padded by {pad})")
    return (span if convention == "valid" else span + stride - 1) // stride + 1


def _along(kernel: Shape, name: str, value: Shape, default: int) -> Shape:
    """Return a stride or pad for every axis of the kernel; extra values are ignored."""
    if value and len(value) < len(kernel):
        raise ShapeError(
            f"Pooling: {name} {value} has {len(value)} values, but kernel {kernel} needs "
            f"{len(kernel)}."
        )
    value = value[: len(kernel)] or (default,) * len(kernel)
    if min(kernel, default=1) < 1 or min(value, default=default) < default:
        smallest = "at least 1" if default else "not negative"
        raise ShapeError(
            f"Pooling: kernel {kernel} is at least 1 and {name} {value} {smallest} on every axis."
        )
    return value


@lru_cache(maxsize=1024)
def _plan(kernel: Shape, stride: Shape, pad: Shape, flat: bool) -> tuple[Shape, Shape, Shape, bool]:
    """Return kernel, stride and pad for every axis, and whether torch supports them.

    1-D pooling runs as 2-D pooling with a leading axis of size 1. torch's padding is at most half a
    kernel.
    """
    stride, pad = _along(kernel, "stride", stride, 1), _along(kernel, "pad", pad, 0)
    if flat:
        kernel, stride, pad = (1, *kernel), (1, *stride), (0, *pad)
    fits = all(2 * p <= k for p, k in zip(pad, kernel, strict=True))
    return kernel, stride, pad, fits


def _slide(
    data: Tensor, kind: str, kernel: Shape, stride: Shape, pad: Shape, ceil: bool, with_pad: bool
) -> Tensor:
    if kind == "max":
        return MAX_POOLS[len(kernel)](data, kernel, stride, pad, 1, ceil)
    pool: Callable[..., Tensor] = AVG_POOLS[len(kernel)]
    dtype = data.dtype
    if dtype is torch.float16 and len(kernel) == 3:
        data = data.float()  # torch has no such kernel for the CPU
    options = (with_pad,) if kind == "avg" else (True, 1)
    return pool(data, kernel, stride, pad, ceil, *options).to(dtype)


def _padding(before: list[int], after: list[int]) -> list[int]:
    """Return pads in torch's order: pairs from the last axis to the first."""
    return [n for pair in zip(reversed(before), reversed(after), strict=True) for n in pair]


def _slide_over_padded(
    data: Tensor, kind: str, kernel: Shape, stride: Shape, pad: Shape, sizes: Shape, with_pad: bool
) -> Tensor:
    """Pool with explicit padding if torch's padding is not enough."""
    spatial = data.shape[2:]
    after = [
        max((o - 1) * s + k - n - p, 0)
        for o, s, k, n, p in zip(sizes, stride, kernel, spatial, pad, strict=True)
    ]
    around = _padding(list(pad), after)
    none = (0,) * len(kernel)
    if kind == "max":
        padded = F.pad(data, around, value=torch.finfo(data.dtype).min)
        return _slide(padded, kind, kernel, stride, none, False, True)
    total = _slide(F.pad(data, around), "sum", kernel, stride, none, False, True)
    if kind == "sum":
        return total
    counted = data.new_ones((1, 1, *spatial))
    if with_pad:  # `pad` is included in averages, but not the extension of the last window
        counted = F.pad(counted, _padding(list(pad), list(pad)), value=1.0)
        missing = [a - p for a, p in zip(after, pad, strict=True)]
        counted = F.pad(counted, _padding([0] * len(pad), missing))
    else:
        counted = F.pad(counted, around)
    return total / _slide(counted, "sum", kernel, stride, none, False, True).clamp_min(1)


def _pool_windows(
    data: Tensor,
    kind: str,
    plan: tuple[Shape, Shape, Shape, bool],
    convention: str,
    with_pad: bool,
    empty_max: float | None = None,
) -> Tensor:
    kernel, stride, pad, fits = plan
    if kind != "max" and len(kernel) == 3:  # torch needs images not smaller than the kernel
        fits = fits and all(n >= k for n, k in zip(data.shape[2:], kernel, strict=True))
    if convention == "valid" and fits:
        return _slide(data, kind, kernel, stride, pad, False, with_pad)
    sizes = tuple(
        _pooled_size(n, k, s, p, convention)
        for n, k, s, p in zip(data.shape[2:], kernel, stride, pad, strict=True)
    )
    if convention == "same" or not fits:
        return _slide_over_padded(data, kind, kernel, stride, pad, sizes, with_pad)
    out = _slide(data, kind, kernel, stride, pad, True, with_pad)
    # torch drops a last window that begins in the padding; MXNet keeps it, as an empty window.
    missing = [target - n for target, n in zip(sizes, out.shape[2:], strict=True)]
    if any(missing):
        lowest = torch.finfo(data.dtype).min if empty_max is None else empty_max
        empty = lowest if kind == "max" else 0.0
        out = F.pad(out, _padding([0] * len(missing), missing), value=empty)
    return out


def _pool_all(data: Tensor, kind: str) -> Tensor:
    axes = tuple(range(2, data.ndim))
    if kind == "avg":
        return data.mean(axes, keepdim=True)
    if kind == "sum":
        return data.sum(axes, keepdim=True)
    # No amax: the gradient of the maximum must go to the first of equal values.
    return _slide(data, "max", data.shape[2:], (1,) * len(axes), (0,) * len(axes), False, True)


def _power(data: Tensor, p: int | None) -> Tensor:
    if p not in (1, 2, 3):
        raise MXNetError(f"Pooling: lp pooling needs p_value 1, 2 or 3, got {p}.")
    return data if p == 1 else data * data if p == 2 else data * data * data


def _root(total: Tensor, p: int) -> Tensor:
    """Return the p-th root, with a gradient of 0 for windows of zeros."""
    if p == 1:
        return total
    empty = total == 0
    safe = total.masked_fill(empty, 1)
    root = safe.sqrt() if p == 2 else safe.abs().pow(1 / 3) * safe.sign()
    return root.masked_fill(empty, 0)


def _check_rank(shape: Shape, kernel: Shape, global_pool: bool) -> None:
    """Raise if the spatial axes of the data and the kernel differ in number."""
    if not global_pool:
        check_data("Pooling", shape, kernel)
    elif not 3 <= len(shape) <= 5:
        raise ShapeError(
            "Pooling: Input data should be 3D, 4D or 5D (batch, channel and spatial axes), but its "
            f"shape is {tuple(shape)}."
        )


def _counts_index(attrs: dict) -> int:
    """Return the number of outputs in MXNet: max pooling has a hidden index with channels first."""
    return 2 if attrs["pool_type"] == "max" and attrs["layout"] not in CHANNELS_LAST else 1


@op(
    "Pooling",
    "_npx_pooling",
    outputs=("output",),
    total=_counts_index,
    bfloat16="any",
    keeps_finite=True,
    keeps_layout=True,
    names_single_input=True,
)
def pooling(
    data: Tensor,
    *,
    kernel: ShapeAttribute = (),
    pool_type: PoolType = "max",
    global_pool: bool = False,
    cudnn_off: bool = False,
    pooling_convention: Convention = "valid",
    stride: ShapeAttribute = (),
    pad: ShapeAttribute = (),
    p_value: int | None = None,
    count_include_pad: bool | None = None,
    layout: PoolLayout | None = None,
) -> Tensor:
    """Pool windows of the data.

    The convention ``valid`` rounds the output size down, ``full`` up, ``same`` gives
    ``ceil(size / stride)``.

    Parameters
    ----------
    data
        Batch of shape ``(batch, channels, width)``, ``(.., height, width)`` or ``(.., depth,
        height, width)``.
    kernel
        Size of the window along each spatial axis; not needed with ``global_pool=True``.
    pool_type
        Type of pooling: ``max``, ``avg``, ``sum``, or the ``lp`` norm.
    global_pool
        Whether to pool over all positions, ignoring kernel, stride and pad.
    pooling_convention
        Rounding of the output size: ``valid`` down, ``full`` up, ``same`` size / stride rounded up
        (one spatial axis only).
    p_value
        Exponent of ``lp`` pooling.
    count_include_pad
        Whether averages include the padding; True by default.

    >>> mx.nd.Pooling(mx.nd.array([[[1, 3, 2, 5]]]), kernel=(2,), stride=(2,)).asnumpy()
    array([[[3., 5.]]], dtype=float32)
    """
    _check_rank(data.shape, kernel, global_pool)
    if pooling_convention == "same" and data.ndim != 3:
        raise ShapeError(
            f"Pooling: pooling_convention='same' takes data of 3 axes (batch, channel, x), got "
            f"{list(data.shape)}."
        )
    if pooling_convention == "same" and any(pad):
        raise InvalidValue(
            f"Pooling: pooling_convention='same' pads by itself; pad must be 0, but is {pad}."
        )
    last = layout in CHANNELS_LAST
    if last:
        data = channels_first(data)
    flat = data.ndim == 3
    if flat:
        data = data.unsqueeze(2)
    no_channels = not data.shape[1]
    if no_channels:  # torch needs at least one
        data = F.pad(data, (0, 0) * (data.ndim - 2) + (0, 1))
    kind = "sum" if pool_type == "lp" else pool_type
    dtype = data.dtype
    if pool_type == "lp":
        data = _power(data.float() if dtype is torch.float16 else data, p_value)
    if global_pool:
        out = _pool_all(data, kind)
    else:
        with_pad = count_include_pad is not False
        plan = _plan(kernel, stride, pad, flat)
        out = _pool_windows(data, kind, plan, pooling_convention, with_pad)
    if pool_type == "lp":
        assert p_value is not None
        out = _root(out, p_value).to(dtype)
    if no_channels:
        out = out[:, :0]
    if flat:
        out = out.squeeze(2)
    return channels_last(out) if last else out


@pooling.infer_outputs
def pooling_output(
    data: Shape | None,
    *,
    kernel: Shape,
    global_pool: bool,
    pooling_convention: str,
    stride: Shape,
    pad: Shape,
    layout: str | None = None,
    **_: object,
) -> Shape | None:
    """Infer the number of windows."""
    if data is None:
        return None
    _check_rank(data, kernel, global_pool)
    last = layout in CHANNELS_LAST
    if last:
        data = shape_channels_first(data)
    if global_pool:
        out = (*data[:2], *(1,) * (len(data) - 2))
    else:
        stride, pad = _along(kernel, "stride", stride, 1), _along(kernel, "pad", pad, 0)
        conventions = (pooling_convention,) * len(kernel)
        out = (*data[:2], *map(_pooled_size, data[2:], kernel, stride, pad, conventions))
    return shape_channels_last(out) if last else out


@op("Pooling_v1", names_output=True, names_single_input=True)
def pooling_v1(
    data: Tensor,
    *,
    kernel: ShapeAttribute = (),
    pool_type: Literal["avg", "max", "sum"] = "max",
    global_pool: bool = False,
    pooling_convention: Literal["full", "valid"] = "valid",
    stride: ShapeAttribute = (),
    pad: ShapeAttribute = (),
) -> Tensor:
    """Old version of `Pooling`: pads with zeros for all types.

    Averages divide by the kernel size. The gradient of a maximum goes to the first of equal values
    (in MXNet to all of them).

    Parameters
    ----------
    kernel
        Size of the window along each spatial axis; not needed with ``global_pool=True``.
    pool_type
        Type of pooling: ``max``, ``avg`` or ``sum``.
    global_pool
        Whether to pool over all positions, ignoring kernel, stride and pad.
    pooling_convention
        Rounding of the output size: ``valid`` down, ``full`` up.

    >>> mx.nd.Pooling_v1(mx.nd.array([[[[-1, -2], [-3, -4]]]]), kernel=(2, 2), pad=(1, 1),
    ...                  stride=(2, 2)).asnumpy()
    array([[[[0., 0.],
             [0., 0.]]]], dtype=float32)
    """
    if data.ndim != 4:
        check_data("Pooling_v1", data.shape, (1, 1))
    if global_pool:
        return _pool_all(data, pool_type)
    check_data("Pooling_v1", data.shape, kernel)
    pad = _along(kernel, "pad", pad, 0)
    if any(pad):
        data = F.pad(data, _padding(list(pad), list(pad)))
    kind = "max" if pool_type == "max" else "sum"
    plan = _plan(kernel, stride, (), False)
    out = _pool_windows(data, kind, plan, pooling_convention, True, -math.inf)
    return out / math.prod(kernel) if pool_type == "avg" else out


pooling_v1.infer_outputs(pooling_output)
