"""Text files read by blocks of whole lines, so that a large file never is in memory as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NoReturn

from ...error import FormatError
from ..location import existing_file

BLOCK_BYTES = 4 << 20
MAX_LINE_BYTES = 256 << 20  # no row of numbers is as long; a binary file may seem to be


def line_blocks(place: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the first line, lines without their ends) until the file ends."""
    path, first = existing_file(place), 1
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
    place: str | os.PathLike[str], line: int, expected: str, found: str | None = None
) -> NoReturn:
    """Say what is wrong in which line."""
    ending = "" if found is None else f"; found {found}"
    raise FormatError(f"{os.fspath(place)}, line {line}: expected {expected}{ending}.")
