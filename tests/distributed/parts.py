"""What all stories of workers use: the part of a worker, and comparisons."""

from __future__ import annotations

import numpy as np

import mxnet.distributed as hvd


def part(array):
    """Return this worker's part of an array."""
    return array[hvd.rank() :: hvd.size()]


def assert_same(found, wanted, tolerance=1e-6):
    np.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=tolerance)
