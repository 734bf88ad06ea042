"""Operators that keep some of many: suppression of boxes, distinct elements, conditions."""

from __future__ import annotations

import torch
from torch import Tensor

from ..declare import op
from ..shapes import UNKNOWN, Shape, same


def _corners(boxes: Tensor, is_center: bool) -> Tensor:
    if is_center:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        return torch.cat([middle - half, middle + half], -1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return torch.cat([torch.minimum(first, second), torch.maximum(first, second)], -1)


def _survivors(boxes: Tensor, scores: Tensor, limit: int, overlap: float, least: float):
    """Return the places of boxes that no better one covers, by score."""
    order = scores.argsort(descending=True, stable=True)
    order = order[scores[order] > least]
    kept: list[int] = []
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    while order.numel() and len(kept) < limit:
        best, order = int(order[0]), order[1:]
        kept.append(best)
        low = torch.maximum(boxes[order, :2], boxes[best, :2])
        high = torch.minimum(boxes[order, 2:], boxes[best, 2:])
        common = (high - low).clamp(min=0).prod(-1)
        union = areas[order] + areas[best] - common
        order = order[~((union > 0) & (common / union > overlap))]
    return kept


@op(
    "_onnx_non_max_suppression",
    types="T T I T T -> int64",
    value_dependent=True,
)
def non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    limit: Tensor,
    overlap: Tensor,
    least: Tensor,
    *,
    center_point_box: bool = False,
) -> Tensor:
    """Return ``(image, class, box)`` of the boxes that no better one covers.

    Parameters
    ----------
    boxes
        Boxes ``(batch, n, 4)``.
    scores
        Scores ``(batch, classes, n)``.
    limit
        Most boxes of a class to keep.
    overlap
        Largest overlap with a better box.
    least
        Smallest score.
    center_point_box
        Whether boxes are centers and sizes instead of corners.

    >>> box, score = mx.nd.array([[[0, 0, 1, 1]]]), mx.nd.array([[[0.9]]])
    >>> most, half = mx.nd.array([3], dtype="int64"), mx.nd.array([0.5])
    >>> mx.nd._internal._onnx_non_max_suppression(box, score, most, half, half).asnumpy()
    array([[0, 0, 0]])
    """
    corners = _corners(boxes, center_point_box)
    bounds = int(limit.item()), float(overlap.item()), float(least.item())
    rows = [
        (image, kind, place)
        for image in range(scores.shape[0])
        for kind in range(scores.shape[1])
        for place in _survivors(corners[image], scores[image, kind], *bounds)
    ]
    made = torch.tensor(rows, dtype=torch.int64, device=boxes.device)
    return made.reshape(-1, 3)


@non_max_suppression.infer_outputs
def non_max_suppression_shape(*_: Shape | None, **__: object) -> Shape:
    """Only that rows have three numbers is known before it runs."""
    return (UNKNOWN, 3)


@op("_onnx_unique", types="T -> T int64", outputs=4, value_dependent=True)
def unique(
    data: Tensor, *, axis: int | None = None, is_sorted: bool = True
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return distinct elements, where each is first, where each element is, and the counts.

    Parameters
    ----------
    is_sorted
        Whether to sort, instead of the order of first occurrence.

    >>> out = mx.nd._internal._onnx_unique(mx.nd.array([3, 1, 3]), is_sorted=False)
    >>> out[0].asnumpy(), out[3].asnumpy()
    (array([3., 1.], dtype=float32), array([2, 1]))
    """
    flat = data.reshape(-1) if axis is None else data
    dim = 0 if axis is None else axis % data.ndim
    values, inverse, counts = torch.unique(flat, return_inverse=True, return_counts=True, dim=dim)
    places = torch.arange(inverse.numel(), device=data.device)
    first = torch.full_like(counts, inverse.numel()).scatter_reduce(0, inverse, places, "amin")
    if is_sorted:
        return values, first, inverse, counts
    order = first.argsort()
    back = order.argsort()
    return values.index_select(dim, order), first[order], back[inverse], counts[order]


@unique.infer_outputs
def unique_shapes(data: Shape | None, *, axis: int | None, **_: object) -> list[Shape] | None:
    """How many are distinct is known only when it runs."""
    if data is None:
        return None
    at = 0 if axis is None else axis % len(data)
    first = (UNKNOWN,) if axis is None else (*data[:at], UNKNOWN, *data[at + 1 :])
    return [first, (UNKNOWN,), (UNKNOWN,), (UNKNOWN,)]


@op("_onnx_compress", types="T C -> T", value_dependent=True)
def compress(data: Tensor, condition: Tensor, *, axis: int | None = None) -> Tensor:
    """Keep slices whose condition holds; without an axis, elements of the flattened data.

    Parameters
    ----------
    condition
        Which ones to keep.

    >>> keep = mx.nd.array([0, 1], dtype="bool")
    >>> mx.nd._internal._onnx_compress(mx.nd.array([1, 2, 3]), keep).asnumpy()
    array([2.], dtype=float32)
    """
    flat = data.reshape(-1) if axis is None else data
    places = condition.reshape(-1).nonzero().squeeze(1)
    return flat.index_select(0 if axis is None else axis, places)


@compress.infer_outputs
def compress_shape(
    data: Shape | None, condition: Shape | None, *, axis: int | None
) -> Shape | None:
    """How many are kept is known only when it runs."""
    if axis is None:
        return (UNKNOWN,)
    if data is None:
        return None
    at = axis % len(data)
    return (*data[:at], UNKNOWN, *data[at + 1 :])


@op("_onnx_nonzero", types="T -> int64", value_dependent=True)
def nonzero(data: Tensor) -> Tensor:
    """Return the coordinates of elements that are not 0: ``(axes, elements)``.

    >>> mx.nd._internal._onnx_nonzero(mx.nd.array([[0, 2]])).asnumpy()
    array([[0],
           [1]])
    """
    return data.nonzero().T.contiguous()


@nonzero.infer_outputs
def nonzero_shape(data: Shape | None) -> Shape | None:
    """How many are not 0 is known only when it runs."""
    return None if data is None else (len(data), UNKNOWN)


@op("_onnx_trilu", shape=same)
def trilu(data: Tensor, *, k: int = 0, upper: bool = True) -> Tensor:
    """Return the upper or lower triangles of matrices, with 0 elsewhere.

    Parameters
    ----------
    upper
        Whether to keep the upper triangle.

    >>> mx.nd._internal._onnx_trilu(mx.nd.ones((2, 2))).asnumpy()
    array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return torch.triu(data, k) if upper else torch.tril(data, k)
