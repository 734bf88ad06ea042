"""Import rows of resizing, sampling, regions and boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from .....ops.interchange.sampling import ROUNDINGS, kernel_weights, source_positions
from ..value import MAX_ELEMENTS, F, OnnxNode, Value, imports, internal
from .layers import pad_spatial

TRANSFORMS = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


def _transform(node: OnnxNode) -> str:
    default = "half_pixel" if node.opset > 10 else "asymmetric"
    return node.get("coordinate_transformation_mode", default)


def _rounding(node: OnnxNode) -> str:
    return node.get("nearest_mode", "round_prefer_floor" if node.opset > 10 else "floor")


def _positions(node: OnnxNode, new: int, old: int, scale: float, roi: tuple[float, float]) -> Any:
    """Return for each new position the position in the old axis, by the coordinate mode."""
    mode = _transform(node)
    if mode in TRANSFORMS:
        return source_positions(new, old, scale, mode).numpy()
    position = np.arange(new, dtype=np.float64)
    if mode == "half_pixel_symmetric":
        adjust = new / (scale * old)
        return old / 2 * (1 - adjust) + (position + 0.5) / scale - 0.5
    if mode == "tf_crop_and_resize":
        start, end = roi
        if new == 1:
            return np.full(1, 0.5 * (start + end) * (old - 1))
        return start * (old - 1) + position * (end - start) * (old - 1) / (new - 1)
    raise node.unsupported(f"with coordinate_transformation_mode={mode!r} has no row.")


def _weights(node: OnnxNode, positions: np.ndarray, old: int, scale: float) -> np.ndarray:
    mode = node.get("mode", "nearest")
    rows = np.arange(len(positions))
    weights = np.zeros((len(positions), old))
    if mode == "nearest":
        nearest = ROUNDINGS[_rounding(node)](torch.from_numpy(positions)).numpy()
        weights[rows, nearest.clip(0, old - 1).astype(int)] = 1
        return weights
    if node.flag("antialias") and scale < 1:
        return _smooth_weights(node, mode, positions, old, scale)
    reach = 1 if mode == "linear" else 2
    base = np.floor(positions).astype(int)
    excluded = node.flag("exclude_outside")
    for offset in range(-reach + 1, reach + 1):
        at = base + offset
        share = _kernel(node, mode, positions - at)
        if excluded:
            share = np.where((at < 0) | (at >= old), 0, share)
        np.add.at(weights, (rows, at.clip(0, old - 1)), share)
    if excluded:
        weights /= weights.sum(1, keepdims=True)
    return weights


def _smooth_weights(
    node: OnnxNode, mode: str, positions: np.ndarray, old: int, scale: float
) -> np.ndarray:
    """Return the weights of a kernel as wide as the old pixels under one new pixel."""
    sources = np.arange(-old, 2 * old)
    shares = _kernel(node, mode, (positions[:, None] - sources) * scale)
    if node.get("exclude_outside", 0):
        shares = np.where((sources < 0) | (sources >= old), 0, shares)
    shares /= shares.sum(1, keepdims=True)
    weights = np.zeros((len(positions), old))
    for source, column in zip(sources.clip(0, old - 1), shares.T, strict=True):
        weights[:, source] += column
    return weights


def _kernel(node: OnnxNode, mode: str, distance: np.ndarray) -> np.ndarray:
    a = node.get("cubic_coeff_a", -0.75)
    return kernel_weights(torch.from_numpy(distance), mode, a).numpy()


@imports("Resize", "Upsample")
def resize(node: OnnxNode, x: Value, *rest: Value | None) -> Any:
    """Resize axes by any of ONNX's modes: each axis is a product with a matrix."""
    axes = node.ints("axes") or list(range(x.rank))
    axes = [x.axis(a) for a in axes]
    if _is_dynamic(node, x, axes, rest):
        return _resize_at_run_time(node, x, rest)
    roi, scales, sizes = _resize_inputs(node, rest)
    old = [x.shape[a] for a in axes]
    if scales is not None:
        factors = [float(s) for s in scales]
        touched = [i for i, f in enumerate(factors) if f != 1 or _crops(node)]
    else:
        touched = list(range(len(axes)))
        factors = None
    sources = {i: x.sizes[axes[i]] for i in touched if factors is not None or x.shape[axes[i]]}
    new, factors = _targets(node, old, factors, sizes, sources)
    if any(n is not None and n * old[i] > MAX_ELEMENTS for i, n in enumerate(new) if i in sources):
        raise node.unsupported(f"makes {new} of {old}: too large.")
    if _is_repetition(node, x, axes, factors):
        return F.UpSampling(x.symbol, scale=int(factors[-1]), sample_type="nearest", name=node.name)
    output = x.symbol
    for i, axis in enumerate(axes):
        if i not in sources or (new[i] == sources[i] and not _crops(node)):
            continue
        ends = (float(roi[i]), float(roi[i + len(axes)])) if roi is not None else (0.0, 1.0)
        positions = _positions(node, new[i], sources[i], factors[i], ends)
        matrix = _weights(node, positions, sources[i], factors[i])
        output = _multiply_axis(node, output, matrix, axis, x)
        if _crops(node):
            output = _fill_outside(node, output, positions, sources[i], axis, x.rank)
    return F.identity(output, name=node.name)


