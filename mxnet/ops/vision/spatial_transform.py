"""Resizing of feature maps, and sampling at a grid."""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ...error import MXNetError, ShapeError
from ..attributes import ArrayCount, Count, Positive, Shape
from ..declare import op
from ..shapes import UNKNOWN
from ..tracing import is_traced


@op("_contrib_AdaptiveAvgPooling2D")
def adaptive_avg_pooling_2d(data: Tensor, *, output_size: Shape = ()) -> Tensor:
    """Adaptive average pooling to the given output size, 1 by default.

    Parameters
    ----------
    output_size
        Height and width of the result, or one number for both; 1 by default.

    >>> mx.nd.contrib.AdaptiveAvgPooling2D(mx.nd.arange(4).reshape((1, 1, 2, 2))).asnumpy()
    array([[[[1.5]]]], dtype=float32)
    """
    return F.adaptive_avg_pool2d(data, _adaptive_size(output_size))


def _adaptive_size(output_size: Shape) -> tuple[int, int]:
    if len(output_size) > 2:
        raise ShapeError(
            "_contrib_AdaptiveAvgPooling2D: output_size must have one or two numbers, got "
            f"{output_size}."
        )
    if not output_size:
        return (1, 1)
    return (output_size[0], output_size[-1])


@adaptive_avg_pooling_2d.infer_outputs
def adaptive_avg_pooling_2d_shape(data: Shape | None, *, output_size: Shape) -> Shape | None:
    """The requested size."""
    return None if data is None else (*data[:-2], *_adaptive_size(output_size))


ResizeMode = Literal[
    "like", "odd_scale", "size", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"
]
_ROUNDING = {
    "to_even_down": lambda n: n - n % 2,
    "to_even_up": lambda n: n + n % 2,
    "to_odd_down": lambda n: n - 1 + n % 2,
    "to_odd_up": lambda n: n + 1 - n % 2,
}


def _new_size(size: int, mode: str, target: int, scale: float | None, like: int | None) -> int:
    """Return the new size of one axis."""
    if mode == "like":
        return UNKNOWN if like is None else like
    if mode == "size" and scale is None:
        return target
    if size == UNKNOWN:
        return UNKNOWN
    if mode in _ROUNDING:
        return _ROUNDING[mode](size)
    if scale is None:
        raise MXNetError(
            f"_contrib_BilinearResize2D with mode={mode!r} needs scale_height and scale_width."
        )
    if mode == "odd_scale" and size % 2:
        return int((size - 1) * scale) + 1
    return int(size * scale)


@op(
    "_contrib_BilinearResize2D",
    optional={"like": lambda a: a["mode"] == "like"},
    names_single_input=True,
    without_gradient=("like",),
)
def bilinear_resize_2d(
    data: Tensor,
    like: Tensor | None = None,
    *,
    height: int = 1,
    width: int = 1,
    scale_height: float | None = None,
    scale_width: float | None = None,
    mode: ResizeMode = "size",
    align_corners: bool = True,
) -> Tensor:
    """Resize the last two axes by bilinear interpolation.

    Parameters
    ----------
    like
        Array whose height and width are used, with ``mode='like'``.
    height
        Height of the result, with ``mode='size'``.
    width
        Width of the result, with ``mode='size'``.
    scale_height
        Factor of the height, for the other modes.
    scale_width
        Factor of the width, for the other modes.
    mode
        Output size: given (``size``), from factors, rounded to odd or even, or that of another
        array (``like``).
    align_corners
        Whether to align the corner pixels of both images.

    >>> x = mx.nd.array([[[[0, 2]]]])
    >>> mx.nd.contrib.BilinearResize2D(x, height=1, width=3).asnumpy()
    array([[[[0., 1., 2.]]]], dtype=float32)
    """
    target = [None, None] if like is None else like.shape[-2:]
    new = (
        _new_size(data.shape[-2], mode, height, scale_height, target[0]),
        _new_size(data.shape[-1], mode, width, scale_width, target[1]),
    )
    if new == tuple(data.shape[-2:]):
        return data.clone()
    # In MXNet a single row or column is the first one, not the center.
    data = data[..., :1, :] if new[0] == 1 else data
    data = data[..., :1] if new[1] == 1 else data
    if _is_small(data, new):
        return _resize_by_matrices(data, new, align_corners)
    # torch is slow for exactly three channels, so reorder the planes.
    planes = data.reshape(-1, *data.shape[-2:])
    planes = planes.unsqueeze(1 if len(planes) == 3 else 0)
    out = F.interpolate(planes, new, mode="bilinear", align_corners=align_corners)
    return out.reshape(*data.shape[:-2], *new)


