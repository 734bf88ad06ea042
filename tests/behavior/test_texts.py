"""Printed text, log lines and warnings of programs match MXNet 1.9.1."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mxnet as mx
from tests.batches import check_each
from tests.golden import HERE
from tests.golden.record.texts import PROGRAMS, run

RECORDED = json.loads((HERE / "texts.json").read_text(encoding="utf-8"))
# Programs whose text differs on purpose, and why.
DIFFERENT = {
    "layer contrib 4": "a hint about graphics cards that says nothing on others",
    "symbol block": "types are known here",
    "error infer shape": "the message holds the shapes, nothing is printed beside it",
    "error infer type": "the message holds the types, nothing is printed beside it",
    "error duplicate": "two variables of one name are bound to one array",
    "error kv unknown": "an unknown store is an error, not a local one",
    "error batch norm": "sizes that do not fit are an error",
    "error iter shapes": "arrays of different lengths are an error",
    "error optimize_for": "an unknown backend is a warning that names the others",
    "error loss shapes": "the message names the layer",
    "error executor shape": "the message names both shapes",
    "error expand_dims": "the message names the rank",
    "error axis": "the message names the rank",
    "error concat": "the message names both inputs",
}
EXTRA_LINES = ("Multiply-adds: ", "Memory: ")  # the end of `net.summary`


def test_every_program_is_recorded() -> None:
    assert list(RECORDED) == list(PROGRAMS)
    assert set(DIFFERENT) <= set(PROGRAMS)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the output of each program, in the order in which MXNet ran them."""
    mx.util._log_once.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("texts"))
        return {key: run(mx, np, code) for key, code in PROGRAMS.items()}


def _check(answers: dict[str, Any], compare: Callable[[str, Any, Any], None]) -> None:
    def check(key: str) -> None:
        compare(key, answers[key], RECORDED[key])

    check_each({key: key for key in PROGRAMS if key not in DIFFERENT}, check)


@pytest.mark.slow
def test_printed_lines_match_mxnet(answers: dict[str, Any]) -> None:
    def compare(key: str, ours: Any, theirs: Any) -> None:
        lines = [line for line in ours["out"] if not line.startswith(EXTRA_LINES)]
        assert lines == theirs["out"]

    _check(answers, compare)


@pytest.mark.slow
def test_logged_lines_match_mxnet(answers: dict[str, Any]) -> None:
    def compare(key: str, ours: Any, theirs: Any) -> None:
        assert ours["log"] == theirs["log"]

    _check(answers, compare)


@pytest.mark.slow
def test_warnings_match_mxnet(answers: dict[str, Any]) -> None:
    """Compare categories and the first words; our warnings may be longer."""

    def begin(warning: str) -> list[str]:
        return warning.split()[:6]

    def compare(key: str, ours: Any, theirs: Any) -> None:
        assert list(map(begin, ours["warn"])) == list(map(begin, theirs["warn"]))

    _check(answers, compare)


@pytest.mark.slow
def test_error_messages_contain_the_phrases_of_mxnet(answers: dict[str, Any]) -> None:
    def compare(key: str, ours: Any, theirs: Any) -> None:
        assert (ours["error"] is None) == (theirs["error"] is None)
        if ours["error"] is not None:
            assert [p for p in theirs["error"][1] if p not in ours["error"][1]] == []

    _check(answers, compare)
