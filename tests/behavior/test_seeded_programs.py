"""Programs that seed NumPy and Python give the batches and numbers of MXNet 1.9.1."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mxnet as mx
from tests.golden import HERE
from tests.golden.record import seeded_programs

ANSWERS = json.loads((HERE / "seeded_programs.json").read_text(encoding="utf-8"))


@pytest.mark.filterwarnings("ignore:mxnet.model.FeedForward")
@pytest.mark.parametrize("name", seeded_programs.PROGRAMS)
def test_seeded_programs_match_mxnet(name: str) -> None:
    """Compare sample orders, losses, metrics and the random state afterwards."""
    rows = seeded_programs.run(mx, name)
    assert len(rows) == len(ANSWERS[name])
    for number, (row, wanted) in enumerate(zip(rows, ANSWERS[name], strict=True)):
        np.testing.assert_allclose(row, wanted, rtol=1e-3, atol=1e-4, err_msg=f"row {number}")
