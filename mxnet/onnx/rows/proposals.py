"""Rows of two-stage detectors: region proposals, position-sensitive and deformable sampling."""

from __future__ import annotations

import numpy as np
import torch

from ..builder import INT64, UNKNOWN, Builder, Call
from ..table import row
from .boxes import in_float32, keep_mask, rows_at

FLOAT = torch.float32


def _anchors(call: Call) -> np.ndarray:
    """Return the anchors of every cell as ``(cells * anchors, 4)``."""
    a = call.attrs
    height, width = call.shape[2:]
    stride, made = a["feature_stride"], []
    center, area = (stride - 1) / 2, float(stride * stride)
    for ratio in a["ratios"]:
        wide = np.floor(np.sqrt(np.floor(area / ratio)) + 0.5)
        tall = np.floor(wide * ratio + 0.5)
        for scale in a["scales"]:
            w, h = (wide * scale - 1) / 2, (tall * scale - 1) / 2
            made.append([center - w, center - h, center + w, center + h])
    x, y = np.meshgrid(np.arange(width) * stride, np.arange(height) * stride)
    cells = np.stack([x, y, x, y], -1).reshape(-1, 1, 4)
    return (cells + np.array(made)).reshape(-1, 4).astype(np.float32)


def _moved(g: Builder, call: Call, offsets: str) -> str:
    """Apply offsets ``(batch, n, 4)`` to the anchors."""
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
    """Return which boxes belong to cells beyond the real image: ``(batch, n)``."""
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
    """Move, limit, filter, rank and suppress anchors; too few survivors are repeated."""
    a = call.attrs
    if UNKNOWN in call.shape[2:]:
        raise call.unsupported("needs height and width as numbers.")
    count = len(a["ratios"]) * len(a["scales"])
    total = count * call.shape[2] * call.shape[3]
    chosen = g.slice(prob, [count], [2 * count], [1])
    score = g.reshape(g.transpose(chosen, 0, 2, 3, 1), [0, -1])
    split = g.reshape(offsets, [0, count, 4, *call.shape[2:]])
    boxes = _moved(g, call, g.reshape(g.transpose(split, 0, 3, 4, 1, 2), [0, -1, 4]))
    limit = g.Sub(g.Gather(info, g.ints(1, 0, 1, 0), axis=1), g.scalar(1, FLOAT))
    boxes = g.Max(g.Min(boxes, g.unsqueeze(limit, 1)), g.scalar(0, FLOAT))
    least = g.Mul(g.slice(info, [2], [3], [1]), g.scalar(a["rpn_min_size"], FLOAT))
    small = _small(g, boxes, least)
    removed = g.Or(_padding(g, call, info), small)
    score = g.Where(removed, g.scalar(-1, FLOAT), score)
    before = min(a["rpn_pre_nms_top_n"], total) if a["rpn_pre_nms_top_n"] > 0 else total
    values, places = g.TopK(score, g.ints(before), axis=1, outputs=2)
    is_small = g.GatherElements(g.cast(small, torch.bool, FLOAT), places, axis=1)
    grown = _grown(g, rows_at(g, boxes, places), is_small, least)
    keep = _kept(g, grown, before, a["threshold"])
    return _padded(g, call, grown, values, keep, before)


def _small(g: Builder, boxes: str, least: str) -> str:
    low, high = g.slice(boxes, [0], [2], [2]), g.slice(boxes, [2], [4], [2])
    size = g.Add(g.Sub(high, low), g.scalar(1, FLOAT))
    return g.Less(g.reduce("ReduceMin", size, [2], False), least)


def _grown(g: Builder, boxes: str, is_small: str, least: str) -> str:
    """Enlarge boxes that were too small, as MXNet does."""
    signs = np.array([-0.5, -0.5, 0.5, 0.5], np.float32)
    step = g.Mul(g.unsqueeze(least, 2), g.array(signs))
    return g.Add(boxes, g.Mul(g.unsqueeze(is_small, 2), step))


