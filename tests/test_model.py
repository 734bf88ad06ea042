"""Checkpoints and `FeedForward`."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from mxnet.executor_manager import (
    DataParallelExecutorGroup,
    DataParallelExecutorManager,
    _check_arguments,
    _load_general,
    _split_input_slice,
)

import mxnet as mx
from mxnet.error import MXNetError, ShapeError
from tests.closeness import assert_equal_up_to_rounding

pytestmark = pytest.mark.filterwarnings("ignore:mxnet.model.FeedForward has been deprecated")


def net():
    fc = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(mx.sym.BatchNorm(fc, name="bn"), name="softmax")


def test_save_and_load_checkpoint(tmp_path, caplog):
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


def test_missing_checkpoint_raises(tmp_path):
    with pytest.raises(MXNetError, match=r"none-symbol.json.*No such file"):
        mx.model.load_checkpoint(str(tmp_path / "none"), 1)
    with pytest.raises(MXNetError, match=r"none-0001.params"):
        mx.model.load_params(str(tmp_path / "none"), 1)


def test_load_params_of_unnamed_arrays_raises(tmp_path):
    mx.nd.save(str(tmp_path / "n-0001.params"), [mx.nd.ones(1)])
    with pytest.raises(MXNetError, match="without names"):
        mx.model.load_params(str(tmp_path / "n"), 1)


def test_feed_forward_trains_on_arrays(tmp_path):
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


def test_feed_forward_with_missing_arguments_raises():
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


def test_feed_forward_is_deprecated():
    with pytest.warns(DeprecationWarning, match="mxnet.mod.Module"):
        mx.model.FeedForward(net())


def test_create_kvstore_updates_large_weights_on_devices():
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


def test_base_estimator_and_executor_manager_exist():
    assert issubclass(mx.model.FeedForward, mx.model.BASE_ESTIMATOR)
    assert (importlib.util.find_spec("sklearn") is not None) is mx.model.SKLEARN_INSTALLED
    manager = mx.executor_manager.DataParallelExecutorManager
    assert mx.model.DataParallelExecutorManager is manager


# -- how batches are split over devices ---------------------------------------------------------


def test_split_input_slice_by_work_load():
    assert _split_input_slice(8, [1, 1]) == [slice(0, 4), slice(4, 8)]
    assert _split_input_slice(10, [1, 1, 1]) == [slice(0, 3), slice(3, 6), slice(6, 10)]
    with pytest.raises(ValueError, match="Too many slices"):
        _split_input_slice(2, [1, 1, 1])


def test_load_general_copies_slices_along_the_batch_axis():
    targets = [mx.nd.zeros((2, 2)), mx.nd.zeros((2, 1))]
    places = [(slice(0, 2), targets[0]), (slice(2, 3), targets[1])]
    _load_general([mx.nd.arange(6).reshape((2, 3))], [places], [1])
    assert [x.asnumpy().tolist() for x in targets] == [[[0, 1], [3, 4]], [[2], [5]]]
    with pytest.raises(ShapeError, match=r"is \(3,\), but needs \(2, 2\)"):
        _load_general([mx.nd.ones(3)], [targets[0]], [0])


def test_duplicate_argument_names_raise():
    _check_arguments(mx.sym.var("x") + mx.sym.var("y"))
    with pytest.raises(ValueError, match=r"duplicated argument name.*x"):
        _check_arguments(mx.sym.var("x") + mx.sym.var("x"))


def network():
    made = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(mx.sym.BatchNorm(made, name="bn"), name="softmax")


PARAMS = {
    "fc_weight": mx.nd.arange(12).reshape((3, 4)) / 10,
    "fc_bias": mx.nd.zeros(3),
    "bn_gamma": mx.nd.ones(3),
    "bn_beta": mx.nd.zeros(3),
}
STATES = {"bn_moving_mean": mx.nd.zeros(3), "bn_moving_var": mx.nd.ones(3)}


def managed(contexts, **kwargs):
    """Return a manager with its parameters set, and an iterator over eight samples."""
    symbol = network()
    batches = mx.io.NDArrayIter(np.arange(32).reshape(8, 4) / 10, np.arange(8) % 3, 4)
    batches.default_bucket_key = 10
    names = symbol.list_arguments()
    manager = DataParallelExecutorManager(
        symbol, contexts, batches, names, list(PARAMS), symbol.list_auxiliary_states(), **kwargs
    )
    manager.set_params(PARAMS, STATES)
    return manager, batches


def test_executor_manager_runs_on_several_devices():
    manager, batches = managed([mx.cpu(0), mx.cpu(1)])
    assert manager.slices == [slice(0, 2), slice(2, 4)] and manager.curr_execgrp is None
    assert [x.context for x in manager.param_arrays[0]] == [mx.cpu(0), mx.cpu(1)]
    batch = batches.next()
    manager.load_data_batch(batch)
    manager.forward(is_train=True)
    manager.backward()
    # The numbers are MXNet's.
    first, second = (e.outputs[0].asnumpy() for e in manager.curr_execgrp.train_execs)
    wanted = [[0.3403, 0.3301, 0.3296], [0.3264, 0.3365, 0.3371]]
    np.testing.assert_allclose(first, wanted, atol=1e-4)
    np.testing.assert_allclose(second, wanted, atol=1e-4)
    rows = [[0.1032, -0.0023, 0.0], [-0.1061, 0.0, 0.0005]]
    for gradient, row in zip(manager.grad_arrays[0], rows, strict=True):
        np.testing.assert_allclose(gradient.asnumpy(), np.tile(row, (4, 1)).T, atol=1e-4)


def test_executor_manager_updates_metrics_and_averages_parameters():
    manager, batches = managed([mx.cpu(0), mx.cpu(1)])
    batch = batches.next()
    manager.load_data_batch(batch)
    manager.forward(is_train=True)
    metric = mx.metric.create("acc")
    manager.update_metric(metric, batch.label)
    sliced = [[label[part] for label in batch.label] for part in manager.slices]
    manager.update_metric(metric, sliced, pre_sliced=True)
    assert metric.get() == ("accuracy", 0.25) and metric.num_inst == 8
    manager.backward()
    params = {name: mx.nd.zeros(x.shape) for name, x in PARAMS.items()}
    states = {name: mx.nd.zeros(x.shape) for name, x in STATES.items()}
    manager.copy_to(params, states)
    np.testing.assert_array_equal(params["fc_weight"].asnumpy(), PARAMS["fc_weight"].asnumpy())
    np.testing.assert_allclose(states["bn_moving_mean"].asnumpy(), [0.05, 0.17, 0.29], atol=1e-5)


def test_executor_manager_buckets_share_parameters():
    manager, batches = managed([mx.cpu()], sym_gen=lambda key: network())
    batch = batches.next()
    batch.bucket_key = 5
    batch.provide_data, batch.provide_label = batches.provide_data, batches.provide_label
    manager.load_data_batch(batch)
    manager.forward(is_train=True)
    manager.backward()
    assert sorted(manager.execgrp_bucket) == [5, 10]
    (executor,) = manager.curr_execgrp.train_execs
    assert executor.arg_dict["fc_weight"] is manager.param_arrays[0][0]
    assert abs(executor.grad_dict["fc_weight"].asnumpy()).sum() > 0
    with pytest.raises(NotImplementedError, match="bucketing"):
        manager.install_monitor(mx.mon.Monitor(1))


def test_executor_group_has_gradients_of_parameters_only():
    symbol = network()
    batches = mx.io.NDArrayIter(np.ones((4, 4)), np.ones(4), 4)
    group = DataParallelExecutorGroup(
        symbol, symbol.list_arguments(), ["fc_weight"], [mx.cpu()], [slice(0, 4)], batches
    )
    found = group.train_execs[0].grad_dict
    assert [name for name, gradient in found.items() if gradient is not None] == ["fc_weight"]
    assert group.param_idx == [1] and group.data_names == ["data"]


def test_wrong_work_load_list_raises():
    with pytest.raises(AssertionError, match="Invalid settings for work load"):
        managed([mx.cpu(0), mx.cpu(1)], work_load_list=[1])
    with pytest.raises(ValueError, match="extra"):
        managed([mx.cpu()])[0].set_params({**PARAMS, "extra": mx.nd.ones(1)}, STATES)
