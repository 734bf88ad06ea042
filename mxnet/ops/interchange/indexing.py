"""Reading, writing and selecting elements, as torch and ONNX define it."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from ...error import ShapeError
from ..declare import op
from ..shapes import UNKNOWN, Shape

Reduction = Literal["none", "add", "mul", "max", "min"]
TORCH_NAMES = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _wrap(indices: Tensor, size: int) -> Tensor:
    """Return indices of which negative ones count from the end of an axis."""
    positions = indices.long()
    return torch.where(positions < 0, positions + size, positions)


@op("_onnx_gather", types="T I -> T")
def gather(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """Take slices along an axis; negative indices count from its end.

    >>> places = mx.nd.array([-1, 0], dtype="int64")
    >>> mx.nd._internal._onnx_gather(mx.nd.array([1, 2, 3]), places).asnumpy()
    array([3., 1.], dtype=float32)
    """
    axis %= data.ndim
    positions = _wrap(indices, data.shape[axis])
    output = data.index_select(axis, positions.reshape(-1))
    return output.reshape((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))


@gather.infer_outputs
def gather_shape(data: Shape | None, indices: Shape | None, *, axis: int) -> Shape | None:
    """Put the shape of the indices in the place of the axis."""
    if data is None or indices is None:
        return None
    at = axis % len(data)
    return (*data[:at], *indices, *data[at + 1 :])


@op("_onnx_gather_elements", types="T I -> T")
def gather_elements(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """Gather elements by their index along one axis.

    >>> places = mx.nd.array([[0, 0], [1, 0]], dtype="int64")
    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd._internal._onnx_gather_elements(x, places, axis=1).asnumpy()
    array([[1., 1.],
           [4., 3.]], dtype=float32)
    """
    return data.gather(axis, _wrap(indices, data.shape[axis]))


@gather_elements.infer_outputs
def gather_elements_shape(data: Shape | None, indices: Shape | None, *, axis: int) -> Shape | None:
    """Return the shape of the indices."""
    return indices


@op("_onnx_gather_nd", types="T I -> T")
def gather_nd(data: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """Gather elements or slices at coordinates along the last axis of the indices.

    Parameters
    ----------
    batch_dims
        Number of leading axes that data and indices share.

    >>> places = mx.nd.array([[0, -1]], dtype="int64")
    >>> mx.nd._internal._onnx_gather_nd(mx.nd.array([[1, 2], [3, 4]]), places).asnumpy()
    array([2.], dtype=float32)
    """
    front = indices.shape[:-1]
    lines = [
        torch.arange(n, device=data.device).reshape((-1,) + (1,) * (len(front) - 1 - i))
        for i, n in enumerate(front[:batch_dims])
    ]
    positions = [p.long() for p in indices.unbind(-1)]
    return data[(*lines, *positions)]


def _combine(old: Tensor, coordinates: tuple[Tensor, ...], updates: Tensor, how: str) -> Tensor:
    """Apply updates sequentially, for several updates of an element."""
    flat = old.reshape(-1).clone()
    at = torch.zeros_like(coordinates[0])
    for line, size in zip(coordinates, old.shape, strict=True):
        at = at * size + line
    at, values = at.reshape(-1), updates.reshape(-1)
    if how == "none":
        return flat.scatter(0, at, values).reshape(old.shape)
    return flat.scatter_reduce(0, at, values, TORCH_NAMES[how]).reshape(old.shape)


@op("_onnx_scatter_elements", types="T I T -> T")
def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: Reduction = "none"
) -> Tensor:
    """Write or combine elements by their index along one axis.

    Parameters
    ----------
    updates
        Elements to write.
    reduction
        How to combine with existing elements.

    >>> x, places = mx.nd.zeros((3,)), mx.nd.array([1, 1], dtype="int64")
    >>> values = mx.nd.array([2, 3])
    >>> mx.nd._internal._onnx_scatter_elements(x, places, values, reduction="add").asnumpy()
    array([0., 5., 0.], dtype=float32)
    """
    positions = _wrap(indices, data.shape[axis])
    if reduction == "none":
        return data.scatter(axis, positions, updates)
    return data.scatter_reduce(axis, positions, updates, TORCH_NAMES[reduction])


@op("_onnx_scatter_nd", types="T I T -> T")
def scatter_nd(
    data: Tensor, indices: Tensor, updates: Tensor, *, reduction: Reduction = "none"
) -> Tensor:
    """Write or combine elements or slices at coordinates.

    Parameters
    ----------
    updates
        Elements to write.
    reduction
        How to combine with existing elements.

    >>> x, places = mx.nd.zeros((3,)), mx.nd.array([[1], [1]], dtype="int64")
    >>> values = mx.nd.array([2, 3])
    >>> mx.nd._internal._onnx_scatter_nd(x, places, values, reduction="max").asnumpy()
    array([0., 3., 0.], dtype=float32)
    """
    depth = indices.shape[-1]
    if depth > data.ndim:
        raise ShapeError(f"_onnx_scatter_nd: {depth} coordinates for {data.ndim} axes.")
    rest = data.shape[depth:]
    coordinates = []
    for i, index in enumerate(indices.unbind(-1)):
        wide = _wrap(index, data.shape[i]).reshape(index.shape + (1,) * len(rest))
        coordinates.append(wide.expand(updates.shape))
    for i, size in enumerate(rest):
        line = torch.arange(size, device=data.device).reshape((-1,) + (1,) * (len(rest) - 1 - i))
        coordinates.append(line.expand(updates.shape))
    return _combine(data, tuple(coordinates), updates, reduction)


@op("_onnx_tensor_scatter", types="T T I -> T")
def tensor_scatter(
    cache: Tensor,
    update: Tensor,
    starts: Tensor,
    *,
    axis: int = -2,
    mode: Literal["linear", "circular"] = "linear",
) -> Tensor:
    """Write an update into a cache, at each sample's own position.

    Parameters
    ----------
    cache
        Array to write into.
    update
        Update to write.
    starts
        Start position of each sample.
    mode
        Interpolation or padding mode.

    >>> cache, new = mx.nd.zeros((1, 3, 1)), mx.nd.ones((1, 1, 1))
    >>> at = mx.nd.array([1], dtype="int64")
    >>> mx.nd._internal._onnx_tensor_scatter(cache, new, at).asnumpy().ravel()
    array([0., 1., 0.], dtype=float32)
    """
    at = axis % cache.ndim
    length, size = update.shape[at], cache.shape[at]
    indices = starts.long()[:, None] + torch.arange(length, device=cache.device)
    indices = indices % size if mode == "circular" else indices
    shape = [1] * cache.ndim
    shape[0], shape[at] = indices.shape[0], length
    return cache.scatter(at, indices.reshape(shape).expand_as(update), update)


def _same_shape(data: Shape | None, *_: Shape | None, **__: object) -> Shape | None:
    return data


for _op in (scatter_elements, scatter_nd, tensor_scatter):
    _op.infer_outputs(_same_shape)


def _corners(boxes: Tensor, is_center: bool) -> Tensor:
    if is_center:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        return torch.cat([middle - half, middle + half], -1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return torch.cat([torch.minimum(first, second), torch.maximum(first, second)], -1)


def _survivors(boxes: Tensor, scores: Tensor, limit: int, overlap: float, least: float):
    """Return the positions of surviving boxes, by score."""
    order = scores.argsort(descending=True, stable=True)
    order = order[scores[order] > least]
    survivors: list[int] = []
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    while order.numel() and len(survivors) < limit:
        best, order = int(order[0]), order[1:]
        survivors.append(best)
        low = torch.maximum(boxes[order, :2], boxes[best, :2])
        high = torch.minimum(boxes[order, 2:], boxes[best, 2:])
        common = (high - low).clamp(min=0).prod(-1)
        union = areas[order] + areas[best] - common
        order = order[~((union > 0) & (common / union > overlap))]
    return survivors


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
    """Return ``(image, class, box)`` of the boxes that survive suppression.

    Parameters
    ----------
    boxes
        Boxes ``(batch, n, 4)``.
    scores
        Scores ``(batch, classes, n)``.
    limit
        Maximum number of boxes per class.
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
        (image, kind, box)
        for image in range(scores.shape[0])
        for kind in range(scores.shape[1])
        for box in _survivors(corners[image], scores[image, kind], *bounds)
    ]
    output = torch.tensor(rows, dtype=torch.int64, device=boxes.device)
    return output.reshape(-1, 3)


@non_max_suppression.infer_outputs
def non_max_suppression_shape(*_: Shape | None, **__: object) -> Shape:
    """Only that rows have three numbers is known before it runs."""
    return (UNKNOWN, 3)


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
    """The number of nonzero elements depends on values."""
    return None if data is None else (len(data), UNKNOWN)
