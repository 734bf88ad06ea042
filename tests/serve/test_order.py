"""The parts of `mx serve` know each other in one direction."""

from __future__ import annotations

import ast

from .server import ROOT

FOLDER = ROOT / "mxnext_cli/serve"
BASE = {"limits", "metrics", "logs"}
KNOWN = {
    "payloads": set(),
    "http": set(),
    "models": {"payloads"},
    "endpoints": {"payloads", "http", "models"},
}


def parts_of(path, depth: int) -> set[str]:
    """Return the parts of `mx serve` that a file at some depth imports."""
    nodes = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)]
    return {node.module.partition(".")[0] for node in nodes if node.level == depth and node.module}


def test_imports_go_one_way():
    folders = {path.name for path in FOLDER.iterdir() if any(path.glob("*.py"))}
    assert folders == set(KNOWN)
    for name, known in KNOWN.items():
        for path in (FOLDER / name).glob("*.py"):
            assert parts_of(path, 2) <= known | BASE, path


def test_what_all_know_knows_no_part():
    for name in BASE:
        assert parts_of(FOLDER / f"{name}.py", 1) <= BASE, name
