"""Invalid calls with layers, losses and trainers. Each function makes one."""

from __future__ import annotations

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from mxnet.gluon.contrib.estimator import Estimator

# -- layers ----------------------------------------------------------------------------------------


def initialized(*layers):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(*layers)
    net.initialize()
    return net


def network_without_initialize():
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(3, in_units=4))
    net(nd.ones((2, 4)))


def parameter_before_its_shape_is_known():
    net = initialized(nn.Dense(3))
    net[0].weight.data()


def data_from_numpy():
    net = initialized(nn.Dense(3))
    net([[1.0, 2.0]])


def call_without_data():
    net = initialized(nn.Dense(3))
    net()


def call_with_two_inputs():
    net = initialized(nn.Dense(3))
    net(nd.ones((2, 4)), nd.ones((2, 4)))


def unknown_activation():
    net = initialized(nn.Dense(3, activation="rellu"))
    net(nd.ones((2, 4)))


def number_as_text():
    net = initialized(nn.Dense("ten"))
    net(nd.ones((2, 4)))


def dense_without_units():
    nn.Dense()


def convolution_without_kernel():
    nn.Conv2D(16)


def misspelled_layer():
    nn.Conv2d(16, 3)


def misspelled_option():
    nn.Dense(10, in_unit=5)


def layer_that_is_a_class():
    net = nn.HybridSequential()
    net.add(nn.Dense)


def plain_layer_in_a_hybrid_network():
    net = nn.HybridSequential()
    net.add(nn.Sequential())


def data_of_another_size_later():
    net = initialized(nn.Dense(3))
    net(nd.ones((2, 4)))
    net(nd.ones((2, 5)))


def image_with_channels_last():
    net = initialized(nn.Conv2D(8, 3, in_channels=3))
    net(nd.ones((1, 32, 32, 3)))


def sequence_without_an_axis():
    net = gluon.rnn.LSTM(8, input_size=4, prefix="lstm_")
    net.initialize()
    net(nd.ones((5, 4)))


def states_of_another_batch():
    net = gluon.rnn.LSTM(8, input_size=4, prefix="lstm_")
    net.initialize()
    net(nd.ones((5, 2, 4)), net.begin_state(batch_size=3))


def cell_without_states():
    cell = gluon.rnn.LSTMCell(8, input_size=4, prefix="cell_")
    cell.initialize()
    cell(nd.ones((2, 4)))


def words_beyond_the_vocabulary():
    net = initialized(nn.Embedding(-1, 4))
    net(nd.array([1, 2]))


def layer_that_has_no_forward():
    class Empty(gluon.HybridBlock):
        pass

    Empty()(nd.ones((2, 4)))


def layer_that_forgets_its_parameter():
    class Scale(gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="scale_")
            self.weight = self.params.get("weight", shape=(1,))

        def hybrid_forward(self, F, x):
            return x

    net = Scale()
    net.initialize()
    net(nd.ones((2, 4)))


def other_kind_for_a_child():
    net = initialized(nn.Dense(3))
    net.head = nn.Dense(2)
    net.head = nd.ones((2,))


def unknown_initializer():
    nn.Dense(3).initialize("xavierr")


def initializer_of_another_shape():
    net = nn.Dense(3, in_units=4, prefix="dense_")
    net.initialize(mx.init.Constant(nd.ones((2, 2))))
    net.weight.data()


def data_set_of_another_shape():
    net = initialized(nn.Dense(3, in_units=4))
    net[0].weight.set_data(nd.ones((2, 2)))


def summary_without_data():
    initialized(nn.Dense(3)).summary()


def export_before_a_call():
    net = initialized(nn.Dense(3))
    net.hybridize()
    net.export("net")


def export_of_a_network_that_is_not_hybridized():
    net = initialized(nn.Dense(3))
    net(nd.ones((2, 4)))
    net.export("net")


# -- losses ----------------------------------------------------------------------------------------


def labels_of_another_batch():
    gluon.loss.SoftmaxCrossEntropyLoss()(nd.ones((4, 3)), nd.array([0, 1]))


