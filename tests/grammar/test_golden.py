"""Law: every operator gives what MXNet 1.9.1 gave, forward and backward."""

from __future__ import annotations

import numpy as np

import mxnet as mx
from tests.grammar.calling import arrays_of, call, run_backward
from tests.grammar.conftest import golden_file
from tests.grammar.sampling import Row


def _tolerance(row: Row, value: np.ndarray) -> dict[str, float]:
    wide = 20 if value.dtype == np.float16 else 1
    return {"rtol": row.rtol * wide, "atol": row.atol * wide}


def test_forward_equals_mxnet(family: str, row: Row) -> None:
    """Values, shapes and dtypes of all outputs."""
    stored = golden_file(family)
    with mx.autograd.train_mode() if row.train else mx.autograd.predict_mode():
        outs = call(row, arrays_of(row))
    wanted = [k for k in stored if k.startswith(f"{row.key}/out")]
    assert len(outs) == len(wanted) > 0, "number of outputs"
    for i, out in enumerate(outs):
        value = stored[f"{row.key}/out{i}"]
        assert out.shape == value.shape
        assert np.dtype(out.dtype) == value.dtype
        np.testing.assert_allclose(out.asnumpy(), value, **_tolerance(row, value))


def test_backward_equals_mxnet(family: str, row: Row) -> None:
    """Gradients of all floating-point inputs."""
    stored = golden_file(family)
    wanted = [k for k in stored if k.startswith(f"{row.key}/grad")]
    arrays = arrays_of(row)
    positions = sorted(int(k.rpartition("/grad")[2]) for k in wanted)
    assert bool(wanted) == row.grad or not positions
    run_backward(row, arrays, positions)
    for i in positions:
        value = stored[f"{row.key}/grad{i}"]
        np.testing.assert_allclose(arrays[i].grad.asnumpy(), value, **_tolerance(row, value))
