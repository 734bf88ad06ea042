"""Decoding, resizing, cropping, padding and rotation of images (height, width, channels)."""

from __future__ import annotations

import math
import operator
import os
import warnings
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from ..error import InvalidValue, MXNetError, ShapeError
from ..formats import image_codec
from ..formats.files import existing_file
from ..formats.image_codec import opencv
from ..ndarray import NDArray, _internal
from ..ops.vision.image import resize_by_opencv
from ..runtime.array import plain, wrap_plain
from ..util import is_np_array
from . import chance


def imdecode(
    buf: bytes | bytearray | memoryview | np.ndarray | NDArray,
    flag: int = 1,
    to_rgb: bool = True,
    out: NDArray | None = None,
) -> NDArray:
    """Decode a JPEG, PNG or other image to a uint8 array (height, width, channels).

    Parameters
    ----------
    buf : bytes, bytearray, or a uint8 array
        The compressed image.
    flag : {0, 1}
        1 for color, 0 for grayscale.
    to_rgb : bool
        Whether to return RGB; otherwise BGR, as in OpenCV.
    out : NDArray, optional
        Array to write the pixels into.

    >>> pixels = np.full((2, 3, 3), 7, dtype=np.uint8)
    >>> png = mx.recordio.pack_img(mx.recordio.IRHeader(0, 0.0, 0, 0), pixels, 3, ".png")[24:]
    >>> mx.image.imdecode(png, flag=0).shape
    (2, 3, 1)
    """
    if isinstance(buf, NDArray):
        buf = pixels_of(buf)
    if isinstance(buf, np.ndarray):
        buf = np.ascontiguousarray(buf, dtype=np.uint8).reshape(-1).data
    if not isinstance(buf, bytes | bytearray | memoryview):
        raise ValueError(
            "buf must be of type bytes, bytearray or numpy.ndarray,"
            f"if you would like to input type str, please convert to bytes; got {type(buf)}"
        )
    return _decoded(buf, flag, to_rgb, out, "the given bytes")


def imread(
    filename: str | os.PathLike[str], flag: int = 1, to_rgb: bool = True, out: NDArray | None = None
) -> NDArray:
    """Read an image file to a uint8 array; see `imdecode`.

    Parameters
    ----------
    filename
        Path of the file.
    flag
        1 for three channels, 0 for gray.
    to_rgb
        Whether red comes first; else blue.
    out
        Array to write the result into.

    >>> import cv2
    >>> cv2.imwrite("a.png", np.zeros((2, 3, 3), "uint8"))
    True
    >>> mx.image.imread("a.png").shape
    (2, 3, 3)
    """
    path = existing_file(filename)
    return _decoded(path.read_bytes(), flag, to_rgb, out, f"{str(path)!r}")


def _decoded(content: Any, flag: int, to_rgb: bool, out: NDArray | None, source: str) -> NDArray:
    if flag < 0:
        raise MXNetError(f"value {flag} for Parameter flag should be greater equal to 0")
    if len(content) == 0:
        raise image_codec.BadImage(f"Input cannot be an empty buffer: {source}.")
    pixels = image_codec.decode(content, int(flag), rgb=bool(to_rgb), source=source)
    if out is None:
        return array_of(pixels)
    if out.shape != pixels.shape:
        raise ShapeError(f"out has shape {out.shape}, and the image {pixels.shape}.")
    out[:] = array_of(pixels)
    return out


def pixels_of(image: NDArray | np.ndarray) -> np.ndarray:
    """Return an image's pixels for OpenCV, which only reads them: on the CPU without a copy."""
    if isinstance(image, NDArray):
        return plain(image).cpu().numpy()
    return np.asarray(image)


def array_of(pixels: np.ndarray, like: Any = None) -> NDArray:
    """Return pixels as an array of the class of ``like``, without a copy.

    Without ``like``, the array is one of `mx.np` in NumPy mode.
    """
    if not pixels.flags.writeable or not pixels.flags.c_contiguous:
        pixels = pixels.copy(order="C")
    if isinstance(like, NDArray):
        return wrap_plain(type(like), torch.from_numpy(pixels))
    output = wrap_plain(NDArray, torch.from_numpy(pixels))
    return output.as_np_ndarray() if is_np_array() else output


