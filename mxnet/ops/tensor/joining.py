"""Concatenation, splitting, and windows as columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...error import ShapeError
from ..attributes import ArrayCount, Shape
from ..declare import op
from ..families import check_same_dtype
from ..shapes import UNKNOWN, Shapes, given_shapes, unify
from .identity import may_share
from .shape_changing import axis_within


def _open(shape: Shape | None, axis: int, name: str) -> Shape | None:
    """Return the shape with the size of one axis unknown."""
    if shape is None:
        return None
    at = axis_within(axis, len(shape), name)
    return (*shape[:at], UNKNOWN, *shape[at + 1 :])


def _concatenated(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """All sizes except along the axis agree; one unknown size there is inferred from the output."""
    dim, common = attrs["dim"], None
    for i, shape in enumerate([*ins, *outs]):
        what = f"Concat: input {i}" if i < len(ins) else "Concat: the output"
        common = unify(common, _open(shape, dim, "Concat"), what)
    if common is None:
        return ins, outs
    shapes = [unify(common, s) for s in ins]
    ins = [*shapes]
    at = axis_within(dim, len(common), "Concat")
    sizes = [s[at] for s in shapes]
    total = UNKNOWN if UNKNOWN in sizes else sum(sizes)
    out = unify((*common[:at], total, *common[at + 1 :]), outs[0], "Concat: the output")
    if sizes.count(UNKNOWN) == 1 and out[at] != UNKNOWN:
        left = out[at] - sum(n for n in sizes if n != UNKNOWN)
        position = sizes.index(UNKNOWN)
        ins[position] = (*common[:at], left, *common[at + 1 :])
    return ins, [out]


def _cat(name: str, data: tuple[Tensor, ...], dim: int) -> Tensor:
    first = data[0]
    for other in data:
        if other.dtype is not first.dtype:
            check_same_dtype(name, first, other)
        if other.ndim != first.ndim:  # torch accepts empty vectors
            raise ShapeError(
                f"{name}: Incompatible input shape: expected {first.ndim} axes as in "
                f"{list(first.shape)}, got {list(other.shape)}."
            )
    return torch.cat(data, dim)


@op(
    "Concat",
    "_sparse_concat",
    "concat",
    count="num_args",
    shape=_concatenated,
    precision="widest",
    keeps_finite=True,
    keeps_layout=True,
    names_output=True,
    repeatable=True,
)
def concat(*data: Tensor, dim: int = 1) -> Tensor:
    """Concatenate arrays along an axis.

    Parameters
    ----------
    data
        The arrays; their other axes have the same sizes.
    dim
        Axis to concatenate along; a negative value counts from the last.

    >>> x = mx.nd.array([[1, 2]])
    >>> mx.nd.Concat(x, x, dim=0).asnumpy()
    array([[1., 2.],
           [1., 2.]], dtype=float32)
    """
    return _cat("Concat", data, dim)


@concat.variant("call")
def _concat_one_dtype(attrs: dict[str, Any], dtype: torch.dtype) -> Callable:
    return concatenation(attrs.get("dim", 1))


def concatenation(axis: int) -> Callable[..., Tensor]:
    """Return the function that concatenates tensors of one dtype; the operator reports errors."""

    def join(*data: Tensor) -> Tensor:
        ndim = data[0].ndim
        for x in data:
            if x.ndim != ndim:  # torch accepts empty vectors
                raise ShapeError("arrays of different numbers of axes")
        return torch.cat(data, axis)

    return join


def _parameters_concatenated(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """Divide the unknown rest of the output evenly among inputs of unknown size."""
    ins, outs = _concatenated(ins, outs, attrs)
    at = attrs["dim"]
    known, out = given_shapes(ins), outs[0]
    if known is None or out is None or out[at] == UNKNOWN:
        return ins, outs
    open_ones = [i for i, s in enumerate(known) if s[at] == UNKNOWN]
    if len(open_ones) > 1:
        left = out[at] - sum(s[at] for s in known if s[at] != UNKNOWN)
        if left % len(open_ones) == 0:
            for i in open_ones:
                ins[i] = (*known[i][:at], left // len(open_ones), *known[i][at + 1 :])
    return ins, outs


@op(
    "_rnn_param_concat",
    "_npi_rnn_param_concat",
    count="num_args",
    shape=_parameters_concatenated,
    names_output=True,
)
def rnn_param_concat(*data: Tensor, dim: int = 1) -> Tensor:
    """Concatenate the parameters of a recurrent layer.

    Parameters
    ----------
    data
        The arrays.
    dim
        Axis to concatenate along.

    >>> x = mx.nd.array([1, 2])
    >>> mx.nd._internal._rnn_param_concat(x, x, dim=0).asnumpy()
    array([1., 2., 1., 2.], dtype=float32)
    """
    return _cat("_rnn_param_concat", data, dim)


def _stacked(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    part = None
    if outs[0] is not None:
        at = axis_within(attrs["axis"], len(outs[0]), "stack")
        part = outs[0][:at] + outs[0][at + 1 :]
    for i, shape in enumerate(ins):
        part = unify(part, shape, f"stack: input {i}")
    if part is None:
        return ins, outs
    at = axis_within(attrs["axis"], len(part) + 1, "stack")
    out = (*part[:at], len(ins), *part[at:])
    return [part] * len(ins), [unify(out, outs[0], "stack: the output")]


@op("stack", count="num_args", shape=_stacked, precision="widest", repeatable=True)
def stack(*data: Tensor, axis: int = 0) -> Tensor:
    """Stack arrays of the same shape along a new axis.

    Parameters
    ----------
    data
        The arrays, of the same shape.
    axis
        Position of the new axis in the result.

    >>> mx.nd.stack(mx.nd.array([1, 2]), mx.nd.array([3, 4]), axis=1).asnumpy()
    array([[1., 3.],
           [2., 4.]], dtype=float32)
    """
    first = data[0]
    for other in data:
        if other.dtype is not first.dtype:
            check_same_dtype("stack", first, other)
    return torch.stack(data, axis)


@stack.variant("call")
def stack_one_dtype(attrs: dict[str, Any], dtype: torch.dtype) -> Callable:
    """Return the function that stacks tensors of one dtype."""
    axis = attrs.get("axis", 0)
    return lambda *data: torch.stack(data, axis)


def _check_even(shape: Shape, at: int, parts: int, squeeze_axis: bool, name: str) -> None:
    if parts < 1 or shape[at] % parts:
        raise ShapeError(
            f"{name}: axis {at} of an array of shape {list(shape)} cannot be split into {parts} "
            f"even parts: {parts} does not evenly divide {shape[at]}."
        )
    if squeeze_axis and shape[at] != parts:
        raise ShapeError(
            f"{name}: with squeeze_axis the size of axis {at} must be the number of parts, "
            f"{parts}, but the shape is {list(shape)}."
        )


def _split_evenly(
    data: Tensor, parts: int, axis: int, squeeze_axis: bool, name: str
) -> tuple[Tensor, ...]:
    at = axis_within(axis, data.ndim, name)
    _check_even(data.shape, at, parts, squeeze_axis, name)
    return data.unbind(at) if squeeze_axis else data.split(data.shape[at] // parts or 1, at)


def _even_part(shape: Shape, parts: int, axis: int, squeeze_axis: bool, name: str) -> Shape:
    at = axis_within(axis, len(shape), name)
    if shape[at] != UNKNOWN:
        _check_even(shape, at, parts, squeeze_axis, name)
    if squeeze_axis:
        return shape[:at] + shape[at + 1 :]
    size = UNKNOWN if shape[at] == UNKNOWN else shape[at] // parts
    return (*shape[:at], size, *shape[at + 1 :])


@may_share
@op(
    "SliceChannel",
    "split",
    # Numbered even if there is only one.
    outputs=lambda a: tuple(f"output{i}" for i in range(a["num_outputs"])),
    method=True,
    names_single_input=True,
    gradients_by_input=True,
    names_output=True,
    repeatable=True,
)
def slice_channel(
    data: Tensor, *, num_outputs: ArrayCount, axis: int = 1, squeeze_axis: bool = False
) -> tuple[Tensor, ...] | Tensor:
    """Split an axis into equal parts; ``squeeze_axis`` removes the axis if parts have size 1.

    Parameters
    ----------
    num_outputs
        Number of equal parts.
    axis
        Axis to split; a negative value counts from the last.

    >>> [p.asnumpy().tolist() for p in mx.nd.SliceChannel(mx.nd.array([[1, 2]]), num_outputs=2)]
    [[[1.0]], [[2.0]]]
    """
    parts = _split_evenly(data, num_outputs, axis, squeeze_axis, "SliceChannel")
    return parts[0] if len(parts) == 1 else parts


def _sliced(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    parts, axis, squeeze_axis = attrs["num_outputs"], attrs["axis"], attrs["squeeze_axis"]
    part = None
    for shape in outs:
        part = unify(part, shape, "SliceChannel: an output")
    data = ins[0]
    if part is not None:
        at = axis_within(axis, len(part) + squeeze_axis, "SliceChannel")
        size = parts if squeeze_axis else part[at] * parts if part[at] != UNKNOWN else UNKNOWN
        whole = (*part[:at], size, *part[at + (not squeeze_axis) :])
        data = unify(data, whole, "SliceChannel: data")
    if data is not None:
        part = unify(part, _even_part(data, parts, axis, squeeze_axis, "SliceChannel"))
    return [data], [part] * len(outs)


slice_channel.shape_rule = _sliced


def _bounds(size: int, indices: Shape) -> list[tuple[int, int]]:
    """Return the begin and end of each part; the first index is 0."""
    if not size:
        return [(0, 0)] * len(indices)
    bounds = list(zip(indices, [*indices[1:], size], strict=True))
    if not indices or indices[0] or any(a > b for a, b in bounds):
        raise ShapeError(f"_split_v2: indices={indices} must be increasing from 0 to {size}.")
    return bounds


def _section_starts(size: int, sections: int) -> Shape:
    """Return the start of each section; the first ones are one longer if the size is not divisible.

    >>> _section_starts(7, 3)
    (0, 3, 5)
    """
    least, longer = divmod(size, sections)
    return tuple(i * least + min(i, longer) for i in range(sections))


@may_share
@op(
    "_split_v2",
    "_npi_split",
    outputs=lambda a: a["sections"] if a["sections"] > 0 else len(a["indices"]),
    names_single_input=True,
)
def split_v2(
    data: Tensor,
    *,
    indices: Shape,
    axis: int = 1,
    squeeze_axis: bool = False,
    sections: int = 0,
) -> tuple[Tensor, ...] | Tensor:
    """Split an axis into sections, or at indices.

    Parameters
    ----------
    indices
        Start of each part; the first is 0.
    axis
        Axis to split; a negative value counts from the last.

    >>> x = mx.nd.array([[1, 2, 3]])
    >>> [p.shape for p in mx.nd._internal._split_v2(x, indices=(0, 1), axis=1)]
    [(1, 1), (1, 2)]
    """
    at = axis_within(axis, data.ndim, "_split_v2")
    if sections > 0:
        indices = _section_starts(data.shape[at], sections)
    parts = [data.narrow(at, a, b - a) for a, b in _bounds(data.shape[at], indices)]
    if squeeze_axis:
        if any(p.shape[at] != 1 for p in parts):
            raise ShapeError(
                f"_split_v2: squeeze_axis needs parts of size 1, but axis {at} of "
                f"{list(data.shape)} is split at {indices}."
            )
        parts = [p.squeeze(at) for p in parts]
    return tuple(parts) if len(parts) > 1 else parts[0]


@split_v2.infer_outputs
def split_v2_shapes(
    data: Shape | None, *, indices: Shape, axis: int, squeeze_axis: bool, sections: int
) -> list[Shape] | None:
    """Infer the shape of each part."""
    if data is None:
        return None
    at = axis_within(axis, len(data), "_split_v2")
    before, after = data[:at], data[at + 1 :]
    if squeeze_axis:
        return [before + after] * (sections if sections > 0 else len(indices))
    if data[at] == UNKNOWN:
        return None
    if sections > 0:
        indices = _section_starts(data[at], sections)
    return [(*before, b - a, *after) for a, b in _bounds(data[at], indices)]


@op("khatri_rao", count="num_args", precision="full")
def khatri_rao(*args: Tensor) -> Tensor:
    """Compute the columnwise Kronecker (Khatri-Rao) product of matrices.

    Parameters
    ----------
    args
        Matrices with the same number of columns.

    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd.khatri_rao(x, x).asnumpy()
    array([[ 1.,  4.],
           [ 3.,  8.],
           [ 3.,  8.],
           [ 9., 16.]], dtype=float32)
    """
    output = args[0].clone()
    for other in args[1:]:
        if other.shape[1] != output.shape[1]:
            raise ShapeError(
                "khatri_rao: all matrices need the same number of columns, but have "
                f"{output.shape[1]} and {other.shape[1]}."
            )
        output = (output.unsqueeze(1) * other).flatten(0, 1)
    return output


@khatri_rao.infer_outputs
def khatri_rao_shape(*args: Shape | None) -> Shape | None:
    """Multiply the numbers of rows."""
    shapes = given_shapes(args)
    if shapes is None:
        return None
    rows = 1
    for a in shapes:
        rows = UNKNOWN if UNKNOWN in (rows, a[0]) else rows * a[0]
    return rows, shapes[0][1]


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


@op("im2col", names_output=True, names_single_input=True)
def im2col(
    data: Tensor, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = ()
) -> Tensor:
    """Extract windows of images as columns: (N, C * kernel, windows).

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
    """Infer the number of windows."""
    if data is None:
        return None
    counts = _windows("im2col", tuple(data[2:]), kernel, stride, dilate, pad)[3]
    channels = UNKNOWN if data[1] == UNKNOWN else data[1] * math.prod(kernel)
    return data[0], channels, UNKNOWN if UNKNOWN in counts else math.prod(counts)


@op("col2im", names_output=True, names_single_input=True)
def col2im(
    data: Tensor,
    *,
    output_size: Shape,
    kernel: Shape,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
) -> Tensor:
    """Sum columns of windows into images of ``output_size``, the adjoint of `im2col`.

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
        positions = [
            slice(o * d, o * d + by * (c - 1) + 1, by)
            for o, d, by, c in zip(offset, dilate, stride, counts, strict=True)
        ]
        images[(..., *positions)] += windows[(slice(None), slice(None), *offset)]
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
