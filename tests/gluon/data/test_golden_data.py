"""Orders, batches, types, printed forms and transformed pictures are those of MXNet 1.9.1."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.data.vision import transforms
from tests.golden.data_programs import PROGRAMS, TRANSFORMS, answer, picture

RECORDED = Path(__file__).parent.parent.parent / "golden" / "data"
FACTS = json.loads((RECORDED / "facts.json").read_text(encoding="utf-8"))
PICTURES = dict(np.load(RECORDED / "transforms.npz"))
LEVEL = {"Compose/uint8": 1 / 255 / 0.2}  # one level of grey after what follows the resizing


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_mxnet_gives(name):
    ours, theirs = json.loads(json.dumps(answer(mx, name))), FACTS[name]
    if theirs == ["fails", "any"]:
        assert ours[0] == "fails"
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transformation_looks_as_in_mxnet(name):
    assert repr(TRANSFORMS[name](transforms)) == FACTS["repr"][name]


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transformed_picture_is_that_of_mxnet(name, dtype):
    ours = TRANSFORMS[name](transforms)(picture(mx, dtype)).asnumpy()
    theirs = PICTURES[f"{name}/{dtype}"]
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    within = 1 if theirs.dtype == np.uint8 else 1e-3 * max(1, np.abs(theirs).max())
    within = LEVEL.get(f"{name}/{dtype}", within) * 1.001
    assert np.abs(ours.astype("float64") - theirs.astype("float64")).max() <= within
