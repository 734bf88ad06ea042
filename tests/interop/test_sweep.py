"""Every operator as torch functions and in `.pt2` files that run without mxnet."""

from __future__ import annotations

import pytest

from tests import without_mxnet
from tools import conversions
from tools.conversions import YES, sweep

# Operators that cannot be converted, with a part of the error message. May only shrink.
CANNOT = {
    "CTCLoss": "loss of training",
    "_contrib_calibrate_entropy": "outside of torch",
    "_image_random_brightness": "random numbers",
    "_image_random_color_jitter": "random numbers",
    "_image_random_contrast": "random numbers",
    "_image_random_flip_left_right": "random numbers",
    "_image_random_flip_top_bottom": "random numbers",
    "_image_random_hue": "random numbers",
    "_image_random_lighting": "random numbers",
    "_image_random_saturation": "random numbers",
    "_image_resize": "outside of torch",
    "_npi_bincount": "size depends on values",
    "_npi_insert_tensor": "size depends on values",
    "_npi_share_memory": "where arrays lie in memory",
}


STEP = 3  # a part of all `.pt2` files, some of each family; all of them take a minute


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_operators_convert_to_torch_or_are_listed_exceptions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every third is written to a file; ``python -m tools.conversions`` prints the whole table."""
    monkeypatch.setattr(conversions, "subprocess", without_mxnet)
    outcomes = {o.operator: o for o in sweep(count=1, targets=("torch", "pt2"), step=STEP)}
    failed = {n: o.torch for n, o in outcomes.items() if o.torch != YES}
    assert failed.keys() == CANNOT.keys(), failed
    assert {n: r for n, r in failed.items() if CANNOT[n] not in r} == {}
    assert len(outcomes) > 480
    written = {n: o.pt2 for n, o in outcomes.items() if o.pt2 != "no sample" and n not in CANNOT}
    assert {n: r for n, r in written.items() if r != YES} == {}
    assert len(written) > 480 / STEP
