"""The size of an image, read from its header before anything is decoded.

A few hundred bytes can claim an image of billions of pixels, and a decoder believes them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["ImageSize", "find_damage", "read_size"]

MOST_SCANS = 500  # of a progressive JPEG; encoders write about ten
_JPEG_SIZES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # the markers that hold a size
_JPEG_PROGRESSIVE = (0xC2, 0xC6, 0xCA, 0xCE)
_JPEG_BARE = {0x01, *range(0xD0, 0xDA)}  # markers without a length


class ImageSize(NamedTuple):
    """Width and height, and how often the decoder goes over all pixels."""

    width: int
    height: int
    scans: int = 1


def read_size(content: bytes | bytearray | memoryview) -> ImageSize | None:
    """Return what the header of an image says, or None for unknown formats and damaged headers.

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


def find_damage(content: bytes | bytearray | memoryview) -> str:
    """Return what is wrong with a PNG that a decoder would reserve too much memory for, or ''.

    OpenCV takes the memory that a chunk claims before it looks whether the file has so much.
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
        at = raw.index(b"\xff", at)  # decoders step over what stands between segments
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
    found = head.find(b"ihdr")
    if found >= 0:
        height, width = struct.unpack_from(">II", head, found + 4)
        return ImageSize(width, height)
    found = head.find(b"\xff\x4f\xff\x51")
    if found < 0:
        return None
    right, bottom, left, top = struct.unpack_from(">IIII", head, found + 8)
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
