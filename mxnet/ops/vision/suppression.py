"""Overlap of boxes and greedy non-maximum suppression, shared by all detection operators.

Boxes are corners ``(xmin, ymin, xmax, ymax)`` in the last axis.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

# Up to here one matrix of all pairs is cheapest; beyond, blocks go one by one.
MAX_MATRIX = 512
BLOCK = 256
# Pairs looked at together: many enough to outweigh the calls, few enough for the cache.
MAX_PAIRS = 1 << 18
# So few pairs are not worth telling classes apart first.
FEW_PAIRS = 1 << 16
# Pairs that meet in x are listed one by one when they are fewer than one in this many.
SPARSE = 16
MAX_LISTED = 1 << 20


def to_corners(boxes: Tensor) -> Tensor:
    """Return boxes given by center and size as corners."""
    center, half = boxes[..., :2], boxes[..., 2:] * 0.5
    return torch.cat([center - half, center + half], -1)


def to_centres(boxes: Tensor) -> Tensor:
    """Return boxes given by corners as center and size."""
    low, high = boxes[..., :2], boxes[..., 2:]
    return torch.cat([(low + high) * 0.5, high - low], -1)


def pairwise_iou(lhs: Tensor, rhs: Tensor, border: float = 0.0) -> Tensor:
    """Return intersection over union of each of ``(..., n, 4)`` with each of ``(..., m, 4)``.

    `border` is 1 where a box includes the pixels of its far edges.
    """
    # Each coordinate as a row of its own: strided ones keep kernels from using vectors.
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
    """Return the places of the `most` highest of each row, equals in the order they came in."""
    if score.dtype != torch.float32 or score.shape[-1] < 256:
        return score.sort(dim=-1, descending=True, stable=True)[1][..., :most]
    # As integers that order like the floats, with the place behind them, no two are equal:
    # a partial sort of those is many times faster than a stable sort of all.
    bits = (score + 0.0).view(torch.int32)  # plus zero turns -0 to 0
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    place = torch.arange(score.shape[-1] - 1, -1, -1, device=score.device)
    return ((bits.long() << 32) + place).topk(most, dim=-1)[1]


def keep_greedily(
    boxes: Tensor,
    threshold: float,
    ids: Tensor | None = None,
    border: float = 0.0,
    most: int | None = None,
) -> Tensor:
    """Return which boxes survive when each survivor removes later ones that overlap it.

    Boxes ``(batch, n, 4)`` come best first; with `ids` only boxes of one class compete. With
    `most` the search may end, and all later boxes count as removed, once so many survived.
    """
    batch, n = boxes.shape[:2]
    if ids is not None and most is None and batch * n * n > FEW_PAIRS:
        found = _keep_by_class(boxes, ids, threshold, border)
        if found is not None:
            return found
    if n > MAX_MATRIX:
        classes = [None] * batch if ids is None else ids
        pairs = zip(boxes, classes, strict=True)
        if most is not None and most < n:
            kept = [_keep_first(b, c, threshold, border, most) for b, c in pairs]
        else:
            kept = [_keep_by_blocks(b, c, threshold, border) for b, c in pairs]
        return torch.stack(kept)
    step = max(1, MAX_PAIRS // max(1, n * n))
    if step >= batch:
        return _keep_in_block(boxes, ids, threshold, border)
    parts = [slice(i, i + step) for i in range(0, batch, step)]
    return torch.cat([_keep_in_block(boxes[p], _part(ids, p), threshold, border) for p in parts])


def _keep_by_class(boxes: Tensor, ids: Tensor, threshold: float, border: float) -> Tensor | None:
    """Search in every class of every image on its own, or give None where that saves little."""
    batch, n = ids.shape
    kinds, kind = torch.unique(ids, return_inverse=True)
    own = kind + len(kinds) * torch.arange(batch, device=ids.device).unsqueeze(1)
    own, order = own.flatten().sort(stable=True)
    counts = torch.bincount(own, minlength=batch * len(kinds))
    longest = int(counts.max())
    if longest > MAX_MATRIX or len(counts) * longest**2 * 4 > batch * n * n:
        return None
    # A table with a row for each class; what is left of a row repeats some box behind the last.
    rank = torch.arange(len(own), device=own.device) - (counts.cumsum(0) - counts)[own]
    slot = own * longest + rank
    table = order.new_zeros(len(counts) * longest).scatter_(0, slot, order)
    rows = boxes.reshape(-1, 4)[table].reshape(len(counts), longest, 4)
    keep = keep_greedily(rows, threshold, border=border).flatten()
    found = keep.new_empty(batch * n)
    found[order] = keep[slot]
    return found.view(batch, n)


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
    """Return 1 where one box removes another, else 0; floats, which reduce faster than bools."""
    removed = pairwise_iou(first, second, border).gt_(threshold)
    if ids1 is not None and ids2 is not None:
        alike = torch.empty_like(removed)
        removed *= torch.eq(ids1.unsqueeze(-1), ids2.unsqueeze(-2), out=alike)
    return removed


def _keep_in_block(boxes: Tensor, ids: Tensor | None, threshold: float, border: float) -> Tensor:
    """Solve ``keep[j] = not any(keep[i] and conflict[i, j] for i < j)`` by repetition.

    The first k answers are final after k rounds; chains of conflicts are short in practice.
    """
    conflict = _conflicts(boxes, boxes, ids, ids, threshold, border).triu_(1)
    conflict = conflict.to(torch.float32)
    keep = conflict.new_ones(boxes.shape[:-1])
    while True:
        again = torch.matmul(keep.unsqueeze(-2), conflict).squeeze(-2).eq_(0)
        if torch.equal(again, keep):
            return keep.bool()
        keep = again


def _keep_first(
    boxes: Tensor, ids: Tensor | None, threshold: float, border: float, most: int
) -> Tensor:
    """Take block after block, cleared by the survivors so far, until `most` have survived."""
    keep = torch.zeros(len(boxes), dtype=torch.bool, device=boxes.device)
    best, best_ids = boxes[:0], _part(ids, slice(0))
    for start in range(0, len(boxes), BLOCK):
        block = slice(start, start + BLOCK)
        place = torch.arange(start, min(start + BLOCK, len(boxes)), device=boxes.device)
        part, part_ids = boxes[block], _part(ids, block)
        for i in range(0, len(best), MAX_PAIRS // BLOCK):
            some = slice(i, i + MAX_PAIRS // BLOCK)
            clash = _conflicts(best[some], part, _part(best_ids, some), part_ids, threshold, border)
            left = clash.amax(0).eq(0).nonzero().squeeze(1)
            part, part_ids, place = part[left], _part(part_ids, left), place[left]
        chosen = _keep_in_block(part, part_ids, threshold, border)
        keep[place[chosen]] = True
        best = torch.cat([best, part[chosen]])
        if best_ids is not None and part_ids is not None:
            best_ids = torch.cat([best_ids, part_ids[chosen]])
        if len(best) >= most:
            break
    return keep


def _keep_by_blocks(boxes: Tensor, ids: Tensor | None, threshold: float, border: float) -> Tensor:
    """Settle the best block, let its survivors clear the rest, and go on with what is left."""
    keep = torch.zeros(len(boxes), dtype=torch.bool, device=boxes.device)
    place = torch.arange(len(boxes), device=boxes.device)
    swept = 2 * len(boxes)
    while len(place):
        # A sweep costs about as much as a block: worth a try whenever half of all is settled.
        if MAX_MATRIX < len(place) <= swept // 2 and threshold >= 0:
            swept = len(place)
            pairs = _Sweep(boxes, ids, border)
            if pairs.total * SPARSE < len(place) ** 2:
                keep[place[pairs.keep(threshold)]] = True
                break
        block = slice(None, BLOCK)
        chosen = _keep_in_block(boxes[block], _part(ids, block), threshold, border)
        keep[place[block][chosen]] = True
        best, best_ids = boxes[block][chosen], None if ids is None else ids[block][chosen]
        rest = slice(BLOCK, None)
        boxes, place, ids = boxes[rest], place[rest], _part(ids, rest)
        step = max(1, MAX_PAIRS // len(best))
        parts = [slice(i, i + step) for i in range(0, len(boxes), step)]
        if parts:
            gone = [
                _conflicts(best, boxes[p], best_ids, _part(ids, p), threshold, border).amax(0)
                for p in parts
            ]
            left = torch.cat(gone).eq(0).nonzero().squeeze(1)
            boxes, place, ids = boxes[left], place[left], _part(ids, left)
    return keep


class _Sweep:
    """The pairs of boxes, of one class, whose extents meet in x: often few among all pairs."""

    def __init__(self, boxes: Tensor, ids: Tensor | None, border: float) -> None:
        x1, x2 = boxes[:, 0].double(), boxes[:, 2].double() + border
        if ids is not None:  # one lane of the x axis for each class
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
        found = [self._edges_from(a, b, threshold) for a, b in pairwise(bounds)]
        if not found:
            return self.order[:0], self.order[:0]
        one, two = (torch.cat(side) for side in zip(*found, strict=True))
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
