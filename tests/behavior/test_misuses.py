"""Errors of invalid calls have the exception types of MXNet 1.9.1."""

from __future__ import annotations

import json
import logging
from typing import Any

import numpy as np
import pytest

import mxnet as mx
from tests.batches import check_each
from tests.golden import HERE
from tests.golden.record.misuses import EXPRESSIONS, SETUP

RECORDED = json.loads((HERE / "misuses.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the names that the expressions use; files go to a temporary folder."""
    names = {"mx": mx, "np": np}
    exec(SETUP, names)
    logging.disable(logging.CRITICAL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("misuses"))
        yield names
    logging.disable(logging.NOTSET)


def test_every_error_case_is_recorded() -> None:
    assert sorted(RECORDED) == sorted(EXPRESSIONS)


@pytest.mark.filterwarnings("ignore")
def test_error_has_the_exception_type_of_mxnet(space: dict[str, Any]) -> None:
    def check(expression: str) -> None:
        with pytest.raises(BaseException) as caught:
            repr(eval(expression, space))
        assert RECORDED[expression] in [kind.__name__ for kind in caught.type.__mro__]

    check_each({e: e for e in EXPRESSIONS}, check)