def _is_small(data: Tensor, new: tuple[int, int]) -> bool:
    """Return whether the output is small, where matrix products are faster than torch's kernel."""
    height, width = data.shape[-2:]
    multiplications = height + width * height / new[0]  # for each output
    if data.device.type != "cpu" or data.dtype not in (torch.float32, torch.float64):
        return False
    if is_traced():
        return False
    # Zeros of the matrix times infinity would be NaN.
    return sum(new) <= 128 and multiplications <= 64 and bool(data.detach().sum().isfinite())


def _resize_by_matrices(data: Tensor, new: tuple[int, int], align_corners: bool) -> Tensor:
    height, width = data.shape[-2:]
    rows = _resize_matrix(data, height, new[0], align_corners)
    columns = _resize_matrix(data, width, new[1], align_corners)
    wide = torch.mm(data.reshape(-1, width), columns.T)
    return torch.matmul(rows, wide.reshape(-1, height, new[1])).reshape(*data.shape[:-2], *new)


def _resize_matrix(like: Tensor, old: int, new: int, align_corners: bool) -> Tensor:
    """Return the matrix of interpolation weights from old to new pixels."""
    kind = {"dtype": like.dtype, "device": like.device}
    position = torch.arange(new, **kind)
    if align_corners:
        position = position * ((old - 1) / max(new - 1, 1))
    else:
        position = ((position + 0.5) * (old / new) - 0.5).clamp_(0, old - 1)
    return position.unsqueeze(1).sub(torch.arange(old, **kind)).abs_().neg_().add_(1).clamp_(min=0)


@bilinear_resize_2d.infer_outputs
def bilinear_resize_2d_shape(
    data: Shape | None,
    like: Shape | None,
    *,
    height: int,
    width: int,
    scale_height: float | None,
    scale_width: float | None,
    mode: str,
    **_: object,
) -> Shape | None:
    """The new size according to the mode."""
    if data is None:
        return None
    target = [None, None] if like is None else like[-2:]
    return (
        *data[:-2],
        _new_size(data[-2], mode, height, scale_height, target[0]),
        _new_size(data[-1], mode, width, scale_width, target[1]),
    )


def _upsampling_inputs(attrs: dict) -> list[str]:
    if attrs["sample_type"] == "bilinear":
        return ["data", "weight"]
    return [f"arg{i}" for i in range(attrs["num_args"])]


@op(
    "UpSampling",
    count="num_args",
    input_names=_upsampling_inputs,
    input_init={"weight": '["bilinear", {}]'},
    names_output=True,
)
def up_sampling(
    *data: Tensor,
    scale: Positive,
    num_filter: int = 0,
    sample_type: Literal["bilinear", "nearest"],
    multi_input_mode: Literal["concat", "sum"] = "concat",
    num_args: ArrayCount = 1,
    workspace: Count = 512,
) -> Tensor:
    """Upsample by repeating pixels, or by a learned bilinear kernel (the second input).

    Several arrays are upsampled to the same size and concatenated or summed.

    Parameters
    ----------
    data
        The arrays, of shape ``(batch, channels, height, width)``; for ``bilinear`` an array and a
        kernel.
    scale
        Factor of height and width.
    num_filter
        Number of channels, for ``bilinear``.
    sample_type
        ``'nearest'`` repeats pixels, ``'bilinear'`` interpolates.
    multi_input_mode
        How to combine several arrays: ``concat`` or ``sum``.

    >>> x = mx.nd.array([[[[1, 2]]]])
    >>> mx.nd.UpSampling(x, scale=2, sample_type='nearest').asnumpy()
    array([[[[1., 1., 2., 2.],
             [1., 1., 2., 2.]]]], dtype=float32)
    """
    first = data[0]
    if sample_type == "bilinear":
        if len(data) != 2:
            raise MXNetError(
                f"UpSampling with sample_type='bilinear' takes data and weight, got {len(data)} "
                f"input(s)."
            )
        kernel = 2 * scale - scale % 2
        pad = math.ceil((scale - 1) / 2)
        groups = num_filter or first.shape[1]
        return F.conv_transpose2d(
            first,
            data[1],
            stride=scale,
            padding=pad,
            output_padding=scale * first.shape[2] - _unpad(first.shape[2], scale, kernel, pad),
            groups=groups,
        )
    height, width = first.shape[2] * scale, first.shape[3] * scale
    big = [_repeat(x, height, width) for x in data]
    if len(big) == 1:
        return big[0]
    return torch.cat(big, 1) if multi_input_mode == "concat" else sum(big[1:], big[0])


