"""Boxes: overlap, non-maximum suppression, matching, and encoding as offsets of anchors.

Boxes are corners ``(xmin, ymin, xmax, ymax)`` along the last axis.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ...error import ShapeError
from ..declare import op
from ..shapes import Shape, same
from ..tracing import is_traced, repeat_while

# Maximum number of boxes for one matrix of all pairs; beyond, blocks are faster.
MAX_MATRIX = 512
BLOCK = 256
# Pairs per step: enough to amortize the calls, few enough for the cache.
MAX_PAIRS = 1 << 18
# Minimum number of pairs for a search by class.
FEW_PAIRS = 1 << 16
# Pairs that overlap in x are enumerated if they are fewer than 1 in this number.
SPARSE = 16
MAX_LISTED = 1 << 20


def to_corners(boxes: Tensor) -> Tensor:
    """Convert boxes from center and size to corners."""
    center, half = boxes[..., :2], boxes[..., 2:] * 0.5
    return torch.cat([center - half, center + half], -1)


def to_centres(boxes: Tensor) -> Tensor:
    """Convert boxes from corners to center and size."""
    low, high = boxes[..., :2], boxes[..., 2:]
    return torch.cat([(low + high) * 0.5, high - low], -1)


def pairwise_iou(lhs: Tensor, rhs: Tensor, border: float = 0.0) -> Tensor:
    """Return intersection over union of each of ``(..., n, 4)`` with each of ``(..., m, 4)``.

    `border` is 1 if boxes include the pixels of their far edges.
    """
    # One contiguous row per coordinate: kernels do not vectorize strided ones.
    a_low, a_high = lhs.movedim(-1, 0).contiguous().unsqueeze(-1).tensor_split(2)
    b_low, b_high = rhs.movedim(-1, 0).contiguous().unsqueeze(-2).tensor_split(2)
    size = torch.minimum(a_high, b_high).sub_(torch.maximum(a_low, b_low))
    size_a, size_b = a_high - a_low, b_high - b_low
    if border:
        for each in (size, size_a, size_b):
            each.add_(border)
    width, height = size.clamp_(min=0).unbind()
    common = width.mul_(height)
    union = torch.add(size_a.prod(0), size_b.prod(0), out=height).sub_(common)
    return common.div_(union)


def best_first(score: Tensor, most: int) -> Tensor:
    """Return the positions of the `most` highest scores of each row, in stable order."""
    if score.dtype != torch.float32 or score.shape[-1] < 256:
        return score.sort(dim=-1, descending=True, stable=True)[1][..., :most]
    # Unique integers with the order of the floats, then of positions: their partial sort is many
    # times faster than a stable sort.
    bits = (score + 0.0).view(torch.int32)  # adding 0 converts -0 to 0
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    position = torch.arange(score.shape[-1] - 1, -1, -1, device=score.device)
    return ((bits.long() << 32) + position).topk(most, dim=-1)[1]


def keep_greedily(
    boxes: Tensor,
    threshold: float,
    ids: Tensor | None = None,
    border: float = 0.0,
    most: int | None = None,
) -> Tensor:
    """Return which boxes survive if each survivor removes the later ones that overlap it.

    Boxes ``(batch, n, 4)`` are sorted, best first; with `ids` only boxes of the same class compete.
    `most` is the maximum number of survivors: the search may stop there; all later boxes are
    removed.
    """
    batch, n = boxes.shape[:2]
    if is_traced():
        return _keep_by_loop(_conflicts(boxes, boxes, ids, ids, threshold, border))
    if ids is not None and most is None and batch * n * n > FEW_PAIRS:
        result = _keep_by_class(boxes, ids, threshold, border)
        if result is not None:
            return result
    if n > MAX_MATRIX:
        classes = [None] * batch if ids is None else ids
        pairs = zip(boxes, classes, strict=True)
        if most is not None and most < n:
            masks = [_keep_first(b, c, threshold, border, most) for b, c in pairs]
        else:
            masks = [_keep_by_blocks(b, c, threshold, border) for b, c in pairs]
        return torch.stack(masks)
    step = max(1, MAX_PAIRS // max(1, n * n))
    if step >= batch:
        return _keep_in_block(boxes, ids, threshold, border)
    parts = [slice(i, i + step) for i in range(0, batch, step)]
    return torch.cat([_keep_in_block(boxes[p], _part(ids, p), threshold, border) for p in parts])


def _keep_by_class(boxes: Tensor, ids: Tensor, threshold: float, border: float) -> Tensor | None:
    """Search in each class of each image separately; return None if that saves little."""
    batch, n = ids.shape
    kinds, kind = torch.unique(ids, return_inverse=True)
    own = kind + len(kinds) * torch.arange(batch, device=ids.device).unsqueeze(1)
    own, order = own.flatten().sort(stable=True)
    counts = torch.bincount(own, minlength=batch * len(kinds))
    longest = int(counts.max())
    if longest > MAX_MATRIX or len(counts) * longest**2 * 4 > batch * n * n:
        return None
    # A table with a row for each class, padded with a later box.
    rank = torch.arange(len(own), device=own.device) - (counts.cumsum(0) - counts)[own]
    slot = own * longest + rank
    table = order.new_zeros(len(counts) * longest).scatter_(0, slot, order)
    rows = boxes.reshape(-1, 4)[table].reshape(len(counts), longest, 4)
    keep = keep_greedily(rows, threshold, border=border).flatten()
    result = keep.new_empty(batch * n)
    result[order] = keep[slot]
    return result.view(batch, n)


def _part(ids: Tensor | None, which: slice | Tensor) -> Tensor | None:
    return None if ids is None else ids[which]


def _conflicts(
    first: Tensor,
    second: Tensor,
    ids1: Tensor | None,
    ids2: Tensor | None,
    threshold: float,
    border: float,
) -> Tensor:
    """Return 1 if one box removes another, else 0, as floats, which reduce faster than bools."""
    removed = pairwise_iou(first, second, border).gt_(threshold)
    if ids1 is not None and ids2 is not None:
        alike = torch.empty_like(removed)
        removed *= torch.eq(ids1.unsqueeze(-1), ids2.unsqueeze(-2), out=alike)
    return removed


def _keep_in_block(boxes: Tensor, ids: Tensor | None, threshold: float, border: float) -> Tensor:
    """Solve ``keep[j] = not any(keep[i] and conflict[i, j] for i < j)`` by iteration.

    The first k elements are final after k iterations; chains of conflicts are short in practice.
    """
    conflict = _conflicts(boxes, boxes, ids, ids, threshold, border).triu_(1)
    conflict = conflict.to(torch.float32)
    keep = conflict.new_ones(boxes.shape[:-1])
    while True:
        again = torch.matmul(keep.unsqueeze(-2), conflict).squeeze(-2).eq_(0)
        if torch.equal(again, keep):
            return keep.bool()
        keep = again


def _keep_by_loop(removed: Tensor) -> Tensor:
    """Same result as `_keep_in_block`, as one traced loop."""
    conflict = removed.bool().triu(1)
    keep = conflict.new_ones(conflict.shape[:-1])

    def holds(keep: Tensor, previous: Tensor, conflict: Tensor) -> Tensor:
        return (keep != previous).any()

    def step(keep: Tensor, previous: Tensor, conflict: Tensor) -> tuple[Tensor, Tensor]:
        return ~(conflict & keep.unsqueeze(-1)).any(-2), keep.clone()

    return repeat_while(holds, step, (keep, torch.zeros_like(keep)), (conflict,))[0]


def _keep_first(
    boxes: Tensor, ids: Tensor | None, threshold: float, border: float, most: int
) -> Tensor:
    """Process block after block, without boxes removed so far, until `most` have survived."""
    keep = torch.zeros(len(boxes), dtype=torch.bool, device=boxes.device)
    best, best_ids = boxes[:0], _part(ids, slice(0))
    for start in range(0, len(boxes), BLOCK):
        block = slice(start, start + BLOCK)
        position = torch.arange(start, min(start + BLOCK, len(boxes)), device=boxes.device)
        part, part_ids = boxes[block], _part(ids, block)
        for i in range(0, len(best), MAX_PAIRS // BLOCK):
            some = slice(i, i + MAX_PAIRS // BLOCK)
            clash = _conflicts(best[some], part, _part(best_ids, some), part_ids, threshold, border)
            left = clash.amax(0).eq(0).nonzero().squeeze(1)
            part, part_ids, position = part[left], _part(part_ids, left), position[left]
        chosen = _keep_in_block(part, part_ids, threshold, border)
        keep[position[chosen]] = True
        best = torch.cat([best, part[chosen]])
        if best_ids is not None and part_ids is not None:
            best_ids = torch.cat([best_ids, part_ids[chosen]])
        if len(best) >= most:
            break
    return keep


def _keep_by_blocks(boxes: Tensor, ids: Tensor | None, threshold: float, border: float) -> Tensor:
    """Decide the best block, remove boxes that its survivors overlap, and repeat for the rest."""
    keep = torch.zeros(len(boxes), dtype=torch.bool, device=boxes.device)
    position = torch.arange(len(boxes), device=boxes.device)
    swept = 2 * len(boxes)
    while len(position):
        # A sweep costs about as much as a block: try it whenever half of all is decided.
        if MAX_MATRIX < len(position) <= swept // 2 and threshold >= 0:
            swept = len(position)
            pairs = _Sweep(boxes, ids, border)
            if pairs.total * SPARSE < len(position) ** 2:
                keep[position[pairs.keep(threshold)]] = True
                break
        block = slice(None, BLOCK)
        chosen = _keep_in_block(boxes[block], _part(ids, block), threshold, border)
        keep[position[block][chosen]] = True
        best, best_ids = boxes[block][chosen], None if ids is None else ids[block][chosen]
        rest = slice(BLOCK, None)
        boxes, position, ids = boxes[rest], position[rest], _part(ids, rest)
        step = max(1, MAX_PAIRS // len(best))
        parts = [slice(i, i + step) for i in range(0, len(boxes), step)]
        if parts:
            gone = [
                _conflicts(best, boxes[p], best_ids, _part(ids, p), threshold, border).amax(0)
                for p in parts
            ]
            left = torch.cat(gone).eq(0).nonzero().squeeze(1)
            boxes, position, ids = boxes[left], position[left], _part(ids, left)
    return keep


class _Sweep:
    """The pairs of boxes of the same class that overlap in x, often few among all pairs."""

    def __init__(self, boxes: Tensor, ids: Tensor | None, border: float) -> None:
        x1, x2 = boxes[:, 0].double(), boxes[:, 2].double() + border
        if ids is not None:  # disjoint ranges of x for each class
            lane = torch.unique(ids, return_inverse=True)[1]
            lane = lane * (torch.maximum(x1.max(), x2.max()) - x1.min() + 1.0)
            x1, x2 = x1 + lane, x2 + lane
        x1, self.order = x1.sort()
        last = torch.searchsorted(x1, x2[self.order], right=True)
        self.first = torch.arange(1, len(boxes) + 1, device=boxes.device)
        self.counts = (last - self.first).clamp_(min=0)
        self.ends = self.counts.cumsum(0)
        self.total = int(self.ends[-1])
        self.boxes, self.border = boxes, border

    def keep(self, threshold: float) -> Tensor:
        """Return which boxes survive."""
        better, worse = self._edges(threshold)
        keep = torch.ones(len(self.boxes), dtype=torch.bool, device=self.boxes.device)
        while True:
            again = torch.ones_like(keep)
            again[worse[keep[better]]] = False
            if torch.equal(again, keep):
                return keep
            keep = again

    def _edges(self, threshold: float) -> tuple[Tensor, Tensor]:
        cuts = torch.arange(0, self.total, MAX_LISTED, device=self.ends.device)
        bounds = sorted({*torch.searchsorted(self.ends, cuts, right=True).tolist(), len(self.ends)})
        results = [self._edges_from(a, b, threshold) for a, b in pairwise(bounds)]
        if not results:
            return self.order[:0], self.order[:0]
        one, two = (torch.cat(side) for side in zip(*results, strict=True))
        return torch.minimum(one, two), torch.maximum(one, two)

    def _edges_from(self, begin: int, end: int, threshold: float) -> tuple[Tensor, Tensor]:
        boxes, border, counts = self.boxes[self.order], self.border, self.counts[begin:end]
        one = torch.repeat_interleave(counts) + begin
        offset = self.first - (self.ends - self.counts)
        two = torch.arange(len(one), device=one.device) + offset[one] + self.ends[begin] - counts[0]
        y1, y2 = boxes[:, 1].contiguous(), boxes[:, 3] + border
        meet = ((y1[one] < y2[two]) & (y1[two] < y2[one])).nonzero().squeeze(1)
        one, two = one[meet], two[meet]
        iou = pairwise_iou(boxes[one].unsqueeze(1), boxes[two].unsqueeze(1), border)
        over = iou.flatten().gt(threshold).nonzero().squeeze(1)
        return self.order[one[over]], self.order[two[over]]


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
    """Apply non-maximum suppression; survivors come first, by score, then rows of -1.

    Parameters
    ----------
    data
        Rows with a score and a box, of shape ``(..., boxes, width)``.
    overlap_thresh
        Boxes that overlap a better one by more than this are suppressed.
    valid_thresh
        Boxes with scores up to this threshold are dropped.
    topk
        Number of best boxes to consider; -1 means all.
    coord_start
        Position of the box in a row.
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
        order, valid = _rank(rows, valid_thresh, topk, score_index, id_index, background_id)
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
        out = _convert_boxes(out, coord_start, to_corners if in_format == "center" else to_centres)
    out = out.masked_fill(~keep.unsqueeze(-1), -1.0)
    return F.pad(out, (0, 0, 0, n - out.shape[1]), value=-1.0).reshape(data.shape)


