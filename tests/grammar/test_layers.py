"""Packages import only from lower layers; the few exceptions are listed."""

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
        "accelerator", "base", "context", "dtypes", "error", "registry", "name", "attribute",
        "libinfo", "torch_private", "_process", "_compat", "_compat/companions",
        "_compat/module_names", "_compat/star_imports", "runtime", "runtime/features",
    },
    {"ops", "formats"},
    {
        "graph", "runtime/anomaly", "runtime/apply", "runtime/array", "runtime/backward",
        "runtime/calls", "runtime/composites", "runtime/gradients", "runtime/integers",
        "runtime/overloads", "runtime/recording", "runtime/tracing",
    },
    {"ndarray", "autograd", "random", "symbol", "util", "_compat/ndarray_doc",
     "_compat/symbol_doc"},
    {
        "numpy", "numpy_extension", "_compat/_numpy_op_doc", "_compat/numpy_dispatch_protocol",
        "_compat/numpy_op_signature",
    },
    {
        "executor", "operator", "profiler", "_compat/c_library", "_compat/engine",
        "_compat/library", "_compat/log", "_compat/memonger", "_compat/misc", "_compat/rtc",
        "runtime/array_kernels", "runtime/backends", "runtime/binding", "runtime/bound_arrays",
        "runtime/bound_function", "runtime/cached_op", "runtime/capture", "runtime/compiled",
        "runtime/control_flow", "runtime/custom", "runtime/executor", "runtime/function",
        "runtime/monitoring", "runtime/onednn_graph", "runtime/profiling", "runtime/program",
    },
    {
        "optimizer", "lr_scheduler", "initializer", "metric", "kvstore", "io", "recordio", "image",
        "callback", "monitor", "visualization", "parallel", "_process/downloads",
        "formats/model_files", "formats/checkpoints",
    },
    {"gluon", "module", "rnn"},
    {
        "contrib", "interop", "model", "test_utils", "__main__", "_compat/executor_manager",
        "_compat/tools",
    },
]  # fmt: skip
# Packages whose modules stand in several layers.
PARTED = [["runtime"], ["_compat"], ["_process"], ["formats"]]
SIBLINGS = [{"ops", "formats"}, {"ndarray", "symbol"}, {"gluon", "module"}]
LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}


def _package_of(*parts: str) -> str:
    """Return the package of a module's path; some subpackages have layers of their own."""
    part = "/".join(parts[:2])
    return part if part in LEVEL else parts[0]


def _import_statements(node: ast.AST, inside: bool) -> Iterator[tuple[ast.ImportFrom, bool]]:
    """Yield imports, and whether they are in a function; imports for type checkers are skipped."""
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
            is_package = len(parts) == 1 or parts[1:] in PARTED
            names = [a.name for a in node.names] if is_package else [""]
            paths = [[*parts[1:], name] if name else parts[1:] for name in names]
            targets += [(_package_of(*path), inside) for path in paths]
    return targets


def test_modules_import_only_from_lower_layers() -> None:
    """No module imports a sibling or higher package, unless listed."""
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


# Vendor-specific words, forbidden in code but not in user-visible text.
DEVICE_WORDS = re.compile(
    r"is_cuda|is_xpu|is_mps|\btorch\.(cuda|xpu|mps|accelerator)\b|torch\.backends\.(cuda|cudnn|mps)"
    r"|ProfilerActivity\.|\.pin_memory\(|[\"'](cuda|xpu|mps|hip|privateuseone)[\"':]"
)


def test_device_types_are_named_only_in_the_accelerator_module() -> None:
    """CUDA, XPU and MPS are named only in `accelerator`."""
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
