"""Files of samples: CSV, LibSVM, and the IDX files of MNIST."""

from __future__ import annotations

import gzip
import math
import os
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, NoReturn

import numpy as np
import torch
from torch import Tensor

from ..error import FormatError
from .files import existing_file

BLOCK_BYTES = 4 << 20
MAX_LINE_BYTES = 256 << 20  # maximum length of a line; binary files may exceed it


def line_blocks(source: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the first line, lines) until the end of the file."""
    path, first = existing_file(source), 1
    with path.open("rb") as file:
        while block := file.readlines(BLOCK_BYTES):
            if len(block[-1]) > MAX_LINE_BYTES:
                fail(path, first + len(block) - 1, f"a line of at most {MAX_LINE_BYTES} bytes")
            try:
                text = b"".join(block).decode()
            except UnicodeDecodeError as error:
                line = first + b"".join(block)[: error.start].count(b"\n")
                fail(path, line, "text in UTF-8", "other bytes")
            yield first, text.split("\n")[: len(block)]
            first += len(block)


def fail(
    source: str | os.PathLike[str], line: int, expected: str, found: str | None = None
) -> NoReturn:
    """Raise an error with the line and the problem."""
    ending = "" if found is None else f"; found {found}"
    raise FormatError(f"{os.fspath(source)}, line {line}: expected {expected}{ending}.")


def read_csv(
    source: str | os.PathLike[str], width: int, dtype: type[np.generic]
) -> Iterator[np.ndarray]:
    """Yield blocks of rows with `width` numbers each; empty lines are skipped.

    A trailing comma is allowed.
    """
    for first, lines in line_blocks(source):
        filled = [line for line in lines if line and not line.isspace()]
        if not filled:
            continue
        if filled[0].count(",") == width:
            filled = [_without_last_comma(line) for line in filled]
        rows = _load(filled, dtype)
        if rows is None or rows.shape != (len(filled), width):
            _find_mistake(source, first, lines, width, dtype)
        yield rows


def _load(lines: list[str], dtype: type[np.generic]) -> np.ndarray | None:
    """Parse the numbers of lines; integers may be written as ``3.0``."""
    try:
        return np.loadtxt(lines, dtype, delimiter=",", comments=None, ndmin=2)
    except (ValueError, OverflowError):
        if not issubclass(dtype, np.integer):
            return None
    try:
        numbers = np.loadtxt(lines, np.float64, delimiter=",", comments=None, ndmin=2)
    except (ValueError, OverflowError):
        return None
    limits = np.iinfo(dtype)
    fit = (numbers == np.trunc(numbers)) & (numbers >= limits.min) & (numbers <= limits.max)
    return numbers.astype(dtype) if fit.all() else None


def _without_last_comma(line: str) -> str:
    stripped = line.rstrip()
    return stripped[:-1] if stripped.endswith(",") else line


def _find_mistake(
    source: str | os.PathLike[str], first: int, lines: list[str], width: int, dtype: type
) -> NoReturn:
    """Raise an error for the first wrong line of a block that could not be parsed."""
    kind = np.dtype(dtype).name
    for number, line in enumerate(lines, first):
        if not line or line.isspace():
            continue
        cells = line.split(",")
        if len(cells) == width + 1 and not cells[-1].strip():
            cells.pop()
        if len(cells) != width:
            fail(source, number, f"{width} numbers between commas", f"{len(cells)}: {line[:80]!r}")
        for cell in cells:
            if not _is_number(cell, dtype):
                fail(source, number, f"a number of type {kind}", repr(cell[:80]))
    fail(source, first, f"rows of {width} numbers of one kind", "rows that cannot be read together")


def _is_number(cell: str, dtype: type) -> bool:
    rows = _load([cell], dtype) if cell.strip() else None
    return rows is not None and rows.size == 1


_NUMBER = r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|nan|inf(?:inity)?)"
_ENTRY = rf"\d{{1,18}}:{_NUMBER}"
_LINE = re.compile(rf"\s*{_NUMBER}(?:\s+qid:\d+)?(?:\s+{_ENTRY})*\s*", re.IGNORECASE)
_ENTRY_ONLY = re.compile(_ENTRY, re.IGNORECASE)
_QUERY = re.compile(r"\sqid:\d+", re.IGNORECASE)


@dataclass(frozen=True)
class SparseRows:
    """Rows of a sparse matrix, with a label each; supports slicing and concatenation."""

    labels: np.ndarray
    counts: np.ndarray  # number of entries of each row
    indices: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def indptr(self) -> np.ndarray:
        """The offsets of the rows' entries, and the end of the last row."""
        return np.concatenate(([0], np.cumsum(self.counts)))

    def __getitem__(self, rows: slice) -> SparseRows:
        begin, end, _ = rows.indices(len(self))
        first, last = self.indptr[begin], self.indptr[end]
        return SparseRows(
            self.labels[rows], self.counts[rows], self.indices[first:last], self.values[first:last]
        )

    @staticmethod
    def join(parts: list[SparseRows]) -> SparseRows:
        """Concatenate the rows of all parts."""
        columns = ([getattr(p, f.name) for p in parts] for f in fields(SparseRows))
        return SparseRows(*(np.concatenate(column) for column in columns))


