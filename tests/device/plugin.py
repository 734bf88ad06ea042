"""Run CPU tests on an accelerator: `pytest -p tests.device.plugin tests/gluon`.

The last device is the default context of each test. It is a real one if torch has one, else the
second device (`second_device.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.device import second_device


def pytest_configure(config: pytest.Config) -> None:
    """Load the device before any test computes something."""
    second_device.ensure()


@pytest.fixture(autouse=True)
def on_device() -> Iterator[None]:
    """Make the last device the current context, as `with mx.gpu(i)` around the test does."""
    import mxnet as mx

    with mx.gpu(mx.context.num_gpus() - 1):
        yield