def _kept(g: Builder, boxes: str, count: int, threshold: float) -> str:
    """Return 1 for survivors; boxes include the pixels of their far edges."""
    wide = g.Add(boxes, g.array(np.array([0, 0, 1, 1], np.float32)))
    rank = np.arange(count, 0, -1, dtype=np.float32)  # already sorted, equals in their order
    batch = g.slice(g.Shape(boxes), [0], [1], [0])
    scores = g.Expand(g.array(rank[None]), g.Concat(batch, g.ints(count), axis=0))
    return keep_mask(g, wide, scores, threshold)


def _padded(g: Builder, call: Call, boxes: str, scores: str, keep: str, count: int) -> list[str]:
    """Return as many survivors as asked for, in turn if there are fewer."""
    after = call.attrs["rpn_post_nms_top_n"]
    order = np.arange(count, 0, -1, dtype=np.float32) / (2 * count)
    _, front = g.TopK(g.Add(keep, g.array(order)), g.ints(count), axis=1, outputs=2)
    found = g.cast(g.reduce("ReduceSum", keep, [1], True), FLOAT, INT64)
    found = g.Min(found, g.ints(after)) if g.opset >= 12 else found
    line = g.Mod(g.array(np.arange(after)[None]), found)
    place = g.GatherElements(front, line, axis=1)
    chosen = rows_at(g, boxes, place)
    batch = g.squeeze(g.size_of(boxes, 0), 0)
    zero, one = (g.array(np.array(n, np.int64)) for n in (0, 1))
    images = g.cast(g.Range(zero, batch, one), INT64, FLOAT)
    column = g.Expand(g.unsqueeze(images, 1, 2), g.ints(1, after, 1))
    rois = g.reshape(g.Concat(column, chosen, axis=2), [-1, 5])
    if not call.attrs["output_score"]:
        return [rois]
    return [rois, g.reshape(g.GatherElements(scores, place, axis=1), [-1, 1])]


@row("_contrib_PSROIPooling")
@in_float32
def psroi_pooling(g: Builder, call: Call, x: str, rois: str) -> str:
    """Mean over bins, each of its own channels: products with masks of rows and columns."""
    a = call.attrs
    height, width = call.shape[2:]
    if UNKNOWN in (height, width):
        raise call.unsupported("needs height and width as numbers.")
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
    """Return which pixels of an axis each bin covers: ``(regions, bins, size)``."""
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

    MXNet counts samples outside the image as 0 and takes those on its last half pixel whole, where
    ONNX fades them: offsets are cut to the image, and a mask leaves out what was outside.
    """
    sizes = call.shapes[0][2:]
    if UNKNOWN in sizes:
        raise call.unsupported("needs height and width as numbers.")
    groups, (kh, kw) = call.attrs["num_deformable_group"], call.attrs["kernel"]
    out = call.out_shapes[0][2:]
    split = g.reshape(offset, [0, groups * kh * kw, 2, *out])
    moved, masks = [], []
    for axis, size in enumerate(sizes):
        base = g.array(_tap_places(call, axis, out, groups))
        place = g.Add(g.squeeze(g.slice(split, [axis], [axis + 1], [2]), 2), base)
        zero, end = g.scalar(0, FLOAT), g.scalar(size, FLOAT)
        masks.append(g.And(g.GreaterOrEqual(place, zero), g.Less(place, end)))
        inside = g.Clip(place, zero, g.scalar(size - 1, FLOAT))
        moved.append(g.unsqueeze(g.Sub(inside, base), 2))
    cut = g.reshape(g.Concat(*moved, axis=2), [0, 2 * groups * kh * kw, *out])
    mask = g.cast(g.And(*masks), torch.bool, FLOAT)
    return _deform(g, call, x, cut, weight, bias, mask)


def _tap_places(call: Call, axis: int, out: tuple[int, ...], groups: int) -> np.ndarray:
    """Return the place of each kernel point before it moves: ``(1, groups * points, h, w)``."""
    a = call.attrs
    kernel, stride = a["kernel"], (a["stride"] or (1, 1))[axis]
    dilate, pad = (a["dilate"] or (1, 1))[axis], (a["pad"] or (0, 0))[axis]
    taps = np.indices(kernel)[axis].reshape(-1, 1, 1) * dilate
    places = np.indices(out)[axis] * stride - pad
    return np.tile((taps + places).astype(np.float32), (groups, 1, 1))[None]


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
    """Offsets from anchors to matched boxes, and which of them count."""
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
