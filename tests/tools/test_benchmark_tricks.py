"""The table of tricks names what is there, and switches off what it says."""

from __future__ import annotations

import ast
import pathlib

import pytest

from benchmarks import tricks
from benchmarks.spread import describe
from mxnet.graph.optimize import NAMES

ROOT = pathlib.Path(tricks.__file__).parent.parent
# Passes that are not for speed: int8 models run by them, and memory is saved.
OTHER_PASSES = {"open_layers", "fuse_quantized", "recompute"}


@pytest.mark.parametrize("trick", tricks.TRICKS, ids=lambda trick: trick.name)
def test_files_and_tests_of_a_trick_exist(trick):
    assert trick.lines() > 50
    path, _, name = trick.test.partition("::")
    tree = ast.walk(ast.parse((ROOT / path).read_text()))
    functions = [node.name for node in tree if isinstance(node, ast.FunctionDef)]
    assert name in functions
    assert trick.without or trick.off(), "nothing switches it off"


@pytest.mark.parametrize("trick", tricks.TRICKS, ids=lambda trick: trick.name)
def test_attributes_that_switch_tricks_off_exist(trick):
    scope: dict = {}
    for line in ast.parse(trick.without).body:
        if isinstance(line, ast.Assign):
            for target in line.targets:
                if isinstance(target, ast.Attribute):
                    assert hasattr(scope[ast.unparse(target.value)], target.attr)
        else:
            exec(ast.unparse(line), scope)  # an import; the change itself is not made here


def test_every_pass_for_speed_has_a_row():
    assert {trick.name for trick in tricks.TRICKS} & set(NAMES) == set(NAMES) - OTHER_PASSES


def test_tricks_are_measured_on_and_off():
    trick = tricks.Trick("trick", "", "n = 2000", "sum(range(n))", (), "", without="n = 1\n")
    off = tricks.Trick("trick", "", "", "sum(range(m))", (), "", without="m = 1\n")
    on_seconds, off_seconds = tricks.measure(trick, {})
    assert on_seconds > 0 < off_seconds
    with pytest.raises(tricks.Failed, match="NameError"):
        tricks.measure(off, {})


def test_a_spread_is_the_largest_by_the_smallest():
    assert describe("step", "torch", [2e-3, 1e-3]).endswith(
        "1 / 1.5 / 2 ms, largest / smallest 2.00"
    )
