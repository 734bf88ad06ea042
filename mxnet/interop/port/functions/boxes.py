"""Boxes of detectors: overlaps, suppression, priors and detections."""

import torch
from torch import Tensor


def box_iou(a: Tensor, b: Tensor) -> Tensor:
    """Return the overlap of each box of `a` with each of `b`, over their union."""
    low = torch.maximum(a[..., :, None, :2], b[..., None, :, :2])
    high = torch.minimum(a[..., :, None, 2:], b[..., None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    area_a = (a[..., 2:] - a[..., :2]).prod(-1)
    area_b = (b[..., 2:] - b[..., :2]).prod(-1)
    union = area_a[..., :, None] + area_b[..., None, :] - shared
    return torch.where(union > 0, shared / union, 0.0)


def keep_best(boxes: Tensor, classes: Tensor | None, threshold: float) -> Tensor:
    """Return which boxes, the best first, overlap no better one of their class."""
    conflict = box_iou(boxes, boxes) > threshold
    if classes is not None:
        conflict &= classes[..., :, None] == classes[..., None, :]
    conflict = conflict.triu(diagonal=1)
    keep = torch.ones_like(boxes[..., 0], dtype=torch.bool)
    for i in range(boxes.shape[-2]):
        keep = keep & ~(conflict[..., i, :] & keep[..., i, None])
    return keep


def box_nms(
    rows: Tensor,
    threshold: float = 0.5,
    valid_threshold: float = 0.0,
    topk: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = -1,
    background_id: int = -1,
    force_suppress: bool = False,
    from_center: bool = False,
) -> Tensor:
    """Keep the best of boxes that overlap: survivors by score, then rows of -1."""
    shape = rows.shape
    rows = rows.reshape(-1, *shape[-2:])
    score = rows[..., score_index]
    valid = score > valid_threshold
    if id_index >= 0:
        valid = valid & (rows[..., id_index] != background_id)
    score = score.masked_fill(~valid, -torch.inf)
    order = score.argsort(dim=1, descending=True, stable=True)
    rows = rows.gather(1, order[..., None].expand_as(rows))
    head = rows[:, :topk] if topk > 0 else rows
    boxes = head[..., coord_start : coord_start + 4]
    if from_center:
        center, size = boxes.split(2, -1)
        boxes = torch.cat([center - size / 2, center + size / 2], -1)
    classes = None if force_suppress or id_index < 0 else head[..., id_index]
    keep = (
        keep_best(boxes, classes, threshold)
        & valid.gather(1, order)[:, : head.shape[1]]
    )
    first = keep.int().argsort(dim=1, descending=True, stable=True)
    head = head.masked_fill(~keep[..., None], -1.0)
    rest = torch.full_like(rows[:, head.shape[1] :], -1.0)
    head = head.gather(1, first[..., None].expand_as(head))
    return torch.cat([head, rest], 1).reshape(shape)


@torch.no_grad()
def multibox_prior(
    x: Tensor,
    sizes: tuple[float, ...],
    ratios: tuple[float, ...],
    clip: bool = False,
    steps: tuple[float, float] = (-1.0, -1.0),
    offsets: tuple[float, float] = (0.5, 0.5),
) -> Tensor:
    """Return boxes of several sizes and ratios around each place of a feature map."""
    height, width = x.shape[2:]
    step_y = steps[0] if steps[0] > 0 else 1 / height
    step_x = steps[1] if steps[1] > 0 else 1 / width
    center_y = (torch.arange(height, device=x.device).to(x.dtype) + offsets[0]) * step_y
    center_x = (torch.arange(width, device=x.device).to(x.dtype) + offsets[1]) * step_x
    # All sizes at the first ratio, then the other ratios at the first size.
    shapes = [(s, ratios[0] ** 0.5) for s in sizes]
    shapes += [(sizes[0], r**0.5) for r in ratios[1:]]
    half_w = x.new_tensor([s * height / width * r / 2 for s, r in shapes])
    half_h = x.new_tensor([s / r / 2 for s, r in shapes])
    cx, cy = center_x[None, :, None], center_y[:, None, None]
    sides = torch.broadcast_tensors(cx - half_w, cy - half_h, cx + half_w, cy + half_h)
    boxes = torch.stack(sides, -1).reshape(1, -1, 4)
    return boxes.clamp(0, 1) if clip else boxes


@torch.no_grad()
def multibox_detection(
    probabilities: Tensor,
    offsets: Tensor,
    anchors: Tensor,
    clip: bool = True,
    threshold: float = 0.01,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: tuple[float, float, float, float] = (0.1, 0.1, 0.2, 0.2),
    topk: int = -1,
) -> Tensor:
    """Return rows of class, score and box; class -1 is background or suppressed."""
    score, label = probabilities[:, 1:].max(1)
    valid = score >= threshold
    low, high = anchors.reshape(1, -1, 4).split(2, -1)
    moves = offsets.reshape(len(offsets), -1, 4) * offsets.new_tensor(variances)
    center = moves[..., :2] * (high - low) + (low + high) / 2
    half = moves[..., 2:].exp() * (high - low) / 2
    boxes = torch.cat([center - half, center + half], -1)
    boxes = boxes.clamp(0, 1) if clip else boxes
    rows = torch.cat([label.to(score.dtype)[..., None], score[..., None], boxes], -1)
    rank = score.masked_fill(~valid, -torch.inf)
    order = rank.argsort(dim=1, descending=True, stable=True)
    rows = rows.gather(1, order[..., None].expand_as(rows))
    valid = valid.gather(1, order)
    rows = rows.masked_fill(~valid[..., None], -1.0)
    if not 0 < nms_threshold <= 1:
        return rows
    head = rows[:, :topk] if topk > 0 else rows
    classes = None if force_suppress else head[..., 0]
    keep = keep_best(head[..., 2:], classes, nms_threshold)
    label = torch.where(keep, head[..., 0], -1.0)
    label = torch.cat([label, torch.full_like(rows[:, head.shape[1] :, 0], -1.0)], 1)
    return torch.cat([label[..., None], rows[..., 1:]], -1)


@torch.no_grad()
def box_decode(
    offsets: Tensor,
    anchors: Tensor,
    stds: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0),
    clip: float = -1.0,
    from_center: bool = True,
) -> Tensor:
    """Return the corners of boxes that lie at offsets from anchors."""
    center, size = anchors.split(2, -1)
    if not from_center:
        center, size = (center + size) / 2, size - center
    move, growth = (offsets * offsets.new_tensor(stds)).split(2, -1)
    growth = growth.clamp(max=clip) if clip > 0 else growth
    center, half = move * size + center, growth.exp() * size / 2
    return torch.cat([center - half, center + half], -1)