def _is_dynamic(node: OnnxNode, x: Value, axes: list[int], rest: Sequence[Any]) -> bool:
    """Return whether image sizes are dynamic and the operator supports that."""
    if not _can_run_time(node):
        return False
    targets = [v for v in rest[0 if len(rest) == 1 else 1 :] if v is not None and v.shape != (0,)]
    if any(v.constant is None for v in targets):
        return True
    if x.shape is None or len(axes) != x.rank:
        return False
    return None in x.shape[2:] and not _repeats(node, targets)


def _repeats(node: OnnxNode, targets: list[Value]) -> bool:
    """Return whether constant scales only repeat pixels, which needs no sizes."""
    if len(targets) != 1 or targets[0].dtype.kind != "f":
        return False
    factors = [float(s) for s in np.asarray(targets[0].constant)]
    return len(factors) == 4 and _is_plain_nearest(node, factors)


def _can_run_time(node: OnnxNode) -> bool:
    """Return whether sizes may be computed at run time; rare options do not support it."""
    rare = ("axes", "antialias", "exclude_outside")
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    return (
        policy == "stretch"
        and node.get("coordinate_transformation_mode", "half_pixel") in TRANSFORMS
        and not any(node.get(key) for key in rare)
    )


def _resize_at_run_time(node: OnnxNode, x: Value, rest: Sequence[Any]) -> Any:
    """Resize the spatial axes of a batch of images to sizes that are computed."""
    target = rest[-1] if len(rest) > 1 else rest[0]
    return internal._onnx_resize(
        x.symbol,
        target.symbol,
        mode=node.get("mode", "nearest"),
        transform=_transform(node),
        rounding=_rounding(node),
        cubic_coeff_a=node.get("cubic_coeff_a", -0.75),
        name=node.name,
    )


def _crops(node: OnnxNode) -> bool:
    return node.get("coordinate_transformation_mode") == "tf_crop_and_resize"


def _resize_inputs(node: OnnxNode, rest: Sequence[Any]) -> tuple:
    if node.op_type == "Upsample" or node.opset <= 10:
        factors = node.get("scales") if not rest else node.constant(rest[0], "scales")
        return None, factors, None
    roi, *targets = [*rest, None, None, None][:3]
    arrays = [
        None if v is None else node.constant(v, k)
        for v, k in zip(targets, ("scales", "sizes"), strict=True)
    ]
    scales, sizes = (None if a is None or not a.size else a for a in arrays)
    return node.constant(roi, "roi") if _crops(node) and roi is not None else None, scales, sizes


