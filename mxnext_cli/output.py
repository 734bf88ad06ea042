"""Output of commands: tables (by rich on terminals, plain elsewhere), facts and JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import CommandError

__all__ = [
    "format_bytes",
    "format_count",
    "print_facts",
    "print_json",
    "print_table",
    "refuse_existing",
]


def refuse_existing(paths: Iterable[Path], *, force: bool) -> None:
    """Raise an error for the first file that exists, unless `force` allows to replace it."""
    for path in paths:
        if path.exists() and not force:
            raise CommandError(f"{path} exists; --force replaces it")


def print_json(facts: Any) -> None:
    """Print facts as JSON; numbers that JSON cannot hold become null."""
    print(json.dumps(_as_json(facts), indent=2, ensure_ascii=False, allow_nan=False))


def _as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _as_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_as_json(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        return _as_json(value.tolist())
    return str(value)


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    title: str = "",
    right: Iterable[int] = (),
) -> None:
    """Print a table; `right` are the columns that are aligned to the right."""
    cells = [[_cell(v) for v in row] for row in rows]
    aligned = frozenset(right)
    if not (sys.stdout.isatty() and _print_rich(title, headings, cells, aligned)):
        _print_plain(title, headings, cells, aligned)


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def _print_rich(
    title: str, headings: Sequence[str], rows: list[list[str]], right: frozenset[int]
) -> bool:
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))  # names in files are not markup
    Console(file=sys.stdout).print(table)
    return True


def _print_plain(
    title: str, headings: Sequence[str], rows: list[list[str]], right: frozenset[int]
) -> None:
    if title:
        print(title)
    lines = [list(headings), *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    for number, line in enumerate(lines):
        cells = (
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def print_facts(facts: Mapping[str, Any], *, title: str = "") -> None:
    """Print names and values in two columns; None and empty values are omitted."""
    shown = {k: v for k, v in facts.items() if v is not None and v not in ("", [], {})}
    if title:
        print(title)
    width = max((len(name) for name in shown), default=0)
    for name, value in shown.items():
        print(f"  {name.ljust(width)}  {_cell(value)}")


def format_bytes(count: float) -> str:
    """Return a size in the unit that fits.

    >>> format_bytes(512), format_bytes(3 * 1024**2)
    ('512 B', '3.0 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def format_count(count: float) -> str:
    """Return a count with a letter for thousands, millions and more.

    >>> format_count(900), format_count(1_814_073_344)
    ('900', '1.81 G')
    """
    for unit in ("", "K", "M", "G", "T"):
        if abs(count) < 1000:
            return f"{count:.0f}" if not unit else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} P"
