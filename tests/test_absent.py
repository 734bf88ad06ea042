"""Modules that MXNet had and MXNext does not have say what to use instead."""

from __future__ import annotations

import importlib

import pytest

import mxnet as mx
from mxnet.compatibility import INSTEAD


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_an_absent_module_explains_itself(name: str) -> None:
    with pytest.raises(ImportError, match=r"is not in MXNext\. .+\.$"):
        importlib.import_module(f"mxnet.{name}")


def test_from_import_explains_too_and_hasattr_stays_quiet() -> None:
    with pytest.raises(ImportError, match="is not in MXNext"):
        from mxnet import notebook  # noqa: F401
    assert not hasattr(mx, "notebook")


def test_names_that_never_were_are_plain_import_errors() -> None:
    with pytest.raises(ImportError, match="cannot import name"):
        from mxnet import no_such_thing  # noqa: F401
