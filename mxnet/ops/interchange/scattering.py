"""Reading and writing elements by index, as torch and ONNX define it."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from ...error import ShapeError
from ..declare import op
from ..shapes import Shape

Reduction = Literal["none", "add", "mul", "max", "min"]
TORCH_NAMES = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _wrapped(indices: Tensor, size: int) -> Tensor:
    """Return indices of which negative ones count from the end of an axis."""
    places = indices.long()
    return torch.where(places < 0, places + size, places)


@op("_onnx_gather", types="T I -> T")
def gather(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """Take slices along an axis; negative indices count from its end.

    >>> places = mx.nd.array([-1, 0], dtype="int64")
    >>> mx.nd._internal._onnx_gather(mx.nd.array([1, 2, 3]), places).asnumpy()
    array([3., 1.], dtype=float32)
    """
    axis %= data.ndim
    places = _wrapped(indices, data.shape[axis])
    made = data.index_select(axis, places.reshape(-1))
    return made.reshape((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))


@gather.infer_outputs
def gather_shape(data: Shape | None, indices: Shape | None, *, axis: int) -> Shape | None:
    """Put the shape of the indices in the place of the axis."""
    if data is None or indices is None:
        return None
    at = axis % len(data)
    return (*data[:at], *indices, *data[at + 1 :])


@op("_onnx_gather_elements", types="T I -> T")
def gather_elements(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """Take elements whose place along one axis is given.

    >>> places = mx.nd.array([[0, 0], [1, 0]], dtype="int64")
    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd._internal._onnx_gather_elements(x, places, axis=1).asnumpy()
    array([[1., 1.],
           [4., 3.]], dtype=float32)
    """
    return data.gather(axis, _wrapped(indices, data.shape[axis]))


@gather_elements.infer_outputs
def gather_elements_shape(data: Shape | None, indices: Shape | None, *, axis: int) -> Shape | None:
    """Return the shape of the indices."""
    return indices


@op("_onnx_gather_nd", types="T I -> T")
def gather_nd(data: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """Take elements or slices at coordinates, which stand in the last axis of the indices.

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
    places = [p.long() for p in indices.unbind(-1)]
    return data[(*lines, *places)]


def _combined(old: Tensor, places: tuple[Tensor, ...], updates: Tensor, how: str) -> Tensor:
    """Combine updates one after the other where several meet an element."""
    flat = old.reshape(-1).clone()
    at = torch.zeros_like(places[0])
    for place, size in zip(places, old.shape, strict=True):
        at = at * size + place
    at, values = at.reshape(-1), updates.reshape(-1)
    if how == "none":
        return flat.scatter(0, at, values).reshape(old.shape)
    return flat.scatter_reduce(0, at, values, TORCH_NAMES[how]).reshape(old.shape)


@op("_onnx_scatter_elements", types="T I T -> T")
def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: Reduction = "none"
) -> Tensor:
    """Write or combine elements whose place along one axis is given.

    Parameters
    ----------
    updates
        Elements to write.
    reduction
        How to combine with what is there.

    >>> x, places = mx.nd.zeros((3,)), mx.nd.array([1, 1], dtype="int64")
    >>> values = mx.nd.array([2, 3])
    >>> mx.nd._internal._onnx_scatter_elements(x, places, values, reduction="add").asnumpy()
    array([0., 5., 0.], dtype=float32)
    """
    places = _wrapped(indices, data.shape[axis])
    if reduction == "none":
        return data.scatter(axis, places, updates)
    return data.scatter_reduce(axis, places, updates, TORCH_NAMES[reduction])


@scatter_elements.infer_outputs
def scatter_elements_shape(data: Shape | None, *_: Shape | None, **__: object) -> Shape | None:
    """Keep the shape of the data."""
    return data


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
        How to combine with what is there.

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
    for i, place in enumerate(indices.unbind(-1)):
        wide = _wrapped(place, data.shape[i]).reshape(place.shape + (1,) * len(rest))
        coordinates.append(wide.expand(updates.shape))
    for i, size in enumerate(rest):
        line = torch.arange(size, device=data.device).reshape((-1,) + (1,) * (len(rest) - 1 - i))
        coordinates.append(line.expand(updates.shape))
    return _combined(data, tuple(coordinates), updates, reduction)


@scatter_nd.infer_outputs
def scatter_nd_shape(data: Shape | None, *_: Shape | None, **__: object) -> Shape | None:
    """Keep the shape of the data."""
    return data


@op("_onnx_tensor_scatter", types="T T I -> T")
def tensor_scatter(
    cache: Tensor,
    update: Tensor,
    starts: Tensor,
    *,
    axis: int = -2,
    mode: Literal["linear", "circular"] = "linear",
) -> Tensor:
    """Write a piece into a cache, for each sample from its own place on.

    Parameters
    ----------
    cache
        Array to write into.
    update
        Piece to write.
    starts
        Place of each sample to write from.
    mode
        How to compute what is missing.

    >>> cache, new = mx.nd.zeros((1, 3, 1)), mx.nd.ones((1, 1, 1))
    >>> at = mx.nd.array([1], dtype="int64")
    >>> mx.nd._internal._onnx_tensor_scatter(cache, new, at).asnumpy().ravel()
    array([0., 1., 0.], dtype=float32)
    """
    at = axis % cache.ndim
    length, size = update.shape[at], cache.shape[at]
    places = starts.long()[:, None] + torch.arange(length, device=cache.device)
    places = places % size if mode == "circular" else places
    shape = [1] * cache.ndim
    shape[0], shape[at] = places.shape[0], length
    return cache.scatter(at, places.reshape(shape).expand_as(update), update)


@tensor_scatter.infer_outputs
def tensor_scatter_shape(cache: Shape | None, *_: Shape | None, **__: object) -> Shape | None:
    """Keep the shape of the cache."""
    return cache
