"""Image codecs: size in the header, decoding and encoding.

OpenCV decodes; JPEG is decoded by simplejpeg if installed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import struct
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import NamedTuple

import numpy as np

from .._process import env
from ..error import FormatError, MXNetError

MAX_SCANS = 500  # maximum scans of a progressive JPEG; encoders write about ten
_JPEG_SIZES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # markers with a size
_JPEG_PROGRESSIVE = (0xC2, 0xC6, 0xCA, 0xCE)
_JPEG_BARE = {0x01, *range(0xD0, 0xDA)}  # markers without a length


Buffer = bytes | bytearray | memoryview


class ImageSize(NamedTuple):
    """Width, height, and the number of decoding passes."""

    width: int
    height: int
    scans: int = 1


def read_size(content: Buffer) -> ImageSize | None:
    """Return the size in an image's header, or None for unknown formats and damaged headers.

    >>> read_size(b"GIF89a" + bytes([3, 0, 2, 0]))
    ImageSize(width=3, height=2, scans=1)
    """
    start = bytes(content[:32])
    for is_format, read in _FORMATS:
        if is_format(start):
            try:
                return read(memoryview(content).cast("B"), start)
            except (struct.error, IndexError, ValueError):
                return None
    return None


def find_damage(content: Buffer) -> str:
    """Return a description of damage to a PNG that would make a decoder allocate too much, or ''.

    OpenCV allocates the declared size of a chunk before comparing it with the file.
    """
    if bytes(content[:4]) != b"\x89PNG":
        return ""
    at = 8
    while at + 8 <= len(content):
        (length,) = struct.unpack_from(">I", content, at)
        left = len(content) - at - 8
        if length > left:
            return f"the chunk at byte {at} claims {length} bytes, and {left} are left"
        if bytes(content[at + 4 : at + 8]) == b"IEND":
            return ""
        at += 12 + length
    return ""


def _jpeg(content: memoryview, start: bytes) -> ImageSize | None:
    raw = bytes(content)
    at = 2
    while True:
        at = raw.index(b"\xff", at)  # decoders skip bytes between segments
        while raw[at] == 0xFF:
            at += 1
        marker = raw[at]
        at += 1
        if marker in _JPEG_BARE:
            continue
        if marker in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", raw, at + 3)
            scans = raw.count(b"\xff\xda") if marker in _JPEG_PROGRESSIVE else 1
            return ImageSize(width, height, scans)
        (length,) = struct.unpack_from(">H", raw, at)
        at += max(2, length)


def _png(content: memoryview, start: bytes) -> ImageSize:
    return ImageSize(*struct.unpack_from(">II", start, 16))


def _gif(content: memoryview, start: bytes) -> ImageSize:
    return ImageSize(*struct.unpack_from("<HH", start, 6))


def _bmp(content: memoryview, start: bytes) -> ImageSize:
    (header,) = struct.unpack_from("<I", start, 14)
    width, height = struct.unpack_from("<HH" if header == 12 else "<ii", start, 18)
    return ImageSize(abs(width), abs(height))


def _webp(content: memoryview, start: bytes) -> ImageSize | None:
    kind = start[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", start, 26)
        return ImageSize(width & 0x3FFF, height & 0x3FFF)
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", start, 21)
        return ImageSize((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8X":
        width = int.from_bytes(start[24:27], "little") + 1
        return ImageSize(width, int.from_bytes(start[27:30], "little") + 1)
    return None


def _tiff(content: memoryview, start: bytes) -> ImageSize | None:
    order = "<" if start[:2] == b"II" else ">"
    (at,) = struct.unpack_from(order + "I", start, 4)
    (count,) = struct.unpack_from(order + "H", content, at)
    sizes = {}
    for entry in range(at + 2, at + 2 + 12 * min(count, 1000), 12):
        tag, kind, _ = struct.unpack_from(order + "HHI", content, entry)
        if tag in (256, 257):  # width and height
            sizes[tag] = struct.unpack_from(order + ("H" if kind == 3 else "I"), content, entry + 8)
    return ImageSize(sizes[256][0], sizes[257][0]) if len(sizes) == 2 else None


def _netpbm(content: memoryview, start: bytes) -> ImageSize | None:
    head = bytes(content[:4096])
    lines = [line.split(b"#")[0] for line in head.split(b"\n")]
    words = b" ".join(lines).split()
    return ImageSize(int(words[1]), int(words[2]))


def _jpeg_2000(content: memoryview, start: bytes) -> ImageSize | None:
    head = bytes(content[:4096])
    result = head.find(b"ihdr")
    if result >= 0:
        height, width = struct.unpack_from(">II", head, result + 4)
        return ImageSize(width, height)
    result = head.find(b"\xff\x4f\xff\x51")
    if result < 0:
        return None
    right, bottom, left, top = struct.unpack_from(">IIII", head, result + 8)
    return ImageSize(max(0, right - left), max(0, bottom - top))


def _sun(content: memoryview, start: bytes) -> ImageSize:
    return ImageSize(*struct.unpack_from(">II", start, 4))


_FORMATS: list[tuple[Callable, Callable]] = [
    (lambda s: s[:2] == b"\xff\xd8", _jpeg),
    (lambda s: s[:4] == b"\x89PNG", _png),
    (lambda s: s[:4] == b"GIF8", _gif),
    (lambda s: s[:2] == b"BM", _bmp),
    (lambda s: s[:4] == b"RIFF" and s[8:12] == b"WEBP", _webp),
    (lambda s: s[:4] in (b"II*\0", b"MM\0*"), _tiff),
    (lambda s: s[:1] == b"P" and s[1:2] in b"123456" and s[2:3].isspace(), _netpbm),
    (lambda s: s[4:8] == b"jP  " or s[:4] == b"\xff\x4f\xff\x51", _jpeg_2000),
    (lambda s: s[:4] == b"\x59\xa6\x6a\x95", _sun),
]


GRAY, COLOR = 0, 1
JPEG_START = b"\xff\xd8\xff"
OPENCV_LIMIT = "OPENCV_IO_MAX_IMAGE_PIXELS"  # OpenCV reads it at import


class MissingLibrary(MXNetError, ImportError):
    """Raised if an optional library is not installed."""


class BadImage(FormatError):
    """Raised for bytes that cannot be decoded as an image."""


class ImageTooLarge(BadImage):
    """Raised for an image with more pixels than allowed."""


@functools.cache
def opencv() -> ModuleType:
    """Return OpenCV, or raise an error with install instructions."""
    limit = env.get("MXNET_IMAGE_MAX_PIXELS")
    if limit:  # the limit for formats whose headers are not parsed here
        os.environ.setdefault(OPENCV_LIMIT, str(limit))
    try:
        return importlib.import_module("cv2")
    except ImportError as error:
        raise MissingLibrary(
            "Images are decoded and changed by OpenCV, which is not installed: "
            "pip install opencv-python-headless"
        ) from error


def limit_threads(count: int) -> None:
    """Limit OpenCV's threads in this process, even before it is loaded."""
    os.environ["OPENCV_FOR_THREADS_NUM"] = str(count)
    if "cv2" in sys.modules:
        opencv().setNumThreads(count)


