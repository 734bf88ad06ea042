"""Modules of `mx serve` import each other in one direction, and only public names."""

from __future__ import annotations

import ast

from .server import ROOT

FOLDER = ROOT / "mxnext_cli/serve"
ORDER = ["limits", "monitoring", "batching", "decoding", "encoding", "settings",
         "open_inference", "repository", "app", "predictions", "descriptions", "server",
         "__init__"]  # fmt: skip


def imports_of(name: str) -> list[ast.ImportFrom]:
    tree = ast.parse((FOLDER / f"{name}.py").read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_imports_go_one_way():
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(ORDER)
    for name in ORDER[:-1]:
        modules = {node.module for node in imports_of(name) if node.level == 1 and node.module}
        assert modules <= set(ORDER[: ORDER.index(name)]), name


def test_other_packages_are_used_by_their_public_names():
    for name in ORDER:
        for node in imports_of(name):
            if node.level == 0 and not (node.module or "").startswith(("mxnet", "__future__")):
                names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                assert not [part for part in names if part.startswith("_")], (name, node.module)
