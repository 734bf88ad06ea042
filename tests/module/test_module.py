"""Modules: names, parameters, shapes, files, errors; results and logs match MXNet 1.9.1."""

from __future__ import annotations

import json
import logging
import re
from collections import namedtuple

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import MXNetError, ShapeError
from tests.batches import check_each
from tests.golden import HERE as GOLDEN
from tests.golden.record.module_programs import PROGRAMS


def net():
    fc = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc")
    return mx.sym.SoftmaxOutput(fc, name="softmax")


def batch(size=8, width=3):
    return mx.io.DataBatch([mx.nd.ones((size, width))], [mx.nd.ones((size,))])


def bound(size=8, **kwargs):
    mod = mx.mod.Module(net())
    mod.bind([("data", (size, 3))], [("softmax_label", (size,))], **kwargs)
    return mod


def ready(**kwargs):
    mod = bound(**kwargs)
    mod.init_params(mx.init.One())
    mod.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    return mod


# -- names -------------------------------------------------------------------------------------


def test_unknown_data_name_raises_and_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"data_names=\['dta'\].*'dta' is not found(.|\n)*'data'"):
        mx.mod.Module(net(), data_names=["dta"])


def test_unknown_label_name_warns():
    with pytest.warns(UserWarning, match=r"label_names=\['label'\]"):
        mx.mod.Module(net(), label_names=["label"])


def test_wrong_data_name_in_bind_raises_with_a_suggestion():
    mod = mx.mod.Module(net())
    with pytest.raises(ValueError, match=r"DataDesc\[dat,.*vs. \['data'\]\).*Did you mean 'data'"):
        mod.bind([("dat", (8, 3))])


def test_wrong_label_name_in_bind_raises():
    mod = mx.mod.Module(net())
    with pytest.raises(ValueError, match=r"label_shapes don't match.*softmax_label"):
        mod.bind([("data", (8, 3))], [("softmax_lable", (8,))])


def test_bind_without_labels_warns():
    mod = mx.mod.Module(net())
    with pytest.warns(UserWarning, match="label_shapes don't match"):
        mod.bind([("data", (8, 3))], for_training=False)
    assert mod.label_shapes is None


def test_fit_with_a_label_used_only_by_the_metric():
    loss = mx.sym.MakeLoss(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="f"))
    with pytest.warns(UserWarning, match="softmax_label"):
        mod = mx.mod.Module(loss)
    mod.fit(mx.io.NDArrayIter(np.ones((4, 2)), np.ones(4), 2), num_epoch=1, eval_metric="loss")


def test_calls_in_the_wrong_order_name_the_missing_call():
    mod = mx.mod.Module(net())
    for call, needed in ((mod.get_params, "bind"), (lambda: mod.data_shapes, "bind")):
        with pytest.raises(AssertionError, match=needed):
            call()
    mod = bound()
    with pytest.raises(AssertionError, match="init_params"):
        mod.forward(batch())
    mod.init_params()
    with pytest.raises(AssertionError, match="init_optimizer"):
        mod.update()
    with pytest.raises(AssertionError, match="number of epochs"):
        mod.fit(None)


# -- parameters --------------------------------------------------------------------------------


def test_error_names_all_missing_parameters():
    with pytest.raises(RuntimeError, match=r"fc_bias, fc_weight are not presented: .*fc_wieght"):
        bound().init_params(arg_params={"fc_wieght": mx.nd.ones((4, 3))}, aux_params={})


def test_allow_missing_initializes_missing_parameters():
    mod = bound()
    given = {"fc_weight": mx.nd.full((4, 3), 7)}
    mod.init_params(mx.init.One(), arg_params=given, aux_params={}, allow_missing=True)
    args, _ = mod.get_params()
    assert args["fc_weight"].asnumpy().tolist() == [[7.0] * 3] * 4
    assert args["fc_bias"].asnumpy().tolist() == [0.0] * 4


