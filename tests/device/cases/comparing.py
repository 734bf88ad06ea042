"""Run a function on the CPU and on a device, and compare the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mxnet as mx
from mxnet.ndarray import NDArray
from mxnet.runtime.array import plain


def assert_on(ctx: mx.Context, *arrays: NDArray | None) -> None:
    """Check that arrays and their tensors are on a device."""
    device = mx.context.torch_device(ctx)
    for array in arrays:
        if array is None:
            continue
        assert array.context == ctx
        parts = [plain(array)] if array.stype == "default" else array._parts()
        assert [p.device for p in parts] == [device] * len(parts)


def values(arrays: Sequence[NDArray | None]) -> list[np.ndarray]:
    """Return arrays as NumPy arrays."""
    return [np.zeros(0) if a is None else a.asnumpy() for a in arrays]


def assert_close(
    actual: Sequence[Any], expected: Sequence[Any], rtol: float = 1e-4, atol: float = 1e-5
) -> None:
    """Compare lists of arrays: shapes, types, values."""
    assert len(actual) == len(expected)
    for i, (one, other) in enumerate(zip(actual, expected, strict=True)):
        one, other = (
            x.asnumpy() if isinstance(x, NDArray) else np.asarray(x) for x in (one, other)
        )
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(
            one.astype(np.float64) if one.dtype.kind == "f" else one,
            other.astype(np.float64) if other.dtype.kind == "f" else other,
            rtol=rtol,
            atol=atol,
            err_msg=f"number {i}",
        )


def compare(
    run: Callable[[mx.Context], Sequence[NDArray]], ctx: mx.Context, **tolerances: float
) -> None:
    """Run on the CPU and on a device; results must be on the device and have equal values."""
    mx.random.seed(0)
    expected = values(run(mx.cpu()))
    mx.random.seed(0)
    actual = run(ctx)
    assert_on(ctx, *actual)
    assert_close(values(actual), expected, **tolerances)
