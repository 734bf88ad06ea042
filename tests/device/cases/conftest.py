"""Fixtures of the device tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.device import second_device

if os.environ.get("MXNEXT_TEST_DEVICE"):  # pytest also loads this file if it ignores the tests
    second_device.ensure()  # before any test computes something

import mxnet as mx
from tests.grammar.conftest import parametrize_by_family, shape_meaning  # noqa: F401


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize each test that takes `rows` with every family of operators."""
    if "rows" in metafunc.fixturenames:
        parametrize_by_family(metafunc)


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """Start each test from the same random numbers, on the CPU."""
    mx.random.seed(0)
    yield
    assert mx.current_context() == mx.cpu()


@pytest.fixture
def two() -> list[mx.Context]:
    """Return two devices."""
    if mx.context.num_gpus() < 2:
        pytest.skip("needs two GPUs")
    return [mx.gpu(0), mx.gpu(1)]


@pytest.fixture
def last() -> mx.Context:
    """Return the last device: code that ignores the device id would use the first one."""
    return mx.gpu(mx.context.num_gpus() - 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests on real devices that only the emulated device can count."""
    if second_device.is_loaded():
        return
    for item in items:
        if "counts" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="only the second device counts its copies"))
