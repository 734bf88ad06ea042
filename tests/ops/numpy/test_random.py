"""NumPy's samplers: moments, shapes, gradients, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mxnet as mx
from mxnet.util import np_shape, use_np
from tests.batches import check_each

draw = mx.nd._internal
EULER = 0.5772156649

MOMENTS = [
    ("uniform", {"low": 2.0, "high": 4.0}, 3.0, 2 / math.sqrt(12)),
    ("uniform_n", {"low": 2.0, "high": 4.0}, 3.0, 2 / math.sqrt(12)),
    ("normal", {"loc": 2.0, "scale": 3.0}, 2.0, 3.0),
    ("normal_n", {"loc": 2.0, "scale": 3.0}, 2.0, 3.0),
    ("gamma", {"shape": 4.0, "scale": 0.5}, 2.0, 1.0),
    ("gumbel", {"loc": 1.0, "scale": 2.0}, 1 + 2 * EULER, 2 * math.pi / math.sqrt(6)),
    ("logistic", {"loc": 1.0, "scale": 2.0}, 1.0, 2 * math.pi / math.sqrt(3)),
    ("exponential", {"scale": 2.0}, 2.0, 2.0),
    ("rayleigh", {"scale": 2.0}, 2 * math.sqrt(math.pi / 2), 2 * math.sqrt(2 - math.pi / 2)),
    ("pareto", {"a": 8.0}, 1 / 7, math.sqrt(8 / 6) / 7),
    ("weibull", {"a": 2.0}, math.sqrt(math.pi) / 2, math.sqrt(1 - math.pi / 4)),
    ("powerd", {"a": 3.0}, 0.75, math.sqrt(3 / 80)),
]


@pytest.mark.parametrize(("name", "numbers", "mean", "deviation"), MOMENTS)
def test_samples_match_mean_and_deviation_of_the_distribution(
    name: str, numbers: dict, mean: float, deviation: float
) -> None:
    mx.random.seed(7)
    drawn = getattr(draw, f"_npi_{name}")(**numbers, size=(40_000,)).asnumpy()
    assert drawn.mean() == pytest.approx(mean, abs=0.05 * max(deviation, 0.5))
    assert drawn.std() == pytest.approx(deviation, rel=0.05)


def test_parameter_arrays_broadcast_to_size() -> None:
    loc = mx.nd.array([0, 100])
    drawn = draw._npi_normal(loc, loc=None, scale=1.0, size=(3, 2)).asnumpy()
    assert drawn.shape == (3, 2)
    assert (drawn[:, 0] < 50).all()
    assert (drawn[:, 1] > 50).all()
    with pytest.raises(mx.MXNetError, match="broadcast"):
        draw._npi_normal(loc, loc=None, scale=1.0, size=(3,))


def test_n_samplers_prepend_size() -> None:
    loc = mx.nd.array([0, 100])
    assert draw._npi_normal_n(loc, loc=None, scale=1.0, size=(3,)).shape == (3, 2)


def test_samples_without_size_are_scalars() -> None:
    with np_shape():
        assert draw._npi_uniform(low=0.0, high=1.0).shape == ()


def test_normal_gradients_of_loc_and_scale() -> None:
    loc, scale = mx.nd.array([1, 2]), mx.nd.array([2, 3])
    for x in (loc, scale):
        x.attach_grad()
    with mx.autograd.record():
        y = draw._npi_normal(loc, scale, loc=None, scale=None)
    y.backward()
    np.testing.assert_allclose(loc.grad.asnumpy(), [1, 1])
    noise = (y.asnumpy() - loc.asnumpy()) / scale.asnumpy()
    np.testing.assert_allclose(scale.grad.asnumpy(), noise, rtol=1e-5)


def test_pareto_gradient_of_its_exponent() -> None:
    a = mx.nd.array([1.0, 2.0])
    a.attach_grad()
    with mx.autograd.record():
        y = draw._npi_pareto(a, a=None)
    y.backward()
    value, exponent = y.asnumpy(), a.asnumpy()
    wanted = -np.log1p(value) / exponent * (1 + value)
    np.testing.assert_allclose(a.grad.asnumpy(), wanted, rtol=1e-4)


def test_bernoulli_with_probabilities_or_logits() -> None:
    sure = draw._npi_bernoulli(mx.nd.array([0, 1]), prob=None, logit=None, is_logit=False)
    assert sure.asnumpy().tolist() == [0, 1]
    odds = mx.nd.array([-100, 100])
    drawn = draw._npi_bernoulli(odds, prob=None, logit=None, is_logit=True, dtype="int32")
    assert drawn.asnumpy().tolist() == [0, 1]
    assert drawn.dtype == np.int32
    with pytest.raises(ValueError, match="probs"):
        draw._npi_bernoulli(prob=1.5, logit=None, is_logit=False, size=(2,))


def test_choice_without_replacement_has_no_duplicates() -> None:
    drawn = draw._npi_choice(a=5, size=(5,), replace=False).asnumpy()
    assert sorted(drawn.tolist()) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="without replacement"):
        draw._npi_choice(a=2, size=(3,), replace=False)


def test_choice_respects_weights() -> None:
    weights = mx.nd.array([0, 0, 1])
    drawn = draw._npi_choice(weights, a=3, size=(4,), weighted=True).asnumpy()
    assert drawn.tolist() == [2, 2, 2, 2]


def test_multinomial_counts_sum_to_n() -> None:
    drawn = draw._npi_multinomial(n=10, pvals=(0.2, 0.3, 0.5), size=(4,)).asnumpy()
    assert drawn.shape == (4, 3)
    assert (drawn.sum(1) == 10).all()


@pytest.mark.parametrize("name", ["normal", "gumbel", "logistic"])
def test_negative_scale_raises(name: str) -> None:
    with pytest.raises(ValueError, match="scale"):
        getattr(draw, f"_npi_{name}")(loc=0.0, scale=-1.0, size=(2,))


@use_np
def test_multinomial_without_outcomes_is_empty() -> None:
    multinomial = mx.np.random.multinomial
    assert multinomial(10, []).shape == multinomial(10, mx.np.array([])).shape == (0,)
    assert multinomial(10, [], size=3).shape == (3, 0)
    assert multinomial(10, [1.0]).tolist() == [10]


class Draw(mx.gluon.HybridBlock):
    """Draws by a function of the namespace."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, x):
        return self.function(F.np, x)


