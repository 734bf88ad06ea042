"""Arrays from the bytes of `.npy`, `.npz` and safetensors files, none of which is trusted.

Sizes that a file claims are compared with the bytes that are there before memory is taken.
"""

from __future__ import annotations

import functools
import io
import struct
import zipfile

import numpy as np

NPY_START, ZIP_START = b"\x93NUMPY", b"PK\x03\x04"
MAX_NPY_HEADER = 4096
MAX_DIRECTORY = 64 << 10  # bytes of the list of an archive's members
MAX_SAFETENSORS_HEADER = 64 << 10
ZIP_END = struct.Struct("<4s4H2LH")
ZIP64_LOCATOR = b"PK\x06\x07"
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class BadFile(ValueError):
    """Bytes that are not the file they should be; the message says why."""


def read_npy(content: bytes | bytearray | memoryview) -> np.ndarray:
    """Return the array of an `.npy` file; it shares the memory of its bytes."""
    view = memoryview(content)
    start = bytes(view[:12])
    if not start.startswith(NPY_START) or len(start) < 12:
        raise BadFile("it does not begin as an .npy file")
    wide = start[6] > 1
    length = int.from_bytes(start[8:12] if wide else start[8:10], "little")
    data = (12 if wide else 10) + length
    if length > MAX_NPY_HEADER or data > len(view):
        raise BadFile("its header is damaged")
    shape, is_fortran, dtype = _read_npy_header(bytes(view[:data]))
    size = dtype.itemsize
    for n in shape:
        size *= n
    if size != len(view) - data:
        raise BadFile(f"shape {shape} of {dtype} takes {size} bytes; there are {len(view) - data}")
    return np.frombuffer(view[data:], dtype).reshape(shape, order="F" if is_fortran else "C")


@functools.lru_cache(maxsize=128)
def _read_npy_header(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return shape, order and type; clients send the same few headers again and again."""
    file = io.BytesIO(header)
    try:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, is_fortran, dtype = read(file, max_header_size=MAX_NPY_HEADER)
    except Exception as error:  # of many kinds: it is parsed as Python
        raise BadFile(f"its header is damaged: {type(error).__name__}") from None
    if any(n < 0 for n in shape):
        raise BadFile(f"its shape is {shape}")
    check_type(dtype)
    return shape, is_fortran, dtype


def check_type(dtype: np.dtype) -> None:
    """Refuse types that are not numbers."""
    if dtype.kind not in "fiub" or dtype.hasobject:
        raise BadFile(f"it holds {dtype}, not numbers")


def read_npz(content: bytes | bytearray, max_bytes: int) -> dict[str, np.ndarray]:
    """Return the arrays of an `.npz` archive that unpacks to at most so many bytes."""
    _check_directory(content)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            size = sum(member.file_size for member in members)
            if size > max_bytes:
                raise BadFile(f"it unpacks to {size} bytes; {max_bytes} is the limit")
            arrays = {}
            for member in members:
                if member.compress_type not in COMPRESSIONS:
                    raise BadFile(f"{member.filename!r} is compressed in an unusual way")
                with archive.open(member) as file:
                    packed = file.read(member.file_size + 1)
                arrays[member.filename.removesuffix(".npy")] = _read_member(member, packed)
            return arrays
    except BadFile:
        raise
    except Exception as error:  # of many kinds
        raise BadFile(f"it is damaged: {type(error).__name__}: {error}") from None


def _read_member(member: zipfile.ZipInfo, content: bytes | bytearray) -> np.ndarray:
    try:
        return read_npy(content)
    except BadFile as error:
        raise BadFile(f"{member.filename!r}: {error}") from None


def _check_directory(content: bytes | bytearray) -> None:
    """Refuse archives with a long list of members before objects are made of it."""
    size = ZIP_END.size
    if content[-size : -size + 4] == b"PK\x05\x06" and content[-2:] == b"\0\0":
        end = len(content) - size
    else:
        end = content.rfind(b"PK\x05\x06", max(0, len(content) - size - (1 << 16)))
    if end < 0 or end + size > len(content):
        raise BadFile("it is not an .npz archive")
    directory = ZIP_END.unpack_from(content, end)[5]
    if directory > MAX_DIRECTORY or content[max(0, end - 20) : end].startswith(ZIP64_LOCATOR):
        raise BadFile("it has too many members")


def read_safetensors(content: bytes | bytearray) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file."""
    try:
        from safetensors.numpy import load
    except ImportError:
        raise BadFile("safetensors is not installed on the server") from None
    if int.from_bytes(content[:8], "little") > MAX_SAFETENSORS_HEADER or len(content) < 8:
        raise BadFile("its header is too long")
    try:
        arrays = load(bytes(content))
    except Exception as error:  # of many kinds
        raise BadFile(f"it is damaged: {type(error).__name__}: {error}") from None
    for array in arrays.values():
        check_type(array.dtype)
    return arrays
