"""Import rows of convolution and pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions import F
from ..table import imports
from ..value import OnnxNode, Value

LOWEST = float(np.finfo(np.float32).min)


def window(node: OnnxNode, x: Value, kernel: list[int], *, transposed: bool = False) -> dict:
    """Return stride, dilation and pads (before, after) of every spatial axis."""
    rank = len(kernel)
    stride = node.get("strides") or [1] * rank
    dilate = node.get("dilations") or [1] * rank
    pads = node.get("pads") or [0] * (2 * rank)
    before, after = list(pads[:rank]), list(pads[rank:])
    auto = node.get("auto_pad", "NOTSET")
    if auto.startswith("SAME") and not transposed:
        sizes = x.sizes[2:]
        for i in range(rank):
            reach = (kernel[i] - 1) * dilate[i] + 1
            total = max((-(-sizes[i] // stride[i]) - 1) * stride[i] + reach - sizes[i], 0)
            small, large = total // 2, total - total // 2
            before[i], after[i] = (small, large) if auto == "SAME_UPPER" else (large, small)
    elif auto == "VALID":
        before, after = [0] * rank, [0] * rank
    return {"stride": stride, "dilate": dilate, "before": before, "after": after}


def padded(x: Any, before: list[int], after: list[int], value: float = 0.0) -> Any:
    """Pad the spatial axes of a symbol with a constant, on 3, 4 or 5 axes."""
    if not any(before) and not any(after):
        return x
    if any(n < 0 for n in (*before, *after)):
        raise ValueError("negative pads")
    widths = [0, 0, 0, 0]
    for b, a in zip(before, after, strict=True):
        widths += [b, a]
    if len(before) == 1:  # MXNet pads images and volumes
        wide = F.expand_dims(x, axis=2)
        made = F.pad(
            wide, mode="constant", pad_width=(0, 0, 0, 0, 0, 0, *widths[4:]), constant_value=value
        )
        return F.squeeze(made, axis=2)
    return F.pad(x, mode="constant", pad_width=tuple(widths), constant_value=value)


@imports("Conv")
def convolution(node: OnnxNode, x: Value, w: Value, b: Value | None = None) -> Any:
    """Convolution; uneven pads are an operator of their own."""
    kernel = list(w.sizes[2:])
    where = window(node, x, kernel)
    symbol, pad = x.symbol, where["before"]
    if where["before"] != where["after"]:
        symbol, pad = padded(symbol, where["before"], where["after"]), [0] * len(kernel)
    inputs = [symbol, w.symbol] + ([b.symbol] if b is not None else [])
    return F.Convolution(
        *inputs,
        kernel=tuple(kernel),
        stride=tuple(where["stride"]),
        dilate=tuple(where["dilate"]),
        pad=tuple(pad),
        num_filter=w.sizes[0],
        num_group=node.get("group", 1),
        no_bias=b is None,
        name=node.name,
    )


@imports("ConvTranspose")
def deconvolution(node: OnnxNode, x: Value, w: Value, b: Value | None = None) -> Any:
    """Transposed convolution; uneven pads are cut off afterward."""
    kernel, group = list(w.sizes[2:]), node.get("group", 1)
    where = window(node, x, kernel, transposed=True)
    extra = list(node.get("output_padding") or [0] * len(kernel))
    before, after = _transposed_pads(node, x, kernel, where, extra)
    inputs = [x.symbol, w.symbol] + ([b.symbol] if b is not None else [])
    is_even = before == after and all(
        e < max(s, 1) for e, s in zip(extra, where["stride"], strict=True)
    )
    options = {
        "kernel": tuple(kernel),
        "stride": tuple(where["stride"]),
        "dilate": tuple(where["dilate"]),
        "num_filter": w.sizes[1] * group,
        "num_group": group,
        "no_bias": b is None,
    }
    if is_even and min(before) >= 0:
        adj = tuple(extra) if any(extra) else ()
        return F.Deconvolution(*inputs, pad=tuple(before), adj=adj, name=node.name, **options)
    # A bias is added at the end: what is cut off has it too, what is added has not.
    options["no_bias"] = True
    made = F.Deconvolution(*inputs[:2], **options)
    grown = [max(e - a, 0) for e, a in zip(extra, after, strict=True)]
    made = padded(made, [0] * len(kernel), grown)
    for axis, (low, high, e) in enumerate(zip(before, after, extra, strict=True), 2):
        end = -(high - e) if high > e else None
        made = F.slice_axis(made, axis=axis, begin=low, end=end)
    if b is None:
        return made
    return F.broadcast_add(made, F.reshape(b.symbol, shape=(1, -1) + (1,) * len(kernel)))


def _transposed_pads(
    node: OnnxNode, x: Value, kernel: list[int], where: dict, extra: list[int]
) -> tuple[list[int], list[int]]:
    wanted, auto = node.get("output_shape"), node.get("auto_pad", "NOTSET")
    if not wanted and not auto.startswith("SAME"):
        return where["before"], where["after"]
    sizes = x.sizes[2:]
    if not wanted:
        wanted = [n * s for n, s in zip(sizes, where["stride"], strict=True)]
    before, after = [], []
    for i, target in enumerate(wanted[-len(kernel) :]):
        full = where["stride"][i] * (sizes[i] - 1) + extra[i]
        full += (kernel[i] - 1) * where["dilate"][i] + 1
        total = full - target
        small = total // 2
        is_upper = auto != "SAME_LOWER"
        before.append(small if is_upper else total - small)
        after.append(total - small if is_upper else small)
        if total < 0:
            before[-1], after[-1], extra[i] = 0, 0, extra[i] - total
    return before, after


def _pooled_sizes(node: OnnxNode, x: Value, kernel: list[int], where: dict) -> list[int]:
    """Return how much padding at the end `ceil_mode` adds."""
    if not node.get("ceil_mode", 0):
        return list(where["after"])
    after = []
    for i, n in enumerate(x.sizes[2:]):
        reach = (kernel[i] - 1) * where["dilate"][i] + 1
        span = n + where["before"][i] + where["after"][i] - reach
        count = -(-span // where["stride"][i]) + 1
        if (count - 1) * where["stride"][i] >= n + where["before"][i]:
            count -= 1  # a window may not start beyond the data
        needed = (count - 1) * where["stride"][i] + reach - n - where["before"][i]
        after.append(max(needed, 0))
    return after


def _window_attrs(kernel: list[int], where: dict, after: list[int]) -> dict[str, tuple[int, ...]]:
    return {
        "kernel": tuple(kernel),
        "stride": tuple(where["stride"]),
        "dilate": tuple(where["dilate"]),
        "pads": (*where["before"], *after),
    }


@imports("MaxUnpool")
def max_unpool(node: OnnxNode, x: Value, indices: Value, shape: Value | None = None) -> Any:
    """Put elements back where a pooling took them from."""
    kernel = list(node.get("kernel_shape"))
    where = window(node, x, kernel)
    sizes = [
        (n - 1) * s + k - b - a
        for n, s, k, b, a in zip(
            x.sizes[2:], where["stride"], kernel, where["before"], where["after"], strict=True
        )
    ]
    small = (*x.sizes[:2], *sizes)
    whole = small if shape is None else tuple(int(n) for n in node.constant(shape, "shape"))
    made = F._internal._onnx_max_unpool(x.symbol, indices.symbol, shape=small, name=node.name)
    pads = [n for a, b in zip(small, whole, strict=True) for n in (0, b - a)]
    if not any(pads):
        return made
    return F.pad(made, mode="constant", pad_width=tuple(pads), constant_value=0)


@imports("MaxPool")
def max_pool(node: OnnxNode, x: Value) -> Any:
    """Maximum over windows."""
    kernel = list(node.get("kernel_shape"))
    where = window(node, x, kernel)
    after = _pooled_sizes(node, x, kernel, where)
    if len([n for n in node.output_names if n]) > 1 or any(d != 1 for d in where["dilate"]):
        both = F._internal._onnx_max_pool(
            x.symbol,
            **_window_attrs(kernel, where, after),
            storage_order=node.get("storage_order", 0),
            name=node.name,
        )
        return [both[0], both[1]]
    symbol, pad = x.symbol, where["before"]
    if not x.is_float:
        symbol = F.cast(symbol, dtype="float32")
    if where["before"] != after:
        symbol, pad = padded(symbol, where["before"], after, LOWEST), [0] * len(kernel)
    made = F.Pooling(
        symbol,
        kernel=tuple(kernel),
        stride=tuple(where["stride"]),
        pad=tuple(pad),
        pool_type="max",
        name=node.name,
    )
    return made if x.is_float else F.cast(made, dtype=x.dtype.name)


@imports("AveragePool")
def average_pool(node: OnnxNode, x: Value) -> Any:
    """Mean over windows, with or without the padding."""
    kernel = list(node.get("kernel_shape"))
    where = window(node, x, kernel)
    with_pad = bool(node.get("count_include_pad", 0))
    after = _pooled_sizes(node, x, kernel, where)
    if any(d != 1 for d in where["dilate"]):
        return F._internal._onnx_reduce_pool(
            x.symbol,
            **_window_attrs(kernel, where, where["after"]),
            extra=tuple(a - b for a, b in zip(after, where["after"], strict=True)),
            count_include_pad=with_pad,
            name=node.name,
        )
    options = {"kernel": tuple(kernel), "stride": tuple(where["stride"])}
    if where["before"] == after:
        return F.Pooling(
            x.symbol,
            pad=tuple(after),
            pool_type="avg",
            count_include_pad=with_pad,
            name=node.name,
            **options,
        )
    symbol = padded(x.symbol, where["before"], after)
    total = F.Pooling(symbol, pool_type="sum", **options)
    counts = _counts(x.sizes[2:], kernel, where, after, with_pad)
    divisor = node.importer.constant(counts, f"{node.name}_counts")
    return F.broadcast_div(total, divisor, name=node.name)


def _counts(
    sizes: tuple[int, ...], kernel: list[int], where: dict, after: list[int], with_pad: bool
) -> np.ndarray:
    """Return the number of elements that each window averages."""
    made = np.ones((1, 1), np.float32)
    for i, n in enumerate(sizes):
        low = where["before"][i]
        count = (n + low + after[i] - kernel[i]) // where["stride"][i] + 1
        starts = np.arange(count) * where["stride"][i] - low
        edges = (-low, n + where["after"][i]) if with_pad else (0, n)
        length = np.minimum(starts + kernel[i], edges[1]) - np.maximum(starts, edges[0])
        line = np.maximum(length, 1).astype(np.float32)
        made = made[..., None] * line.reshape((1, 1) + (1,) * i + (count,))
    return made


@imports("LpPool")
def lp_pool(node: OnnxNode, x: Value) -> Any:
    """p-norm over windows."""
    kernel, p = list(node.get("kernel_shape")), node.get("p", 2)
    where = window(node, x, kernel)
    after = _pooled_sizes(node, x, kernel, where)
    if any(d != 1 for d in where["dilate"]):
        return F._internal._onnx_reduce_pool(
            x.symbol, **_window_attrs(kernel, where, after), kind="lp", p=p, name=node.name
        )
    power = F.abs(x.symbol) if p == 1 else F.abs(x.symbol) ** p
    total = F.Pooling(
        padded(power, where["before"], after),
        kernel=tuple(kernel),
        stride=tuple(where["stride"]),
        pool_type="sum",
    )
    return total if p == 1 else total ** (1 / p)


@imports("GlobalAveragePool")
def global_average_pool(node: OnnxNode, x: Value) -> Any:
    """Mean over all spatial axes."""
    return F.Pooling(
        x.symbol, global_pool=True, kernel=(1,) * (x.rank - 2), pool_type="avg", name=node.name
    )


@imports("GlobalMaxPool")
def global_max_pool(node: OnnxNode, x: Value) -> Any:
    """Maximum over all spatial axes."""
    return F.Pooling(
        x.symbol, global_pool=True, kernel=(1,) * (x.rank - 2), pool_type="max", name=node.name
    )


@imports("GlobalLpPool")
def global_lp_pool(node: OnnxNode, x: Value) -> Any:
    """p-norm over all spatial axes."""
    p = node.get("p", 2)
    total = F.sum(F.abs(x.symbol) ** p, axis=tuple(range(2, x.rank)), keepdims=True)
    return total ** (1 / p)


@imports("MaxRoiPool")
def max_roi_pool(node: OnnxNode, x: Value, rois: Value) -> Any:
    """Maximum over bins of regions."""
    return F.ROIPooling(
        x.symbol,
        rois.symbol,
        pooled_size=tuple(node.get("pooled_shape")),
        spatial_scale=node.get("spatial_scale", 1.0),
        name=node.name,
    )
