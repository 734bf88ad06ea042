"""Count the public names that have a docstring, an example and a sentence for each parameter.

Run ``python -m tools.doc_coverage``; ``--missing`` lists what is not there.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Iterator

from mxnet.ops.documentation import parameter_items, sections
from tools.api_pages import PAGES, ReferencePage, public_names

__all__ = ["Documented", "documented", "examine", "main"]

IMPLIED = {"self", "cls"}
# Public modules that have no page of their own in the reference.
MORE = tuple(
    ReferencePage(f"mxnet.{module}", f"mx.{module}", homes)
    for module, homes in (
        ("attribute", ()),
        ("contrib.autograd", ()),
        ("contrib.io", ()),
        ("contrib.svrg_optimization.svrg_module", ()),
        ("contrib.tensorboard", ()),
        ("contrib.text.utils", ()),
        ("engine", ()),
        ("error", ()),
        ("gluon.contrib.cnn", ()),
        ("gluon.contrib.data", ()),
        ("gluon.contrib.data.text", ()),
        ("gluon.data.batchify", ()),
        ("gluon.model_zoo.model_store", ()),
        ("library", ()),
        ("log", ()),
        ("memonger", ()),
        ("name", ()),
        ("numpy_extension.image", ("mxnet.ndarray.op", "mxnet.image")),
        ("numpy_extension.random", ()),
        ("registry", ()),
        ("rtc", ()),
        ("symbol.image", ("mxnet.symbol.op",)),
        ("symbol.linalg", ("mxnet.symbol.op",)),
        ("symbol.random", ("mxnet.symbol.op",)),
        ("symbol.sparse", ("mxnet.symbol.op",)),
        ("tracking", ()),
    )
)


@dataclasses.dataclass(frozen=True)
class Documented:
    """What the docstring of a public name has."""

    module: str
    name: str
    has_docstring: bool
    has_example: bool
    missing_parameters: tuple[str, ...]

    @property
    def has_parameters(self) -> bool:
        """Whether there is a sentence for each parameter."""
        return self.has_docstring and not self.missing_parameters


def _parameters(value: object) -> list[str]:
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
    return [
        p.name
        for p in signature.parameters.values()
        if p.kind is not p.VAR_KEYWORD and p.name not in IMPLIED and not p.name.startswith("_")
    ]


def _sentences(text: str) -> set[str]:
    """Return the parameters that a docstring has a sentence for."""
    parts = sections(text)
    items = parameter_items(parts.get("Parameters", "") + "\n" + parts.get("Other Parameters", ""))
    return {name for name, (_, sentence) in items.items() if sentence}


def examine(value: object, module: str, name: str) -> Documented:
    """Return what the docstring of a class or a function has."""
    text = getattr(value, "__doc__", None) or ""
    explained = _sentences(text)
    missing = tuple(p for p in _parameters(value) if p not in explained)
    return Documented(module, name, bool(text.strip()), ">>> " in text, missing)


def documented() -> Iterator[Documented]:
    """Yield every public name of the pages of the reference, and of `MORE`."""
    for page in (*PAGES, *MORE):
        module = importlib.import_module(page.module)
        for name, value in public_names(module, page.homes):
            yield examine(value, page.title, name)


def main(arguments: list[str] | None = None) -> int:
    """Print the counts by module, or what is missing."""
    arguments = sys.argv[1:] if arguments is None else arguments
    rows: dict[str, list[Documented]] = {}
    for row in documented():
        rows.setdefault(row.module, []).append(row)
    if "--missing" in arguments:
        for row in (r for names in rows.values() for r in names):
            if not (row.has_example and row.has_parameters):
                example = "" if row.has_example else "  no example"
                print(f"{row.module}.{row.name}: {', '.join(row.missing_parameters)}{example}")
        return 0
    rows["all"] = [row for names in rows.values() for row in names]
    print(f"{'module':42}{'names':>7}{'docstring':>11}{'example':>9}{'parameters':>12}")
    for module, names in rows.items():
        docs, examples, parameters = (
            sum(getattr(r, f"has_{key}") for r in names)
            for key in ("docstring", "example", "parameters")
        )
        print(f"{module:42}{len(names):>7}{docs:>11}{examples:>9}{parameters:>12}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
