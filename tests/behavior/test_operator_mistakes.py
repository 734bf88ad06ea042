"""Common mistakes with every operator raise, in each way to call it, what MXNet 1.9.1 raised.

An `except` that was written for MXNet catches our error. Where MXNet refuses, we may not; where it
goes on, an error of ours is one that `docs/differences.md` speaks of.
"""

from __future__ import annotations

import json

import pytest

import mxnet as mx
from tests.batches import check_each
from tests.golden import HERE
from tests.golden.operator_mistakes import MODES, Mistake, error_of, mistakes, modes_of

MISTAKES = mistakes()
RECORDED = json.loads((HERE / "operator_mistakes.json").read_text(encoding="utf-8"))
# Where MXNet reads beyond its arrays, ignores attributes, or reads arguments by other positions.
GOES_ON = {
    *("BatchNorm", "_contrib_BatchNormWithReLU", "Correlation", "LRN", "_contrib_MultiBoxPrior"),
    *("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "where"),
    *("_contrib_allclose", "_contrib_box_encode", "_contrib_interleaved_matmul_encdec_qk"),
    *("_contrib_interleaved_matmul_selfatt_qk", "_contrib_interleaved_matmul_selfatt_valatt"),
    *("_eye", "_image_crop", "_linalg_potrf", "_linalg_potri", "_rdiv_scalar", "stack"),
}
# Functions of Python: arguments that are missing, or in other positions.
OTHERWISE = {
    "cast_storage": ("one input less", "stype is left out"),
    "_linalg_potrf": ("one input more",),
    "_linalg_potri": ("one input more",),
}


def recorded_class(mode: str, mistake: Mistake) -> str:
    """Return the class that MXNet raised, "ok" or "Crash"."""
    answers = RECORDED[mistake.op][mistake.what]
    return answers if isinstance(answers, str) else answers[modes_of(mistake).index(mode)]


def check(mode: str, mistake: Mistake) -> None:
    """Raise if our error is one that an old program does not expect."""
    error = error_of(mx, mode, mistake)
    if error is None:
        return
    assert str(error), "an error without words"
    recorded = recorded_class(mode, mistake)
    kinds = [kind.__name__ for kind in type(error).__mro__]
    if recorded == "ok":
        assert mistake.op in GOES_ON and isinstance(error, mx.MXNetError), error
    elif recorded != "Crash" and mistake.what not in OTHERWISE.get(mistake.op, ()):
        assert recorded in kinds, f"{recorded} in MXNet: {error!r}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
def test_an_old_except_clause_catches_it(mode: str) -> None:
    cases = {
        f"{op}: {what}": mistake
        for op, by_name in MISTAKES.items()
        for what, mistake in by_name.items()
        if mode in modes_of(mistake)
    }
    check_each(cases, lambda mistake: check(mode, mistake))


def test_every_mistake_is_recorded() -> None:
    assert {op: sorted(m) for op, m in RECORDED.items()} == {
        op: sorted(m) for op, m in MISTAKES.items()
    }
