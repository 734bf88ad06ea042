"""Sources of Python 2: translated to Python 3 line by line by fissix, the successor of 2to3."""

from __future__ import annotations

import ast
import io
import logging
import tokenize
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fissix.refactor import RefactoringTool

MAX_SOURCE = 2_000_000  # characters; longer files are data
# Fixers for what Python 3 cannot even parse.
_SYNTAX = "except exec ne numliterals paren print raise repr tuple_params unicode"
# Fixers for calls whose results Python 3 changed: lists that became iterators.
_RESULTS = "dict filter has_key map xrange zip"


def read_text(content: bytes) -> str:
    """Decode a source as its first lines declare, or as UTF-8 with marks for what is not."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return content.decode("utf-8", errors="replace")


@lru_cache(maxsize=64)
def translate(source: str, *, only_syntax: bool = False) -> str | None:
    r"""Return a source of Python 2 as one of Python 3, or None if it is not Python 2 either.

    Divisions are unchanged: whether their operands are integers cannot be decided here.

    >>> translate("print 'a', 1\n")
    "print('a', 1)\n"
    """
    from fissix.pgen2.parse import ParseError
    from fissix.pgen2.tokenize import TokenError

    if len(source) > MAX_SOURCE or "\0" in source:
        return None
    ended = source.endswith("\n")
    try:
        tree = _refactoring_tool(only_syntax).refactor_string(source + "\n" * (not ended), "source")
    except (ParseError, TokenError, IndentationError, RecursionError, AttributeError, ValueError):
        return None  # AttributeError and ValueError: of fixers that meet a broken tree
    text = _restore_calls(source, str(tree))
    return text if ended else text[:-1]


def _restore_calls(old: str, new: str) -> str:
    """Return a translation that keeps lines such as ``print("a")``, valid in both Pythons.

    >>> _restore_calls("print('a')", "print(('a'))")
    "print('a')"
    """
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if "print(" not in old or len(before) > len(after):
        return new
    rows = enumerate(before) if len(before) + 1 >= len(after) else ()
    for i, line in rows:
        if line != after[i] and _prints_one(line) and after[i].lstrip().startswith("print(("):
            after[i] = line
    return "".join(after)


def _prints_one(line: str) -> bool:
    try:
        node = ast.parse(line.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return False
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "print":
        return False
    return len(node.args) == 1 and not node.keywords


@cache
def _refactoring_tool(only_syntax: bool) -> RefactoringTool:
    from fissix.refactor import RefactoringTool

    for name in ("fissix", "RefactoringTool", "fissix.pgen2.driver"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    names = _SYNTAX if only_syntax else f"{_SYNTAX} {_RESULTS}"
    return RefactoringTool([f"fissix.fixes.fix_{name}" for name in names.split()])


def parse_program(content: bytes, filename: str) -> tuple[ast.Module, bool]:
    """Return the tree of a program, and whether it is a translation from Python 2."""
    try:
        tree = ast.parse(content, filename)
    except SyntaxError:
        translation = _parse_python_2(content)
        if translation is None:
            raise
        return translation, True
    if prints_as_python_2(tree) and (translation := _parse_python_2(content)) is not None:
        return translation, True
    return tree, False


def _parse_python_2(content: bytes) -> ast.Module | None:
    translation = translate(read_text(content))
    if translation is None:
        return None
    try:
        return ast.parse(translation)
    except (SyntaxError, ValueError, RecursionError):
        return None


def prints_as_python_2(tree: ast.Module) -> bool:
    """Return whether a program says ``print >> file, text``, which Python 3 reads as a shift."""
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.RShift)
        and isinstance(node.left, ast.Name)
        and node.left.id == "print"
        for node in ast.walk(tree)
    )


def future_imports(tree: ast.Module) -> set[str]:
    """Return what a program imports from `__future__`, such as division and absolute_import."""
    nodes = (n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__")
    return {alias.name for node in nodes for alias in node.names}


def comparison_of(call: ast.Call) -> ast.expr | None:
    """Return the function that a call of Python 2 sorts by: ``sorted(x, f)``, ``x.sort(cmp=f)``.

    >>> ast.unparse(comparison_of(ast.parse("sorted(x, f)", mode="eval").body))
    'f'
    """
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    if name == "sorted" and isinstance(call.func, ast.Name) and len(call.args) == 2:
        return call.args[1]
    if name not in ("sort", "sorted"):
        return None
    if name == "sort" and len(call.args) == 1 and isinstance(call.args[0], ast.Lambda):
        return call.args[0]
    return next((k.value for k in call.keywords if k.arg == "cmp"), None)


def first_statement(tree: ast.Module) -> int:
    """Return the index of the first statement after the docstring and ``__future__`` imports."""
    for i, node in enumerate(tree.body):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_docstring and getattr(node, "module", None) != "__future__":
            return i
    return len(tree.body)
