"""Import rows of layers: products, attention, convolution, pooling and normalization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .....base import is_np_shape
from ..value import F, OnnxNode, Value, as_scalar, direct, imports, internal, with_rank

direct("InstanceNormalization", F.InstanceNorm, eps=("epsilon", 1e-5))
direct("MaxRoiPool", F.ROIPooling, pooled_size=("pooled_shape", ()), spatial_scale=1.0)


@imports("Gemm")
def gemm(node: OnnxNode, a: Value, b: Value, c: Value | None = None) -> Any:
    """``alpha A B + beta C``; a dense layer where it is one."""
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    turn_a, turn_b = node.flag("transA"), node.flag("transB")
    is_plain = alpha == 1 and (beta == 1 or c is None) and not turn_a and turn_b
    width = None if b.shape is None else b.shape[0]
    if is_plain and width is not None and (c is None or c.shape == (width,)):
        inputs = [v.symbol for v in (a, b, c) if v is not None]
        options = {"no_bias": True} if c is None else {}
        return F.FullyConnected(*inputs, num_hidden=width, **options, name=node.name)
    product = F.dot(a.symbol, b.symbol, transpose_a=turn_a, transpose_b=turn_b)
    product = product if alpha == 1 else product * alpha
    if c is None:
        return product
    shift = c.symbol if beta == 1 else c.symbol * beta
    if c.shape == ():
        shift = F.reshape(shift, shape=(1, 1))
    return F.broadcast_add(product, shift, name=node.name)


@imports("FC")
def fully_connected(node: OnnxNode, x: Value, w: Value, b: Value) -> Any:
    """Caffe2's dense layer, in early files."""
    return F.FullyConnected(
        x.symbol, w.symbol, b.symbol, num_hidden=w.sizes[0], flatten=True, name=node.name
    )


@imports("MatMul")
def matmul(node: OnnxNode, a: Value, b: Value) -> Any:
    """Matrix product as NumPy defines it."""
    if a.shape is None or b.shape is None:
        return internal._npi_matmul(a.symbol, b.symbol, name=node.name)
    return multiply(a.symbol, b.symbol, a.shape, b.shape, node.name)


def multiply(a: Any, b: Any, left: Any, right: Any, name: str | None = None) -> Any:
    """Return the product of stacks of matrices; axes before the last two are broadcast."""
    if len(left) == 1 and len(right) == 1 and is_np_shape():
        return F.reshape(F.dot(a, b), shape=(), name=name)
    if len(right) <= 2:  # one matrix for all: the last axis is summed
        return F.dot(a, b, name=name)
    if len(left) == 1:
        product = multiply(F.reshape(a, shape=(1, -1)), b, (1, left[0]), right)
        return F.squeeze(product, axis=len(right) - 2, name=name)
    if left[:-2] == right[:-2] and None not in left[1:-2]:
        return F.batch_dot(a, b, name=name)
    if None in left[:-2] or None in right[:-2]:
        return internal._npi_matmul(a, b, name=name)
    rank = max(len(left), len(right))
    front = np.broadcast_shapes(left[:-2], right[:-2])
    wide = [
        F.broadcast_to(with_rank(x, len(s), rank), shape=(*front, *s[-2:]))
        for x, s in ((a, left), (b, right))
    ]
    return F.batch_dot(*wide, name=name)


@imports("Det")
def det(node: OnnxNode, x: Value) -> Any:
    """Determinants."""
    output = F.linalg.det(x.symbol)
    return F.reshape(output, shape=()) if x.rank == 2 and is_np_shape() else output


@imports("Einsum")
def einsum(node: OnnxNode, *values: Value) -> Any:
    """Import Einsum; one or two operands become matrix products."""
    equation = node.get("equation").replace(" ", "")
    if "." in equation:
        return _general_einsum(node, equation, values)
    terms, _, out = equation.partition("->")
    parts = terms.split(",")
    if "->" not in equation:
        joined = "".join(parts)
        out = "".join(sorted(c for c in set(joined) if joined.count(c) == 1))
    if any(len(set(p)) != len(p) for p in parts) or len(parts) > 2:
        return _general_einsum(node, equation, values)
    if len(parts) == 1:
        return _reduce_to(values[0].symbol, parts[0], out)
    return _pair(values, parts, out)