def test_wrong_parameter_shape_error_names_both_shapes():
    params = {"fc_weight": mx.nd.ones((4, 5)), "fc_bias": mx.nd.ones((4,))}
    with pytest.raises(ShapeError, match=r"'fc_weight' is given as \(4, 5\).*needs \(4, 3\)"):
        bound().init_params(arg_params=params, aux_params={})


def test_set_params_with_allow_missing_and_allow_extra():
    mod = ready()
    mod.set_params({"fc_bias": mx.nd.ones(4)}, {}, allow_missing=True)
    assert mod.get_params()[0]["fc_weight"].asnumpy().min() == 1
    assert mod.get_params()[0]["fc_bias"].asnumpy().min() == 1
    with pytest.raises(ValueError, match="extra"):
        mod.set_params({"extra": mx.nd.ones(4)}, {}, allow_missing=True)
    mod.set_params({"extra": mx.nd.ones(4)}, {}, allow_missing=True, allow_extra=True)


def test_second_init_params_warns_unless_force_init():
    mod = ready()
    with pytest.warns(UserWarning, match="force_init=False"):
        mod.init_params(mx.init.Zero())
    assert mod.get_params()[0]["fc_weight"].asnumpy().min() == 1
    mod.init_params(mx.init.Zero(), force_init=True)
    assert mod.get_params()[0]["fc_weight"].asnumpy().max() == 0


def test_binding_twice_is_ignored_and_rebinding_keeps_parameters(caplog):
    mod = ready()
    mod.bind([("data", (2, 3))])
    assert "Already bound, ignoring bind()" in caplog.text
    mod.forward_backward(batch())
    mod.update()
    before = mod.get_params()[0]["fc_weight"].asnumpy()
    mod.bind([("data", (2, 3))], [("softmax_label", (2,))], force_rebind=True)
    np.testing.assert_array_equal(mod.get_params()[0]["fc_weight"].asnumpy(), before)
    mod.forward_backward(batch(2))
    mod.update()


# -- shapes ------------------------------------------------------------------------------------


def test_forward_accepts_any_batch_size_without_labels():
    mod = ready()
    for size in (8, 5, 11, 8, 1):
        mod.forward(mx.io.DataBatch([mx.nd.ones((size, 3))]), is_train=False)
        assert mod.get_outputs()[0].shape == (size, 4)
    assert mod.predict(np.ones((6, 3))).shape == (6, 4)


def test_batches_require_only_data():
    Batch = namedtuple("Batch", ["data"])
    mod = ready()
    for size in (8, 3):
        mod.forward(Batch([mx.nd.ones((size, 3))]), is_train=False)
        assert mod.get_outputs()[0].shape == (size, 4)


def test_warnings_point_at_user_code():
    with pytest.warns(UserWarning) as caught:
        mx.mod.Module(net(), label_names=["label"])
        mx.mod.Module(net()).bind([("data", (8, 3))])
    assert {warning.filename for warning in caught} == {__file__}


def test_executors_of_recurring_shapes_are_reused():
    mod = ready()
    mod.forward(batch(5))
    made = mod._exec_group.execs[0]
    mod.forward(batch(8))
    mod.forward(batch(5))
    assert mod._exec_group.execs[0] is made


def test_data_that_implies_a_different_parameter_shape_raises():
    mod = ready()
    with pytest.raises(ShapeError, match=r"fc_weight changed from \(4, 3\) to \(4, 7\)"):
        mod.forward(batch(8, 7))
    mod.forward(batch())
    assert mod.data_shapes[0].shape == (8, 3)


def test_batch_with_too_few_arrays_raises():
    both = mx.sym.Variable("a") + mx.sym.Variable("b")
    mod = mx.mod.Module(both, data_names=["a", "b"], label_names=None)
    mod.bind([("a", (2,)), ("b", (2,))], for_training=False)
    mod.init_params()
    with pytest.raises(MXNetError, match=r"1 data array.*2 are needed: a, b"):
        mod.forward(mx.io.DataBatch([mx.nd.ones(2)]))


