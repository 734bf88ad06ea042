"""Samplers: distributions, seeds, shapes, dtypes, threads, errors."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.base import MXNetError
from tests.conftest import UNSEEDED

stats = pytest.importorskip("scipy.stats")

SIZE = 20_000
# Seeds are fixed, so these tests are deterministic; one seed in a million would fail.
LEVEL = 1e-6

CONTINUOUS = {
    "uniform": ((-1.0, 3.0), stats.uniform(-1, 4)),
    "normal": ((2.0, 0.5), stats.norm(2, 0.5)),
    "gamma": ((0.7, 2.5), stats.gamma(0.7, scale=2.5)),
    "exponential": ((3.0,), stats.expon(scale=3.0)),
}
DISCRETE = {
    "poisson": ((4.0,), stats.poisson(4.0)),
    "negative_binomial": ((3, 0.4), stats.nbinom(3, 0.4)),
    "generalized_negative_binomial": ((2.0, 0.3), stats.nbinom(1 / 0.3, 1 / 1.6)),
}
ALL = {**CONTINUOUS, **DISCRETE}


def looks_like(values: np.ndarray, distribution: object) -> bool:
    """Return whether the values may come from the distribution."""
    values = np.asarray(values, dtype="float64").ravel()
    if hasattr(distribution.dist, "pdf"):
        return stats.kstest(values, distribution.cdf).pvalue > LEVEL
    top = int(distribution.ppf(0.999))
    counts = np.bincount(np.minimum(values, top + 1).astype(int), minlength=top + 2)
    expected = np.append(distribution.pmf(np.arange(top + 1)), distribution.sf(top))
    return stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > LEVEL


@pytest.fixture(autouse=True)
def _seeded() -> None:
    mx.random.seed(2024)


@pytest.mark.parametrize("name", ALL)
class TestDistributions:
    """Each sampler in each of its forms."""

    def test_scalar_parameters(self, name: str) -> None:
        parameters, distribution = ALL[name]
        assert looks_like(getattr(mx.random, name)(*parameters, shape=SIZE).asnumpy(), distribution)

    @pytest.mark.parametrize("dtype", ["float16", "float64"])
    def test_sample_dtypes(self, name: str, dtype: str) -> None:
        parameters, distribution = ALL[name]
        drawn = getattr(nd.random, name)(*parameters, shape=(SIZE // 8,), dtype=dtype)
        assert drawn.dtype == np.dtype(dtype)
        assert looks_like(drawn.asnumpy(), distribution)

    def test_array_parameters(self, name: str) -> None:
        """Every element of the parameters gets its own samples."""
        parameters, distribution = ALL[name]
        arrays = [nd.array([[p, p * 0 + 0.5]]) for p in parameters]
        drawn = getattr(nd.random, name)(*arrays, shape=(SIZE // 100, 100))
        assert drawn.shape == (1, 2, SIZE // 100, 100)
        assert drawn.dtype == np.float32
        assert looks_like(drawn[0, 0].asnumpy(), distribution)
        assert not looks_like(drawn[0, 1].asnumpy(), distribution)

    def test_array_parameters_without_shape(self, name: str) -> None:
        """By default one sample for each element."""
        parameters, _ = ALL[name]
        arrays = [nd.full((3, 2), p) for p in parameters]
        assert getattr(nd.random, name)(*arrays).shape == (3, 2)
        assert getattr(nd, f"sample_{name}")(*arrays, dtype="float64").dtype == np.float64

    def test_like_operators(self, name: str) -> None:
        """Samples have the shape and dtype of an array."""
        _, distribution = ALL[name]
        attrs = {
            "uniform": {"low": -1, "high": 3},
            "normal": {"loc": 2, "scale": 0.5},
            "gamma": {"alpha": 0.7, "beta": 2.5},
            "exponential": {"lam": 1 / 3},
            "poisson": {"lam": 4},
            "negative_binomial": {"k": 3, "p": 0.4},
            "generalized_negative_binomial": {"mu": 2, "alpha": 0.3},
        }[name]
        like = nd.zeros((SIZE // 100, 100), dtype="float64")
        drawn = getattr(nd.random, f"{name}_like")(like, **attrs)
        assert drawn.shape == like.shape and drawn.dtype == np.float64
        assert looks_like(drawn.asnumpy(), distribution)

    def test_default_shape_is_one_element(self, name: str) -> None:
        assert getattr(mx.random, name)().shape == (1,)

    def test_out_argument(self, name: str) -> None:
        """`out` is filled, and determines shape and dtype."""
        parameters, distribution = ALL[name]
        out = nd.zeros((SIZE // 100, 100), dtype="float64")
        assert getattr(mx.random, name)(*parameters, out=out) is out
        assert looks_like(out.asnumpy(), distribution)
        with pytest.raises(MXNetError, match="Shape inconsistent"):
            getattr(mx.random, name)(*parameters, shape=(3,), out=out)

    def test_samples_are_reproducible_with_a_seed(self, name: str) -> None:
        parameters, _ = ALL[name]
        draw = getattr(mx.random, name)
        mx.random.seed(5)
        first, second = (draw(*parameters, shape=20).asnumpy() for _ in range(2))
        mx.random.seed(5)
        np.testing.assert_array_equal(draw(*parameters, shape=20).asnumpy(), first)
        np.testing.assert_array_equal(draw(*parameters, shape=20).asnumpy(), second)
        assert (first != second).any()

    def test_gradients_of_parameters_are_zero(self, name: str) -> None:
        """Backward from samples works."""
        parameters, _ = ALL[name]
        arrays = [nd.full((2,), p) for p in parameters]
        for a in arrays:
            a.attach_grad()
        with mx.autograd.record():
            drawn = getattr(nd.random, name)(*arrays)
        drawn.backward()
        for a in arrays:
            assert (a.grad.asnumpy() == 0).all()


def test_randint_range_and_dtype() -> None:
    drawn = mx.random.randint(-3, 5, shape=(SIZE,))
    assert drawn.dtype == np.int32
    assert stats.chisquare(np.bincount(drawn.asnumpy() + 3, minlength=8)).pvalue > LEVEL
    wide = mx.random.randint(0, 2**40, shape=(100,), dtype="int64")
    assert wide.dtype == np.int64 and wide.asnumpy().max() > 2**32
    out = nd.zeros((2, 2), dtype="int64")
    assert mx.random.randint(1, 2, out=out) is out and out.asnumpy().tolist() == [[1, 1], [1, 1]]


def test_randn_shape_and_keywords() -> None:
    """Sizes by position, the rest by keyword."""
    assert mx.random.randn(2, 3).shape == (2, 3)
    assert mx.random.randn(4, loc=100, dtype="float64").asnumpy().min() > 50
    assert mx.random.randn(2, loc=nd.array([0, 1]), scale=nd.array([1, 1])).shape == (2, 2)
    assert mx.random.randn().shape == (1,)


def test_context_of_samples() -> None:
    """Samples are on the requested context; parameter arrays determine it otherwise."""
    assert mx.random.normal(shape=2, ctx=mx.cpu(1)).context == mx.cpu(1)
    assert mx.random.normal(shape=2, ctx="cpu(1)").context == mx.cpu(1)
    assert mx.random.normal(nd.ones((2,)), nd.ones((2,)), ctx=mx.cpu(1)).context == mx.cpu(0)
    with mx.cpu(2):
        assert mx.random.randint(0, 3).context == mx.cpu(2)


class TestMultinomial:
    """Sampling of classes by probability."""

    def test_multinomial_frequencies(self) -> None:
        """Frequencies match the probabilities; impossible classes never occur."""
        data = nd.array([[0.1, 0.2, 0.0, 0.7], [0.25, 0.25, 0.25, 0.25]])
        drawn = mx.random.multinomial(data, shape=SIZE)
        assert drawn.shape == (2, SIZE) and drawn.dtype == np.int32
        for row, wanted in zip(drawn.asnumpy(), data.asnumpy(), strict=True):
            share = np.bincount(row, minlength=4) / SIZE
            np.testing.assert_allclose(share, wanted, atol=0.02)
            assert (share[wanted == 0] == 0).all()

    def test_multinomial_shapes(self) -> None:
        """The batch shape, then `shape`."""
        data = nd.ones((2, 3, 4)) / 4
        assert mx.random.multinomial(data).shape == (2, 3)
        assert mx.random.multinomial(data, shape=5).shape == (2, 3, 5)
        assert mx.random.multinomial(data, shape=(5, 6)).shape == (2, 3, 5, 6)
        assert mx.random.multinomial(data[0, 0]).shape == (1,)
        assert mx.random.multinomial(data[0, 0], shape=7).shape == (7,)

    def test_unnormalized_probabilities(self) -> None:
        """Weights need not sum to one."""
        drawn = mx.random.multinomial(nd.array([1, 3]), shape=SIZE).asnumpy()
        assert abs(drawn.mean() - 0.75) < 0.02

    def test_log_probability(self) -> None:
        """The log-probability of the samples, with REINFORCE's gradient."""
        data = nd.array([[0.1, 0.9], [0.5, 0.5]])
        data.attach_grad()
        with mx.autograd.record():
            drawn, logarithm = mx.random.multinomial(data, shape=4, get_prob=True)
        logarithm.backward()
        index = drawn.asnumpy()
        wanted = np.log(np.take_along_axis(data.asnumpy(), index, 1))
        np.testing.assert_allclose(logarithm.asnumpy(), wanted, rtol=1e-6)
        counts = np.stack([(index == 0).sum(1), (index == 1).sum(1)], 1)
        np.testing.assert_allclose(data.grad.asnumpy(), counts / data.asnumpy(), rtol=1e-5)

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8"])
    def test_multinomial_dtypes(self, dtype: str) -> None:
        drawn = mx.random.multinomial(nd.array([0, 1]), dtype=dtype)
        assert drawn.dtype == np.dtype(dtype) and drawn.asnumpy().tolist() == [1]

    @pytest.mark.parametrize("data", [[0, 0], [-1, 2], [np.nan, 1], [np.inf, 1]])
    def test_invalid_probabilities_raise(self, data: list) -> None:
        with pytest.raises(MXNetError, match="probabilities"):
            mx.random.multinomial(nd.array(data))