def _unpad(size: int, scale: int, kernel: int, pad: int) -> int:
    return (size - 1) * scale + kernel - 2 * pad


def _repeat(x: Tensor, height: int, width: int) -> Tensor:
    if height % x.shape[2] or width % x.shape[3] or height // x.shape[2] != width // x.shape[3]:
        raise ShapeError(
            f"Shape inconsistent in UpSampling: {list(x.shape)} cannot be enlarged by an integer "
            f"factor to {height} x {width}."
        )
    if height == x.shape[2]:
        return x.clone()
    if is_traced():
        return F.interpolate(x, (height, width), mode="nearest")
    return _Repeat.apply(x, height // x.shape[2])


class _Repeat(torch.autograd.Function):
    """Nearest-neighbor upsampling by copies, which is faster than torch's kernel."""

    @staticmethod
    def forward(ctx, x: Tensor, scale: int) -> Tensor:
        ctx.shape = batch, channels, height, width = x.shape
        out = x.new_empty((batch, channels, height, scale, width, scale))
        first, *others = out.unbind(3)
        for column in first.unbind(4):
            column.copy_(x)
        for row in others:
            row.copy_(first)
        return out.view(batch, channels, height * scale, width * scale)

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None]:
        (grad,) = grads
        size, shape = list(grad.shape[2:]), list(ctx.shape)
        return torch.ops.aten.upsample_nearest2d_backward(grad, size, shape), None


@up_sampling.infer_inputs
def up_sampling_inputs(
    *data: Shape | None, scale: int, sample_type: str, num_filter: int, **_: object
) -> dict[str, Shape]:
    """One square kernel per channel."""
    if sample_type != "bilinear":
        return {}
    kernel = 2 * scale - scale % 2
    channels = num_filter or (UNKNOWN if data[0] is None else data[0][1])
    return {"weight": (channels, 1, kernel, kernel)}


@up_sampling.infer_outputs
def up_sampling_shape(
    *data: Shape | None, scale: int, sample_type: str, multi_input_mode: str, **_: object
) -> Shape | None:
    """The first input's size times the scale."""
    if data[0] is None:
        return None
    batch, channels, *sizes = data[0]
    if sample_type == "nearest" and multi_input_mode == "concat":
        parts = [UNKNOWN if s is None else s[1] for s in data]
        channels = UNKNOWN if UNKNOWN in parts else sum(parts)
    return (batch, channels, *(UNKNOWN if n == UNKNOWN else n * scale for n in sizes))


@op("BilinearSampler", outputs=("output",), total=2, gradients_by_input=True)
def bilinear_sampler(data: Tensor, grid: Tensor, *, cudnn_off: bool | None = None) -> Tensor:
    """Sample at positions ``grid`` of x and y in [-1, 1], with zeros outside.

    Parameters
    ----------
    grid
        Positions x and y, of shape ``(batch, 2, height, width)``.

    >>> data, grid = mx.nd.array([[[[1, 2, 3]]]]), mx.nd.zeros((1, 2, 1, 1))
    >>> mx.nd.BilinearSampler(data, grid).asnumpy()
    array([[[[2.]]]], dtype=float32)
    """
    return F.grid_sample(data, grid.permute(0, 2, 3, 1), align_corners=True)


@bilinear_sampler.infer_outputs
def bilinear_sampler_shape(data: Shape | None, grid: Shape | None, **_: object) -> Shape | None:
    """The channels of the data, the size of the grid."""
    return None if data is None or grid is None else (*data[:2], *grid[2:])


