"""Write the generated tables of the documentation: operators and environment variables.

Run ``python -m tools.tables``. `docs/operators.md` lists every operator as it is registered, marks
those that `docs/differences.md` names, and ends with what is absent. MXNet's names were recorded in
`tests/golden/data/operator_names.json`. The table of variables in
`docs/coming-from-mxnet.md` comes from `mxnet._process.env`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from mxnet._process import env
from mxnet.ops import registry
from mxnet.ops.attributes import to_string
from mxnet.ops.declare import Op
from mxnet.ops.frontend import namespace_of
from tests.golden import HERE
from tests.grammar.sampling import Row, families, rows_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "operators.md"
DIFFERENCES = ROOT / "docs" / "differences.md"
VARIABLES_PAGE = ROOT / "docs" / "coming-from-mxnet.md"
VARIABLES_BEGIN, VARIABLES_END = "<!-- made by tools/tables.py -->", "<!-- end -->"
NAMES = HERE / "operator_names.json"

SECTIONS = {
    "op": "`mx.nd` and `mx.sym`",
    "contrib": "`mx.nd.contrib` and `mx.sym.contrib`",
    "image": "`mx.nd.image` and `mx.sym.image`",
    "linalg": "`mx.nd.linalg` and `mx.sym.linalg`",
    "random": "`mx.nd.random` and `mx.sym.random`",
    "sparse": "`mx.nd.sparse` and `mx.sym.sparse`",
    "_internal": "`mx.nd._internal` and `mx.sym._internal`",
}
HEAD = """# Operators

An operator is called by any of its names: `mx.nd.X` runs it, `mx.sym.X` puts it into a graph. \
MXNet's prefixes say where a name is shown: `_contrib_box_nms` is `mx.nd.contrib.box_nms`.

- **Inputs**: `name?` may be absent, `name!` is changed in place (auxiliary states and what \
updates keep), `*name` is any number of arrays.
- **Attributes**: `name` must be given, `name=value` has a default.
- **Outputs**: how many, or their names, or the attributes that decide.
- **Gradient**: *torch* is the derivative as torch computes it, *own* a rule of MXNet's, *none* \
means that no gradient flows.

A star marks operators that [Differences](differences.md) names."""
COLUMNS = (
    "Operator | Inputs | Attributes | Outputs | Gradient | Other names\n---|---|---|---|---|---"
)
ABSENT_TITLE = "## Absent"
ABSENT = """Names that MXNet 1.9.1 registered and MXNext does not know, without those of \
`_backward` operators, which torch's autograd makes needless."""
ABSENT_GROUPS = {
    "_npi_": "of `mx.np` (`_npi_`)",
    "_np_": "of `mx.np` (`_np_`)",
    "_npx_": "of `mx.npx` (`_npx_`)",
    "_contrib_quantized_": "computing in 8-bit integers",
    "_contrib_dgl_": "sampling graphs (functions of `mx.nd.contrib`, not of symbols)",
    "_contrib_edge_id": "numbering edges (a function of `mx.nd.contrib`, not of symbols)",
    "_sg_": "made by MXNet's graph passes",
    "": "others",
}


# -- one operator -----------------------------------------------------------------------------


def inputs_of(op: Op) -> str:
    """Return the inputs with their marks."""
    if op.variadic is not None:
        return f"`*{op.variadic}{'!' if op.mutates else ''}`"
    marked = []
    for i in op.inputs:
        mark = "!" if i.aux or i.name in op.mutates else "?" if i.optional else ""
        marked.append(f"`{i.name}{mark}`")
    return " ".join(marked)


def attributes_of(op: Op) -> str:
    """Return the attributes with their defaults."""
    texts = []
    for a in op.attributes.values():
        default = "" if a.required else f"={to_string(a.default) or repr('')}"
        texts.append(f"`{a.name}{default}`")
    return " ".join(texts)