def _rank(
    rows: Tensor, valid_thresh: float, topk: int, score_index: int, id_index: int, background: int
) -> tuple[Tensor, Tensor]:
    """Return the positions of candidates by score, and which of them are valid."""
    score = rows[..., score_index]
    valid = score > valid_thresh
    if id_index >= 0:
        valid = valid & (rows[..., id_index] != background)
    counts = valid.sum(1, keepdim=True)
    most = valid.shape[1]
    if most and not is_traced():
        most = int(counts.max()) if len(valid) else 0
    most = min(most, topk) if topk > 0 else most
    order = best_first(score.masked_fill(~valid, -torch.inf), most)
    return order, torch.arange(most, device=rows.device) < counts


def _convert_boxes(rows: Tensor, start: int, convert: Callable[[Tensor], Tensor]) -> Tensor:
    """Convert the boxes in rows; the gradient is that of the identity."""
    output = rows.detach().clone()
    boxes = output[..., start : start + 4]
    # MXNet does not convert rows with a negative first coordinate, which mark removed boxes.
    boxes.copy_(boxes.where(boxes[..., :1] < 0, convert(boxes)))
    return output + (rows - rows.detach())  # adding 0 attaches the gradient


def _rows_at(rows: Tensor, index: Tensor) -> Tensor:
    """Gather rows of ``(batch, n, width)`` at positions ``(batch, m)``."""
    return rows.gather(1, index.unsqueeze(-1).expand(-1, -1, rows.shape[-1]))


