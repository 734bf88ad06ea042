"""Notes about what a project needs around it: GPUs, model and data files, launch commands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mxnet.context import num_gpus

from ..run.program import import_aliases, resolve
from .modules import guarded_nodes
from .source import Source

# Functions whose first argument, or whose named argument, is a file; with what is appended to it.
FILE_ARGUMENTS: dict[str, tuple[str | int, str]] = {
    "mxnet.model.load_checkpoint": (0, "-symbol.json"),
    "mxnet.mod.Module.load": (0, "-symbol.json"),
    "mxnet.module.Module.load": (0, "-symbol.json"),
    "mxnet.nd.load": (0, ""),
    "mxnet.ndarray.load": (0, ""),
    "mxnet.sym.load": (0, ""),
    "mxnet.symbol.load": (0, ""),
    "mxnet.io.ImageRecordIter": ("path_imgrec", ""),
    "mxnet.io.CSVIter": ("data_csv", ""),
    "mxnet.recordio.MXRecordIO": (0, ""),
    "mxnet.recordio.MXIndexedRecordIO": (1, ""),
    "mxnet.gluon.SymbolBlock.imports": (0, ""),
    "mxnet.gluon.nn.SymbolBlock.imports": (0, ""),
}
GPU_ERRORS = frozenset({"Exception", "BaseException", "MXNetError"})
GPU_NOTE = "mx.gpu() is used, and torch sees no GPU here: pass mx.cpu(), or the program's option"
LAUNCHER = re.compile(r"\blaunch\.py\b.*?(?=\s-|$)|\bdmlc-submit\b")


class Note(NamedTuple):
    """Something that a user may have to provide; not a problem by itself."""

    file: str
    line: int
    text: str


def check_surroundings(source: Source) -> Iterator[Note]:
    """Yield notes about GPUs and files that a program names."""
    aliases = import_aliases(source.tree)
    guarded = guarded_nodes(source.tree, ("gpu", "ctx", "device"), GPU_ERRORS)
    needs_gpu: list[int] = []
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call):
            continue
        name = resolve(node.func, aliases)
        if name in ("mxnet.gpu", "mxnet.context.gpu"):
            if id(node) not in guarded:
                needs_gpu.append(node.lineno)
        elif name in FILE_ARGUMENTS and (path := _missing_file(node, name, source.path)):
            yield Note(str(source.path), node.lineno, f"{path} is read, and is not there")
    if not num_gpus():
        yield from (Note(str(source.path), line, GPU_NOTE) for line in needs_gpu)


def _missing_file(call: ast.Call, name: str, program: Path) -> str | None:
    position, suffix = FILE_ARGUMENTS[name]
    if isinstance(position, int):
        value = call.args[position] if len(call.args) > position else None
    else:
        value = next((k.value for k in call.keywords if k.arg == position), None)
    if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
        return None
    path = value.value + suffix
    folders = [Path(), program.parent, *program.resolve().parents[:2]]
    return None if any((f / path).exists() for f in folders) else path


def check_shell_script(path: Path) -> Iterator[Note]:
    """Yield notes about commands of a shell script that start MXNet's launcher."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("#") and LAUNCHER.search(line):
            yield Note(str(path), number, "MXNet's launcher: `mx launch` takes the same options")
