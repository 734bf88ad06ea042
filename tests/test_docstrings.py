"""Every public name has a docstring, an example, and a sentence for each parameter."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pathlib
import tempfile
import types
from collections.abc import Iterator

import numpy as np
import pytest

import mxnet as mx
from mxnet.ops.declare import Op
from tests.batches import check_each, group_by
from tools.api_pages import PAGES, public_names
from tools.doc_coverage import Documented, documented, examine
from tools.run_page import UpToRounding

EXCEPTIONS = pathlib.Path(__file__).with_name("undocumented.txt")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def _incomplete() -> set[str]:
    return {
        f"{row.module}.{row.name}"
        for row in documented()
        if not (row.has_docstring and row.has_example and row.has_parameters)
    }


def test_public_names_are_documented_or_listed_exceptions() -> None:
    """The list of exceptions may only shrink: documented names must be removed."""
    listed = {line for line in EXCEPTIONS.read_text().split("\n") if line and line[0] != "#"}
    assert _incomplete() == listed


def test_undocumented_parameter_is_detected() -> None:
    def scale(x: float, factor: float) -> float:
        """Scale.

        Parameters
        ----------
        x
            A number.
        factor : float
        """
        return x * factor

    assert examine(scale, "example", "scale") == Documented(
        "example", "scale", has_docstring=True, has_example=False, missing_parameters=("factor",)
    )


def _generated(module: types.ModuleType, homes: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """Yield functions whose docstrings are in no source file; operators' examples run elsewhere."""
    for name, value in public_names(module, homes):
        source = getattr(getattr(value, "__code__", None), "co_filename", "")
        is_written = inspect.isclass(value) or source == getattr(module, "__file__", None)
        if not is_written and not isinstance(getattr(value, "op", None), Op):
            yield name, value


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if p.title.startswith(("mx.nd", "mx.np", "mx.random", "mx.sym"))],
    ids=lambda p: p.title,
)
def test_examples_of_generated_functions_run(page, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(UpToRounding(), optionflags=FLAGS)
    report: list[str] = []
    module = importlib.import_module(page.module)
    for name, value in _generated(module, page.homes):
        names = {**vars(inspect.getmodule(value) or module), "mx": mx, "nd": mx.nd, "np": np}
        examples = doctest.DocTestParser().get_doctest(value.__doc__ or "", names, name, None, None)
        runner.run(examples, out=report.append)
    assert not runner.failures, "".join(report)


# -- docstring examples -------------------------------------------------------------------------


ROOT = pathlib.Path(mx.__file__).parent


def _name(path: pathlib.Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _shows_operator(thing: object) -> bool:
    """Return whether something is an operator, or a function made of one."""
    return isinstance(thing, Op) or isinstance(getattr(thing, "op", None), Op)


MODULES = sorted(_name(path) for path in ROOT.rglob("*.py"))


PACKAGES = group_by(MODULES, lambda name: ".".join(name.split(".")[:3]))


@pytest.mark.parametrize("package", PACKAGES)
def test_docstring_examples_run(
    package: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each docstring sees its module's names, and mx, nd and np; files go to a temporary folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    check_each({name: name for name in PACKAGES[package]}, _run_examples)


def _run_examples(name: str) -> None:
    module = importlib.import_module(name)
    names = {**vars(module), "mx": mx, "nd": mx.nd, "np": np}
    runner = doctest.DocTestRunner(UpToRounding(), optionflags=FLAGS)
    report: list[str] = []
    for examples in doctest.DocTestFinder().find(module, name, globs=names):
        if not _shows_operator(vars(module).get(examples.name.rsplit(".", 1)[-1])):
            with mx.name.NameManager():  # automatic names count from 0
                runner.run(examples, out=report.append)
    mx.distributed.shutdown()  # examples may have joined a job; later tests have none
    assert not runner.failures, "".join(report)
