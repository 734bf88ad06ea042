"""Graphs of arithmetic give the same bits on small arrays, where NumPy runs them.

Sums, differences, products, signs: IEEE 754 rounds each alike, whoever computes it.
"""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.executor import small_arithmetic


def _graph() -> mx.sym.Symbol:
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    z = 3 - (x + y) * 0.1
    return mx.sym.Group([mx.sym.abs(z) * z * z, -z, mx.sym.square(x) - y])


def _executor(shape: tuple[int, ...], dtype: str = "float32") -> mx.executor.Executor:
    values = np.random.RandomState(1).randn(2, *shape).astype(dtype)
    args = {name: mx.nd.array(v, dtype=dtype) for name, v in zip("xy", values, strict=True)}
    return _graph().bind(mx.cpu(), args)


def _results(executor: mx.executor.Executor, runs: int = 4) -> list[np.ndarray]:
    for _ in range(runs):
        made = executor.forward()
    return [m.asnumpy() for m in made]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(1,), (3, 4), (60, 60)])
def test_results_are_those_of_torch(
    shape: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _results(_executor(shape, dtype))
    monkeypatch.setenv("MXNET_GRAPH_PASSES", "0")
    for a, b in zip(found, _results(_executor(shape, dtype)), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


def test_inputs_stay_as_they_are_and_changes_are_seen() -> None:
    executor = _executor((2, 2))
    before = executor.arg_dict["x"].asnumpy()
    first = _results(executor)
    np.testing.assert_array_equal(executor.arg_dict["x"].asnumpy(), before)
    executor.arg_dict["x"][:] = 0
    second = _results(executor, 1)
    assert not np.array_equal(first[0], second[0])
    np.testing.assert_array_equal(second[2], -executor.arg_dict["y"].asnumpy())


def test_numpy_runs_them_without_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    run = small_arithmetic.SmallArithmetic.run

    def spy(self: small_arithmetic.SmallArithmetic, feed: list) -> list | None:
        calls.append(run(self, feed))
        return calls[-1]

    monkeypatch.setattr(small_arithmetic.SmallArithmetic, "run", spy)
    executor = _executor((2, 2))
    executor.arg_dict["x"][:] = 3e38
    _results(executor)
    assert len(calls) == 2 and None not in calls
