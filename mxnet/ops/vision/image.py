"""Image preprocessing of ``(height, width, channels)`` arrays or batches of them."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ...error import MXNetError, ShapeError
from ..attributes import Floats, Shape
from ..declare import op
from ..shapes import UNKNOWN, same
from ..tensor.identity import may_share
from ..tracing import is_traced

MAX_CHANNELS = 4  # of images that OpenCV divides
GRAY = (0.299, 0.587, 0.114)
# Principal components of the colors of ImageNet (Krizhevsky et al., 2012).
EIGENVALUES = (55.46, 4.794, 1.148)
EIGENVECTORS = (
    (-0.5675, 0.7192, 0.4009),
    (-0.5808, -0.0045, -0.8140),
    (-0.5836, -0.6948, 0.4203),
)


def _check_image(name: str, data: Tensor) -> None:
    if data.ndim != 3:
        raise ShapeError(
            f"{name}: an image must have shape (height, width, channels), got {list(data.shape)}."
        )


def _check_colors(name: str, data: Tensor) -> None:
    _check_image(name, data)
    if data.shape[-1] not in (1, 3):
        raise ShapeError(
            f"{name}: the last axis of an image holds its 1 or 3 channels, got "
            f"{list(data.shape)}. Change colors before ToTensor, which puts channels first."
        )


def _to_dtype(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert float results to the image's dtype; bytes are clamped to 0..255 and truncated."""
    if dtype is torch.uint8:
        values = values.clamp(0, 255)
    return values.to(dtype)


@op(
    "_image_to_tensor",
    "_npx__image_to_tensor",
    types="T -> float32",
    overwritable=True,
    names_single_input=True,
)
def to_tensor(data: Tensor) -> Tensor:
    """Convert an image in 0..255 to ``(channels, height, width)`` float32 in 0..1.

    >>> mx.nd.image.to_tensor(mx.nd.array([[[255, 0, 51]]], dtype='uint8')).asnumpy().ravel()
    array([1. , 0. , 0.2], dtype=float32)
    """
    if data.ndim not in (3, 4):
        raise ShapeError(f"_image_to_tensor needs 3 or 4 axes, got {list(data.shape)}.")
    if data.dtype is torch.float32:
        return data.movedim(-1, -3).div(255.0).contiguous()
    # Transposing bytes is faster than transposing floats.
    return _channels_first(data).to(torch.float32).div_(255.0)


def _channels_first(data: Tensor) -> Tensor:
    """Move the channels before height and width, also in memory."""
    is_image = data.ndim == 3 and data.dtype is torch.uint8 and data.device.type == "cpu"
    fits = is_image and 1 < data.shape[-1] <= MAX_CHANNELS and data.numel()
    if not fits or is_traced() or not _has_opencv():
        return data.movedim(-1, -3).contiguous()
    import cv2

    planes = torch.empty((data.shape[2], *data.shape[:2]), dtype=torch.uint8)
    cv2.split(data.contiguous().numpy(), list(planes.numpy()))
    return planes


@to_tensor.infer_outputs
def to_tensor_shape(data: Shape | None) -> Shape | None:
    """Channels first."""
    return None if data is None else (*data[:-3], data[-1], *data[-3:-1])


@op("_image_normalize", "_npx__image_normalize", shape=same, names_single_input=True)
def normalize(data: Tensor, *, mean: Floats = (0, 0, 0, 0), std: Floats = (1, 1, 1, 1)) -> Tensor:
    """Subtract each channel's mean and divide by its standard deviation; channels come first.

    Parameters
    ----------
    data
        An image of shape ``(channels, height, width)``, or a batch of them.
    mean
        Mean of each channel, or one for all.
    std
        Standard deviation of each channel, or one for all.

    >>> mx.nd.image.normalize(mx.nd.ones((1, 1, 2)), mean=(0.5,), std=(0.25,)).asnumpy().ravel()
    array([2., 2.], dtype=float32)
    """
    _check_normalizable(data, mean, std)
    kind = data.dtype if data.dtype.is_floating_point else torch.float32
    shift, scale = _channel_values(mean, std, kind, data.device)
    return _to_dtype((data - shift).div_(scale), data.dtype)


