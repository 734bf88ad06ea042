"""Check which arrays share memory, and overwrite arrays after use."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping

import numpy as np

import mxnet as mx
from mxnet.ndarray import NDArray
from mxnet.runtime.array import plain


def address(array: NDArray) -> int:
    """Return where the memory of an array starts; 0 if it has no elements."""
    tensor = plain(array)
    return tensor.data_ptr() if tensor.numel() else 0


def storage(array: NDArray) -> int:
    """Return the address of an array's storage, equal for views; 0 if it has no elements."""
    tensor = plain(array)
    return tensor.untyped_storage().data_ptr() if tensor.numel() else 0


def check_apart(arrays: Mapping[str, NDArray]) -> None:
    """Check that no two arrays share memory."""
    places = {name: storage(a) for name, a in arrays.items() if a.size}
    shared = [(a, b) for a, b in itertools.combinations(places, 2) if places[a] == places[b]]
    assert not shared, f"these share memory: {shared}"


def can_be_viewed(array: NDArray) -> bool:
    """Return whether slices and reshapes of an array share its memory."""
    if not array.shape or not array.size:
        return False
    views = array.reshape((-1,)), array[0:1], array[0]
    return all(storage(view) == storage(array) for view in views)


def named(**groups: Iterable[NDArray | None]) -> dict[str, NDArray]:
    """Return arrays by the name of their group and their position in it."""
    return {
        f"{name}[{i}]": array
        for name, group in groups.items()
        for i, array in enumerate(group)
        if array is not None
    }


def spoil(arrays: Iterable[NDArray | None]) -> None:
    """Overwrite arrays with values that would show in results."""
    for array in arrays:
        if array is not None:
            fill(array, 77)


def fill(array: NDArray, value: object) -> None:
    """Overwrite an array of any number of axes."""
    array[() if array.shape == () else slice(None)] = value


def values(arrays: Iterable[NDArray | None]) -> list[np.ndarray | None]:
    """Return copies of the numbers of arrays."""
    return [None if a is None else a.asnumpy().copy() for a in arrays]


def check_same(found: Iterable, expected: Iterable, what: str = "") -> None:
    """Check that two lists of numbers are equal, up to rounding."""
    for f, e in zip(found, expected, strict=True):
        if e is not None and not np.array_equal(f, e):
            np.testing.assert_allclose(f, e, rtol=1e-4, atol=1e-5, err_msg=what)


def check_unrelated(*shapes: tuple[int, ...]) -> None:
    """Run small programs on fresh arrays of some shapes, and check what they compute."""
    for shape in {*filter(math.prod, filter(None, shapes)), (2, 2)}:
        x, w = mx.nd.ones(shape), mx.nd.full(shape, 2)
        x.attach_grad()
        w.attach_grad("add")
        with mx.autograd.record():
            y = x * w + x
        y.backward()
        for array, number in ((x, 1), (w, 2), (y, 3), (x.grad, 3), (w.grad, 1)):
            assert (array.asnumpy() == number).all(), (shape, array)
        with mx.autograd.record():
            z = mx.nd.relu(x)
        (grad,) = mx.autograd.grad(z, [x])
        assert (grad.asnumpy() == 1).all(), shape
        assert (mx.nd.zeros(shape).asnumpy() == 0).all(), shape
