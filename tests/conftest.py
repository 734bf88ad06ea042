"""What holds for every test."""

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def unseeded_numpy() -> Iterator[None]:
    """Forget NumPy's seed after a test: shuffles of later ones would follow it."""
    yield
    np.random.set_bit_generator(np.random.MT19937())


def pytest_make_parametrize_id(config, val, argname):
    """Bytes are named by their place: they may hold the time, and workers must agree on names."""
    return argname if isinstance(val, bytes) else None