def _targets(
    node: OnnxNode, old: list, factors: list[float] | None, sizes: Any, sources: dict[int, int]
) -> tuple[list, list[float]]:
    if factors is not None:
        new = [
            math.floor(sources[i] * f) if i in sources else old[i] for i, f in enumerate(factors)
        ]
        return new, factors
    new = [int(n) for n in sizes]
    ratios = [n / o if o else 1.0 for n, o in zip(new, old, strict=True)]
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        one = min(ratios) if policy == "not_larger" else max(ratios)
        ratios = [one] * len(ratios)
        new = [math.floor(o * one + 0.5) for o in old]
    return new, ratios


def _is_repetition(node: OnnxNode, x: Value, axes: list[int], factors: list[float]) -> bool:
    """Return whether each pixel becomes a square of equal pixels."""
    return x.rank == 4 and len(axes) == 4 and _is_plain_nearest(node, factors)


def _is_plain_nearest(node: OnnxNode, factors: list[float]) -> bool:
    is_image = factors[:2] == [1.0, 1.0]
    factor = factors[-1]
    mode = node.get("coordinate_transformation_mode", "half_pixel")
    is_plain = mode == "asymmetric" and node.get("nearest_mode", "round_prefer_floor") == "floor"
    is_square = factor == factors[-2] and factor == int(factor) and factor > 1
    is_nearest = node.get("mode", "nearest") == "nearest"
    return is_image and is_square and is_nearest and (is_plain or node.opset <= 10)


def _multiply_axis(node: OnnxNode, data: Any, matrix: np.ndarray, axis: int, x: Value) -> Any:
    rank = x.rank
    dtype = x.dtype.name if x.is_float else "float32"
    symbol = data if x.is_float else F.cast(data, dtype="float32")
    weights = node.parameter(matrix.T.astype(dtype), f"axis{axis}")
    order = [i for i in range(rank) if i != axis] + [axis]
    product = F.dot(F.transpose(symbol, axes=order), weights)
    back = F.transpose(product, axes=[int(i) for i in np.argsort(order)])
    return back if x.is_float else F.cast(back, dtype=x.dtype.name)


def _fill_outside(node: OnnxNode, data: Any, positions: Any, old: int, axis: int, rank: int) -> Any:
    inside = ((positions >= 0) & (positions <= old - 1)).astype(np.float32)
    if inside.all():
        return data
    shape = [1] * rank
    shape[axis] = len(inside)
    mask = node.parameter(inside.reshape(shape), f"inside{axis}")
    fill = node.get("extrapolation_value", 0.0)
    return F.broadcast_add(F.broadcast_mul(data, mask), (1 - mask) * fill)


@imports("RoiAlign")
def roi_align(node: OnnxNode, x: Value, rois: Value, images: Value) -> Any:
    """Mean of bilinear samples over bins of regions."""
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    aligned = node.get("coordinate_transformation_mode", default) == "half_pixel"
    if node.get("mode", "avg") == "max":
        return internal._onnx_roi_align_max(
            x.symbol,
            rois.symbol,
            images.symbol,
            pooled_size=(node.get("output_height", 1), node.get("output_width", 1)),
            spatial_scale=node.get("spatial_scale", 1.0),
            sample_ratio=node.get("sampling_ratio", 0),
            aligned=aligned,
            name=node.name,
        )
    index = F.expand_dims(F.cast(images.symbol, dtype="float32"), axis=1)
    return F.contrib.ROIAlign(
        x.symbol,
        F.concat(index, rois.symbol, dim=1),
        pooled_size=(node.get("output_height", 1), node.get("output_width", 1)),
        spatial_scale=node.get("spatial_scale", 1.0),
        sample_ratio=node.get("sampling_ratio", 0) or -1,
        aligned=aligned,
        name=node.name,
    )


@imports("GridSample")
def grid_sample(node: OnnxNode, x: Value, grid: Value) -> Any:
    """Sample images or volumes at positions of a grid."""
    mode = node.get("mode", "linear")
    kinds = {"linear": "bilinear", "cubic": "bicubic"}
    return internal._onnx_grid_sample(
        x.symbol,
        grid.symbol,
        mode=kinds.get(mode, mode),
        padding_mode=node.get("padding_mode", "zeros"),
        align_corners=node.flag("align_corners"),
        name=node.name,
    )


