"""Arrays without elements in layers, hybridized blocks, losses and metrics."""

from __future__ import annotations

import functools

import mxnet as mx
from mxnet import autograd, gluon
from tests.behavior.combinations import error_of, fill, ramp


def _in_numpy_mode(program):
    @functools.wraps(program)
    def run():
        mx.npx.set_np()
        try:
            return program()
        finally:
            mx.npx.reset_np()

    return run


@_in_numpy_mode
def sums_of_empty_arrays_in_a_hybridized_block():
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.np.sum(x), F.np.sum(x, axis=0), F.np.concatenate([x, x * 2], axis=0)

    network = Net()
    network.hybridize()
    return network(mx.np.zeros((0, 3)))


@_in_numpy_mode
def batches_of_changing_size_down_to_zero():
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.np.tanh(x) * 2 + 1

    network = Net()
    network.hybridize()
    return [network(ramp((size, 2))) for size in (2, 0, 3, 0)]


@_in_numpy_mode
def gradient_of_an_empty_part():
    x = ramp((3, 2))
    x.attach_grad()
    with autograd.record():
        loss = (x[3:] * 2).sum() + (x * x).sum()
    loss.backward()
    return [loss, x.grad]


@_in_numpy_mode
def concatenation_with_an_empty_array():
    x, empty = ramp((2, 2)), mx.np.zeros((0, 2))
    x.attach_grad()
    with autograd.record():
        y = mx.np.concatenate([x, empty], axis=0) * 3
    y.backward()
    return [y, x.grad]


@_in_numpy_mode
def reshape_and_transpose_of_empty_arrays():
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.np.transpose(F.np.reshape(x, (-1, 3)))

    network = Net()
    network.hybridize()
    return [network(mx.np.zeros((0, 6))).shape, network(mx.np.zeros((2, 6))).shape]


@_in_numpy_mode
def mask_that_selects_nothing():
    x = ramp((3,))
    return [x[x > 9].shape, mx.np.zeros((0, 4)).mean(axis=1).shape, float((x[x > 9]).sum())]


@_in_numpy_mode
def stack_and_split_of_empty_arrays():
    empty = mx.np.zeros((0, 4))
    return [mx.np.stack([empty, empty]).shape, [p.shape for p in mx.np.split(empty, 2, axis=1)]]


def empty_arrays_without_numpy_shapes():
    return [error_of(lambda: mx.nd.zeros((0, 3)) + 1), error_of(lambda: mx.nd.array([]))]


@_in_numpy_mode
def loss_of_an_empty_batch():
    loss = gluon.loss.L2Loss()
    loss.hybridize()
    return loss(mx.np.zeros((0, 3)), mx.np.zeros((0, 3))).shape


def metric_of_an_empty_list():
    metric = mx.metric.create(["acc", "mse"])
    metric.update([], [])
    return [name for name, value in metric.get_name_value() if value != value]


@_in_numpy_mode
def dense_layer_of_an_empty_batch_after_a_full_one():
    layer = gluon.nn.Dense(2, in_units=3)
    layer.initialize()
    fill(layer.collect_params())
    return [layer(ramp((2, 3))), error_of(lambda: layer(mx.np.zeros((0, 3)))) != "crash"]