@use_np
def test_sample_shapes_in_hybridized_blocks() -> None:
    sizes = {None: (), (): (), 3: (3,), (2,): (2,), (4, 3): (4, 3)}
    cases = {}
    for size, shape in sizes.items():
        numbers = lambda np, x, n=size: np.random.gamma(2.0, 1.0, size=n) + x.sum()  # noqa: E731
        vector = lambda np, x, n=size: np.random.multivariate_normal(  # noqa: E731
            x[0], np.eye(3), size=n
        )
        batch = lambda np, x, n=size: np.random.multivariate_normal(  # noqa: E731
            x, np.eye(3), size=n
        )
        cases[f"gamma {size}"] = numbers, shape
        cases[f"vector {size}"] = vector, (*shape, 3)
        cases[f"batch {size}"] = batch, (*shape, 2, 3)
    for size in (None, ()):
        cases[f"arrays {size}"] = (lambda np, x, n=size: np.random.gamma(x, x, size=n)), (2, 3)
        cases[f"normal {size}"] = (lambda np, x, n=size: np.random.normal(x, 1, size=n)), (2, 3)

    def check(case):
        function, expected = case
        net = Draw(function)
        assert net(mx.np.ones((2, 3))).shape == expected
        net.hybridize()
        assert net(mx.np.ones((2, 3))).shape == expected

    check_each(cases, check)


@use_np
def test_resize_of_symbols_repeats_elements() -> None:
    expected = {4: [1, 2, 3, 4], (2, 4): [[1, 2, 3, 4], [5, 6, 1, 2]], (): 1, (0,): []}
    for shape, values in expected.items():
        net = Draw(lambda np, x, n=shape: np.resize(x, n))
        for hybridize in (False, True):
            net.hybridize(hybridize)
            assert net(mx.np.arange(1, 7).reshape(2, 3)).tolist() == values


@use_np
def test_multivariate_normal_moments_and_dtype() -> None:
    mx.random.seed(3)
    covariance = [[2.0, 0.5], [0.5, 1.0]]
    for dtype in ("float16", "float32", "float64"):
        mean, cov = mx.np.array([1, -2], dtype=dtype), mx.np.array(covariance, dtype=dtype)
        drawn = mx.np.random.multivariate_normal(mean, cov, size=(20_000,))
        assert drawn.dtype == dtype
        values = drawn.asnumpy().astype("float64")
        np.testing.assert_allclose(values.mean(0), [1, -2], atol=0.05)
        np.testing.assert_allclose(np.cov(values.T), covariance, atol=0.08)


@use_np
def test_non_positive_gamma_scale_raises() -> None:
    for scale in (0, 0.0, -1, mx.np.array([0.0])):
        with pytest.raises(ValueError, match="expect scale > 0"):
            mx.np.random.gamma(1, scale)
