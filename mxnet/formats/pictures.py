"""Compressed pictures to pixels and back. OpenCV does the work, simplejpeg decodes JPEG if there.

Pixels are uint8 NumPy arrays (height, width, channels). OpenCV is an optional dependency: the extra
`image` brings it.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType

import numpy as np

from ..error import FormatError, MXNetError

GRAY, COLOR = 0, 1
JPEG_START = b"\xff\xd8\xff"
LARGEST = 1 << 30  # pixels: OpenCV's own limit


class MissingLibrary(MXNetError, ImportError):
    """An optional library is needed and not installed."""


class BadPicture(FormatError):
    """Bytes that no decoder takes for a picture."""


@functools.cache
def opencv() -> ModuleType:
    """Return OpenCV, or say how to install it."""
    try:
        return importlib.import_module("cv2")
    except ImportError as error:
        raise MissingLibrary(
            "Pictures are decoded and changed by OpenCV, which is not installed: "
            "pip install 'mxnext[image]' (or opencv-python-headless)."
        ) from error


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
    """Return the pixels of a JPEG, PNG or other picture.

    ``flag`` is OpenCV's: 1 three channels, 0 one, -1 as stored (with transparency). ``source``
    names the picture in errors. With ``rgb`` the first channel is red, else blue.
    """
    if not len(content):
        raise BadPicture(f"Decoding failed: {source or 'the picture'} is empty.")
    if flag in (GRAY, COLOR) and bytes(content[:3]) == JPEG_START:
        pixels = _decode_jpeg(content, flag, rgb)
        if pixels is not None:
            return pixels
    return _decode_any(content, flag, rgb, source)


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
        return None  # damaged: OpenCV saves what can be saved


def _turned(content: bytes) -> bool:
    """Whether there is EXIF data, which may say that the picture is to be turned."""
    return bytes(content[:4096]).find(b"Exif\0\0") >= 0


def _decode_any(content: bytes, flag: int, rgb: bool, source: str) -> np.ndarray:
    cv2 = opencv()
    red_first = rgb and flag == COLOR and hasattr(cv2, "IMREAD_COLOR_RGB")  # OpenCV 4.11
    asked = cv2.IMREAD_COLOR_RGB if red_first else flag
    try:
        pixels = cv2.imdecode(np.frombuffer(content, np.uint8), asked)
    except cv2.error as error:
        raise BadPicture(f"Decoding failed: {_named(source)}: {error.err or error}.") from None
    if pixels is None:
        start = bytes(content[:8]).hex(" ")
        raise BadPicture(
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
    return source or "the picture"


def encode(pixels: np.ndarray, quality: int = 95, extension: str = ".jpg") -> bytes:
    """Return pixels (blue first) as the bytes of a picture of the extension's kind.

    ``quality`` is that of JPEG, 0 to 100, or the compression of PNG, 0 to 9. What lies beyond
    counts as the nearest end, so that the default of 95 also serves PNG; OpenCV would do the
    same, but with a warning for each picture.
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
