"""LibSVM files: each line a label, then ``index:value`` of what is not zero, from index 0."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from .text_blocks import fail, line_blocks

_NUMBER = r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|nan|inf(?:inity)?)"
_ENTRY = rf"\d{{1,18}}:{_NUMBER}"
_LINE = re.compile(rf"\s*{_NUMBER}(?:\s+qid:\d+)?(?:\s+{_ENTRY})*\s*", re.IGNORECASE)
_ENTRY_ONLY = re.compile(_ENTRY, re.IGNORECASE)
_QUERY = re.compile(r"\sqid:\d+", re.IGNORECASE)


@dataclass(frozen=True)
class SparseRows:
    """Rows of a sparse matrix, with a label each; can be cut and joined."""

    labels: np.ndarray
    counts: np.ndarray  # how many entries each row has
    indices: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def indptr(self) -> np.ndarray:
        """Where the entries of each row begin, and where the last ones end."""
        return np.concatenate(([0], np.cumsum(self.counts)))

    def __getitem__(self, rows: slice) -> SparseRows:
        begin, end, _ = rows.indices(len(self))
        first, last = self.indptr[begin], self.indptr[end]
        return SparseRows(
            self.labels[rows], self.counts[rows], self.indices[first:last], self.values[first:last]
        )

    @staticmethod
    def join(parts: list[SparseRows]) -> SparseRows:
        """Return the rows of all parts."""
        columns = ([getattr(p, f.name) for p in parts] for f in fields(SparseRows))
        return SparseRows(*(np.concatenate(column) for column in columns))


def read_rows(place: str | os.PathLike[str], width: int) -> Iterator[SparseRows]:
    """Yield blocks of rows with indices below `width`.

    What follows ``#`` is a comment; ``qid:n`` after the label is skipped.
    """
    for first, lines in line_blocks(place):
        kept, numbers = [], []
        for number, line in enumerate(lines, first):
            line = line.split("#", 1)[0].strip()
            if line:
                if not _LINE.fullmatch(line):
                    _explain(place, number, line)
                kept.append(_QUERY.sub("", line) if "q" in line.lower() else line)
                numbers.append(number)
        if kept:
            yield _parsed(place, kept, numbers, width)


def _parsed(
    place: str | os.PathLike[str], lines: list[str], numbers: list[int], width: int
) -> SparseRows:
    counts = np.array([line.count(":") for line in lines], np.int64)
    flat = np.array(" ".join(lines).replace(":", " ").split())
    starts = np.concatenate(([0], np.cumsum(2 * counts + 1)))[:-1]
    entries = np.delete(flat, starts)
    indices = entries[::2].astype(np.int64)
    if indices.size and indices.max() >= width:
        row = np.repeat(np.arange(len(lines)), counts)[indices.argmax()]
        fail(place, numbers[row], f"indices from 0 to {width - 1}", str(indices.max()))
    values = entries[1::2].astype(np.float64).astype(np.float32)
    labels = flat[starts].astype(np.float64).astype(np.float32)
    return SparseRows(labels, counts, indices, values)


def _explain(place: str | os.PathLike[str], number: int, line: str) -> None:
    label, *entries = line.split()
    if entries and _QUERY.fullmatch(" " + entries[0]):
        entries = entries[1:]
    wrong = [entry for entry in entries if not _ENTRY_ONLY.fullmatch(entry)]
    if wrong and re.fullmatch(_NUMBER, label, re.IGNORECASE):
        wanted = "index:value, with the index an integer from 0"
        fail(place, number, wanted, repr(wrong[0][:80]))
    fail(place, number, "one number as the label", repr(label[:80]))
