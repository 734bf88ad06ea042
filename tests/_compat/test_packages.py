"""Programs that use MXNet as third-party packages do, compared with MXNet 1.9.1."""

from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
import pytest

import mxnet as mx
from tests.golden import HERE
from tests.golden.record.package_programs import PACKAGES, SEAMS

ANSWERS = json.loads((HERE / "packages.json").read_text(encoding="utf-8"))


def _compare(made, wanted):
    assert len(made) == len(wanted)
    for array, answer in zip(made, wanted, strict=True):
        assert list(array.shape) == answer["shape"]
        host = array.asnumpy().ravel()
        scale = max(1.0, float(np.abs(answer["values"]).max(initial=0)))
        np.testing.assert_allclose(host, answer["values"], rtol=1e-3, atol=1e-4 * scale)


@pytest.mark.parametrize("name", SEAMS)
def test_package_usage_patterns_match_mxnet(name):
    _compare(SEAMS[name](mx), ANSWERS[name])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of the packages
@pytest.mark.parametrize("name", PACKAGES)
def test_installed_packages_match_mxnet(name):
    if find_spec(name) is None:
        pytest.skip(f"the package {name} is not installed")
    try:
        made = PACKAGES[name](mx)
    except ModuleNotFoundError as error:
        pytest.skip(f"{name} needs the package {error.name}")
    _compare(made, ANSWERS[name])
