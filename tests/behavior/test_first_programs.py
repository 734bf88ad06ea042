"""Old user programs, in Python 3 spelling, run unchanged."""

# ruff: noqa: NPY002 (as they were written)

from __future__ import annotations

import logging
import random
from collections import namedtuple

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from tests.closeness import assert_equal_up_to_rounding


def test_infer_shape_of_an_unrolled_lstm():
    audio_data = mx.sym.Variable("audio_data")
    rnn1 = mx.rnn.LSTMCell(num_hidden=256, prefix="lstm1_")
    rnn1_outputs, _ = rnn1.unroll(length=49, inputs=audio_data, merge_outputs=False)
    rnn2 = mx.rnn.LSTMCell(num_hidden=256, prefix="lstm2_")
    rnn2_outputs, _ = rnn2.unroll(length=49, inputs=rnn1_outputs, merge_outputs=False)
    rnn1_last_out = mx.sym.Reshape(
        data=rnn1_outputs[-1], shape=(-1, 256), name="rnn1_last_out_reshape"
    )
    rnn2_last_out = mx.sym.Reshape(
        data=rnn2_outputs[-1], shape=(-1, 256), name="rnn2_last_out_reshape"
    )
    rnn_outputs = mx.sym.Concat(rnn1_last_out, rnn2_last_out, num_args=2, dim=1, name="rnn_outputs")
    found = rnn_outputs.infer_shape(audio_data=(128, 49, 75))
    weights = [(1024, 75), (1024,), *[(1024, 256), (1024,)] * 3]
    assert found == ([(128, 49, 75), *weights], [(128, 512)], [])


def test_custom_loss_by_make_loss():
    x = mx.sym.Variable("data")
    y = mx.sym.FullyConnected(data=x, num_hidden=1)
    label = mx.sym.Variable("label")
    loss = mx.sym.MakeLoss(mx.sym.square(y - label))
    pred_loss = mx.sym.Group([mx.sym.BlockGrad(y), loss])
    ex = pred_loss.simple_bind(mx.cpu(), data=(32, 2))
    test_data = mx.nd.array(np.random.random(size=(32, 2)))
    test_label = mx.nd.array(np.random.random(size=(32, 1)))
    ex.forward(is_train=True, data=test_data, label=test_label)
    ex.backward()
    weight = next(n for n in ex.arg_dict if n.endswith("_weight"))
    wanted = -2 * (test_label.asnumpy() * test_data.asnumpy()).sum(0)
    assert ex.arg_dict[weight].shape == (1, 2)
    np.testing.assert_allclose(ex.grad_arrays[1].asnumpy()[0], wanted, rtol=1e-4)


def test_module_without_label_names_raises_in_init_params():
    net = mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2), name="softmax"
    )
    module = mx.mod.Module(net, label_names=None)
    module.bind(data_shapes=[("data", (4, 3))])
    with pytest.raises(ValueError, match="Unknown initialization pattern for softmax_label"):
        module.init_params(mx.init.Xavier())


class TileLayer(mx.operator.NumpyOp):
    def __init__(self, tiles, axis):
        super(TileLayer, self).__init__(False)  # noqa: UP008 (as it was written)
        self.tiles = tiles
        self.axis = axis

    def list_arguments(self):
        return ["input"]

    def list_outputs(self):
        return ["output"]

    def infer_shape(self, in_shape):
        data_shape = in_shape[0]
        output_shape = in_shape[0] + [self.tiles]
        return [data_shape], [output_shape]

    def forward(self, in_data, out_data):
        x = in_data[0]
        y = out_data[0]
        y = np.tile(x, reps=self.tiles)  # noqa: F841

    def backward(self, out_grad, in_data, out_data, in_grad):
        bottom_diff = in_grad[0]
        top_diff = np.sum(out_grad[0], axis=self.axis)
        bottom_diff = top_diff  # noqa: F841


