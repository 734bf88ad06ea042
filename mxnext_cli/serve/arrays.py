"""Arrays from the bytes of `.npy`, `.npz`, safetensors and JSON, none of which is trusted.

Sizes that a file claims are compared with its bytes before memory is allocated. JSON is
read in pieces of bounded size, without Python objects for each list and number: a tree of objects
takes up to a hundred times the bytes of its text, and making it stops every other thread.

A nested list is regular if what remains of it without its numbers is what its shape writes:
``[[1,2],[3,4]]`` is ``[[,],[,]]``, as every (2, 2) array is. Errors are ValueError.
"""

from __future__ import annotations

import functools
import io
import math
import struct
import zipfile
from collections.abc import Iterator
from typing import TypeVar

import msgspec
import numpy as np

Content = bytes | bytearray | memoryview
NPY_START, ZIP_START = b"\x93NUMPY", b"PK\x03\x04"
MAX_NPY_HEADER = 4096
MAX_AXES = 32
MAX_SIZE = 1 << 40  # of an axis, also if another one is empty
MAX_DIRECTORY = 64 << 10  # bytes of the list of an archive's members
MAX_SAFETENSORS_HEADER = 64 << 10
ZIP_END = struct.Struct("<4s4H2LH")
ZIP64_LOCATOR = b"PK\x06\x07"
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
PIECE = 64 << 10  # bytes of JSON that are read at once, between which other threads run
MAX_NUMBER_LENGTH = 1024  # characters, with the brackets and spaces between two numbers
MAX_NAMES = 64 << 10  # quotes of names and texts, and objects, of a JSON text
SPACE = b" \t\r\n"
NUMBER = b"0123456789+-.eE"
NOT_STRUCTURE = bytes(set(range(256)) - set(b"[],"))
T = TypeVar("T")

_decode_numbers = msgspec.json.Decoder(list[int | float]).decode


def read_npy(content: Content) -> np.ndarray:
    """Return the array of an `.npy` file; it shares the memory of its bytes."""
    view = memoryview(content)
    start = bytes(view[:12])
    if not start.startswith(NPY_START) or len(start) < 12:
        raise ValueError("it does not begin as an .npy file")
    wide = start[6] > 1
    length = int.from_bytes(start[8:12] if wide else start[8:10], "little")
    data = (12 if wide else 10) + length
    if length > MAX_NPY_HEADER or data > len(view):
        raise ValueError("its header is damaged")
    shape, is_fortran, dtype = _read_npy_header(bytes(view[:data]))
    size = dtype.itemsize * math.prod(shape)
    if size != len(view) - data:
        raise ValueError(
            f"shape {shape} of {dtype} takes {size} bytes; there are {len(view) - data}"
        )
    return np.frombuffer(view[data:], dtype).reshape(shape, order="F" if is_fortran else "C")


