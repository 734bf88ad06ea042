"""RecordIO, the format of MXNet's data sets: consecutive records with magic numbers.

A record is u32 magic, u32 (flag << 29 | length), the payload, zeros up to the next multiple of 4.
If a payload contains the magic number at a multiple of 4, it is removed and the record continues as
a new part, with flags 1 (first), 2 (middle), 3 (last) instead of 0. So each magic number at a
multiple of 4 starts a part, which makes it possible to find the next record after damage.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ..error import FormatError, MXNetError
from .atomic import AtomicFile
from .files import FileBytes, existing_file, local_path

MAGIC = 0xCED7230A
MAGIC_BYTES = struct.pack("<I", MAGIC)
WHOLE, FIRST, MIDDLE, LAST = 0, 1, 2, 3
LENGTH_BITS = 29
MAX_RECORD_BYTES = (1 << LENGTH_BITS) - 1  # maximum bytes of a record
HEAD = struct.Struct("<II")
PADDING = b"\0\0\0"
WRITE_BUFFER = 1 << 20
MAX_READ_BYTES = 1 << 20  # bytes to read before the length of a record is known


class Damage(NamedTuple):
    """A damaged range of a file without whole records, and the `error`."""

    start: int
    end: int
    error: FormatError


def encode(payload: bytes | bytearray | memoryview) -> bytes:
    """Encode a payload as a record.

    >>> encode(b"abc").hex(" ", 4)
    '0a23d7ce 03000000 61626300'
    """
    payload = bytes(payload)
    if len(payload) > MAX_RECORD_BYTES:
        raise FormatError(
            f"A record takes up to {MAX_RECORD_BYTES} bytes, and this one has {len(payload)}: "
            "split it."
        )
    parts = _parts(payload)
    if len(parts) == 1:
        return _part(WHOLE, payload)
    flags = [FIRST, *[MIDDLE] * (len(parts) - 2), LAST]
    return b"".join(map(_part, flags, parts))


def _parts(payload: bytes) -> list[bytes]:
    """Split the payload at each magic number at a multiple of 4."""
    parts, start = [], 0
    result = payload.find(MAGIC_BYTES)
    while result >= 0:
        if result % 4 == 0:
            parts.append(payload[start:result])
            start = result + 4
            result = payload.find(MAGIC_BYTES, start)
        else:
            result = payload.find(MAGIC_BYTES, result + 1)
    return [*parts, payload[start:]]


def _part(flag: int, content: bytes) -> bytes:
    length = len(content)
    return HEAD.pack(MAGIC, flag << LENGTH_BITS | length) + content + PADDING[: -length % 4]


class RecordWriter:
    """Writes a new file record by record; `position` is the offset of the next one.

    The file is created or replaced at `close`. The buffer belongs to this process, so a forked
    child does not write it again.
    """

    def __init__(self, source: str | os.PathLike[str]) -> None:
        self.path = local_path(source)
        self.position = 0
        self._waiting = bytearray()
        self._process = os.getpid()
        self._file = AtomicFile(self.path)
        self._has_failed = False

    def write(self, payload: bytes | bytearray | memoryview) -> None:
        """Add one record."""
        if self._process != os.getpid():
            raise MXNetError(
                f"Forbidden operation in multiple processes: {str(self.path)!r} was opened for "
                "writing by another process, which must write it."
            )
        record = encode(payload)
        self._waiting += record
        self.position += len(record)
        if len(self._waiting) >= WRITE_BUFFER:
            self.flush()

    def flush(self) -> None:
        """Flush buffered data to the operating system."""
        try:
            self._file.stream.write(self._waiting)
            self._file.stream.flush()
        except BaseException:
            self._has_failed = True
            raise
        self._waiting = bytearray()

    def close(self) -> None:
        """Move the file to its target; after a failed write the older file is unchanged."""
        if self._process != os.getpid():
            self._file.abandon()
            return
        if self._has_failed:
            self.discard()
            return
        if not self._file.is_open:
            return
        try:
            self.flush()
        except BaseException:
            self.discard()
            raise
        self._file.commit()

    def discard(self) -> None:
        """Drop all written bytes; an older file is unchanged."""
        if self._process != os.getpid():
            self._file.abandon()
        else:
            self._file.discard()


class RecordReader:
    """Reads records of a file, or of bytes, at any offset.

    It has no position, so several threads and forked children may share it. If the file is
    truncated or rewritten meanwhile, the next read raises an error.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes, name: str = "<bytes>") -> None:
        self.path: Path | None = None
        self.name = name
        if isinstance(source, bytes | bytearray | memoryview):
            self.data: bytes | FileBytes = bytes(source)
        else:
            self.path = existing_file(source)
            self.name = str(self.path)
            self.data = FileBytes(self.path)
        self.size = len(self.data)
        self._expected = 4096  # guessed bytes of the next record
        # For each offset modulo 4: (from, to) without a magic number in between, and with one at
        # `to`.
        self._next_magic = [(0, -1)] * 4

    def read(self, at: int) -> tuple[bytes | None, int]:
        """Return the record at an offset and the next offset; None at the end of the file.

        >>> RecordReader(encode(b"abc")).read(0)
        (b'abc', 12)
        """
        if at >= self.size and not self._has_grown(at):
            return None, at
        if isinstance(self.data, FileBytes):
            result = self._read_whole(self.data, at)
            if result is not None:
                return result
        return self._record(at)

    def _read_whole(self, data: FileBytes, at: int) -> tuple[bytes, int] | None:
        """Return a record with a single read, if it is not longer than the last one.

        None: the general path handles it, including errors.
        """
        raw = data.peek(at, self._expected)
        if len(raw) < HEAD.size:
            return None
        magic, word = HEAD.unpack_from(raw)
        end = HEAD.size + (word & MAX_RECORD_BYTES)
        if magic != MAGIC or word >> LENGTH_BITS != WHOLE or at + end > self.size:
            return None
        if end > len(raw):
            raw += data.read(at + len(raw), end - len(raw))
        self._expected = min(end + end // 8, MAX_READ_BYTES)
        return raw[HEAD.size : end], at + end + -end % 4

    def whole_records(self, at: int = 0) -> Iterator[tuple[int, bytes | Damage]]:
        """Yield (offset, record) for all whole records, (offset, `Damage`) for damage between them.

        A record that is not followed by another one is dropped only if a whole record starts inside
        it: then its length is wrong.
        """
        damage: tuple[int, FormatError] | None = None  # offset and error
        while at < self.size:
            head = self.data.find(MAGIC_BYTES, at)
            if head != at:
                damage = damage or (at, self._no_magic(at))
            if head < 0:
                break
            try:
                contents, end = self._contents(head, strictly=True)
            except FormatError as error:
                damage = damage or (head, error)
                at = head + 4
                continue
            inner = self._inside(head, end)
            if inner is not None and self._is_whole(self._contents(inner)[1]):
                error = self._error(head, "one record", f"another inside it at {inner}")
                damage = damage or (head, error)
                at = inner
                continue
            if damage is not None:
                yield damage[0], Damage(damage[0], head, damage[1])
                damage = None
            yield head, self._join_parts(contents)
            at = end if inner is None else inner
        if damage is not None:
            yield damage[0], Damage(damage[0], self.size, damage[1])

    def heads(self, start: int = 0, stop: int | None = None) -> Iterator[int]:
        """Yield the offsets between ``start`` and ``stop`` at which records begin.

        >>> list(RecordReader(encode(b"abc") + encode(b"defgh")).heads())
        [0, 12]
        """
        at = 0 if start == 0 else self._next_head(start + -start % 4)
        stop = self.size if stop is None else min(stop, self.size)
        while at < stop:
            yield at
            _, at = self._contents(at)

    def _next_head(self, start: int) -> int:
        at = self._magic_after(start)
        while at < self.size and not self._is_whole(at):
            at = self._magic_after(at + 4)
        return at

    def close(self) -> None:
        """Close the file."""
        data, self.data, self.size = self.data, b"", 0
        if isinstance(data, FileBytes):
            data.close()

    # One record. Every length is checked against the remaining bytes first.

    def _record(self, at: int) -> tuple[bytes, int]:
        contents, end = self._contents(at)
        return self._join_parts(contents), end

    def _join_parts(self, contents: list[slice]) -> bytes:
        if len(contents) == 1:
            return self.data[contents[0]]
        return MAGIC_BYTES.join([self.data[c] for c in contents])

    def _contents(self, at: int, strictly: bool = False) -> tuple[list[slice], int]:
        """Return the ranges of a record's parts, and the offset after the record."""
        flag, content, end = self._part(at, strictly)
        if flag == WHOLE:
            return [content], end
        if flag != FIRST:
            self._fail(at, "the beginning of a record", f"a later part of one (flag {flag})")
        contents = [content]
        while flag != LAST:
            at = end
            flag, content, end = self._part(at, strictly)
            if flag not in (MIDDLE, LAST):
                self._fail(at, "the next part of the record (flag 2 or 3)", f"flag {flag}")
            contents.append(content)
        return contents, end

    def _part(self, at: int, strictly: bool) -> tuple[int, slice, int]:
        """Return (flag, range of the content, offset after the padding) of a part."""
        if not 0 <= at <= self.size - HEAD.size:
            self._fail(at, "the 8 bytes of a record's head", f"{max(0, self.size - at)} bytes")
        magic, word = HEAD.unpack(self.data[at : at + HEAD.size])
        if magic != MAGIC:
            raise self._no_magic(at)
        flag, length = word >> LENGTH_BITS, word & MAX_RECORD_BYTES
        if flag > LAST:
            self._fail(at + 4, "flag 0, 1, 2 or 3", f"flag {flag}")
        start = at + HEAD.size
        end = start + length + -length % 4
        if length > self.size - start:
            self._fail(at + 4, f"{length} bytes of content", f"{self.size - start} bytes")
        if strictly and self._magic_after(start) < end:
            self._fail(at + 4, f"{length} bytes of content", "another part inside them")
        return flag, slice(start, start + length), end

    # Search for records after damage.

    def _is_whole(self, at: int) -> bool:
        try:
            return at >= self.size or bool(self._contents(at, strictly=True))
        except FormatError:
            return False

    def _inside(self, head: int, end: int) -> int | None:
        """Return the offset of a record inside the last one, or None."""
        if self._is_whole(end):
            return None
        at = self.data.find(MAGIC_BYTES, head + 4, end + 3)
        while at >= 0 and not self._is_whole(at):
            at = self.data.find(MAGIC_BYTES, at + 1, end + 3)
        return None if at < 0 else at

    def _magic_after(self, start: int) -> int:
        """Return the first magic number from ``start`` at the same offset modulo 4, or the size."""
        phase = start % 4
        begin, result = self._next_magic[phase]
        if begin <= start <= result:
            return result
        result = self.data.find(MAGIC_BYTES, start)
        while result >= 0 and result % 4 != phase:
            result = self.data.find(MAGIC_BYTES, result + 1)
        result = self.size if result < 0 else result
        self._next_magic[phase] = (start, result)
        return result

    def _has_grown(self, at: int) -> bool:
        """Return whether the file now extends beyond an offset, and update its size."""
        if not isinstance(self.data, FileBytes):
            return False
        self.size = self.data.grow()
        return at < self.size

    def _no_magic(self, at: int) -> FormatError:
        result = self.data[at : at + 4].hex(" ")
        return self._error(at, f"the magic {MAGIC_BYTES.hex(' ')} of a record", result)

    def _error(self, at: int, expected: str, found: str) -> FormatError:
        return FormatError(f"{self.name}: at byte {at} expected {expected}, found {found}.")

    def _fail(self, at: int, expected: str, found: str) -> NoReturn:
        raise self._error(at, expected, found)


MAX_LINE_CHARACTERS = 1 << 20  # maximum characters of a line


class ListedImage(NamedTuple):
    """A line of a `.lst` file."""

    index: int  # pyright: ignore[reportIncompatibleMethodOverride]  # tuple's method is not needed
    labels: tuple[float, ...]
    path: str


class Parsed(list):
    """The parsed lines, and the number of invalid lines."""

    skipped = 0


def read_index(
    source: str | os.PathLike[str],
    key_type: Callable[[str], Any] = int,
    on_error: str = "raise",
) -> Parsed:
    """Return the (key, offset) of each line of a `.idx` file."""

    def parse(fields: list[str]) -> tuple[Any, int]:
        if len(fields) < 2:
            raise ValueError("a key, a tab and a byte offset")
        key, offset = key_type(fields[0]), int(fields[1])
        if offset < 0:
            raise ValueError("a byte offset from 0")
        return key, offset

    return _parse_line(
        source, parse, f"a key ({_name(key_type)}), a tab and a byte offset", on_error
    )


def read_list(source: str | os.PathLike[str], on_error: str = "raise") -> Parsed:
    """Return each line of a `.lst` file as a `ListedImage`."""

    def parse(fields: list[str]) -> ListedImage:
        if len(fields) < 3 or not fields[-1]:
            raise ValueError("an index, labels and a path")
        # Lists of MXNet may have a float as index.
        return ListedImage(int(float(fields[0])), tuple(map(float, fields[1:-1])), fields[-1])

    return _parse_line(source, parse, "index, labels and path with tabs between them", on_error)


def _parse_line(
    source: str | os.PathLike[str], parse: Callable, expected: str, on_error: str
) -> Parsed:
    result = Parsed()
    path = existing_file(source)
    for number, line in enumerate(_lines(path), 1):
        text = line.decode("utf-8", "surrogateescape").strip()
        if not text:
            continue
        try:
            result.append(parse(text.split("\t")))
        except (ValueError, TypeError, OverflowError):
            if on_error == "skip":
                result.skipped += 1
                continue
            shown = text if len(text) <= 80 else text[:80] + "..."
            raise FormatError(
                f"{path}: in line {number} expected {expected}, found {shown!r}."
            ) from None
    return result


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE_CHARACTERS):
            yield line


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))