def test_custom_operator_in_a_module():
    batch = namedtuple("Batch", ["data"])
    a = mx.sym.Variable("data")
    custie = TileLayer(tiles=10, axis=2)
    tiles_a = custie(input=a, name="tileop")
    arg_shapes, out_shape, aux_shape = tiles_a.infer_shape(data=(2, 3))
    assert (arg_shapes, out_shape, aux_shape) == ([(2, 3)], [(2, 3, 10)], [])
    assert tiles_a.list_outputs() == ["tileop_output"]
    exe = mx.module.Module(symbol=tiles_a, logger=logging, label_names=None)
    exe.bind(data_shapes=[("data", (1, 10, 10))], inputs_need_grad=True)
    exe.init_params()
    exe.init_optimizer()
    exe.forward(batch([mx.nd.ones((1, 10, 10))]))
    assert exe.get_outputs()[0].asnumpy().shape == (1, 10, 10, 10)
    exe.backward(out_grads=[mx.nd.array(np.random.random(size=(1, 10, 10, 10)))])
    assert exe.get_input_grads()[0].shape == (1, 10, 10)


def test_context_groups():
    with mx.AttrScope(ctx_group="stage1"):
        data = mx.symbol.Variable("data")
        fc1 = mx.symbol.FullyConnected(data=data, name="fc1", num_hidden=128)
        act1 = mx.symbol.Activation(data=fc1, name="relu1", act_type="relu")
    set_stage1 = set(act1.list_arguments())
    with mx.AttrScope(ctx_group="stage2"):
        fc2 = mx.symbol.FullyConnected(data=act1, name="fc2", num_hidden=64)
        act2 = mx.symbol.Activation(data=fc2, name="relu2", act_type="relu")
        fc3 = mx.symbol.FullyConnected(data=act2, name="fc3", num_hidden=10)
        fc3 = mx.symbol.BatchNorm(fc3)
        mlp = mx.symbol.SoftmaxOutput(data=fc3, name="softmax")
    group2ctx = {"stage1": mx.cpu(0), "stage2": mx.cpu(1)}
    texec = mlp.simple_bind(mx.cpu(0), group2ctx=group2ctx, data=(1, 200))
    for arr, name in zip(texec.arg_arrays, mlp.list_arguments(), strict=True):
        assert arr.context == group2ctx["stage1" if name in set_stage1 else "stage2"]


TRUE_W, TRUE_B = [2, -3.4], 4.2


def _points(count=1000):
    mx.random.seed(0)
    features = nd.random.normal(scale=1, shape=(count, 2))
    labels = TRUE_W[0] * features[:, 0] + TRUE_W[1] * features[:, 1] + TRUE_B
    labels += nd.random.normal(scale=0.01, shape=labels.shape)
    return features, labels


def test_linear_regression_from_scratch():
    features, labels = _points()
    batch_size = 10

    def data_iter(batch_size, features, labels):
        num_examples = len(features)
        indices = list(range(num_examples))
        random.shuffle(indices)
        for i in range(0, num_examples, batch_size):
            j = nd.array(indices[i : min(i + batch_size, num_examples)])
            yield features.take(j), labels.take(j)

    w = nd.random.normal(scale=0.01, shape=(2, 1))
    b = nd.zeros(shape=(1,))
    w.attach_grad()
    b.attach_grad()

    def linreg(x, w, b):
        return nd.dot(x, w) + b

    def square_loss(y_hat, y):
        return (y_hat - y.reshape(y_hat.shape)) ** 2 / 2

    def sgd(params, lr, batch_size):
        for param in params:
            param[:] = param - lr * param.grad / batch_size

    for epoch in range(3):
        for x, y in data_iter(batch_size, features, labels):
            with autograd.record():
                loss = square_loss(linreg(x, w, b), y)
            loss.backward()
            sgd([w, b], 0.03, batch_size)
        train_l = square_loss(linreg(features, w, b), labels)
        assert "loss 0." in "epoch %d, loss %f" % (epoch + 1, train_l.mean().asnumpy())  # noqa: UP031
    assert train_l.mean().asscalar() < 1e-3
    np.testing.assert_allclose(w.asnumpy().ravel(), TRUE_W, atol=0.02)


