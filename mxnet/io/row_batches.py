"""Batches of rows from files that are read as they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..error import FormatError, MXNetError
from ..ndarray import NDArray

Rows = Any  # what can be cut, [a:b], and has a length: a NumPy array or SparseRows
Read = Callable[[], Iterator[Rows]]
Join = Callable[[list[Rows]], Rows]


class Batch(NamedTuple):
    """One batch of a file."""

    data: NDArray
    label: NDArray
    pad: int
    index: np.ndarray


class RowStream:
    """The rows of a file, taken some at a time."""

    def __init__(self, read: Read, join: Join = np.concatenate) -> None:
        self.read = read
        self.join = join
        self.rewind()

    def rewind(self) -> None:
        """Go back to the first row."""
        self.blocks = self.read()
        self.block: Rows = ()
        self.at = 0  # in the block
        self.row = 0  # in the file

    def take(self, count: int) -> Rows | None:
        """Return the next rows, at most `count`; None if there are no more."""
        parts = []
        while count:
            if self.at == len(self.block):
                self.block = next(self.blocks, None)
                self.at = 0
                if self.block is None:
                    self.block = ()
                    break
            part = self.block[self.at : self.at + count]
            parts.append(part)
            self.at += len(part)
            self.row += len(part)
            count -= len(part)
        return self.join(parts) if parts else None


def only_part(read: Read, num_parts: int, part_index: int) -> Read:
    """Return a reader of one of `num_parts` nearly equal parts of the rows."""
    if not 0 <= part_index < num_parts:
        raise ValueError(f"part_index must be from 0 to {num_parts - 1}, got {part_index}")
    if num_parts == 1:
        return read
    count = sum(map(len, read()))
    begin, end = (count * i // num_parts for i in (part_index, part_index + 1))

    def read_part() -> Iterator[Rows]:
        at = 0
        for block in read():
            part = block[max(0, begin - at) : max(0, end - at)]
            at += len(block)
            if len(part):
                yield part
            if at >= end:
                return

    return read_part


class RowBatches:
    """Batches of the rows of a data file and, if there is one, a label file.

    With `round_batch` the last batch is filled with rows from the beginning, and the next epoch
    begins after these; without, it is filled with rows of the batch before.
    """

    def __init__(
        self,
        name: str,
        streams: list[RowStream],
        make: Callable[..., tuple[NDArray, NDArray]],
        batch_size: int,
        round_batch: bool = True,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"{name}: batch_size must be at least 1, got {batch_size}")
        self.name = name
        self.streams = streams
        self.make = make
        self.batch_size = batch_size
        self.round_batch = round_batch
        self.ended = self.overflown = False
        self.before: list[Rows] | None = None

    def reset(self) -> None:
        """Begin a new epoch."""
        if not self.overflown:
            for stream in self.streams:
                stream.rewind()
        self.ended = self.overflown = False

    def next_batch(self) -> Batch | None:
        """Return the next batch, or None at the end of the epoch."""
        if self.ended:
            return None
        first = self.streams[0].row
        rows = self._take(self.batch_size)
        count = 0 if rows is None else len(rows[0])
        index = np.arange(first, first + count, dtype=np.uint64)
        pad = self.batch_size - count
        if pad:
            self.ended = True
            if not count:
                return None
            rows, index = self._filled(rows, index, pad)
        self.before, self.index_before = rows, index
        return Batch(*self.make(*rows), pad, index)

    def _take(self, count: int) -> list[Rows] | None:
        rows = [stream.take(count) for stream in self.streams]
        if rows[0] is None:
            return None
        for other in rows[1:]:
            if other is None or len(other) < len(rows[0]):
                raise FormatError(
                    f"{self.name}: the label file has {self.streams[1].row} rows, and the data "
                    "file has more."
                )
        return rows

    def _filled(
        self, rows: list[Rows], index: np.ndarray, pad: int
    ) -> tuple[list[Rows], np.ndarray]:
        if self.round_batch:
            for stream in self.streams:
                stream.rewind()
            more = self._take(pad)
            if more is None or len(more[0]) < pad:
                raise MXNetError(
                    f"{self.name}: number of input must be bigger than batch size; there are "
                    f"{self.streams[0].row} rows for batches of {self.batch_size}."
                )
            self.overflown = True
            numbers = np.arange(pad, dtype=np.uint64)
        else:
            count = len(index)
            if self.before is None:  # the only batch: its own first row fills it
                more = [
                    stream.join([part[:1]] * pad)
                    for stream, part in zip(self.streams, rows, strict=True)
                ]
                numbers = np.repeat(index[:1], pad)
            else:
                more = [part[count:] for part in self.before]
                numbers = self.index_before[count:]
        joined = [
            stream.join([part, filler])
            for stream, part, filler in zip(self.streams, rows, more, strict=True)
        ]
        return joined, np.concatenate((index, numbers))