def _check_normalizable(data: Tensor, mean: Floats, std: Floats) -> None:
    if data.ndim not in (3, 4):
        raise ShapeError(f"_image_normalize needs 3 or 4 axes, got {list(data.shape)}.")
    channels = data.shape[-3]
    if channels not in (1, 3):
        raise ShapeError(
            "_image_normalize: needs 1 or 3 channels on the first axis, as ToTensor returns them; "
            f"got an image of {list(data.shape)}."
        )
    for what, numbers in (("mean", mean), ("std", std)):
        if len(numbers) not in (1, channels):
            raise ShapeError(
                f"Invalid {what} for input with shape {list(data.shape)}: it must have either 1 "
                f"or {channels} elements, but got {list(numbers)}."
            )


def _channel_values(
    mean: Floats, std: Floats, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation as arrays that broadcast over channels."""
    shift, scale = (torch.tensor(v, dtype=dtype, device=device) for v in (mean, std))
    return shift.view(-1, 1, 1), scale.view(-1, 1, 1)


@normalize.variant("in_place")
def normalize_in_place(attrs: dict) -> Callable[[Tensor], Tensor]:
    """Return the in-place normalization."""
    mean, std = attrs["mean"], attrs["std"]

    def written(data: Tensor) -> Tensor:
        _check_normalizable(data, mean, std)
        shift, scale = _channel_values(mean, std, data.dtype, data.device)
        return data.sub_(shift).div_(scale)

    return written


@op("_image_crop", "_npx__image_crop")
def crop(data: Tensor, *, x: int, y: int, width: int, height: int) -> Tensor:
    """Crop a rectangle with the upper left corner ``(x, y)``.

    Parameters
    ----------
    data
        An image of shape ``(height, width, channels)``, or a batch of them.
    x
        Column of the left edge.
    y
        Row of the upper edge.

    >>> image = mx.nd.arange(6).reshape((2, 3, 1))
    >>> mx.nd.image.crop(image, x=1, y=0, width=2, height=1).asnumpy().ravel()
    array([1., 2.], dtype=float32)
    """
    _check_rectangle(data.shape, x, y, width, height)
    return data[..., y : y + height, x : x + width, :].contiguous()


@crop.infer_outputs
def crop_shape(data: Shape | None, *, x: int, y: int, width: int, height: int) -> Shape | None:
    """The size of the rectangle."""
    if data is None:
        return None
    _check_rectangle(data, x, y, width, height)
    return (*data[:-3], height, width, data[-1])


def _check_rectangle(shape: Sequence[int], x: int, y: int, width: int, height: int) -> None:
    """Raise for a rectangle that is empty or not inside the image, if its size is known."""
    rows, columns = (math.inf if n < 0 else n for n in shape[-3:-1])
    if min(width, height) < 1 or min(x, y) < 0 or x + width > columns or y + height > rows:
        raise ShapeError(
            f"_image_crop: the rectangle x={x}, y={y}, width={width}, height={height} must not be "
            f"empty and should not be greater than the input, {list(shape)}."
        )


def _axis_weights(old: int, new: int, both_shrink: bool, interp: int) -> Tensor:
    """Return the ``(new, old)`` matrix of one axis for area (3) and Lanczos (4) resizing."""
    scale = old / new
    position = torch.arange(new, dtype=torch.float64)
    pixel = torch.arange(old, dtype=torch.float64)
    if interp == 3 and both_shrink:
        low, high = position.unsqueeze(1) * scale, (position.unsqueeze(1) + 1) * scale
        return (torch.minimum(high, pixel + 1) - torch.maximum(low, pixel)).clamp(min=0) / scale
    if interp == 3:  # OpenCV enlarges "by area" with shares that keep pixels flat
        low = torch.floor(position * scale)
        part = (position + 1) - (low + 1) / scale
        part = torch.where(part <= 0, 0.0, part - part.floor())
        taps, weights = torch.stack([low, low + 1], 1), torch.stack([1 - part, part], 1)
    else:
        center = (position + 0.5) * scale - 0.5
        taps = center.floor().unsqueeze(1) + torch.arange(-3, 5)
        distance = center.unsqueeze(1) - taps
        weights = torch.sinc(distance) * torch.sinc(distance / 4)
        weights = weights / weights.sum(1, keepdim=True)
    matrix = torch.zeros(new, old, dtype=torch.float64)
    return matrix.scatter_add_(1, taps.long().clamp(0, old - 1), weights)


_TORCH_MODES = {0: "nearest", 1: "bilinear", 2: "bicubic", 5: "bilinear"}


def _resize(image: Tensor, height: int, width: int, interp: int) -> Tensor:
    """Resize ``(batch, channels, height, width)`` as OpenCV does."""
    if interp in _TORCH_MODES:
        align = None if interp == 0 else False
        return F.interpolate(image, (height, width), mode=_TORCH_MODES[interp], align_corners=align)
    shrink = height <= image.shape[2] and width <= image.shape[3]
    rows = _axis_weights(image.shape[2], height, shrink, interp).to(image)
    columns = _axis_weights(image.shape[3], width, shrink, interp).to(image)
    return rows @ image @ columns.t()


def _target_size(height: int, width: int, size: Shape, keep_ratio: bool) -> tuple[int, int]:
    """Return the new height and width; a single number is both, or the shorter edge."""
    if len(size) not in (1, 2) or min(size) <= 0:
        raise ShapeError(f"_image_resize needs size=(width, height) or one number, got {size}.")
    if len(size) == 2:
        return size[1], size[0]
    short = size[0]
    if not keep_ratio:
        return short, short
    if UNKNOWN in (height, width):
        return UNKNOWN, UNKNOWN
    if height > width:
        return height * short // width, short
    return short, width * short // height


@cache
def _has_opencv() -> bool:
    return importlib.util.find_spec("cv2") is not None


def resize_by_opencv(pixels: np.ndarray, width: int, height: int, interp: int) -> np.ndarray:
    """Resize an image by OpenCV; cubic interpolation of bytes rounds as in 1.9.1.

    OpenCV takes Intel's IPP for it, which rounds about 5 % of the bytes to another number.
    """
    import cv2  # takes long to import, and few programs resize

    by_ipp = interp == cv2.INTER_CUBIC and pixels.dtype == np.uint8 and cv2.ipp.useIPP()
    if not by_ipp:
        return cv2.resize(pixels, (width, height), interpolation=interp)
    cv2.ipp.setUseIPP(False)  # in this thread only
    try:
        return cv2.resize(pixels, (width, height), interpolation=interp)
    finally:
        cv2.ipp.setUseIPP(True)


def _resize_bytes(image: Tensor, height: int, width: int, interp: int) -> Tensor:
    """Resize an image of bytes by OpenCV, whose fixed-point arithmetic rounds in its own way."""
    result = resize_by_opencv(image.contiguous().numpy(), width, height, interp)
    return torch.from_numpy(result).reshape(height, width, image.shape[-1])


@op("_image_resize", "_npx__image_resize")
def resize(data: Tensor, *, size: Shape = (), keep_ratio: bool = False, interp: int = 1) -> Tensor:
    """Resize an image to ``(width, height)``; `interp` is OpenCV's number, 1 is bilinear.

    Parameters
    ----------
    data
        An image of shape ``(height, width, channels)``, or a batch of them.
    size
        Width and height, or one number for both.
    keep_ratio
        Whether one number is the length of the shorter edge, so that proportions stay.
    interp
        OpenCV's number of the interpolation: 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos.

    >>> image = mx.nd.array([[[0], [3]]])
    >>> mx.nd.image.resize(image, size=(4, 1)).asnumpy().ravel()
    array([0.  , 0.75, 2.25, 3.  ], dtype=float32)
    """
    if interp not in (*_TORCH_MODES, 3, 4):
        raise MXNetError(
            f"_image_resize: unknown interpolation method {interp}; 0 nearest, 1 bilinear, "
            f"2 cubic, 3 area, 4 Lanczos, 5 bilinear."
        )
    if data.ndim not in (3, 4):
        raise ShapeError(f"_image_resize needs 3 or 4 axes, got {list(data.shape)}.")
    height, width = _target_size(data.shape[-3], data.shape[-2], size, keep_ratio)
    image = data.unsqueeze(0) if data.ndim == 3 else data
    if data.dtype is torch.uint8 and data.is_cpu and data.numel() and _has_opencv():
        result = torch.stack([_resize_bytes(one, height, width, interp) for one in image])
        return result.squeeze(0) if data.ndim == 3 else result
    image = image.permute(0, 3, 1, 2)
    if not data.dtype.is_floating_point:
        image = image.to(torch.float32)
    result = _resize(image, height, width, interp).permute(0, 2, 3, 1)
    if not data.dtype.is_floating_point:
        result = _to_dtype(result.round(), data.dtype)
    return (result.squeeze(0) if data.ndim == 3 else result).contiguous()


@resize.infer_outputs
def resize_shape(data: Shape | None, *, size: Shape, keep_ratio: bool, **_: int) -> Shape | None:
    """The new size."""
    if data is None:
        return None
    return (*data[:-3], *_target_size(data[-3], data[-2], size, keep_ratio), data[-1])


@op("_image_flip_left_right", "_npx__image_flip_left_right", shape=same)
def flip_left_right(data: Tensor) -> Tensor:
    """Mirror an image from left to right.

    >>> mx.nd.image.flip_left_right(mx.nd.array([[[1], [2]]])).asnumpy().ravel()
    array([2., 1.], dtype=float32)
    """
    _check_image("_image_flip_left_right", data)
    return data.flip(1)


@op("_image_flip_top_bottom", "_npx__image_flip_top_bottom", shape=same)
def flip_top_bottom(data: Tensor) -> Tensor:
    """Turn an image upside down.

    >>> mx.nd.image.flip_top_bottom(mx.nd.array([[[1]], [[2]]])).asnumpy().ravel()
    array([2., 1.], dtype=float32)
    """
    _check_image("_image_flip_top_bottom", data)
    return data.flip(0)


@may_share
@op("_image_random_flip_left_right", "_npx__image_random_flip_left_right", shape=same, random=True)
def random_flip_left_right(data: Tensor) -> Tensor:
    """Mirror an image from left to right, or leave it, with equal chance.

    >>> mx.nd.image.random_flip_left_right(mx.nd.ones((1, 2, 1))).asnumpy().ravel()
    array([1., 1.], dtype=float32)
    """
    _check_image("_image_random_flip_left_right", data)
    return data.flip(1) if _draw(0, 1) < 0.5 else data


@may_share
@op("_image_random_flip_top_bottom", "_npx__image_random_flip_top_bottom", shape=same, random=True)
def random_flip_top_bottom(data: Tensor) -> Tensor:
    """Turn an image upside down, or leave it, with equal chance.

    >>> mx.nd.image.random_flip_top_bottom(mx.nd.ones((2, 1, 1))).asnumpy().ravel()
    array([1., 1.], dtype=float32)
    """
    _check_image("_image_random_flip_top_bottom", data)
    return data.flip(0) if _draw(0, 1) < 0.5 else data


def _draw(low: float, high: float) -> float:
    """Return an evenly distributed number from torch's own generator."""
    return low + (high - low) * float(torch.rand(()))


def _factor(name: str, low: float, high: float) -> float:
    if low < 0 or high < low:
        raise MXNetError(
            f"{name}: needs 0 <= min_factor <= max_factor, got min_factor={low}, max_factor={high}."
        )
    return _draw(low, high)


def _working(data: Tensor) -> Tensor:
    return data if data.dtype.is_floating_point else data.to(torch.float32)


def _brighten(image: Tensor, factor: float) -> Tensor:
    return image * factor


def _gray(image: Tensor) -> Tensor:
    if image.shape[-1] == 1:
        return image
    return (image[..., :3] @ image.new_tensor(GRAY)).unsqueeze(-1)


def _change_contrast(image: Tensor, factor: float) -> Tensor:
    return image * factor + _gray(image).mean() * (1 - factor)


def _saturate(image: Tensor, factor: float) -> Tensor:
    if image.shape[-1] == 1:
        return image.clone()
    # MXNet 1.9.1 keeps only the last channel's part of a pixel's gray.
    return image * factor + image[..., 2:3] * (GRAY[2] * (1 - factor))


# Of the channels red, green and blue in each sixth of the circle: high, low, falling, climbing.
_HUE_SIXTHS = ((0, 3, 1), (2, 0, 1), (1, 0, 3), (1, 2, 0), (3, 1, 0), (0, 1, 2))


def _shift_hue(image: Tensor, turn: float) -> Tensor:
    """Rotate the hue by a fraction of the circle; lightness and saturation are unchanged.

    Integers are truncated afterward, so each step rounds like MXNet: 0..1, then HLS, then back.
    """
    if image.shape[-1] == 1:
        return image.clone()
    hue, light, saturation = _to_hls(image / 255.0)
    hue = (hue + turn * 360.0) * (6.0 / 360.0)
    hue = torch.where(hue >= 6, hue - 6, hue)
    sixth = hue.detach().floor()
    rest = hue - sixth
    high = torch.where(
        light <= 0.5, light * (1 + saturation), light + saturation - light * saturation
    )
    low = 2 * light - high
    levels = torch.stack(
        [high, low, low + (high - low) * (1 - rest), low + (high - low) * rest], dim=-1
    )
    order = torch.tensor(_HUE_SIXTHS, device=image.device)[sixth.long() % 6]
    return levels.gather(-1, order) * 255.0


def _to_hls(image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return hue in degrees, lightness and saturation of an image of 0..1."""
    red, green, blue = image.unbind(-1)
    high, low = image.amax(-1), image.amin(-1)
    span, light = high - low, (high + low) * 0.5
    colored = span > torch.finfo(torch.float32).eps
    whole = torch.where(light < 0.5, high + low, 2 - high - low)
    saturation = torch.where(colored, span, 0) / torch.where(colored, whole, 1)
    slope = span.new_tensor(60.0) / torch.where(colored, span, 1)  # `60 / x` would round twice
    hue = torch.where(
        high == red,
        (green - blue) * slope,
        torch.where(high == green, (blue - red) * slope + 120, (red - green) * slope + 240),
    )
    return torch.where(hue < 0, hue + 360, hue), light, saturation


def _lit(data: Tensor, alpha: Floats | list[float]) -> Tensor:
    if data.shape[-1] == 1:
        return data.clone()
    image = _working(data)
    strength = image.new_tensor([a * v for a, v in zip(alpha, EIGENVALUES, strict=True)])
    return _to_dtype(image + image.new_tensor(EIGENVECTORS) @ strength, data.dtype)


@op("_image_random_brightness", "_npx__image_random_brightness", shape=same, random=True)
def random_brightness(data: Tensor, *, min_factor: float, max_factor: float) -> Tensor:
    """Multiply an image by a random factor.

    >>> mx.nd.image.random_brightness(mx.nd.ones((1, 1, 3)), 2, 2).asnumpy().ravel()
    array([2., 2., 2.], dtype=float32)
    """
    _check_colors("_image_random_brightness", data)
    factor = _factor("_image_random_brightness", min_factor, max_factor)
    return _to_dtype(_brighten(_working(data), factor), data.dtype)


@op("_image_random_contrast", "_npx__image_random_contrast", shape=same, random=True)
def random_contrast(data: Tensor, *, min_factor: float, max_factor: float) -> Tensor:
    """Move an image away from, or toward, its mean gray by a random factor.

    >>> mx.nd.image.random_contrast(mx.nd.array([[[1], [3]]]), 2, 2).asnumpy().ravel()
    array([0., 4.], dtype=float32)
    """
    _check_colors("_image_random_contrast", data)
    factor = _factor("_image_random_contrast", min_factor, max_factor)
    return _to_dtype(_change_contrast(_working(data), factor), data.dtype)


@op("_image_random_saturation", "_npx__image_random_saturation", shape=same, random=True)
def random_saturation(data: Tensor, *, min_factor: float, max_factor: float) -> Tensor:
    """Move each pixel away from, or toward, the blue part of its gray by a random factor.

    >>> mx.nd.image.random_saturation(mx.nd.array([[[2, 4, 0]]]), 0.5, 0.5).asnumpy().ravel()
    array([1., 2., 0.], dtype=float32)
    """
    _check_colors("_image_random_saturation", data)
    factor = _factor("_image_random_saturation", min_factor, max_factor)
    return _to_dtype(_saturate(_working(data), factor), data.dtype)


@op("_image_random_hue", "_npx__image_random_hue", shape=same, random=True)
def random_hue(data: Tensor, *, min_factor: float, max_factor: float) -> Tensor:
    """Turn the hue by a random part of the color circle.

    Parameters
    ----------
    min_factor
        Least turn of the hue.
    max_factor
        Largest turn of the hue.

    >>> mx.nd.image.random_hue(mx.nd.array([[[2, 2, 2]]]), 0.5, 0.5).asnumpy().ravel()
    array([2., 2., 2.], dtype=float32)
    """
    _check_colors("_image_random_hue", data)
    factor = _factor("_image_random_hue", min_factor, max_factor)
    return _to_dtype(_shift_hue(_working(data), factor), data.dtype)


@op("_image_random_color_jitter", "_npx__image_random_color_jitter", shape=same, random=True)
def random_color_jitter(
    data: Tensor, *, brightness: float, contrast: float, saturation: float, hue: float
) -> Tensor:
    """Change brightness, contrast, saturation and hue by random amounts, in random order.

    Parameters
    ----------
    brightness
        Largest change of the brightness, as a fraction.
    contrast
        Largest change of the contrast, as a fraction.
    saturation
        Largest change of the saturation, as a fraction.
    hue
        Largest change of the hue, as a fraction of the color circle.

    >>> mx.nd.image.random_color_jitter(mx.nd.ones((1, 1, 3)), 0, 0, 0, 0).asnumpy().ravel()
    array([1., 1., 1.], dtype=float32)
    """
    _check_colors("_image_random_color_jitter", data)
    steps = (
        (_brighten, brightness, 1.0),
        (_change_contrast, contrast, 1.0),
        (_saturate, saturation, 1.0),
        (_shift_hue, hue, 0.0),
    )
    out = data.clone()
    for i in torch.randperm(4).tolist():
        change, reach, middle = steps[i]
        if reach > 0:
            factor = middle + _draw(-reach, reach)
            out = _to_dtype(change(_working(out), factor), data.dtype)
    return out


@op("_image_adjust_lighting", "_npx__image_adjust_lighting", shape=same)
def adjust_lighting(data: Tensor, *, alpha: Floats) -> Tensor:
    """Add the principal colors of natural images, in three given amounts.

    Parameters
    ----------
    data
        An image of shape ``(height, width, 3)``.
    alpha
        Amounts of the three principal colors.

    >>> mx.nd.image.adjust_lighting(mx.nd.ones((1, 1, 3)), alpha=(0, 0, 0)).asnumpy().ravel()
    array([1., 1., 1.], dtype=float32)
    """
    _check_colors("_image_adjust_lighting", data)
    if len(alpha) != 3:
        raise MXNetError(f"_image_adjust_lighting needs 3 numbers in alpha, got {alpha}.")
    return _lit(data, alpha)


@op("_image_random_lighting", "_npx__image_random_lighting", shape=same, random=True)
def random_lighting(data: Tensor, *, alpha_std: float = 0.05) -> Tensor:
    """Add the principal colors of natural images in normally distributed amounts.

    Parameters
    ----------
    alpha_std
        Standard deviation of the amounts.

    >>> mx.nd.image.random_lighting(mx.nd.ones((1, 1, 3)), alpha_std=0).asnumpy().ravel()
    array([1., 1., 1.], dtype=float32)
    """
    _check_colors("_image_random_lighting", data)
    return _lit(data, (torch.randn(3) * alpha_std).tolist())