class TestShuffle:
    """Shuffling along the first axis."""

    def test_shuffle_moves_whole_rows(self) -> None:
        data = nd.array(np.arange(40).reshape(20, 2), dtype="int32")
        moved = mx.random.shuffle(data).asnumpy()
        assert (moved[:, 1] - moved[:, 0] == 1).all()
        assert sorted(moved[:, 0]) == list(range(0, 40, 2))
        assert moved.tolist() != data.asnumpy().tolist()

    def test_shuffle_in_place(self) -> None:
        """The array itself can be `out`."""
        data = nd.arange(50)
        assert mx.random.shuffle(data, out=data) is data
        assert sorted(data.asnumpy()) == list(range(50)) and data.asnumpy().tolist() != list(
            range(50)
        )

    def test_all_permutations_are_equally_likely(self) -> None:
        orders = [tuple(nd.shuffle(nd.arange(3)).asnumpy()) for _ in range(600)]
        counts = [orders.count(o) for o in set(orders)]
        assert len(counts) == 6 and stats.chisquare(counts).pvalue > LEVEL


class TestUniqueZipfian:
    """Unique classes with Zipf's distribution."""

    @pytest.mark.parametrize("classes", [40, 100_000])
    def test_samples_of_a_row_are_unique(self, classes: int) -> None:
        """For both algorithms."""
        drawn, tries = nd._internal._sample_unique_zipfian(range_max=classes, shape=(7, 20))
        assert drawn.dtype == np.int64 and drawn.shape == (7, 20) and tries.shape == (7,)
        values = drawn.asnumpy()
        assert all(len(set(row)) == 20 for row in values)
        assert values.min() >= 0 and values.max() < classes
        assert (tries.asnumpy() >= 20).all()

    @pytest.mark.parametrize("classes", [16, 1000])
    def test_probability_of_the_first_class(self, classes: int) -> None:
        """The first draw follows P(k) = log((k + 2) / (k + 1)) / log(n + 1)."""
        drawn, tries = nd._internal._sample_unique_zipfian(range_max=classes, shape=(4000, 1))
        share = (drawn.asnumpy() == 0).mean()
        assert abs(share - np.log(2) / np.log(classes + 1)) < 0.04
        assert (tries.asnumpy() == 1).all()

    def test_invalid_arguments_raise(self) -> None:
        """More samples than classes, or a wrong shape."""
        for attrs in ({"range_max": 3, "shape": (1, 4)}, {"range_max": 9, "shape": (4,)}):
            with pytest.raises(MXNetError):
                nd._internal._sample_unique_zipfian(**attrs)