def _general_einsum(node: OnnxNode, equation: str, values: tuple[Value, ...]) -> Any:
    symbols = [v.symbol for v in values]
    return internal._npi_einsum(*symbols, subscripts=equation, name=node.name)


def _reduce_to(x: Any, letters: str, out: str) -> Any:
    gone = tuple(i for i, c in enumerate(letters) if c not in out)
    if gone:
        x = F.sum(x, axis=gone)
        letters = "".join(c for c in letters if c in out)
    return F.transpose(x, axes=[letters.index(c) for c in out]) if letters != out else x


def _pair(values: tuple[Value, ...], parts: list[str], out: str) -> Any:
    """Move shared letters to the front and summed ones together, then multiply as matrices."""
    (a, b), (left, right) = values, parts
    sizes = dict(zip(left + right, (*a.sizes, *b.sizes), strict=True))
    rest_a = "".join(c for c in left if c in right or c in out)
    rest_b = "".join(c for c in right if c in left or c in out)
    x, y = _reduce_to(a.symbol, left, rest_a), _reduce_to(b.symbol, right, rest_b)
    left, right = rest_a, rest_b
    batch = "".join(c for c in left if c in right and c in out)
    summed = "".join(c for c in left if c in right and c not in out)
    rows = "".join(c for c in left if c not in right)
    columns = "".join(c for c in right if c not in left)

    def group(z: Any, letters: str, *groups: str) -> Any:
        order = [letters.index(c) for c in "".join(groups)]
        moved = F.transpose(z, axes=order)
        return F.reshape(moved, shape=tuple(math.prod(sizes[c] for c in g) for g in groups))

    product = F.batch_dot(
        group(x, left, batch, rows, summed), group(y, right, batch, summed, columns)
    )
    letters = batch + rows + columns
    if not letters:
        return as_scalar(product)
    split = F.reshape(product, shape=tuple(sizes[c] for c in letters))
    return F.transpose(split, axes=[letters.index(c) for c in out])


SOFTMAX_TYPES = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}


@imports("Attention")
def attention(node: OnnxNode, q: Value, k: Value, v: Value, *rest: Value | None) -> Any:
    """Scaled dot-product attention, with masks, caches, windows and groups of heads."""
    mask, past_key, past_value, lengths = [*rest, *[None] * 4][:4]
    optional = {"mask": mask, "past_key": past_key, "past_value": past_value, "lengths": lengths}
    used = {name: value.symbol for name, value in optional.items() if value is not None}
    count = max(i for i, name in enumerate(node.output_names, 1) if name)
    precision = node.get("softmax_precision")
    mode = node.get("qk_matmul_output_mode", 0)
    outputs = internal._onnx_attention(
        *(x.symbol for x in (q, k, v)),
        **used,
        given=",".join(used),
        num_outputs=count,
        q_num_heads=node.get("q_num_heads", 0),
        kv_num_heads=node.get("kv_num_heads", 0),
        scale=node.get("scale"),
        is_causal=node.flag("is_causal"),
        softcap=node.get("softcap", 0.0),
        softmax_dtype=SOFTMAX_TYPES.get(precision),
        scores_mode=mode,
        left_window=node.get("left_window_size", -1),
        right_window=node.get("right_window_size", -1),
        name=node.name,
    )
    return outputs if count == 1 else [outputs[i] for i in range(count)]


