"""Single-shot detection: prior boxes, training targets and decoded detections."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from ...error import MXNetError, ShapeError
from ..attributes import Floats
from ..declare import op
from ..shapes import UNKNOWN, Shape
from .boxes import match_greedily, no_gradient
from .suppression import best_first, keep_greedily, pairwise_iou, to_centres


@op(
    "_contrib_MultiBoxPrior",
    "_npx_multibox_prior",
    precision="full",
    names_single_input=True,
    gradients_by_input=True,
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
    """Lay prior boxes of several sizes and ratios over every place of a feature map.

    Parameters
    ----------
    data
        The feature map, of shape ``(batch, channels, height, width)``; its values do not matter.
    sizes
        Sizes of the boxes as shares of the image; all of them at the first ratio.
    ratios
        Ratios of width to height; all of them at the first size.
    clip
        Whether boxes are cut at the edges of the image.
    steps
        Distances in y and x between centers; -1 spreads them evenly.
    offsets
        Where the first center lies, in steps in y and x.

    >>> mx.nd.contrib.MultiBoxPrior(mx.nd.zeros((1, 3, 1, 1)), sizes=(0.5,)).asnumpy()
    array([[[0.25, 0.25, 0.75, 0.75]]], dtype=float32)
    """
    if data.ndim != 4:
        raise ShapeError(f"_contrib_MultiBoxPrior needs data of 4 axes, got {list(data.shape)}.")
    shape = tuple(data.shape[2:])
    return _prior(shape, sizes, ratios, clip, steps, offsets, data.dtype, data.device).clone()


# A network asks for the same boxes in every step.
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
    """A box for each place, size and further ratio."""
    if data is None:
        return None
    places = UNKNOWN if UNKNOWN in data[2:] else data[2] * data[3]
    return (1, UNKNOWN if places == UNKNOWN else places * (len(sizes) + len(ratios) - 1), 4)


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
    """Match anchors with labeled boxes: offsets to learn, their mask, and class targets.

    As in MXNet 1.9.1, `minimum_negative_samples` has no effect.

    Parameters
    ----------
    label
        Rows of class and corners, of shape ``(batch, boxes, 5)``; a class of -1 ends them.
    cls_pred
        Predicted scores of shape ``(batch, classes + 1, anchors)``.
    overlap_threshold
        Least overlap with a box that makes an anchor positive.
    ignore_label
        Class target of anchors that are neither positive nor negative.
    negative_mining_ratio
        How many hard negatives to keep for each positive; -1 keeps all.
    negative_mining_thresh
        Overlap below which an anchor may be a negative.
    minimum_negative_samples
        Accepted for compatibility, without effect.

    >>> anchor = mx.nd.array([[[0, 0, .5, .5], [.5, .5, 1, 1]]])
    >>> label = mx.nd.array([[[2, 0, 0, .5, .5]]])
    >>> mx.nd.contrib.MultiBoxTarget(anchor, label, mx.nd.zeros((1, 4, 2)))[2].asnumpy()
    array([[3., 0.]], dtype=float32)
    """
    anchors = anchor.reshape(-1, 4)
    # Labels end at the first row of class -1.
    given = (label[..., 0] != -1).to(torch.int8).cummin(1)[0].bool()
    truth = label[..., 1:5]
    iou = pairwise_iou(anchors.unsqueeze(0), truth).nan_to_num_(0.0)
    iou.masked_fill_(~given.unsqueeze(1), -1.0)
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
    any_truth = given.any(1, keepdim=True)
    positive &= any_truth
    negative &= any_truth
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
    """Return the candidates that look least like background, `ratio` for each positive."""
    count = positive.sum(1, keepdim=True)
    wanted = (count.to(torch.float32) * ratio).long()
    wanted = torch.minimum(wanted, positive.shape[1] - count)
    background = cls_pred.softmax(1)[:, 0].masked_fill(~candidate, torch.inf)
    order = background.sort(dim=1, stable=True)[1]
    rank = torch.empty_like(order)
    rank.scatter_(1, order, torch.arange(order.shape[1], device=order.device).expand_as(order))
    return candidate & (rank < wanted)


multi_box_target.gradient(no_gradient)


@multi_box_target.infer_outputs
def multi_box_target_shape(
    anchor: Shape | None, label: Shape | None, cls_pred: Shape | None, **_: object
) -> list[Shape] | None:
    """Four offsets and one class for each anchor of each image."""
    if anchor is None or label is None:
        return None
    count = anchor[1]
    flat = UNKNOWN if count == UNKNOWN else count * 4
    return [(label[0], flat), (label[0], flat), (label[0], count)]


@op("_contrib_MultiBoxDetection", "_npx_multibox_detection", precision="full")
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

    Rows come by score; class -1 marks what is background, too weak or suppressed.

    Parameters
    ----------
    cls_prob
        Class probabilities of shape ``(batch, classes + 1, anchors)``.
    loc_pred
        Predicted offsets of shape ``(batch, anchors * 4)``.
    clip
        Whether boxes are cut at the edges of the image.
    threshold
        Boxes of lower scores are left out.
    nms_threshold
        Boxes that overlap a better one by more than this are suppressed.
    nms_topk
        How many of the best boxes to look at; -1 means all.

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
    found = score >= threshold
    counts = found.sum(1)
    # The anchors with something on them, image after image.
    at = found.flatten().nonzero().squeeze(1)
    most = 0
    if 0 < nms_threshold <= 1 and len(at):
        most = min(int(counts.max()), nms_topk) if nms_topk > 0 else int(counts.max())
        order = best_first(score.where(found, -torch.inf), most)
        order += torch.arange(0, batch * n, n, device=order.device).unsqueeze(1)
        # Only the candidates are sorted; what follows them stays where it was.
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
    if 0 < nms_threshold <= 1:
        head = rows[:, :most]
        ids = None if force_suppress else head[..., 0]
        keep = keep_greedily(head[..., 2:], nms_threshold, ids)
        head[..., 0].masked_fill_(~keep, -1.0)
        rows[:, most:, 0] = -1.0
    return rows


def _first_class(cls_prob: Tensor, score: Tensor) -> Tensor:
    """Return which class but the background has the score: `argmax`, yet several times faster."""
    probs = cls_prob[:, 1:]
    count = probs.shape[1]
    lead = torch.arange(count, 0, -1, dtype=score.dtype, device=score.device).view(-1, 1)
    same = torch.eq(probs, score.unsqueeze(1), out=torch.empty_like(probs))
    return count - same.mul_(lead).amax(1)


def _decode(offsets: Tensor, anchors: Tensor, variances: Floats) -> Tensor:
    """Return boxes from offsets, all as four rows of coordinates."""
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
    """Six numbers for each anchor of each image."""
    return None if cls_prob is None else (cls_prob[0], cls_prob[2], 6)
