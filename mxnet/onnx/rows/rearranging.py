"""Rows of operators that only move elements: where each goes follows from the shape.

The operator itself is run on the numbers of the elements, and the result is what to gather.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from ..builder import INT64, UNKNOWN, Builder, Call, is_float
from ..table import row
from .vision import resize_to

# Numbers of elements are exact in doubles, and this keeps tables in files small.
MAX_ELEMENTS = 1 << 22


def _sources(call: Call) -> np.ndarray:
    """Return for each element of the result the number of its source, from 1; 0 is a zero."""
    if UNKNOWN in call.shape:
        raise call.unsupported("needs the shape of its input as numbers.")
    count = math.prod(call.shape)
    if count > MAX_ELEMENTS:
        raise call.unsupported(f"moves {count} elements one by one: more than {MAX_ELEMENTS}.")
    numbers = torch.arange(1, count + 1, dtype=torch.float64).reshape(call.shape)
    extra = call.op.context_for(False, torch.device("cpu"))
    made = call.op.kernel(numbers, **call.attrs, **extra)
    return made.numpy().astype(np.int64)


@row(
    "_linalg_extractdiag",
    "_linalg_extracttrian",
    "_linalg_makediag",
    "_linalg_maketrian",
    "_np_diag",
    "_np_diagflat",
    "_np_diagonal",
    "im2col",
)
def rearranged(g: Builder, call: Call, x: str) -> str:
    """Gather elements of the flattened array, with zeros where there is none."""
    sources = _sources(call)
    flat = g.reshape(x, [-1])
    made = g.Gather(flat, g.array(np.maximum(sources - 1, 0)), axis=0)
    if (sources > 0).all():
        return made
    return g.Where(g.array(sources > 0), made, g.scalar(0, call.dtype))


@row("_np_trace")
def trace(g: Builder, call: Call, x: str) -> str:
    """Sum of a diagonal: the elements that one moving counts."""
    a = call.attrs
    if UNKNOWN in call.shape:
        raise call.unsupported("needs the shape of its input as numbers.")
    numbers = np.arange(math.prod(call.shape)).reshape(call.shape)
    places = np.diagonal(numbers, a["offset"], a["axis1"], a["axis2"])
    wide = g.cast(x, call.dtype, call.out_dtypes[0])
    if not places.size:
        return g.Expand(g.scalar(0, call.out_dtypes[0]), g.ints(*places.shape[:-1]))
    chosen = g.Gather(g.reshape(wide, [-1]), g.array(places.astype(np.int64)), axis=0)
    return g.reduce("ReduceSum", chosen, [places.ndim - 1], False)


def reversed_axis(g: Builder, x: str, *axes: int) -> str:
    """Reverse the order along axes."""
    far = [-(2**62)] * len(axes)
    return g.slice(x, [-1] * len(axes), far, list(axes), [-1] * len(axes))


@row("_np_roll")
def roll(g: Builder, call: Call, x: str) -> str:
    """Move elements along axes; what falls out comes in at the other end."""
    shift, axis = call.attrs["shift"], call.attrs["axis"]
    made = x
    if axis is None:
        made, axes, sizes = g.reshape(x, [-1]), [0], [math.prod(call.shape)]
    else:
        axes = [a % call.ndim for a in ((axis,) if isinstance(axis, int) else axis)]
        sizes = [call.shape[a] for a in axes]
    if UNKNOWN in sizes or min(sizes, default=0) < 0:
        raise call.unsupported("needs the sizes of rolled axes as numbers.")
    shifts = [shift] if isinstance(shift, int) else list(shift)
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    for each, by, size in zip(axes * (len(shifts) // len(axes)), shifts, sizes, strict=True):
        at = -by % size if size else 0
        if at:
            parts = g.slice(made, [at], [2**62], [each]), g.slice(made, [0], [at], [each])
            made = g.Concat(*parts, axis=each)
    return g.Identity(made) if axis is not None else g.reshape(made, call.shape)


@row("_npi_rot90")
def rot90(g: Builder, call: Call, x: str) -> str:
    """Quarter turns in the plane of two axes."""
    first, second = ((a % call.ndim) for a in (call.attrs["axes"] or (0, 1)))
    turns = call.attrs["k"] % 4
    swap = list(range(call.ndim))
    swap[first], swap[second] = second, first
    if turns == 0:
        return g.Identity(x)
    if turns == 2:
        return reversed_axis(g, x, first, second)
    if turns == 1:
        return g.transpose(reversed_axis(g, x, second), *swap)
    return reversed_axis(g, g.transpose(x, *swap), second)


def _at_least(rank: int) -> None:
    @row(f"_np_atleast_{rank}d")
    def emit(g: Builder, call: Call, *xs: str) -> list[str]:
        return [
            g.reshape_to(call, x, shape, out)
            for x, shape, out in zip(xs, call.shapes, call.out_shapes, strict=True)
        ]


for _rank in (1, 2, 3):
    _at_least(_rank)


@row("_image_flip_left_right")
def flip_left_right(g: Builder, call: Call, x: str) -> str:
    """Mirror images ``(..., height, width, channels)``."""
    return reversed_axis(g, x, call.ndim - 2)


@row("_image_flip_top_bottom")
def flip_top_bottom(g: Builder, call: Call, x: str) -> str:
    """Turn images ``(..., height, width, channels)`` upside down."""
    return reversed_axis(g, x, call.ndim - 3)


@row("_image_crop")
def image_crop(g: Builder, call: Call, x: str) -> str:
    """Cut a rectangle out of images ``(..., height, width, channels)``."""
    a, axes = call.attrs, [call.ndim - 3, call.ndim - 2]
    low = [a["y"], a["x"]]
    high = [a["y"] + a["height"], a["x"] + a["width"]]
    return g.slice(x, low, high, axes)


@row("_npi_diff")
def diff(g: Builder, call: Call, x: str) -> str:
    """Differences of neighbors, several times."""
    axis = call.attrs["axis"] % call.ndim
    made = x
    for _ in range(call.attrs["n"]):
        later = g.slice(made, [1], [2**62], [axis])
        made = g.Sub(later, g.slice(made, [0], [-1], [axis]))
    return g.Identity(made)


@row("_npi_pad")
def pad(g: Builder, call: Call, x: str) -> str:
    """Pad every axis."""
    mode, pairs = call.attrs["mode"], call.attrs["pad_width"]
    if mode == "symmetric":
        return _mirrored(g, call, x)
    if mode not in ("constant", "edge", "reflect"):
        raise call.unsupported(f"with mode={mode!r} has no ONNX form.")
    if mode == "reflect" and any(n == 1 for n in call.shape):
        raise call.unsupported("cannot reflect an axis of one element.")
    widths = g.ints(*(p[0] for p in pairs), *(p[1] for p in pairs))
    inner = INT64 if not is_float(call.dtype) else call.dtype
    value = g.cast(x, call.dtype, inner)
    fill = call.attrs["constant_value"]
    given = [g.scalar(fill if is_float(inner) else int(fill), inner)] if mode == "constant" else []
    return g.cast(g.Pad(value, widths, *given, mode=mode), inner, call.dtype)


def _mirrored(g: Builder, call: Call, x: str) -> str:
    """Continue axes as in a mirror that repeats the edge."""
    if UNKNOWN in call.shape:
        raise call.unsupported("needs the sizes of mirrored axes as numbers.")
    made = x
    for axis, (before, after) in enumerate(call.attrs["pad_width"]):
        size = call.shape[axis]
        if before or after:
            places = np.arange(-before, size + after) % (2 * size)
            places = np.where(places < size, places, 2 * size - 1 - places)
            made = g.Gather(made, g.array(places.astype(np.int64)), axis=axis)
    return g.Identity(made)


@row("col2im", since=18)
def col2im(g: Builder, call: Call, x: str) -> str:
    """Add columns of windows up to images."""
    a, rank = call.attrs, len(call.attrs["kernel"])
    return g.Col2Im(
        x,
        g.ints(*a["output_size"]),
        g.ints(*a["kernel"]),
        strides=list(a["stride"] or (1,) * rank),
        dilations=list(a["dilate"] or (1,) * rank),
        pads=list(a["pad"] or (0,) * rank) * 2,
    )


RESIZE_MODES = {0: ("nearest", "asymmetric"), 1: ("linear", "half_pixel")}


@row("_image_resize")
def image_resize(g: Builder, call: Call, x: str) -> str:
    """Resize images ``(..., height, width, channels)`` by neighbors or bilinearly."""
    interp = call.attrs["interp"]
    if interp not in RESIZE_MODES or not is_float(call.dtype):
        raise call.unsupported(f"with interp={interp} of {call.dtype} has no ONNX form.")
    sizes = call.out_shapes[0][-3:-1]
    if UNKNOWN in sizes:
        raise call.unsupported("needs the new height and width as numbers.")
    batch = x if call.ndim == 4 else g.unsqueeze(x, 0)
    made = resize_to(g, g.transpose(batch, 0, 3, 1, 2), g.ints(*sizes), 4, *RESIZE_MODES[interp])
    made = g.transpose(made, 0, 2, 3, 1)
    return made if call.ndim == 4 else g.squeeze(made, 0)