Rectangle = tuple[int, int, int, int]  # x, y, width, height
ATTEMPTS = 10
RESIZABLE = ("uint8", "int16", "uint16", "float32", "float64")
TAKEN_NEAREST = (*RESIZABLE, "int8", "int32")  # class indices of a mask, for example


def imresize(src: NDArray, w: int, h: int, interp: int = 1, out: NDArray | None = None) -> NDArray:
    """Resize an image to width ``w`` and height ``h``.

    ``interp`` is OpenCV's method: 0 nearest, 1 bilinear, 2 bicubic, 3 area, 4 Lanczos, 5 exact
    bilinear; 9 selects by the sizes (bicubic to enlarge, area to shrink, else bilinear), 10 at
    random.

    Parameters
    ----------
    src
        The image, of shape ``(height, width, channels)``.
    w
        The new width.
    h
        The new height.
    interp
        OpenCV's number of the interpolation.
    out
        Array to write the result into.

    >>> mx.image.imresize(mx.nd.ones((4, 6, 3), dtype="uint8"), 3, 2).shape
    (2, 3, 3)
    """
    pixels = pixels_of(src)
    if pixels.ndim != 3:
        raise ShapeError(f"imresize takes an image (height, width, channels), not {src.shape}.")
    w, h = _whole("imresize: w", w), _whole("imresize: h", h)
    if w < 1 or h < 1:
        raise MXNetError(f"imresize: width and height must be at least 1, got {w} and {h}.")
    output = array_of(resized(pixels, w, h, interp), src)
    if out is None:
        return output
    if out.shape != output.shape:
        raise ShapeError(f"out has shape {out.shape}, and the resized image {output.shape}.")
    out[:] = output
    return out


def _whole(what: str, size: Any) -> int:
    try:
        return int(size) if isinstance(size, str) else operator.index(size)
    except (TypeError, ValueError) as error:
        raise MXNetError(f"{what} must be an integer, got {size!r}.") from error


def resized(pixels: np.ndarray, width: int, height: int, interp: int) -> np.ndarray:
    """Return an image resized by OpenCV, with its channel axis."""
    opencv()  # the error names the package to install
    method = _get_interp_method(interp, (*pixels.shape[:2], height, width))
    kinds = RESIZABLE if method else TAKEN_NEAREST
    if pixels.dtype.name not in kinds:
        raise MXNetError(
            f"Images of {pixels.dtype} cannot be resized with interp={interp}; {kinds} can."
        )
    output = resize_by_opencv(pixels, width, height, method)
    return output[:, :, None] if output.ndim == 2 else output


def _get_interp_method(interp: int, sizes: tuple[int, ...] = ()) -> int:
    """Return OpenCV's method; ``sizes`` are old height and width, new height and width.

    >>> _get_interp_method(9, (10, 10, 20, 20)), _get_interp_method(9, (10, 10, 5, 5))
    (2, 3)
    """
    if interp == 9:
        if not sizes:
            return 2
        old_height, old_width, height, width = sizes
        if height > old_height and width > old_width:
            return 2
        return 3 if height < old_height and width < old_width else 1
    if interp == 10:
        return chance.whole(0, 4)
    if interp not in (0, 1, 2, 3, 4, 5):
        raise InvalidValue(f"Unknown interp method {interp}: it is 0 to 5, 9 or 10")
    return interp


