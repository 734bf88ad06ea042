"""Windows of images as columns of a matrix, and back: what convolution multiplies."""

from __future__ import annotations

import itertools
import math

import torch.nn.functional as F
from torch import Tensor

from ....error import ShapeError
from ...attributes import Shape
from ...declare import op
from ...shapes import UNKNOWN


def _windows(
    name: str, size: Shape, kernel: Shape, stride: Shape, dilate: Shape, pad: Shape
) -> tuple[Shape, Shape, Shape, Shape]:
    """Return stride, dilation, padding and the number of windows along each spatial axis."""
    n = len(kernel)
    if len(size) != n:
        raise ShapeError(f"{name}: kernel={kernel} needs {n} spatial axes, but there are {size}.")
    stride, dilate, pad = stride or (1,) * n, dilate or (1,) * n, pad or (0,) * n
    counts = tuple(
        UNKNOWN if s == UNKNOWN else (s + 2 * p - d * (k - 1) - 1) // by + 1
        for s, k, by, d, p in zip(size, kernel, stride, dilate, pad, strict=True)
    )
    if any(c != UNKNOWN and c < 1 for c in counts):
        raise ShapeError(f"{name}: kernel={kernel} does not fit into {list(size)} with pad={pad}.")
    return stride, dilate, pad, counts


@op("im2col")
def im2col(
    data: Tensor, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = ()
) -> Tensor:
    """Lay each window of the images out as a column: (N, C * kernel, windows).

    Parameters
    ----------
    data
        Images of shape ``(batch, channels, height, width)``.

    >>> mx.nd.im2col(mx.nd.arange(4).reshape((1, 1, 2, 2)), kernel=(1, 2)).asnumpy()
    array([[[0., 2.],
            [1., 3.]]], dtype=float32)
    """
    size = tuple(data.shape[2:])
    stride, dilate, pad, counts = _windows("im2col", size, kernel, stride, dilate, pad)
    if len(kernel) == 2:
        return F.unfold(data, kernel, dilate, pad, stride)
    n = len(kernel)
    windows = F.pad(data, [p for p in reversed(pad) for _ in (0, 1)])
    for axis, (k, d, by) in enumerate(zip(kernel, dilate, stride, strict=True), 2):
        windows = windows.unfold(axis, d * (k - 1) + 1, by)[..., ::d]
    order = (0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n))
    columns = data.shape[1] * math.prod(kernel)
    return windows.permute(order).reshape(data.shape[0], columns, math.prod(counts))


@im2col.infer_outputs
def im2col_shape(
    data: Shape | None, *, kernel: Shape, stride: Shape, dilate: Shape, pad: Shape
) -> Shape | None:
    """Count the windows."""
    if data is None:
        return None
    counts = _windows("im2col", tuple(data[2:]), kernel, stride, dilate, pad)[3]
    channels = UNKNOWN if data[1] == UNKNOWN else data[1] * math.prod(kernel)
    return data[0], channels, UNKNOWN if UNKNOWN in counts else math.prod(counts)


@op("col2im")
def col2im(
    data: Tensor,
    *,
    output_size: Shape,
    kernel: Shape,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
) -> Tensor:
    """Add columns of windows up to images of ``output_size``: the reverse of `im2col`.

    Parameters
    ----------
    data
        Columns of shape ``(batch, channels * kernel, windows)``.
    output_size
        Height and width of the images.

    >>> mx.nd.col2im(mx.nd.ones((1, 2, 2)), output_size=(1, 3), kernel=(1, 2)).asnumpy()
    array([[[[1., 2., 1.]]]], dtype=float32)
    """
    stride, dilate, pad, counts = _windows("col2im", output_size, kernel, stride, dilate, pad)
    if len(kernel) == 2:
        return F.fold(data, output_size, kernel, dilate, pad, stride)
    batch, channels = data.shape[0], data.shape[1] // math.prod(kernel)
    windows = data.reshape(batch, channels, *kernel, *counts)
    wide = [s + 2 * p for s, p in zip(output_size, pad, strict=True)]
    images = data.new_zeros(batch, channels, *wide)
    for offset in itertools.product(*map(range, kernel)):
        places = [
            slice(o * d, o * d + by * (c - 1) + 1, by)
            for o, d, by, c in zip(offset, dilate, stride, counts, strict=True)
        ]
        images[(..., *places)] += windows[(slice(None), slice(None), *offset)]
    for axis, (s, p) in enumerate(zip(output_size, pad, strict=True), 2):
        images = images.narrow(axis, p, s)
    return images.contiguous()


@col2im.infer_outputs
def col2im_shape(
    data: Shape | None, *, output_size: Shape, kernel: Shape, **_: object
) -> Shape | None:
    """Divide the columns by the kernel."""
    if data is None:
        return None
    channels = UNKNOWN if data[1] == UNKNOWN else data[1] // math.prod(kernel)
    return data[0], channels, *output_size
