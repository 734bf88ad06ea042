"""Correlation of two feature maps over displacements, as optical flow networks use it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ...error import ShapeError
from ..attributes import Count, Shape
from ..declare import op
from ..shapes import UNKNOWN


def _sizes(size: int, kernel: int, reach: int, stride: int, pad: int) -> int:
    """Return how many places fit along an axis."""
    if size == UNKNOWN:
        return UNKNOWN
    return -((2 * (reach + (kernel - 1) // 2) - size - 2 * pad) // stride)


@op("Correlation", outputs=("output",), total=3, precision="widest", gradients_by_input=True)
def correlation(
    data1: Tensor,
    data2: Tensor,
    *,
    kernel_size: Count = 1,
    max_displacement: Count = 1,
    stride1: Count = 1,
    stride2: Count = 1,
    pad_size: Count = 0,
    is_multiply: bool = True,
) -> Tensor:
    """Compare patches of one map with patches of the other at all displacements.

    A channel of the result is the mean product (or absolute difference) at one displacement.

    Parameters
    ----------
    data1
        The first map, of shape ``(batch, channels, height, width)``.
    data2
        The second map, of the same shape.
    kernel_size
        Size of the patches, an odd number.
    max_displacement
        Largest displacement.
    stride1
        Step over the first map.
    stride2
        Step between displacements.
    pad_size
        Number of zeros around both maps.
    is_multiply
        Whether patches are multiplied; else their absolute difference is taken.

    >>> x = mx.nd.array([[[[1, 2, 3]]]])
    >>> mx.nd.Correlation(x, x, pad_size=1).asnumpy()[0, 3:6, 0]
    array([[0., 2., 6.],
           [1., 4., 9.],
           [2., 6., 0.]], dtype=float32)
    """
    if data1.shape != data2.shape or data1.ndim != 4:
        raise ShapeError(
            f"Shape inconsistent in Correlation: needs two equal arrays of 4 axes, got "
            f"{list(data1.shape)} and {list(data2.shape)}."
        )
    high = _sizes(data1.shape[2], kernel_size, max_displacement, stride1, pad_size)
    wide = _sizes(data1.shape[3], kernel_size, max_displacement, stride1, pad_size)
    if high < 1 or wide < 1:
        raise ShapeError(
            f"Correlation cannot be done with {list(data1.shape)}: kernel_size={kernel_size} and "
            f"max_displacement={max_displacement} need more padding than pad_size={pad_size}."
        )
    first, second = (F.pad(x, [pad_size] * 4) for x in (data1, data2))
    tall, broad = ((n - 1) * stride1 + kernel_size for n in (high, wide))
    # A kernel of 1 needs no neighbors: take just the places that count.
    step = stride1 if kernel_size == 1 else 1

    def window(x: Tensor, down: int, right: int) -> Tensor:
        top, left = max_displacement + down, max_displacement + right
        return x[:, :, top : top + tall : step, left : left + broad : step]

    here = window(first, 0, 0)
    radius = max_displacement // stride2
    moves = [stride2 * i for i in range(-radius, radius + 1)]
    found = []
    for down in moves:
        for right in moves:
            there = window(second, down, right)
            match = here * there if is_multiply else _distance(here, there)
            found.append(match.mean(1))
    out = torch.stack(found, 1)
    return out if kernel_size == 1 else F.avg_pool2d(out, kernel_size, stride1)


def _distance(first: Tensor, second: Tensor) -> Tensor:
    """Return ``|first - second|``, whose gradient at 0 is that of ``first - second``."""
    difference = first - second
    return torch.where(difference >= 0, difference, -difference)


@correlation.infer_outputs
def correlation_shape(
    data1: Shape | None,
    data2: Shape | None,
    *,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    pad_size: int,
    **_: object,
) -> Shape | None:
    """One channel for each displacement."""
    data = data1 or data2
    if data is None:
        return None
    sizes = (_sizes(n, kernel_size, max_displacement, stride1, pad_size) for n in data[2:])
    return (data[0], (2 * (max_displacement // stride2) + 1) ** 2, *sizes)
