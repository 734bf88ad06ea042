"""A bar for work of known length: tqdm's if it is installed, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
LINE_EVERY = 1000


def shown(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """Give the items, and show on stderr how far the work is."""
    try:
        from tqdm import tqdm
    except ImportError:
        yield from _lines(items, total, what)
        return
    yield from tqdm(items, desc=what, total=total, unit="", disable=None)


def _lines(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    start = time.monotonic()
    for count, item in enumerate(items, 1):
        yield item
        if count % LINE_EVERY == 0:
            seconds = time.monotonic() - start
            sys.stderr.write(f"{what}: {count} of {total}, {seconds:.1f} s\n")
