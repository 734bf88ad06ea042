"""SVRGModule: gradients with a snapshot. The first two epochs are compared with MXNet."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib.svrg_optimization.svrg_module import SVRGModule
from tests.closeness import assert_equal_up_to_rounding

FIRST = {"fc_weight": [[0.1, 0.2, 0.3]], "fc_bias": [0.5]}
FULL_WEIGHT = [-5.6580353, -6.614615, -6.8355994]


def data() -> mx.io.NDArrayIter:
    x = np.random.RandomState(0).rand(12, 3).astype("float32")
    y = (x @ np.array([1.0, 2.0, 3.0])).astype("float32")
    return mx.io.NDArrayIter(x, y, 4, label_name="lin_label")


def module(update_freq=2, context=None) -> SVRGModule:
    fc = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
    out = mx.sym.LinearRegressionOutput(fc, mx.sym.var("lin_label"), name="lin")
    return SVRGModule(
        out, ["data"], ["lin_label"], context=context or mx.cpu(), update_freq=update_freq
    )


def first() -> dict:
    return {name: mx.nd.array(value) for name, value in FIRST.items()}


def ready(**options) -> tuple[SVRGModule, mx.io.NDArrayIter]:
    made, it = module(**options), data()
    made.bind(it.provide_data, it.provide_label)
    made.init_params(arg_params=first(), aux_params={})
    made.init_optimizer(optimizer_params=(("learning_rate", 0.1),))
    return made, it


@pytest.mark.parametrize("context", [None, [mx.cpu(0), mx.cpu(1)]])
def test_svrg_steps_match_mxnet(context):
    made, it = ready(context=context)
    made.update_full_grads(it)
    weights = []
    for batch in it:
        made.forward_backward(batch)
        made.update()
        weights.append(made.get_params()[0]["fc_weight"].asnumpy()[0])
    expected = [
        [0.24145088, 0.3653654, 0.47089],
        [0.3499488, 0.49731377, 0.60418266],
        [0.44875032, 0.6204475, 0.73968285],
    ]
    np.testing.assert_allclose(weights, expected, rtol=1e-5)


def test_full_gradients_of_a_snapshot_do_not_accumulate():
    made, it = ready()
    for _ in range(2):
        made.update_full_grads(it)
        full = made._param_dict[0]["fc_weight"].asnumpy()[0]
        np.testing.assert_allclose(full, FULL_WEIGHT, rtol=1e-5)


def test_gradients_are_summed_over_devices():
    made, _ = ready(context=[mx.cpu(0), mx.cpu(1)])
    assert made._ctx_len == 2 and made._param_dict[1]["fc_weight"].asnumpy().tolist() == [[0, 0, 0]]
    made._accumulate_kvstore("fc_weight", [mx.nd.ones((1, 3)) for _ in range(4)])
    assert [d["fc_weight"].asnumpy().tolist() for d in made._param_dict] == [[[2, 2, 2]]] * 2


def test_fit_takes_a_snapshot_every_update_freq_epochs(monkeypatch):
    made, taken = module(update_freq=2), []
    original = SVRGModule.update_full_grads

    def counted(self, train_data):
        taken.append(1)
        original(self, train_data)

    monkeypatch.setattr(SVRGModule, "update_full_grads", counted)
    it, errors = data(), []
    made.fit(
        it,
        eval_metric="mse",
        optimizer_params=(("learning_rate", 0.1),),
        num_epoch=3,
        arg_params=first(),
        aux_params={},
        initializer=None,
        batch_end_callback=lambda p: errors.append((p.epoch, p.eval_metric.get()[1])),
    )
    assert len(taken) == 2
    by_epoch = dict(errors)
    assert by_epoch[0] == pytest.approx(5.705169, rel=1e-5)
    assert by_epoch[1] == pytest.approx(1.765263, rel=1e-5)
    assert by_epoch[2] < by_epoch[1]
    assert made.score(it, "mse")[0][1] < by_epoch[1]


def test_svrg_module_without_a_snapshot_equals_module():
    made, it = ready()
    plain = mx.mod.Module(made.symbol, ["data"], ["lin_label"])
    plain.bind(it.provide_data, it.provide_label)
    plain.init_params(arg_params=first(), aux_params={})
    plain.init_optimizer(optimizer_params=(("learning_rate", 0.1),))
    batch = it.next()
    for each in (made, plain):
        each.forward_backward(batch)
        each.update()
    weights = [each.get_params()[0]["fc_weight"].asnumpy() for each in (made, plain)]
    assert_equal_up_to_rounding(*weights)


def test_reshape_affects_both_networks():
    made, _ = ready()
    made.reshape([("data", (2, 3))], [("lin_label", (2,))])
    assert made._mod_aux.data_shapes[0].shape == (2, 3)


@pytest.mark.parametrize(("freq", "error"), [(None, TypeError), (1.5, TypeError), (0, ValueError)])
def test_invalid_update_freq_raises(freq, error):
    with pytest.raises(error, match="update_freq in SVRGModule"):
        module(update_freq=freq)


def test_svrg_optimizer_assigns_means_and_updates_weights():
    optimizer = mx.optimizer.create(
        "_SVRGOptimizer",
        default_optimizer="sgd",
        learning_rate=0.5,
        param_idx2name={0: "a", 1: "a_full"},
    )
    weight, mean = mx.nd.ones(2), mx.nd.ones(2)
    for index, array in enumerate([weight, mean]):
        state = optimizer.create_state(index, array)
        optimizer.update(index, array, mx.nd.array([3, 4]), state)
    assert weight.asnumpy().tolist() == [-0.5, -1]
    assert mean.asnumpy().tolist() == [3, 4]
    assert type(optimizer.aux_opt).__name__ == "_AssignmentOptimizer"


@pytest.mark.parametrize("kvstore", [None, "local"])
def test_svrg_optimizer_wraps_two_optimizers(kvstore):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc")
    net = mx.sym.LinearRegressionOutput(net, name="lin")
    data = np.arange(8, dtype="float32").reshape(4, 2)
    batches = mx.io.NDArrayIter(data, np.arange(4, dtype="float32"), 2, label_name="lin_label")
    module = SVRGModule(net, label_names=["lin_label"], update_freq=2)
    module.bind(batches.provide_data, batches.provide_label)
    module.init_params(mx.init.One())
    module.init_optimizer(kvstore, "sgd", (("learning_rate", 0.025), ("momentum", 0.9)))
    pair = module._optimizer
    kinds = [type(optimizer).__name__ for optimizer in (pair, pair.default_opt, pair.aux_opt)]
    assert kinds == ["_SVRGOptimizer", "SGD", "_AssignmentOptimizer"]
    assert (pair.lr, pair.default_opt.lr, pair.rescale_grad) == (0.025, 0.025, 0.5)
    names = ["fc_weight", "fc_bias", "fc_weight_full", "fc_bias_full"]
    assert pair.idx2name == dict(enumerate(names))
    for epoch in range(2):
        if epoch % module.update_freq == 0:
            module.update_full_grads(batches)
        batches.reset()
        for batch in batches:
            module.forward_backward(batch)
            module.update()
    params, _ = module.get_params()
    np.testing.assert_allclose(params["fc_weight"].asnumpy(), [[0.7302, 0.5783]], atol=1e-4)
    np.testing.assert_allclose(params["fc_bias"].asnumpy(), [-0.1518], atol=1e-4)


def test_fit_with_resume_raises(tmp_path):
    svrg, batches = ready()
    with pytest.raises(mx.MXNetError, match="cannot resume"):
        svrg.fit(batches, num_epoch=1, resume=tmp_path / "run")
