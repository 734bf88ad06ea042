"""Sampling of images and volumes at given places."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from ..attributes import Shape
from ..declare import op


@op("_onnx_grid_sample")
def grid_sample(
    data: Tensor,
    grid: Tensor,
    *,
    mode: Literal["bilinear", "nearest", "bicubic"] = "bilinear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
    align_corners: bool = False,
) -> Tensor:
    """Sample ``(batch, channels, ...)`` at a grid ``(batch, ..., 2 or 3)`` of places in [-1, 1].

    >>> x, middle = mx.nd.array([[[[1, 3]]]]), mx.nd.zeros((1, 1, 1, 2))
    >>> mx.nd._internal._onnx_grid_sample(x, middle).asnumpy().ravel()
    array([2.], dtype=float32)
    """
    return functional.grid_sample(data, grid, mode, padding_mode, align_corners)


@op("_onnx_affine_grid")
def affine_grid(theta: Tensor, *, size: Shape, align_corners: bool = False) -> Tensor:
    """Return the places ``(batch, ..., 2 or 3)`` of affine maps, for `grid_sample`.

    >>> identity = mx.nd.array([[[1, 0, 0], [0, 1, 0]]])
    >>> mx.nd._internal._onnx_affine_grid(identity, size=(1, 1, 1, 2)).asnumpy()[0, 0, :, 0]
    array([-0.5,  0.5], dtype=float32)
    """
    return functional.affine_grid(theta, list(size), align_corners)


@op("_onnx_roi_align_max", types="T T I -> T")
def roi_align_max(
    data: Tensor,
    rois: Tensor,
    images: Tensor,
    *,
    pooled_size: Shape,
    spatial_scale: float = 1.0,
    sample_ratio: int = 0,
    aligned: bool = True,
) -> Tensor:
    """Largest weighted corner of bilinear samples over bins of regions ``(x1, y1, x2, y2)``.

    >>> x, roi = mx.nd.ones((1, 1, 4, 4)), mx.nd.array([[0, 0, 4, 4]])
    >>> image = mx.nd.array([0], dtype="int64")
    >>> mx.nd._internal._onnx_roi_align_max(x, roi, image, pooled_size=(2, 2)).shape
    (1, 1, 2, 2)
    """
    shift = 0.5 if aligned else 0.0
    made = []
    for box, image in zip(rois * spatial_scale - shift, images.tolist(), strict=True):
        x1, y1, x2, y2 = box.unbind()
        extent = (y2 - y1, x2 - x1)
        if not aligned:
            extent = tuple(e.clamp(min=1) for e in extent)
        lines = [
            _bin_places(start, e / n, n, sample_ratio)
            for start, e, n in zip((y1, x1), extent, pooled_size, strict=True)
        ]
        made.append(_largest(data[image], *lines))
    return torch.stack(made) if made else data.new_zeros((0, data.shape[1], *pooled_size))


def _bin_places(start: Tensor, size: Tensor, count: int, ratio: int) -> Tensor:
    """Return the places of samples as ``(bins, samples)``."""
    samples = ratio or max(int(torch.ceil(size).item()), 1)
    bins = torch.arange(count, device=start.device)[:, None]
    inside = (torch.arange(samples, device=start.device) + 0.5) / samples
    return start + (bins + inside) * size


def _largest(image: Tensor, ys: Tensor, xs: Tensor) -> Tensor:
    height, width = image.shape[-2:]
    (y_low, y_high, y_far, y_on), (x_low, x_high, x_far, x_on) = (
        _corners(line, n) for line, n in ((ys, height), (xs, width))
    )
    found = None
    for rows, share_y in ((y_low, 1 - y_far), (y_high, y_far)):
        for columns, share_x in ((x_low, 1 - x_far), (x_high, x_far)):
            values = image[:, rows][..., columns]  # (channels, bins, samples, bins, samples)
            shares = share_y[..., None, None] * share_x * y_on[..., None, None] * x_on
            part = values * shares
            found = part if found is None else torch.maximum(found, part)
    assert found is not None
    return found.amax((2, 4))


def _corners(line: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    is_on = ((line >= -1) & (line <= size)).to(line.dtype)
    at = line.clamp(0, size - 1)
    low = at.floor().long()
    return low, (low + 1).clamp(max=size - 1), at - low, is_on
