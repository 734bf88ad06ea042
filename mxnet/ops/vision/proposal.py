"""Region proposals: anchors moved by predicted offsets, filtered, suppressed and padded."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...error import ShapeError
from ..attributes import Floats
from ..declare import op
from ..shapes import Shape
from .boxes import no_gradient
from .suppression import best_first, keep_greedily


def _outputs(attrs: dict) -> tuple[str, ...]:
    return ("output", "score") if attrs["output_score"] else ("output",)


def _base_anchors(stride: int, ratios: Floats, scales: Floats) -> list[list[float]]:
    """Return one anchor for each ratio and scale, around the first cell of the feature map."""
    center, area = (stride - 1) / 2, float(stride * stride)
    made = []
    for ratio in ratios:
        width = math.floor(math.sqrt(math.floor(area / ratio)) + 0.5)
        height = math.floor(width * ratio + 0.5)
        for scale in scales:
            w, h = (width * scale - 1) / 2, (height * scale - 1) / 2
            made.append([center - w, center - h, center + w, center + h])
    return made


def _anchors(like: Tensor, height: int, width: int, base: list[list[float]], stride: int) -> Tensor:
    """Return anchors of every cell as rows of coordinates: ``(4, height * width * anchors)``."""
    kind = {"dtype": like.dtype, "device": like.device}
    x = (torch.arange(width, **kind) * stride).view(1, -1, 1)
    y = (torch.arange(height, **kind) * stride).view(-1, 1, 1)
    corners = torch.tensor(base, **kind).T
    x, y = x + corners[::2].view(2, 1, 1, -1), y + corners[1::2].view(2, 1, 1, -1)
    return torch.stack(torch.broadcast_tensors(x, y), 1).reshape(4, -1)


def _moved(anchors: Tensor, offsets: Tensor, iou_loss: bool) -> Tensor:
    """Return anchors after the predicted offsets; with `iou_loss` those are of the corners."""
    anchors = anchors.unsqueeze(1)
    if iou_loss:
        return anchors + offsets
    size = anchors[2:] - anchors[:2] + 1.0
    center = anchors[:2] + 0.5 * (size - 1.0)
    middle = offsets[:2] * size + center
    half = 0.5 * (offsets[2:].exp() * size - 1.0)
    return torch.cat([middle - half, middle + half])


def _propose(
    cls_prob: Tensor,
    bbox_pred: Tensor,
    im_info: Tensor,
    before: int,
    after: int,
    threshold: float,
    min_size: int,
    scales: Floats,
    ratios: Floats,
    stride: int,
    iou_loss: bool,
) -> tuple[Tensor, Tensor]:
    batch, channels, height, width = cls_prob.shape
    base = _base_anchors(stride, ratios, scales)
    if channels != 2 * len(base):
        raise ShapeError(
            f"Shape inconsistent in Proposal: cls_prob has {channels} channels, but "
            f"{len(ratios)} ratios and {len(scales)} scales need {2 * len(base)}."
        )
    score = cls_prob[:, len(base) :].permute(0, 2, 3, 1)
    offsets = bbox_pred.reshape(batch, len(base), 4, height, width).permute(2, 0, 3, 4, 1)
    anchors = _anchors(cls_prob, height, width, base, stride)
    # Four rows of coordinates, (4, batch, boxes), are what vector kernels like.
    boxes = _moved(anchors, offsets.reshape(4, batch, -1), iou_loss)
    limit = im_info[:, [1, 0, 1, 0]].T.unsqueeze(2) - 1.0
    boxes = torch.minimum(boxes, limit).clamp_(min=0)
    # Cells beyond the real image are padding.
    real = (im_info[:, :2] / stride).long()
    row = torch.arange(height, device=score.device).view(1, -1, 1, 1)
    column = torch.arange(width, device=score.device).view(1, 1, -1, 1)
    padding = (row >= real[:, 0].view(-1, 1, 1, 1)) | (column >= real[:, 1].view(-1, 1, 1, 1))
    score = score.masked_fill(padding, -1.0).reshape(batch, -1)
    least = (min_size * im_info[:, 2]).view(-1, 1)
    small = (boxes[2:] - boxes[:2] + 1.0 < least).any(0)
    score = score.masked_fill(small, -1.0)
    count = score.shape[1]
    before = min(before, count) if before > 0 else count
    order = best_first(score, before)
    small, score = small.gather(1, order), score.gather(1, order)
    boxes = boxes.gather(2, order.expand(4, -1, -1))
    grown = torch.stack([-least, -least, least, least]) / 2
    boxes = torch.where(small, boxes + grown, boxes).movedim(0, -1)
    keep = keep_greedily(boxes, threshold, border=1.0, most=after)
    found = keep.sum(1, keepdim=True).clamp(max=after)
    front = keep.sort(dim=1, descending=True, stable=True)[1]
    # Too few survivors are repeated in turn.
    place = front.gather(1, torch.arange(after, device=score.device) % found)
    boxes = boxes.gather(1, place.unsqueeze(-1).expand(-1, -1, 4))
    image = torch.arange(batch, device=score.device, dtype=boxes.dtype).view(-1, 1, 1)
    rois = torch.cat([image.expand(-1, after, 1), boxes], -1)
    return rois.reshape(-1, 5), score.gather(1, place).reshape(-1, 1)


@op("_contrib_Proposal", outputs=_outputs, total=2, precision="widest")
def proposal(
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
    """Propose regions ``(0, x1, y1, x2, y2)`` of one image from a network's scores and offsets.

    Parameters
    ----------
    cls_prob
        Scores of shape ``(1, 2 * anchors, height, width)``: background first, then objects.
    threshold
        Boxes that overlap a better one by more than this are suppressed.

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
    rois, score = _propose(
        cls_prob, bbox_pred, im_info, rpn_pre_nms_top_n, rpn_post_nms_top_n, threshold,
        rpn_min_size, scales, ratios, feature_stride, iou_loss,
    )  # fmt: skip
    return (rois, score) if output_score else rois


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
    rois, score = _propose(
        cls_prob, bbox_pred, im_info, rpn_pre_nms_top_n, rpn_post_nms_top_n, threshold,
        rpn_min_size, scales, ratios, feature_stride, iou_loss,
    )  # fmt: skip
    return (rois, score) if output_score else rois


proposal.gradient(no_gradient)
multi_proposal.gradient(no_gradient)


@proposal.infer_inputs
@multi_proposal.infer_inputs
def proposal_inputs(cls_prob: Shape | None, *_: Shape | None, **__: object) -> dict[str, Shape]:
    """Four offsets where there are two scores; three facts an image."""
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
    """As many regions an image as asked for."""
    if cls_prob is None:
        return None
    rows = cls_prob[0] * rpn_post_nms_top_n if cls_prob[0] > 0 else -1
    return [(rows, 5), (rows, 1)] if output_score else [(rows, 5)]
