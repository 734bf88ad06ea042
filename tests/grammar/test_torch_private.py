"""Only one module uses torch's private API, and results are equal without it."""

from __future__ import annotations

import ast
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mxnet

ROOT = Path(mxnet.__file__).parent
PRIVATE = ROOT / "torch_private.py"
# Private attributes of torch's objects, which no import shows.
ATTRIBUTES = {
    "_backward_hooks", "_backward_pre_hooks", "_base", "_cdata", "_execution_engine",
    "_is_view", "_is_zerotensor", "_op", "_overloads", "_schema", "_version",
}  # fmt: skip
TEXTS = ("_saved_", "torch._", "_foreach_", "_fused_sgd", "_fused_adam")


def _dotted(node: ast.expr) -> str:
    """Return the dotted name of an attribute of an attribute, from its root on."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def _private_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the private names of torch in a module, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = _dotted(node)
            root = name.split(".")[0]
            is_torch = root in ("torch", "aten") and re.match("_[^_]", node.attr)
            if is_torch or (node.attr in ATTRIBUTES and root not in ("self", "cls")):
                yield node.lineno, name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            if any(part.startswith("_") for part in names) and not node.level:
                yield node.lineno, ".".join(names)
        elif isinstance(node, ast.Constant) and str(node.value).startswith(TEXTS):
            yield node.lineno, str(node.value)


def test_private_torch_names_occur_only_in_one_module() -> None:
    wrong = []
    for folder in (ROOT, ROOT.parent / "mxnext_cli"):
        for path in sorted(folder.rglob("*.py")):
            if path == PRIVATE:
                continue
            found = _private_names(ast.parse(path.read_text(encoding="utf-8")))
            wrong += [f"{path.relative_to(ROOT.parent)}:{line}: {name}" for line, name in found]
    assert not wrong, "private names of torch belong in mxnet/torch_private.py:\n" + "\n".join(
        wrong
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_results_without_private_torch_apis_are_equal(tmp_path: Path) -> None:
    """Each API is removed in turn; its public alternative gives the same results."""
    path = tmp_path / "results"
    command = [sys.executable, "-m", "tests.grammar.without_private", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT.parent)}
    subprocess.run(command, check=True, timeout=600, env=environment)
    answers = pickle.loads(path.read_bytes())
    expected, (parts, unavailable) = answers.pop("")
    assert set(answers) == {*parts, "all"} and len(parts) > 20 and not unavailable
    for name, answer in answers.items():
        assert answer is not None, f"the program fails without {name}"
        results, (_, missing) = answer
        assert name in missing or name == "all"
        for key, value in expected.items():
            message = f"{key} without {name}"
            if isinstance(value, str):
                assert results[key] == value, message
            else:
                step = 0.02 if "int8" in key else 1e-5  # of the 8-bit range
                np.testing.assert_allclose(
                    results[key], value, rtol=1e-4, atol=step, err_msg=message
                )
