"""Graph passes change neither results nor gradients, for every operator."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.ops import registry
from tests.grammar.calling import arrays_of, call, differentiable
from tests.grammar.properties import check_all, for_rows
from tests.grammar.sampling import Row
from tests.grammar.test_symbols import _bound, _symbol


def _surrounded(row: Row, count: int) -> mx.sym.Symbol:
    """Return the operator followed by nodes that passes remove, write in place and fuse."""
    made = _symbol(row, count)
    first = made[0] if len(made) > 1 else made
    if np.dtype(call(row, arrays_of(row))[0].dtype).kind == "b":
        first = mx.sym.cast(first, dtype="float32")
    return mx.sym.relu(mx.sym.Dropout(mx.sym.elemwise_add(first, first), p=0.0))


def _results(row: Row, train: bool) -> list[np.ndarray]:
    arrays = arrays_of(row)
    wanted = differentiable(arrays) if train and row.grad else []
    executor = _bound(_surrounded(row, len(arrays)), row, {f"in{i}": "write" for i in wanted})
    mx.random.seed(7)
    found = [o.asnumpy() for o in executor.forward(is_train=train)]
    if wanted:
        executor.backward([mx.nd.ones(o.shape, dtype=o.dtype) for o in executor.outputs])
        found += [g.asnumpy() for g in executor.grad_arrays if g is not None]
    return found


def _can_be_repeated(row: Row) -> bool:
    op = registry.get(row.op)
    return not op.mutates and not op.value_dependent


@for_rows(_can_be_repeated, at_most=2)
def test_graph_passes_preserve_results_and_gradients(family: str, rows: list[Row]) -> None:
    def check(row: Row) -> None:
        for train in (False, True):
            with mx.np_shape(True), pytest.MonkeyPatch.context() as patch:
                optimized = _results(row, train)
                patch.setenv("MXNET_GRAPH_PASSES", "0")
                plain = _results(row, train)
            for first, second in zip(plain, optimized, strict=True):
                np.testing.assert_allclose(second, first, rtol=1e-5, atol=1e-6)

    check_all(rows, check)