@imports("AffineGrid")
def affine_grid(node: OnnxNode, theta: Value, size: Value) -> Any:
    """Sampling positions of affine maps: those of the identity, as ``(x, y, 1)``, mapped."""
    batch, _, *sizes = node.required_ints("size", size)
    rank = len(sizes)
    identity = torch.eye(rank, rank + 1, dtype=torch.float64)[None]
    grid = functional.affine_grid(identity, [1, 1, *sizes], node.flag("align_corners"))
    points = functional.pad(grid.reshape(1, -1, rank), (0, 1), value=1.0).expand(batch, -1, -1)
    base = node.parameter(points.numpy().astype(theta.dtype), "grid")
    mapped = F.batch_dot(base, theta.symbol, transpose_b=True)
    return F.reshape(mapped, shape=(batch, *sizes, rank), name=node.name)


@imports("NonMaxSuppression")
def non_max_suppression(
    node: OnnxNode,
    boxes: Value,
    scores: Value,
    limit: Value | None = None,
    overlap: Value | None = None,
    least: Value | None = None,
) -> Any:
    """Keep boxes that do not overlap with a better one."""
    defaults = (np.zeros(1, np.int64), np.zeros(1, np.float32), np.full(1, -np.inf, np.float32))
    bounds = [
        F.reshape(v.symbol, shape=(1,)) if v is not None else node.parameter(default, "default")
        for v, default in zip((limit, overlap, least), defaults, strict=True)
    ]
    return internal._onnx_non_max_suppression(
        boxes.symbol,
        scores.symbol,
        *bounds,
        center_point_box=node.flag("center_point_box"),
        name=node.name,
    )


@imports("DeformConv")
def deform_conv(
    node: OnnxNode,
    x: Value,
    w: Value,
    offset: Value,
    bias: Value | None = None,
    mask: Value | None = None,
) -> Any:
    """Convolution whose samples are moved by offsets."""
    kernel, groups = w.sizes[2:], node.get("offset_group", 1)
    rank = len(kernel)
    pads = node.get("pads") or [0] * 2 * rank
    before, after = pads[:rank], pads[rank:]
    is_even = before == after
    data = x.symbol if is_even else pad_spatial(x.symbol, before, after)
    if mask is not None:
        shares = mask.symbol
    else:
        half = F.slice_axis(offset.symbol, axis=1, begin=0, end=offset.sizes[1] // 2)
        shares = F.ones_like(half)
    inputs = [data, offset.symbol, shares, w.symbol]
    inputs += [bias.symbol] if bias is not None else []
    return F.contrib.ModulatedDeformableConvolution(
        *inputs,
        kernel=kernel,
        stride=tuple(node.get("strides") or [1] * rank),
        dilate=tuple(node.get("dilations") or [1] * rank),
        pad=tuple(before) if is_even else (0,) * rank,
        num_filter=w.sizes[0],
        num_group=node.get("group", 1),
        num_deformable_group=groups,
        no_bias=bias is None,
        name=node.name,
    )


@imports("Col2Im")
def col2im(node: OnnxNode, x: Value, image: Value, block: Value) -> Any:
    """Add columns of patches back into images; uneven pads are cropped afterward."""
    sizes, kernel = node.required_ints("image_shape", image), node.ints("block_shape", block)
    rank = len(sizes)
    pads = node.get("pads") or [0] * 2 * rank
    before, after = pads[:rank], pads[rank:]
    is_even = before == after
    whole = [n + b + a for n, b, a in zip(sizes, before, after, strict=True)]
    output = F.col2im(
        x.symbol,
        output_size=tuple(sizes if is_even else whole),
        kernel=tuple(kernel or ()),
        stride=tuple(node.get("strides") or ()),
        dilate=tuple(node.get("dilations") or ()),
        pad=tuple(before) if is_even else (),
        name=node.name,
    )
    if not is_even:
        for axis, (start, size) in enumerate(zip(before, sizes, strict=True), 2):
            output = F.slice_axis(output, axis=axis, begin=start, end=start + size)
    return output
