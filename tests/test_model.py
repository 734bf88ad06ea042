"""Checkpoints and `FeedForward`."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import MXNetError
from tests.closeness import assert_equal_up_to_rounding

pytestmark = pytest.mark.filterwarnings("ignore:mxnet.model.FeedForward has been deprecated")


def net():
    fc = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(mx.sym.BatchNorm(fc, name="bn"), name="softmax")


def test_a_checkpoint_comes_back(tmp_path, caplog):
    caplog.set_level("INFO")
    prefix = str(tmp_path / "net")
    args, auxes = {"fc_weight": mx.nd.ones((3, 2))}, {"bn_moving_mean": mx.nd.zeros(3)}
    mx.model.save_checkpoint(prefix, 7, net(), args, auxes)
    assert caplog.messages == [f'Saved checkpoint to "{prefix}-0007.params"']
    symbol, got_args, got_auxes = mx.model.load_checkpoint(prefix, 7)
    assert symbol.list_outputs() == ["softmax_output"]
    assert got_args["fc_weight"].asnumpy().tolist() == [[1, 1]] * 3
    assert list(got_auxes) == ["bn_moving_mean"]
    assert list(mx.model.load_params(prefix, 7)[0]) == ["fc_weight"]
    mx.model.save_checkpoint(prefix, 8, None, args, auxes)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "net-0007.params",
        "net-0008.params",
        "net-symbol.json",
    ]


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(MXNetError, match=r"none-symbol.json.*no such file"):
        mx.model.load_checkpoint(str(tmp_path / "none"), 1)
    with pytest.raises(MXNetError, match=r"none-0001.params"):
        mx.model.load_params(str(tmp_path / "none"), 1)


def test_arrays_without_names_are_no_parameters(tmp_path):
    mx.nd.save(str(tmp_path / "n-0001.params"), [mx.nd.ones(1)])
    with pytest.raises(MXNetError, match="without names"):
        mx.model.load_params(str(tmp_path / "n"), 1)


def test_feed_forward_learns_from_arrays(tmp_path):
    mx.random.seed(0)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 90)
    data = np.eye(3)[labels] + rng.normal(scale=0.1, size=(90, 3))
    model = mx.model.FeedForward.create(
        net(), data, labels, num_epoch=8, learning_rate=0.5, momentum=0.9,
        numpy_batch_size=15, eval_data=(list(data), list(labels)),
        initializer=mx.init.Xavier(),
    )  # fmt: skip
    answers = model.predict(data)
    assert isinstance(answers, np.ndarray)
    assert (answers.argmax(axis=1) == labels).mean() > 0.95
    assert model.score(mx.io.NDArrayIter(data, labels, 15)) > 0.95

    model.save(str(tmp_path / "ff"))
    again = mx.model.FeedForward.load(str(tmp_path / "ff"), 8)
    assert_equal_up_to_rounding(again.predict(data), answers)
    outs, seen, given = again.predict(mx.io.NDArrayIter(data, labels, 20), return_data=True)
    assert (outs.shape, seen.shape, given.shape) == ((90, 3), (90, 3), (90,))


def test_feed_forward_says_what_is_missing():
    with pytest.raises(ValueError, match="y must be specified"):
        mx.model.FeedForward(net(), num_epoch=1).fit(np.ones((4, 2)))
    with pytest.raises(TypeError, match="num_epoch"):
        mx.model.FeedForward(net()).fit(np.ones((4, 2)), np.ones(4))
    with pytest.raises(ValueError, match="no parameters yet"):
        mx.model.FeedForward(net()).predict(np.ones((4, 2)))
    extra = {"other": mx.nd.ones(1)}
    with pytest.raises(ValueError, match="has no other"):
        mx.model.FeedForward(net(), arg_params=extra)
    assert mx.model.FeedForward(net(), arg_params=extra, allow_extra_params=True).arg_params == {}


def test_it_is_said_to_be_old():
    with pytest.warns(DeprecationWarning, match="mxnet.mod.Module"):
        mx.model.FeedForward(net())


def test_large_weights_are_updated_by_the_devices():
    small, large = {"w": mx.nd.ones(2)}, {"w": mx.nd.zeros((4097, 4097))}
    assert mx.model._create_kvstore("local", 2, small)[1] is True
    assert mx.model._create_kvstore("local", 2, large)[1] is False
    assert mx.model._create_kvstore("local", 1, small) == (None, False)
    assert mx.model._create_kvstore(None, 2, small) == (None, False)
    with pytest.raises(TypeError, match="KVStore, str or None"):
        mx.model._create_kvstore(3, 2, small)


def test_feed_forward_predicts_without_labels():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2)
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    model = mx.model.FeedForward(net, num_epoch=1, initializer=mx.init.One())
    model.fit(mx.io.NDArrayIter(np.ones((20, 6)), np.zeros(20), 10))
    assert model.predict(mx.io.NDArrayIter(np.ones((20, 6)), None, 10)).shape == (20, 2)
    assert model.predict(np.ones((20, 6))).shape == (20, 2)


def test_names_that_programs_ask_for():
    assert issubclass(mx.model.FeedForward, mx.model.BASE_ESTIMATOR)
    assert (importlib.util.find_spec("sklearn") is not None) is mx.model.SKLEARN_INSTALLED
    manager = mx.executor_manager.DataParallelExecutorManager
    assert mx.model.DataParallelExecutorManager is manager
