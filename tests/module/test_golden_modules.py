"""Modules and recurrent cells compute, name and log what MXNet 1.9.1 does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from tests.golden.module_programs import PROGRAMS

GOLDEN = Path(__file__).parents[1] / "golden"
DECIMALS = re.compile(r"\d+\.\d{6}")  # values of metrics, whose last digit may differ
TEXTS = json.loads((GOLDEN / "modules.json").read_text())


@pytest.fixture(scope="module")
def arrays():
    with np.load(GOLDEN / "modules.npz") as file:
        return dict(file)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_mxnet(name, arrays):
    program, settings = PROGRAMS[name]
    found = program(mx, **settings)
    wanted = {
        k.partition("/")[2]: v for k, v in (arrays | TEXTS).items() if k.startswith(f"{name}/")
    }
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        if isinstance(value, list):
            assert_same_lines(found[key], value)
        else:
            np.testing.assert_allclose(found[key], value, rtol=2e-4, atol=2e-5, err_msg=key)


def assert_same_lines(found, wanted):
    assert [DECIMALS.sub("#", line) for line in found] == [DECIMALS.sub("#", x) for x in wanted]
    numbers, others = (list(map(float, DECIMALS.findall(" ".join(x)))) for x in (found, wanted))
    np.testing.assert_allclose(numbers, others, atol=1e-5)
