"""The text files beside a record file: `.idx`, where records are, and `.lst`, what is to be packed.

A line of `.idx` is key TAB byte offset; one of `.lst` is index TAB labels (TAB between them) TAB
path. Lines that cannot be understood raise `FormatError`, or are left out and counted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ...error import FormatError
from ..location import existing_file

LONGEST_LINE = 1 << 20  # characters; longer ones are damage, not lines


class ListedImage(NamedTuple):
    """A line of a `.lst` file."""

    index: int
    labels: tuple[float, ...]
    path: str


class Parsed(list):
    """The parsed lines, and the number of those that could not be understood."""

    skipped = 0


def read_index(
    place: str | os.PathLike[str],
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

    return _parsed(place, parse, f"a key ({_name(key_type)}), a tab and a byte offset", on_error)


def read_list(place: str | os.PathLike[str], on_error: str = "raise") -> Parsed:
    """Return each line of a `.lst` file as a `ListedImage`."""

    def parse(fields: list[str]) -> ListedImage:
        if len(fields) < 3 or not fields[-1]:
            raise ValueError("an index, labels and a path")
        # Lists that MXNet wrote may have the index as a float.
        return ListedImage(int(float(fields[0])), tuple(map(float, fields[1:-1])), fields[-1])

    return _parsed(place, parse, "index, labels and path with tabs between them", on_error)


def _parsed(place: str | os.PathLike[str], parse: Callable, expected: str, on_error: str) -> Parsed:
    found = Parsed()
    path = existing_file(place)
    for number, line in enumerate(_lines(path), 1):
        text = line.decode("utf-8", "surrogateescape").strip()
        if not text:
            continue
        try:
            found.append(parse(text.split("\t")))
        except (ValueError, TypeError, OverflowError):
            if on_error == "skip":
                found.skipped += 1
                continue
            shown = text if len(text) <= 80 else text[:80] + "..."
            raise FormatError(
                f"{path}: in line {number} expected {expected}, found {shown!r}."
            ) from None
    return found


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE):
            yield line


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))