class TestSeed:
    """`mx.random.seed`."""

    def test_seed_accepts_integers_only(self) -> None:
        for number in (0, -1, 2**40, 2**70, np.int64(4)):
            mx.random.seed(number)
        for wrong in (1.5, "a", None):
            with pytest.raises(ValueError, match="must be int"):
                mx.random.seed(wrong)

    def test_seed_of_one_context(self) -> None:
        mx.random.seed(3, ctx=mx.cpu(0))
        first = mx.random.uniform(shape=3).asnumpy()
        mx.random.seed(3, ctx="cpu")
        np.testing.assert_array_equal(mx.random.uniform(shape=3).asnumpy(), first)

    def test_host_generators_follow_the_seed(self) -> None:
        """Host generators are seeded, and differ from each other."""
        mx.random.seed(11)
        first, second = (mx.random.host_rng().permutation(20).tolist() for _ in range(2))
        mx.random.seed(11)
        assert mx.random.host_rng().permutation(20).tolist() == first
        assert mx.random.host_rng().permutation(20).tolist() == second != first

    def test_numpy_random_state_is_unchanged(self) -> None:
        np.random.seed(0)  # noqa: NPY002 (the very state that must not move)
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        mx.random.seed(1)
        mx.random.host_rng().random(3)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_concurrent_sampling() -> None:
    """Threads that draw concurrently get complete, different samples."""
    found: dict[int, list[np.ndarray]] = {}

    def work(number: int) -> None:
        drawn = []
        for _ in range(10):
            drawn.append(mx.random.normal(0, 1, shape=(500,)).asnumpy())
            mx.random.gamma(2, 1, shape=(50,))
            mx.random.multinomial(nd.array([0.5, 0.5]), shape=50)
            mx.random.host_rng().permutation(9)
        found[number] = drawn

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    everything = np.concatenate([a for drawn in found.values() for a in drawn])
    assert everything.size == 6 * 10 * 500
    assert len(np.unique(everything)) > 0.99 * everything.size
    assert looks_like(everything, stats.norm(0, 1))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("uniform", (2, 1)),
        ("normal", (0, -1)),
        ("normal", (0, 0)),
        ("normal", (0, float("nan"))),
        ("exponential", (-1,)),
        ("exponential", (0,)),
        ("poisson", (-1,)),
        ("gamma", (-1, 1)),
        ("gamma", (0, 1)),
        ("gamma", (1, -1)),
        ("negative_binomial", (-1, 0.5)),
        ("negative_binomial", (2, -1)),
        ("negative_binomial", (2.5, 0.5)),
        ("generalized_negative_binomial", (-1, 1)),
        ("generalized_negative_binomial", (1, -1)),
        ("randint", (5, 3)),
        ("randint", (5, 5)),
        ("randint", (0.5, 5)),
        ("randint", (0, 2**40)),
    ],
)
def test_invalid_distribution_parameters_raise(name: str, parameters: tuple) -> None:
    with pytest.raises(MXNetError):
        getattr(mx.random, name)(*parameters, shape=3)