def test_time_major_inputs_are_split_over_devices_by_batch():
    data = mx.sym.Variable("data")
    total = mx.sym.MakeLoss(mx.sym.sum(data, axis=0), name="total")
    mod = mx.mod.Module(total, label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    mod.bind([mx.io.DataDesc("data", (3, 4), layout="TN")])
    mod.init_params()
    mod.forward(mx.io.DataBatch([mx.nd.arange(12).reshape((3, 4))]))
    assert mod.get_outputs()[0].asnumpy().tolist() == [12, 15, 18, 21]
    assert [x.shape for x in mod.get_outputs(merge_multi_context=False)[0]] == [(2,), (2,)]


def test_state_names_are_neither_parameters_nor_inputs():
    data, state = mx.sym.Variable("data"), mx.sym.Variable("state", shape=(2, 2))
    out = mx.sym.Group([mx.sym.MakeLoss(data + state), mx.sym.BlockGrad(state + 1)])
    mod = mx.mod.Module(out, label_names=None, state_names=["state"],
                        context=[mx.cpu(0), mx.cpu(1)])  # fmt: skip
    mod.bind([("data", (4, 2))])
    mod.init_params()
    mod.set_states(value=1)
    mod.forward(mx.io.DataBatch([mx.nd.ones((4, 2))]))
    assert mod.get_outputs()[0].asnumpy().tolist() == [[2, 2]] * 4
    mod.set_states(states=[mod.get_outputs(merge_multi_context=False)[1]])
    assert [x.asnumpy().max() for x in mod.get_states(merge_multi_context=False)[0]] == [2, 2]
    assert mod.get_params() == ({}, {})


def test_ctx_groups_run_on_their_contexts():
    with mx.AttrScope(ctx_group="first"):
        fc = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc1")
    with mx.AttrScope(ctx_group="second"):
        out = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(fc, num_hidden=2, name="fc2"),
                                   name="softmax")  # fmt: skip
    places = {"first": mx.cpu(1), "second": [mx.cpu(2)]}
    mod = mx.mod.Module(out, group2ctxs=places)
    mod.bind([("data", (4, 3))], [("softmax_label", (4,))])
    mod.init_params()
    mod.init_optimizer()
    arrays = mod._exec_group.execs[0].arg_dict
    assert arrays["fc1_weight"].context == mx.cpu(1)
    assert arrays["fc2_weight"].context == mx.cpu(2)
    mod.forward_backward(mx.io.DataBatch([mx.nd.ones((4, 3))], [mx.nd.zeros(4)]))
    mod.update()


# -- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("devices", [1, 2])
def test_checkpoint_with_optimizer_states_resumes_training(tmp_path, devices):
    contexts = [mx.cpu(i) for i in range(devices)]
    data = mx.io.NDArrayIter(np.arange(24).reshape(8, 3) / 24, np.arange(8) % 4, 4)
    settings = {"learning_rate": 0.3, "momentum": 0.9}

    def steps(mod, count):
        for _ in range(count):
            data.reset()
            for one in data:
                mod.forward_backward(one)
                mod.update()
        return mod.get_params()[0]["fc_weight"].asnumpy()

    mod = mx.mod.Module(net(), context=contexts)
    mod.bind(data.provide_data, data.provide_label)
    mod.init_params(mx.init.One())
    mod.init_optimizer(optimizer_params=settings)
    steps(mod, 2)
    prefix = str(tmp_path / "net")
    mod.save_checkpoint(prefix, 2, save_optimizer_states=True)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["net-0002.params", "net-0002.states", "net-symbol.json"]
    wanted = steps(mod, 2)

    again = mx.mod.Module.load(prefix, 2, load_optimizer_states=True, context=contexts)
    again.bind(data.provide_data, data.provide_label)
    again.init_optimizer(optimizer_params=settings)
    np.testing.assert_allclose(steps(again, 2), wanted, rtol=1e-6)


