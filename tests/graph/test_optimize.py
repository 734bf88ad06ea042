"""Graph passes do not change what a graph computes."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from mxnet.graph.optimize import NAMES
from mxnet.ops.fused import convolution

SWITCH = "MXNET_GRAPH_PASSES"


class Net(gluon.HybridBlock):
    """A block that runs a function of its children; `parts` become attributes."""

    def __init__(self, forward, **parts):
        super().__init__()
        self._run = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def hybrid_forward(self, F, x):
        return self._run(self, F, x)


def chain(*layers):
    net = nn.HybridSequential()
    net.add(*layers)
    return net


def conv(filters=24, kernel=3, pad=1, **options):
    return nn.Conv2D(filters, kernel, padding=pad, **options)


def conv_bn_relu():
    return chain(conv(use_bias=False), nn.BatchNorm(), nn.Activation("relu"))


def residual():
    body = chain(conv(), nn.BatchNorm(), nn.Activation("relu"), conv(), nn.BatchNorm())
    return Net(
        lambda self, F, x: F.relu(self.body(self.stem(x)) + self.stem(x)), body=body, stem=conv()
    )


def residual_other_side():
    return Net(
        lambda self, F, x: F.Activation(self.stem(x) + self.bn(self.body(x)), act_type="relu"),
        body=conv(),
        bn=nn.BatchNorm(),
        stem=conv(kernel=1, pad=0),
    )


def broadcast_sum():
    return Net(
        lambda self, F, x: F.relu(
            F.broadcast_add(self.body(x), F.mean(x, axis=(1, 2, 3), keepdims=True))
        ),
        body=conv(),
    )


def shared_weights():
    return chain(conv(), nn.BatchNorm(), Net(_twice, inner=conv()))


def _twice(self, F, x):
    return F.relu(self.inner(F.tanh(self.inner(x))))


def two_users():
    def forward(self, F, x):
        y = self.body(x)
        return self.bn(y) * F.sigmoid(y)

    return Net(forward, body=conv(), bn=nn.BatchNorm())


def two_heads():
    def forward(self, F, x):
        y = self.body(x)
        return F.relu(self.bn(y)), y

    return Net(forward, body=conv(), bn=nn.BatchNorm())


def with_dropout():
    return chain(
        conv(), nn.Dropout(0.5), nn.Activation("relu"), nn.Flatten(), nn.Dropout(0.3), nn.Dense(5)
    )


def sum_with_itself():
    return Net(lambda self, F, x: F.relu(self.body(x) * 1 + self.body(x)), body=conv())


def sum_of_three():
    return Net(
        lambda self, F, x: F.relu(self.a(x) + self.b(x) + self.c(x)), a=conv(), b=conv(), c=conv()
    )


def activated_twice():
    return Net(lambda self, F, x: F.tanh(F.sigmoid(F.relu(self.body(x)))), body=conv())


NETS = {
    "sum of three": sum_of_three,
    "sum, sum": lambda: Net(lambda self, F, x: self.body(x) + x + 2 * x, body=conv(9)),
    "sum, relu, tanh": lambda: Net(
        lambda self, F, x: F.tanh(F.relu(self.body(x) + x)), body=conv(9)
    ),
    "activated twice": activated_twice,
    "normalized twice": lambda: chain(conv(), nn.BatchNorm(), nn.BatchNorm()),
    "conv bn relu": conv_bn_relu,
    "conv relu": lambda: chain(conv(activation="relu")),
    "residual": residual,
    "residual, other side": residual_other_side,
    "broadcast sum": broadcast_sum,
    "shared weights": shared_weights,
    "gamma fixed": lambda: chain(conv(), nn.BatchNorm(scale=False), nn.Activation("tanh")),
    "grouped": lambda: chain(conv(24, groups=3), nn.BatchNorm(), nn.LeakyReLU(0.1)),
    "depthwise": lambda: chain(conv(9), conv(9, groups=9), nn.BatchNorm(), nn.Activation("relu")),
    "dilated, strided": lambda: chain(
        nn.Conv2D(24, 3, (2, 1), (2, 3), (2, 1)), nn.BatchNorm(), nn.Activation("sigmoid")
    ),
    "two users": two_users,
    "two heads": two_heads,
    "clip": lambda: Net(lambda self, F, x: F.clip(self.body(x), 0, 6), body=conv()),
    "dropout": with_dropout,
    "pooled": lambda: chain(conv_bn_relu(), nn.MaxPool2D(), conv(8), nn.GlobalAvgPool2D()),
    "dense": lambda: chain(nn.Dense(16, activation="relu"), nn.Dense(4, activation="tanh")),
    "numbers": lambda: Net(lambda self, F, x: 2 - (x * 3 + 1) / 4 + (x > 0.5) * 2),
    "twice": sum_with_itself,
    "normalized first": lambda: chain(nn.BatchNorm(), nn.Activation("relu"), conv()),
    "channels last": lambda: chain(
        conv(layout="NHWC"), nn.BatchNorm(axis=3), nn.Activation("relu")
    ),
}


def made(make, shape=(2, 9, 20, 20), dtype="float32"):
    mx.random.seed(1)
    net = make()
    net.initialize(mx.init.Normal(0.3))
    net.cast(dtype)
    x = nd.random.normal(shape=shape, dtype=dtype)
    net(x)
    for name, param in net.collect_params().items():
        if name.endswith(("running_var", "gamma")):
            param.set_data(nd.random.uniform(0.5, 2, shape=param.shape, dtype=dtype))
        elif name.endswith(("running_mean", "beta", "bias")):
            param.set_data(nd.random.normal(shape=param.shape, dtype=dtype))
    return net, x


def results(net, x):
    out = net(x)
    return [o.asnumpy() for o in (out if isinstance(out, tuple | list) else [out])]


def agree(first, second, rtol=1e-5):
    # A bias before a normalization gets only rounding errors, so compare by one scale for all.
    scale = max(np.abs(a).max() for a in first)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * scale)


def check(net, x):
    """Compare the hybridized block with the eager one, twice: the second call is cached."""
    net.hybridize(active=False)
    plain = results(net, x)
    net.hybridize()
    for _ in range(3):
        agree(plain, results(net, x))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "layer",
    [
        lambda: gluon.rnn.LSTM(5, 2, bidirectional=True),
        lambda: gluon.rnn.LSTM(5, projection_size=3),
        lambda: gluon.rnn.GRU(5, layout="NTC"),
        lambda: gluon.rnn.RNN(5, 2),
    ],
)
def test_optimized_recurrent_layers_equal_unoptimized(layer, training):
    mx.random.seed(2)
    net, x = layer(), nd.random.normal(shape=(4, 3, 6))
    net.initialize(mx.init.Normal(0.3))

    def everything():
        with autograd.record(train_mode=training):
            out = net(x)
            total = (out * out).sum()
        total.backward()
        return [out.asnumpy(), net(x).asnumpy()] + [
            p.grad().asnumpy() for p in net.collect_params().values()
        ]

    plain = everything()
    net.hybridize()
    for _ in range(3):
        agree(plain, everything())
    assert all(len(p.steps) <= 3 for p in net._cached_op.function.programs.values())


@pytest.mark.parametrize("name", NETS)
def test_optimized_prediction_equals_unoptimized(name):
    check(*made(NETS[name]))


@pytest.mark.parametrize(
    "name",
    ["conv bn relu", "residual", "grouped", "clip", "pooled", "sum of three", "activated twice"],
)
def test_prediction_with_prepacked_weights_equals_unoptimized(name, monkeypatch):
    monkeypatch.setattr(convolution, "MIN_MULTIPLICATIONS", 600_000)
    net, x = made(NETS[name], (4, 9, 64, 64))
    check(net, x)


@pytest.mark.parametrize(
    "name", ["conv bn relu", "residual", "dilated, strided", "dropout", "dense"]
)
def test_optimized_prediction_in_float64(name):
    net, x = made(NETS[name], dtype="float64")
    check(net, x)


@pytest.mark.parametrize("name", [n for n in NETS if n != "dropout"])  # random masks
def test_optimized_gradients_equal_unoptimized(name):
    net, x = made(NETS[name], dtype="float64")
    x.attach_grad()
    states = {n: p.data().copy() for n, p in net.collect_params().items()}

    def gradients(training):
        for n, p in net.collect_params().items():
            p.set_data(states[n])
        with autograd.record(train_mode=training):
            out = net(x)
            total = sum((o * o).sum() for o in (out if isinstance(out, tuple | list) else [out]))
        total.backward()
        found = [p.grad().asnumpy() for p in net.collect_params().values() if p.grad_req != "null"]
        after = [p.data().asnumpy() for p in net.collect_params().values()]
        return [total.asnumpy(), x.grad.asnumpy(), *found, *after]

    for training in (True, False):
        net.hybridize(active=False)
        plain = gradients(training)
        net.hybridize()
        for _ in range(3):
            agree(plain, gradients(training), rtol=1e-9)


def test_optimized_prediction_uses_updated_parameters():
    net, x = made(conv_bn_relu, (2, 9, 40, 40))
    net.hybridize()
    before = results(net, x)
    for name, param in net.collect_params().items():
        if "var" in name:
            param.data()[:] = param.data() * 2
        else:
            param.set_data(param.data() + 0.1)
        changed = results(net, x)
        assert np.abs(changed[0] - before[0]).max() > 1e-3, name
        net.hybridize(active=False)
        agree(results(net, x), changed)
        net.hybridize()
        before = results(net, x)


def eagerly(net, x):
    """Return results without the compiled graph, which is kept."""
    net.apply(lambda block: setattr(block, "_active", False))
    plain = results(net, x)
    net.apply(lambda block: setattr(block, "_active", True))
    return plain


@pytest.mark.parametrize("optimizer", ["sgd", "nag", "adam", "rmsprop", "lamb", "ftrl"])
def test_prediction_after_training_steps_uses_new_parameters(optimizer):
    net, x = made(NETS["residual"], (2, 9, 40, 40))
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.05})
    net.hybridize()
    for _ in range(4):
        results(net, x)
        with autograd.record():
            loss = (net(x) ** 2).mean()
        loss.backward()
        trainer.step(1)
        agree(eagerly(net, x), results(net, x))


def test_optimized_graph_with_weights_that_change_on_every_call():
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    op = nd.CachedOp(
        mx.sym.relu(mx.sym.Convolution(x, w, kernel=(3, 3), num_filter=16, no_bias=True))
    )
    data = nd.random.normal(shape=(1, 8, 40, 40))
    for _ in range(40):
        weight = nd.random.normal(shape=(16, 8, 3, 3))
        wanted = nd.relu(nd.Convolution(data, weight, kernel=(3, 3), num_filter=16, no_bias=True))
        agree([wanted.asnumpy()], [op(data, weight).asnumpy()])


def test_optimized_prediction_with_changing_shapes():
    net, _ = made(NETS["pooled"])
    for _ in range(2):
        for batch, size in ((1, 16), (3, 64), (8, 48), (1, 64), (2, 30), (5, 33), (1, 16)):
            check(net, nd.random.normal(shape=(batch, 9, size, size)))


@pytest.mark.parametrize("where", ["data", "weight", "var"])
@pytest.mark.parametrize("size", [12, 48])
def test_nan_is_propagated_by_optimized_graphs(where, size):
    net = chain(conv_bn_relu(), nn.MaxPool2D(), conv_bn_relu())
    net, x = made(lambda: net, (2, 9, size, size))
    if where == "data":
        x[:] = np.nan
    else:
        param = next(p for n, p in net.collect_params().items() if n.endswith(where))
        param.data()[:] = np.nan
    net.hybridize()
    for _ in range(20):
        assert np.isnan(results(net, x)[0]).any()
    if where == "data":
        check(net, nd.ones_like(x))


def test_optimized_executor_predicts_and_trains():
    data = mx.sym.Variable("data")
    body = mx.sym.Convolution(data, kernel=(3, 3), num_filter=16, name="conv")
    body = mx.sym.Activation(mx.sym.BatchNorm(body, name="bn"), act_type="relu")
    net = mx.sym.FullyConnected(mx.sym.Dropout(body, p=0.0), num_hidden=3, name="fc")
    shape = (2, 3, 40, 40)
    outputs = {}
    for said in ("1", "0"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(SWITCH, said)
            mx.random.seed(3)
            exe = net.simple_bind(mx.cpu(), data=shape)
            for array in exe.arg_arrays:
                array[:] = nd.random.normal(0, 0.2, shape=array.shape)
            found = []
            for _ in range(3):
                found.append(exe.forward()[0].asnumpy())
                found.append(exe.forward(is_train=True)[0].asnumpy())
                exe.backward(nd.ones((2, 3)))
                found += [g.asnumpy() for g in exe.grad_arrays]
                found += [a.asnumpy() for a in exe.aux_arrays]
                for array, grad in zip(exe.arg_arrays[1:], exe.grad_arrays[1:], strict=True):
                    array -= 0.001 * grad
            outputs[said] = found
    agree(outputs["0"], outputs["1"])


def test_optimized_outputs_are_contiguous():
    net, x = made(conv_bn_relu, (2, 9, 48, 48))
    net.hybridize()
    out = net(x)
    out.reshape((-1,))[:] = 7
    assert (out.asnumpy() == 7).all()
    with autograd.record():
        out = net(x)
    assert out._member.tensor.is_contiguous()


def test_errors_in_optimized_graphs_name_the_operator():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    body = mx.sym.Convolution(a, kernel=(1, 1), num_filter=4, no_bias=True, name="mine")
    op = nd.CachedOp(mx.sym.elemwise_add(body, b, name="the_sum"))
    arrays = {
        "a": nd.ones((1, 2, 5, 5)),
        "mine_weight": nd.ones((4, 2, 1, 1)),
        "b": nd.ones((1, 4, 5, 5)),
    }
    names = mx.sym.elemwise_add(body, b).list_inputs()
    op(*(arrays[n] for n in names))
    for _ in range(3):
        with pytest.raises(mx.MXNetError, match="the_sum"):
            op(*({**arrays, "b": nd.ones((1, 4, 5, 4))}[n] for n in names))
        with pytest.raises(mx.MXNetError, match="mine"):
            op(*({**arrays, "a": nd.ones((1, 3, 5, 5))}[n] for n in names))


def test_op_hooks_are_called_for_every_original_node():
    net, x = made(conv_bn_relu)
    net.hybridize()
    net(x)
    seen = []
    net.register_op_hook(lambda name, op, array: seen.append(op))
    net(x)
    assert seen == [b"Convolution", b"BatchNorm", b"Activation"]


def kernels(net):
    (program,) = net._cached_op.function.programs.values()
    return [step.kernel for step in program.steps]


def test_passes_reduce_the_number_of_kernels(monkeypatch):
    for said, wanted in (("1", 1), ("0", 3), ("pack_convolutions,fold_batch_norm", 2)):
        monkeypatch.setenv(SWITCH, said)
        net, x = made(conv_bn_relu)
        net.hybridize()
        net(x)
        assert len(kernels(net)) == wanted


@pytest.mark.parametrize("name", NAMES)
def test_each_pass_alone_preserves_results(name, monkeypatch):
    monkeypatch.setenv(SWITCH, name)
    for make in (residual, with_dropout, NETS["numbers"]):
        check(*made(make))


def test_unknown_pass_name_raises(monkeypatch):
    monkeypatch.setenv(SWITCH, "fold_batchnorm")
    net, x = made(conv_bn_relu)
    net.hybridize()
    with pytest.raises(mx.MXNetError, match="fold_batch_norm"):
        net(x)


class Unrolled(gluon.HybridBlock):
    """A recurrent cell, step by step."""

    def __init__(self, cell, layout):
        super().__init__()
        self.cell, self._layout = cell, layout

    def hybrid_forward(self, F, x):
        return self.cell.unroll(4, x, layout=self._layout, merge_outputs=True)[0]


@pytest.mark.parametrize("layout", ["NTC", "TNC"])
@pytest.mark.parametrize("cell", [gluon.rnn.LSTMCell, gluon.rnn.GRUCell, gluon.rnn.RNNCell])
def test_input_projections_of_unrolled_cells_are_batched(cell, layout, monkeypatch):
    monkeypatch.setenv("MXNET_GRAPH_PASSES", "batch_projections")
    mx.random.seed(4)
    net = Unrolled(cell(5), layout)
    net.initialize(mx.init.Normal(0.5))
    x = nd.random.normal(shape=(3, 4, 6) if layout == "NTC" else (4, 3, 6))
    x.attach_grad()

    def everything():
        with autograd.record():
            out = net(x)
            total = (out * out).sum()
        total.backward()
        grads = [p.grad().asnumpy() for p in net.collect_params().values()]
        return [out.asnumpy(), net(x).asnumpy(), x.grad.asnumpy(), *grads]

    plain = everything()
    net.hybridize()
    for _ in range(3):
        agree(plain, everything())
    assert net.compiled(x).rules["batch_projection"] == 4


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 2, 5), (3, 4, 2)])
def test_batched_projections_of_data_of_any_rank(shape):
    x = nd.random.normal(shape=shape)
    width = int(np.prod(shape[2:]))
    w, b = nd.random.normal(shape=(5, width)), nd.random.normal(shape=(5,))
    data = mx.sym.Variable("data")
    steps = mx.sym.SliceChannel(data, num_outputs=4, axis=1, squeeze_axis=True)
    weight, bias = mx.sym.Variable("w"), mx.sym.Variable("b")
    outs = [
        mx.sym.FullyConnected(s, weight, bias, num_hidden=5, name=f"f{i}")
        for i, s in enumerate(steps)
    ]
    exe = mx.sym.stack(*outs, axis=1).bind(mx.cpu(), {"data": x, "w": w, "b": b}, grad_req="null")
    wanted = nd.stack(*(nd.FullyConnected(x[:, i], w, b, num_hidden=5) for i in range(4)), axis=1)
    agree([wanted.asnumpy()], [exe.forward()[0].asnumpy()])
    assert exe.compiled.rules == {"batch_projection": 4}


SMALL = ["mobilenet0.25", "mobilenetv2_0.25", "resnet18_v1", "squeezenet1.1"]
LARGE = ["densenet121", "resnet18_v2", "resnet50_v1"]
SIZES = {"densenet121": 224, "squeezenet1.1": 224}


def build(name):
    mx.random.seed(11)
    net = gluon.model_zoo.vision.get_model(name, classes=5)
    net.initialize(mx.init.Xavier())
    x = nd.random.normal(shape=(2, 3, SIZES.get(name, 64), SIZES.get(name, 64)))
    net(x)
    for key, param in net.collect_params().items():
        if key.endswith(("running_var", "gamma")):
            param.set_data(nd.random.uniform(0.5, 1.5, shape=param.shape))
        elif key.endswith(("running_mean", "beta", "bias")):
            param.set_data(nd.random.normal(0, 0.1, shape=param.shape))
    return net, x


def outputs(net, x):
    """Return predictions, and from training in float64 loss, gradients and statistics."""
    net.hybridize()
    predictions = [net(x).asnumpy() for _ in range(3)]
    net.cast("float64")
    mx.random.seed(1)  # Dropout
    with autograd.record():
        loss = (net(x.astype("float64")) ** 2).mean()
    loss.backward()
    params = net.collect_params().values()
    found = [loss.asnumpy(), *(p.grad().asnumpy() for p in params if p.grad_req != "null")]
    return predictions, found + [p.data().asnumpy() for p in params if p.grad_req == "null"]


@pytest.mark.parametrize(
    "name", [*SMALL, *(pytest.param(n, marks=pytest.mark.slow) for n in LARGE)]
)
def test_networks_compute_the_same_with_and_without_passes(name, monkeypatch):
    optimized = outputs(*build(name))
    monkeypatch.setenv("MXNET_GRAPH_PASSES", "0")
    plain = outputs(*build(name))
    agree(plain[0], optimized[0], 1e-5)
    agree(plain[1], optimized[1], 1e-9)


def test_common_subexpressions_are_merged(monkeypatch):
    """Nodes are merged by operator, attributes and inputs, except random ones and heads."""
    x = mx.sym.var("x")
    same = mx.sym.exp(x, name="e1") * mx.sym.exp(x, name="e2")
    net = mx.sym.Group([same, mx.sym.exp(x, name="e3"), mx.sym.Dropout(same, p=0.5, name="d")])
    exe = net.bind(mx.cpu(), {"x": nd.array([1, 2])})
    merged = exe.get_optimized_symbol()
    assert merged.tojson().count('"op": "exp"') == 1
    for ours, theirs in zip(
        exe.forward(), merged.bind(mx.cpu(), {"x": nd.array([1, 2])}).forward(), strict=True
    ):
        np.testing.assert_array_equal(ours.asnumpy(), theirs.asnumpy())
    monkeypatch.setenv("MXNET_ELIMINATE_COMMON_EXPR", "0")
    assert exe.get_optimized_symbol().tojson().count('"op": "exp"') == 3