def test_linear_regression_with_gluon():
    from mxnet import init
    from mxnet.gluon import data as gdata
    from mxnet.gluon import loss as gloss
    from mxnet.gluon import nn

    features, labels = _points()
    batch_size = 10
    dataset = gdata.ArrayDataset(features, labels)
    train_iter = gdata.DataLoader(dataset, batch_size, shuffle=True)
    net = nn.Sequential()
    net.add(nn.Dense(1))
    net.initialize(init.Normal(sigma=0.01))
    loss = gloss.L2Loss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.03})
    for _ in range(3):
        for x, y in train_iter:
            with autograd.record():
                batch_loss = loss(net(x), y)
            batch_loss.backward()
            trainer.step(batch_size)
        found = loss(net(features), labels)
    assert found.mean().asscalar() < 1e-3
    np.testing.assert_allclose(net[0].weight.data().asnumpy()[0], TRUE_W, atol=0.02)
    np.testing.assert_allclose(net[0].bias.data().asnumpy(), [TRUE_B], atol=0.02)


def test_gradient_accumulation_over_batches():
    net = gluon.nn.Dense(1, in_units=2)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for p in net.collect_params().values():
        p.grad_req = "add"
    for i in range(1, 5):
        with autograd.record():
            out = net(nd.ones((4, 2)))
        out.backward()
        if i % 2 == 0:
            assert net.weight.grad().asnumpy().tolist() == [[8, 8]]
            trainer.step(8)
            net.collect_params().zero_grad()
    assert net.weight.shape == (1, 2)
    assert net.weight.data(ctx=mx.cpu())[0, 1].shape == (1,)
    net.weight.lr_mult = 2.0
    trainer.set_learning_rate(0.5)
    assert trainer.learning_rate == 0.5


def test_printed_gradients_of_mean_and_max(capsys):
    x = nd.array([[1, 2, 3], [3, 2, 1]])
    x.attach_grad()
    with autograd.record(False):
        y = nd.mean(x)
        y.backward()
    print("y:", y)
    print("grad:", x.grad)
    assert capsys.readouterr().out == (
        "y: \n[2.]\n<NDArray 1 @cpu(0)>\ngrad: \n"
        "[[0.16666667 0.16666667 0.16666667]\n [0.16666667 0.16666667 0.16666667]]\n"
        "<NDArray 2x3 @cpu(0)>\n"
    )
    with autograd.record(False):
        y = nd.max(x)
        y.backward()
    print("y:", y)
    print("grad:", x.grad)
    assert capsys.readouterr().out == (
        "y: \n[3.]\n<NDArray 1 @cpu(0)>\ngrad: \n[[0. 0. 1.]\n [1. 0. 0.]]\n<NDArray 2x3 @cpu(0)>\n"
    )


def test_contrastive_loss():
    def my_softmax_loss(l_o, r_o, y):
        margin = 1.0
        d = nd.norm(l_o - r_o, axis=1)
        dd = nd.relu(margin - d)
        return y * d * d + (1 - y) * dd * dd

    left, right = nd.array([[0.0, 3.0], [0.5, 0.0]]), nd.array([[4.0, 0.0], [0.0, 0.0]])
    found = my_softmax_loss(left, right, nd.array([1, 0]))
    np.testing.assert_allclose(found.asnumpy(), [25, 0.25], rtol=1e-5)