def test_save_and_load_params(tmp_path):
    mod, other = ready(), bound()
    mod.save_params(str(tmp_path / "p"))
    other.load_params(str(tmp_path / "p"))
    assert other.get_params()[0]["fc_weight"].asnumpy().min() == 1
    mx.nd.save(str(tmp_path / "q"), {"fc_weight": mx.nd.ones(1)})
    with pytest.raises(MXNetError, match="'fc_weight' does not begin with 'arg:'"):
        other.load_params(str(tmp_path / "q"))


# -- loops -------------------------------------------------------------------------------------


def iterator():
    return mx.io.NDArrayIter(np.arange(66).reshape(22, 3) / 66, np.arange(22) % 4, 8)


def test_predict_removes_padding_and_can_merge_batches():
    mod = ready()
    assert mod.predict(iterator()).shape == (22, 4)
    parts = mod.predict(iterator(), merge_batches=False)
    assert [out[0].shape[0] for out in parts] == [8, 8, 6]
    assert len(mod.predict(iterator(), always_output_list=True)) == 1
    assert mod.predict(iterator(), num_batch=1).shape == (8, 4)
    assert [(i, b.pad) for _, i, b in mod.iter_predict(iterator())] == [(0, 0), (1, 0), (2, 2)]
    with pytest.raises(ValueError, match="NDArray or DataIter, not int"):
        mod.predict(3)


def test_score_with_num_batch_and_callbacks():
    seen = []
    ready().score(iterator(), "acc", num_batch=2, epoch=7,
                  batch_end_callback=lambda p: seen.append((p.epoch, p.nbatch)),
                  score_end_callback=lambda p: seen.append(p.nbatch))  # fmt: skip
    assert seen == [(7, 0), (7, 1), 2]


def test_callbacks_receive_local_variables_of_fit():
    seen = {}
    mod = mx.mod.Module(net())
    mod.fit(iterator(), num_epoch=1, batch_end_callback=lambda p: seen.update(p.locals))
    assert {"self", "train_data", "data_batch", "epoch", "nbatch", "eval_metric"} <= set(seen)
    assert seen["self"] is mod


def test_fit_without_data_raises():
    data = iterator()
    list(data)
    with pytest.raises(MXNetError, match="train_data has no batch"):
        mx.mod.Module(net()).fit(data, num_epoch=1)


def test_optimizer_instance_with_default_rescale_grad_warns():
    mod = bound()
    mod.init_params()
    with pytest.warns(UserWarning, match=r"rescale_grad is not normalized.*1.0 vs. 0.125"):
        mod.init_optimizer(optimizer=mx.optimizer.SGD())
    assert mod._optimizer.idx2name == {0: "fc_weight", 1: "fc_bias"}


def test_monitor_covers_all_executors(caplog):
    caplog.set_level(logging.INFO)
    mod = ready()
    monitor = mx.mon.Monitor(1, pattern=".*output")
    mod.install_monitor(monitor)
    for size in (8, 4):
        monitor.tic()
        mod.forward(batch(size))
        assert {row[1] for row in monitor.toc()} == {"fc_output", "softmax_output"}


def test_monitor_lists_each_argument_once_after_reshaping():
    mod = ready()
    mod.forward(batch(4))
    monitor = mx.mon.Monitor(1, pattern="data|fc_weight", sort=True)
    mod.install_monitor(monitor)
    for size in (4, 8, 2, 8):
        monitor.tic()
        mod.forward(batch(size))
        assert [row[1] for row in monitor.toc()] == ["data", "fc_weight"]