def labels_as_one_hot():
    gluon.loss.SoftmaxCrossEntropyLoss()(nd.ones((4, 3)), nd.ones((4, 3)))


def label_forgotten():
    gluon.loss.L2Loss()(nd.ones((4, 3)))


def prediction_and_label_of_two_sizes():
    gluon.loss.L2Loss()(nd.ones((4, 3)), nd.ones((4, 2)))


def sample_weights_of_another_size():
    gluon.loss.L1Loss()(nd.ones((4, 3)), nd.ones((4, 3)), nd.ones((3, 3)))


def unknown_layout_of_ctc():
    gluon.loss.CTCLoss(layout="BTC")


def loss_where_gradients_were_not_recorded():
    net = initialized(nn.Dense(3, in_units=4))
    gluon.loss.L2Loss()(net(nd.ones((2, 4))), nd.ones((2, 3))).backward()


# -- trainers --------------------------------------------------------------------------------------


def trained():
    net = initialized(nn.Dense(3, in_units=4))
    return net, gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})


def trainer_of_a_network():
    gluon.Trainer(initialized(nn.Dense(3, in_units=4)), "sgd")


def trainer_of_arrays():
    gluon.Trainer([nd.ones((2,))], "sgd")


def unknown_optimizer():
    gluon.Trainer(initialized(nn.Dense(3, in_units=4)).collect_params(), "sdg")


def optimizer_options_of_another_library():
    gluon.Trainer(initialized(nn.Dense(3, in_units=4)).collect_params(), "adam", {"lr": 0.1})


def options_for_a_made_optimizer():
    params = initialized(nn.Dense(3, in_units=4)).collect_params()
    gluon.Trainer(params, mx.optimizer.SGD(), {"learning_rate": 0.1})


def step_without_batch_size():
    _, trainer = trained()
    trainer.step()


def step_without_backward():
    net, trainer = trained()
    net(nd.ones((2, 4)))
    trainer.step(2)


def step_of_an_empty_batch():
    net, trainer = trained()
    with autograd.record():
        loss = net(nd.ones((2, 4))).sum()
    loss.backward()
    trainer.step(0)


def trainer_before_shapes_are_known():
    net = initialized(nn.Dense(3))
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    trainer.step(2)


def learning_rate_with_a_scheduler():
    net = initialized(nn.Dense(3, in_units=4))
    schedule = {"lr_scheduler": mx.lr_scheduler.FactorScheduler(10)}
    gluon.Trainer(net.collect_params(), "sgd", schedule).set_learning_rate(0.1)


def states_from_a_missing_file():
    _, trainer = trained()
    trainer.load_states("nowhere.states")


def split_over_more_devices_than_samples():
    gluon.utils.split_and_load(nd.ones((3, 2)), [mx.cpu(0), mx.cpu(1)])


# -- estimators ------------------------------------------------------------------------------------


def estimator():
    net, trainer = trained()
    return Estimator(net, gluon.loss.L2Loss(), trainer=trainer)


def loader():
    return gluon.data.DataLoader(gluon.data.ArrayDataset(nd.ones((4, 4)), nd.ones((4, 3))), 2)


def estimator_with_a_function_as_loss():
    net, trainer = trained()
    Estimator(net, lambda pred, label: (pred - label).abs(), trainer=trainer)


def estimator_with_an_optimizer_as_trainer():
    net, _ = trained()
    Estimator(net, gluon.loss.L2Loss(), trainer=mx.optimizer.SGD())


def estimator_on_an_iterator():
    estimator().fit(mx.io.NDArrayIter(nd.ones((4, 4)), nd.ones((4, 3)), 2), epochs=1)


def estimator_without_a_length():
    estimator().fit(loader())


def estimator_with_a_function_as_handler():
    estimator().fit(loader(), epochs=1, event_handlers=[print])


def estimator_with_a_path_as_logger():
    estimator().fit(loader(), epochs=1, loggers="run.csv")
