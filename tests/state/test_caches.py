"""Caches are bounded, and cached calls equal first calls."""

from __future__ import annotations

import collections
import math
import sys
import threading

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import mxnet as mx
from mxnet import nd
from mxnet._process import caches
from mxnet.graph import node as graph_node
from mxnet.graph.passes import infer
from mxnet.kvstore.compression import TwoBit
from mxnet.ndarray.codegen import make_function
from mxnet.ops import declare, families, registry
from mxnet.parallel import reduction
from mxnet.runtime import calls as call_functions
from tests.arrays import check

NAN = float("nan")
THREADS = 8
LIMIT = 120  # seconds


def run_threads(work):
    """Call `work` with a number in several threads at once; return all errors."""
    start, errors = threading.Barrier(THREADS), []

    def run(number):
        start.wait(LIMIT)
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive()
    return errors


@pytest.fixture
def fast_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def calls_of(function):
    """Return the call cache of an eager function."""
    return function.__globals__["_calls"]


# -- the dictionary ---------------------------------------------------------------------------


def test_a_full_cache_drops_the_oldest_half():
    cache = {}
    for n in range(100):
        assert caches.store(cache, n, -n, 10) == -n
        assert len(cache) <= 10 and n in cache
        assert all(k in cache for k in range(max(0, n - 4), n))


def test_storing_an_existing_key_replaces_its_value():
    cache = {1: "a"}
    caches.store(cache, 1, "b", 2)
    assert cache == {1: "b"}


@pytest.mark.parametrize("bound", [1, 2, 7])
def test_concurrent_stores(bound, fast_switches):
    cache = {}

    def work(thread):
        for n in range(2000):
            key = (thread * n) % 50
            assert caches.store(cache, key, key, bound) == key
            assert cache.get(key, key) == key

    assert run_threads(work) == []
    assert len(cache) <= bound + THREADS
    assert all(key == value for key, value in cache.items())


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (NAN, True),
        (np.float32("nan"), True),
        (np.float64("nan"), True),
        (complex(0, NAN), True),
        ((1, (2.0, NAN)), True),
        ((), False),
        ("nan", False),
        (None, False),
        ((1, 2.0, True, "x", torch.float32), False),
        (math.inf, False),
    ],
)
def test_has_nan_finds_nested_nan(key, expected):
    assert caches.has_nan(key) is expected


# -- numbers as tensors -------------------------------------------------------------------------


@pytest.fixture
def few_numbers(monkeypatch):
    monkeypatch.setattr(families, "MAX_KNOWN_NUMBERS", 16)
    known = families.known_numbers[torch.float32]
    known.clear()
    return known


def test_scalar_cache_is_bounded(few_numbers):
    x = nd.ones((2,))
    for n in range(100):
        value = n + 0.25
        np.testing.assert_array_equal((x + value).asnumpy(), np.full(2, 1 + value, "float32"))
        np.testing.assert_array_equal((x + value).asnumpy(), np.full(2, 1 + value, "float32"))
        assert value in few_numbers and len(few_numbers) <= 16


def test_nan_scalars_are_not_cached(few_numbers):
    x = nd.ones((2,))
    for _ in range(50):
        for nan in (float("nan"), NAN, -NAN, math.inf - math.inf):
            assert np.isnan((x * nan).asnumpy()).all()
            assert np.isnan((nan + x).asnumpy()).all()
    assert not any(key != key for key in few_numbers)
    assert torch.isnan(families.number(NAN, torch.float32))


@pytest.mark.parametrize("first", [0.0, -0.0, 0])
def test_cached_zeros_keep_their_signs(first, few_numbers):
    x = nd.ones((1,))
    for value in (first, 0.0, -0.0, 0, -0.0, 0.0):
        for _ in range(2):
            negative = isinstance(value, float) and math.copysign(1, value) < 0
            assert (x / value).asscalar() == (-math.inf if negative else math.inf)
            assert np.signbit((x * value).asscalar()) == negative


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
@pytest.mark.parametrize("order", [(True, 1, 1.0), (1.0, True, 1), (1, 1.0, True)])
def test_true_and_one_are_equal_scalars(dtype, order):
    families.known_numbers.clear()
    for value in order:
        found = nd.full((2,), 3, dtype=dtype) + value
        assert found.dtype == np.dtype(dtype) and found.asnumpy().tolist() == [4, 4]


def test_fractions_and_large_integers_are_distinct_scalars():
    x = nd.array([0], dtype="float64")
    for value in (2**53, 2**53 + 1, 2.0**53, 1e300, 10**300, 0.1, np.float32(0.1), 1 / 3):
        for _ in range(2):
            assert (x + value).asscalar() == float(value)


def test_cached_scalars_are_separate_per_dtype():
    for dtype in ("float64", "float16", "float32", "int32"):
        x = nd.zeros((1,), dtype=dtype)
        for _ in range(2):
            assert (x + 0.1).asscalar() == np.array(0.1).astype(dtype)


