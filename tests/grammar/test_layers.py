"""Packages import downwards only; the few upward imports are listed."""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator

import mxnet

ROOT = pathlib.Path(mxnet.__file__).parent
UPWARD_IMPORTS = pathlib.Path(__file__).parent / "upward_imports.txt"
# From the bottom up; a package may import packages of lower lines, and its own.
LAYERS = [
    {
        "accelerator", "base", "context", "dtypes", "env", "error", "interrupts", "memory",
        "registry", "name", "attribute", "caches", "libinfo", "companions", "compatibility", "role",
        "on_demand", "tracebacks", "runtime", "runtime/features",
    },
    {"ops", "formats"},
    {
        "graph", "quantization", "composites", "anomaly", "runtime/recording", "runtime/array",
        "runtime/backward", "runtime/gradients", "runtime/integers", "runtime/apply",
        "runtime/calls", "runtime/overloads", "runtime/tracing",
    },
    {"ndarray", "ndarray_doc", "autograd", "random", "symbol", "symbol_doc", "util"},
    {
        "numpy", "numpy_extension", "numpy_dispatch_protocol", "numpy_op_signature",
        "_numpy_op_doc",
    },
    {
        "executor", "memonger", "operator", "rtc", "profiler", "engine", "log", "library", "misc",
        "runtime/array_kernels", "runtime/backends", "runtime/binding", "runtime/bound_arrays",
        "runtime/bound_function", "runtime/function", "runtime/storage",
        "runtime/cached_op", "runtime/capture", "runtime/captured_step", "runtime/compiled",
        "runtime/control_flow", "runtime/executor", "runtime/head_gradients",
        "runtime/monitoring", "runtime/onednn_graph", "runtime/program", "runtime/repetition",
    },
    {
        "optimizer", "lr_scheduler", "checkpoint", "initializer", "metric", "kvstore", "io",
        "recordio", "image",
        "callback", "monitor", "tracking", "visualization", "model", "executor_manager",
        "distributed", "downloads", "range_check",
    },
    {"gluon", "module", "rnn"},
    {
        "contrib", "convert", "launch", "onnx", "test_utils", "tools", "notebook", "__main__",
        "serving",
    },
]  # fmt: skip
SIBLINGS = [{"ops", "formats"}, {"ndarray", "symbol"}, {"gluon", "module"}]
LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}


def _package_of(*parts: str) -> str:
    """Return the package of a module's path; those of `runtime/` stand in two layers."""
    inside = parts[0] == "runtime" and len(parts) > 1 and parts[1] != "__init__"
    return "/".join(parts[:2]) if inside else parts[0]


def _import_statements(node: ast.AST, inside: bool) -> Iterator[tuple[ast.ImportFrom, bool]]:
    """Yield imports with whether they stand in a function; those for type checkers are left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ImportFrom):
            yield child, inside
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _import_statements(child, inside or is_function)


def _imports(path: pathlib.Path) -> list[tuple[str, bool]]:
    """Return (package, inside a function) for every import of this package."""
    package = ["mxnet", *path.relative_to(ROOT).with_suffix("").parts[:-1]]
    targets: list[tuple[str, bool]] = []
    for node, inside in _import_statements(ast.parse(path.read_text(encoding="utf-8")), False):
        base = package[: len(package) - node.level + 1] if node.level else []
        parts = base + (node.module.split(".") if node.module else [])
        if parts[:1] == ["mxnet"]:
            is_package = len(parts) == 1 or parts[1:] == ["runtime"]
            names = [a.name for a in node.names] if is_package else [""]
            paths = [[*parts[1:], name] if name else parts[1:] for name in names]
            targets += [(_package_of(*path), inside) for path in paths]
    return targets


def test_imports_go_down() -> None:
    """No module imports a package above its own, or a sibling, unless that is listed."""
    allowed = {line.split("#")[0].strip() for line in UPWARD_IMPORTS.read_text().splitlines()}
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        package = _package_of(*path.relative_to(ROOT).with_suffix("").parts)
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


# Words that belong to one maker's devices, in code; text for people may use them.
DEVICE_WORDS = re.compile(
    r"is_cuda|is_xpu|is_mps|\btorch\.(cuda|xpu|mps|accelerator)\b|torch\.backends\.(cuda|cudnn|mps)"
    r"|ProfilerActivity\.|\.pin_memory\(|[\"'](cuda|xpu|mps|hip|privateuseone)[\"':]"
)


def test_one_module_knows_the_kinds_of_devices() -> None:
    """CUDA, XPU and MPS are named in `accelerator` alone; all others ask it."""
    folders = [ROOT, ROOT.parent / "mxnext_cli", ROOT.parent / "benchmarks"]
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    assert len(files) > 400
    wrong = []
    for path in files:
        if path == ROOT / "accelerator.py":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if DEVICE_WORDS.search(line):
                wrong.append(f"{path.relative_to(ROOT.parent)}:{number}: {line.strip()}")
    assert not wrong, "go through mxnet/accelerator.py:\n" + "\n".join(wrong)
