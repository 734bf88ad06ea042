"""The examples in docstrings of every module give what they show.

Those of operators are run by `tests/grammar/test_documentation.py`.
"""

from __future__ import annotations

import doctest
import importlib
import pathlib
import tempfile

import numpy as np
import pytest

import mxnet as mx
from mxnet.ops.declare import Op
from tools.run_page import UpToRounding

ROOT = pathlib.Path(mx.__file__).parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def _name(path: pathlib.Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _shows_operator(thing: object) -> bool:
    """Return whether something is an operator, or a function made of one."""
    return isinstance(thing, Op) or isinstance(getattr(thing, "op", None), Op)


MODULES = sorted(_name(path) for path in ROOT.rglob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each docstring sees its module's names, and mx, nd and np; files go to a fresh folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
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
