"""Convolutions whose weight gradient is a product of matrices.

On processors without AVX-512 oneDNN computes the gradient of a weight at little more than half the
speed of its other kernels; a product of the output's gradient by the windows of the data does not.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

LAST = torch.channels_last
BAND = 1 << 18  # elements of windows that are copied at once: they stay in the cache
LEAST_CHANNELS = 16  # windows of few channels are copied in small pieces
LEAST_WINDOWS = 256  # in a batch; with fewer, the calls cost what they save

Pair = tuple[int, ...]


@functools.cache
def _has_slow_kernel() -> bool:
    return torch.backends.cpu.get_cpu_capability() == "AVX2"


def pays(data: Tensor, weight: Tensor, output_sizes: Pair) -> bool:
    """Return whether this convolution should be differentiated by windows."""
    return (
        weight.requires_grad
        and torch.is_grad_enabled()
        and data.is_cpu
        and data.dtype is weight.dtype is torch.float32
        and weight[0, 0].numel() > 1
        and weight.shape[1] >= LEAST_CHANNELS
        and min(output_sizes) > 0
        and len(data) * output_sizes[0] * output_sizes[1] >= LEAST_WINDOWS
        and _has_slow_kernel()
    )


class _Convolution(torch.autograd.Function):
    """Convolves by oneDNN; only the gradient of the weight is computed differently."""

    @staticmethod
    def forward(
        ctx: Any,
        data: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: Pair,
        pad: Pair,
        dilate: Pair,
    ) -> Tensor:
        ctx.save_for_backward(data, weight)
        ctx.place = stride, pad, dilate
        return torch.conv2d(data, weight, bias, stride, pad, dilate)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:  # type: ignore[override]
        data, weight = ctx.saved_tensors
        of_data, of_weight, of_bias = ctx.needs_input_grad[:3]
        grads: list[Tensor | None] = [None, None, None]
        if of_data:
            rest = (False, [0, 0], 1, [True, False, False])
            backward = torch.ops.aten.convolution_backward
            grads[0] = backward(grad, data, weight, None, *ctx.place, *rest)[0]
        if of_weight:
            grads[1] = _weight_gradient(grad, data, weight.shape, *ctx.place)
        if of_bias:  # oneDNN would compute the weight's gradient too
            grads[2] = grad.sum((0, 2, 3))
        return *grads, None, None, None


def _weight_gradient(
    grad: Tensor, data: Tensor, shape: torch.Size, stride: Pair, pad: Pair, dilate: Pair
) -> Tensor:
    """Sum the products of the output's gradient by the windows of the data, band by band."""
    filters, channels, *kernel = shape
    rows = grad.permute(0, 2, 3, 1)
    windows = _windows(data, rows.shape[:3], kernel, stride, pad, dilate)
    size = channels * kernel[0] * kernel[1]
    total: Tensor | None = None
    for some, seen in zip(_bands(rows, size), _bands(windows, size), strict=True):
        factors = some.reshape(-1, filters).t(), seen.reshape(-1, size)
        total = torch.mm(*factors) if total is None else total.addmm_(*factors)
    assert total is not None  # there are windows
    return total.view(filters, *kernel, channels).permute(0, 3, 1, 2)


def _bands(images: Tensor, window_size: int) -> Iterator[Tensor]:
    """Yield several images, or lines of one, whose windows fit the cache together."""
    height, width = images.shape[1:3]
    lines = max(1, BAND // (width * window_size))
    if lines >= height:
        yield from images.split(lines // height)
    else:
        for image in images:
            yield from image.split(lines)


def _windows(
    data: Tensor, counts: Pair, kernel: list[int], stride: Pair, pad: Pair, dilate: Pair
) -> Tensor:
    """Return a view of the padded data: (batch, height, width, *kernel, channels)."""
    padded = data.contiguous(memory_format=LAST).permute(0, 2, 3, 1)
    if any(pad):
        padded = F.pad(padded, (0, 0, pad[1], pad[1], pad[0], pad[0]))
    n, h, w, c = padded.stride()
    strides = (n, h * stride[0], w * stride[1], h * dilate[0], w * dilate[1], c)
    return padded.as_strided((*counts, *kernel, padded.shape[3]), strides)


def convolve(
    data: Tensor, weight: Tensor, bias: Tensor | None, stride: Pair, pad: Pair, dilate: Pair
) -> Tensor:
    """Convolve two-dimensional data; the gradient of the weight is a product of matrices."""
    return _Convolution.apply(data, weight, bias, stride, pad, dilate)  # type: ignore[no-any-return]
