"""Packages import downwards only; the few upward imports are listed."""

from __future__ import annotations

import ast
import pathlib

import mxnet

ROOT = pathlib.Path(mxnet.__file__).parent
UPWARD_IMPORTS = pathlib.Path(__file__).parent / "upward_imports.txt"
# From the bottom up; a package may import packages of lower lines, and its own.
LAYERS = [
    {
        "base", "context", "dtypes", "env", "error", "memory", "registry", "name", "attribute",
        "caches", "libinfo", "companions", "compatibility", "tracebacks",
    },
    {"ops", "formats"},
    {"graph", "quantization", "imperative", "composites"},
    {"ndarray", "autograd", "random", "symbol", "util"},
    {
        "numpy", "numpy_extension", "numpy_dispatch_protocol", "numpy_op_signature",
        "_numpy_op_doc",
    },
    {
        "executor", "memonger", "operator", "rtc", "profiler", "engine", "runtime", "log",
        "library", "misc",
    },
    {
        "optimizer", "lr_scheduler", "checkpoint", "initializer", "metric", "kvstore", "io",
        "recordio", "image",
        "callback", "monitor", "tracking", "visualization", "model", "executor_manager",
        "distributed", "downloads",
    },
    {"gluon", "module", "rnn"},
    {
        "contrib", "convert", "launch", "onnx", "test_utils", "tools", "notebook", "__main__",
        "serving",
    },
]  # fmt: skip
SIBLINGS = [{"ops", "formats"}, {"ndarray", "symbol"}, {"gluon", "module"}]
LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}


def _package_of(path: pathlib.Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def _imports(path: pathlib.Path) -> list[tuple[str, bool]]:
    """Return (package, inside a function) for every import of this package."""
    package = ["mxnet", *path.relative_to(ROOT).with_suffix("").parts[:-1]]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checking = {
        id(n)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for n in ast.walk(node)
    }
    local = {
        id(n)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for n in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or id(node) in checking:
            continue
        base = package[: len(package) - node.level + 1] if node.level else []
        parts = base + (node.module.split(".") if node.module else [])
        if parts[:1] == ["mxnet"]:
            targets = [parts[1]] if len(parts) > 1 else [a.name for a in node.names]
            found += [(t, id(node) in local) for t in targets]
    return found


def test_imports_go_down() -> None:
    """No module imports a package above its own, or a sibling, unless that is listed."""
    allowed = {line.split("#")[0].strip() for line in UPWARD_IMPORTS.read_text().splitlines()}
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        package = _package_of(path)
        if package == "__init__":
            continue
        assert package in LEVEL, f"{package} has no place in LAYERS"
        for target, inside in _imports(path):
            apart = any({package, target} <= pair and package != target for pair in SIBLINGS)
            if target not in LEVEL or (LEVEL[target] <= LEVEL[package] and not apart):
                continue
            one = f"{path.relative_to(ROOT).as_posix()} -> {target}"
            if not (inside and one in allowed):
                wrong.append(one)
    assert not wrong, "imports that go up: " + ", ".join(wrong)
