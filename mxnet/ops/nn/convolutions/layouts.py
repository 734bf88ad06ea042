"""Where channels are, and how windows that slide over an image change its size.

Kernels run with channels first; arrays with channels last are seen through a permuted view,
whose memory order is torch's fast ``channels_last``.
"""

from __future__ import annotations

from torch import Tensor

from ....error import ShapeError
from ...shapes import Shape

CHANNELS_LAST = frozenset({"NWC", "NHWC", "NDHWC"})


def channels_first(data: Tensor) -> Tensor:
    """Return a view of a channels-last array with its channels at axis 1."""
    return data.movedim(-1, 1)


def channels_last(data: Tensor) -> Tensor:
    """Return a view of a channels-first array with its channels at the end."""
    return data.movedim(1, -1)


def shape_channels_first(shape: Shape) -> Shape:
    """Return the shape with the last size at position 1."""
    return (shape[0], shape[-1], *shape[1:-1])


def shape_channels_last(shape: Shape) -> Shape:
    """Return the shape with the size at position 1 moved to the end."""
    return (shape[0], *shape[2:], shape[1])


def for_each_axis(value: Shape, default: int, kernel: Shape) -> Shape:
    """Return a stride, pad or dilation for every axis of the kernel; MXNet leaves them empty."""
    return value or (default,) * len(kernel)


def check_data(name: str, shape: Shape, kernel: Shape) -> None:
    """Refuse empty kernels, and data whose number of dimensions does not fit the kernel."""
    if min(kernel, default=1) < 1:
        raise ShapeError(
            f"{name}: incorrect kernel size: {kernel} must be at least 1 on each axis."
        )
    if len(shape) != len(kernel) + 2:
        raise ShapeError(
            f"{name}: Input data should be {len(kernel) + 2}D for kernel {kernel} "
            f"(batch, channel and {len(kernel)} spatial axes), but its shape is {tuple(shape)}."
        )


def check_weight(name: str, data: Shape, given: Shape, needed: Shape) -> None:
    """Refuse a weight of another shape than data and attributes ask for."""
    if tuple(given) != needed:
        raise ShapeError(
            f"Shape inconsistent in {name}, Provided = {list(given)}, "
            f"inferred shape={list(needed)} for the weight: data {list(data)} has {data[1]} "
            "channels. Was the layer made for data with another number of them, or is the layout "
            "of the data another one?"
        )
