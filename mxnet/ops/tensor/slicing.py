"""Slicing and assignment to slices."""

from __future__ import annotations

from functools import lru_cache

from torch import Tensor

from ...error import ShapeError
from ..attributes import Bounds, Shape
from ..declare import op
from ..families import number
from ..shapes import UNKNOWN, Shapes, same, unify
from .identity import may_share
from .shape_changing import axis_within

Ranges = tuple[slice, ...]


def _check_bounds(name: str, ndim: int, begin: Bounds, end: Bounds, step: Bounds) -> None:
    if len(begin) != len(end):
        raise ShapeError(f"{name}: begin={begin} and end={end} must have the same length.")
    if step and len(step) != len(begin):
        raise ShapeError(f"{name}: step={step} and begin={begin} must have the same length.")
    if len(begin) > ndim:
        raise ShapeError(f"{name}: begin={begin} has more axes than the data, which has {ndim}.")
    if 0 in step:
        raise ShapeError(f"{name}: step={step} cannot have a 0.")


@lru_cache(maxsize=4096)
def ranges(
    name: str, shape: Shape, begin: Bounds, end: Bounds, step: Bounds
) -> tuple[Ranges, tuple[int, ...], Shape]:
    """Return torch's slices, the axes to flip for negative steps, and the shape.

    >>> ranges("slice", (5,), (4,), (None,), (-2,))
    ((slice(0, 5, 2),), (0,), (3,))
    """
    _check_bounds(name, len(shape), begin, end, step)
    slices, flips, sizes = [], [], list(shape)
    for axis, (first, last) in enumerate(zip(begin, end, strict=True)):
        by = step[axis] if step else 1
        start, stop, by = slice(first, last, by).indices(shape[axis])
        count = len(range(start, stop, by))
        sizes[axis] = count
        if by < 0:
            flips.append(axis)
            start, stop, by = start + (count - 1) * by, start + 1, -by
        slices.append(slice(start, stop, by) if count else slice(0, 0))
    return tuple(slices), tuple(flips), tuple(sizes)


@may_share
@op("slice", "_npi_slice", "_npx_slice", "_sparse_slice", "crop", method=True, repeatable=True)
def slice_(data: Tensor, *, begin: Bounds, end: Bounds, step: Bounds = ()) -> Tensor:
    """Slice the leading axes by ``begin:end:step``; None means an open end.

    Parameters
    ----------
    step
        Step along each axis, which may be negative; 1 by default.

    >>> x = mx.nd.array([[0, 1, 2], [3, 4, 5]])
    >>> mx.nd.slice(x, begin=(0, 2), end=(2, None), step=(1, -1)).asnumpy()
    array([[2., 1., 0.],
           [5., 4., 3.]], dtype=float32)
    """
    slices, flips, _ = ranges("slice", data.shape, begin, end, step)
    part = data[slices]
    return part.flip(flips) if flips else part


@slice_.infer_outputs
def slice_shape(data: Shape | None, *, begin: Bounds, end: Bounds, step: Bounds) -> Shape | None:
    """Infer the size of each range."""
    if data is None:
        return None
    if UNKNOWN not in data:
        return ranges("slice", data, begin, end, step)[2]
    _check_bounds("slice", len(data), begin, end, step)
    known = tuple(max(n, 0) for n in data)
    sizes = ranges("slice", known, begin, end, step)[2]
    return tuple(UNKNOWN if have == UNKNOWN else n for have, n in zip(data, sizes, strict=True))


def _axis_range(size: int, begin: int, end: int | None) -> tuple[int, int]:
    first = begin + size if begin < 0 else begin
    last = size if end is None else end + size if end < 0 else end
    if not 0 <= first < last <= size:
        raise ShapeError(
            f"slice_axis: Invalid begin, end, get begin={begin}, end={end}; the axis has {size}."
        )
    return first, last - first