@pytest.mark.parametrize(
    "mode", [torch.inference_mode, lambda: torch.device("meta"), FakeTensorMode, torch.no_grad]
)
def test_torch_modes_do_not_affect_cached_scalars(mode, few_numbers):
    value = 41.5
    with mode():
        families.number(value, torch.float32)
    kept = families.number(value, torch.float32)
    assert type(kept) is torch.Tensor and kept.is_cpu and not kept.is_inference()
    x = nd.ones((2,))
    x.attach_grad()
    with mx.autograd.record():
        y = (x * value).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [value, value]


def test_concurrent_use_and_eviction_of_scalars(few_numbers, fast_switches):
    def work(thread):
        x = nd.ones((1,))
        for n in range(300):
            value = float(thread * 1000 + n % 40) + 0.5
            assert (x + value).asscalar() == 1 + value

    assert run_threads(work) == []
    assert len(few_numbers) <= 16 + THREADS


# -- calls and attributes -----------------------------------------------------------------------


@pytest.fixture
def few_calls(monkeypatch):
    monkeypatch.setattr(declare, "MAX_CACHED_ATTRS", 16)
    monkeypatch.setattr(call_functions, "MAX_CACHED_ATTRS", 16)
    op = registry.get("clip")
    calls_of(nd.clip).clear()
    op.parsed_attributes.clear()
    return calls_of(nd.clip), op.parsed_attributes


def test_attribute_cache_is_bounded(few_calls):
    x = nd.array([-1e6, 1e6])
    for n in range(100):
        for _ in range(2):
            assert nd.clip(x, -n, n + 0.5).asnumpy().tolist() == [-n, n + 0.5]
        assert all(0 < len(cache) <= 16 for cache in few_calls)


def test_attributes_with_nan_are_not_cached(few_calls):
    x = nd.array([1.0])
    for _ in range(50):
        nd.clip(x, float("nan"), 2.0)
        nd.clip(x, a_min=np.float32("nan"), a_max=math.inf - math.inf)
    assert all(len(cache) == 0 for cache in few_calls)
    image = nd.ones((1, 2, 2))
    cache = calls_of(nd.image.normalize)
    before = len(cache)
    for _ in range(20):
        nd.image.normalize(image, mean=(float("nan"),), std=(1.0,))
    assert len(cache) == before


def test_concurrent_calls_and_eviction_of_attributes(few_calls, fast_switches):
    def work(thread):
        x = nd.array([1e6])
        for n in range(200):
            bound = float(thread * 1000 + n % 40)
            assert nd.clip(x, -1.0, bound).asscalar() == bound

    assert run_threads(work) == []
    assert all(len(cache) <= 16 + THREADS for cache in few_calls)


def test_attribute_cache_distinguishes_signs_of_zeros():
    x = nd.array([-1.0, 1.0])
    for _ in range(2):
        for zero in (0.0, -0.0, 0):
            clipped = nd.clip(x, zero, 0.5).asnumpy()
            negative = isinstance(zero, float) and math.copysign(1, zero) < 0
            assert np.signbit(clipped[0]) == negative
    image = nd.ones((1, 1, 1))
    for _ in range(2):
        for zero, infinity in ((0.0, math.inf), (-0.0, -math.inf)):
            made = nd.image.normalize(image, mean=(0.0,), std=(zero,))
            assert made.asnumpy().item() == infinity


def test_attribute_cache_distinguishes_true_one_and_strings():
    x = nd.array([[3.0, 1.0, 2.0]])
    first = [nd.one_hot(nd.array([1]), 2, on_value=v).asnumpy() for v in (True, 1, 1.0, "1")]
    again = [nd.one_hot(nd.array([1]), 2, on_value=v).asnumpy() for v in ("1", 1.0, 1, True)]
    for each in (*first, *again):
        np.testing.assert_array_equal(each, [[0, 1]])
    for keepdims in (True, 1, "True", "1"):
        for _ in range(2):
            assert nd.sum(x, axis=1, keepdims=keepdims).shape == (1, 1)
    for _ in range(2):
        with pytest.raises(mx.MXNetError):
            nd.sum(x, axis=1, keepdims=1.5)
    keys = {declare.typed_key({"a": v}) for v in (True, 1, 1.0, (1,), (1.0,), (True,), "1")}
    assert len(keys) == 7


def test_array_attributes_are_compared_by_all_values():
    image = nd.zeros((3, 1, 1), dtype="float64")
    close = np.array([0.1234567891, 0.0, 0.0]), np.array([0.1234567892, 0.0, 0.0])
    for _ in range(2):
        for mean in close:  # equal in the digits that NumPy shows
            made = nd.image.normalize(image, mean=mean, std=(1.0, 1.0, 1.0))
            assert made.asnumpy()[0, 0, 0] == -mean[0]
    for _ in range(2):
        mean = close[0]
        mean[0] += 1.0  # the same array with other values
        made = nd.image.normalize(image, mean=mean, std=(1.0, 1.0, 1.0))
        assert made.asnumpy()[0, 0, 0] == -mean[0]


