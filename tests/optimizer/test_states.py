"""``.states`` files: MXNet's files load, ours roundtrip, and other pickles raise."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import zlib
from collections import deque
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import FormatError
from mxnet.optimizer.states_file import FOOTER, MAGIC, dump_states, read_states
from tests.golden import HERE
from tests.golden.record import record_optimizers as recorder

FOLDER = HERE / "states"


def _updater(name="sgd", **options):
    return mx.optimizer.get_updater(mx.optimizer.create(name, **options))


@pytest.mark.parametrize("kind", ["sgd", "adam", "sgd-float16"])
def test_states_saved_by_mxnet_are_loaded(kind):
    expected = np.load(FOLDER / f"{kind}.npy")
    updater = _updater()
    updater.set_states((FOLDER / f"{kind}.states").read_bytes())
    assert list(updater.states) == [0, 1, 2]
    assert updater.states_synced == dict.fromkeys(range(3), False)
    np.testing.assert_array_equal(recorder.flat_states(updater), expected)
    assert type(updater.optimizer) is mx.optimizer.SGD
    updater.set_states((FOLDER / f"{kind}-optimizer.states").read_bytes())
    np.testing.assert_array_equal(recorder.flat_states(updater), expected)
    made = updater.optimizer
    assert type(made).__name__.lower() == kind.split("-")[0]
    assert (made.num_update, made.idx2name) == (20, recorder.NAMES)
    if kind == "adam":
        assert isinstance(made.lr_scheduler, mx.lr_scheduler.FactorScheduler)
        assert made.learning_rate == pytest.approx(0.05 / 8)


@pytest.mark.parametrize("kind", ["sgd", "adam", "sgd-float16"])
def test_training_resumes_from_states_saved_by_mxnet(kind):
    settings = {
        "sgd": {"learning_rate": 0.1, "momentum": 0.9},
        "adam": {"learning_rate": 0.05, "schedule": True},
        "sgd-float16": {"momentum": 0.9, "float16": True, "multi_precision": True},
    }
    name = kind.split("-")[0]
    ours, seen = recorder.run(mx, name, settings[kind])
    theirs = _updater()
    theirs.set_states((FOLDER / f"{kind}-optimizer.states").read_bytes())
    found = []
    for updater in (ours, theirs):
        weights = [mx.nd.array(w, dtype=w.dtype) for w in seen[-1]]
        grads = [mx.nd.ones(w.shape, dtype=w.dtype) for w in weights]
        updater([0, 1, 2], grads, weights)
        assert updater.optimizer.num_update == 21
        found.append(np.concatenate([w.asnumpy().ravel() for w in weights]))
    np.testing.assert_allclose(*found, rtol=1e-3 if "float16" in kind else 1e-5, atol=1e-6)


@pytest.mark.parametrize("with_optimizer", [False, True])
def test_states_roundtrip(with_optimizer):
    ours, _ = recorder.run(mx, "adam", {"learning_rate": 0.05, "schedule": True})
    again = _updater("nag")
    again.set_states(ours.get_states(with_optimizer))
    np.testing.assert_array_equal(recorder.flat_states(again), recorder.flat_states(ours))
    assert type(again.optimizer).__name__ == ("Adam" if with_optimizer else "NAG")
    assert b"mxnet.ndarray.ndarray" in ours.get_states()


def test_sparse_states_are_saved_in_the_format_of_mxnet():
    rule, weight = (
        mx.optimizer.RMSProp(centered=True),
        mx.nd.array([[0, 0], [1, 2]]).tostype("row_sparse"),
    )
    updater = mx.optimizer.get_updater(rule)
    updater(0, weight * 1, weight)
    data = updater.get_states()
    assert b"mxnet.ndarray.sparse" in data and b"RowSparseNDArray" in data
    again = mx.optimizer.get_updater(rule)
    again.set_states(data)
    for state, copy in zip(updater.states[0], again.states[0], strict=True):
        assert copy.stype == "row_sparse"
        np.testing.assert_array_equal(copy.asnumpy(), state.asnumpy())
    # they also update dense weights
    dense, expected = mx.nd.array([[1, 1], [1, 2]]), mx.nd.array([[1, 1], [1, 2]])
    updater.states = {0: tuple(state.tostype("default") for state in updater.states[0])}
    for _ in range(2):
        again(0, dense * 1, dense)
        updater(0, expected * 1, expected)
    np.testing.assert_array_equal(dense.asnumpy(), expected.asnumpy())
    assert (again.states[0][0].asnumpy() == updater.states[0][0].asnumpy()).all()


def test_loaded_states_move_to_the_context_of_their_weights():
    updater = _updater(momentum=0.9)
    weight = mx.nd.ones(2)
    updater(0, weight * 1, weight)
    again = _updater(momentum=0.9)
    again.set_states(updater.get_states())
    away = mx.nd.ones(2, ctx=mx.cpu(1))
    again(0, away * 1, away)
    assert again.states[0].context == mx.cpu(1)
    assert again.states_synced == {0: True}
    assert again.states[0].asnumpy().tolist() == pytest.approx([-0.019, -0.019])


def test_custom_optimizers_and_schedulers_roundtrip():
    class Own(mx.optimizer.SGD):
        pass

    class Falling(mx.lr_scheduler.LRScheduler):
        def __call__(self, num_update):
            return 1.0 / (1 + num_update)

    for kind in (Own, Falling):
        kind.__qualname__ = kind.__name__
        globals()[kind.__name__] = kind
    updater = mx.optimizer.get_updater(Own(lr_scheduler=Falling()))
    again = _updater()
    again.set_states(updater.get_states(True))
    assert type(again.optimizer) is Own
    assert again.optimizer.learning_rate == 1.0


class Evil:
    def __init__(self, call, *args):
        self.call, self.args = call, args

    def __reduce__(self):
        return self.call, self.args


@pytest.mark.parametrize(
    "evil",
    [
        Evil(os.system, "exit 3"),
        Evil(eval, "1 + 1"),
        Evil(getattr, "x", "upper"),
        Evil(__import__, "os"),
        Evil(mx.nd.load, "x"),
        Evil(np.load, "x"),
        Evil(pickle.loads, b"x"),
    ],
)
def test_pickles_of_disallowed_classes_raise(evil):
    for data in (pickle.dumps({0: evil}), pickle.dumps({0: evil}, protocol=2)):
        with pytest.raises(mx.error.FormatError, match="may not hold"):
            _updater().set_states(data)


@pytest.mark.parametrize(
    "data", [b"", b"no pickle", pickle.dumps([1]), pickle.dumps(({}, 3)), b"\x80\x04}\x94"]
)
def test_damaged_states_raise(data):
    updater = _updater()
    with pytest.raises(mx.error.FormatError, match="ptimizer states"):
        updater.set_states(data)
    assert updater.states == {}


def test_plain_values_roundtrip():
    held = {"a": [1, 2.5, None, True], 3: (np.arange(3), np.float32(2)), 4: {b"x", "y"}}
    updater = _updater()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        updater.set_states(pickle.dumps(held, protocol=protocol))
        assert updater.states["a"] == held["a"]
        assert updater.states[3][0].tolist() == [0, 1, 2]
        assert updater.states[4] == held[4]


def described(nodes, root):
    """Return a states file with this description."""
    text = json.dumps({"root": root, "nodes": nodes}).encode()
    return text + FOOTER.pack(len(text), zlib.crc32(text), MAGIC)


class Settings:
    """A custom object held by a scheduler."""

    def __init__(self, steps):
        self.steps = steps

    def __getattr__(self, name):
        if name == "__getstate__" and sys.version_info < (3, 11):
            raise AttributeError(name)  # pickle itself asks for it
        raise AssertionError(f"{name} was asked for")


class Ended(Settings):
    def __del__(self):
        Path(self.steps).unlink()


class Reduced(Settings):
    def __reduce__(self):
        return Reduced, (self.steps,)


class Holder(mx.lr_scheduler.LRScheduler):
    def __init__(self, *held):
        super().__init__()
        self.held = list(held)

    def __call__(self, num_update):
        return self.base_lr


def with_scheduler(*held):
    return mx.optimizer.get_updater(mx.optimizer.create("sgd", lr_scheduler=Holder(*held)))


def test_objects_of_user_classes_roundtrip():
    settings = Settings({"warm": (3, Settings(2))})
    updater = with_scheduler(settings, settings)
    written = updater.get_states(True)
    for data in (written, pickle.dumps((updater.states, updater.optimizer), protocol=2)):
        again = with_scheduler()
        again.set_states(data)
        first, second = again.optimizer.lr_scheduler.held
        assert type(first) is Settings and first is second and first is not settings
        assert first.steps["warm"][0] == 3 and first.steps["warm"][1].steps == 2


@pytest.mark.parametrize("kind", [Ended, Reduced, subprocess.Popen, tempfile.TemporaryDirectory])
def test_classes_with_side_effects_are_not_instantiated(kind, tmp_path):
    """Not even user classes: a file must not control what they delete."""
    victim = tmp_path / "precious"
    victim.write_text("x")
    fields = {"steps": str(victim), "name": str(victim), "returncode": 1, "pid": 1}
    name = [kind.__module__, kind.__qualname__, fields]
    with pytest.raises(FormatError, match="may not hold"):
        read_states(described([{"object": name}, {"dict": [[0, {"ref": 0}]]}], {"ref": 1}))
    assert victim.exists()


def test_unsaved_scheduler_values_keep_those_of_the_program():
    """Functions are stored by name; other values keep those of the program, with a warning."""
    data = with_scheduler(decay, deque([1, 2])).get_states(True)
    again = with_scheduler(decay, deque([3]))
    with pytest.warns(UserWarning, match=r"lr_scheduler\.held\[1\] keeps .* collections\.deque"):
        again.set_states(data)
    assert again.optimizer.lr_scheduler.held == [decay, deque([3])]
    for other in (with_scheduler(), with_scheduler(described, deque())):
        with pytest.raises(FormatError, match=r"held\[0\] was .*decay.* the same lr_scheduler"):
            other.set_states(data)


def decay(step):
    return 0.1 / step


def test_self_referencing_states_raise():
    scheduler = Holder()
    scheduler.held.append(scheduler)
    with pytest.raises(mx.MXNetError, match="inside itself"):
        dump_states(({}, mx.optimizer.SGD(lr_scheduler=scheduler)))
