"""Forward and backward of every operator match MXNet 1.9.1."""

from __future__ import annotations

import numpy as np

import mxnet as mx
from tests.grammar.calling import arrays_of, call, run_backward
from tests.grammar.conftest import golden_file
from tests.grammar.properties import check_all, for_rows
from tests.grammar.sampling import Row


def _close(row: Row, given: np.ndarray, wanted: np.ndarray) -> None:
    wide = 20 if wanted.dtype == np.float16 else 1
    np.testing.assert_allclose(given, wanted, rtol=row.rtol * wide, atol=row.atol * wide)


def test_forward_matches_mxnet(family: str, rows: list[Row]) -> None:
    """Values, shapes and dtypes of all outputs."""
    stored = golden_file(family)

    def check(row: Row) -> None:
        with mx.autograd.train_mode() if row.train else mx.autograd.predict_mode():
            outs = call(row, arrays_of(row))
        assert f"{row.key}/out0" in stored, "no recorded answer: run the recorder"
        assert f"{row.key}/out{len(outs)}" not in stored, "number of outputs"
        for i, out in enumerate(outs):
            wanted = stored[f"{row.key}/out{i}"]
            assert out.shape == wanted.shape
            assert np.dtype(out.dtype) == wanted.dtype
            _close(row, out.asnumpy(), wanted)

    check_all(rows, check)


@for_rows(lambda row: row.has_gradients and not row.derived)
def test_backward_matches_mxnet(family: str, rows: list[Row]) -> None:
    """Gradients of all floating-point inputs."""
    stored = golden_file(family)

    def check(row: Row) -> None:
        arrays = arrays_of(row)
        positions = [i for i in range(len(arrays)) if f"{row.key}/grad{i}" in stored]
        assert positions, "no recorded gradient: run the recorder"
        run_backward(row, arrays, positions)
        for i in positions:
            _close(row, arrays[i].grad.asnumpy(), stored[f"{row.key}/grad{i}"])

    check_all(rows, check)