@may_share
@op("slice_axis", method=True, repeatable=True)
def slice_axis(data: Tensor, *, axis: int, begin: int, end: int | None) -> Tensor:
    """Slice one axis by ``begin:end``.

    Parameters
    ----------
    axis
        The axis to slice; a negative value counts from the last.
    begin
        First index; a negative value counts from the end.
    end
        Index to stop before; a negative value counts from the end, None means the end.

    >>> mx.nd.slice_axis(mx.nd.array([[1, 2, 3]]), axis=1, begin=-2, end=None).asnumpy()
    array([[2., 3.]], dtype=float32)
    """
    at = axis_within(axis, data.ndim, "slice_axis")
    return data.narrow(at, *_axis_range(data.shape[at], begin, end))


@slice_axis.infer_outputs
def slice_axis_shape(data: Shape | None, *, axis: int, begin: int, end: int | None) -> Shape | None:
    """Change the size of one axis."""
    if data is None:
        return None
    at = axis_within(axis, len(data), "slice_axis")
    size = data[at] if data[at] == UNKNOWN else _axis_range(data[at], begin, end)[1]
    return (*data[:at], size, *data[at + 1 :])


def _like_sizes(data: Shape, like: Shape, axes: Shape | None) -> Shape:
    if axes is None:
        return data
    if not axes and len(data) != len(like):
        raise ShapeError(
            "slice_like: without axes, both arrays must have the same number of axes, but have "
            f"{list(data)} and "
            f"{list(like)}."
        )
    sizes = list(data)
    for axis in axes or range(len(data)):
        at = axis_within(axis, len(data), "slice_like")
        if at >= len(like):
            raise ShapeError(f"slice_like: axis {at} exceeds the second array {list(like)}.")
        if like[at] > data[at] != UNKNOWN:
            raise ShapeError(
                f"slice_like: axis {at} with size {like[at]} exceeds limit of input with size "
                f"{data[at]}."
            )
        sizes[at] = like[at]
    return tuple(sizes)


@may_share
@op("slice_like", types="T L -> T", method=True, without_gradient=("shape_like",), repeatable=True)
def slice_like(data: Tensor, shape_like: Tensor, *, axes: Shape | None = ()) -> Tensor:
    """Slice the array to the sizes of another, on all or given axes; None: on no axis.

    Parameters
    ----------
    shape_like
        The array whose sizes are used; its values are ignored.
    axes
        The axes to slice; by default all.

    >>> mx.nd.slice_like(mx.nd.array([[1, 2], [3, 4]]), mx.nd.zeros((1, 2))).asnumpy()
    array([[1., 2.]], dtype=float32)
    """
    return data[tuple(slice(0, n) for n in _like_sizes(data.shape, shape_like.shape, axes))]


@slice_like.infer_outputs
def slice_like_shape(
    data: Shape | None, shape_like: Shape | None, *, axes: Shape | None
) -> Shape | None:
    """Use the sizes of the second array."""
    return None if data is None or shape_like is None else _like_sizes(data, shape_like, axes)


@op("reverse", "flip", shape=same, method=True, names_single_input=True)
def reverse(data: Tensor, *, axis: Shape) -> Tensor:
    """Reverse the order of elements along axes.

    Parameters
    ----------
    axis
        The axes to reverse; negative values count from the last.

    >>> mx.nd.reverse(mx.nd.array([[1, 2], [3, 4]]), axis=0).asnumpy()
    array([[3., 4.],
           [1., 2.]], dtype=float32)
    """
    return data.flip(axis)