def test_invalid_parameter_array_elements_give_nan() -> None:
    """Invalid elements neither hang nor affect their neighbors."""
    wrong = nd.array([-1, float("nan"), 2])
    for name, others in (
        ("gamma", (nd.ones((3,)),)),
        ("poisson", ()),
        ("negative_binomial", (nd.full((3,), 0.5),)),
        ("generalized_negative_binomial", (nd.ones((3,)),)),
    ):
        drawn = getattr(mx.random, name)(wrong, *others).asnumpy()
        assert np.isnan(drawn).tolist() == [True, True, False], name


def test_invalid_sampler_calls_raise() -> None:
    """Wrong dtypes, shapes and names."""
    array = nd.ones((2,))
    with pytest.raises(AssertionError, match="same type"):
        mx.random.uniform(array, 1)
    for wrong in ("a", None, [1], np.array([1.0])):
        with pytest.raises(ValueError, match="NDArray or numbers"):
            mx.random.uniform(wrong, 2)
    with pytest.raises(MXNetError, match="int32"):
        mx.random.uniform(shape=2, dtype="int32")
    with pytest.raises(MXNetError, match="float32"):
        mx.random.randint(0, 2, dtype="float32")
    with pytest.raises(MXNetError, match="Cannot find argument"):
        mx.random.uniform(0, 1, foo=3)
    with pytest.raises(MXNetError, match="one shape"):
        mx.random.uniform(array, nd.ones((3,)))
    with pytest.raises(MXNetError, match="shape"):
        nd.random_normal()
    with pytest.raises(MXNetError):
        nd.random.uniform_like(nd.ones((2,), dtype="int32"))
    with pytest.raises(TypeError):
        mx.random.shuffle(np.ones((2,)))


