"""Operators whose output shape is an input, for models that compute shapes at run time."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from ...error import ShapeError
from ..declare import op
from ..shapes import UNKNOWN, Shape

# Limit for untrusted files.
MAX_ELEMENTS = 1 << 31
MAX_RANK = 64  # torch's


def _unknown(rank: int) -> Shape:
    if rank > MAX_RANK:
        raise ShapeError(f"a shape of {rank} sizes: an array has at most {MAX_RANK} axes.")
    return (UNKNOWN,) * rank


def _check_sizes(name: str, sizes: list[int]) -> list[int]:
    if math.prod(sizes) > MAX_ELEMENTS or any(size < 0 for size in sizes):
        raise ShapeError(f"{name}: cannot make an array of shape {sizes}.")
    return sizes


@op("_onnx_reshape", types="T I -> T", value_dependent=True)
def reshape(data: Tensor, shape: Tensor, *, allowzero: bool = False) -> Tensor:
    """Reshape to sizes given by an array: 0 copies a size, -1 is inferred.

    Parameters
    ----------
    allowzero
        Whether 0 means a size of 0 instead of a copied one.

    >>> x, shape = mx.nd.ones((2, 3)), mx.nd.array([3, -1], dtype="int64")
    >>> mx.nd._internal._onnx_reshape(x, shape).shape
    (3, 2)
    """
    sizes = shape.tolist()
    if not allowzero:
        if any(n == 0 and i >= data.ndim for i, n in enumerate(sizes)):
            raise ShapeError(f"_onnx_reshape: {sizes} copies a size that {list(data.shape)} lacks.")
        sizes = [data.shape[i] if n == 0 else n for i, n in enumerate(sizes)]
    return data.reshape(sizes)


@reshape.infer_outputs
def reshape_shape(data: Shape | None, shape: Shape | None, **_: object) -> Shape | None:
    """Only the rank is known statically."""
    return None if not shape or shape[0] < 0 else _unknown(shape[0])


@op("_onnx_expand", types="T I -> T", value_dependent=True)
def expand(data: Tensor, shape: Tensor) -> Tensor:
    """Broadcast with a shape given by an array.

    >>> shape = mx.nd.array([2, 1], dtype="int64")
    >>> mx.nd._internal._onnx_expand(mx.nd.ones((1, 3)), shape).shape
    (2, 3)
    """
    target = torch.broadcast_shapes(data.shape, shape.tolist())
    return data.expand(_check_sizes("_onnx_expand", list(target))).clone()


@expand.infer_outputs
def expand_shape(data: Shape | None, shape: Shape | None) -> Shape | None:
    """Only the rank is known statically."""
    if data is None or not shape or shape[0] < 0:
        return None
    return _unknown(max(len(data), shape[0]))


@op("_onnx_slice", types="T I -> T", value_dependent=True)
def slice_ranges(data: Tensor, starts: Tensor, ends: Tensor, axes: Tensor, steps: Tensor) -> Tensor:
    """Slice axes by ranges given by arrays.

    Parameters
    ----------
    starts
        First index of each range.
    ends
        Index after the last of each range.
    steps
        Step of each range.

    >>> ints = lambda *n: mx.nd.array(n, dtype="int64")
    >>> x = mx.nd.array([1, 2, 3, 4])
    >>> mx.nd._internal._onnx_slice(x, ints(3), ints(-10), ints(0), ints(-2)).asnumpy()
    array([4., 2.], dtype=float32)
    """
    ranges = zip(starts.tolist(), ends.tolist(), axes.tolist(), steps.tolist(), strict=True)
    for start, end, axis, step in ranges:
        first, last, by = slice(start, end, step).indices(data.shape[axis])
        if by > 0:
            data = data.narrow(axis, first, max(last - first, 0))
            data = data[(slice(None),) * (axis % data.ndim) + (slice(None, None, by),)]
        else:
            indices = torch.arange(first, last, by, device=data.device)
            data = data.index_select(axis, indices)
    return data.clone()


@op("_onnx_range", value_dependent=True)
def arange(start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    """Return evenly spaced numbers, with arrays as bounds.

    Parameters
    ----------
    limit
        End of the interval, excluded.
    delta
        Distance between values.

    >>> number = lambda n: mx.nd.array([n], dtype="int64")
    >>> mx.nd._internal._onnx_range(number(0), number(5), number(2)).asnumpy()
    array([0, 2, 4])
    """
    first, last, step = (x.item() for x in (start, limit, delta))
    count = 0 if step == 0 else -(-(last - first) // step)
    _check_sizes("_onnx_range", [max(int(count), 0)])
    if step == 0 or count <= 0:
        return start.new_zeros((0,))
    return torch.arange(first, last, step, dtype=start.dtype, device=start.device)


@arange.infer_outputs
def arange_shape(*_: Shape | None) -> Shape:
    """The size of the one axis is known only when it runs."""
    return (UNKNOWN,)


@op("_onnx_pad", types="T I T -> T", value_dependent=True)
def pad(
    data: Tensor,
    pads: Tensor,
    value: Tensor,
    *,
    mode: Literal["constant", "edge", "reflect", "wrap"] = "constant",
) -> Tensor:
    """Pad all axes by an array of widths: before, then after.

    Parameters
    ----------
    pads
        Padding before all axes, then after them.
    value
        Value of the padding.
    mode
        Interpolation or padding mode.

    >>> pads = mx.nd.array([1, 0], dtype="int64")
    >>> mx.nd._internal._onnx_pad(mx.nd.ones((2,)), pads, mx.nd.zeros((1,))).asnumpy()
    array([0., 1., 1.], dtype=float32)
    """
    widths = pads.tolist()
    before, after = widths[: data.ndim], widths[data.ndim :]
    _check_sizes(
        "_onnx_pad", [n + b + a for n, b, a in zip(data.shape, before, after, strict=True)]
    )
    if mode == "constant":
        pairs = [n for pair in zip(before[::-1], after[::-1], strict=True) for n in pair]
        return functional.pad(data, pairs, value=value.item())
    for axis, (b, a) in enumerate(zip(before, after, strict=True)):
        data = data.index_select(axis, _sources(data.shape[axis], b, a, mode, data.device))
    return data


def _sources(size: int, before: int, after: int, mode: str, device: torch.device) -> Tensor:
    indices = torch.arange(-before, size + after, device=device)
    if mode == "edge":
        return indices.clamp(0, size - 1)
    if mode == "wrap":
        return indices % size
    period = max(2 * (size - 1), 1)
    folded = indices % period
    return torch.where(folded >= size, period - folded, folded)


@op("_onnx_tile", types="T I -> T", value_dependent=True)
def tile(data: Tensor, repeats: Tensor) -> Tensor:
    """Repeat an array along each axis, by an array of counts.

    Parameters
    ----------
    repeats
        Number of repetitions along each axis.

    >>> repeats = mx.nd.array([2], dtype="int64")
    >>> mx.nd._internal._onnx_tile(mx.nd.array([1, 2]), repeats).asnumpy()
    array([1., 2., 1., 2.], dtype=float32)
    """
    counts = repeats.tolist()
    _check_sizes("_onnx_tile", [n * c for n, c in zip(data.shape, counts, strict=True)])
    return data.repeat(counts)


def _same_rank(data: Shape | None, *_: Shape | None, **__: object) -> Shape | None:
    return None if data is None else _unknown(len(data))


for _op in (slice_ranges, pad, tile):
    _op.infer_outputs(_same_rank)


@op("_onnx_topk", types="T I -> T int64", outputs=2, value_dependent=True)
def topk(data: Tensor, k: Tensor, *, axis: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
    """Return the `k` largest or smallest elements and their indices; `k` is an array.

    Parameters
    ----------
    largest
        Whether to return the largest instead of the smallest.

    >>> k = mx.nd.array([2], dtype="int64")
    >>> mx.nd._internal._onnx_topk(mx.nd.array([1, 3, 2]), k)[1].asnumpy()
    array([1, 2])
    """
    values, indices = torch.sort(data, dim=axis, descending=largest, stable=True)
    count = min(int(k.item()), data.shape[axis])
    return values.narrow(axis, 0, count).clone(), indices.narrow(axis, 0, count).clone()


@topk.infer_outputs
def topk_shapes(
    data: Shape | None, k: Shape | None, *, axis: int, **_: object
) -> list[Shape] | None:
    """All axes but one are known before it runs."""
    if data is None:
        return None
    at = axis % len(data)
    shape = (*data[:at], UNKNOWN, *data[at + 1 :])
    return [shape, shape]