@functools.lru_cache(maxsize=128)
def _read_npy_header(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return shape, order and type; cached, as clients repeat the same few headers."""
    file = io.BytesIO(header)
    try:
        version = np.lib.format.read_magic(file)
        v1, v2 = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        read = v1 if version == (1, 0) else v2
        shape, is_fortran, dtype = read(file, max_header_size=MAX_NPY_HEADER)
    except Exception as error:  # of many kinds: it is parsed as Python
        raise ValueError(f"its header is damaged: {type(error).__name__}") from None
    check_shape(shape)
    check_type(dtype)
    return shape, is_fortran, dtype


def check_shape(shape: tuple[int, ...] | list[int]) -> None:
    """Raise for invalid shapes."""
    if len(shape) > MAX_AXES:
        raise ValueError(f"its shape has {len(shape)} axes; {MAX_AXES} are taken")
    if any(type(n) is not int or not 0 <= n <= MAX_SIZE for n in shape):
        raise ValueError(f"its shape is {shape}")


def check_type(dtype: np.dtype) -> None:
    """Raise for types that are not numeric."""
    if dtype.kind not in "fiub" or dtype.hasobject:
        raise ValueError(f"it holds {dtype}, not numbers")


def read_npz(content: bytes | bytearray, max_bytes: int) -> dict[str, np.ndarray]:
    """Return the arrays of an `.npz` archive that unpacks to at most so many bytes."""
    _check_directory(content)
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = sum(member.file_size for member in archive.infolist())
        if size > max_bytes:
            raise ValueError(f"it unpacks to {size} bytes; {max_bytes} is the limit")
        for member in archive.infolist():
            if member.compress_type not in COMPRESSIONS:
                raise ValueError(f"{member.filename!r} is compressed in an unusual way")
            with archive.open(member) as file:
                unpacked = file.read(member.file_size + 1)
            try:
                arrays[member.filename.removesuffix(".npy")] = read_npy(unpacked)
            except ValueError as error:
                raise ValueError(f"{member.filename!r}: {error}") from None
    return arrays


def _check_directory(content: bytes | bytearray) -> None:
    """Raise for archives with too many members, before their list is parsed."""
    end = content.rfind(b"PK\x05\x06", max(0, len(content) - ZIP_END.size - (1 << 16)))
    if end < 0 or end + ZIP_END.size > len(content):
        raise ValueError("it is not an .npz archive")
    directory = ZIP_END.unpack_from(content, end)[5]
    if directory > MAX_DIRECTORY or content[max(0, end - 20) : end].startswith(ZIP64_LOCATOR):
        raise ValueError("it has too many members")


def read_safetensors(content: bytes | bytearray) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file."""
    try:
        from safetensors.numpy import load
    except ImportError:
        raise ValueError("safetensors is not installed on the server") from None
    if int.from_bytes(content[:8], "little") > MAX_SAFETENSORS_HEADER or len(content) < 8:
        raise ValueError("its header is too long")
    arrays = load(bytes(content))
    for array in arrays.values():
        check_type(array.dtype)
    return arrays


# -- JSON ------------------------------------------------------------------------------------------


def parse_json(text: bytes | bytearray, kind: type[T]) -> T:
    """Return a JSON text as a `msgspec` type, in which arrays are `msgspec.Raw`."""
    if text.count(b'"') + text.count(b"{") > MAX_NAMES:
        raise ValueError("it has too many names")
    try:
        return msgspec.json.decode(text, type=kind)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json_array(text: msgspec.Raw | bytes, dtype: np.dtype, max_numbers: int) -> np.ndarray:
    """Return a nested list of numbers, whose JSON was checked, as an array.

    >>> read_json_array(b"[[1, 2], [3, 4.5]]", np.dtype("float32"), 4)
    array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    """
    text = bytes(text).translate(None, SPACE)
    if b"t" in text or b"f" in text:
        text = text.replace(b"true", b"1").replace(b"false", b"0")
    if text.translate(None, NUMBER + b"[],"):
        raise ValueError("it holds something that is not a number")
    if b"[]" in text:
        raise ValueError("it has an empty list")
    shape = _read_shape(text.translate(None, NOT_STRUCTURE))
    count = math.prod(shape)
    if count > max_numbers:
        raise ValueError(f"it holds {count} numbers; {max_numbers} are taken")
    values = np.empty(count, dtype)
    position = 0
    for piece in _pieces(text.translate(None, b"[]")):
        numbers = _as_type(_decode_numbers(b"[" + piece + b"]"), dtype)
        values[position : position + len(numbers)] = numbers
        position += len(numbers)
    return values.reshape(shape)


def _as_type(numbers: list[int | float], dtype: np.dtype) -> np.ndarray:
    """Return numbers that convert to the type without a warning."""
    try:
        if dtype.kind in "fb":
            with np.errstate(over="ignore"):
                return np.array(numbers, np.float64).astype(dtype)
        values, bounds = np.array(numbers), np.iinfo(dtype)
        values = np.trunc(values) if values.dtype.kind == "f" else values
        if values.dtype.kind not in "iuf" or values.min() < bounds.min or values.max() > bounds.max:
            raise OverflowError
        return values.astype(dtype)
    except OverflowError:
        raise ValueError(f"it holds a number that is not within {dtype}") from None


def _pieces(text: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(text):
        last = start + PIECE + MAX_NUMBER_LENGTH
        end = text.find(b",", start + PIECE, last)
        if end < 0:
            if last < len(text):
                raise ValueError(f"a number has more than {MAX_NUMBER_LENGTH} characters")
            end = len(text)
        yield text[start:end]
        start = end + 1


def _read_shape(structure: bytes) -> tuple[int, ...]:
    """Return the shape of a regular nested list from its brackets and commas."""
    depth = len(structure) - len(structure.lstrip(b"["))
    if depth > MAX_AXES:
        raise ValueError(f"it is nested {depth} deep; arrays have at most {MAX_AXES} axes")
    if depth == 0:
        return ()
    ragged = ValueError("its rows are of different lengths")
    size = structure.index(b"]") - depth + 1
    shape, block = [size], b"[" + b"," * (size - 1) + b"]"
    for level in range(1, depth):
        end = structure.find(b"]" * (level + 1))
        length = end + level + 1 - (depth - level - 1)
        size, rest = divmod(length - 1, len(block) + 1)
        if end < 0 or rest or size < 1:
            raise ragged
        shape.append(size)
        block = b"[" + b",".join([block] * size) + b"]"
    if block != structure:
        raise ragged
    return tuple(reversed(shape))