def test_all_parameters_are_updated_by_one_call():
    mod = ready()
    calls = []
    updater = mod._updater
    mod._updater = lambda i, g, w: (calls.append(i), updater(i, g, w))
    mod.forward_backward(batch())
    mod.update()
    assert calls == [[0, 1]]


def test_custom_kvstore_that_only_sums():
    store = mx.kvstore.create("teststore")
    mod = mx.mod.Module(net(), context=[mx.cpu(0), mx.cpu(1)])
    one = mx.mod.Module(net())
    for each, kvstore in ((mod, store), (one, None)):
        each.fit(iterator(), num_epoch=2, kvstore=kvstore, initializer=mx.init.One(),
                 optimizer_params={"learning_rate": 0.5})  # fmt: skip
    np.testing.assert_allclose(
        mod.get_params()[0]["fc_weight"].asnumpy(),
        one.get_params()[0]["fc_weight"].asnumpy(),
        rtol=1e-5,
    )


class RecordingStore(mx.kvstore.KVStoreBase):
    """A custom store that records the calls of the module."""

    type, rank, num_workers = "recording", 0, 1

    def __init__(self, can_update):
        self.calls, self.can_update = [], can_update

    def broadcast(self, key, value, out, priority=0):
        self.calls.append(("broadcast", key, len(out), priority))

    def pushpull(self, key, value, out=None, priority=0):
        shares = [a is b for a, b in zip(value, out, strict=True)]
        self.calls.append(("pushpull", key, shares, priority))

    def set_optimizer(self, optimizer):
        self.calls.append(("set_optimizer",))

    def is_capable(self, capability):
        return self.can_update


@pytest.mark.parametrize("can_update", [True, False])
def test_custom_kvstore_is_called_key_by_key(can_update):
    store = RecordingStore(can_update)
    mod = mx.mod.Module(net(), context=[mx.cpu(0), mx.cpu(1)], fixed_param_names=["fc_weight"])
    mod.bind([("data", (4, 3))], [("softmax_label", (4,))])
    mod.init_params()
    mod.init_optimizer(kvstore=store)
    mod.forward_backward(batch())
    mod.update()
    assert store.calls[-3:] == [
        ("broadcast", "fc_weight", 2, 0),
        ("broadcast", "fc_bias", 2, 0),
        ("pushpull", "fc_bias", [not can_update] * 2, -1),  # into the weights, or back
    ]


def test_list_of_batches_has_one_batch_for_each_device():
    mod = mx.mod.Module(net(), context=[mx.cpu(0), mx.cpu(1)])
    mod.bind([("data", (4, 3))], [("softmax_label", (4,))])
    mod.init_params(mx.init.One())
    mod.forward([batch(2), batch(2)])
    metric = mx.metric.create("acc")
    mod.update_metric(metric, [[mx.nd.zeros(2)], [mx.nd.zeros(2)]], pre_sliced=True)
    assert metric.num_inst == 4


def test_batch_smaller_than_the_number_of_devices_raises():
    mod = mx.mod.Module(net(), context=[mx.cpu(0), mx.cpu(1)])
    with pytest.raises(ValueError, match="Too many slices"):
        mod.bind([("data", (1, 3))], [("softmax_label", (1,))])
    with pytest.raises(AssertionError, match="1 entries for 2"):
        mx.mod.Module(net(), context=[mx.cpu(0), mx.cpu(1)], work_load_list=[1])


def test_backward_without_for_training_raises():
    mod = bound(for_training=False)
    mod.init_params()
    mod.forward(batch())
    with pytest.raises(AssertionError, match=re.escape("for_training=True")):
        mod.backward()
    with pytest.raises(AssertionError, match="inputs_need_grad"):
        mod.get_input_grads()