class _Watched(dict):
    """Attributes that remember which of them were looked at."""

    def __init__(self, op: Op) -> None:
        super().__init__({**dict.fromkeys(op.required, 1), **op.defaults})
        self.read: list[str] = []

    def __getitem__(self, name: str) -> Any:
        self.read.append(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Note the name, then answer as a dict does."""
        self.read.append(name)
        return super().get(name, default)


def outputs_of(op: Op) -> str:
    """Return the names or number of the outputs, or which attributes decide it."""
    attrs = _Watched(op)
    try:
        number = op.number_of_outputs(attrs)
    except Exception:  # user code decides, and there is none here
        return "by " + " ".join(f"`{name}`" for name in dict.fromkeys(attrs.read or op.required))
    if attrs.read:
        return "by " + " ".join(f"`{name}`" for name in dict.fromkeys(attrs.read))
    names = op.names_of_outputs(attrs)
    if names is None or names == ("output",):  # a single output is called that anyway
        return str(number)
    return " ".join(f"`{name}`" for name in names)


# -- gradients --------------------------------------------------------------------------------


def sample_rows() -> dict[str, list[Row]]:
    """Return the sample rows of each operator, by its first name."""
    rows: dict[str, list[Row]] = {}
    for family in families():
        for row in rows_of(family):
            rows.setdefault(registry.get(row.op).name, []).append(row)
    return rows


def gradient_of(op: Op, rows: Iterable[Row]) -> str:
    """Return what differentiates an operator: torch, a rule of its own, or nothing."""
    kind = "torch" if op.gradient_rule is None else "own"
    if op.mutates or (not op.inputs and op.variadic is None):
        return "none"
    rows = list(rows)
    return kind if not rows or any(_has_gradient(op, row) for row in rows) else "none"


def _has_gradient(op: Op, row: Row) -> bool:
    """Run a row with every floating-point input asking for its gradient."""
    tensors = [torch.from_numpy(a) for a in row.arrays()]
    raw = {k: v for k, v in row.attrs.items() if k in op.attributes}
    if op.count in op.attributes:
        raw.setdefault(op.count, len(tensors))
    typed = op.parse(raw)
    if op.variadic is None:
        by_name = dict(zip(op.names_of_inputs(op.complete(typed)), tensors, strict=False))
        tensors = [by_name.get(i.name) for i in op.inputs]
        asking = [t for t, i in zip(tensors, op.inputs, strict=True) if t is not None and not i.aux]
    else:
        asking = tensors
    asking = [t.requires_grad_() for t in asking if t.is_floating_point()]
    out = op(*tensors, **typed, **op.context_for(True, torch.device("cpu")))
    outs = [o for o in (out if isinstance(out, tuple | list) else [out]) if o.requires_grad]
    if not asking or not outs:
        return False
    heads = [torch.ones_like(o) for o in outs]
    gradients = torch.autograd.grad(outs, asking, heads, allow_unused=True)
    return any(g is not None for g in gradients)


# -- the page ---------------------------------------------------------------------------------


def differing() -> set[str]:
    """Return the operators that the page on differences names at the head of an item."""
    text = DIFFERENCES.read_text(encoding="utf-8")
    heads = re.findall(r"^- ((?:`\w+`(?:, )?)+):", text, re.M)
    return {name for head in heads for name in re.findall(r"`(\w+)`", head)}


def row_of(op: Op, rows: Iterable[Row], differs: bool) -> str:
    """Return the operator's line of the table."""
    others = " ".join(f"`{name}`" for name in op.aliases)
    cells = (inputs_of(op), attributes_of(op), outputs_of(op), gradient_of(op, rows), others)
    return " | ".join((f"`{op.name}`" + (" \\*" if differs else ""), *cells))


def tables() -> list[str]:
    """Return a table for each namespace."""
    rows, marked = sample_rows(), {registry.get(name).name for name in differing()}
    lines: dict[str, list[str]] = {home: [] for home in SECTIONS}
    for op in sorted(registry.operators(), key=lambda op: op.name.lower()):
        home = namespace_of(op.name)[0] or "_internal"
        lines[home].append(row_of(op, rows.get(op.name, ()), op.name in marked))
    return [
        f"## {title} ({len(lines[home])})\n\n{COLUMNS}\n" + "\n".join(lines[home])
        for home, title in SECTIONS.items()
        if lines[home]
    ]


def absent_names() -> list[str]:
    """Return the names of MXNet that nothing is registered under, aliases included."""
    recorded = json.loads(NAMES.read_text(encoding="utf-8"))["aliases"]
    every = {name for first, others in recorded.items() for name in (first, *others)}
    return sorted(every - set(registry.names()))


def absent() -> str:
    """Return the absent names in groups."""
    groups: dict[str, list[str]] = {prefix: [] for prefix in ABSENT_GROUPS}
    for name in absent_names():
        prefix = next(p for p in ABSENT_GROUPS if name.startswith(p))
        groups[prefix].append(f"`{name}`")
    return "\n".join(
        f"- {len(names)} {ABSENT_GROUPS[prefix]}: {' '.join(names)}"
        for prefix, names in groups.items()
        if names
    )


def page() -> str:
    """Return the whole page."""
    count = sum(1 for _ in registry.operators())
    counted = f"{count} operators under {len(registry.names())} names."
    parts = [HEAD, counted, *tables()]
    return "\n\n".join([*parts, ABSENT_TITLE, ABSENT, absent()]) + "\n"


# -- environment variables ----------------------------------------------------------------------


def shown_default(variable: env.Variable) -> str:
    """Return a default as one writes it in a shell."""
    if variable.kind is bool:
        return f"`{int(variable.default)}`"
    text = str(variable.default).replace("\\", "/")  # the same page on every system
    return f"`{text}`" if text else ""


def variable_table() -> str:
    """Return the table in Markdown."""
    lines = ["Variable | Type | Default | Meaning", "---|---|---|---"]
    for v in sorted(env.VARIABLES.values()):
        lines.append(f"`{v.name}` | {v.kind.__name__} | {shown_default(v)} | {v.meaning}")
    return "\n".join(lines)


def with_variables(page: str) -> str:
    """Return the page with the part between the marks rewritten."""
    before, _, rest = page.partition(VARIABLES_BEGIN)
    _, _, after = rest.partition(VARIABLES_END)
    return f"{before}{VARIABLES_BEGIN}\n\n{variable_table()}\n\n{VARIABLES_END}{after}"


def main() -> None:
    """Write both."""
    variables = with_variables(VARIABLES_PAGE.read_text(encoding="utf-8"))
    for path, text in ((PAGE, page()), (VARIABLES_PAGE, variables)):
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
