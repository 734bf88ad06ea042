"""Arrays of numbers from JSON, without Python objects for each list and each number.

A tree of Python objects takes up to a hundred times the bytes of its text, and making it stops
every other thread. Here a text is cut into pieces of bounded size, and is refused before it is
parsed if it has more parts than the model has numbers. Long arrays are cut out first, so that the
parser, which cannot be interrupted, sees a short text with a mark for each of them.

A nested list is regular if what remains of it without its numbers is what its shape writes:
``[[1,2],[3,4]]`` is ``[[,],[,]]``, as every (2, 2) array is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

PIECE = 64 << 10  # bytes that are parsed at once
SLICE = 256 << 10  # bytes that one pass looks at, between which other threads run
LONG = 4 << 10  # bytes of an array that is cut out
MAX_NUMBER_LENGTH = 1024  # characters, with the brackets and spaces between two numbers
MAX_TEXT_LENGTH = 64 << 10  # characters of a name
MAX_DEPTH = 32  # of NumPy's arrays
MAX_FIELDS = 4096  # parts of a request beside its numbers
MAX_QUOTES = 64 << 10  # of names and texts
SPACE = b" \t\r\n"
NUMBER = b"0123456789+-.eE"
NOT_STRUCTURE = bytes(set(range(256)) - set(b"[],"))
IN_ARRAY = NUMBER + b"[],truefalsn" + SPACE  # numbers, true, false, null
TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
MARK_START = b'["cut '
MARK = MARK_START + b'%d"]'
MARKS = re.compile(rb'\["cut (\d+)"\]')
T = TypeVar("T")

_decode_numbers = msgspec.json.Decoder(list[int | float]).decode


class BadJSON(ValueError):
    """A text that does not hold what it should; the message says why."""


@dataclass(frozen=True)
class Parsed(Generic[T]):
    """The parts of a JSON text, and its long arrays, for which the parts have marks."""

    parts: T
    arrays: list[bytes]

    def array(self, raw: msgspec.Raw | bytes) -> bytes:
        """Return the text of an array of the parts."""
        mark = MARKS.fullmatch(bytes(raw).strip()) if self.arrays else None
        return self.arrays[int(mark[1])] if mark else bytes(raw)


def parse(
    text: bytes | bytearray, kind: type[T], max_numbers: int, lists_per_number: float = 1.0
) -> Parsed[T]:
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
        arrays: list[bytes] = []
        if len(text) > PIECE:
            text = _cut_arrays(text, arrays)
        return Parsed(msgspec.json.decode(text, type=kind), arrays)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise BadJSON(str(error)) from None
    except RecursionError:
        raise BadJSON("it is nested too deeply") from None


def _cut_arrays(text: bytes | bytearray, arrays: list[bytes]) -> bytes:
    """Return a text with marks in place of its long arrays, which are checked and appended."""
    if MARK_START in text:
        raise BadJSON(f"it holds {MARK_START.decode()}")
    rest: list[bytes | bytearray] = []
    done = 0
    for start, end in _find_long_arrays(text):
        array = bytes(text[start:end])
        _check_array(array)
        rest += [text[done:start], MARK % len(arrays)]
        arrays.append(array)
        done = end
    return b"".join([*rest, text[done:]])


def _find_long_arrays(text: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """Yield the starts and ends of long lists that are not in quotes."""
    position, opening = 0, -1
    while True:
        if opening < position:
            opening = text.find(b"[", position)
            opening = len(text) if opening < 0 else opening
        quote = text.find(b'"', position, opening)
        if quote >= 0:
            position = _find_end_of_text(text, quote)
        elif opening < len(text):
            position = _find_end_of_lists(text, opening)
            if position - opening > LONG:
                yield opening, text.rfind(b"]", opening, position) + 1
        else:
            return


def _find_end_of_text(text: bytes | bytearray, quote: int) -> int:
    match = TEXT.match(text, quote, quote + MAX_TEXT_LENGTH)
    if match is None:
        raise BadJSON(f"a text has no end within {MAX_TEXT_LENGTH} characters")
    return match.end()


def _find_end_of_lists(text: bytes | bytearray, opening: int) -> int:
    """Return where something follows that is not in a list of numbers."""
    for start in range(opening, len(text), SLICE):
        piece = text[start : start + SLICE]
        others = piece.translate(None, IN_ARRAY)
        if others:
            return start + piece.index(others[:1])
    return len(text)


def _check_array(array: bytes) -> None:
    """Refuse lists that are not JSON: each piece must be, within the lists that are open there."""
    mismatch = BadJSON("its brackets do not match")
    depth = 0
    for number, piece in enumerate(_pieces(array)):
        if number and not depth:
            raise mismatch
        before, depth = depth, depth + piece.count(b"[") - piece.count(b"]")
        if depth < 0:
            raise mismatch
        if depth > MAX_DEPTH:
            raise BadJSON(f"it is nested too deeply; arrays have at most {MAX_DEPTH} axes")
        msgspec.json.decode(b"[" * before + piece + b"]" * depth, type=msgspec.Raw)
    if depth or not array:
        raise mismatch


def read_array(text: bytes, dtype: np.dtype, max_numbers: int) -> np.ndarray:
    """Return a nested list of numbers, whose JSON was checked, as an array.

    >>> read_array(b"[[1, 2], [3, 4.5]]", np.dtype("float32"), 4)
    array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    """
    text = _delete(text, SPACE)
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
    for piece in _pieces(text):
        try:
            yield _decode_numbers(b"[" + piece + b"]")
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise BadJSON(str(error).partition(" - ")[0]) from None


def _pieces(text: bytes) -> Iterator[bytes]:
    """Yield what is between some of the commas of a text."""
    start = 0
    while start < len(text):
        last = start + PIECE + MAX_NUMBER_LENGTH
        end = text.find(b",", start + PIECE, last)
        if end < 0:
            if last < len(text):
                raise BadJSON(f"a number has more than {MAX_NUMBER_LENGTH} characters")
            end = len(text)
        yield text[start:end]
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
