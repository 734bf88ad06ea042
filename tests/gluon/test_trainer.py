"""Trainer: steps, stale gradients, learning rates, several devices, states."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn
from tests.batches import check_each

ONE = (mx.cpu(),)
TWO = (mx.cpu(0), mx.cpu(1))


def dense(contexts=ONE):
    net = nn.Dense(2, in_units=2)
    net.initialize(mx.init.One(), ctx=list(contexts))
    return net


def backward(net, contexts=ONE, scale=1):
    with autograd.record():
        losses = [(net(mx.nd.ones((1, 2), ctx=c)) * scale).sum() for c in contexts]
    for loss in losses:
        loss.backward()


def sgd(net, **kwargs):
    return gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, **kwargs)


def test_step_divides_by_the_batch_size():
    net = dense()
    trainer = sgd(net)
    backward(net)
    trainer.step(2)
    assert net.weight.data().asnumpy().tolist() == [[0.75, 0.75]] * 2


def test_parameters_are_sorted_by_name():
    net = dense()
    trainer = sgd(net)
    assert [p.name.rpartition("_")[2] for p in trainer._params] == ["bias", "weight"]


def test_stale_gradients_raise_a_user_warning():
    net = dense()
    trainer = sgd(net)
    with pytest.raises(UserWarning, match="has not been updated by backward since last `step`"):
        trainer.step(1)
    backward(net)
    trainer.step(1)
    with pytest.raises(UserWarning):
        trainer.step(1)
    before = net.weight.data().asnumpy()
    trainer.step(1, ignore_stale_grad=True)
    np.testing.assert_array_equal(net.weight.data().asnumpy(), before)


def test_frozen_parameters_are_not_updated():
    net = dense()
    trainer = sgd(net)
    net.bias.grad_req = "null"
    backward(net)
    trainer.step(1)
    assert net.bias.data().asnumpy().tolist() == [0, 0]
    assert net.weight.data().asnumpy().tolist() == [[0.5, 0.5]] * 2


def test_gradients_accumulate_over_batches():
    net = dense()
    trainer = sgd(net)
    net.collect_params().setattr("grad_req", "add")
    for _ in range(2):
        backward(net)
    trainer.step(2)
    net.collect_params().zero_grad()
    assert net.weight.data().asnumpy().tolist() == [[0.5, 0.5]] * 2
    assert not net.weight.grad().asnumpy().any()


def test_multipliers_are_read_at_every_step():
    net = dense()
    trainer = sgd(net)
    net.weight.lr_mult = 0.0
    backward(net)
    trainer.step(1)
    assert net.weight.data().asnumpy().tolist() == [[1, 1]] * 2
    assert net.bias.data().asnumpy().tolist() == [-0.5, -0.5]


def test_learning_rate_getter_and_setter():
    trainer = sgd(dense())
    assert trainer.learning_rate == 0.5
    trainer.set_learning_rate(0.25)
    assert trainer.learning_rate == trainer.optimizer.learning_rate == 0.25
    scheduler = mx.lr_scheduler.FactorScheduler(10)
    planned = gluon.Trainer(dense().collect_params(), "sgd", {"lr_scheduler": scheduler})
    with pytest.raises(UserWarning, match="LRScheduler"):
        planned.set_learning_rate(1)


def test_wrong_arguments_raise():
    net = dense()
    with pytest.raises(ValueError, match=r"list or dict of Parameters.*collect_params"):
        gluon.Trainer(net, "sgd")
    with pytest.raises(ValueError, match="got list of"):
        gluon.Trainer([1], "sgd")
    with pytest.raises(AssertionError, match="optimizer_params must be None"):
        gluon.Trainer(net.collect_params(), mx.optimizer.SGD(), {"momentum": 1})
    with pytest.raises(RuntimeError, match="has not been initialized"):
        gluon.Trainer(nn.Dense(2).collect_params(), "sgd")
    with pytest.raises(AssertionError, match="same set of contexts"):
        gluon.Trainer([net.weight, dense(TWO).weight], "sgd")


def test_deferred_parameters_are_initialized_at_the_first_step():
    net = nn.Dense(2)
    net.initialize()
    trainer = sgd(net)
    assert net.weight in trainer._params_to_init
    backward(net)
    trainer.step(1)
    assert trainer._params_to_init == []


# -- several devices --------------------------------------------------------------------------


@pytest.mark.parametrize("update", [None, True, False])
@pytest.mark.parametrize("kvstore", ["local", "device"])
def test_copies_on_devices_stay_equal(kvstore, update):
    net = dense(TWO)
    trainer = sgd(net, kvstore=kvstore, update_on_kvstore=update)
    backward(net, TWO)
    trainer.step(2)
    for ctx in TWO:
        assert net.weight.data(ctx).asnumpy().tolist() == [[0.5, 0.5]] * 2


def test_gradient_clipping_between_allreduce_grads_and_update():
    net = dense(TWO)
    trainer = sgd(net, update_on_kvstore=False)
    backward(net, TWO)
    trainer.allreduce_grads()
    assert net.weight.grad(mx.cpu(1)).asnumpy().tolist() == [[2, 2]] * 2
    for ctx in TWO:
        gluon.utils.clip_global_norm([net.weight.grad(ctx)], 2.0)
    trainer.update(1)
    np.testing.assert_allclose(net.weight.data(mx.cpu(1)).asnumpy(), [[0.5, 0.5]] * 2, rtol=1e-6)


def test_allreduce_grads_and_update_raise_with_update_on_kvstore():
    net = dense(TWO)
    trainer = sgd(net)
    backward(net, TWO)
    for call in (trainer.allreduce_grads, lambda: trainer.update(1)):
        with pytest.raises(AssertionError, match="update_on_kvstore"):
            call()


def test_set_data_updates_the_kvstore():
    net = dense(TWO)
    trainer = sgd(net)
    for _ in range(2):
        net.weight.set_data(mx.nd.ones((2, 2)))
        backward(net, TWO)
        trainer.step(2)
        assert net.weight.data(mx.cpu(1)).asnumpy().tolist() == [[0.5, 0.5]] * 2


# -- states -----------------------------------------------------------------------------------


@pytest.mark.parametrize("contexts", [ONE, TWO])
@pytest.mark.parametrize("update", [None, False])
def test_save_and_load_states(tmp_path, contexts, update):
    path = str(tmp_path / "trainer.states")

    def make():
        net = dense(contexts)
        arguments = {"learning_rate": 0.1, "momentum": 0.9}
        return net, gluon.Trainer(net.collect_params(), "sgd", arguments, update_on_kvstore=update)

    def train(net, trainer):
        backward(net, contexts)
        trainer.step(1)

    net, trainer = make()
    train(net, trainer)
    trainer.set_learning_rate(0.2)
    trainer.save_states(path)
    after_one = net.weight.data(contexts[0]).copy()
    train(net, trainer)
    other, second = make()
    other.weight.set_data(after_one)
    second.load_states(path)
    assert second.learning_rate == 0.2
    train(other, second)
    np.testing.assert_array_equal(
        other.weight.data(contexts[-1]).asnumpy(), net.weight.data(contexts[-1]).asnumpy()
    )


def test_missing_states_file_raises():
    with pytest.raises(FileNotFoundError):
        sgd(dense()).load_states("nowhere.states")


# -- sparse -----------------------------------------------------------------------------------


def test_sparse_gradients_update_only_their_rows():
    class Table(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.weight = self.params.get(
                "weight", shape=(5, 2), grad_stype="row_sparse", init="ones"
            )

        def hybrid_forward(self, F, x, weight):
            return F.Embedding(x, weight, input_dim=5, output_dim=2, sparse_grad=True)

    net = Table()
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    with autograd.record():
        loss = net(mx.nd.array([1, 3])).sum()
    loss.backward()
    assert net.weight.grad().stype == "row_sparse"
    trainer.step(1)
    assert net.weight.data().asnumpy()[:, 0].tolist() == [1, 0, 1, 0, 1]


def test_row_sparse_parameters_are_pulled_from_the_kvstore(tmp_path):
    weight = gluon.Parameter(
        "weight", shape=(5, 2), stype="row_sparse", grad_stype="row_sparse", init="ones"
    )
    weight.initialize()
    rows = mx.nd.array([1, 3])
    with pytest.raises(RuntimeError, match="no Trainer"):
        weight.row_sparse_data(rows)
    trainer = gluon.Trainer([weight], "sgd", {"learning_rate": 1.0})
    with autograd.record():
        table = weight.row_sparse_data(rows)
        out = mx.nd.Embedding(rows, table, input_dim=5, output_dim=2, sparse_grad=True)
        loss = out.sum()
    loss.backward()
    trainer.step(1)
    found = weight.row_sparse_data(mx.nd.array([0, 1])).asnumpy()
    assert found[:, 0].tolist() == [1, 0, 0, 0, 0]
    with pytest.raises(RuntimeError, match="one Trainer only"):
        gluon.Trainer([weight], "sgd")


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_trainer_step_between_two_backward_passes_of_one_recording(name, hybridize):
    critic, maker = nn.Dense(1, in_units=2), nn.Dense(2, in_units=1)
    for net in (critic, maker):
        net.initialize(mx.init.One())
        if hybridize:
            net.hybridize()
    steps = [
        gluon.Trainer(n.collect_params(), name, {"learning_rate": 0.5}) for n in (critic, maker)
    ]
    noise = mx.nd.array([[1.0], [3.0]])
    with autograd.record():
        made = maker(noise)
        against, towards = critic(made.detach()), critic(made)
    against.backward()
    steps[0].step(2)
    moved = critic.weight.data().asnumpy()
    assert (moved != 1).all()
    towards.backward()
    # the second pass uses the updated critic, as in MXNet
    np.testing.assert_allclose(maker.bias.grad().asnumpy(), 2 * moved[0], rtol=1e-6)
    steps[1].step(2)


@pytest.mark.parametrize("kvstore", [None, "local"])
def test_step_after_reset_ctx_to_fewer_contexts(kvstore):
    net = dense(TWO)
    params = net.collect_params()
    trainer = gluon.Trainer(
        params, "sgd", {"learning_rate": 0.5}, kvstore=kvstore, update_on_kvstore=False
    )
    backward(net, TWO)
    trainer.step(1)
    params.reset_ctx(mx.cpu(1))
    before = net.weight.data(mx.cpu(1)).asnumpy()
    backward(net, TWO[1:])
    trainer.step(1)
    np.testing.assert_allclose(net.weight.data(mx.cpu(1)).asnumpy(), before - 0.5)


def test_row_sparse_parameters_without_kvstore_raise():
    net = gluon.contrib.nn.SparseEmbedding(5, 3)
    net.initialize()
    gluon.Trainer(net.collect_params(), "sgd", kvstore=None)
    with pytest.raises(TypeError, match="Cannot create 'None' KVStore with row_sparse"):
        net(mx.nd.array([1]))


def test_kvstore_of_a_wrong_type_raises():
    trainer = gluon.Trainer(dense().collect_params(), "sgd", kvstore=3)
    with pytest.raises(TypeError, match="kvstore must be KVStore, str or None"):
        trainer.step(1, ignore_stale_grad=True)


class RecordingStore(mx.kvstore.KVStoreBase):
    """A custom store that records calls, and adds 1 when it updates."""

    type, rank, num_workers = "recording", 0, 1

    def __init__(self, can_update):
        self.calls, self.can_update = [], can_update

    def broadcast(self, key, value, out, priority=0):
        self.calls.append(("broadcast", key))

    def pushpull(self, key, value, out=None, priority=0):
        self.calls.append(("pushpull", key, len(value), out is not None, priority))
        for weight in out or ():
            weight += 1

    def set_optimizer(self, optimizer):
        self.calls.append(("set_optimizer", type(optimizer).__name__))

    def is_capable(self, capability):
        return self.can_update


@pytest.mark.parametrize("contexts", [ONE, TWO])
@pytest.mark.parametrize("update", [None, True])
def test_custom_kvstore_with_optimizer_updates_the_weights(update, contexts):
    net, store = dense(contexts), RecordingStore(can_update=True)
    trainer = sgd(net, kvstore=store, update_on_kvstore=update)
    backward(net, contexts)
    trainer.step(1)
    n = len(contexts)
    assert store.calls == [
        ("set_optimizer", "SGD"),
        ("broadcast", 0),
        ("broadcast", 1),
        ("pushpull", 0, n, True, 0),
        ("pushpull", 1, n, True, -1),
    ]
    assert net.weight.data(contexts[-1]).asnumpy().tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize(("can_update", "update"), [(True, False), (False, None), (False, False)])
def test_custom_kvstore_without_optimizer_sums_gradients(can_update, update):
    net, store = dense(), RecordingStore(can_update)
    trainer = sgd(net, kvstore=store, update_on_kvstore=update)
    backward(net)
    trainer.step(1)
    assert store.calls[2:] == [("pushpull", 0, 1, False, 0), ("pushpull", 1, 1, False, -1)]
    assert net.weight.data().asnumpy().tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_update_on_an_incapable_custom_kvstore_raises():
    trainer = sgd(dense(), kvstore=RecordingStore(False), update_on_kvstore=True)
    with pytest.raises(ValueError, match="Please set update_on_kvstore=False when training with"):
        trainer.step(1, ignore_stale_grad=True)


def test_sparse_gradients_with_a_custom_kvstore_raise():
    net = nn.Embedding(4, 2, sparse_grad=True)
    net.initialize()
    trainer = sgd(net, kvstore=RecordingStore(True))
    with pytest.raises(ValueError, match="for multi-device training with sparse gradients"):
        trainer.step(1, ignore_stale_grad=True)


@pytest.mark.parametrize("kvstore", ["device", RecordingStore(True)])
def test_stale_gradients_raise_with_update_on_kvstore(kvstore):
    net, spare = dense(TWO), gluon.Parameter("spare", shape=(2,))
    spare.initialize(ctx=list(TWO))
    params = [*net.collect_params().values(), spare]
    trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.5}, kvstore=kvstore)
    backward(net, TWO)
    with pytest.raises(UserWarning, match="`spare` on context cpu"):
        trainer.step(2)
    assert trainer._update_on_kvstore
    trainer.step(2, ignore_stale_grad=True)


@pytest.mark.parametrize("kvstore", ["local", "device"])
def test_update_on_kvstore_defaults_to_false_for_sparse_gradients(kvstore):
    net = nn.Embedding(4, 2, sparse_grad=True)
    net.initialize(ctx=list(TWO))
    for asked, expected in ((None, False), (True, True)):
        trainer = sgd(net, kvstore=kvstore, update_on_kvstore=asked)
        trainer._init_kvstore()
        assert trainer._update_on_kvstore is expected


def test_update_on_kvstore_is_none_without_a_kvstore():
    trainer = sgd(dense(), kvstore=None)
    trainer._init_kvstore()
    assert trainer._update_on_kvstore is None


def test_batch_size_and_optimizer_options_can_be_scalar_arrays():
    def check(case):
        size, optimizer, options, expected = case
        net = dense()
        trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1, **options})
        backward(net, scale=2)
        trainer.step(size)
        np.testing.assert_allclose(net.weight.data().asnumpy(), expected, rtol=1e-6)

    sizes = (mx.nd.array([2.0]), mx.np.array(2.0), mx.np.array(2, dtype="int32"), np.float32(2))
    cases = [(size, "sgd", {}, 0.9) for size in sizes]
    cases += [(size, "adagrad", {}, 0.9) for size in sizes]
    limits = (mx.np.array(0.1), mx.nd.array([0.1]), np.array(0.1), 0.1)
    cases += [(2, "sgd", {"clip_gradient": limit}, 0.99) for limit in limits]
    check_each({str(case): case for case in cases}, check)
