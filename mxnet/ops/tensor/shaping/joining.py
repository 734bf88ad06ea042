"""Operators that put arrays together, and those that take them apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....error import ShapeError
from ...attributes import ArrayCount, Shape
from ...declare import op
from ...families import check_same_dtype
from ...shapes import UNKNOWN, Shapes, given_shapes, unify
from ..memory import may_share
from .shape_changing import axis_within


def _open(shape: Shape | None, axis: int, name: str) -> Shape | None:
    """Return the shape with the size of one axis unknown."""
    if shape is None:
        return None
    at = axis_within(axis, len(shape), name)
    return (*shape[:at], UNKNOWN, *shape[at + 1 :])


def _concatenated(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """All sizes but the concatenated one agree; one unknown there follows from the output."""
    dim, common = attrs["dim"], None
    for i, shape in enumerate([*ins, *outs]):
        what = f"Concat: input {i}" if i < len(ins) else "Concat: the output"
        common = unify(common, _open(shape, dim, "Concat"), what)
    if common is None:
        return ins, outs
    known = [unify(common, s) for s in ins]
    ins = [*known]
    at = axis_within(dim, len(common), "Concat")
    sizes = [s[at] for s in known]
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
        if other.ndim != first.ndim:  # torch lets empty vectors pass
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
)
def concat(*data: Tensor, dim: int = 1) -> Tensor:
    """Join arrays along an axis.

    Parameters
    ----------
    data
        The arrays; they agree in all other axes.
    dim
        The axis to join along; a negative one counts from the last.

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
    """Return the function that joins tensors of one dtype; operators explain what does not fit."""

    def join(*data: Tensor) -> Tensor:
        ndim = data[0].ndim
        for x in data:
            if x.ndim != ndim:  # torch lets empty vectors pass
                raise ShapeError("arrays of different numbers of axes")
        return torch.cat(data, axis)

    return join


def _parameters_concatenated(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """Inputs of unknown size share what is left of the output evenly."""
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


@op("_rnn_param_concat", "_npi_rnn_param_concat", count="num_args", shape=_parameters_concatenated)
def rnn_param_concat(*data: Tensor, dim: int = 1) -> Tensor:
    """Join the parameters of a recurrent layer into one array.

    Parameters
    ----------
    data
        The arrays.
    dim
        The axis to join along.

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


@op("stack", count="num_args", shape=_stacked, precision="widest")
def stack(*data: Tensor, axis: int = 0) -> Tensor:
    """Join arrays of one shape along a new axis.

    Parameters
    ----------
    data
        The arrays, of one shape.
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
    # Numbered even when there is one.
    outputs=lambda a: tuple(f"output{i}" for i in range(a["num_outputs"])),
    method=True,
    names_single_input=True,
    gradients_by_input=True,
)
def slice_channel(
    data: Tensor, *, num_outputs: ArrayCount, axis: int = 1, squeeze_axis: bool = False
) -> tuple[Tensor, ...] | Tensor:
    """Split an axis into equal parts; ``squeeze_axis`` removes it where parts have size 1.

    Parameters
    ----------
    num_outputs
        Number of equal parts.
    axis
        The axis to split; a negative one counts from the last.

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
    """Return where parts begin and end; the first index is 0."""
    bounds = list(zip(indices, [*indices[1:], size], strict=True))
    if not indices or indices[0] or any(a > b for a, b in bounds):
        raise ShapeError(f"_split_v2: indices={indices} do not rise from 0 to {size}.")
    return bounds


def _section_starts(size: int, sections: int) -> Shape:
    """Return where sections begin; the first ones are longer by 1 where the size does not fit.

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
    """Split an axis into sections, or before each of the indices (the first being 0).

    Parameters
    ----------
    indices
        Where the parts begin, with 0 first.
    axis
        The axis to split; a negative one counts from the last.

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
    """Return the columnwise Kronecker product of matrices.

    Parameters
    ----------
    args
        Matrices with equally many columns.

    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd.khatri_rao(x, x).asnumpy()
    array([[ 1.,  4.],
           [ 3.,  8.],
           [ 3.,  8.],
           [ 9., 16.]], dtype=float32)
    """
    made = args[0].clone()
    for other in args[1:]:
        if other.shape[1] != made.shape[1]:
            raise ShapeError(
                "khatri_rao: all matrices need equally many columns, but have "
                f"{made.shape[1]} and {other.shape[1]}."
            )
        made = (made.unsqueeze(1) * other).flatten(0, 1)
    return made


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
