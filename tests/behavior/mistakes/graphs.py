"""Invalid calls with symbols, modules, optimizers, initializers and stores."""

from __future__ import annotations

import numpy as np

import mxnet as mx
from mxnet import nd, sym


def classifier(**options):
    net = sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc")
    return sym.SoftmaxOutput(net, name="softmax", **options)


def batches(label="softmax_label", width=3):
    return mx.io.NDArrayIter(np.ones((8, width)), np.zeros(8), 4, label_name=label)


# -- symbols ---------------------------------------------------------------------------------------


def symbol_without_a_number_of_outputs():
    sym.FullyConnected(sym.var("data"), name="fc")


def number_that_is_text():
    sym.FullyConnected(sym.var("data"), num_hidden="ten", name="fc")


def misspelled_operator():
    sym.FullyConected(sym.var("data"), num_hidden=2)


def misspelled_attribute():
    sym.Convolution(sym.var("data"), kernel=(3, 3), num_filters=8, name="conv")


def array_in_a_symbol():
    sym.var("data") + nd.ones((2, 3))


def shapes_that_do_not_fit():
    net = sym.dot(sym.var("a"), sym.var("b"), name="product")
    net.infer_shape(a=(2, 3), b=(4, 5))


def shape_of_an_unknown_argument():
    classifier().infer_shape(input=(2, 3))


def bind_without_an_argument():
    net = sym.var("a") + sym.var("b")
    net.bind(mx.cpu(), {"a": nd.ones((2,))})


def bind_with_two_shapes():
    net = sym.broadcast_add(sym.var("a"), sym.var("b"), name="total")
    net.bind(mx.cpu(), {"a": nd.ones((2,)), "b": nd.ones((3,))}).forward()


def simple_bind_without_shapes():
    classifier().simple_bind(mx.cpu())


def evaluation_without_an_argument():
    (sym.var("a") + sym.var("b")).eval(a=nd.ones((2,)))


def missing_output():
    classifier().get_internals()["fc2_output"]


def group_of_arrays():
    sym.Group([nd.ones((2,))])


def loop_over_a_symbol():
    for row in sym.var("data"):
        row.asnumpy()


def values_of_a_symbol():
    sym.var("data").asnumpy()


def item_assignment_of_a_symbol():
    data = sym.var("data")
    data[0] = 1


# -- modules ---------------------------------------------------------------------------------------


def fit_without_epochs():
    mx.mod.Module(classifier()).fit(batches())


def data_of_another_name():
    mx.mod.Module(classifier(), data_names=["input"])


def label_of_another_name():
    data = batches("label")
    mx.mod.Module(classifier()).fit(data, num_epoch=1)


def prediction_before_training():
    mx.mod.Module(classifier()).predict(batches())


def update_before_an_optimizer():
    module = mx.mod.Module(classifier())
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.init_params()
    module.update()


def unknown_optimizer_of_a_module():
    mx.mod.Module(classifier()).fit(batches(), num_epoch=1, optimizer="sdg")


def unknown_metric_of_a_module():
    mx.mod.Module(classifier()).fit(batches(), num_epoch=1, eval_metric="acuracy")


def module_of_a_block():
    mx.mod.Module(mx.gluon.nn.Dense(3))


def batch_of_another_width():
    module = mx.mod.Module(classifier())
    module.fit(batches(), num_epoch=1, progress=False)
    module.forward(mx.io.DataBatch([nd.ones((4, 5))]), is_train=False)


def parameters_that_are_missing():
    module = mx.mod.Module(classifier())
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.set_params({"fc_weight": nd.ones((2, 3))}, {})


def parameters_of_another_network_in_a_module():
    module = mx.mod.Module(classifier())
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.set_params({"fc_weight": nd.ones((2, 9)), "fc_bias": nd.ones((2,))}, {})


def labels_of_another_shape():
    data = mx.io.NDArrayIter(np.ones((8, 3)), np.zeros((8, 5)), 4, label_name="softmax_label")
    mx.mod.Module(classifier()).fit(data, num_epoch=1)


def resume_without_a_place():
    mx.mod.Module(classifier()).fit(batches(), num_epoch=1, resume_every=10)


def loader_in_a_module():
    data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(nd.ones((8, 3))), 4)
    mx.mod.Module(classifier()).fit(data, num_epoch=1)


def missing_fixed_parameters():
    mx.mod.Module(classifier(), fixed_param_names=["fc1_weight"])


# -- optimizers and schedulers ---------------------------------------------------------------------


def optimizer_that_does_not_exist():
    mx.optimizer.create("adamm")


def learning_rate_in_words():
    mx.optimizer.SGD(learning_rate="fast")


def momentum_of_another_name():
    mx.optimizer.Adam(beta_1=0.9)


def scheduler_with_falling_steps():
    mx.lr_scheduler.MultiFactorScheduler(step=[20, 10])


def scheduler_without_steps():
    mx.lr_scheduler.FactorScheduler(step=0)


def gradient_of_another_shape():
    updater = mx.optimizer.get_updater(mx.optimizer.SGD())
    updater(0, nd.ones((3,)), nd.ones((2,)))


# -- initializers ----------------------------------------------------------------------------------


def initializer_that_does_not_exist():
    mx.init.create("xavierr")


def unknown_kind_of_randomness():
    mx.init.Xavier(rnd_type="normal")(mx.init.InitDesc("fc_weight"), nd.ones((2, 3)))


def xavier_of_a_vector():
    mx.init.Xavier()(mx.init.InitDesc("fc_weight"), nd.ones((3,)))


def unknown_name_of_a_parameter():
    mx.init.Uniform()(mx.init.InitDesc("fc_kernel"), nd.ones((2, 3)))


def mixed_initializer_without_a_match():
    chosen = mx.init.Mixed([".*bias"], [mx.init.Zero()])
    chosen("fc_weight", nd.ones((2, 3)))


def load_initializer_of_another_shape():
    mx.init.Load({"fc_weight": nd.ones((5,))})("fc_weight", nd.ones((2, 3)))


# -- stores ----------------------------------------------------------------------------------------


def store_that_does_not_exist():
    mx.kv.create("locale")


def push_of_an_unknown_key():
    mx.kv.create("local").push(3, nd.ones((2,)))


def pull_of_an_unknown_key():
    mx.kv.create("local").pull("w", out=nd.ones((2,)))


def key_that_exists_already():
    store = mx.kv.create("local")
    store.init(0, nd.ones((2,)))
    store.init(0, nd.ones((2,)))


def push_of_another_shape():
    store = mx.kv.create("local")
    store.init(0, nd.ones((2,)))
    store.push(0, nd.ones((3,)))
    store.pull(0, out=nd.ones((2,)))


def more_keys_than_values():
    mx.kv.create("local").init([1, 2], [nd.ones((2,))])


def distributed_store_without_a_launcher():
    mx.kv.create("dist_sync")


def unknown_compression():
    mx.kv.create("device").set_gradient_compression({"type": "4bit"})