@contextlib.contextmanager
def resting_threads() -> Iterator[None]:
    """Stop OpenCV's threads during a fork; a child would wait for them forever."""
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
    """Return simplejpeg if it is installed: it is 1.5 times as fast as OpenCV."""
    try:
        return importlib.import_module("simplejpeg")
    except ImportError:
        return None


def decode(
    content: Buffer,
    flag: int = COLOR,
    *,
    rgb: bool = True,
    source: str = "",
) -> np.ndarray:
    """Return the pixels of a JPEG, PNG or other image.

    ``flag`` is OpenCV's: 1 color, 0 gray, -1 as stored (with transparency). ``source`` is the name
    in errors. With ``rgb`` the result is RGB, else BGR.
    """
    if not len(content):
        raise BadImage(f"Decoding failed: {source or 'the image'} is empty.")
    check_size(content, source)
    if damage := find_damage(content):
        raise BadImage(f"Decoding failed: {_name_of(source)} is a damaged PNG: {damage}.")
    if flag in (GRAY, COLOR) and bytes(content[:3]) == JPEG_START:
        pixels = _decode_jpeg(content, flag, rgb)
        if pixels is not None:
            return pixels
    return _decode_any(content, flag, rgb, source)


def check_size(content: Buffer, source: str = "") -> None:
    """Raise if an image has more pixels than `MXNET_IMAGE_MAX_PIXELS`, by its header."""
    limit = env.get("MXNET_IMAGE_MAX_PIXELS")
    size = read_size(content) if limit else None
    if size is None:
        return
    if size.width * size.height > limit:
        raise ImageTooLarge(
            f"Decoding refused: {_name_of(source)} of {len(content)} bytes claims {size.width} x "
            f"{size.height} pixels, and the limit is {limit}. If the image can be trusted, set "
            "the environment variable MXNET_IMAGE_MAX_PIXELS to a larger number."
        )
    if size.scans > MAX_SCANS:
        raise BadImage(
            f"Decoding refused: {_name_of(source)} is a JPEG of {size.scans} scans; at most "
            f"{MAX_SCANS} are decoded."
        )


def _decode_jpeg(content: Buffer, flag: int, rgb: bool) -> np.ndarray | None:
    """Decode by simplejpeg; return None if OpenCV's result may differ."""
    library = jpeg_decoder()
    if library is None or _may_be_turned(content):
        return None
    try:
        _height, _width, space, _ = library.decode_jpeg_header(content)
        if space not in ("YCbCr", "Gray"):
            return None  # CMYK: OpenCV's conversion differs
        return library.decode_jpeg(content, "GRAY" if flag == GRAY else "RGB" if rgb else "BGR")
    except ValueError:
        return None  # damaged: OpenCV decodes the remaining part


def _may_be_turned(content: Buffer) -> bool:
    """Return whether there is EXIF data, which may contain a rotation."""
    return bytes(content[:4096]).find(b"Exif\0\0") >= 0


def _decode_any(content: Buffer, flag: int, rgb: bool, source: str) -> np.ndarray:
    cv2 = opencv()
    red_first = rgb and flag == COLOR and hasattr(cv2, "IMREAD_COLOR_RGB")  # OpenCV 4.11
    asked = cv2.IMREAD_COLOR_RGB if red_first else flag
    try:
        pixels = cv2.imdecode(np.frombuffer(content, np.uint8), asked)
    except cv2.error as error:
        raise BadImage(f"Decoding failed: {_name_of(source)}: {error.err or error}.") from None
    if pixels is None:
        start = bytes(content[:8]).hex(" ")
        raise BadImage(
            f"Decoding failed. Invalid image file: {_name_of(source)} of {len(content)} bytes "
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


def _name_of(source: str) -> str:
    return source or "the image"


def encode(pixels: np.ndarray, quality: int = 95, extension: str = ".jpg") -> bytes:
    """Encode pixels (BGR) in the format of a file extension.

    ``quality`` is JPEG's quality, 0 to 100, or PNG's compression, 0 to 9; values outside are
    clamped. OpenCV would clamp too, but warn for each image.
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
