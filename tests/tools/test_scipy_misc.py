"""What `mx run` and `mx fix` give programs for `scipy.misc` computes what SciPy 1.1 did."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("PIL")

from mxnext_cli.run import scipy_misc
from tests.golden import HERE
from tests.golden.record.record_scipy_misc import list_answers

RECORDED = HERE / "scipy_misc.json"


def test_answers_are_those_of_scipy():
    expected = json.loads(RECORDED.read_text(encoding="utf-8"))
    actual = json.loads(json.dumps(list_answers(scipy_misc)))
    assert actual.keys() == expected.keys()
    assert [key for key in expected if actual[key] != expected[key]] == []
    assert sum(value == "ValueError" for value in expected.values()) < len(expected) / 2


def test_truth_values_are_pixels():
    """SciPy failed on them, because NumPy refuses to subtract truth values."""
    image = scipy_misc.toimage(np.array([[True, False]]))
    assert np.asarray(image).tolist() == [[255, 0]]


def test_images_of_one_bit_are_refused():
    """SciPy's had pixels that Pillow could not show."""
    with pytest.raises(ValueError, match="no image of mode '1'"):
        scipy_misc.toimage(np.ones((2, 2)), mode="1")
