"""Module combined with fixed parameters, devices, iterators, checkpoints and states."""

from __future__ import annotations

import tempfile

import numpy as np

import mxnet as mx
from mxnet import nd, sym
from tests.behavior.combinations import ramp


def _network():
    hidden = sym.FullyConnected(sym.var("data"), num_hidden=4, name="fc1")
    hidden = sym.Activation(hidden, act_type="tanh")
    return sym.SoftmaxOutput(sym.FullyConnected(hidden, num_hidden=2, name="fc2"), name="softmax")


def _parameters():
    shapes = {"fc1_weight": (4, 3), "fc1_bias": (4,), "fc2_weight": (2, 4), "fc2_bias": (2,)}
    return {name: ramp(shape, k) for k, (name, shape) in enumerate(sorted(shapes.items()))}


def _iterator(batch_size=4, **options):
    data = ramp((10, 3)).asnumpy()
    labels = (np.arange(10) % 2).astype("float32")
    return mx.io.NDArrayIter(data, labels, batch_size, label_name="softmax_label", **options)


def _fit(module, iterator, **options):
    defaults = {
        "num_epoch": 2,
        "arg_params": _parameters(),
        "optimizer": "sgd",
        "optimizer_params": (("learning_rate", 0.2), ("momentum", 0.9)),
    }
    module.fit(iterator, **{**defaults, **options})
    return module.get_params()[0]


def fit_with_fixed_parameters():
    return _fit(mx.mod.Module(_network(), fixed_param_names=["fc1_bias"]), _iterator())


def fit_with_a_rolled_over_batch():
    return _fit(mx.mod.Module(_network()), _iterator(last_batch_handle="roll_over"))


def fit_on_two_devices_with_an_updater_in_the_store():
    module = mx.mod.Module(_network(), context=[mx.cpu(0), mx.cpu(1)])
    return _fit(module, _iterator(), kvstore="local")


def fit_with_metrics_and_callbacks():
    rows = []
    module = mx.mod.Module(_network())
    _fit(
        module,
        _iterator(),
        eval_data=_iterator(),
        eval_metric=["acc", "ce"],
        batch_end_callback=lambda p: rows.append((p.epoch, p.nbatch)),
        epoch_end_callback=lambda epoch, *_: rows.append(epoch),
    )
    return [rows, module.score(_iterator(), ["acc", "ce"])]


def fit_after_a_checkpoint_with_states():
    with tempfile.TemporaryDirectory() as folder:
        prefix = f"{folder}/net"
        first = mx.mod.Module(_network())
        _fit(first, _iterator(), num_epoch=1)
        first.save_checkpoint(prefix, 1, save_optimizer_states=True)
        second = mx.mod.Module.load(prefix, 1, load_optimizer_states=True)
        results = []
        for module in (first, second):
            if not module.binded:
                module.bind(_iterator().provide_data, _iterator().provide_label)
                module.init_params()
                module.init_optimizer(optimizer_params=(("learning_rate", 0.2), ("momentum", 0.9)))
            iterator = _iterator()
            for batch in iterator:
                module.forward_backward(batch)
                module.update()
            results.append(module.get_params()[0])
    return results


def gradients_added_over_batches():
    module = mx.mod.Module(_network())
    module.bind([("data", (2, 3))], [("softmax_label", (2,))], grad_req="add")
    module.init_params(arg_params=_parameters())
    for k in range(2):
        module.forward_backward(mx.io.DataBatch([ramp((2, 3), k)], [nd.array([0, 1])]))
    return [grads[0] for grads in module._exec_group.grad_arrays]


def input_gradients_and_a_reshape():
    module = mx.mod.Module(_network())
    module.bind([("data", (2, 3))], [("softmax_label", (2,))], inputs_need_grad=True)
    module.init_params(arg_params=_parameters())
    results = []
    for size in (2, 3, 2):
        module.reshape([("data", (size, 3))], [("softmax_label", (size,))])
        module.forward_backward(mx.io.DataBatch([ramp((size, 3))], [nd.zeros(size)]))
        results.append(module.get_input_grads()[0])
    return results


def predictions_of_an_uneven_last_batch():
    module = mx.mod.Module(_network())
    module.bind(_iterator().provide_data, for_training=False, label_shapes=None)
    module.init_params(arg_params=_parameters())
    merged = module.predict(_iterator())
    parts = module.predict(_iterator(), merge_batches=False)
    return [merged, [part[0].shape for part in parts]]


def sequential_module_with_two_optimizers_updates():
    first = mx.mod.Module(
        sym.FullyConnected(sym.var("data"), num_hidden=4, name="fc1"), label_names=None
    )
    second = mx.mod.Module(
        sym.SoftmaxOutput(
            sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc2"), name="softmax"
        )
    )
    module = mx.mod.SequentialModule()
    module.add(first).add(second, take_labels=True, auto_wiring=True)
    module.bind([("data", (2, 3))], [("softmax_label", (2,))])
    module.init_params(arg_params=_parameters())
    module.init_optimizer(optimizer_params={"learning_rate": 0.5})
    for k in range(2):
        module.forward_backward(mx.io.DataBatch([ramp((2, 3), k)], [nd.array([0, 1])]))
        module.update()
    return module.get_params()[0]


def parameters_set_between_forward_and_backward():
    module = mx.mod.Module(_network())
    module.bind([("data", (2, 3))], [("softmax_label", (2,))])
    module.init_params(arg_params=_parameters())
    module.init_optimizer(optimizer_params={"learning_rate": 0.5})
    module.forward_backward(mx.io.DataBatch([ramp((2, 3))], [nd.array([0, 1])]))
    module.set_params({"fc2_bias": nd.array([1, -1])}, {}, allow_missing=True)
    module.update()
    return module.get_params()[0]


def optimizer_borrowed_from_another_module():
    first, second = mx.mod.Module(_network()), mx.mod.Module(_network())
    for module, shared in ((first, None), (second, first)):
        module.bind([("data", (2, 3))], [("softmax_label", (2,))], shared_module=shared)
        if shared is None:
            module.init_params(arg_params=_parameters())
            module.init_optimizer(optimizer_params={"learning_rate": 0.5, "momentum": 0.9})
        else:
            module.borrow_optimizer(shared)
    for module in (first, second, first):
        module.forward_backward(mx.io.DataBatch([ramp((2, 3))], [nd.array([0, 1])]))
        module.update()
    return first.get_params()[0]