class sigmoid(mx.autograd.Function):
    def forward(self, x):
        y = 1 / (1 + mx.nd.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


class MyLayer(gluon.Block):
    def __init__(self, **kwargs):
        super(MyLayer, self).__init__(**kwargs)  # noqa: UP008 (as it was written)
        self.func = sigmoid()

    def forward(self, x):
        return self.func(x)


def test_autograd_function_in_a_layer():
    x = mx.nd.random.uniform(shape=(10,))
    x.attach_grad()
    with mx.autograd.record():
        m = MyLayer()(x)
        m.backward()
    s = 1 / (1 + np.exp(-x.asnumpy()))
    np.testing.assert_allclose(x.grad.asnumpy(), s * (1 - s), rtol=1e-5)


class MLP(gluon.Block):
    def __init__(self, **kwargs):
        super(MLP, self).__init__(**kwargs)  # noqa: UP008 (as it was written)
        with self.name_scope():
            self.dense0 = gluon.nn.Dense(64)
            self.dense1 = gluon.nn.Dense(64)
            self.drop0 = gluon.nn.Dropout(0.5)
            self.dense2 = gluon.nn.Dense(10)

    def forward(self, x):
        x = nd.relu(self.dense0(x))
        x = nd.relu(self.dense1(x))
        x = self.drop0(x)
        return self.dense2(x)


def test_dropout_is_active_only_in_train_mode(tmp_path):
    net = MLP()
    net.initialize()
    inputs = nd.array([[1, 2, 3, 4]])
    with autograd.train_mode():
        assert (net(inputs).asnumpy() != net(inputs).asnumpy()).any()
    np.testing.assert_array_equal(net(inputs).asnumpy(), net(inputs).asnumpy())
    net.save_parameters(str(tmp_path / "softmax.params"))
    again = MLP()
    again.load_parameters(str(tmp_path / "softmax.params"), ctx=mx.cpu())
    assert_equal_up_to_rounding(again(inputs).asnumpy(), net(inputs).asnumpy())


def test_custom_dataset():
    import mxnet.gluon.data as data
    import mxnet.ndarray as nd

    num_examples, num_inputs = 100, 2
    X = nd.random_normal(shape=(num_examples, num_inputs))
    noise = 0.01 * nd.random_normal(shape=(num_examples,))
    y = 2 * X[:, 0] - 3.4 * X[:, 1] + 4.2 + noise
    XY = data.ArrayDataset(X, y)

    class MyFileDataset(data.Dataset):
        def __init__(self):
            return

        def __getitem__(self, item):
            return XY[item]

        def __len__(self):
            return num_examples

    train_data = gluon.data.DataLoader(MyFileDataset(), batch_size=30, shuffle=True)
    assert [b[0].shape for b in train_data] == [(30, 2)] * 3 + [(10, 2)]


def test_outputs_of_intermediate_layers():
    from mxnet.gluon.model_zoo import vision

    resnet18 = vision.resnet18_v1()
    resnet18.initialize()
    x = nd.ones((1, 3, 32, 32))
    for i in range(len(resnet18.features)):
        x = resnet18.features[i](x)
    x = resnet18.output(x)
    assert nd.topk(x, k=5).shape == (1, 5)
    lines = repr(resnet18).splitlines()
    assert lines[0] == "ResNetV1(" and lines[-1] == ")"
    text = repr(resnet18)
    for line in (
        "(output): Dense(512 -> 1000, linear)",
        "(0): Conv2D(3 -> 64, kernel_size=(7, 7), stride=(2, 2), padding=(3, 3), bias=False)",
        "(2): Activation(relu)",
        "(3): MaxPool2D(size=(3, 3), stride=(2, 2), padding=(1, 1), ceil_mode=False",
    ):
        assert line in text
    assert "Conv2D" in repr(resnet18.features[4][0].body[0])


def test_export_and_load_roundtrip(tmp_path):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(4, activation="relu"), gluon.nn.BatchNorm(), gluon.nn.Dense(2))
    net.initialize()
    net.hybridize()
    x = nd.random.normal(shape=(3, 5))
    wanted = net(x).asnumpy()
    net.export(path=str(tmp_path / "triplet-net"), epoch=5)
    sym, arg_params, aux_params = mx.model.load_checkpoint(
        prefix=str(tmp_path / "triplet-net"), epoch=5
    )
    again = gluon.nn.SymbolBlock(outputs=sym, inputs=mx.sym.var("data"))
    net_params = again.collect_params()
    for param in arg_params:
        if param in net_params:
            net_params[param]._load_init(arg_params[param], ctx=mx.cpu())
    for param in aux_params:
        if param in net_params:
            net_params[param]._load_init(aux_params[param], ctx=mx.cpu())
    np.testing.assert_allclose(again(x).asnumpy(), wanted, rtol=1e-5)


def test_error_for_mixed_dtypes_names_both():
    with pytest.raises(mx.MXNetError, match="expected int32, got float32"):
        nd.array([1], dtype="int32") + nd.array([1.0])
