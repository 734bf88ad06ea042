"""Detectors: prior boxes, targets and detections of SSD, and region proposals."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor

from ...error import MXNetError, ShapeError
from ..attributes import Floats
from ..declare import op
from ..shapes import UNKNOWN, Shape
from ..tracing import is_traced
from .boxes import best_first, keep_greedily, match_greedily, no_gradient, pairwise_iou, to_centres


@op(
    "_contrib_MultiBoxPrior",
    "_npx_multibox_prior",
    precision="full",
    names_single_input=True,
    gradients_by_input=True,
    names_output=True,
)
def multi_box_prior(
    data: Tensor,
    *,
    sizes: Floats = (1,),
    ratios: Floats = (1,),
    clip: bool = False,
    steps: Floats = (-1, -1),
    offsets: Floats = (0.5, 0.5),
) -> Tensor:
    """Generate prior boxes of several sizes and ratios at each position of a feature map.

    Parameters
    ----------
    data
        The feature map, of shape ``(batch, channels, height, width)``; its values are ignored.
    sizes
        Sizes of the boxes relative to the image; combined with the first ratio.
    ratios
        Aspect ratios, width / height; combined with the first size.
    clip
        Whether to clip boxes to the image.
    steps
        Distance between centers in y and x; -1: evenly spaced.
    offsets
        Offset of the first center in y and x, in steps.

    >>> mx.nd.contrib.MultiBoxPrior(mx.nd.zeros((1, 3, 1, 1)), sizes=(0.5,)).asnumpy()
    array([[[0.25, 0.25, 0.75, 0.75]]], dtype=float32)
    """
    if data.ndim != 4:
        raise ShapeError(f"_contrib_MultiBoxPrior needs data of 4 axes, got {list(data.shape)}.")
    shape = tuple(data.shape[2:])
    # Do not cache tensors of a traced program.
    compute = _prior.__wrapped__ if is_traced() else _prior
    return compute(shape, sizes, ratios, clip, steps, offsets, data.dtype, data.device).clone()


# A network uses the same boxes in every step.
@functools.lru_cache(maxsize=64)
def _prior(
    shape: Shape,
    sizes: Floats,
    ratios: Floats,
    clip: bool,
    steps: Floats,
    offsets: Floats,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    height, width = shape
    kind = {"dtype": dtype, "device": device}
    step_y = steps[0] if steps[0] > 0 else 1.0 / height
    step_x = steps[1] if steps[1] > 0 else 1.0 / width
    y = (torch.arange(height, **kind) + offsets[0]) * step_y
    x = (torch.arange(width, **kind) + offsets[1]) * step_x
    root = [r**0.5 for r in ratios]
    # All sizes at the first ratio, then the other ratios at the first size.
    shapes = [(s, root[0]) for s in sizes] + [(sizes[0], r) for r in root[1:]]
    half_w = torch.tensor([s * height / width * r / 2 for s, r in shapes], **kind)
    half_h = torch.tensor([s / r / 2 for s, r in shapes], **kind)
    x, y = x.view(1, -1, 1), y.view(-1, 1, 1)
    corners = torch.broadcast_tensors(x - half_w, y - half_h, x + half_w, y + half_h)
    boxes = torch.stack(corners, -1)
    return (boxes.clamp_(0, 1) if clip else boxes).reshape(1, -1, 4)


multi_box_prior.gradient(no_gradient)


@multi_box_prior.infer_outputs
def multi_box_prior_shape(
    data: Shape | None, *, sizes: Floats, ratios: Floats, **_: object
) -> Shape | None:
    """One box per position, size and additional ratio."""
    if data is None:
        return None
    positions = UNKNOWN if UNKNOWN in data[2:] else data[2] * data[3]
    return (1, UNKNOWN if positions == UNKNOWN else positions * (len(sizes) + len(ratios) - 1), 4)


@op(
    "_contrib_MultiBoxTarget",
    "_npx_multibox_target",
    outputs=("loc_target", "loc_mask", "cls_target"),
    precision="full",
)
def multi_box_target(
    anchor: Tensor,
    label: Tensor,
    cls_pred: Tensor,
    *,
    overlap_threshold: float = 0.5,
    ignore_label: float = -1.0,
    negative_mining_ratio: float = -1.0,
    negative_mining_thresh: float = 0.5,
    minimum_negative_samples: int = 0,
    variances: Floats = (0.1, 0.1, 0.2, 0.2),
) -> tuple[Tensor, Tensor, Tensor]:
    """Match anchors with labeled boxes; return target offsets, their mask, and class targets.

    As in MXNet 1.9.1, `minimum_negative_samples` has no effect.

    Parameters
    ----------
    label
        Rows of class and corners, of shape ``(batch, boxes, 5)``; terminated by a class of -1.
    cls_pred
        Predicted scores of shape ``(batch, classes + 1, anchors)``.
    overlap_threshold
        Minimum overlap of positive anchors.
    ignore_label
        Class target of anchors that are neither positive nor negative.
    negative_mining_ratio
        Number of hard negatives per positive; -1 keeps all.
    negative_mining_thresh
        Maximum overlap of negative anchors.
    minimum_negative_samples
        Accepted for compatibility; has no effect.

    >>> anchor = mx.nd.array([[[0, 0, .5, .5], [.5, .5, 1, 1]]])
    >>> label = mx.nd.array([[[2, 0, 0, .5, .5]]])
    >>> mx.nd.contrib.MultiBoxTarget(anchor, label, mx.nd.zeros((1, 4, 2)))[2].asnumpy()
    array([[3., 0.]], dtype=float32)
    """
    if anchor.dim() != 3 or anchor.shape[-1] != 4:
        raise ShapeError(f"anchor must be of shape (1, anchors, 4), not {tuple(anchor.shape)}.")
    anchors = anchor.reshape(-1, 4)
    # Labels are terminated by class -1.
    is_object = (label[..., 0] != -1).to(torch.int8).cummin(1)[0].bool()
    truth = label[..., 1:5]
    iou = pairwise_iou(anchors.unsqueeze(0), truth).nan_to_num_(0.0)
    iou.masked_fill_(~is_object.unsqueeze(1), -1.0)
    row = match_greedily(iou, 1e-6)[0]
    best, best_truth = iou.max(2)
    matched = row >= 0
    match = torch.where(matched, row, best_truth)
    positive = matched | (best > overlap_threshold if overlap_threshold > 0 else matched)
    if negative_mining_ratio > 0:
        negative = _hard_negatives(
            cls_pred,
            positive,
            ~positive & (best < negative_mining_thresh),
            negative_mining_ratio,
        )
    else:
        negative = ~positive
    any_truth = is_object.any(1, keepdim=True)
    positive, negative = positive & any_truth, negative & any_truth
    wide = match.unsqueeze(-1)
    chosen = truth.gather(1, wide.expand(-1, -1, 4))
    classes = label[..., 0].gather(1, match) + 1
    target = torch.full_like(best, ignore_label).masked_fill_(negative, 0.0)
    target = torch.where(positive, classes, target)
    mask = positive.unsqueeze(-1).expand_as(chosen)
    offsets = _encode(to_centres(chosen), to_centres(anchors), variances)
    offsets = offsets.masked_fill(~mask, 0.0)
    return offsets.flatten(1), mask.to(offsets.dtype).flatten(1), target


def _encode(box: Tensor, anchor: Tensor, variances: Floats) -> Tensor:
    shift = (box[..., :2] - anchor[..., :2]) / anchor[..., 2:]
    scale = torch.log(box[..., 2:] / anchor[..., 2:])
    return torch.cat([shift, scale], -1) / box.new_tensor(variances)


def _hard_negatives(cls_pred: Tensor, positive: Tensor, candidate: Tensor, ratio: float) -> Tensor:
    """Return the hardest negatives among the candidates, `ratio` for each positive."""
    count = positive.sum(1, keepdim=True)
    expected = (count.to(torch.float32) * ratio).long()
    expected = torch.minimum(expected, positive.shape[1] - count)
    background = cls_pred.softmax(1)[:, 0].masked_fill(~candidate, torch.inf)
    order = background.sort(dim=1, stable=True)[1]
    rank = torch.empty_like(order)
    rank.scatter_(1, order, torch.arange(order.shape[1], device=order.device).expand_as(order))
    return candidate & (rank < expected)


multi_box_target.gradient(no_gradient)


@multi_box_target.infer_outputs
def multi_box_target_shape(
    anchor: Shape | None, label: Shape | None, cls_pred: Shape | None, **_: object
) -> list[Shape] | None:
    """Four offsets and one class per anchor and image."""
    if anchor is None or label is None:
        return None
    count = anchor[1]
    flat = UNKNOWN if count == UNKNOWN else count * 4
    return [(label[0], flat), (label[0], flat), (label[0], count)]


@op("_contrib_MultiBoxDetection", "_npx_multibox_detection", precision="full", names_output=True)
def multi_box_detection(
    cls_prob: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    *,
    clip: bool = True,
    threshold: float = 0.01,
    background_id: int = 0,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Floats = (0.1, 0.1, 0.2, 0.2),
    nms_topk: int = -1,
) -> Tensor:
    """Decode class scores and offsets into rows ``(class, score, xmin, ymin, xmax, ymax)``.

    Rows are sorted by score; class -1 marks background, low scores and suppressed boxes.

    Parameters
    ----------
    cls_prob
        Class probabilities of shape ``(batch, classes + 1, anchors)``.
    loc_pred
        Predicted offsets of shape ``(batch, anchors * 4)``.
    clip
        Whether to clip boxes to the image.
    threshold
        Minimum score of detections.
    nms_threshold
        Boxes that overlap a better one by more than this are suppressed.
    nms_topk
        Number of best boxes to consider; -1 means all.

    >>> prob, anchor = mx.nd.array([[[.1], [.9]]]), mx.nd.array([[[.2, .2, .4, .4]]])
    >>> mx.nd.contrib.MultiBoxDetection(prob, mx.nd.zeros((1, 4)), anchor).asnumpy().round(4)
    array([[[0. , 0.9, 0.2, 0.2, 0.4, 0.4]]], dtype=float32)
    """
    if len(variances) != 4:
        raise MXNetError(
            f"_contrib_MultiBoxDetection needs 4 variances, got {len(variances)}: {variances}."
        )
    batch, _, n = cls_prob.shape
    score = cls_prob[:, 1:].amax(1)
    result = score >= threshold
    has_nms = 0 < nms_threshold <= 1
    if is_traced():
        order = _order_candidates(score, result, nms_topk if has_nms else 0)
        rows = _decode_all(cls_prob, loc_pred, anchor, clip, variances)
        rows = rows.gather(1, order.unsqueeze(-1).expand(-1, -1, 6))
        is_row = torch.arange(n, device=score.device) < result.sum(1, keepdim=True)
        rows = rows.masked_fill(~is_row.unsqueeze(-1), -1.0)
        most = min(nms_topk, n) if nms_topk > 0 else n
        return _suppress(rows, most, nms_threshold, force_suppress) if has_nms else rows
    counts = result.sum(1)
    # Anchors with candidates, image by image.
    at = result.flatten().nonzero().squeeze(1)
    most = 0
    if has_nms and len(at):
        most = min(int(counts.max()), nms_topk) if nms_topk > 0 else int(counts.max())
        order = best_first(score.where(result, -torch.inf), most)
        order += torch.arange(0, batch * n, n, device=order.device).unsqueeze(1)
        # Only the candidates are sorted; others keep their order.
        rank = torch.arange(most, device=order.device)
        target = rank + (counts.cumsum(0) - counts).unsqueeze(1)
        real = rank < counts.unsqueeze(1)
        at[target[real]] = order[real]
    offsets = loc_pred.reshape(-1, 4).T.gather(1, at.expand(4, -1))
    own = at if batch == 1 else at % n
    anchors = anchor.reshape(-1, 4).T.gather(1, own.expand(4, -1))
    boxes = _decode(offsets, anchors, variances)
    if clip:
        boxes.clamp_(0, 1)
    heads = torch.stack([_first_class(cls_prob, score), score]).flatten(1)
    heads = heads.gather(1, at.expand(2, -1))
    rows = score.new_full((batch, n, 6), -1.0)
    found_rows = torch.cat([heads, boxes]).split(counts.tolist(), 1)
    for row, part in zip(rows, found_rows, strict=True):
        row[: part.shape[1]] = part.T
    return _suppress(rows, most, nms_threshold, force_suppress) if has_nms else rows


def _suppress(rows: Tensor, most: int, threshold: float, force: bool) -> Tensor:
    """Set class -1 for rows that overlap a better one, and for all after the first `most`."""
    head = rows[:, :most]
    ids = None if force else head[..., 0]
    keep = keep_greedily(head[..., 2:], threshold, ids)
    head[..., 0].masked_fill_(~keep, -1.0)
    rows[:, most:, 0] = -1.0
    return rows


def _order_candidates(score: Tensor, is_candidate: Tensor, topk: int) -> Tensor:
    """Return the order with candidates first, the `topk` best (-1: all) sorted by score.

    As in MXNet, the others keep their order.
    """
    n = score.shape[1]
    order = is_candidate.int().sort(dim=1, descending=True, stable=True)[1]
    if topk == 0:
        return order
    best = best_first(score.where(is_candidate, -torch.inf), n)
    count = is_candidate.sum(1, keepdim=True)
    limit = count.clamp(max=topk) if topk > 0 else count
    return torch.where(torch.arange(n, device=score.device) < limit, best, order)


def _decode_all(
    cls_prob: Tensor, loc_pred: Tensor, anchor: Tensor, clip: bool, variances: Floats
) -> Tensor:
    """Return class, score and box of each anchor: ``(batch, anchors, 6)``."""
    batch, _, n = cls_prob.shape
    score = cls_prob[:, 1:].amax(1)
    anchors = anchor.reshape(-1, 4).repeat(batch, 1).T
    boxes = _decode(loc_pred.reshape(-1, 4).T, anchors, variances)
    boxes = boxes.clamp(0, 1) if clip else boxes
    heads = torch.stack([_first_class(cls_prob, score), score]).flatten(1)
    return torch.cat([heads, boxes]).T.reshape(batch, n, 6)


def _first_class(cls_prob: Tensor, score: Tensor) -> Tensor:
    """Return the best non-background class, several times as fast as `argmax`."""
    probs = cls_prob[:, 1:]
    count = probs.shape[1]
    lead = torch.arange(count, 0, -1, dtype=score.dtype, device=score.device).view(-1, 1)
    same = torch.eq(probs, score.unsqueeze(1), out=torch.empty_like(probs))
    return count - same.mul_(lead).amax(1)


def _decode(offsets: Tensor, anchors: Tensor, variances: Floats) -> Tensor:
    """Decode offsets to boxes, as four rows of coordinates."""
    low, high = anchors[:2], anchors[2:]
    size = high - low
    offsets = offsets * offsets.new_tensor(variances).view(4, 1)
    center = offsets[:2] * size + (low + high) * 0.5
    half = offsets[2:].exp() * size * 0.5
    return torch.cat([center - half, center + half])


multi_box_detection.gradient(no_gradient)


@multi_box_detection.infer_outputs
def multi_box_detection_shape(
    cls_prob: Shape | None, loc_pred: Shape | None, anchor: Shape | None, **_: object
) -> Shape | None:
    """Six elements per anchor and image."""
    return None if cls_prob is None else (cls_prob[0], cls_prob[2], 6)


def _outputs(attrs: dict) -> tuple[str, ...]:
    return ("output", "score") if attrs["output_score"] else ("output",)


def _base_anchors(stride: int, ratios: Floats, scales: Floats) -> list[list[float]]:
    """Return one anchor per ratio and scale, for the first cell of the feature map."""
    center, area = (stride - 1) / 2, float(stride * stride)
    items = []
    for ratio in ratios:
        width = math.floor(math.sqrt(math.floor(area / ratio)) + 0.5)
        height = math.floor(width * ratio + 0.5)
        for scale in scales:
            w, h = (width * scale - 1) / 2, (height * scale - 1) / 2
            items.append([center - w, center - h, center + w, center + h])
    return items


def _anchors(like: Tensor, height: int, width: int, base: list[list[float]], stride: int) -> Tensor:
    """Return the anchors of all cells as rows of coordinates: ``(4, height * width * anchors)``."""
    kind = {"dtype": like.dtype, "device": like.device}
    x = (torch.arange(width, **kind) * stride).view(1, -1, 1)
    y = (torch.arange(height, **kind) * stride).view(-1, 1, 1)
    corners = torch.tensor(base, **kind).T
    x, y = x + corners[::2].view(2, 1, 1, -1), y + corners[1::2].view(2, 1, 1, -1)
    return torch.stack(torch.broadcast_tensors(x, y), 1).reshape(4, -1)


def _move_anchors(anchors: Tensor, offsets: Tensor, iou_loss: bool) -> Tensor:
    """Apply predicted offsets to anchors; with `iou_loss` the offsets are of corners."""
    anchors = anchors.unsqueeze(1)
    if iou_loss:
        return anchors + offsets
    size = anchors[2:] - anchors[:2] + 1.0
    center = anchors[:2] + 0.5 * (size - 1.0)
    middle = offsets[:2] * size + center
    half = 0.5 * (offsets[2:].exp() * size - 1.0)
    return torch.cat([middle - half, middle + half])


@op("_contrib_MultiProposal", outputs=_outputs, total=2, precision="widest")
def multi_proposal(
    cls_prob: Tensor,
    bbox_pred: Tensor,
    im_info: Tensor,
    *,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    threshold: float = 0.7,
    rpn_min_size: int = 16,
    scales: Floats = (4, 8, 16, 32),
    ratios: Floats = (0.5, 1, 2),
    feature_stride: int = 16,
    output_score: bool = False,
    iou_loss: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Propose regions ``(image, x1, y1, x2, y2)`` of a batch from scores and offsets.

    Parameters
    ----------
    cls_prob
        Scores of shape ``(batch, 2 * anchors, height, width)``: background first, then objects.
    threshold
        Boxes that overlap a better one by more than this are suppressed.

    >>> prob, offsets = mx.nd.ones((1, 2, 1, 1)), mx.nd.zeros((1, 4, 1, 1))
    >>> mx.nd.contrib.MultiProposal(prob, offsets, mx.nd.array([[32, 32, 1]]), scales=(1,),
    ...                             ratios=(1,), rpn_post_nms_top_n=1).asnumpy()
    array([[ 0.,  0.,  0., 15., 15.]], dtype=float32)
    """
    after = rpn_post_nms_top_n
    batch, channels, height, width = cls_prob.shape
    base = _base_anchors(feature_stride, ratios, scales)
    if channels != 2 * len(base):
        raise ShapeError(
            f"Shape inconsistent in Proposal: cls_prob has {channels} channels, but "
            f"{len(ratios)} ratios and {len(scales)} scales need {2 * len(base)}."
        )
    score = cls_prob[:, len(base) :].permute(0, 2, 3, 1)
    offsets = bbox_pred.reshape(batch, len(base), 4, height, width).permute(2, 0, 3, 4, 1)
    anchors = _anchors(cls_prob, height, width, base, feature_stride)
    # Four rows of coordinates, (4, batch, boxes), are what vector kernels like.
    boxes = _move_anchors(anchors, offsets.reshape(4, batch, -1), iou_loss)
    limit = im_info[:, [1, 0, 1, 0]].T.unsqueeze(2) - 1.0
    boxes = torch.minimum(boxes, limit).clamp_(min=0)
    # Cells beyond the image are padding.
    real = (im_info[:, :2] / feature_stride).long()
    row = torch.arange(height, device=score.device).view(1, -1, 1, 1)
    column = torch.arange(width, device=score.device).view(1, 1, -1, 1)
    padding = (row >= real[:, 0].view(-1, 1, 1, 1)) | (column >= real[:, 1].view(-1, 1, 1, 1))
    score = score.masked_fill(padding, -1.0).reshape(batch, -1)
    least = (rpn_min_size * im_info[:, 2]).view(-1, 1)
    small = (boxes[2:] - boxes[:2] + 1.0 < least).any(0)
    score = score.masked_fill(small, -1.0)
    count = score.shape[1]
    before = min(rpn_pre_nms_top_n, count) if rpn_pre_nms_top_n > 0 else count
    order = best_first(score, before)
    small, score = small.gather(1, order), score.gather(1, order)
    boxes = boxes.gather(2, order.expand(4, -1, -1))
    grown = torch.stack([-least, -least, least, least]) / 2
    boxes = torch.where(small, boxes + grown, boxes).movedim(0, -1)
    keep = keep_greedily(boxes, threshold, border=1.0, most=after)
    result = keep.sum(1, keepdim=True).clamp(max=after)
    front = keep.sort(dim=1, descending=True, stable=True)[1]
    # If there are too few survivors, they are repeated.
    position = front.gather(1, torch.arange(after, device=score.device) % result)
    boxes = boxes.gather(1, position.unsqueeze(-1).expand(-1, -1, 4))
    image = torch.arange(batch, device=score.device, dtype=boxes.dtype).view(-1, 1, 1)
    rois = torch.cat([image.expand(-1, after, 1), boxes], -1)
    rois = rois.reshape(-1, 5)
    return (rois, score.gather(1, position).reshape(-1, 1)) if output_score else rois