def read_libsvm(source: str | os.PathLike[str], width: int) -> Iterator[SparseRows]:
    """Yield blocks of rows with indices below `width`.

    What follows ``#`` is a comment; ``qid:n`` after the label is skipped.
    """
    for first, lines in line_blocks(source):
        rows, numbers = [], []
        for number, line in enumerate(lines, first):
            line = line.split("#", 1)[0].strip()
            if line:
                if not _LINE.fullmatch(line):
                    _explain(source, number, line)
                rows.append(_QUERY.sub("", line) if "q" in line.lower() else line)
                numbers.append(number)
        if rows:
            yield _parse(source, rows, numbers, width)


def _parse(
    source: str | os.PathLike[str], lines: list[str], numbers: list[int], width: int
) -> SparseRows:
    counts = np.array([line.count(":") for line in lines], np.int64)
    flat = np.array(" ".join(lines).replace(":", " ").split())
    starts = np.concatenate(([0], np.cumsum(2 * counts + 1)))[:-1]
    entries = np.delete(flat, starts)
    indices = entries[::2].astype(np.int64)
    if indices.size and indices.max() >= width:
        row = np.repeat(np.arange(len(lines)), counts)[indices.argmax()]
        fail(source, numbers[row], f"indices from 0 to {width - 1}", str(indices.max()))
    values = entries[1::2].astype(np.float64).astype(np.float32)
    labels = flat[starts].astype(np.float64).astype(np.float32)
    return SparseRows(labels, counts, indices, values)


def _explain(source: str | os.PathLike[str], number: int, line: str) -> None:
    label, *entries = line.split()
    if entries and _QUERY.fullmatch(" " + entries[0]):
        entries = entries[1:]
    wrong = [entry for entry in entries if not _ENTRY_ONLY.fullmatch(entry)]
    if wrong and re.fullmatch(_NUMBER, label, re.IGNORECASE):
        expected = "index:value, with the index an integer from 0"
        fail(source, number, expected, repr(wrong[0][:80]))
    fail(source, number, "one number as the label", repr(label[:80]))


_UNSIGNED_BYTES = 0x08
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20


def read_idx(source: str | os.PathLike[str], ndim: int) -> Tensor:
    """Return the bytes of an IDX file with `ndim` axes as a uint8 tensor."""
    path = existing_file(source)
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        if not packed:
            return _read(path, file, ndim)
        with gzip.GzipFile(fileobj=file) as unpacked:
            try:
                return _read(path, unpacked, ndim)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise FormatError(f"{path}: the gzip data is damaged: {error}.") from error


def _read(path: Path, file: IO[bytes] | gzip.GzipFile, ndim: int) -> Tensor:
    header = file.read(4 + 4 * ndim)
    if len(header) < 4 + 4 * ndim:
        _fail(path, len(header), f"a header of {4 + 4 * ndim} bytes", "the end of the file")
    magic, *shape = struct.unpack(f">i{ndim}I", header)
    if magic != (_UNSIGNED_BYTES << 8 | ndim):
        expected = f"the magic number {_UNSIGNED_BYTES << 8 | ndim} of bytes with {ndim} axes"
        _fail(path, 0, expected, str(magic))
    return _elements(path, file, len(header), shape)


def _elements(path: Path, file: IO[bytes] | gzip.GzipFile, at: int, shape: list[int]) -> Tensor:
    """Read in pieces, so that wrong sizes cannot allocate more memory than the file has."""
    needed, pieces, have = math.prod(shape), [], 0
    while have < needed:
        piece = file.read(min(_CHUNK, needed - have))
        if not piece:
            _fail(path, at + have, f"{needed} bytes for sizes {tuple(shape)}", f"only {have}")
        pieces.append(piece)
        have += len(piece)
    if file.read(1):
        _fail(path, at + have, f"the end after sizes {tuple(shape)}", "more bytes")
    if not needed:
        return torch.empty(shape, dtype=torch.uint8)
    return torch.frombuffer(bytearray(b"".join(pieces)), dtype=torch.uint8).reshape(shape)


def _fail(path: Path, at: int, expected: str, found: str) -> NoReturn:
    raise FormatError(
        f"{path}: not a valid IDX file at byte {at}: expected {expected}; found {found}."
    )