def copyMakeBorder(
    src: NDArray,
    top: int,
    bot: int,
    left: int,
    right: int,
    type: int = 0,
    value: float = 0.0,
    values: float | tuple[float, ...] = (),
    out: NDArray | None = None,
) -> NDArray:
    """Add a border around an image.

    ``type`` is OpenCV's: 0 constant (``values`` for each channel, or one ``value``), 1 the edge
    replicated, 2 reflected, 3 wrapped, 4 reflected without the edge.

    Parameters
    ----------
    src
        The image, of shape ``(height, width, channels)``.
    top
        Height of the upper border.
    bot
        Height of the lower border.
    left
        Width of the left border.
    right
        Width of the right border.
    type
        OpenCV's type of border.
    value
        Color of all channels.
    values
        Color of each channel; a number is the color of the first.
    out
        Array to write the result into.

    >>> mx.image.copyMakeBorder(mx.nd.zeros((1, 1, 1)), 0, 0, 1, 0, values=(5,)).asnumpy().ravel()
    array([5., 0.], dtype=float32)
    """
    if type not in range(5):
        raise MXNetError(f"Unknown border type {type}: it is 0 to 4.")
    pixels = pixels_of(src)
    numbers = [values] if isinstance(values, int | float) else list(values)
    filling = numbers or [value] * 3  # the border of a fourth channel is 0
    filling = [float(v) for v in filling[:4]] + [0.0] * (4 - len(filling))
    output = opencv().copyMakeBorder(pixels, top, bot, left, right, type, value=filling)
    result = array_of(output[:, :, None] if output.ndim == 2 else output, src)
    if out is None:
        return result
    out[:] = result
    return out


