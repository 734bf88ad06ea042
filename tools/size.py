"""Show where the code grows: the ten largest files, and functions over 40 lines.

Run ``python -m tools.size``. The guides of CONTRIBUTING.md are meant, not enforced.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("mxnet", "tests", "tools", "benchmarks", "examples")
LARGEST = 10
LONG_FUNCTION = 40


def python_files() -> list[Path]:
    """Return the project's own Python files."""
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def largest_files() -> list[tuple[int, Path]]:
    """Return (lines, file) of the largest files."""
    sizes = [(len(path.read_text(encoding="utf-8").splitlines()), path) for path in python_files()]
    return sorted(sizes, reverse=True)[:LARGEST]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many lines a function has below its signature and docstring.

    A signature is a list of names and a docstring is prose: neither makes a function hard to read.
    """
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return function.end_lineno - body[0].lineno + 1 if body else 0


def long_functions() -> Iterator[tuple[int, Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield (lines, file, function) of the functions whose bodies are too long."""
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = body_lines(node)
                if lines > LONG_FUNCTION:
                    yield lines, path, node


def main() -> None:
    """Print both lists."""
    print(f"The {LARGEST} largest files")
    for lines, path in largest_files():
        print(f"{lines:6} {path.relative_to(ROOT)}")
    print(f"\nFunctions with bodies over {LONG_FUNCTION} lines")
    for lines, path, node in sorted(long_functions(), key=lambda found: -found[0]):
        print(f"{lines:6} {path.relative_to(ROOT)}:{node.lineno} {node.name}")


if __name__ == "__main__":
    main()