def no_gradient(grad: Tensor, out: Tensor, *inputs: Tensor, **_: object) -> tuple[Tensor, ...]:
    """Return zeros: boxes and matching have no gradient in MXNet."""
    return tuple(torch.zeros_like(t) for t in inputs)


@op("_contrib_box_iou", precision="widest")
def box_iou(lhs: Tensor, rhs: Tensor, *, format: Format = "corner") -> Tensor:
    """Compute the intersection over union of all pairs of boxes of two arrays.

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
    """The shape of all pairs of boxes."""
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
        Index of the reference box matched with each anchor.
    anchors
        Anchors as corners, of shape ``(batch, anchors, 4)``.
    refs
        Reference boxes as corners, of shape ``(batch, boxes, 4)``.
    means
        Means subtracted from the offsets of x, y, width and height.
    stds
        Divisors of the offsets.

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
    """Four elements per sample."""
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
    """Decode predicted offsets of anchors to corner boxes.

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
        Upper limit of the offsets of width and height; 0 or negative: no limit.
    format
        Whether anchors are ``center`` (x, y, width, height) or ``corner`` (x1, y1, x2, y2).

    >>> offsets, anchors = mx.nd.zeros((1, 1, 4)), mx.nd.array([[[1, 1, 2, 2]]])
    >>> mx.nd.contrib.box_decode(offsets, anchors).asnumpy()
    array([[[0., 0., 2., 2.]]], dtype=float32)
    """
    # Rows of coordinates, (4, batch, boxes), for vectorized kernels.
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
    """The output has the shape of the offsets."""
    return data


def match_greedily(score: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    """Match rows with columns of ``(batch, n, m)`` greedily, above a threshold.

    Returns the column of each row and the row of each column, or -1. Of equal scores the first row,
    then the first column wins. A pair that is the best of its row and column is part of the
    sequential result, so all such pairs are matched in one step.
    """
    score = score.masked_fill(score <= threshold, -torch.inf)
    batch, n, m = score.shape
    row = score.new_full((batch, n), -1, dtype=torch.long)
    column = score.new_full((batch, m), -1, dtype=torch.long)
    if is_traced():
        return _match_by_loop(score, row, column)
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


def _match_by_loop(score: Tensor, row: Tensor, column: Tensor) -> tuple[Tensor, Tensor]:
    """Same result as the loop in `match_greedily`, as one traced loop."""

    def holds(score: Tensor, row: Tensor, column: Tensor) -> Tensor:
        return (score > -torch.inf).any()

    def step(score: Tensor, row: Tensor, column: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        n, m = score.shape[1:]
        best_score, best_row = score.max(1)
        best_column = score.argmax(2)
        mutual = best_column.gather(1, best_row) == torch.arange(m, device=score.device)
        mutual = mutual & (best_score > -torch.inf)
        own = best_row.gather(1, best_column) == torch.arange(n, device=score.device)
        own = own & mutual.gather(1, best_column)
        settled = own.unsqueeze(2) | mutual.unsqueeze(1)
        return (
            score.masked_fill(settled, -torch.inf),
            torch.where(own, best_column, row),
            torch.where(mutual, best_row, column),
        )

    _, row, column = repeat_while(holds, step, (score, row, column))
    return row, column


@op("_contrib_bipartite_matching", outputs=2)
def bipartite_matching(
    data: Tensor, *, is_ascend: bool = False, threshold: float, topk: int = -1
) -> tuple[Tensor, Tensor]:
    """Match rows with columns greedily by score; return the partner of each, or -1.

    Parameters
    ----------
    data
        Scores of shape ``(batch, rows, columns)``.
    is_ascend
        Whether smaller scores are better.
    threshold
        Threshold of scores for a match.
    topk
        Maximum number of matches; -1 means no limit.

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
    """One partner per row, and one per column."""
    return None if data is None else [data[:-1], (*data[:-2], data[-1])]
