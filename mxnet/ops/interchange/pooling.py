"""Pooling with dilations and with places, by windows that are written out."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from ..attributes import Shape
from ..declare import op


def _windows(data: Tensor, kernel: Shape, stride: Shape, dilate: Shape, pads: Shape, fill: float):
    """Return ``(batch, channels, *places, *kernel)`` of padded data."""
    rank = len(kernel)
    around = [n for i in reversed(range(rank)) for n in (pads[i], pads[rank + i])]
    made = functional.pad(data, around, value=fill) if any(around) else data
    for axis, (size, step, gap) in enumerate(zip(kernel, stride, dilate, strict=True), 2):
        reach = (size - 1) * gap + 1
        made = made.unfold(axis, reach, step)[..., ::gap]
    return made


def _lowest(data: Tensor) -> float:
    return -math.inf if data.is_floating_point() else torch.iinfo(data.dtype).min


@op("_onnx_max_pool", types="T -> T int64", outputs=2)
def max_pool(
    data: Tensor,
    *,
    kernel: Shape,
    stride: Shape,
    dilate: Shape,
    pads: Shape,
    storage_order: int = 0,
) -> tuple[Tensor, Tensor]:
    """Maximum over windows and its place in the flattened data.

    Parameters
    ----------
    pads
        Widths before all axes, then after them.
    storage_order
        Whether places count along columns (1) instead of rows (0).

    >>> out, places = mx.nd._internal._onnx_max_pool(
    ...     mx.nd.array([[[1, 5, 2]]]), kernel=(2,), stride=(1,), dilate=(1,), pads=(0, 0))
    >>> out.asnumpy().ravel(), places.asnumpy().ravel()
    (array([5., 5.], dtype=float32), array([1, 1]))
    """
    rank, sizes = len(kernel), data.shape[2:]
    windows = _windows(data, kernel, stride, dilate, pads, _lowest(data)).flatten(2 + rank)
    best, at = windows.max(-1)
    places = torch.zeros_like(at)
    steps, scale = [], 1
    for size in sizes if storage_order else reversed(sizes):
        steps.append(scale)
        scale *= size
    steps = steps if storage_order else steps[::-1]
    for i in reversed(range(rank)):
        inside, at = at % kernel[i], at // kernel[i]
        shape = [-1 if axis == 2 + i else 1 for axis in range(2 + rank)]
        starts = torch.arange(best.shape[2 + i], device=data.device).reshape(shape)
        places += (starts * stride[i] - pads[i] + inside * dilate[i]) * steps[i]
    planes = torch.arange(data.shape[0] * data.shape[1], device=data.device)
    front = planes.reshape(*data.shape[:2], *[1] * rank) * math.prod(sizes)
    return best, places + front


@op("_onnx_reduce_pool")
def reduce_pool(
    data: Tensor,
    *,
    kernel: Shape,
    stride: Shape,
    dilate: Shape,
    pads: Shape,
    extra: Shape = (),
    kind: Literal["avg", "lp"] = "avg",
    p: int = 2,
    count_include_pad: bool = False,
) -> Tensor:
    """Mean or p-norm over windows; `extra` is what rounding up adds to the pads and never counts.

    Parameters
    ----------
    pads
        Widths before all axes, then after them.
    extra
        Padding at the end that never counts.
    kind
        Kind of layer.
    p
        Order of the norm.
    count_include_pad
        Whether a mean counts padding.

    >>> mx.nd._internal._onnx_reduce_pool(
    ...     mx.nd.array([[[1, 5, 3]]]), kernel=(2,), stride=(1,), dilate=(2,), pads=(0, 0)
    ... ).asnumpy().ravel()
    array([2.], dtype=float32)
    """
    rank = len(kernel)
    more = extra or (0,) * rank
    whole = (*pads[:rank], *(a + e for a, e in zip(pads[rank:], more, strict=True)))
    shape = (kernel, stride, dilate)
    axes = tuple(range(-rank, 0))
    if kind == "lp":
        return _windows(data.abs() ** p, *shape, whole, 0).sum(axes) ** (1 / p)
    ones = torch.ones_like(data[:1, :1])
    if count_include_pad:
        around = [n for i in reversed(range(rank)) for n in (pads[i], pads[rank + i])]
        ones = functional.pad(ones, around, value=1)
        counts = _windows(ones, *shape, (*[0] * rank, *more), 0).sum(axes)
    else:
        counts = _windows(ones, *shape, whole, 0).sum(axes)
    return _windows(data, *shape, whole, 0).sum(axes) / counts


@op("_onnx_max_unpool", types="T I -> T")
def max_unpool(data: Tensor, indices: Tensor, *, shape: Shape) -> Tensor:
    """Put elements at their places in an array of zeros.

    >>> places = mx.nd.array([[[1]]], dtype="int64")
    >>> mx.nd._internal._onnx_max_unpool(mx.nd.ones((1, 1, 1)), places, shape=(1, 1, 2)).asnumpy()
    array([[[0., 1.]]], dtype=float32)
    """
    flat = data.new_zeros(math.prod(shape))
    return flat.scatter(0, indices.reshape(-1).long(), data.reshape(-1)).reshape(shape)


@op("_onnx_col2im")
def col2im(
    data: Tensor,
    *,
    image: Shape,
    kernel: Shape,
    stride: Shape = (),
    dilate: Shape = (),
    pads: Shape = (),
) -> Tensor:
    """Add columns of patches ``(batch, channels * kernel, patches)`` back into images.

    Parameters
    ----------
    image
        Sizes of the images.
    pads
        Widths before all axes, then after them.

    >>> x = mx.nd.ones((1, 2, 2))
    >>> mx.nd._internal._onnx_col2im(x, image=(3,), kernel=(2,)).asnumpy().ravel()
    array([1., 2., 1.], dtype=float32)
    """
    rank = len(image)
    stride, dilate = stride or (1,) * rank, dilate or (1,) * rank
    pads = pads or (0,) * 2 * rank
    whole = [n + pads[i] + pads[rank + i] for i, n in enumerate(image)]
    places = torch.arange(math.prod(whole), device=data.device).reshape(1, 1, *whole)
    windows = _windows(places, kernel, stride, dilate, (0,) * 2 * rank, 0)
    at = windows.flatten(2 + rank).flatten(2, 1 + rank)[0, 0].T  # (kernel, patches)
    batch = data.shape[0]
    columns = data.reshape(batch, -1, at.shape[0] * at.shape[1])
    flat = data.new_zeros((*columns.shape[:2], math.prod(whole)))
    made = flat.scatter_add(2, at.reshape(1, 1, -1).expand_as(columns), columns)
    made = made.reshape(*columns.shape[:2], *whole)
    for axis, size in enumerate(image):
        made = made.narrow(2 + axis, pads[axis], size)
    return made.contiguous()
