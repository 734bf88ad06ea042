"""Operators with sparse inputs match MXNet 1.9.1 in every way to call them.

Compared are values, dtypes, shapes and storage types of outputs and gradients, stored indices, and
error types. Where MXNet raises and we do not, outputs equal those of the eager call.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import mxnet as mx
from tests.batches import check_each
from tests.golden import HERE
from tests.golden.record.sparse_modes import MODES, Case, cases, describe

CASES = cases()
RECORDED = json.loads((HERE / "sparse_modes.json").read_text(encoding="utf-8"))
# Intended differences: the modes, the operator, and the reason.
_SINGULAR = "the gradient at 0 is finite here"
_MEMORY = "MXNet leaves what was in memory"
_ROUNDING = "gradients that cancel: rounding decides what is stored"
_ZEROS = "zeros are not stored"
DIFFERENT = {
    r".*:(broadcast_power|_power|_power_scalar|_rpower_scalar|prod|nanprod|norm)\(.*": _SINGULAR,
    r".*:gammaln\(.*float64.*": "infinity; MXNet gives the largest number",
    r".*:RNN\(.*": _MEMORY,
    r".*:(Softmax|SVM|L.*Regression|MAERegression)Output\(.*": _MEMORY,
    r".*:_contrib_index_copy\(.*": _MEMORY,
    r".*:(InstanceNorm|GroupNorm|LayerNorm|BatchNorm(_v1)?)\(.*": _ROUNDING,
    r".*:_contrib_quadratic\(csr.*": _ZEROS,
    r".*:dot\(default\[3, 3\], csr\[3, 2\].*": _ZEROS,
    r"(executor|module):(abs|relu|sign|square)\(row_sparse.*": _ZEROS,
    r"(executor|module):_mul_scalar\(.*scalar=0.0\)": _ZEROS,
    r".*:_image_flip_top_bottom\(.*": "the gradient is flipped back",
}


def is_equal(ours: str, theirs: str) -> bool:
    """Return whether two descriptions of arrays are equal up to rounding."""
    one, other = ours.split("|"), theirs.split("|")
    if one[:3] != other[:3] or one[4:] != other[4:]:
        return False
    numbers = (np.array(part[3].split(), "float64") for part in (one, other))
    return np.allclose(*numbers, rtol=2e-4, atol=1e-5, equal_nan=True)


def check(mode: str, case: Case) -> None:
    """Raise if one way to call differs from the recording."""
    recorded = RECORDED["cases"][case.key][mode]
    try:
        outs, grads = MODES[mode](mx, case)
        described = [[describe(array) for array in part] for part in (outs, grads)]
    except Exception as error:
        assert isinstance(recorded, str), error
        assert recorded in [kind.__name__ for kind in type(error).__mro__], error
        return
    if isinstance(recorded, str):  # raises in MXNet
        theirs = [[describe(out) for out in MODES["eager"](mx, case)[0]], described[1]]
    else:
        arrays = RECORDED["arrays"]
        theirs = [[arrays[number] for number in part] for part in recorded]
    for ours_of, theirs_of in zip(described, theirs, strict=True):
        for one, other in zip(ours_of, theirs_of, strict=True):
            assert is_equal(one, other), f"{one}\n    for {other}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
def test_operators_with_sparse_inputs_match_mxnet(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "0")
    compared = {
        name: case
        for name, case in ((f"{mode}:{key}", case) for key, case in CASES.items())
        if not any(re.fullmatch(pattern, name) for pattern in DIFFERENT)
    }
    check_each(compared, lambda case: check(mode, case))


def test_every_case_is_recorded() -> None:
    assert sorted(RECORDED["cases"]) == sorted(CASES)
