"""Captured training steps equal uncaptured ones bit for bit, for every operator."""

from __future__ import annotations

import numpy as np

import mxnet as mx
from mxnet.ops import registry
from mxnet.runtime.capture.kernels import ATTEMPTS
from tests.grammar.calling import arrays_of, differentiable
from tests.grammar.properties import check_all, for_rows
from tests.grammar.sampling import Row
from tests.grammar.test_symbols import _bound, _symbol


def _is_repeatable(row: Row) -> bool:
    return row.has_gradients and registry.get(row.op).facts.repeatable


def _executor(row: Row) -> mx.executor.Executor:
    symbol = _symbol(row, len(arrays_of(row)))
    first = symbol[0] if len(symbol) > 1 else symbol
    reqs = {f"in{i}": "write" for i in differentiable(arrays_of(row))}
    return _bound(mx.sym.Group([first * 2, symbol]), row, reqs)


def _step(executor: mx.executor.Executor, row: Row, factor: float) -> list[np.ndarray]:
    """Return outputs and gradients of one step on the row's arrays, floating-point ones scaled."""
    for i, array in enumerate(arrays_of(row)):
        target = executor.arg_dict.get(f"in{i}")
        if target is not None and np.dtype(array.dtype).kind == "f":
            target[:] = array * factor
    outputs = executor.forward(is_train=True)
    executor.backward([mx.nd.ones(o.shape, dtype=o.dtype) * factor for o in outputs])
    arrays = [*outputs, *(g for g in executor.grad_arrays if g is not None)]
    return [a.asnumpy() for a in arrays]


@for_rows(_is_repeatable, at_most=2)
def test_captured_steps_equal_first_steps(family: str, rows: list[Row]) -> None:
    """Steps of an executor that captured one equal the first steps of new executors."""
    captured = []

    def check(row: Row) -> None:
        executor = _executor(row)
        for _ in range(ATTEMPTS[0] + 1):
            _step(executor, row, 1.0)
        captured.append(executor._function.repetition._step is not None)
        for factor in (0.5, 1.0):
            pairs = zip(
                _step(executor, row, factor), _step(_executor(row), row, factor), strict=True
            )
            for repeated, first in pairs:
                np.testing.assert_array_equal(repeated, first)

    check_all(rows, check)
    assert sum(captured) >= 0.8 * len(rows)  # gradients of powers depend on the values of exponents
