"""Fixtures and settings of all tests."""

import gc
import random
import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

UNSEEDED = random.getstate()


@pytest.fixture(autouse=True)
def unseeded_streams() -> Iterator[None]:
    """Unseed NumPy and Python after a test; later shuffles would depend on the seeds."""
    yield
    np.random.set_bit_generator(np.random.MT19937())
    random.setstate(UNSEEDED)


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    """Fail tests that change torch's number of threads: it would slow down all later tests."""
    before = "torch" in sys.modules and sys.modules["torch"].get_num_threads()
    yield
    if before and (after := sys.modules["torch"].get_num_threads()) != before:
        sys.modules["torch"].set_num_threads(before)
        pytest.fail(f"the test leaves {after} threads to torch instead of {before}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests with the garbage collector disabled."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # and does not scan them during the tests
        gc.enable()


def pytest_collection_modifyitems(items):
    """Run files with slow tests first; at the end, one would keep a single core busy."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


def pytest_make_parametrize_id(config, val, argname):
    """Number bytes parameters: values may contain the time, and ids must agree in all workers."""
    return argname if isinstance(val, bytes) else None