@pytest.mark.parametrize(
    ("draw", "dtypes"),
    [
        (lambda d: mx.nd.random.multinomial(mx.nd.array([0.5, 0.5]), dtype=d), ("bool",)),
        (lambda d: mx.sym.random.multinomial(mx.sym.var("p"), dtype=d), ("bool",)),
        (lambda d: mx.sym.random.uniform(shape=2, dtype=d), ("bool", "int32")),
        (lambda d: mx.sym.random.randint(0, 5, shape=2, dtype=d), ("bool", "float32")),
        (lambda d: mx.np.random.uniform(size=2, dtype=d), ("bool", "int8", "int32")),
        (lambda d: mx.np.random.normal(size=2, dtype=d), ("bool", "uint8", "int64")),
        (lambda d: mx.np.random.gamma(1.0, size=2, dtype=d), ("bool", "int32")),
        (
            lambda d: mx.npx.random.normal_n(mx.np.zeros(2), mx.np.ones(2), (2,), dtype=d),
            ("bool", "int32"),
        ),
    ],
)
def test_unsupported_sample_dtypes_raise(draw, dtypes):
    """Fractions as integers would all be 0. They also raise when a graph is built."""
    for dtype in dtypes:
        with pytest.raises(mx.MXNetError, match=f"Invalid Input: '{dtype}', valid values"):
            draw(dtype)


# -- shuffles under the seeds of NumPy and Python: orders recorded from MXNet 1.9.1 -------------


DATA = mx.gluon.data


@pytest.fixture(autouse=True)
def seeds() -> None:
    """Seed the generators that MXNet's shuffles use."""
    np.random.seed(0)  # noqa: NPY002 (the seed that programs call)
    random.seed(0)


def test_samplers_and_loaders_with_numpy_seeds_match_mxnet() -> None:
    """Compare the order of each epoch."""
    sampler = DATA.RandomSampler(6)
    assert [list(sampler) for _ in range(2)] == [[5, 2, 1, 3, 0, 4], [1, 3, 4, 0, 2, 5]]
    np.random.seed(0)  # noqa: NPY002
    loader = DATA.DataLoader(DATA.ArrayDataset(np.arange(6)), 6, shuffle=True)
    assert next(iter(loader)).asnumpy().tolist() == [5, 2, 1, 3, 0, 4]


