"""An operator can be watched: whoever holds its kernel runs the watched one, until the end."""

from __future__ import annotations

import pytest

import mxnet as mx
from mxnet.ndarray.codegen import make_function
from mxnet.ops import registry

OPERATORS = ("relu", "dot", "broadcast_add", "_plus_scalar")


@pytest.fixture
def seen():
    """Watch some operators, and give the list of the names that ran."""
    names = []

    def noting(name, kernel):
        def run(*tensors, **attrs):
            names.append(name)
            return kernel(*tensors, **attrs)

        return run

    for name in OPERATORS:
        registry.get(name).watch(noting)
    yield names
    for name in OPERATORS:
        registry.get(name).unwatch()


def test_functions_methods_and_signs_run_the_watched_kernel(seen):
    x = mx.nd.ones((2, 2))
    mx.nd.relu(x)
    x.relu()
    mx.nd.relu(x.astype("int32"))  # not the bare kernel, the whole operator
    mx.nd.dot(x, x)
    x + x
    x + 1
    assert seen == ["relu", "relu", "relu", "dot", "broadcast_add", "_plus_scalar"]


def test_after_the_end_the_plain_kernels_run():
    x, op = mx.nd.ones((2, 2)), registry.get("relu")
    plain, calls = (op.kernel, op.raw), []
    op.watch(lambda name, kernel: lambda *tensors: calls.append(name) or kernel(*tensors))
    made_meanwhile = make_function(op, "relu", mx.nd.NDArray)
    op.unwatch()
    assert (op.kernel, op.raw) == plain
    mx.nd.relu(x), made_meanwhile(x), x.relu()
    assert calls == []


def test_a_second_watcher_takes_the_place_of_the_first(seen):
    calls = []
    registry.get("relu").watch(lambda name, kernel: lambda x: calls.append(name) or kernel(x))
    mx.nd.relu(mx.nd.ones(2))
    assert (seen, calls) == ([], ["relu"])


def test_to_end_what_did_not_begin_changes_nothing():
    op = registry.get("relu")
    before = op.kernel
    op.unwatch()
    assert op.kernel is before


def test_who_follows_is_told_at_once_and_at_every_change():
    op, told = registry.get("arccosh"), []
    op.follow(lambda: told.append(op.kernel))
    op.watch(lambda name, kernel: lambda *tensors: kernel(*tensors))
    watched = op.kernel
    op.unwatch()
    assert told == [op.kernel, watched, op.kernel]
