"""Decode and encode images, by OpenCV or, for JPEG, by simplejpeg if it is installed.

Pixels are uint8 NumPy arrays (height, width, channels). OpenCV is an optional dependency: the extra
`image` brings it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np

from .. import env
from ..error import FormatError, MXNetError
from .image_size import MOST_SCANS, find_damage, read_size

GRAY, COLOR = 0, 1
JPEG_START = b"\xff\xd8\xff"
OPENCV_LIMIT = "OPENCV_IO_MAX_IMAGE_PIXELS"  # OpenCV reads it when it is imported


class MissingLibrary(MXNetError, ImportError):
    """An optional library is needed and not installed."""


class BadImage(FormatError):
    """Bytes that cannot be decoded as an image."""


class ImageTooLarge(BadImage):
    """An image that claims more pixels than are allowed."""


@functools.cache
def opencv() -> ModuleType:
    """Return OpenCV, or say how to install it."""
    limit = env.get("MXNET_IMAGE_MAX_PIXELS")
    if limit:  # the last resort for formats whose headers are not read here
        os.environ.setdefault(OPENCV_LIMIT, str(limit))
    try:
        return importlib.import_module("cv2")
    except ImportError as error:
        raise MissingLibrary(
            "Images are decoded and changed by OpenCV, which is not installed: "
            "pip install 'mxnext[image]' (or opencv-python-headless)."
        ) from error


def limit_threads(count: int) -> None:
    """Let OpenCV use at most so many threads in this process, whether it is loaded or not yet."""
    os.environ["OPENCV_FOR_THREADS_NUM"] = str(count)
    if "cv2" in sys.modules:
        opencv().setNumThreads(count)


@contextlib.contextmanager
def resting_threads() -> Iterator[None]:
    """End OpenCV's threads while processes are forked: a child would wait for them forever."""
    if "cv2" not in sys.modules:
        yield
        return
    count = opencv().getNumThreads()
    opencv().setNumThreads(1)
    try:
        yield
    finally:
        opencv().setNumThreads(count)


@functools.cache
def jpeg_decoder() -> ModuleType | None:
    """Return simplejpeg if it is installed: it decodes half as fast again as OpenCV."""
    try:
        return importlib.import_module("simplejpeg")
    except ImportError:
        return None


def decode(
    content: bytes | bytearray | memoryview,
    flag: int = COLOR,
    *,
    rgb: bool = True,
    source: str = "",
) -> np.ndarray:
    """Return the pixels of a JPEG, PNG or other image.

    ``flag`` is OpenCV's: 1 three channels, 0 one, -1 as stored (with transparency). ``source``
    names the image in errors. With ``rgb`` the first channel is red, else blue.
    """
    if not len(content):
        raise BadImage(f"Decoding failed: {source or 'the image'} is empty.")
    check_size(content, source)
    if damage := find_damage(content):
        raise BadImage(f"Decoding failed: {_named(source)} is a damaged PNG: {damage}.")
    if flag in (GRAY, COLOR) and bytes(content[:3]) == JPEG_START:
        pixels = _decode_jpeg(content, flag, rgb)
        if pixels is not None:
            return pixels
    return _decode_any(content, flag, rgb, source)


def check_size(content: bytes | bytearray | memoryview, source: str = "") -> None:
    """Raise if the header of an image claims more pixels than `MXNET_IMAGE_MAX_PIXELS`."""
    limit = env.get("MXNET_IMAGE_MAX_PIXELS")
    size = read_size(content) if limit else None
    if size is None:
        return
    if size.width * size.height > limit:
        raise ImageTooLarge(
            f"Decoding refused: {_named(source)} of {len(content)} bytes claims {size.width} x "
            f"{size.height} pixels, and the limit is {limit}. If the image can be trusted, set "
            "the environment variable MXNET_IMAGE_MAX_PIXELS to a larger number."
        )
    if size.scans > MOST_SCANS:
        raise BadImage(
            f"Decoding refused: {_named(source)} is a JPEG of {size.scans} scans; at most "
            f"{MOST_SCANS} are decoded."
        )


def _decode_jpeg(content: bytes, flag: int, rgb: bool) -> np.ndarray | None:
    """Decode by simplejpeg what OpenCV would decode alike; None leaves it to OpenCV."""
    library = jpeg_decoder()
    if library is None or _turned(content):
        return None
    try:
        _height, _width, space, _ = library.decode_jpeg_header(content)
        if space not in ("YCbCr", "Gray"):
            return None  # four inks: OpenCV has its own rule
        return library.decode_jpeg(content, "GRAY" if flag == GRAY else "RGB" if rgb else "BGR")
    except ValueError:
        return None  # damaged: OpenCV decodes what is left of it


def _turned(content: bytes) -> bool:
    """Whether there is EXIF data, which may say that the image is to be turned."""
    return bytes(content[:4096]).find(b"Exif\0\0") >= 0


def _decode_any(content: bytes, flag: int, rgb: bool, source: str) -> np.ndarray:
    cv2 = opencv()
    red_first = rgb and flag == COLOR and hasattr(cv2, "IMREAD_COLOR_RGB")  # OpenCV 4.11
    asked = cv2.IMREAD_COLOR_RGB if red_first else flag
    try:
        pixels = cv2.imdecode(np.frombuffer(content, np.uint8), asked)
    except cv2.error as error:
        raise BadImage(f"Decoding failed: {_named(source)}: {error.err or error}.") from None
    if pixels is None:
        start = bytes(content[:8]).hex(" ")
        raise BadImage(
            f"Decoding failed. Invalid image file: {_named(source)} of {len(content)} bytes "
            f"(beginning {start}) is damaged or of an unknown format."
        )
    if pixels.dtype != np.uint8:
        pixels = cv2.convertScaleAbs(pixels, alpha=1 / 256) if pixels.dtype == np.uint16 else pixels
    if pixels.ndim == 2:
        return pixels[:, :, None]
    if rgb and not red_first:
        code = cv2.COLOR_BGR2RGB if pixels.shape[2] == 3 else cv2.COLOR_BGRA2RGBA
        pixels = cv2.cvtColor(pixels, code)
    return pixels


def _named(source: str) -> str:
    return source or "the image"


def encode(pixels: np.ndarray, quality: int = 95, extension: str = ".jpg") -> bytes:
    """Return pixels (blue first) as the bytes of an image of the extension's kind.

    ``quality`` is that of JPEG, 0 to 100, or the compression of PNG, 0 to 9. What lies beyond
    counts as the nearest end, so that the default of 95 also serves PNG; OpenCV would do the
    same, but with a warning for each image.
    """
    cv2 = opencv()
    kind = extension.lower()
    if kind in (".jpg", ".jpeg"):
        settings = [cv2.IMWRITE_JPEG_QUALITY, min(max(quality, 0), 100)]
    elif kind == ".png":
        settings = [cv2.IMWRITE_PNG_COMPRESSION, min(max(quality, 0), 9)]
    else:
        settings = []
    try:
        done, content = cv2.imencode(extension, pixels, settings)
    except (cv2.error, TypeError) as error:
        raise MXNetError(
            f"Cannot encode {type(pixels).__name__} {getattr(pixels, 'shape', '')} "
            f"as {extension!r}: {getattr(error, 'err', error)}."
        ) from None
    if not done:
        raise MXNetError(f"failed to encode image as {extension!r}")
    return content.tobytes()