@op(
    "_contrib_Proposal",
    attributes_of=multi_proposal,
    outputs=_outputs,
    total=2,
    precision="widest",
)
def proposal(
    cls_prob: Tensor, bbox_pred: Tensor, im_info: Tensor, **attrs: Any
) -> Tensor | tuple[Tensor, Tensor]:
    """Propose regions ``(0, x1, y1, x2, y2)`` of one image from a network's scores and offsets.

    Parameters
    ----------
    cls_prob
        Scores of shape ``(1, 2 * anchors, height, width)``: background first, then objects.

    >>> prob, offsets = mx.nd.ones((1, 2, 1, 1)), mx.nd.zeros((1, 4, 1, 1))
    >>> mx.nd.contrib.Proposal(prob, offsets, mx.nd.array([[32, 32, 1]]), scales=(1,), ratios=(1,),
    ...                        rpn_post_nms_top_n=1).asnumpy()
    array([[ 0.,  0.,  0., 15., 15.]], dtype=float32)
    """
    if cls_prob.shape[0] != 1:
        raise ShapeError(
            f"_contrib_Proposal takes one image, got a batch of {cls_prob.shape[0]}. "
            f"Use _contrib_MultiProposal."
        )
    return multi_proposal.function(cls_prob, bbox_pred, im_info, **attrs)


proposal.gradient(no_gradient)
multi_proposal.gradient(no_gradient)


@proposal.infer_inputs
@multi_proposal.infer_inputs
def proposal_inputs(cls_prob: Shape | None, *_: Shape | None, **__: object) -> dict[str, Shape]:
    """Four offsets per two scores; three numbers per image."""
    if cls_prob is None:
        return {}
    channels = cls_prob[1] * 2 if cls_prob[1] > 0 else -1
    return {"bbox_pred": (cls_prob[0], channels, *cls_prob[2:]), "im_info": (cls_prob[0], 3)}


@proposal.infer_outputs
@multi_proposal.infer_outputs
def proposal_shape(
    cls_prob: Shape | None,
    *_: Shape | None,
    rpn_post_nms_top_n: int,
    output_score: bool,
    **__: object,
) -> list[Shape] | None:
    """The requested number of regions per image."""
    if cls_prob is None:
        return None
    rows = cls_prob[0] * rpn_post_nms_top_n if cls_prob[0] > 0 else -1
    return [(rows, 5), (rows, 1)] if output_score else [(rows, 5)]