def test_attributes_of_custom_operators_are_not_cached():
    class Amount:
        value = 1

        def __str__(self):
            return str(self.value)

    class Scale(mx.operator.CustomOp):
        def __init__(self, amount):
            super().__init__()
            self.amount = amount

        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * self.amount)

    class ScaleProp(mx.operator.CustomOpProp):
        def __init__(self, amount):
            super().__init__()
            self.amount = float(amount)

        def create_operator(self, ctx, shapes, dtypes):
            return Scale(self.amount)

    mx.operator.register("scale_by_amount")(ScaleProp)
    amount, x = Amount(), nd.ones((1,))
    for value in (1, 5, 9):
        amount.value = value
        assert nd.Custom(x, op_type="scale_by_amount", amount=amount).asscalar() == value


# -- graphs -------------------------------------------------------------------------------------


def test_graph_caches_are_bounded(monkeypatch):
    monkeypatch.setattr(graph_node, "MAX_CACHED_SIGNATURES", 16)
    monkeypatch.setattr(infer, "MAX_CACHED", 16)
    for cache in (graph_node._signatures, infer._shape_cache, infer._type_cache):
        cache.clear()
    x = mx.sym.Variable("x")
    for n in range(1, 60):
        y = mx.sym.clip(x, -n, n) + n
        assert y.infer_shape(x=(n, 2))[1] == [(n, 2)]
        assert y.infer_type(x="float32")[1] == [np.float32]
    assert 0 < len(graph_node._signatures) <= 16
    assert 0 < len(infer._shape_cache) <= 16 and 0 < len(infer._type_cache) <= 16


def test_shapes_of_a_reregistered_custom_operator_are_not_cached():
    def make(times):
        class Repeat(mx.operator.CustomOpProp):
            def infer_shape(self, shapes):
                return shapes, [[shapes[0][0] * times]], []

        return Repeat

    for times in (2, 3):
        mx.operator.register("repeats_rows")(make(times))
        out = mx.sym.Custom(mx.sym.Variable("x"), op_type="repeats_rows")
        assert out.infer_shape(x=(4,))[1] == [(4 * times,)]


# -- workers ------------------------------------------------------------------------------------


class Alone:
    """The group of one worker."""

    def __init__(self):
        self.agreements = 0

    def agree(self, facts, what):
        self.agreements += 1


def test_reduction_plans_and_buffers_are_bounded(monkeypatch):
    monkeypatch.setattr(reduction, "MAX_PLANS", 8)
    monkeypatch.setattr(reduction, "MAX_FREE_SIZES", 8)
    group = Alone()
    reducer = reduction.Reducer(group)
    for n in range(1, 50):
        for _ in range(2):
            (bucket,) = reducer.plan(["w"], [torch.zeros(n)])
            assert bucket.sizes == [n]
            reducer.give_back(reducer.take_buffer(n, torch.float32, torch.device("cpu")))
        assert len(reducer._plans) <= 8 and len(reducer._free) <= 8
    assert group.agreements == 49  # once for each


def test_reduction_buffers_are_reused():
    reducer = reduction.Reducer(Alone())
    cpu = torch.device("cpu")
    buffer = reducer.take_buffer(5, torch.float32, cpu)
    reducer.give_back(buffer)
    assert reducer.take_buffer(5, torch.float64, cpu) is not buffer
    assert reducer.take_buffer(5, torch.float32, cpu) is buffer
    assert reducer.take_buffer(5, torch.float32, cpu) is not buffer


def test_agreed_key_lists_are_bounded():
    agreed = TwoBit(0.5).agreed
    for n in range(100):
        caches.store(agreed, n.to_bytes(4, "little"), None, 16)
    assert len(agreed) <= 16


@pytest.fixture
def clip(monkeypatch):
    """Return the operator, and a function of it, with empty caches."""
    op = registry.get("clip")
    monkeypatch.setattr(op, "parsed_attributes", {})
    monkeypatch.setattr(families, "known_numbers", collections.defaultdict(dict))
    return op, make_function(op, "clip", nd.NDArray)


def test_full_scalar_cache_accepts_new_entries(clip):
    for value in range(5000):
        families.number(value + 0.125, torch.float32)
    assert families.number(0.375, torch.float32) is families.number(0.375, torch.float32)
    assert len(families.known_numbers[torch.float32]) <= families.MAX_KNOWN_NUMBERS


def test_nan_is_cached_once(clip):
    for _ in range(10):
        assert families.number(float("nan"), torch.float32).isnan()
    assert len(families.known_numbers[torch.float32]) <= 1


def test_full_attribute_cache_accepts_new_entries(clip):
    op, _ = clip
    for value in range(5000):
        op.parse({"a_min": -value - 0.125, "a_max": 1.0})
    raw = {"a_min": -7000.5, "a_max": 1.0}
    assert op.parse(raw) is op.parse(raw)


def test_results_are_correct_when_caches_are_full(clip):
    _, function = clip
    x = nd.ones((2,))
    for value in range(5000):
        function(x, a_min=-1.0, a_max=value / 8 + 2)
        if value % 50 == 0:
            check(function(x, a_min=-1.0, a_max=value / 50), min(1, value / 50))