@op("GridGenerator", outputs=("output",), total=2, names_single_input=True, gradients_by_input=True)
def grid_generator(
    data: Tensor,
    *,
    transform_type: Literal["affine", "warp"],
    target_shape: Shape = (0, 0),
) -> Tensor:
    """Generate a sampling grid of x and y in [-1, 1] from 2x3 matrices or a flow in pixels.

    Parameters
    ----------
    data
        Matrices of shape ``(batch, 6)``, or a flow of shape ``(batch, 2, height, width)``.
    target_shape
        Height and width of the grid; required for ``'affine'``.

    >>> identity = mx.nd.array([[1, 0, 0, 0, 1, 0]])
    >>> grid = mx.nd.GridGenerator(identity, transform_type='affine', target_shape=(1, 3))
    >>> grid.asnumpy()
    array([[[[-1.,  0.,  1.]],
    <BLANKLINE>
            [[-1., -1., -1.]]]], dtype=float32)
    """
    if transform_type == "affine":
        return _affine_grid(data, target_shape, "GridGenerator")
    height, width = data.shape[2:]
    x = torch.arange(width, dtype=data.dtype, device=data.device)
    y = torch.arange(height, dtype=data.dtype, device=data.device).unsqueeze(1)
    position = torch.stack(torch.broadcast_tensors(x, y))
    half = data.new_tensor([(width - 1) / 2, (height - 1) / 2]).view(2, 1, 1)
    return (data + position) / half - 1


def _affine_grid(theta: Tensor, target_shape: Shape, name: str) -> Tensor:
    if len(target_shape) != 2 or min(target_shape) <= 0:
        raise ShapeError(f"{name} needs target_shape=(height, width), got {target_shape}.")
    height, width = target_shape
    kind = {"dtype": theta.dtype, "device": theta.device}
    # MXNet's spacing is 2 / (size - 1); a single row or column is at -1.
    x = torch.arange(width, **kind) * (2.0 / max(width - 1, 1)) - 1
    y = (torch.arange(height, **kind) * (2.0 / max(height - 1, 1)) - 1).unsqueeze(1)
    flat = torch.stack(torch.broadcast_tensors(x, y, torch.ones_like(y))).reshape(3, -1)
    return (theta.reshape(-1, 2, 3) @ flat).reshape(-1, 2, height, width)


@grid_generator.infer_outputs
def grid_generator_shape(
    data: Shape | None, *, transform_type: str, target_shape: Shape
) -> Shape | None:
    """Two coordinates per position."""
    if data is None:
        return None
    return data if transform_type == "warp" else (data[0], 2, *target_shape)


@op("SpatialTransformer", outputs=("output",), total=3, gradients_by_input=True)
def spatial_transformer(
    data: Tensor,
    loc: Tensor,
    *,
    target_shape: Shape = (0, 0),
    transform_type: Literal["affine"],
    sampler_type: Literal["bilinear"],
    cudnn_off: bool | None = None,
) -> Tensor:
    """Sample the data by the affine map of a localization network.

    Parameters
    ----------
    loc
        Matrices of shape ``(batch, 6)``.
    transform_type
        Type of the map; only ``'affine'``.
    sampler_type
        Type of sampling; only ``'bilinear'``.

    >>> x, loc = mx.nd.array([[[[1, 2], [3, 4]]]]), mx.nd.array([[1, 0, 0, 0, 1, 0]])
    >>> kinds = {'transform_type': 'affine', 'sampler_type': 'bilinear'}
    >>> mx.nd.SpatialTransformer(x, loc, target_shape=(2, 2), **kinds).asnumpy()
    array([[[[1., 2.],
             [3., 4.]]]], dtype=float32)
    """
    grid = _affine_grid(loc, target_shape, "SpatialTransformer")
    return F.grid_sample(data, grid.permute(0, 2, 3, 1), align_corners=True)


@spatial_transformer.infer_inputs
def spatial_transformer_inputs(
    data: Shape | None, loc: Shape | None, **_: object
) -> dict[str, Shape]:
    """Six parameters per image."""
    return {} if data is None else {"loc": (data[0], 6)}


@spatial_transformer.infer_outputs
def spatial_transformer_shape(
    data: Shape | None, loc: Shape | None, *, target_shape: Shape, **_: object
) -> Shape | None:
    """The size of the target."""
    if data is None:
        return None
    return (*data[:2], *target_shape)
