"""Invalid operator calls raise the exception types of MXNet 1.9.1, in every way to call them.

An `except` clause written for MXNet catches our error. We do not raise where MXNet does not, except
for the cases in `docs/differences.md`. The ways to call an operator raise compatible types.
"""

from __future__ import annotations

import json

import pytest

import mxnet as mx
from tests.batches import check_each
from tests.golden import HERE
from tests.golden.record.operator_mistakes import Mistake, error_of, mistakes, modes_of

MISTAKES = mistakes()
RECORDED = json.loads((HERE / "operator_mistakes.json").read_text(encoding="utf-8"))
# MXNet reads out of bounds, ignores attributes, or assigns arguments to other positions.
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
# More or fewer inputs: named by binding, or read as another argument of the function.
OTHER_COUNT = ("one input less", "one input more")
OF_MISSING_INPUTS = {mx.MXNetError, mx.error.InvalidValue}
PARTS = 5
# Kernels that compute in the dtype of the first array; executors infer one dtype, as in MXNet.
MIXES_DTYPES = {
    *("_contrib_interleaved_matmul_encdec_qk", "_contrib_box_iou", "_contrib_box_encode"),
    *("_contrib_box_decode", "_contrib_MultiBoxTarget", "_contrib_MultiBoxDetection"),
    *("Correlation", "_contrib_hawkesll", "_contrib_DeformableConvolution", "_onehot_encode"),
    *("fill_element_0index", "khatri_rao", "SoftmaxOutput", "LinearRegressionOutput"),
    *("LogisticRegressionOutput", "MAERegressionOutput", "SVMOutput", "softmax_cross_entropy"),
    *("LayerNorm", "GroupNorm", "InstanceNorm", "multi_all_finite", "ROIPooling"),
    *("_contrib_ROIAlign", "_contrib_RROIAlign", "_slice_assign"),
}


def recorded_class(mode: str, mistake: Mistake) -> str:
    """Return the class that MXNet raised, "ok" or "Crash"."""
    answers = RECORDED[mistake.op][mistake.what]
    return answers if isinstance(answers, str) else answers[modes_of(mistake).index(mode)]


def check_class(mode: str, mistake: Mistake, error: Exception | None) -> None:
    """Raise if our error is not of the type that MXNet raised."""
    if error is None:
        return
    assert str(error), "an error without words"
    recorded = recorded_class(mode, mistake)
    kinds = [kind.__name__ for kind in type(error).__mro__]
    if recorded == "ok":
        assert mistake.op in GOES_ON and isinstance(error, mx.MXNetError), error
    elif recorded != "Crash" and mistake.what not in OTHERWISE.get(mistake.op, ()):
        assert recorded in kinds, f"{recorded} in MXNet: {error!r}"


def check_agreement(mistake: Mistake, errors: dict[str, Exception | None]) -> None:
    """Raise if one way to call raises an incompatible error type."""
    if mistake.what in OTHER_COUNT or "executor" not in errors:
        return
    classes = {mode: type(error) for mode, error in errors.items()}
    module, executor = classes.pop("module"), classes["executor"]
    # A Module creates its parameters from inferred shapes, which can be unknown or different.
    assert module in (type(None), executor) or issubclass(module, mx.MXNetError), module
    if mistake.op in MIXES_DTYPES and executor is mx.error.DTypeError:
        del classes["executor"]
    kinds = set(classes.values())
    assert len(kinds) == 1 or kinds <= OF_MISSING_INPUTS, classes


def check(mistake: Mistake) -> None:
    """Make one invalid call in each way."""
    errors = {mode: error_of(mx, mode, mistake) for mode in modes_of(mistake)}
    for mode, error in errors.items():
        check_class(mode, mistake, error)
    check_agreement(mistake, errors)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_error_types_match_mxnet_in_every_call_mode(part: int) -> None:
    cases = {
        f"{op}: {what}": mistake
        for op in sorted(MISTAKES)[part::PARTS]
        for what, mistake in MISTAKES[op].items()
    }
    check_each(cases, check)


def test_every_operator_error_case_is_recorded() -> None:
    assert {op: sorted(m) for op, m in RECORDED.items()} == {
        op: sorted(m) for op, m in MISTAKES.items()
    }
