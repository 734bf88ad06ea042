"""LeakyReLU with random slopes, and the shape of learned ones."""

from __future__ import annotations

import numpy as np

import mxnet as mx
from tests.ops.nn.test_dense import infer

NEGATIVE = np.full((50, 40), -1.0, dtype="float32")


def test_random_slopes_stay_between_their_bounds() -> None:
    data = mx.nd.array(NEGATIVE)
    data.attach_grad()
    with mx.autograd.record():
        out, slopes = mx.nd.LeakyReLU(data, act_type="rrelu", lower_bound=0.1, upper_bound=0.3)
    out.backward()
    drawn = slopes.asnumpy()
    assert 0.1 <= drawn.min() < 0.12
    assert 0.28 < drawn.max() <= 0.3
    assert abs(drawn.mean() - 0.2) < 0.01
    np.testing.assert_allclose(out.asnumpy(), -drawn)
    np.testing.assert_allclose(data.grad.asnumpy(), drawn)


def test_random_slopes_are_their_middle_outside_training() -> None:
    out, _ = mx.nd.LeakyReLU(mx.nd.array([-1, 2]), act_type="rrelu")
    np.testing.assert_allclose(out.asnumpy(), [-0.2295, 2], rtol=1e-5)


def test_learned_slopes_have_one_number_a_channel() -> None:
    assert infer("LeakyReLU", (2, 4, 5), act_type="prelu")[0] == [(2, 4, 5), (4,)]
