"""Broadcasting, tiling, repeating and padding."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ...base import is_np_shape
from ...error import ShapeError
from ..attributes import Shape
from ..declare import op
from ..shapes import UNKNOWN
from .identity import may_share, own
from .shape_changing import axis_within, product


def _stretch(name: str, given: Shape, wanted: Shape) -> Shape:
    """Return the requested shape; raise if sizes other than 1 change."""
    if len(given) != len(wanted):
        raise ShapeError(
            f"{name}: operand of shape {list(given)} cannot be broadcasted to {list(wanted)}: "
            "the number of axes must be equal."
        )
    for have, want in zip(given, wanted, strict=True):
        if have not in (want, 1, UNKNOWN) and want != UNKNOWN:
            raise ShapeError(
                f"{name}: array cannot be broadcasted from {list(given)} to {list(wanted)}."
            )
    return wanted


def _target(data: Shape, shape: Shape) -> Shape:
    if len(shape) != len(data):
        return _stretch("broadcast_to", data, shape)
    target = tuple(n or have for n, have in zip(shape, data, strict=True))
    return _stretch("broadcast_to", data, target)


@may_share
@op("broadcast_to", method=True, repeatable=True)
def broadcast_to(data: Tensor, *, shape: Shape = ()) -> Tensor:
    """Broadcast to a shape; 0 in ``shape`` keeps the size.

    Parameters
    ----------
    shape
        The new shape; 0 keeps the size of an axis.

    >>> mx.nd.broadcast_to(mx.nd.array([[1], [2]]), shape=(0, 3)).asnumpy()
    array([[1., 1., 1.],
           [2., 2., 2.]], dtype=float32)
    """
    return data.expand(_target(data.shape, shape))


@broadcast_to.infer_outputs
def broadcast_to_shape(data: Shape | None, *, shape: Shape) -> Shape | None:
    """The output has the given sizes; 0 means the size of the data."""
    return None if data is None else _target(data, shape)


def _axis_target(data: Shape, axis: Shape, size: Shape) -> Shape:
    if len(axis) != len(size):
        raise ShapeError(f"broadcast_axis: axis={axis} and size={size} must have the same length.")
    target = list(data)
    for a, n in zip(axis, size, strict=True):
        a = axis_within(a, len(data), "broadcast_axis")
        if data[a] not in (1, UNKNOWN):
            raise ShapeError(
                f"broadcast_axis: axis {a} must have size 1, but data is {list(data)}."
            )
        target[a] = n
    return tuple(target)


@may_share
@op("broadcast_axis", "broadcast_axes", method=True, repeatable=True)
def broadcast_axis(data: Tensor, *, axis: Shape = (), size: Shape = ()) -> Tensor:
    """Broadcast the given axes, which have size 1, to the given sizes.

    Parameters
    ----------
    axis
        The axes to broadcast, of size 1.
    size
        The new size of each of these axes.

    >>> mx.nd.broadcast_axis(mx.nd.array([[1], [2]]), axis=1, size=2).asnumpy()
    array([[1., 1.],
           [2., 2.]], dtype=float32)
    """
    return data.expand(_axis_target(data.shape, axis, size))


@broadcast_axis.infer_outputs
def broadcast_axis_shape(data: Shape | None, *, axis: Shape, size: Shape) -> Shape | None:
    """The output has the given sizes on these axes."""
    return None if data is None else _axis_target(data, axis, size)


def _like_target(lhs: Shape, rhs: Shape, lhs_axes: Shape | None, rhs_axes: Shape | None) -> Shape:
    if lhs_axes is None or rhs_axes is None:
        return _stretch("broadcast_like", lhs, rhs)
    if len(lhs_axes) != len(rhs_axes) or not lhs_axes:
        raise ShapeError(
            f"broadcast_like: lhs_axes={lhs_axes} and rhs_axes={rhs_axes} must have the same "
            "number of axes."
        )
    target = list(lhs)
    for a, b in zip(lhs_axes, rhs_axes, strict=True):
        at = axis_within(a, len(lhs), "broadcast_like")
        target[at] = rhs[axis_within(b, len(rhs), "broadcast_like")]
    return _stretch("broadcast_like", lhs, tuple(target))


@may_share
@op("broadcast_like", types="T L -> T", method=True, without_gradient=("rhs",), repeatable=True)
def broadcast_like(
    lhs: Tensor, rhs: Tensor, *, lhs_axes: Shape | None = None, rhs_axes: Shape | None = None
) -> Tensor:
    """Broadcast the first array to the shape of the second, on all or selected axes.

    Parameters
    ----------
    lhs
        The array to broadcast.
    rhs
        The array whose sizes are used.
    lhs_axes
        Axes of `lhs` to broadcast; by default all.
    rhs_axes
        The corresponding axes of `rhs`.

    >>> mx.nd.broadcast_like(mx.nd.array([[1, 2]]), mx.nd.zeros((2, 2))).asnumpy()
    array([[1., 2.],
           [1., 2.]], dtype=float32)
    """
    return lhs.expand(_like_target(lhs.shape, rhs.shape, lhs_axes, rhs_axes))


@broadcast_like.infer_outputs
def broadcast_like_shape(
    lhs: Shape | None, rhs: Shape | None, *, lhs_axes: Shape | None, rhs_axes: Shape | None
) -> Shape | None:
    """Use the sizes of the second array, or of the first if those are unknown."""
    if lhs is None or rhs is None:
        return None
    target = _like_target(lhs, rhs, lhs_axes, rhs_axes)
    return tuple(
        have if want == UNKNOWN and have > 1 else want
        for have, want in zip(lhs, target, strict=True)
    )


@op("tile", "_npi_tile", method=True, names_single_input=True)
def tile(data: Tensor, *, reps: Shape) -> Tensor:
    """Repeat the array ``reps`` times along each axis.

    Parameters
    ----------
    reps
        Number of repetitions along each axis; extra ones add axes in front.

    >>> mx.nd.tile(mx.nd.array([1, 2]), reps=(2, 2)).asnumpy()
    array([[1., 2., 1., 2.],
           [1., 2., 1., 2.]], dtype=float32)
    """
    if any(times < 0 or (times == 0 and not is_np_shape()) for times in reps):
        raise ShapeError(f"tile: reps must be positive, but is {reps}.")
    return data.repeat((1,) * (data.ndim - len(reps)) + reps)


@tile.infer_outputs
def tile_shape(data: Shape | None, *, reps: Shape) -> Shape | None:
    """Multiply the sizes by `reps`, aligned at the last axis."""
    if data is None:
        return None
    wide = max(len(data), len(reps))
    sizes = (1,) * (wide - len(data)) + tuple(data)
    times = (1,) * (wide - len(reps)) + tuple(reps)
    return tuple(UNKNOWN if n == UNKNOWN else n * r for n, r in zip(sizes, times, strict=True))


@op("repeat", "_np_repeat", method=True, names_single_input=True)
def repeat(data: Tensor, *, repeats: int, axis: int | None = None) -> Tensor:
    """Repeat each element; without an axis the array is flattened first.

    Parameters
    ----------
    repeats
        Number of repetitions of each element.
    axis
        Axis to repeat along; None: the flattened array.

    >>> mx.nd.repeat(mx.nd.array([[1, 2], [3, 4]]), repeats=2).asnumpy()
    array([1., 1., 2., 2., 3., 3., 4., 4.], dtype=float32)
    """
    if repeats < 0:
        raise ShapeError(f"repeat: repeats cannot be a negative number, but is {repeats}.")
    if axis is None:
        return own(data.reshape(-1, 1).expand(-1, repeats).reshape(-1))
    at = axis_within(axis, data.ndim, "repeat")
    sizes = list(data.shape)
    wide = [*sizes[: at + 1], repeats, *sizes[at + 1 :]]
    sizes[at] *= repeats
    return own(data.unsqueeze(at + 1).expand(wide).reshape(sizes))


@repeat.infer_outputs
def repeat_shape(data: Shape | None, *, repeats: int, axis: int | None) -> Shape | None:
    """Multiply the size of the axis, or of the flattened array."""
    if data is None:
        return None
    if axis is None:
        data, axis = (product(data),), 0
    at = axis_within(axis, len(data), "repeat")
    size = UNKNOWN if data[at] == UNKNOWN else data[at] * repeats
    return (*data[:at], size, *data[at + 1 :])


_PAD_MODES = {"constant": "constant", "edge": "replicate", "reflect": "reflect"}


def _check_pad(shape: Shape, pad_width: Shape) -> None:
    if len(shape) not in (4, 5):
        raise ShapeError(f"Pad: only 4-D or 5-D arrays can be padded, but data is {list(shape)}.")
    if len(pad_width) != 2 * len(shape):
        raise ShapeError(
            f"Pad: pad_width={pad_width} must have two numbers for each axis of {list(shape)}."
        )
    if any(pad_width[:4]):
        raise ShapeError(f"Pad: the first two axes cannot be padded, but pad_width={pad_width}.")


@op("Pad", "pad", method=True, names_single_input=True, gradients_by_input=True, names_output=True)
def pad(
    data: Tensor,
    *,
    mode: Literal["constant", "edge", "reflect"],
    pad_width: Shape,
    constant_value: float = 0.0,
) -> Tensor:
    """Pad the spatial axes of a 4-D or 5-D array.

    Parameters
    ----------
    mode
        Type of padding: ``constant``, ``edge`` or ``reflect``.
    pad_width
        Padding before and after each axis, as one tuple; 0 for the first two axes.
    constant_value
        Value of the padding with ``mode='constant'``.

    >>> x = mx.nd.array([1, 2, 3]).reshape((1, 1, 1, 3))
    >>> mx.nd.Pad(x, mode="reflect", pad_width=(0, 0, 0, 0, 0, 0, 2, 1)).asnumpy()
    array([[[[3., 2., 1., 2., 3., 2.]]]], dtype=float32)
    """
    _check_pad(data.shape, pad_width)
    # torch counts from the last axis.
    widths = [pad_width[i + j] for i in range(len(pad_width) - 2, 2, -2) for j in (0, 1)]
    if mode == "constant":
        return F.pad(data, widths, value=constant_value)
    return F.pad(data, widths, mode=_PAD_MODES[mode])


@pad.infer_outputs
def pad_shape(data: Shape | None, *, pad_width: Shape, **_: object) -> Shape | None:
    """Add the padding to each size."""
    if data is None:
        return None
    _check_pad(data, pad_width)
    return tuple(
        n if n == UNKNOWN else n + pad_width[2 * i] + pad_width[2 * i + 1]
        for i, n in enumerate(data)
    )


@op("_contrib_index_array", types="T -> int64", names_single_input=True, names_output=True)
def index_array(data: Tensor, *, axes: Shape | None = None) -> Tensor:
    """Return the index of each element, or selected components of it.

    Parameters
    ----------
    axes
        Components of the index to return; by default all.

    >>> mx.nd.contrib.index_array(mx.nd.zeros((1, 2))).asnumpy()
    array([[[0, 0],
            [0, 1]]])
    """
    chosen = range(data.ndim) if axes is None else axes
    if not chosen:  # the index of a scalar is empty
        return torch.zeros((*data.shape, 0), dtype=torch.int64, device=data.device)
    lines = []
    for axis in chosen:
        at = axis_within(axis, data.ndim, "_contrib_index_array")
        sizes = [-1 if i == at else 1 for i in range(data.ndim)]
        line = torch.arange(data.shape[at], device=data.device).reshape(sizes)
        lines.append(line.expand(data.shape))
    return torch.stack(lines, dim=-1)


@index_array.infer_outputs
def index_array_shape(data: Shape | None, *, axes: Shape | None) -> Shape | None:
    """Add an axis for the components of the index."""
    return None if data is None else (*data, len(data if axes is None else axes))
