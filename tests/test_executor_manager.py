"""How batches are split over devices."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import ShapeError
from mxnet.executor_manager import (
    DataParallelExecutorGroup,
    DataParallelExecutorManager,
    _check_arguments,
    _load_general,
    _split_input_slice,
)


def test_parts_are_in_proportion_to_the_work_load():
    assert _split_input_slice(8, [1, 1]) == [slice(0, 4), slice(4, 8)]
    assert _split_input_slice(10, [1, 1, 1]) == [slice(0, 3), slice(3, 6), slice(6, 10)]
    with pytest.raises(ValueError, match="Too many slices"):
        _split_input_slice(2, [1, 1, 1])


def test_arrays_are_copied_part_by_part_along_their_batch_axis():
    targets = [mx.nd.zeros((2, 2)), mx.nd.zeros((2, 1))]
    places = [(slice(0, 2), targets[0]), (slice(2, 3), targets[1])]
    _load_general([mx.nd.arange(6).reshape((2, 3))], [places], [1])
    assert [x.asnumpy().tolist() for x in targets] == [[[0, 1], [3, 4]], [[2], [5]]]
    with pytest.raises(ShapeError, match=r"is \(3,\), but needs \(2, 2\)"):
        _load_general([mx.nd.ones(3)], [targets[0]], [0])


def test_names_that_occur_twice_are_refused():
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


def test_a_manager_runs_one_symbol_on_several_devices():
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


def test_a_manager_updates_metrics_and_returns_means():
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


def test_buckets_of_a_manager_share_parameters():
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


def test_a_group_has_gradients_of_parameters_only():
    symbol = network()
    batches = mx.io.NDArrayIter(np.ones((4, 4)), np.ones(4), 4)
    group = DataParallelExecutorGroup(
        symbol, symbol.list_arguments(), ["fc_weight"], [mx.cpu()], [slice(0, 4)], batches
    )
    found = group.train_execs[0].grad_dict
    assert [name for name, gradient in found.items() if gradient is not None] == ["fc_weight"]
    assert group.param_idx == [1] and group.data_names == ["data"]


def test_a_work_load_is_needed_for_each_device():
    with pytest.raises(AssertionError, match="Invalid settings for work load"):
        managed([mx.cpu(0), mx.cpu(1)], work_load_list=[1])
    with pytest.raises(ValueError, match="extra"):
        managed([mx.cpu()])[0].set_params({**PARAMS, "extra": mx.nd.ones(1)}, STATES)
