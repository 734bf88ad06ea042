"""A program that `mx run` runs: which files are its own, and what was put back for it."""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from types import FrameType
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[1]


class Finding(NamedTuple):
    """A line of the program that uses a removed name, and what to write instead."""

    file: str
    line: int
    name: str
    instead: str


class Program:
    """Collects what a program uses of what is gone."""

    def __init__(self, script: Path) -> None:
        self.script = script.resolve()
        _library_folders()  # before imports are hooked, because it imports
        self.findings: set[Finding] = set()
        self.trees: dict[str, ast.Module] = {}  # of its files that were loaded

    def note(self, frame: FrameType, name: str, instead: str) -> None:
        """Remember that a line needed a name."""
        self.findings.add(Finding(frame.f_code.co_filename, frame.f_lineno, name, instead))

    def add_file(self, filename: str, source: bytes) -> ast.Module:
        """Remember the syntax tree of a file that is about to run."""
        tree = ast.parse(source, filename)
        self.trees[filename] = tree
        return tree

    def caller(self) -> FrameType | None:
        """Return the frame that asks for a name, if it is of the program."""
        frame = next(_outside(sys._getframe(1)), None)
        return frame if frame is not None and owns(frame.f_code.co_filename) else None


def _outside(frame: FrameType | None) -> Iterator[FrameType]:
    """Give the callers that are neither this package nor the machinery of imports."""
    while frame is not None:
        filename = frame.f_code.co_filename
        if not filename.startswith(("<frozen importlib", str(PACKAGE))):
            yield frame
        frame = frame.f_back


@cache
def _library_folders() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    found = {sysconfig.get_path(name) for name in names}
    found |= {str(PACKAGE), str(PACKAGE.parent / "mxnet")}
    return tuple(f"{Path(path).resolve()}/" for path in found if path)


@lru_cache(maxsize=4096)
def owns(filename: str) -> bool:
    """Return whether a file is the program's own rather than of Python or an installed library."""
    if filename.startswith("<"):
        return False
    path = str(Path(filename).resolve())
    if "/site-packages/" in path or "/dist-packages/" in path:
        return False
    return not path.startswith(_library_folders())