def test_out_grads_are_split_over_devices():
    fc = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, no_bias=True, name="fc")
    mod = mx.mod.Module(fc, label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    mod.bind([("data", (4, 1))], inputs_need_grad=True)
    mod.init_params(mx.init.One())
    mod.forward(mx.io.DataBatch([mx.nd.ones((4, 1))]), is_train=True)
    mod.backward([mx.nd.array([[1], [2], [3], [4]])])
    assert mod.get_input_grads()[0].asnumpy().ravel().tolist() == [1, 2, 3, 4]


def test_fit_finishes_a_batch_before_fetching_the_next():
    newest = []

    class Batch:
        def __init__(self, number):
            self.number = number

        @property
        def label(self):
            assert newest[-1] == self.number
            return []

    class Batches:
        provide_data = provide_label = None

        def __iter__(self):
            for number in range(3):
                newest.append(number)
                yield Batch(number)

        def reset(self):
            pass

    mod = mx.mod.BaseModule()
    for name in ("bind", "init_params", "init_optimizer", "forward", "backward", "update"):
        setattr(mod, name, lambda *args, **kwargs: None)
    mod.update_metric = mod.set_params = lambda *args, **kwargs: None
    mod.get_params = lambda: (None, None)
    mod.fit(Batches(), num_epoch=1)
    assert newest == [0, 1, 2]


DECIMALS = re.compile(r"\d+\.\d{6}")  # values of metrics, whose last digit may differ
TEXTS = json.loads((GOLDEN / "modules.json").read_text())


@pytest.fixture(scope="module")
def arrays():
    with np.load(GOLDEN / "modules.npz") as file:
        return dict(file)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_match_mxnet(name, arrays):
    program, settings = PROGRAMS[name]
    found = program(mx, **settings)
    wanted = {
        k.partition("/")[2]: v for k, v in (arrays | TEXTS).items() if k.startswith(f"{name}/")
    }
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        if isinstance(value, list):
            assert_same_lines(found[key], value)
        else:
            np.testing.assert_allclose(found[key], value, rtol=2e-4, atol=2e-5, err_msg=key)


def assert_same_lines(found, wanted):
    assert [DECIMALS.sub("#", line) for line in found] == [DECIMALS.sub("#", x) for x in wanted]
    numbers, others = (list(map(float, DECIMALS.findall(" ".join(x)))) for x in (found, wanted))
    np.testing.assert_allclose(numbers, others, atol=1e-5)


# Optimizer indices in MXNet, by (store, devices, whether the store may update).
INDICES = {
    (None, 1, "1"): [0, 1],
    (None, 2, "1"): [0, 2, 1, 3],
    ("local", 1, "1"): [0, 1],
    ("device", 1, "1"): [0, 1],
    ("local", 2, "1"): ["fc_weight", "fc_bias"],
    ("device", 2, "1"): ["fc_weight", "fc_bias"],
    ("local", 2, "0"): [0, 2, 1, 3],
    ("device", 2, "0"): [0, 2, 1, 3],
}


@pytest.mark.filterwarnings("ignore:Optimizer created manually", "ignore:mxnet.model.FeedForward")
def test_optimizer_index_type_matches_mxnet(monkeypatch):
    class Recording(mx.optimizer.Optimizer):
        def update(self, index, weight, grad, state):
            if index not in met:
                met.append(index)

    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    net = mx.sym.SoftmaxOutput(net, name="softmax")

    def check(case):
        (kvstore, devices, allowed), expected = case
        monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", allowed)
        contexts = [mx.cpu(i) for i in range(devices)]
        data = mx.io.NDArrayIter(np.ones((4, 3), "float32"), np.zeros(4, "float32"), 2)
        met.clear()
        module = mx.mod.Module(net, context=contexts)
        module.fit(data, num_epoch=1, optimizer=Recording(), kvstore=kvstore)
        assert met == expected
        met.clear()
        model = mx.model.FeedForward(net, ctx=contexts, num_epoch=1, optimizer=Recording())
        model.fit(data, kvstore=kvstore)
        assert met == expected

    met = []
    check_each({str(key): (key, value) for key, value in INDICES.items()}, check)
