"""Which gradient arrays take torch's buffers over, and which keep their own memory."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.imperative.gradient import (
    KEEPS_FREED_MEMORY,
    LEAST_COPIED,
    MOST_TAKEN,
    MOST_TAKEN_ARRAYS,
)
from mxnet.imperative.handle import plain


def arrays_after_backward(count: int, size: int) -> list[tuple[mx.nd.NDArray, int, int]]:
    """Return arrays with gradients, and the addresses of these before and after backward."""
    arrays = [mx.nd.full(size, i + 1) for i in range(count)]
    for array in arrays:
        array.attach_grad()
    held = [array.grad for array in arrays]
    before = [plain(g).data_ptr() for g in held]
    with mx.autograd.record():
        total = sum((array * array).sum() for array in arrays)
    total.backward()
    return list(zip(arrays, before, [plain(g).data_ptr() for g in held], strict=True))


def test_gradients_of_small_networks_take_the_buffers() -> None:
    for array, _, after in arrays_after_backward(3, LEAST_COPIED * 4):
        assert plain(array.grad).data_ptr() == after  # the array that users hold already
        np.testing.assert_array_equal(array.grad.asnumpy(), 2 * array.asnumpy())


@pytest.mark.skipif(not KEEPS_FREED_MEMORY, reason="freed memory goes back to the system at once")
def test_large_networks_keep_the_memory_of_their_gradients() -> None:
    size = MOST_TAKEN // 4 // 4  # four of them are all that may be taken
    made = arrays_after_backward(6, size)
    kept = [before == after for _, before, after in made]
    assert sum(kept) == 2
    for array, _, _ in made:
        np.testing.assert_array_equal(array.grad.asnumpy(), 2 * array.asnumpy())


@pytest.mark.skipif(not KEEPS_FREED_MEMORY, reason="freed memory goes back to the system at once")
def test_a_few_large_gradients_take_the_buffers() -> None:
    made = arrays_after_backward(MOST_TAKEN_ARRAYS + 1, MOST_TAKEN // 2)
    kept = [before == after for _, before, after in made]
    assert sum(kept) == 1
    for array, _, _ in made:
        np.testing.assert_array_equal(array.grad.asnumpy(), 2 * array.asnumpy())