def scale_down(src_size: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
    """Scale a crop (width, height) down to fit into an image, keeping its aspect ratio.

    Parameters
    ----------
    src_size
        Width and height of the image.
    size
        Width and height of the crop.

    >>> mx.image.scale_down((640, 480), (720, 120))
    (640, 106)
    """
    width, height = size
    source_width, source_height = src_size
    if source_height < height:
        width, height = width * source_height / height, source_height
    if source_width < width:
        width, height = source_width, height * source_width / width
    return int(width), int(height)


def resize_short(src: NDArray, size: int, interp: int = 2) -> NDArray:
    """Resize an image so that its shorter edge is ``size``.

    Parameters
    ----------
    src
        The image, of shape ``(height, width, channels)``.
    size
        New length of the shorter edge.
    interp
        OpenCV's number of the interpolation, as in `imresize`.

    >>> mx.image.resize_short(mx.nd.ones((4, 6, 3)), 2).shape
    (2, 3, 3)
    """
    height, width, _ = src.shape
    if height > width:
        new_height, new_width = size * height // width, size
    else:
        new_height, new_width = size, size * width // height
    return imresize(src, new_width, new_height, interp=interp)


def fixed_crop(
    src: NDArray,
    x0: int,
    y0: int,
    w: int,
    h: int,
    size: tuple[int, int] | None = None,
    interp: int = 2,
) -> NDArray:
    """Crop a rectangle and, if ``size`` (width, height) is given, resize it.

    Parameters
    ----------
    src
        The image, of shape ``(height, width, channels)``.
    x0
        Column of the left edge.
    y0
        Row of the upper edge.
    w
        Width of the rectangle.
    h
        Height of the rectangle.
    size
        Width and height after resizing; None: no resizing.
    interp
        OpenCV's number of the interpolation, as in `imresize`.

    >>> mx.image.fixed_crop(mx.nd.ones((4, 6, 3)), 1, 2, 3, 2).shape
    (2, 3, 3)
    """
    if x0 < 0 or y0 < 0 or x0 >= src.shape[1] or y0 >= src.shape[0] or w < 1 or h < 1:
        raise MXNetError(
            f"fixed_crop: the rectangle at ({x0}, {y0}) of {w} x {h} does not start inside the "
            f"image of {src.shape[1]} x {src.shape[0]}."
        )
    out = src[y0 : y0 + h, x0 : x0 + w]
    if size is None or (w, h) == tuple(size):
        return out
    return imresize(out, *size, interp=interp)


def random_crop(src: NDArray, size: tuple[int, int], interp: int = 2) -> tuple[NDArray, Rectangle]:
    """Crop a rectangle of ``size`` (width, height) at a random position; enlarge smaller images.

    Returns the crop and its position: (x, y, width, height).

    Parameters
    ----------
    src
        The image, of shape ``(height, width, channels)``.
    size
        Width and height.
    interp
        OpenCV's number of the interpolation, as in `imresize`.

    >>> crop, place = mx.image.random_crop(mx.nd.ones((4, 6, 3)), (2, 2))
    >>> crop.shape
    (2, 2, 3)
    """
    height, width, _ = src.shape
    new_width, new_height = scale_down((width, height), size)
    x0, y0 = chance.whole(0, width - new_width), chance.whole(0, height - new_height)
    crop = fixed_crop(src, x0, y0, new_width, new_height, size, interp)
    return crop, (x0, y0, new_width, new_height)


def center_crop(src: NDArray, size: tuple[int, int], interp: int = 2) -> tuple[NDArray, Rectangle]:
    """Crop a rectangle of ``size`` (width, height) at the center; enlarge smaller images.

    Parameters
    ----------
    src
        The image, of shape ``(height, width, channels)``.
    size
        Width and height.
    interp
        OpenCV's number of the interpolation, as in `imresize`.

    >>> crop, place = mx.image.center_crop(mx.nd.ones((4, 6, 3)), (2, 2))
    >>> place
    (2, 1, 2, 2)
    """
    height, width, _ = src.shape
    new_width, new_height = scale_down((width, height), size)
    x0, y0 = (width - new_width) // 2, (height - new_height) // 2
    crop = fixed_crop(src, x0, y0, new_width, new_height, size, interp)
    return crop, (x0, y0, new_width, new_height)


def random_size_crop(
    src: NDArray,
    size: tuple[int, int],
    area: Any,
    ratio: tuple[float, float],
    interp: int = 2,
    **kwargs: Any,
) -> tuple[NDArray, Rectangle]:
    """Crop a rectangle of random area and aspect ratio, and resize it to ``size`` (width, height).

    After ten failed attempts the center is cropped.

    Parameters
    ----------
    src
        The image, of shape ``(height, width, channels)``.
    size
        Width and height.
    area
        Smallest area, or smallest and largest, as fractions of the image's area.
    ratio
        Smallest and largest aspect ratio, width / height.
    interp
        OpenCV's number of the interpolation, as in `imresize`.

    >>> crop, place = mx.image.random_size_crop(mx.nd.ones((9, 9, 3)), (4, 3), 0.2, (0.75, 1.33))
    >>> crop.shape
    (3, 4, 3)
    """
    if "min_area" in kwargs:
        warnings.warn("`min_area` is deprecated: use `area`.", DeprecationWarning, stacklevel=2)
        area = kwargs.pop("min_area")
    if kwargs:
        raise UnexpectedArguments(
            f"unexpected keyword arguments for `random_size_crop`: {sorted(kwargs)}"
        )
    bounds: Any = (area, 1.0) if isinstance(area, int | float | np.number) else area
    least, most = bounds
    height, width, _ = src.shape
    for _ in range(ATTEMPTS):
        target = chance.between(least, most) * height * width
        form = math.exp(chance.between(math.log(ratio[0]), math.log(ratio[1])))
        new_width = round(math.sqrt(target * form))
        new_height = round(math.sqrt(target / form))
        if 1 <= new_width <= width and 1 <= new_height <= height:
            x0, y0 = chance.whole(0, width - new_width), chance.whole(0, height - new_height)
            crop = fixed_crop(src, x0, y0, new_width, new_height, size, interp)
            return crop, (x0, y0, new_width, new_height)
    return center_crop(src, size, interp)


class UnexpectedArguments(MXNetError, TypeError, AssertionError):
    """Raised for unexpected keyword arguments."""


def imrotate(
    src: NDArray,
    rotation_degrees: float | NDArray,
    zoom_in: bool = False,
    zoom_out: bool = False,
) -> NDArray:
    """Rotate a float32 image (channels, height, width), or a batch of them, about the center.

    Parameters
    ----------
    src : NDArray
        Images of shape ``(channels, height, width)``, or a batch of them.
    rotation_degrees : float, or one for each image of a batch
        The angle, or one for each image of a batch.
    zoom_in : bool
        Whether to enlarge the result until no empty corner is visible.
    zoom_out : bool
        Whether to shrink the result until the whole image is visible.

    >>> x = mx.nd.array([[[1, 2], [3, 4]]])
    >>> mx.image.imrotate(x, 90).asnumpy().round(3)
    array([[[2., 4.],
            [1., 3.]]], dtype=float32)
    """
    if zoom_in and zoom_out:
        raise ValueError("`zoom_in` and `zoom_out` cannot be both True")
    if src.dtype is not np.float32:
        raise TypeError("Only `float32` images are supported by this function")
    if src.ndim not in (3, 4):
        raise ValueError("Only 3D and 4D are supported by this function")
    scalar = isinstance(rotation_degrees, int | float | np.number)
    if src.ndim == 3 and not scalar:
        raise TypeError(
            "When a single image is passed the rotation angle is required to be a scalar."
        )
    images = plain(src) if src.ndim == 4 else plain(src)[None]
    angles = [rotation_degrees] * len(images) if scalar else pixels_of(rotation_degrees).tolist()
    if len(angles) != len(images):
        raise ValueError("The number of images must be equal to the number of rotation angles")
    height, width = images.shape[2:]
    turns = [_rotation(a, height, width, zoom_in, zoom_out) for a in angles]
    matrices = torch.tensor(turns, dtype=torch.float32, device=images.device)
    grid = F.affine_grid(matrices, list(images.shape), align_corners=True)
    turned = F.grid_sample(images, grid, padding_mode="zeros", align_corners=True)
    return wrap_plain(type(src), turned if src.ndim == 4 else turned[0])


def _rotation(
    degrees: float, height: int, width: int, zoom_in: bool, zoom_out: bool
) -> list[list[float]]:
    """Return the matrix from result to image coordinates, both in [-1, 1]."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    across = abs(cosine) + abs(sine) * height / width
    down = abs(cosine) + abs(sine) * width / height
    largest = max(across, down)  # bounding box of the rotated image, in units of the image
    scale = 1 / largest if zoom_in else largest if zoom_out else 1.0
    form = (height - 1) / max(width - 1, 1)
    back = (width - 1) / max(height - 1, 1)
    return [
        [scale * cosine, -scale * sine * form, 0.0],
        [scale * sine * back, scale * cosine, 0.0],
    ]


def random_rotate(
    src: NDArray, angle_limits: tuple[float, float], zoom_in: bool = False, zoom_out: bool = False
) -> NDArray:
    """Rotate images by a random angle between two limits in degrees; see `imrotate`.

    Parameters
    ----------
    src
        Images of shape ``(channels, height, width)``, or a batch of them.
    angle_limits
        Smallest and largest angle.
    zoom_in
        Whether to enlarge the result until no empty corner is visible.
    zoom_out
        Whether to shrink the result until the whole image is visible.

    >>> mx.image.random_rotate(mx.nd.ones((3, 4, 4)), (-10, 10)).shape
    (3, 4, 4)
    """
    low, high = angle_limits
    if src.ndim == 3:
        angle: Any = chance.between(low, high)
    else:
        angle = chance.several(low, high, len(src))
    return imrotate(src, angle, zoom_in=zoom_in, zoom_out=zoom_out)


def color_normalize(src: NDArray, mean: Any, std: Any = None) -> NDArray:
    """Subtract the mean and divide by the standard deviation of each channel, in place.

    None skips a step.

    Parameters
    ----------
    src
        The image, of shape ``(height, width, channels)``.
    mean
        Mean of each channel, or None.
    std
        Standard deviation of each channel, or None.

    >>> mx.image.color_normalize(mx.nd.ones((1, 1, 3)) * 3, 1.0, 2.0).asnumpy().ravel()
    array([1., 1., 1.], dtype=float32)
    """
    if mean is not None:
        src -= _on_channels(mean)
    if std is not None:
        src /= _on_channels(std)
    return src


def _on_channels(value: Any) -> Any:
    return array_of(np.asarray(value, np.float32)) if isinstance(value, np.ndarray) else value


# MXNet's OpenCV operators, called by copies of `mx.image` in old programs.
for _function in (copyMakeBorder, imdecode, imread, imresize):
    setattr(_internal, f"_cv{_function.__name__}", _function)
