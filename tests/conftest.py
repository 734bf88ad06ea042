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
    """Forget NumPy's and Python's seeds after a test: shuffles of later ones would follow them."""
    yield
    np.random.set_bit_generator(np.random.MT19937())
    random.setstate(UNSEEDED)


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    """Refuse tests that change torch's threads: two per process make all later tests slow."""
    before = "torch" in sys.modules and sys.modules["torch"].get_num_threads()
    yield
    if before and (after := sys.modules["torch"].get_num_threads()) != before:
        sys.modules["torch"].set_num_threads(before)
        pytest.fail(f"the test leaves {after} threads to torch instead of {before}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without the garbage collector, which has nothing to free in modules and ids."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # nor will it look through them during the tests
        gc.enable()


def pytest_collection_modifyitems(items):
    """Begin with the files that have slow tests: at the end, one would keep a single core busy."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


def pytest_make_parametrize_id(config, val, argname):
    """Bytes are named by their place: they may hold the time, and workers must agree on names."""
    return argname if isinstance(val, bytes) else None