def _crop_window(
    data: Shape, size: Shape, offset: Shape, center: bool
) -> tuple[int, int, int, int]:
    height, width = size
    if height < 1 or width < 1:
        raise ShapeError(f"Crop: h_w={size} must be larger than 0.")
    free = data[2] - height, data[3] - width
    top, left = (free[0] // 2, free[1] // 2) if center else offset
    if not (0 <= top <= free[0] and 0 <= left <= free[1]):
        raise ShapeError(
            f"Crop: a window of {size} at offset {(top, left)} does not lie in data {list(data)}."
        )
    return top, left, height, width


@may_share
@op("Crop", count="num_args", gradients_by_input=True, names_output=True)
def crop(
    *data: Tensor, offset: Shape = (0, 0), h_w: Shape = (0, 0), center_crop: bool = False
) -> Tensor:
    """Crop height and width to ``h_w``, or to the size of a second array.

    Parameters
    ----------
    data
        The array to crop, and optionally a second one whose height and width are used.
    offset
        Row and column of the upper left corner.
    h_w
        Height and width of the window, if there is no second array.
    center_crop
        Whether to crop at the center; `offset` is then ignored.

    >>> mx.nd.Crop(mx.nd.arange(4).reshape((1, 1, 2, 2)), h_w=(1, 1), offset=(1, 0)).asnumpy()
    array([[[[2.]]]], dtype=float32)
    """
    x = data[0]
    size = tuple(data[1].shape[2:]) if len(data) > 1 else h_w
    top, left, height, width = _crop_window(x.shape, size, offset, center_crop)
    return x.narrow(2, top, height).narrow(3, left, width)


@crop.infer_outputs
def crop_shape(*data: Shape | None, h_w: Shape, **_: object) -> Shape | None:
    """Keep batch and channels."""
    first, last = data[0], data[-1]  # at most two
    if first is None or last is None:
        return None
    return (*first[:2], *(last[2:] if len(data) > 1 else h_w))


def _assign(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    shape = unify(ins[0], outs[0], "the output")
    if shape is None or len(ins) == 1:
        return [shape, *ins[1:]], [shape]
    bounds = {k: attrs[k] for k in ("begin", "end", "step")}
    part = slice_shape(shape, **bounds)
    return [shape, unify(part, ins[1], "rhs")], [shape]


@op("_slice_assign", "_crop_assign", "_npi_slice_assign", shape=_assign)
def slice_assign(
    lhs: Tensor, rhs: Tensor, *, begin: Bounds, end: Bounds, step: Bounds = ()
) -> Tensor:
    """Return a copy of the first array with a slice replaced by the second.

    Parameters
    ----------
    lhs
        The array to copy.
    rhs
        The new elements of the slice.
    step
        Step along each axis; 1 by default.

    >>> x, y = mx.nd.zeros((1, 3)), mx.nd.array([[7]])
    >>> mx.nd._internal._slice_assign(x, y, begin=(0, 1), end=(1, 2)).asnumpy()
    array([[0., 7., 0.]], dtype=float32)
    """
    slices, flips, part = ranges("_slice_assign", lhs.shape, begin, end, step)
    if part != rhs.shape:
        raise ShapeError(
            f"Shape inconsistent in _slice_assign: rhs is {list(rhs.shape)}, but begin={begin}, "
            f"end={end}, step={step} of {list(lhs.shape)} is {list(part)}."
        )
    output = lhs.clone()
    output[slices] = rhs.flip(flips) if flips else rhs
    return output


@op("_slice_assign_scalar", "_crop_assign_scalar", "_npi_slice_assign_scalar", shape=same)
def slice_assign_scalar(
    data: Tensor, *, scalar: float = 0.0, begin: Bounds, end: Bounds, step: Bounds = ()
) -> Tensor:
    """Return a copy of the array with a slice set to a number.

    Parameters
    ----------
    scalar
        The number.
    step
        Step along each axis; 1 by default.

    >>> x = mx.nd.zeros((1, 3))
    >>> mx.nd._internal._slice_assign_scalar(x, scalar=7, begin=(0, 1), end=(1, 2)).asnumpy()
    array([[0., 7., 0.]], dtype=float32)
    """
    slices, _, _ = ranges("_slice_assign_scalar", data.shape, begin, end, step)
    output = data.clone()
    output[slices] = number(scalar, data.dtype)
    return output
