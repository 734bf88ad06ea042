"""Rows of images, regions and boxes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import wraps

import numpy as np
import torch

from ..builder import FAR, INT64, UNKNOWN, Builder, Call, Emit, is_float, numpy_dtype, row
from .layers import NEEDS_IMAGE_SIZE

LOWEST = -3.0e38
FLOAT = torch.float32


def in_float32(emit: Emit) -> Emit:
    """Decorate a row to compute in float32 for all floating-point types."""

    @wraps(emit)
    def cast_and_emit(g: Builder, call: Call, *xs: str) -> str | Sequence[str]:
        if not is_float(call.dtype) or call.dtype is FLOAT:
            return emit(g, call, *xs)
        inputs = [
            g.cast(x, t, FLOAT) if is_float(t) else x for x, t in zip(xs, call.dtypes, strict=True)
        ]
        types = [FLOAT if is_float(t) else t for t in call.dtypes]
        result = emit(g, replace(call, dtypes=types), *inputs)
        outputs = [result] if isinstance(result, str) else result
        converted = [
            g.cast(x, FLOAT, t) if is_float(t) else x
            for x, t in zip(outputs, call.out_dtypes, strict=False)
        ]
        return converted[0] if isinstance(result, str) else converted

    return cast_and_emit


def resize_to(g: Builder, x: str, sizes: str, rank: int, mode: str, corners: str) -> str:
    """Resize the last two axes to sizes given as a vector of two numbers."""
    front = g.Slice(g.Shape(x), g.ints(0), g.ints(rank - 2), g.ints(0))
    options = {"mode": mode, "coordinate_transformation_mode": corners}
    if mode == "nearest":
        options["nearest_mode"] = "floor"
    return g.resize(x, sizes=g.Concat(front, sizes, axis=0), **options)


@row("UpSampling")
def up_sampling(g: Builder, call: Call, *xs: str) -> str:
    """Enlarge by repeating pixels, or by a learned bilinear kernel."""
    a, scale = call.attrs, call.attrs["scale"]
    if a["sample_type"] == "bilinear":
        kernel, pad = 2 * scale - scale % 2, math.ceil((scale - 1) / 2)
        missing = scale - (kernel - 2 * pad)
        return g.ConvTranspose(
            *xs,
            kernel_shape=[kernel, kernel],
            strides=[scale, scale],
            pads=[pad] * 4,
            output_padding=[missing, missing],
            group=a["num_filter"] or call.shape[1],
        )
    factors = [scale]
    for shape in call.shapes[1:]:
        if UNKNOWN in (shape[2], call.shape[2]):
            raise call.unsupported("with several inputs needs their height and width as numbers.")
        factors.append(call.shape[2] * scale // shape[2])
    repeat = _repeat_whole_pixels if call.dtype is INT64 else _repeat_pixels
    big = [repeat(g, x, f) for x, f in zip(xs, factors, strict=True)]
    if len(big) == 1:
        return big[0]
    return g.Concat(*big, axis=1) if a["multi_input_mode"] == "concat" else g.Sum(*big)


def _repeat_whole_pixels(g: Builder, x: str, factor: int) -> str:
    """Repeat pixels, for data types that runtimes cannot resize."""
    batch, height, width = (g.Slice(g.Shape(x), *map(g.ints, b)) for b in ((0, 2), (2, 3), (3, 4)))
    times = g.ints(factor)
    wide = g.Tile(g.unsqueeze(x, 3, 5), g.ints(1, 1, 1, factor, 1, factor))
    return g.Reshape(wide, g.Concat(batch, g.Mul(height, times), g.Mul(width, times), axis=0))


def _repeat_pixels(g: Builder, x: str, factor: int) -> str:
    scales = g.array(np.array([1, 1, factor, factor], dtype=np.float32))
    return g.resize(
        x,
        scales=scales,
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


@row("_contrib_BilinearResize2D")
def bilinear_resize(g: Builder, call: Call, x: str, *like: str) -> str:
    """Resize the last two axes by bilinear interpolation."""
    new = call.out_shapes[0][-2:]
    corners = "align_corners" if call.attrs["align_corners"] else "half_pixel"
    if UNKNOWN in new:
        if not like:
            raise call.unsupported("needs the new height and width as numbers.")
        rank = len(call.shapes[1])
        sizes = g.Slice(g.Shape(like[0]), g.ints(rank - 2), g.ints(rank), g.ints(0))
        return resize_to(g, x, sizes, call.ndim, "linear", corners)
    # A single row or column is the first one.
    for axis, size in zip((call.ndim - 2, call.ndim - 1), new, strict=True):
        if size == 1:
            x = g.slice(x, [0], [1], [axis])
    return resize_to(g, x, g.ints(*new), call.ndim, "linear", corners)


@row("ROIPooling")
def roi_pooling(g: Builder, call: Call, x: str, rois: str) -> str:
    """Maximum over bins of regions."""
    return g.MaxRoiPool(
        x,
        rois,
        pooled_shape=list(call.attrs["pooled_size"]),
        spatial_scale=call.attrs["spatial_scale"],
    )


@row("_contrib_ROIAlign")
def roi_align(g: Builder, call: Call, x: str, rois: str) -> str:
    """Mean of bilinear samples over bins of regions."""
    a = call.attrs
    if a["position_sensitive"]:
        raise call.unsupported("with position_sensitive=True has no ONNX form.")
    if a["aligned"] and g.opset < 16:
        raise call.unsupported("with aligned=True needs opset_version=16 or newer.")
    image = g.squeeze(g.slice(rois, [0], [1], [1]), 1)
    corners = g.slice(rois, [1], [5], [1])
    is_present = g.GreaterOrEqual(image, g.scalar(0, call.dtypes[1]))
    index = g.Max(g.cast(image, call.dtypes[1], INT64), g.scalar(0, INT64))
    options = {}
    if g.opset >= 16:
        mode = "half_pixel" if a["aligned"] else "output_half_pixel"
        options["coordinate_transformation_mode"] = mode
    output = g.RoiAlign(
        x,
        corners,
        index,
        output_height=a["pooled_size"][0],
        output_width=a["pooled_size"][1],
        sampling_ratio=max(a["sample_ratio"], 0),
        spatial_scale=a["spatial_scale"],
        **options,
    )
    mask = g.unsqueeze(is_present, 1, 2, 3)
    return g.Where(mask, output, g.scalar(0, call.dtype))


def _affine_grid(g: Builder, theta: str, size: tuple[int, int], dtype: torch.dtype) -> str:
    """Return sampling positions ``(batch, 2, height, width)`` of 2x3 matrices."""
    height, width = size
    x = np.arange(width) * (2 / max(width - 1, 1)) - 1
    y = np.arange(height) * (2 / max(height - 1, 1)) - 1
    flat = np.stack([*np.broadcast_arrays(x[None], y[:, None]), np.ones(size)]).reshape(3, -1)
    positions = g.MatMul(g.reshape(theta, [-1, 2, 3]), g.array(flat.astype(numpy_dtype(dtype))))
    return g.reshape(positions, [-1, 2, height, width])


@row("GridGenerator")
def grid_generator(g: Builder, call: Call, x: str) -> str:
    """Sampling positions from matrices or a flow in pixels."""
    if call.attrs["transform_type"] == "affine":
        return _affine_grid(g, x, call.attrs["target_shape"], call.dtype)
    call.require_sizes(call.shape[2:], NEEDS_IMAGE_SIZE)
    height, width = call.shape[2:]
    kind = numpy_dtype(call.dtype)
    position = np.stack(np.meshgrid(np.arange(width), np.arange(height))).astype(kind)
    half = np.array([(width - 1) / 2, (height - 1) / 2], kind).reshape(2, 1, 1)
    moved = g.Div(g.Add(x, g.array(position)), g.array(half))
    return g.Sub(moved, g.scalar(1, call.dtype))


def _sample(g: Builder, x: str, grid: str) -> str:
    positions = g.Transpose(grid, perm=[0, 2, 3, 1])
    mode = "linear" if g.opset >= 20 else "bilinear"
    return g.GridSample(x, positions, mode=mode, padding_mode="zeros", align_corners=1)


@row("BilinearSampler", since=16)
@in_float32
def bilinear_sampler(g: Builder, call: Call, x: str, grid: str) -> str:
    """Sample at positions of a grid."""
    return _sample(g, x, grid)


@row("SpatialTransformer", since=16)
@in_float32
def spatial_transformer(g: Builder, call: Call, x: str, loc: str) -> str:
    """Sample by an affine map."""
    grid = _affine_grid(g, loc, call.attrs["target_shape"], call.dtype)
    return _sample(g, x, grid)


@row("_image_normalize")
def image_normalize(g: Builder, call: Call, x: str) -> str:
    """Subtract the mean and divide by the deviation of each channel."""
    dtype, kind = call.out_dtypes[0], numpy_dtype(call.out_dtypes[0])
    mean, std = (np.array(call.attrs[k], kind).reshape(-1, 1, 1) for k in ("mean", "std"))
    return g.Div(g.Sub(g.cast(x, call.dtype, dtype), g.array(mean)), g.array(std))


@row("_image_to_tensor")
def image_to_tensor(g: Builder, call: Call, x: str) -> str:
    """Pixels of 0 to 255, channels last, as floats of 0 to 1, channels first."""
    number = g.cast(x, call.dtype, torch.float32)
    scaled = g.Div(number, g.scalar(255, torch.float32))
    perm = [2, 0, 1] if call.ndim == 3 else [0, 3, 1, 2]
    return g.Transpose(scaled, perm=perm)


@row("Correlation")
def correlation(g: Builder, call: Call, first: str, second: str) -> str:
    """Compare patches at all displacements: one product for each of them."""
    a, sizes = call.attrs, (*call.shape[2:], *call.out_shapes[0][2:])
    call.require_sizes(sizes, NEEDS_IMAGE_SIZE)
    kernel, reach, stride = a["kernel_size"], a["max_displacement"], a["stride1"]
    around = [0, 0, a["pad_size"], a["pad_size"]]
    padded = [g.pad(x, around, around) if a["pad_size"] else x for x in (first, second)]
    tall, broad = ((n - 1) * stride + kernel for n in sizes[2:])
    step = stride if kernel == 1 else 1

    def window(x: str, down: int, right: int) -> str:
        top, left = reach + down, reach + right
        return g.slice(x, [top, left], [top + tall, left + broad], [2, 3], [step, step])

    here, maps = window(padded[0], 0, 0), []
    radius = reach // a["stride2"]
    moves = [a["stride2"] * i for i in range(-radius, radius + 1)]
    for down, right in itertools.product(moves, moves):
        there = window(padded[1], down, right)
        match = g.Mul(here, there) if a["is_multiply"] else g.Abs(g.Sub(here, there))
        maps.append(g.reduce("ReduceMean", match, [1]))
    out = maps[0] if len(maps) == 1 else g.Concat(*maps, axis=1)
    if kernel == 1:
        return out
    return g.AveragePool(out, kernel_shape=[kernel, kernel], strides=[stride, stride])


# Images are ``(..., height, width, channels)``.
row("_image_flip_left_right")(lambda g, call, x: g.flip(x, [call.ndim - 2]))
row("_image_flip_top_bottom")(lambda g, call, x: g.flip(x, [call.ndim - 3]))


@row("_image_crop")
def image_crop(g: Builder, call: Call, x: str) -> str:
    """Cut a rectangle out of images ``(..., height, width, channels)``."""
    a, axes = call.attrs, [call.ndim - 3, call.ndim - 2]
    low = [a["y"], a["x"]]
    high = [a["y"] + a["height"], a["x"] + a["width"]]
    return g.slice(x, low, high, axes)


RESIZE_MODES = {0: ("nearest", "asymmetric"), 1: ("linear", "half_pixel")}


@row("_image_resize")
def image_resize(g: Builder, call: Call, x: str) -> str:
    """Resize images ``(..., height, width, channels)`` by neighbors or bilinearly."""
    interp = call.attrs["interp"]
    if interp not in RESIZE_MODES or not is_float(call.dtype):
        raise call.unsupported(f"with interp={interp} of {call.dtype} has no ONNX form.")
    sizes = call.out_shapes[0][-3:-1]
    if UNKNOWN in sizes:
        raise call.unsupported("needs the new height and width as numbers.")
    batch = x if call.ndim == 4 else g.unsqueeze(x, 0)
    output = resize_to(g, g.transpose(batch, 0, 3, 1, 2), g.ints(*sizes), 4, *RESIZE_MODES[interp])
    output = g.transpose(output, 0, 2, 3, 1)
    return output if call.ndim == 4 else g.squeeze(output, 0)


# -- boxes ----------------------------------------------------------------------------------


def _columns(g: Builder, x: str, *bounds: tuple[int, int]) -> list[str]:
    return [g.slice(x, [a], [b], [-1]) for a, b in bounds]


def to_corners(g: Builder, boxes: str) -> str:
    """Boxes given by center and size as corners."""
    center, size = _columns(g, boxes, (0, 2), (2, 4))
    half = g.Mul(size, g.scalar(0.5, FLOAT))
    return g.Concat(g.Sub(center, half), g.Add(center, half), axis=-1)


def to_centers(g: Builder, boxes: str) -> str:
    """Boxes given by corners as center and size."""
    low, high = _columns(g, boxes, (0, 2), (2, 4))
    middle = g.Mul(g.Add(low, high), g.scalar(0.5, FLOAT))
    return g.Concat(middle, g.Sub(high, low), axis=-1)


@row("_contrib_box_iou")
@in_float32
def box_iou(g: Builder, call: Call, lhs: str, rhs: str) -> str:
    """Intersection over union of all pairs."""
    first, second = g.reshape(lhs, [-1, 4]), g.reshape(rhs, [-1, 4])
    if call.attrs["format"] == "center":
        first, second = to_corners(g, first), to_corners(g, second)
    first, second = g.unsqueeze(first, 1), g.unsqueeze(second, 0)
    (low_a, high_a), (low_b, high_b) = (_columns(g, b, (0, 2), (2, 4)) for b in (first, second))
    zero = g.scalar(0, call.dtype)
    size = g.Max(g.Sub(g.Min(high_a, high_b), g.Max(low_a, low_b)), zero)
    common, area_a, area_b = (
        g.reduce("ReduceProd", s, [2], False)
        for s in (size, g.Sub(high_a, low_a), g.Sub(high_b, low_b))
    )
    union = g.Sub(g.Add(area_a, area_b), common)
    is_empty = g.Equal(union, zero)
    ratio = g.Div(common, g.Where(is_empty, g.scalar(1, call.dtype), union))
    ratio = g.Where(is_empty, zero, ratio)
    return g.reshape_to(call, ratio, (-1, -1), call.out_shapes[0])


@row("_contrib_box_decode")
@in_float32
def box_decode(g: Builder, call: Call, data: str, anchors: str) -> str:
    """Apply predicted offsets to anchors and return corners."""
    a = call.attrs
    if a["format"] == "corner":
        anchors = to_centers(g, anchors)
    center, size = _columns(g, anchors, (0, 2), (2, 4))
    shift, growth = _columns(g, data, (0, 2), (2, 4))
    shift = g.Mul(shift, g.array(np.array([a["std0"], a["std1"]], np.float32)))
    growth = g.Mul(growth, g.array(np.array([a["std2"], a["std3"]], np.float32)))
    if a["clip"] > 0:
        growth = g.Min(growth, g.scalar(a["clip"], FLOAT))
    middle = g.Add(g.Mul(shift, size), center)
    half = g.Mul(g.Mul(g.Exp(growth), size), g.scalar(0.5, FLOAT))
    return g.Concat(g.Sub(middle, half), g.Add(middle, half), axis=-1)


def keep_mask(g: Builder, boxes: str, scores: str, threshold: float, ids: str = "") -> str:
    """Return 1 for boxes ``(batch, n, 4)`` that survive, 0 for others, as ``(batch, n)``.

    With `ids`, of the same shape, only boxes of one class suppress each other.
    """
    by_class = g.unsqueeze(scores, 1)
    if ids:
        classes = g.reshape(g.Unique(ids, sorted=1), [1, -1, 1])
        is_class = g.Equal(g.unsqueeze(ids, 1), classes)
        by_class = g.Where(is_class, by_class, g.scalar(LOWEST, FLOAT))
    most = g.size_of(boxes, 1)
    chosen = g.NonMaxSuppression(
        boxes,
        by_class,
        most,
        g.array(np.array([threshold], np.float32)),
        g.array(np.array([LOWEST / 2], np.float32)),
    )
    image_and_box = g.Gather(chosen, g.ints(0, 2), axis=1)
    zeros = g.Mul(g.cast(g.Greater(scores, scores), torch.bool, FLOAT), g.scalar(0, FLOAT))
    count = g.Slice(g.Shape(chosen), g.ints(0), g.ints(1), g.ints(0))
    return g.ScatterND(zeros, image_and_box, g.Expand(g.scalar(1, FLOAT), count))


def _best(g: Builder, scores: str, count: str) -> tuple[str, str]:
    values, indices = g.TopK(scores, count, axis=1, outputs=2)
    return values, indices


def _limit_scores(g: Builder, scores: str, topk: int, size: int) -> str:
    if topk <= 0 or (size != UNKNOWN and topk >= size):
        return scores
    values, indices = _best(g, scores, g.ints(topk))
    nothing = g.Expand(g.scalar(LOWEST, FLOAT), g.Shape(scores))
    return g.ScatterElements(nothing, indices, values, axis=1)


def rows_at(g: Builder, rows: str, indices: str) -> str:
    """Return rows ``(batch, n, width)`` in the order ``(batch, n)``."""
    return g.GatherND(rows, g.unsqueeze(indices, 2), batch_dims=1)


def _column(g: Builder, rows: str, at: int) -> str:
    return g.squeeze(g.slice(rows, [at], [at + 1], [2]), 2)


def _candidates(g: Builder, call: Call, rows: str) -> str:
    """Return the scores, with the minimum for rows that are not candidates."""
    a = call.attrs
    score = _column(g, rows, a["score_index"])
    valid = g.Greater(score, g.scalar(a["valid_thresh"], FLOAT))
    if a["id_index"] >= 0:
        ids = _column(g, rows, a["id_index"])
        valid = g.And(valid, g.Not(g.Equal(ids, g.scalar(a["background_id"], FLOAT))))
    return g.Where(valid, score, g.scalar(LOWEST, FLOAT))


@row("_contrib_box_nms", first_suffix=lambda call: "0")
@in_float32
def box_nms(g: Builder, call: Call, data: str) -> str:
    """Keep the best of overlapping boxes; survivors first, then rows of -1."""
    a = call.attrs
    if a["topk"] == 0:
        return g.Identity(data)
    width = call.shape[-1]
    count = call.shape[-2] if call.shape[-2] != UNKNOWN else 0
    rows = data if call.ndim == 3 else g.reshape(data, [-1, count, width])
    if call.ndim == 2:
        rows = g.unsqueeze(data, 0)
    start = a["coord_start"]
    score, rest = _candidates(g, call, rows), ""
    if a["topk"] > 0 and (count == 0 or a["topk"] < count):
        score, indices = _best(g, score, g.ints(a["topk"]))
        rest = g.slice(rows, [a["topk"]], [FAR], [1])  # of the same shape as the empty rows
        rows = rows_at(g, rows, indices)
    boxes = g.slice(rows, [start], [start + 4], [2])
    corners = to_corners(g, boxes) if a["in_format"] == "center" else boxes
    is_by_class = a["id_index"] >= 0 and not a["force_suppress"]
    ids = _column(g, rows, a["id_index"]) if is_by_class else ""
    mask = keep_mask(g, corners, score, a["overlap_thresh"], ids)
    is_kept = g.Greater(mask, g.scalar(0, FLOAT))
    score = g.Where(is_kept, score, g.scalar(LOWEST, FLOAT))
    values, indices = _best(g, score, g.size_of(rows, 1))
    output = _convert(g, call, rows_at(g, rows, indices))
    is_real = g.unsqueeze(g.Greater(values, g.scalar(LOWEST / 2, FLOAT)), 2)
    output = g.Where(is_real, output, g.scalar(-1, FLOAT))
    if rest:
        output = g.Concat(output, g.Expand(g.scalar(-1, FLOAT), g.Shape(rest)), axis=1)
    return output if call.ndim == 3 else g.Reshape(output, g.Shape(data))


def _convert(g: Builder, call: Call, rows: str) -> str:
    a, start, width = call.attrs, call.attrs["coord_start"], call.shape[-1]
    if a["in_format"] == a["out_format"]:
        return rows
    boxes = g.slice(rows, [start], [start + 4], [2])
    convert = to_corners if a["in_format"] == "center" else to_centers
    is_removed = g.Less(g.slice(boxes, [0], [1], [2]), g.scalar(0, FLOAT))
    parts = [g.Where(is_removed, boxes, convert(g, boxes))]
    if start > 0:
        parts.insert(0, g.slice(rows, [0], [start], [2]))
    if start + 4 < width:
        parts.append(g.slice(rows, [start + 4], [width], [2]))
    return g.Concat(*parts, axis=2)


@row("_contrib_MultiBoxPrior")
def multibox_prior(g: Builder, call: Call, x: str) -> str:
    """Anchors, which depend on the shape of the image only."""
    call.require_sizes(call.shape[2:], NEEDS_IMAGE_SIZE)
    anchors = call.op.kernel(torch.empty(1, 1, *call.shape[2:]), **call.attrs)
    return g.Identity(g.array(anchors.to(call.out_dtypes[0]).numpy()))


@row("_contrib_MultiBoxDetection")
@in_float32
def multibox_detection(g: Builder, call: Call, prob: str, loc: str, anchor: str) -> str:
    """Decode scores and offsets into rows, by score; class -1 marks suppressed boxes."""
    a = call.attrs
    if not 0 < a["nms_threshold"] <= 1:
        raise call.unsupported(
            "without suppression (nms_threshold outside (0, 1]) has no ONNX form."
        )
    classes = g.slice(prob, [1], [FAR], [1])
    score = g.reduce("ReduceMax", classes, [1], False)
    ids = g.cast(g.ArgMax(classes, axis=1, keepdims=0), INT64, FLOAT)
    is_found = g.GreaterOrEqual(score, g.scalar(a["threshold"], FLOAT))
    boxes = _decode(g, call, loc, anchor)
    lowest = g.scalar(LOWEST, FLOAT)
    ranked = g.Where(is_found, score, lowest)
    values, indices = _best(g, ranked, g.size_of(ranked, 1))
    heads = g.Concat(g.unsqueeze(ids, 2), g.unsqueeze(score, 2), boxes, axis=2)
    rows = _sort_candidates(g, call, heads, indices, is_found)
    is_real = g.Greater(values, g.scalar(LOWEST / 2, FLOAT))
    limited = _limit_scores(g, values, a["nms_topk"], call.shapes[0][2])
    corners = g.slice(rows, [2], [6], [2])
    ids = "" if a["force_suppress"] else _column(g, rows, 0)
    mask = keep_mask(g, corners, limited, a["nms_threshold"], ids)
    is_kept = g.Greater(mask, g.scalar(0, FLOAT))
    is_kept = g.And(is_kept, g.Greater(limited, g.scalar(LOWEST / 2, FLOAT)))
    minus = g.scalar(-1, FLOAT)
    first = g.Where(g.unsqueeze(is_kept, 2), g.slice(rows, [0], [1], [2]), minus)
    rest = g.Where(g.unsqueeze(is_real, 2), g.slice(rows, [1], [6], [2]), minus)
    return g.Concat(first, rest, axis=2)


def _sort_candidates(g: Builder, call: Call, heads: str, indices: str, is_found: str) -> str:
    """Return candidates by score up to `nms_topk`; MXNet leaves later rows in their own order."""
    rows, topk, count = rows_at(g, heads, indices), call.attrs["nms_topk"], call.shape[2]
    if topk <= 0 or (count != UNKNOWN and topk >= count):
        return rows
    first = g.cast(is_found, torch.bool, FLOAT)
    _, in_order = _best(g, first, g.size_of(first, 1))
    head = g.slice(rows, [0], [topk], [1])
    rest = g.slice(rows_at(g, heads, in_order), [topk], [FAR], [1])
    return g.Concat(head, rest, axis=1)


def _decode(g: Builder, call: Call, loc: str, anchor: str) -> str:
    count = call.shapes[2][1]
    offsets = g.reshape(loc, [0, count if count != UNKNOWN else -1, 4])
    variances = np.array(call.attrs["variances"], np.float32)
    offsets = g.Mul(offsets, g.array(variances))
    center, size = _columns(g, to_centers(g, anchor), (0, 2), (2, 4))
    shift, growth = _columns(g, offsets, (0, 2), (2, 4))
    middle = g.Add(g.Mul(shift, size), center)
    half = g.Mul(g.Mul(g.Exp(growth), size), g.scalar(0.5, FLOAT))
    boxes = g.Concat(g.Sub(middle, half), g.Add(middle, half), axis=-1)
    if not call.attrs["clip"]:
        return boxes
    return g.Clip(boxes, g.scalar(0, FLOAT), g.scalar(1, FLOAT))


def _anchors(call: Call) -> np.ndarray:
    """Return the anchors of every cell as ``(cells * anchors, 4)``."""
    a = call.attrs
    height, width = call.shape[2:]
    stride, anchors = a["feature_stride"], []
    center, area = (stride - 1) / 2, float(stride * stride)
    for ratio in a["ratios"]:
        wide = np.floor(np.sqrt(np.floor(area / ratio)) + 0.5)
        tall = np.floor(wide * ratio + 0.5)
        for scale in a["scales"]:
            w, h = (wide * scale - 1) / 2, (tall * scale - 1) / 2
            anchors.append([center - w, center - h, center + w, center + h])
    x, y = np.meshgrid(np.arange(width) * stride, np.arange(height) * stride)
    cells = np.stack([x, y, x, y], -1).reshape(-1, 1, 4)
    return (cells + np.array(anchors)).reshape(-1, 4).astype(np.float32)


def _move_anchors(g: Builder, call: Call, offsets: str) -> str:
    anchors = _anchors(call)
    if call.attrs["iou_loss"]:
        return g.Add(offsets, g.array(anchors))
    size = anchors[:, 2:] - anchors[:, :2] + 1
    center = anchors[:, :2] + 0.5 * (size - 1)
    shift, growth = g.slice(offsets, [0], [2], [2]), g.slice(offsets, [2], [4], [2])
    middle = g.Add(g.Mul(shift, g.array(size)), g.array(center))
    one = g.scalar(1, FLOAT)
    half = g.Mul(g.Sub(g.Mul(g.Exp(growth), g.array(size)), one), g.scalar(0.5, FLOAT))
    return g.Concat(g.Sub(middle, half), g.Add(middle, half), axis=2)


def _padding(g: Builder, call: Call, info: str) -> str:
    """Return a mask of boxes of cells beyond the image: ``(batch, n)``."""
    height, width = call.shape[2:]
    count = len(call.attrs["ratios"]) * len(call.attrs["scales"])
    cells = g.Div(g.slice(info, [0], [2], [1]), g.scalar(call.attrs["feature_stride"], FLOAT))
    real = g.Floor(cells)
    y, x = np.mgrid[:height, :width].astype(np.float32)
    lines = [np.repeat(v.reshape(1, -1), count, axis=1) for v in (y, x)]
    outside = [
        g.GreaterOrEqual(g.array(line), g.slice(real, [i], [i + 1], [1]))
        for i, line in enumerate(lines)
    ]
    return g.Or(*outside)


@row("_contrib_Proposal", "_contrib_MultiProposal")
@in_float32
def proposal(g: Builder, call: Call, prob: str, offsets: str, info: str) -> list[str]:
    """Decode, clip, filter, sort and suppress anchors.

    Repeat the remaining ones up to `rpn_post_nms_top_n`.
    """
    a = call.attrs
    call.require_sizes(call.shape[2:], NEEDS_IMAGE_SIZE)
    count = len(a["ratios"]) * len(a["scales"])
    total = count * call.shape[2] * call.shape[3]
    chosen = g.slice(prob, [count], [2 * count], [1])
    score = g.reshape(g.transpose(chosen, 0, 2, 3, 1), [0, -1])
    split = g.reshape(offsets, [0, count, 4, *call.shape[2:]])
    boxes = _move_anchors(g, call, g.reshape(g.transpose(split, 0, 3, 4, 1, 2), [0, -1, 4]))
    limit = g.Sub(g.Gather(info, g.ints(1, 0, 1, 0), axis=1), g.scalar(1, FLOAT))
    boxes = g.Max(g.Min(boxes, g.unsqueeze(limit, 1)), g.scalar(0, FLOAT))
    least = g.Mul(g.slice(info, [2], [3], [1]), g.scalar(a["rpn_min_size"], FLOAT))
    small = _small(g, boxes, least)
    removed = g.Or(_padding(g, call, info), small)
    score = g.Where(removed, g.scalar(-1, FLOAT), score)
    before = min(a["rpn_pre_nms_top_n"], total) if a["rpn_pre_nms_top_n"] > 0 else total
    values, indices = g.TopK(score, g.ints(before), axis=1, outputs=2)
    is_small = g.GatherElements(g.cast(small, torch.bool, FLOAT), indices, axis=1)
    grown = _grow(g, rows_at(g, boxes, indices), is_small, least)
    keep = _keep_boxes(g, grown, before, a["threshold"])
    return _repeat_boxes(g, call, grown, values, keep, before)


def _small(g: Builder, boxes: str, least: str) -> str:
    low, high = g.slice(boxes, [0], [2], [2]), g.slice(boxes, [2], [4], [2])
    size = g.Add(g.Sub(high, low), g.scalar(1, FLOAT))
    return g.Less(g.reduce("ReduceMin", size, [2], False), least)


def _grow(g: Builder, boxes: str, is_small: str, least: str) -> str:
    """Enlarge boxes that are too small, as MXNet does."""
    signs = np.array([-0.5, -0.5, 0.5, 0.5], np.float32)
    step = g.Mul(g.unsqueeze(least, 2), g.array(signs))
    return g.Add(boxes, g.Mul(g.unsqueeze(is_small, 2), step))


def _keep_boxes(g: Builder, boxes: str, count: int, threshold: float) -> str:
    """Return 1 for survivors; boxes include the pixels of their far edges."""
    wide = g.Add(boxes, g.array(np.array([0, 0, 1, 1], np.float32)))
    rank = np.arange(count, 0, -1, dtype=np.float32)  # already sorted, equals in their order
    batch = g.slice(g.Shape(boxes), [0], [1], [0])
    scores = g.Expand(g.array(rank[None]), g.Concat(batch, g.ints(count), axis=0))
    return keep_mask(g, wide, scores, threshold)


def _repeat_boxes(
    g: Builder, call: Call, boxes: str, scores: str, keep: str, count: int
) -> list[str]:
    """Return the requested number of survivors, repeated if there are fewer."""
    after = call.attrs["rpn_post_nms_top_n"]
    order = np.arange(count, 0, -1, dtype=np.float32) / (2 * count)
    _, front = g.TopK(g.Add(keep, g.array(order)), g.ints(count), axis=1, outputs=2)
    count_kept = g.cast(g.reduce("ReduceSum", keep, [1], True), FLOAT, INT64)
    count_kept = g.Min(count_kept, g.ints(after)) if g.opset >= 12 else count_kept
    line = g.Mod(g.array(np.arange(after)[None]), count_kept)
    index = g.GatherElements(front, line, axis=1)
    chosen = rows_at(g, boxes, index)
    batch = g.squeeze(g.size_of(boxes, 0), 0)
    zero, one = (g.array(np.array(n, np.int64)) for n in (0, 1))
    images = g.cast(g.Range(zero, batch, one), INT64, FLOAT)
    column = g.Expand(g.unsqueeze(images, 1, 2), g.ints(1, after, 1))
    rois = g.reshape(g.Concat(column, chosen, axis=2), [-1, 5])
    if not call.attrs["output_score"]:
        return [rois]
    return [rois, g.reshape(g.GatherElements(scores, index, axis=1), [-1, 1])]


@row("_contrib_PSROIPooling")
@in_float32
def psroi_pooling(g: Builder, call: Call, x: str, rois: str) -> str:
    """Mean over bins with separate channels, by products with masks of rows and columns."""
    a = call.attrs
    height, width = call.shape[2:]
    call.require_sizes((height, width), NEEDS_IMAGE_SIZE)
    bins, depth = a["pooled_size"], a["output_dim"]
    grid = a["group_size"] or bins
    corners = g.slice(rois, [1], [5], [1])
    half = g.Where(g.Less(corners, g.scalar(0, FLOAT)), g.scalar(-0.5, FLOAT), g.scalar(0.5, FLOAT))
    moved = g.Add(corners, half)
    whole = g.Mul(g.Sign(moved), g.Floor(g.Abs(moved)))
    scale = g.scalar(a["spatial_scale"], FLOAT)
    low = g.Mul(g.slice(whole, [0], [2], [1]), scale)
    high = g.Mul(g.Add(g.slice(whole, [2], [4], [1]), g.scalar(1, FLOAT)), scale)
    columns, rows = (
        _bin_masks(g, low, high, i, bins, size) for i, size in enumerate((width, height))
    )
    image = g.cast(g.squeeze(g.slice(rois, [0], [1], [1]), 1), call.dtypes[1], INT64)
    line = np.arange(bins) * grid // bins
    cells = (line[:, None] * grid + line).ravel()
    channels = np.arange(depth)[:, None] * grid * grid + cells
    pixels = g.Gather(x, g.array(channels.ravel().astype(np.int64)), axis=1)
    chosen = g.Gather(g.reshape(pixels, [0, depth, bins, bins, height, width]), image, axis=0)
    total = g.Einsum(chosen, rows, columns, equation="rdpqhw,rph,rqw->rdpq")
    counts = [g.reduce("ReduceSum", m, [2], False) for m in (rows, columns)]
    area = g.Mul(g.unsqueeze(counts[0], 2), g.unsqueeze(counts[1], 1))
    return g.Div(total, g.unsqueeze(g.Max(area, g.scalar(1, FLOAT)), 1))


def _bin_masks(g: Builder, low: str, high: str, at: int, bins: int, size: int) -> str:
    """Return a mask of the pixels in each bin along an axis: ``(regions, bins, size)``."""
    start, end = g.slice(low, [at], [at + 1], [1]), g.slice(high, [at], [at + 1], [1])
    step = g.Div(g.Max(g.Sub(end, start), g.scalar(0.1, FLOAT)), g.scalar(bins, FLOAT))
    index = np.arange(bins, dtype=np.float32)[None]
    first = g.Floor(g.Add(g.Mul(step, g.array(index)), start))
    last = g.Ceil(g.Add(g.Mul(step, g.array(index + 1)), start))
    line = g.array(np.arange(size, dtype=np.float32)[None, None])
    inside = g.And(
        g.GreaterOrEqual(line, g.unsqueeze(first, 2)), g.Less(line, g.unsqueeze(last, 2))
    )
    return g.cast(inside, torch.bool, FLOAT)


def _deform(g: Builder, call: Call, x: str, offset: str, weight: str, bias: str, mask: str) -> str:
    a = call.attrs
    return g.DeformConv(
        x,
        weight,
        offset,
        bias,
        mask,
        kernel_shape=list(a["kernel"]),
        strides=list(a["stride"] or (1, 1)),
        dilations=list(a["dilate"] or (1, 1)),
        pads=list(a["pad"] or (0, 0)) * 2,
        group=a["num_group"],
        offset_group=a["num_deformable_group"],
    )


@row("_contrib_DeformableConvolution", since=19)
@in_float32
def deformable_convolution(
    g: Builder, call: Call, x: str, offset: str, weight: str, bias: str = ""
) -> str:
    """Convolution whose samples are moved by offsets.

    In MXNet samples outside the image are 0 and those on its last half pixel are clamped, while
    ONNX fades them: offsets are clamped to the image, and a mask zeros samples outside.
    """
    sizes = call.shapes[0][2:]
    call.require_sizes(sizes, NEEDS_IMAGE_SIZE)
    groups, (kh, kw) = call.attrs["num_deformable_group"], call.attrs["kernel"]
    out = call.out_shapes[0][2:]
    split = g.reshape(offset, [0, groups * kh * kw, 2, *out])
    moved, masks = [], []
    for axis, size in enumerate(sizes):
        base = g.array(_tap_places(call, axis, out, groups))
        position = g.Add(g.squeeze(g.slice(split, [axis], [axis + 1], [2]), 2), base)
        zero, end = g.scalar(0, FLOAT), g.scalar(size, FLOAT)
        masks.append(g.And(g.GreaterOrEqual(position, zero), g.Less(position, end)))
        inside = g.Clip(position, zero, g.scalar(size - 1, FLOAT))
        moved.append(g.unsqueeze(g.Sub(inside, base), 2))
    cut = g.reshape(g.Concat(*moved, axis=2), [0, 2 * groups * kh * kw, *out])
    mask = g.cast(g.And(*masks), torch.bool, FLOAT)
    return _deform(g, call, x, cut, weight, bias, mask)


def _tap_places(call: Call, axis: int, out: tuple[int, ...], groups: int) -> np.ndarray:
    """Return the position of each kernel point without offsets: ``(1, groups * points, h, w)``."""
    a = call.attrs
    kernel, stride = a["kernel"], (a["stride"] or (1, 1))[axis]
    dilate, pad = (a["dilate"] or (1, 1))[axis], (a["pad"] or (0, 0))[axis]
    taps = np.indices(kernel)[axis].reshape(-1, 1, 1) * dilate
    positions = np.indices(out)[axis] * stride - pad
    return np.tile((taps + positions).astype(np.float32), (groups, 1, 1))[None]


@row("_contrib_ModulatedDeformableConvolution", since=19)
def modulated_deformable_convolution(
    g: Builder, call: Call, x: str, offset: str, mask: str, weight: str, bias: str = ""
) -> str:
    """Convolution whose samples are moved by offsets and weighted by a mask."""
    return _deform(g, call, x, offset, weight, bias, mask)


@row("_contrib_box_encode")
@in_float32
def box_encode(
    g: Builder, call: Call, samples: str, matches: str, anchors: str, refs: str, *rest: str
) -> list[str]:
    """Offsets from anchors to matched boxes, and their mask."""
    means, stds = rest
    matched = rows_at(g, refs, g.cast(matches, call.dtypes[1], INT64))
    (x, size), (x_ref, size_ref) = (_center(g, b) for b in (anchors, matched))
    shift = g.Div(g.Sub(x_ref, x), size)
    growth = g.Log(g.Div(size_ref, size))
    raw = g.Div(g.Sub(g.Concat(shift, growth, axis=2), means), stds)
    is_on = g.unsqueeze(g.Greater(samples, g.scalar(0.5, FLOAT)), 2)
    zero = g.scalar(0, FLOAT)
    mask = g.Expand(g.cast(is_on, torch.bool, FLOAT), g.Shape(raw))
    return [g.Where(is_on, raw, zero), mask]


def _center(g: Builder, boxes: str) -> tuple[str, str]:
    low, high = g.slice(boxes, [0], [2], [2]), g.slice(boxes, [2], [4], [2])
    size = g.Sub(high, low)
    return g.Add(low, g.Mul(size, g.scalar(0.5, FLOAT))), size