def test_array_iterator_with_numpy_seeds_matches_mxnet() -> None:
    """A reset shuffles the shuffled order again."""
    data = mx.io.NDArrayIter(np.arange(7), np.arange(7), 7, shuffle=True)
    epochs = []
    for _ in range(3):
        epochs.append(data.next().label[0].asnumpy().astype(int).tolist())
        data.reset()
    first, second, third = [6, 2, 1, 3, 0, 5, 4], [1, 4, 0, 3, 6, 2, 5], [2, 3, 4, 5, 6, 1, 0]
    assert epochs == [first, second, third]


def test_bucket_iterator_with_numpy_seeds_matches_mxnet() -> None:
    """Python shuffles the batches, NumPy the sentences."""
    lines = [[i, i + 1] for i in range(6)] + [[i] * 4 for i in range(6)]
    data = mx.rnn.BucketSentenceIter(lines, 2, buckets=[2, 4])
    batches = [b.data[0].asnumpy()[:, 0].astype(int).tolist() for b in data]
    assert batches == [[4, 0], [0, 4], [1, 3], [5, 2], [2, 5], [1, 3]]


def test_augmenters_with_numpy_seeds_match_mxnet() -> None:
    picture = mx.nd.arange(30 * 40 * 3).reshape((30, 40, 3))
    corners = [mx.image.random_crop(picture, (20, 20))[1][:2] for _ in range(3)]
    assert corners == [(12, 6), (1, 4), (16, 7)]
    flip = mx.image.HorizontalFlipAug(0.5)
    assert [flip(picture)[0, 0, 0].asscalar() for _ in range(6)] == [117, 0, 117, 117, 0, 0]


def test_numpy_random_state_after_shuffling_matches_mxnet() -> None:
    list(DATA.RandomSampler(5))
    assert np.random.randint(1000) == 835  # noqa: NPY002


def test_mx_seed_repeats_orders_when_numpy_is_unseeded() -> None:
    np.random.set_bit_generator(np.random.MT19937())
    orders = []
    for _ in range(2):
        mx.random.seed(5)
        orders.append(list(DATA.RandomSampler(20)))
    assert orders[0] == orders[1]


def test_orders_are_reproducible_with_mx_seed_and_numpy_seed() -> None:
    """Not in MXNet, where Python's generator stays unseeded."""
    random.setstate(UNSEEDED)
    lines = [[i, i + 1] for i in range(40)]
    epochs = []
    for _ in range(2):
        mx.random.seed(3)
        np.random.seed(3)  # noqa: NPY002
        data = mx.rnn.BucketSentenceIter(lines, 2, buckets=[2])
        draws = [mx.image.random_crop(mx.nd.ones((30, 30, 3)), (9, 9))[1] for _ in range(3)]
        epochs.append((data.idx, draws))
    assert epochs[0] == epochs[1]


def test_last_image_batch_is_padded_in_the_order_of_its_epoch(tmp_path) -> None:
    """Only `reset` shuffles, so padding does not change later epochs."""
    files = {"path_imgidx": str(tmp_path / "a.idx"), "path_imgrec": str(tmp_path / "a.rec")}
    with mx.recordio.MXIndexedRecordIO(*files.values(), "w") as file:
        for number in range(5):
            header = mx.recordio.IRHeader(0, float(number), number, 0)
            pixels = np.full((16, 16, 3), number, np.uint8)
            file.write_idx(number, mx.recordio.pack_img(header, pixels, 3, ".png"))
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    batches = mx.image.ImageIter(2, (3, 16, 16), shuffle=True, **files)
    epochs = []
    for _ in range(3):
        epochs.append([b.label[0].asnumpy().astype(int).tolist() for b in batches])
        batches.reset()
    assert epochs == [
        [[0, 1], [3, 2], [4, 0]],
        [[3, 2], [1, 0], [4, 3]],
        [[1, 0], [4, 2], [3, 1]],
    ]
