"""Arrays of numbers from JSON, without Python objects for each list and each number.

A tree of Python objects takes up to a hundred times the bytes of its text, and making it stops
every other thread. Here a text is cut into pieces of bounded size, and is refused before it is
parsed if it has more parts than the model has numbers.

A nested list is regular if what remains of it without its numbers is what its shape writes:
``[[1,2],[3,4]]`` is ``[[,],[,]]``, as every (2, 2) array is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import numpy as np

PIECE = 64 << 10  # bytes that are parsed at once
SLICE = 1 << 20  # bytes that one pass looks at, between which other threads run
MAX_NUMBER_LENGTH = 1024  # characters
MAX_DEPTH = 32  # of NumPy's arrays
MAX_FIELDS = 4096  # parts of a request beside its numbers
MAX_QUOTES = 64 << 10  # of names and texts
SPACE = b" \t\r\n"
NUMBER = b"0123456789+-.eE"
NOT_STRUCTURE = bytes(set(range(256)) - set(b"[],"))
T = TypeVar("T")

_decode_numbers = msgspec.json.Decoder(list[int | float]).decode


class BadJSON(ValueError):
    """A text that does not hold what it should; the message says why."""


def parse(
    text: bytes | bytearray, kind: type[T], max_numbers: int, lists_per_number: float = 1.0
) -> T:
    """Return a JSON text as a `msgspec` type, in which arrays are `msgspec.Raw`.

    Parameters
    ----------
    text
        The JSON text.
    kind
        The type; its parts of type `msgspec.Raw` are not parsed, only checked.
    max_numbers
        How many numbers the arrays may hold together.
    lists_per_number
        How many lists an array of the model's shapes has for each of its numbers.
    """
    numbers = lists = quotes = 0
    for piece in _slices(text):
        numbers += piece.count(b",")
        lists += piece.count(b"[") + piece.count(b"{")
        quotes += piece.count(b'"')
        if numbers > max_numbers + MAX_FIELDS or quotes > MAX_QUOTES:
            raise BadJSON(f"it has more parts than the {max_numbers} numbers that are taken")
        if lists > numbers * lists_per_number + MAX_FIELDS:
            raise BadJSON("it has more lists than arrays of the model's shapes")
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise BadJSON(str(error)) from None
    except RecursionError:
        raise BadJSON("it is nested too deeply") from None


def read_array(raw: msgspec.Raw | bytes, dtype: np.dtype, max_numbers: int) -> np.ndarray:
    """Return a nested list of numbers, whose JSON was checked, as an array.

    >>> read_array(b"[[1, 2], [3, 4.5]]", np.dtype("float32"), 4)
    array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    """
    text = _delete(bytes(raw), SPACE)
    if b"t" in text or b"f" in text:
        text = text.replace(b"true", b"1").replace(b"false", b"0")
    if any(piece.translate(None, NUMBER + b"[],") for piece in _slices(text)):
        raise BadJSON("it holds something that is not a number")
    if b"[]" in text:
        raise BadJSON("it has an empty list")
    structure = _delete(text, NOT_STRUCTURE)
    shape = _read_shape(structure)
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if count > max_numbers:
        raise BadJSON(f"it holds {count} numbers; {max_numbers} are taken")
    values = np.empty(count, dtype)
    position = 0
    for numbers in _read_numbers(_delete(text, b"[]")):
        values[position : position + len(numbers)] = _as_type(numbers, dtype)
        position += len(numbers)
    return values.reshape(shape)


def _as_type(numbers: list[Any], dtype: np.dtype) -> Any:
    """Return numbers that an array of the type takes without a warning."""
    try:
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                return np.array(numbers, np.float64).astype(dtype)
        if dtype.kind == "b":
            return np.array(numbers, np.float64) != 0
        values = np.array(numbers)
        if values.dtype.kind == "f":
            values = np.trunc(values)
        bounds = np.iinfo(dtype)
        if values.dtype.kind not in "iuf" or values.min() < bounds.min or values.max() > bounds.max:
            raise OverflowError
        return values.astype(dtype)
    except (OverflowError, ValueError, TypeError):
        raise BadJSON(f"it holds a number that is not within {dtype}") from None


def _read_numbers(text: bytes) -> Iterator[list[Any]]:
    """Yield the numbers of ``1,2,3`` in pieces."""
    start = 0
    while start < len(text):
        end = len(text)
        if end - start > PIECE:
            end = text.find(b",", start + PIECE, start + PIECE + MAX_NUMBER_LENGTH)
            if end < 0:
                raise BadJSON(f"a number has more than {MAX_NUMBER_LENGTH} characters")
        try:
            yield _decode_numbers(b"[" + text[start:end] + b"]")
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise BadJSON(str(error).partition(" - ")[0]) from None
        start = end + 1


def _read_shape(structure: bytes) -> tuple[int, ...]:
    """Return the shape of a regular nested list from its brackets and commas."""
    depth = len(structure) - len(structure.lstrip(b"["))
    if depth > MAX_DEPTH:
        raise BadJSON(f"it is nested {depth} deep; arrays have at most {MAX_DEPTH} axes")
    if depth == 0:
        return ()
    ragged = BadJSON("its rows are of different lengths")
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


def _slices(text: bytes | bytearray) -> Iterator[bytes | bytearray]:
    if len(text) <= SLICE:
        yield text
        return
    for start in range(0, len(text), SLICE):
        yield text[start : start + SLICE]


def _delete(text: bytes, characters: bytes) -> bytes:
    return b"".join(piece.translate(None, characters) for piece in _slices(text))
