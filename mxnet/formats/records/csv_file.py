"""CSV files of numbers: each line a row, commas between."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from .text_blocks import fail, line_blocks


def read_rows(
    place: str | os.PathLike[str], width: int, dtype: type[np.generic]
) -> Iterator[np.ndarray]:
    """Yield blocks of rows with `width` numbers each; empty lines are skipped.

    A comma may end a line, as some programs write it.
    """
    for first, lines in line_blocks(place):
        filled = [line for line in lines if line and not line.isspace()]
        if not filled:
            continue
        if filled[0].count(",") == width:
            filled = [_without_last_comma(line) for line in filled]
        rows = _loaded(filled, dtype)
        if rows is None or rows.shape != (len(filled), width):
            _find_mistake(place, first, lines, width, dtype)
        yield rows


def _loaded(lines: list[str], dtype: type[np.generic]) -> np.ndarray | None:
    """Return the numbers of some lines; integers may be written as ``3.0``."""
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
    place: str | os.PathLike[str], first: int, lines: list[str], width: int, dtype: type
) -> None:
    """Look through a block that could not be read, and name the first line that is wrong."""
    kind = np.dtype(dtype).name
    for number, line in enumerate(lines, first):
        if not line or line.isspace():
            continue
        cells = line.split(",")
        if len(cells) == width + 1 and not cells[-1].strip():
            cells.pop()
        if len(cells) != width:
            fail(place, number, f"{width} numbers between commas", f"{len(cells)}: {line[:80]!r}")
        for cell in cells:
            if not _is_number(cell, dtype):
                fail(place, number, f"a number of type {kind}", repr(cell[:80]))
    fail(place, first, f"rows of {width} numbers of one kind", "rows that cannot be read together")


def _is_number(cell: str, dtype: type) -> bool:
    rows = _loaded([cell], dtype) if cell.strip() else None
    return rows is not None and rows.size == 1
