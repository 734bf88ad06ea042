"""The text of `model.py`: header, imports, classes, functions, and `load`."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ....graph import Node
from ..classes import ClassDefinition
from ..weights import Layout
from .emit import class_lines, literal

MAX_TEXT = 100  # characters of names from files
FUNCTIONS = Path(__file__).parents[1] / "functions"

HEADER = '''"""{title}, in PyTorch.

Generated from {source} by MXNext {version}.
{errors}
"""
'''

LOAD = '''def load(path: str = "model.safetensors") -> {title}:
    """Return the model with its trained parameters."""
    model = {title}()
    model.load_state_dict(load_file(path)){frozen}
    return model
'''

FROZEN = """
    for name in {names}:
        model.get_parameter(name).requires_grad_(False)"""

GROUPS = '''def parameter_groups(
    model: {title}, lr: float, weight_decay: float = 0.0
) -> list[dict[str, Any]]:
    """Return the groups of an optimizer, with MXNet's `lr_mult` and `wd_mult`."""
    factors = {{
{factors}
    }}
    groups = []
    for name, parameter in model.named_parameters():
        lr_mult, wd_mult = factors.get(name, (1.0, 1.0))
        rates = {{"lr": lr * lr_mult, "weight_decay": weight_decay * wd_mult}}
        groups.append({{"params": [parameter], **rates}})
    return groups
'''


@dataclass
class FileParts:
    """The parts of a file."""

    title: str
    source: str
    classes: list[ClassDefinition]
    layout: Layout
    functions: dict[str, str] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)  # functions generated for this model: losses
    version: str = ""
    skeletons: dict[str, str] = field(default_factory=dict)  # classes of custom operators
    factors: dict[str, tuple[float, float]] = field(default_factory=dict)  # lr_mult, wd_mult
    frozen: list[str] = field(default_factory=list)  # frozen parameters
    suppressions: list[tuple[str, Node]] = field(default_factory=list)  # functions, in call order


def write_file(parts: FileParts, errors: Sequence[str]) -> str:
    """Return the text of the file; `errors` are the lines of its header about them."""
    blocks = ["\n".join(class_lines(c)) for c in parts.classes]
    ties = [f"        self.{_attribute(a)} = self.{_attribute(b)}" for a, b in parts.layout.ties]
    if ties:
        blocks[-1] = _insert_before_forward(blocks[-1], ties)
    blocks.append(LOAD.format(title=parts.title, frozen=_frozen(parts.frozen)).rstrip())
    blocks += parts.extra
    if parts.factors:
        rows = [f'        "{n}": {literal(f)},' for n, f in parts.factors.items()]
        blocks.append(GROUPS.format(title=parts.title, factors="\n".join(rows)).rstrip())
    blocks += parts.skeletons.values()
    names = dict(parts.functions)
    if re.search(r"\bConcat\b", "\n".join(blocks)):
        names["Concat"] = "concat"
    texts, imports = library(names)
    bases = [t for t in texts if t.startswith("class Concat")]
    others = [t for t in texts if t not in bases]
    subclassed = any("(Concat):" in b for b in blocks)
    blocks = [*bases, *blocks, *others] if subclassed else [*blocks, *bases, *others]
    body = "\n\n\n".join(blocks) + "\n"
    header = HEADER.format(
        title=parts.title,
        source=plain_text(parts.source),
        version=parts.version,
        errors="\n".join(errors) or "Not compared yet.",
    )
    return f"{header}\n{_imports(body, imports)}\n\n\n{body}"


def plain_text(text: str) -> str:
    """Return text from a file without what could end a docstring.

    >>> plain_text('a"b')
    'a b'
    """
    return re.sub(r"[^\w .,:;/()`=+@-]", " ", text)[:MAX_TEXT]


def _frozen(names: list[str]) -> str:
    if not names:
        return ""
    shown = literal(tuple(names))
    if len(shown) > 70:
        inner = "".join(f'        "{name}",\n' for name in names)
        shown = f"(\n{inner}    )"
    return FROZEN.format(names=shown)


def _attribute(path: str) -> str:
    """Return a dotted path as an expression: ``features[0].weight``."""
    return re.sub(r"\.(\d+)", r"[\1]", path)


def _insert_before_forward(text: str, lines: list[str]) -> str:
    head, middle, tail = text.partition("\n\n    def forward")
    return "\n".join([head, *lines]) + middle + tail


def _imports(body: str, extra: set[str]) -> str:
    lines = set(extra) | {"import torch"}
    if not re.search(r"\btorch\.", body):
        lines.discard("import torch")
    if re.search(r"\bF\.", body):
        lines.add("import torch.nn.functional as F")
    if re.search(r"\bAny\b", body):
        lines.add("from typing import Any")
    names = [n for n in ("Tensor", "nn") if re.search(rf"\b{n}\b", body)]
    lines.add(f"from torch import {', '.join(names)}")
    lines.add("from safetensors.torch import load_file")
    standard = sorted(line for line in lines if _package(line) not in ("torch", "safetensors"))
    others = sorted(lines - set(standard), key=lambda s: (_package(s), s.startswith("from"), s))
    others.sort(key=lambda s: (s.startswith("from"), s.replace(" as F", "")))
    return "\n\n".join("\n".join(group) for group in (standard, others) if group)


def _package(line: str) -> str:
    return line.split()[1].split(".")[0]


def library(names: dict[str, str]) -> tuple[list[str], set[str]]:
    """Return the source of library functions and their dependencies, and the imports."""
    texts: dict[str, str] = {}
    imports: set[str] = set()
    for name, module in names.items():
        source = (FUNCTIONS / f"{module}.py").read_text(encoding="utf-8")
        _take(name, source, texts, imports)
    return list(texts.values()), imports


def _take(name: str, source: str, texts: dict[str, str], imports: set[str]) -> None:
    """Add a definition of a module and its dependencies."""
    tree = ast.parse(source)
    definitions = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            definitions[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            definitions[node.targets[0].id] = node
    if name in texts:
        return
    node = definitions[name]
    decorators = [] if isinstance(node, ast.Assign) else node.decorator_list
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    text = "\n".join(source.splitlines()[first - 1 : node.end_lineno])
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    for other in definitions:
        if other in used and other != name and isinstance(definitions[other], ast.Assign):
            _take(other, source, texts, imports)
    texts[name] = text
    for other in definitions:
        if other in used and other != name:
            _take(other, source, texts, imports)
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            line = ast.get_source_segment(source, statement) or ""
            if "__future__" in line or _package(line) == "torch":
                continue
            if any((a.asname or a.name) in used for a in statement.names):
                imports.add(line)