@imports("RotaryEmbedding")
def rotary_embedding(
    node: OnnxNode, x: Value, cos: Value, sin: Value, positions: Value | None = None
) -> Any:
    """Rotate pairs of features by angles that grow with the position."""
    heads, is_joined = node.get("num_heads", 0), x.rank == 3
    data, axes = x.symbol, (0, 2, 1, 3)
    if is_joined:  # (batch, length, heads * size) to (batch, heads, length, size)
        data = F.transpose(F.reshape(data, shape=(0, 0, -4, heads, -1)), axes=axes)
    width, size = node.get("rotary_embedding_dim", 0), x.shape[-1]
    if width == (size // heads if is_joined and size else size):
        width = 0
    angles = [cos.symbol, sin.symbol]
    if positions is not None:
        angles = [F.take(a, positions.symbol) for a in angles]
    if width:
        angles = [F.slice_axis(a, axis=-1, begin=0, end=width // 2) for a in angles]
    rotated = F.slice_axis(data, axis=3, begin=0, end=width) if width else data
    output = _rotate(rotated, [F.expand_dims(a, axis=1) for a in angles], node.flag("interleaved"))
    if width:
        output = F.concat(output, F.slice_axis(data, axis=3, begin=width, end=None), dim=3)
    if is_joined:
        output = F.reshape(F.transpose(output, axes=axes), shape=(0, 0, -3))
    return F.identity(output, name=node.name)


def _rotate(x: Any, angles: list[Any], is_interleaved: bool) -> Any:
    """Rotate pairs of features, neighbors or halves, by cosines and sines."""
    cos, sin = angles
    if is_interleaved:
        ranges = [((None,) * 3 + (i,), (None,) * 4, (1, 1, 1, 2)) for i in (0, 1)]
        first, second = (F.slice(x, begin=b, end=e, step=s) for b, e, s in ranges)
    else:
        first, second = F.split(x, num_outputs=2, axis=3)
    real = F.broadcast_sub(F.broadcast_mul(cos, first), F.broadcast_mul(sin, second))
    imaginary = F.broadcast_add(F.broadcast_mul(sin, first), F.broadcast_mul(cos, second))
    if is_interleaved:
        return F.reshape(F.stack(real, imaginary, axis=4), shape=(0, 0, 0, -3))
    return F.concat(real, imaginary, dim=3)


class Window(NamedTuple):
    """Windows: kernel, stride, dilation and pads (before, after) of the spatial axes."""

    kernel: list[int]
    stride: list[int]
    dilate: list[int]
    before: list[int]
    after: list[int]

    @property
    def reach(self) -> list[int]:
        """The sizes of dilated kernels."""
        return [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilate, strict=True)]

    @property
    def is_dilated(self) -> bool:
        """Whether a window leaves elements out."""
        return any(d != 1 for d in self.dilate)

    def attrs(self, after: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Return the attributes of our pooling operators, with other pads at the end."""
        sides = {"kernel": self.kernel, "stride": self.stride, "dilate": self.dilate}
        return {**{k: tuple(v) for k, v in sides.items()}, "pads": (*self.before, *after)}


def window(
    node: OnnxNode, x: Value, kernel: Sequence[int] | None = None, *, transposed: bool = False
) -> Window:
    """Return the windows of a node, by default of its attribute `kernel_shape`."""
    kernel = list(node.get("kernel_shape") if kernel is None else kernel)
    rank = len(kernel)
    stride = node.get("strides") or [1] * rank
    dilate = node.get("dilations") or [1] * rank
    pads = node.get("pads") or [0] * (2 * rank)
    auto = node.get("auto_pad", "NOTSET")
    if auto == "VALID":
        pads = [0] * (2 * rank)
    where = Window(kernel, list(stride), list(dilate), list(pads[:rank]), list(pads[rank:]))
    if not auto.startswith("SAME") or transposed:
        return where
    for i, (n, reach, s) in enumerate(zip(x.sizes[2:], where.reach, stride, strict=True)):
        total = max((-(-n // s) - 1) * s + reach - n, 0)
        small, large = total // 2, total - total // 2
        pair = (small, large) if auto == "SAME_UPPER" else (large, small)
        where.before[i], where.after[i] = pair
    return where


def pad_spatial(x: Any, before: list[int], after: list[int], value: float = 0.0) -> Any:
    """Pad the spatial axes of a symbol with a constant, on 3, 4 or 5 axes."""
    if not any(before) and not any(after):
        return x
    if any(n < 0 for n in (*before, *after)):
        raise ValueError("negative pads")
    is_line = len(before) == 1  # MXNet pads images and volumes
    widths = [0] * (6 if is_line else 4)
    for b, a in zip(before, after, strict=True):
        widths += [b, a]
    wide = F.expand_dims(x, axis=2) if is_line else x
    output = F.pad(wide, mode="constant", pad_width=tuple(widths), constant_value=value)
    return F.squeeze(output, axis=2) if is_line else output


@imports("Conv")
def convolution(node: OnnxNode, x: Value, w: Value, b: Value | None = None) -> Any:
    """Convolution; uneven pads are an operator of their own."""
    where = window(node, x, w.sizes[2:])
    symbol, pad = x.symbol, where.before
    if where.before != where.after:
        symbol, pad = pad_spatial(symbol, where.before, where.after), [0] * len(pad)
    inputs = [symbol, w.symbol] + ([b.symbol] if b is not None else [])
    return F.Convolution(
        *inputs,
        kernel=tuple(where.kernel),
        stride=tuple(where.stride),
        dilate=tuple(where.dilate),
        pad=tuple(pad),
        num_filter=w.sizes[0],
        num_group=node.get("group", 1),
        no_bias=b is None,
        name=node.name,
    )


@imports("ConvTranspose")
def deconvolution(node: OnnxNode, x: Value, w: Value, b: Value | None = None) -> Any:
    """Transposed convolution; uneven pads are cropped afterward."""
    group, where = node.get("group", 1), window(node, x, w.sizes[2:], transposed=True)
    kernel = where.kernel
    extra = list(node.get("output_padding") or [0] * len(kernel))
    before, after = _transposed_pads(node, x, where, extra)
    inputs = [x.symbol, w.symbol] + ([b.symbol] if b is not None else [])
    is_even = before == after and all(
        e < max(s, 1) for e, s in zip(extra, where.stride, strict=True)
    )
    options = {
        "kernel": tuple(kernel),
        "stride": tuple(where.stride),
        "dilate": tuple(where.dilate),
        "num_filter": w.sizes[1] * group,
        "num_group": group,
        "no_bias": b is None,
    }
    if is_even and min(before) >= 0:
        adj = tuple(extra) if any(extra) else ()
        return F.Deconvolution(*inputs, pad=tuple(before), adj=adj, name=node.name, **options)
    # The bias is added last, so that cropped and added elements have it.
    options["no_bias"] = True
    output = F.Deconvolution(*inputs[:2], **options)
    grown = [max(e - a, 0) for e, a in zip(extra, after, strict=True)]
    output = pad_spatial(output, [0] * len(kernel), grown)
    for axis, (low, high, e) in enumerate(zip(before, after, extra, strict=True), 2):
        end = -(high - e) if high > e else None
        output = F.slice_axis(output, axis=axis, begin=low, end=end)
    if b is None:
        return output
    return F.broadcast_add(output, F.reshape(b.symbol, shape=(1, -1) + (1,) * len(kernel)))


def _transposed_pads(
    node: OnnxNode, x: Value, where: Window, extra: list[int]
) -> tuple[list[int], list[int]]:
    sizes_after, auto = node.get("output_shape"), node.get("auto_pad", "NOTSET")
    if not sizes_after and not auto.startswith("SAME"):
        return where.before, where.after
    sizes = x.sizes[2:]
    if not sizes_after:
        sizes_after = [n * s for n, s in zip(sizes, where.stride, strict=True)]
    before, after = [], []
    for i, target in enumerate(sizes_after[-len(where.kernel) :]):
        total = where.stride[i] * (sizes[i] - 1) + extra[i] + where.reach[i] - target
        small = total // 2
        is_upper = auto != "SAME_LOWER"
        before.append(small if is_upper else total - small)
        after.append(total - small if is_upper else small)
        if total < 0:
            before[-1], after[-1], extra[i] = 0, 0, extra[i] - total
    return before, after


def _pads_after(node: OnnxNode, x: Value, where: Window) -> list[int]:
    """Return the padding at the end, with what `ceil_mode` adds."""
    if not node.flag("ceil_mode"):
        return list(where.after)
    after = []
    for i, n in enumerate(x.sizes[2:]):
        before, reach, stride = where.before[i], where.reach[i], where.stride[i]
        count = -(-(n + before + where.after[i] - reach) // stride) + 1
        if (count - 1) * stride >= n + before:
            count -= 1  # a window may not start beyond the data
        after.append(max((count - 1) * stride + reach - n - before, 0))
    return after


@imports("MaxUnpool")
def max_unpool(node: OnnxNode, x: Value, indices: Value, shape: Value | None = None) -> Any:
    """Scatter elements to the positions from which a pooling took them."""
    where = window(node, x)
    sides = zip(x.sizes[2:], *where, strict=True)
    small = (*x.sizes[:2], *((n - 1) * s + k - b - a for n, k, s, _, b, a in sides))
    whole = small if shape is None else tuple(node.required_ints("shape", shape))
    zeros = F.zeros((math.prod(small),), dtype=x.dtype.name)
    flat = [F.reshape(v.symbol, shape=(-1,)) for v in (indices, x)]
    output = F.reshape(internal._onnx_scatter_elements(zeros, *flat), shape=small, name=node.name)
    pads = [n for a, b in zip(small, whole, strict=True) for n in (0, b - a)]
    if not any(pads):
        return output
    return F.pad(output, mode="constant", pad_width=tuple(pads), constant_value=0)


@imports("MaxPool")
def max_pool(node: OnnxNode, x: Value) -> Any:
    """Maximum over windows."""
    where = window(node, x)
    after = _pads_after(node, x, where)
    if len([n for n in node.output_names if n]) > 1 or where.is_dilated:
        order = node.get("storage_order", 0)
        both = internal._onnx_max_pool(
            x.symbol, **where.attrs(after), storage_order=order, name=node.name
        )
        return [both[0], both[1]]
    symbol, pad = x.symbol, where.before
    if not x.is_float:
        symbol = F.cast(symbol, dtype="float32")
    if where.before != after:
        lowest = float(np.finfo(x.dtype if x.is_float else np.float32).min)
        symbol, pad = pad_spatial(symbol, where.before, after, lowest), [0] * len(pad)
    output = F.Pooling(
        symbol,
        kernel=tuple(where.kernel),
        stride=tuple(where.stride),
        pad=tuple(pad),
        pool_type="max",
        name=node.name,
    )
    return output if x.is_float else F.cast(output, dtype=x.dtype.name)


@imports("AveragePool")
def average_pool(node: OnnxNode, x: Value) -> Any:
    """Mean over windows, with or without the padding."""
    where, with_pad = window(node, x), node.flag("count_include_pad")
    after = _pads_after(node, x, where)
    if where.is_dilated:
        return internal._onnx_reduce_pool(
            x.symbol,
            **where.attrs(where.after),
            extra=tuple(a - b for a, b in zip(after, where.after, strict=True)),
            count_include_pad=with_pad,
            name=node.name,
        )
    options = {"kernel": tuple(where.kernel), "stride": tuple(where.stride)}
    if where.before == after:
        return F.Pooling(
            x.symbol,
            pad=tuple(after),
            pool_type="avg",
            count_include_pad=with_pad,
            name=node.name,
            **options,
        )
    symbol = pad_spatial(x.symbol, where.before, after)
    total = F.Pooling(symbol, pool_type="sum", **options)
    divisor = node.parameter(_counts(x.sizes[2:], where, after, with_pad), "counts")
    return F.broadcast_div(total, divisor, name=node.name)


def _counts(sizes: Sequence[int], where: Window, after: list[int], with_pad: bool) -> np.ndarray:
    counts = np.ones((1, 1), np.float32)
    for i, n in enumerate(sizes):
        before, kernel, stride = where.before[i], where.kernel[i], where.stride[i]
        count = (n + before + after[i] - kernel) // stride + 1
        starts = np.arange(count) * stride - before
        low, high = (-before, n + where.after[i]) if with_pad else (0, n)
        length = np.minimum(starts + kernel, high) - np.maximum(starts, low)
        line = np.maximum(length, 1).astype(np.float32)
        counts = counts[..., None] * line.reshape((1, 1) + (1,) * i + (count,))
    return counts


@imports("LpPool")
def lp_pool(node: OnnxNode, x: Value) -> Any:
    """p-norm over windows."""
    where, p = window(node, x), node.get("p", 2)
    after = _pads_after(node, x, where)
    if where.is_dilated:
        return internal._onnx_reduce_pool(
            x.symbol, **where.attrs(after), kind="lp", p=p, name=node.name
        )
    power = F.abs(x.symbol) if p == 1 else F.abs(x.symbol) ** p
    total = F.Pooling(
        pad_spatial(power, where.before, after),
        kernel=tuple(where.kernel),
        stride=tuple(where.stride),
        pool_type="sum",
    )
    return total if p == 1 else total ** (1 / p)


def _pool_all(op_type: str, kind: str) -> None:
    @imports(op_type)
    def pool(node: OnnxNode, x: Value) -> Any:
        kernel = (1,) * (x.rank - 2)
        return F.Pooling(x.symbol, global_pool=True, kernel=kernel, pool_type=kind, name=node.name)


_pool_all("GlobalAveragePool", "avg")
_pool_all("GlobalMaxPool", "max")


@imports("GlobalLpPool")
def global_lp_pool(node: OnnxNode, x: Value) -> Any:
    """p-norm over all spatial axes."""
    p = node.get("p", 2)
    total = F.sum(F.abs(x.symbol) ** p, axis=tuple(range(2, x.rank)), keepdims=True)
    return total ** (1 / p)


@imports("BatchNormalization", "SpatialBN")
def batch_norm(node: OnnxNode, x: Value, gamma: Value, beta: Value, mean: Value, var: Value) -> Any:
    """Normalize by stored statistics."""
    if node.flag("training_mode"):
        return _batch_norm_training(node, x, gamma, beta, mean, var)
    return F.BatchNorm(
        *(v.symbol for v in (x, gamma, beta, mean, var)),
        eps=node.get("epsilon", 1e-5),
        momentum=node.get("momentum", 0.9),
        fix_gamma=False,
        use_global_stats=False,
        name=node.name,
    )


def _batch_norm_training(
    node: OnnxNode, x: Value, gamma: Value, beta: Value, mean: Value, var: Value
) -> list[Any]:
    """Normalize by the batch's own statistics; return the updated running statistics too."""
    eps, momentum = node.get("epsilon", 1e-5), node.get("momentum", 0.9)
    now, distance, spread = _moments(x.symbol, (0, *range(2, x.rank)))
    shape = (1, -1) + (1,) * (x.rank - 2)
    output = F.broadcast_mul(F.broadcast_mul(distance, F.rsqrt(spread + eps)), _like(gamma, shape))
    moved = [
        old.symbol * momentum + F.reshape(new, shape=(-1,)) * (1 - momentum)
        for old, new in ((mean, now), (var, spread))
    ]
    return [F.broadcast_add(output, _like(beta, shape)), *moved]


def _moments(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Return the mean of a symbol, the distance from it and the variance."""
    mean = F.mean(x, axis=axes, keepdims=True)
    distance = F.broadcast_sub(x, mean)
    return mean, distance, F.mean(F.square(distance), axis=axes, keepdims=True)


def _like(value: Value, shape: tuple[int, ...]) -> Any:
    return F.reshape(value.symbol, shape=shape)


@imports("LRN")
def lrn(node: OnnxNode, x: Value) -> Any:
    """Divide by the energy of neighboring channels."""
    if node.get("size") % 2 == 0:
        raise node.unsupported("with an even size has no operator.")
    return F.LRN(
        x.symbol,
        alpha=node.get("alpha", 1e-4),
        beta=node.get("beta", 0.75),
        knorm=node.get("bias", 1.0),
        nsize=node.get("size"),
        name=node.name,
    )


@imports("LpNormalization")
def lp_normalization(node: OnnxNode, x: Value) -> Any:
    """Divide by the L1 or L2 norm along an axis."""
    axis, p = node.get("axis", -1), node.get("p", 2)
    norm = F.norm(x.symbol, ord=p, axis=axis, keepdims=True)
    safe = F.where(norm == 0, F.ones_like(norm), norm)
    return F.broadcast_div(x.symbol, safe, name=node.name)


def standardize(x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any, Any]:
    """Return the standardized symbol, its mean and the inverse deviation."""
    mean, distance, variance = _moments(x, axes)
    inverse = F.rsqrt(variance + eps)
    return F.broadcast_mul(distance, inverse), mean, inverse


@imports("LayerNormalization")
def layer_norm(node: OnnxNode, x: Value, scale: Value, bias: Value | None = None) -> Any:
    """Normalize the last axes."""
    axis, eps = x.axis(node.get("axis", -1)), node.get("epsilon", 1e-5)
    count = len([n for n in node.output_names if n])
    if axis == x.rank - 1 and count == 1 and bias is not None and scale.rank == 1:
        return F.LayerNorm(x.symbol, scale.symbol, bias.symbol, axis=-1, eps=eps, name=node.name)
    output, mean, inverse = standardize(x.symbol, tuple(range(axis, x.rank)), eps)
    output = F.broadcast_mul(output, scale.with_rank(x.rank))
    if bias is not None:
        output = F.broadcast_add(output, bias.with_rank(x.rank))
    return [output, mean, inverse][:count]


@imports("RMSNormalization")
def rms_norm(node: OnnxNode, x: Value, scale: Value) -> Any:
    """Divide the last axes by their root mean square."""
    axis, eps = x.axis(node.get("axis", -1)), node.get("epsilon", 1e-5)
    power = F.mean(F.square(x.symbol), axis=tuple(range(axis, x.rank)), keepdims=True)
    output = F.broadcast_mul(x.symbol, F.rsqrt(power + eps))
    return F.broadcast_mul(output, scale.with_rank(x.rank), name=node.name)


@imports("GroupNormalization")
def group_norm(node: OnnxNode, x: Value, scale: Value, bias: Value) -> Any:
    """Normalize groups of channels."""
    groups, eps = node.get("num_groups"), node.get("epsilon", 1e-5)
    split = F.reshape(x.symbol, shape=(0, groups, -1))
    output, _, _ = standardize(split, (2,), eps)
    by_channel = node.opset >= 21  # in older opsets there is one scale per group
    shape = (1, -1, *(1,) * (x.rank - 2)) if by_channel else (1, -1, 1)
    output = F.reshape_like(output, x.symbol) if by_channel else output
    output = F.broadcast_mul(output, _like(scale, shape))
    output = F.broadcast_add(output, _like(bias, shape))
    return output if by_channel else F.reshape_like(output, x.symbol)


@imports("MeanVarianceNormalization")
def mean_variance(node: OnnxNode, x: Value) -> Any:
    """Subtract the mean and divide by the deviation."""
    axes = tuple(node.get("axes") or (0, 2, 3))
    _, distance, variance = _moments(x.symbol, axes)
    return F.broadcast_div(distance, F.sqrt(variance) + 1e-9, name=node.name)
