"""Gradients match finite differences, for operators whose gradient is the derivative."""

from __future__ import annotations

import numpy as np

import mxnet as mx
from mxnet.ops import registry
from mxnet.runtime.recording import graph_tensor
from tests.grammar.calling import call, differentiable, run_backward
from tests.grammar.properties import check_all, for_rows
from tests.grammar.sampling import Row

_STEP = 1e-5
_MAX_ELEMENTS = 24


def _value(row: Row, arrays: list, heads: list[np.ndarray]) -> float:
    with mx.autograd.train_mode() if row.train else mx.autograd.predict_mode():
        outs = call(row, arrays)
    return sum(float((o.asnumpy() * h).sum()) for o, h in zip(outs, heads, strict=True))


def _is_derived(row: Row) -> bool:
    return (
        row.has_gradients
        and row.numeric
        and registry.get(row.op).gradient_rule is None
        and all(a.dtype in (np.float32, np.int32, np.int64) for a in row.arrays())
        # Integers are indices, lengths or labels: nothing to differentiate.
        and any(a.dtype == np.float32 and (a % 1).any() for a in row.arrays())
    )


@for_rows(_is_derived, at_most=2)
def test_gradients_match_finite_differences(family: str, rows: list[Row]) -> None:
    """In float64, for a few elements of each input of the operator's first applicable row."""

    def check(row: Row) -> None:
        arrays = [
            mx.nd.array(a, dtype="float64" if a.dtype == np.float32 else a.dtype)
            for a in row.arrays()
        ]
        wanted = [i for i in differentiable(arrays) if (arrays[i].asnumpy() % 1).any()]
        run_backward(row, arrays, wanted)
        with mx.autograd.record(train_mode=row.train):  # backward has used up its own outputs
            outs = call(row, arrays)
        heads = [
            row.head_gradient(i, o.shape) * (graph_tensor(o) is not None)
            for i, o in enumerate(outs)
        ]
        for i in wanted:
            grad, flat = arrays[i].grad.asnumpy().ravel(), arrays[i].asnumpy().ravel()
            shape = arrays[i].shape
            plain = [a.detach() for a in arrays]
            for k in range(0, flat.size, max(1, flat.size // _MAX_ELEMENTS)):
                sides = []
                for sign in (1, -1):
                    moved = flat.copy()
                    moved[k] += sign * _STEP
                    plain[i] = mx.nd.array(moved.reshape(shape), dtype="float64")
                    sides.append(_value(row, plain, heads))
                numeric = (sides[0] - sides[1]) / (2 * _STEP)
                np.testing.assert_allclose(grad[k], numeric, rtol=2e-4, atol=2e-5)

    check_all(rows, check)
