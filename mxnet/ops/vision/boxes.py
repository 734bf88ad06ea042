"""Boxes: overlap, non-maximum suppression, matching, and their encoding as offsets of anchors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ...error import ShapeError
from ..declare import op
from ..shapes import Shape, same
from .suppression import best_first, keep_greedily, pairwise_iou, to_centres, to_corners

Format = Literal["center", "corner"]


@op(
    "_contrib_box_nms",
    "_contrib_box_non_maximum_suppression",
    total=2,
    shape=same,
    precision="widest",
)
def box_nms(
    data: Tensor,
    *,
    overlap_thresh: float = 0.5,
    valid_thresh: float = 0.0,
    topk: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = -1,
    background_id: int = -1,
    force_suppress: bool = False,
    in_format: Format = "corner",
    out_format: Format = "corner",
) -> Tensor:
    """Keep the best-scored of boxes that overlap; survivors come first, by score, then -1 rows.

    Parameters
    ----------
    data
        Rows with a score and a box, of shape ``(..., boxes, width)``.
    overlap_thresh
        Boxes that overlap a better one by more than this are suppressed.
    valid_thresh
        Boxes whose scores are not above this are left out.
    topk
        How many of the best boxes of each batch to look at; -1 means all.
    coord_start
        Where the box begins in a row.
    score_index
        Position of the score in a row.
    id_index
        Position of the class in a row; -1 if there is none.
    in_format
        Whether boxes are given as ``corner`` (x1, y1, x2, y2) or ``center`` (x, y, width, height).
    out_format
        Whether boxes are returned as ``corner`` or ``center``.

    >>> boxes = mx.nd.array([[0, .5, 0, 0, 2, 2], [0, .9, 0, 0, 2, 2], [0, .7, 3, 3, 4, 4]])
    >>> mx.nd.contrib.box_nms(boxes).asnumpy()[:, 1]
    array([ 0.9,  0.7, -1. ], dtype=float32)
    """
    if topk == 0 or not data.numel():
        return data.clone()
    n, width = data.shape[-2:]
    rows = data.reshape(-1, n, width)
    with torch.no_grad():
        order, valid = _ranked(rows, valid_thresh, topk, score_index, id_index, background_id)
        ranked = _rows_at(rows, order)
        boxes = ranked[..., coord_start : coord_start + 4]
        if in_format == "center":
            boxes = to_corners(boxes)
        ids = None if force_suppress or id_index < 0 else ranked[..., id_index]
        keep = keep_greedily(boxes, overlap_thresh, ids) & valid
        keep, front = keep.sort(dim=1, descending=True, stable=True)
        order = order.gather(1, front)
    out = _rows_at(rows, order)
    if in_format != out_format:
        out = _converted(out, coord_start, to_corners if in_format == "center" else to_centres)
    out = out.masked_fill(~keep.unsqueeze(-1), -1.0)
    return F.pad(out, (0, 0, 0, n - out.shape[1]), value=-1.0).reshape(data.shape)


def _ranked(
    rows: Tensor, valid_thresh: float, topk: int, score_index: int, id_index: int, background: int
) -> tuple[Tensor, Tensor]:
    """Return the places of candidates by score, and which of them are real."""
    score = rows[..., score_index]
    valid = score > valid_thresh
    if id_index >= 0:
        valid &= rows[..., id_index] != background
    counts = valid.sum(1, keepdim=True)
    most = int(counts.max()) if valid.numel() else 0
    most = min(most, topk) if topk > 0 else most
    order = best_first(score.masked_fill(~valid, -torch.inf), most)
    return order, torch.arange(most, device=rows.device) < counts


def _converted(rows: Tensor, start: int, convert: Callable[[Tensor], Tensor]) -> Tensor:
    """Return rows with boxes in the other format; the gradient passes as if they had stayed."""
    made = rows.detach().clone()
    boxes = made[..., start : start + 4]
    # MXNet takes a negative first coordinate for a removed row and leaves it as it is.
    boxes.copy_(boxes.where(boxes[..., :1] < 0, convert(boxes)))
    return made + (rows - rows.detach())  # plus zero, which carries the gradient


def _rows_at(rows: Tensor, index: Tensor) -> Tensor:
    """Return for each batch the rows of ``(batch, n, width)`` at ``(batch, m)`` places."""
    return rows.gather(1, index.unsqueeze(-1).expand(-1, -1, rows.shape[-1]))


def no_gradient(grad: Tensor, out: Tensor, *inputs: Tensor, **_: object) -> tuple[Tensor, ...]:
    """Answer zeros: MXNet passes no gradient through boxes and their matching."""
    return tuple(torch.zeros_like(t) for t in inputs)


@op("_contrib_box_iou", precision="widest")
def box_iou(lhs: Tensor, rhs: Tensor, *, format: Format = "corner") -> Tensor:
    """Intersection over union of every box of one array with every box of the other.

    Parameters
    ----------
    lhs
        Boxes on the last axis, of size 4.
    rhs
        Boxes on the last axis, of size 4.
    format
        Whether boxes are ``corner`` (x1, y1, x2, y2) or ``center`` (x, y, width, height).

    >>> one, two = mx.nd.array([[0, 0, 2, 2]]), mx.nd.array([[0, 0, 2, 1], [5, 5, 6, 6]])
    >>> mx.nd.contrib.box_iou(one, two).asnumpy()
    array([[0.5, 0. ]], dtype=float32)
    """
    if lhs.shape[-1] != 4 or rhs.shape[-1] != 4:
        raise ShapeError(
            f"Shape inconsistent in _contrib_box_iou: boxes need a last axis of 4, got "
            f"{list(lhs.shape)} and {list(rhs.shape)}."
        )
    first, second = lhs.reshape(-1, 4), rhs.reshape(-1, 4)
    if format == "center":
        first, second = to_corners(first), to_corners(second)
    iou = pairwise_iou(first, second)
    # An empty union has no overlap.
    return iou.nan_to_num_(0.0).reshape(lhs.shape[:-1] + rhs.shape[:-1])


box_iou.gradient(no_gradient)


@box_iou.infer_outputs
def box_iou_shape(lhs: Shape | None, rhs: Shape | None, **_: str) -> Shape | None:
    """Every box of one with every box of the other."""
    return None if lhs is None or rhs is None else lhs[:-1] + rhs[:-1]


@op("_contrib_box_encode", outputs=2)
def box_encode(
    samples: Tensor, matches: Tensor, anchors: Tensor, refs: Tensor, means: Tensor, stds: Tensor
) -> tuple[Tensor, Tensor]:
    """Encode matched reference boxes as normalized offsets of anchors, with a mask of positives.

    Parameters
    ----------
    samples
        1 for positive anchors, of shape ``(batch, anchors)``.
    matches
        Number of the reference box that each anchor is matched with.
    anchors
        Anchors as corners, of shape ``(batch, anchors, 4)``.
    refs
        Reference boxes as corners, of shape ``(batch, boxes, 4)``.
    means
        Numbers subtracted from the offsets of x, y, width and height.
    stds
        Numbers that the offsets are divided by.

    >>> anchors = refs = mx.nd.array([[[0, 0, 2, 2]]])
    >>> t, m = mx.nd.contrib.box_encode(mx.nd.ones((1, 1)), mx.nd.zeros((1, 1)), anchors, refs,
    ...                                 mx.nd.zeros(4), mx.nd.ones(4))
    >>> t.asnumpy(), m.asnumpy()
    (array([[[0., 0., 0., 0.]]], dtype=float32), array([[[1., 1., 1., 1.]]], dtype=float32))
    """
    chosen = _rows_at(refs, matches.long().clamp(0, refs.shape[1] - 1))
    box, anchor = to_centres(chosen), to_centres(anchors)
    shift = (box[..., :2] - anchor[..., :2]) / anchor[..., 2:]
    scale = torch.log(box[..., 2:] / anchor[..., 2:])
    targets = (torch.cat([shift, scale], -1) - means) / stds
    positive = (samples > 0.5).unsqueeze(-1).expand_as(targets)
    return targets.masked_fill(~positive, 0.0), positive.to(targets.dtype)


box_encode.gradient(no_gradient)


@box_encode.infer_outputs
def box_encode_shape(samples: Shape | None, *_: Shape | None) -> Shape | None:
    """Four numbers per sample."""
    return None if samples is None else (*samples, 4)


@op("_contrib_box_decode")
def box_decode(
    data: Tensor,
    anchors: Tensor,
    *,
    std0: float = 1.0,
    std1: float = 1.0,
    std2: float = 1.0,
    std3: float = 1.0,
    clip: float = -1.0,
    format: Format = "center",
) -> Tensor:
    """Apply predicted offsets to anchors and give corner boxes.

    Parameters
    ----------
    data
        Offsets of shape ``(batch, anchors, 4)``.
    std0
        Factor of the offset in x.
    std1
        Factor of the offset in y.
    std2
        Factor of the offset of the width.
    std3
        Factor of the offset of the height.
    clip
        Upper limit of the offsets of width and height before exponentials; at 0 or below, none.
    format
        Whether anchors are ``center`` (x, y, width, height) or ``corner`` (x1, y1, x2, y2).

    >>> offsets, anchors = mx.nd.zeros((1, 1, 4)), mx.nd.array([[[1, 1, 2, 2]]])
    >>> mx.nd.contrib.box_decode(offsets, anchors).asnumpy()
    array([[[0., 0., 2., 2.]]], dtype=float32)
    """
    # Rows of coordinates, (4, batch, boxes), are what vector kernels like.
    anchor = anchors.movedim(-1, 0).contiguous()
    shift, growth = data.movedim(-1, 0).contiguous().tensor_split(2)
    if format == "corner":
        low, high = anchor.tensor_split(2)
        center, size = (low + high) * 0.5, high - low
    else:
        center, size = anchor.tensor_split(2)
    std = data.new_tensor((std0, std1, std2, std3)).view(4, *[1] * (data.ndim - 1))
    growth = growth * std[2:]
    if clip > 0:
        growth.clamp_(max=clip)
    middle = shift * std[:2] * size + center
    half = growth.exp_() * size * 0.5
    return torch.cat([middle - half, middle + half]).movedim(0, -1).contiguous()


box_decode.gradient(no_gradient)


@box_decode.infer_outputs
def box_decode_shape(data: Shape | None, anchors: Shape | None, **_: object) -> Shape | None:
    """As the offsets."""
    return data


def match_greedily(score: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    """Pair rows with columns of ``(batch, n, m)``: always the best pair left, above a threshold.

    Returns the column of each row and the row of each column, -1 for none. Of equal scores the
    first row, then the first column wins. A pair that is best in its row and in its column is
    what a one-by-one search would find sooner or later, so all such pairs are settled at once.
    """
    score = score.masked_fill(score <= threshold, -torch.inf)
    batch, n, m = score.shape
    row = score.new_full((batch, n), -1, dtype=torch.long)
    column = score.new_full((batch, m), -1, dtype=torch.long)
    while n and m:
        best_score, best_row = score.max(1)
        best_column = score.argmax(2)
        mutual = best_column.gather(1, best_row) == torch.arange(m, device=score.device)
        image, j = (mutual & (best_score > -torch.inf)).nonzero(as_tuple=True)
        if not len(j):
            break
        i = best_row[image, j]
        row[image, i], column[image, j] = j, i
        score[image, i] = -torch.inf
        score[image, :, j] = -torch.inf
    return row, column


@op("_contrib_bipartite_matching", outputs=2)
def bipartite_matching(
    data: Tensor, *, is_ascend: bool = False, threshold: float, topk: int = -1
) -> tuple[Tensor, Tensor]:
    """Match rows with columns greedily by score; gives each its partner, or -1.

    Parameters
    ----------
    data
        Scores of shape ``(batch, rows, columns)``.
    is_ascend
        Whether small scores are the better ones.
    threshold
        Scores on the wrong side of this match nothing.
    topk
        Largest number of matches; -1 means no limit.

    >>> scores = mx.nd.array([[.5, .6], [.1, .2], [.3, .4]])
    >>> rows, columns = mx.nd.contrib.bipartite_matching(scores, threshold=1e-12)
    >>> rows.asnumpy(), columns.asnumpy()
    (array([ 1., -1.,  0.], dtype=float32), array([2., 0.], dtype=float32))
    """
    if not data.numel():
        columns = (*data.shape[:-2], data.shape[-1])
        return data.new_full(data.shape[:-1], -1.0), data.new_full(columns, -1.0)
    score = data.reshape(-1, *data.shape[-2:])
    score, limit = (-score, -threshold) if is_ascend else (score, threshold)
    row, column = match_greedily(score, limit)
    if 0 < topk < row.shape[1]:  # MXNet stops after one pair more than topk
        reached = score.gather(2, row.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        reached = reached.masked_fill(row < 0, -torch.inf)
        worse = reached.sort(dim=1, descending=True, stable=True)[1][:, topk + 1 :]
        row.scatter_(1, worse, -1)
        partner = row.gather(1, column.clamp(min=0))
        column[partner != torch.arange(column.shape[1], device=data.device)] = -1
    return (
        row.to(data.dtype).reshape(data.shape[:-1]),
        column.to(data.dtype).reshape(*data.shape[:-2], data.shape[-1]),
    )


bipartite_matching.gradient(no_gradient)


@bipartite_matching.infer_outputs
def bipartite_matching_shape(data: Shape | None, **_: object) -> list[Shape] | None:
    """One partner for each row, and one for each column."""
    return None if data is None else [data[:-1], (*data[:-2], data[-1])]
