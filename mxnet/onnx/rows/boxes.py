"""Rows of boxes: overlap, decoding and non-maximum suppression."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps

import numpy as np
import torch

from ..builder import INT64, UNKNOWN, Builder, Call, is_float
from ..table import Emit, row

LOWEST = -3.0e38
FLOAT = torch.float32


def in_float32(emit: Emit) -> Emit:
    """Let a row compute in float32 whatever floating-point type its data has."""

    @wraps(emit)
    def cast_and_emit(g: Builder, call: Call, *xs: str) -> str | list[str]:
        if not is_float(call.dtype) or call.dtype is FLOAT:
            return emit(g, call, *xs)
        inputs = [
            g.cast(x, t, FLOAT) if is_float(t) else x for x, t in zip(xs, call.dtypes, strict=True)
        ]
        types = [FLOAT if is_float(t) else t for t in call.dtypes]
        made = emit(g, replace(call, dtypes=types), *inputs)
        outputs = [made] if isinstance(made, str) else made
        found = [
            g.cast(x, FLOAT, t) if is_float(t) else x
            for x, t in zip(outputs, call.out_dtypes, strict=False)
        ]
        return found[0] if isinstance(made, str) else found

    return cast_and_emit


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


def _apart_by_class(g: Builder, boxes: str, ids: str) -> str:
    """Shift the boxes of each class to a place of their own, so that only equals compete."""
    high = g.reduce("ReduceMax", boxes, None, False)
    low = g.reduce("ReduceMin", boxes, None, False)
    distance = g.Add(g.Sub(high, low), g.scalar(1, FLOAT))
    return g.Add(boxes, g.Mul(ids, distance))


def keep_mask(g: Builder, boxes: str, scores: str, threshold: float) -> str:
    """Return 1 for boxes ``(batch, n, 4)`` that survive, 0 for others, as ``(batch, n)``."""
    most = g.size_of(boxes, 1)
    chosen = g.NonMaxSuppression(
        boxes,
        g.unsqueeze(scores, 1),
        most,
        g.array(np.array([threshold], np.float32)),
        g.array(np.array([LOWEST / 2], np.float32)),
    )
    image_and_box = g.Gather(chosen, g.ints(0, 2), axis=1)
    zeros = g.Mul(g.cast(g.Greater(scores, scores), torch.bool, FLOAT), g.scalar(0, FLOAT))
    count = g.Slice(g.Shape(chosen), g.ints(0), g.ints(1), g.ints(0))
    return g.ScatterND(zeros, image_and_box, g.Expand(g.scalar(1, FLOAT), count))


def _best(g: Builder, scores: str, count: str) -> tuple[str, str]:
    values, places = g.TopK(scores, count, axis=1, outputs=2)
    return values, places


def _limited(g: Builder, scores: str, topk: int, size: int) -> str:
    """Keep the scores of the best `topk` only."""
    if topk <= 0 or (size != UNKNOWN and topk >= size):
        return scores
    values, places = _best(g, scores, g.ints(topk))
    nothing = g.Expand(g.scalar(LOWEST, FLOAT), g.Shape(scores))
    return g.ScatterElements(nothing, places, values, axis=1)


def rows_at(g: Builder, rows: str, places: str) -> str:
    """Return rows ``(batch, n, width)`` in the order ``(batch, n)``."""
    return g.GatherND(rows, g.unsqueeze(places, 2), batch_dims=1)


def _column(g: Builder, rows: str, at: int) -> str:
    return g.squeeze(g.slice(rows, [at], [at + 1], [2]), 2)


def _candidates(g: Builder, call: Call, rows: str) -> str:
    """Return the scores, lowest where a row is no candidate."""
    a = call.attrs
    score = _column(g, rows, a["score_index"])
    valid = g.Greater(score, g.scalar(a["valid_thresh"], FLOAT))
    if a["id_index"] >= 0:
        ids = _column(g, rows, a["id_index"])
        valid = g.And(valid, g.Not(g.Equal(ids, g.scalar(a["background_id"], FLOAT))))
    score = g.Where(valid, score, g.scalar(LOWEST, FLOAT))
    return _limited(g, score, a["topk"], call.shape[-2])


@row("_contrib_box_nms")
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
    score = _candidates(g, call, rows)
    boxes = g.slice(rows, [start], [start + 4], [2])
    corners = to_corners(g, boxes) if a["in_format"] == "center" else boxes
    if a["id_index"] >= 0 and not a["force_suppress"]:
        ids = g.slice(rows, [a["id_index"]], [a["id_index"] + 1], [2])
        corners = _apart_by_class(g, corners, ids)
    is_kept = g.Greater(keep_mask(g, corners, score, a["overlap_thresh"]), g.scalar(0, FLOAT))
    score = g.Where(is_kept, score, g.scalar(LOWEST, FLOAT))
    values, places = _best(g, score, g.size_of(rows, 1))
    made = _converted(g, call, rows_at(g, rows, places))
    is_real = g.unsqueeze(g.Greater(values, g.scalar(LOWEST / 2, FLOAT)), 2)
    made = g.Where(is_real, made, g.scalar(-1, FLOAT))
    return made if call.ndim == 3 else g.Reshape(made, g.Shape(data))


def _converted(g: Builder, call: Call, rows: str) -> str:
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
    if UNKNOWN in call.shape[2:]:
        raise call.unsupported("needs height and width as numbers.")
    made = call.op.kernel(torch.empty(1, 1, *call.shape[2:]), **call.attrs)
    return g.Identity(g.array(made.to(call.out_dtypes[0]).numpy()))


@row("_contrib_MultiBoxDetection")
@in_float32
def multibox_detection(g: Builder, call: Call, prob: str, loc: str, anchor: str) -> str:
    """Decode scores and offsets into rows, by score; class -1 marks what was suppressed."""
    a = call.attrs
    if not 0 < a["nms_threshold"] <= 1:
        raise call.unsupported(
            "without suppression (nms_threshold outside (0, 1]) has no ONNX form."
        )
    classes = g.slice(prob, [1], [2**62], [1])
    score = g.reduce("ReduceMax", classes, [1], False)
    ids = g.cast(g.ArgMax(classes, axis=1, keepdims=0), INT64, FLOAT)
    found = g.GreaterOrEqual(score, g.scalar(a["threshold"], FLOAT))
    boxes = _decoded(g, call, loc, anchor)
    lowest = g.scalar(LOWEST, FLOAT)
    ranked = g.Where(found, score, lowest)
    values, places = _best(g, ranked, g.size_of(ranked, 1))
    heads = g.Concat(g.unsqueeze(ids, 2), g.unsqueeze(score, 2), boxes, axis=2)
    rows = _first_sorted(g, call, heads, places, found)
    is_real = g.Greater(values, g.scalar(LOWEST / 2, FLOAT))
    limited = _limited(g, values, a["nms_topk"], call.shapes[0][2])
    corners = g.slice(rows, [2], [6], [2])
    if not a["force_suppress"]:
        corners = _apart_by_class(g, corners, g.slice(rows, [0], [1], [2]))
    kept = g.Greater(keep_mask(g, corners, limited, a["nms_threshold"]), g.scalar(0, FLOAT))
    kept = g.And(kept, g.Greater(limited, g.scalar(LOWEST / 2, FLOAT)))
    minus = g.scalar(-1, FLOAT)
    first = g.Where(g.unsqueeze(kept, 2), g.slice(rows, [0], [1], [2]), minus)
    rest = g.Where(g.unsqueeze(is_real, 2), g.slice(rows, [1], [6], [2]), minus)
    return g.Concat(first, rest, axis=2)


def _first_sorted(g: Builder, call: Call, heads: str, places: str, found: str) -> str:
    """Return candidates by score up to `nms_topk`; MXNet leaves later rows in their own order."""
    rows, topk, count = rows_at(g, heads, places), call.attrs["nms_topk"], call.shape[2]
    if topk <= 0 or (count != UNKNOWN and topk >= count):
        return rows
    first = g.cast(found, torch.bool, FLOAT)
    _, in_order = _best(g, first, g.size_of(first, 1))
    head = g.slice(rows, [0], [topk], [1])
    rest = g.slice(rows_at(g, heads, in_order), [topk], [2**62], [1])
    return g.Concat(head, rest, axis=1)


def _decoded(g: Builder, call: Call, loc: str, anchor: str) -> str:
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
