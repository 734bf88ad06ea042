"""Rows of resizing, sampling and regions of images."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch

from ..builder import INT64, UNKNOWN, Builder, Call, numpy_dtype
from ..table import refuse, row
from .boxes import in_float32


def resize_to(g: Builder, x: str, sizes: str, rank: int, mode: str, corners: str) -> str:
    """Resize the last two axes to sizes given as a vector of two numbers."""
    front = g.Slice(g.Shape(x), g.ints(0), g.ints(rank - 2), g.ints(0))
    options = {"mode": mode, "coordinate_transformation_mode": corners}
    if mode == "nearest":
        options["nearest_mode"] = "floor"
    return g.resize(x, sizes=g.Concat(front, sizes, axis=0), **options)


@row("UpSampling")
def up_sampling(g: Builder, call: Call, *xs: str) -> str:
    """Enlarge by repeating pixels, or by a learned bilinear kernel."""
    a, scale = call.attrs, call.attrs["scale"]
    if a["sample_type"] == "bilinear":
        kernel, pad = 2 * scale - scale % 2, math.ceil((scale - 1) / 2)
        missing = scale - (kernel - 2 * pad)
        return g.ConvTranspose(
            *xs,
            kernel_shape=[kernel, kernel],
            strides=[scale, scale],
            pads=[pad] * 4,
            output_padding=[missing, missing],
            group=a["num_filter"] or call.shape[1],
        )
    factors = [scale]
    for shape in call.shapes[1:]:
        if UNKNOWN in (shape[2], call.shape[2]):
            raise call.unsupported("with several inputs needs their height and width as numbers.")
        factors.append(call.shape[2] * scale // shape[2])
    repeat = _repeat_whole_pixels if call.dtype is INT64 else _repeat_pixels
    big = [repeat(g, x, f) for x, f in zip(xs, factors, strict=True)]
    if len(big) == 1:
        return big[0]
    return g.Concat(*big, axis=1) if a["multi_input_mode"] == "concat" else g.Sum(*big)


def _repeat_whole_pixels(g: Builder, x: str, factor: int) -> str:
    """Repeat pixels of a type that runtimes do not resize."""
    batch, height, width = (g.Slice(g.Shape(x), *map(g.ints, b)) for b in ((0, 2), (2, 3), (3, 4)))
    times = g.ints(factor)
    wide = g.Tile(g.unsqueeze(x, 3, 5), g.ints(1, 1, 1, factor, 1, factor))
    return g.Reshape(wide, g.Concat(batch, g.Mul(height, times), g.Mul(width, times), axis=0))


def _repeat_pixels(g: Builder, x: str, factor: int) -> str:
    scales = g.array(np.array([1, 1, factor, factor], dtype=np.float32))
    return g.resize(
        x,
        scales=scales,
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


@row("_contrib_BilinearResize2D")
def bilinear_resize(g: Builder, call: Call, x: str, *like: str) -> str:
    """Resize the last two axes by bilinear interpolation."""
    new = call.out_shapes[0][-2:]
    corners = "align_corners" if call.attrs["align_corners"] else "half_pixel"
    if UNKNOWN in new:
        if not like:
            raise call.unsupported("needs the new height and width as numbers.")
        rank = len(call.shapes[1])
        sizes = g.Slice(g.Shape(like[0]), g.ints(rank - 2), g.ints(rank), g.ints(0))
        return resize_to(g, x, sizes, call.ndim, "linear", corners)
    # A single row or column is the first one.
    for axis, size in zip((call.ndim - 2, call.ndim - 1), new, strict=True):
        if size == 1:
            x = g.slice(x, [0], [1], [axis])
    return resize_to(g, x, g.ints(*new), call.ndim, "linear", corners)


@row("ROIPooling")
def roi_pooling(g: Builder, call: Call, x: str, rois: str) -> str:
    """Maximum over bins of regions."""
    return g.MaxRoiPool(
        x,
        rois,
        pooled_shape=list(call.attrs["pooled_size"]),
        spatial_scale=call.attrs["spatial_scale"],
    )


@row("_contrib_ROIAlign")
def roi_align(g: Builder, call: Call, x: str, rois: str) -> str:
    """Mean of bilinear samples over bins of regions."""
    a = call.attrs
    if a["position_sensitive"]:
        raise call.unsupported("with position_sensitive=True has no ONNX form.")
    if a["aligned"] and g.opset < 16:
        raise call.unsupported("with aligned=True needs opset_version=16 or newer.")
    image = g.squeeze(g.slice(rois, [0], [1], [1]), 1)
    corners = g.slice(rois, [1], [5], [1])
    is_present = g.GreaterOrEqual(image, g.scalar(0, call.dtypes[1]))
    index = g.Max(g.cast(image, call.dtypes[1], INT64), g.array(np.array(0, np.int64)))
    options = {}
    if g.opset >= 16:
        mode = "half_pixel" if a["aligned"] else "output_half_pixel"
        options["coordinate_transformation_mode"] = mode
    made = g.RoiAlign(
        x,
        corners,
        index,
        output_height=a["pooled_size"][0],
        output_width=a["pooled_size"][1],
        sampling_ratio=max(a["sample_ratio"], 0),
        spatial_scale=a["spatial_scale"],
        **options,
    )
    mask = g.unsqueeze(is_present, 1, 2, 3)
    return g.Where(mask, made, g.scalar(0, call.dtype))


def _affine_grid(g: Builder, theta: str, size: tuple[int, int], dtype: torch.dtype) -> str:
    """Return sampling places ``(batch, 2, height, width)`` of 2x3 matrices."""
    height, width = size
    x = np.arange(width) * (2 / max(width - 1, 1)) - 1
    y = np.arange(height) * (2 / max(height - 1, 1)) - 1
    flat = np.stack([*np.broadcast_arrays(x[None], y[:, None]), np.ones(size)]).reshape(3, -1)
    places = g.MatMul(g.reshape(theta, [-1, 2, 3]), g.array(flat.astype(numpy_dtype(dtype))))
    return g.reshape(places, [-1, 2, height, width])


@row("GridGenerator")
def grid_generator(g: Builder, call: Call, x: str) -> str:
    """Sampling places from matrices or from a flow in pixels."""
    if call.attrs["transform_type"] == "affine":
        return _affine_grid(g, x, call.attrs["target_shape"], call.dtype)
    if UNKNOWN in call.shape[2:]:
        raise call.unsupported("needs height and width as numbers.")
    height, width = call.shape[2:]
    kind = numpy_dtype(call.dtype)
    place = np.stack(np.meshgrid(np.arange(width), np.arange(height))).astype(kind)
    half = np.array([(width - 1) / 2, (height - 1) / 2], kind).reshape(2, 1, 1)
    moved = g.Div(g.Add(x, g.array(place)), g.array(half))
    return g.Sub(moved, g.scalar(1, call.dtype))


def _sample(g: Builder, x: str, grid: str) -> str:
    places = g.Transpose(grid, perm=[0, 2, 3, 1])
    mode = "linear" if g.opset >= 20 else "bilinear"
    return g.GridSample(x, places, mode=mode, padding_mode="zeros", align_corners=1)


@row("BilinearSampler", since=16)
@in_float32
def bilinear_sampler(g: Builder, call: Call, x: str, grid: str) -> str:
    """Sample at places of a grid."""
    return _sample(g, x, grid)


@row("SpatialTransformer", since=16)
@in_float32
def spatial_transformer(g: Builder, call: Call, x: str, loc: str) -> str:
    """Sample under an affine map."""
    grid = _affine_grid(g, loc, call.attrs["target_shape"], call.dtype)
    return _sample(g, x, grid)


@row("_image_normalize")
def image_normalize(g: Builder, call: Call, x: str) -> str:
    """Subtract the mean and divide by the deviation of each channel."""
    dtype, kind = call.out_dtypes[0], numpy_dtype(call.out_dtypes[0])
    mean, std = (np.array(call.attrs[k], kind).reshape(-1, 1, 1) for k in ("mean", "std"))
    return g.Div(g.Sub(g.cast(x, call.dtype, dtype), g.array(mean)), g.array(std))


@row("_image_to_tensor")
def image_to_tensor(g: Builder, call: Call, x: str) -> str:
    """Pixels of 0 to 255, channels last, as floats of 0 to 1, channels first."""
    number = g.cast(x, call.dtype, torch.float32)
    scaled = g.Div(number, g.scalar(255, torch.float32))
    perm = [2, 0, 1] if call.ndim == 3 else [0, 3, 1, 2]
    return g.Transpose(scaled, perm=perm)


@row("Correlation")
def correlation(g: Builder, call: Call, first: str, second: str) -> str:
    """Compare patches at all displacements: one product for each of them."""
    a, sizes = call.attrs, (*call.shape[2:], *call.out_shapes[0][2:])
    if UNKNOWN in sizes:
        raise call.unsupported("needs height and width as numbers.")
    kernel, reach, stride = a["kernel_size"], a["max_displacement"], a["stride1"]
    around = [0, 0, a["pad_size"], a["pad_size"]]
    padded = [g.pad(x, around, around) if a["pad_size"] else x for x in (first, second)]
    tall, broad = ((n - 1) * stride + kernel for n in sizes[2:])
    step = stride if kernel == 1 else 1

    def window(x: str, down: int, right: int) -> str:
        top, left = reach + down, reach + right
        return g.slice(x, [top, left], [top + tall, left + broad], [2, 3], [step, step])

    here, found = window(padded[0], 0, 0), []
    radius = reach // a["stride2"]
    moves = [a["stride2"] * i for i in range(-radius, radius + 1)]
    for down, right in itertools.product(moves, moves):
        there = window(padded[1], down, right)
        match = g.Mul(here, there) if a["is_multiply"] else g.Abs(g.Sub(here, there))
        found.append(g.reduce("ReduceMean", match, [1]))
    out = found[0] if len(found) == 1 else g.Concat(*found, axis=1)
    if kernel == 1:
        return out
    return g.AveragePool(out, kernel_shape=[kernel, kernel], strides=[stride, stride])


refuse("CTCLoss", why="is a loss of training: export the network without it, by its output.")
refuse(
    "_contrib_DeformablePSROIPooling",
    why="has no ONNX form: ONNX's RoiAlign neither moves its bins nor reads channels by position.",
)
