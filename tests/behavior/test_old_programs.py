"""Old user programs give the numbers that MXNet gave."""

from __future__ import annotations

import logging
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx


def random_parameters(symbol, rng, scale, **shapes):
    found, _, _ = symbol.infer_shape(**shapes)
    named = sorted(zip(symbol.list_arguments(), found, strict=True))
    return {n: mx.nd.array(rng.randn(*s) * scale) for n, s in named if n not in shapes}


def test_executor_gradients_of_an_expression_with_powers() -> None:
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    arrays = {"a": mx.nd.array([1, 2]), "b": mx.nd.array([3, 4])}
    grads = {n: mx.nd.zeros(2) for n in arrays}
    executor = (b**2 + 2**a - a / b).bind(mx.cpu(), arrays, args_grad=grads)
    found = executor.forward(is_train=True)[0].asnumpy()
    np.testing.assert_allclose(found, [10.666667, 19.5], rtol=1e-6)
    executor.backward(mx.nd.ones(2))
    np.testing.assert_allclose(grads["b"].asnumpy(), [6.111111, 8.125], rtol=1e-6)


def test_siamese_branches_with_shared_weights_and_custom_loss() -> None:
    rng = np.random.RandomState(0)
    weight, bias = mx.sym.Variable("sw"), mx.sym.Variable("sb")

    def branch(name):
        data = mx.sym.Variable(name)
        layer = mx.sym.FullyConnected(data, weight=weight, bias=bias, num_hidden=4)
        return mx.sym.L2Normalization(layer)

    same = mx.sym.Variable("sim")
    apart = mx.sym.sum(mx.sym.square(branch("left") - branch("right")), axis=1)
    distance = mx.sym.sqrt(apart + 1e-6)
    near = same * mx.sym.square(distance)
    far = (1 - same) * mx.sym.square(mx.sym.maximum(1 - distance, 0))
    module = mx.mod.Module(
        mx.sym.MakeLoss(near + far), data_names=["left", "right"], label_names=["sim"]
    )
    pairs = {"left": rng.randn(16, 5), "right": rng.randn(16, 5)}
    data = mx.io.NDArrayIter(pairs, {"sim": rng.randint(0, 2, 16)}, 4)
    start = {"sw": mx.nd.array(rng.randn(4, 5)), "sb": mx.nd.zeros(4)}
    metric = mx.metric.Loss()
    module.fit(data, eval_metric=metric, num_epoch=2, arg_params=start, optimizer="adadelta")
    assert metric.get()[1] == pytest.approx(0.799965, abs=1e-5)
    expected = [-1.27714, 0.85306954, -0.9702439, -1.5389048, 1.238159]
    np.testing.assert_allclose(module.get_params()[0]["sw"][0].asnumpy(), expected, rtol=1e-4)


State = namedtuple("State", ["c", "h"])


def written_lstm(steps, words, hidden, width):
    """An LSTM without any cell class, as in the first tutorials."""
    names = ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")
    layers = [[mx.sym.Variable(f"l{i}_{n}") for n in names] for i in range(2)]
    states = [State(*(mx.sym.Variable(f"l{i}_init_{n}") for n in "ch")) for i in range(2)]
    data = mx.sym.Embedding(
        mx.sym.Variable("data"), mx.sym.Variable("embed_weight"), input_dim=words, output_dim=width
    )
    outputs = []
    for h in mx.sym.SliceChannel(data, num_outputs=steps, squeeze_axis=1):
        for i, (wx, bx, wh, bh) in enumerate(layers):
            gates = mx.sym.FullyConnected(h, wx, bx, num_hidden=4 * hidden)
            gates = gates + mx.sym.FullyConnected(states[i].h, wh, bh, num_hidden=4 * hidden)
            kept, new, forget, shown = mx.sym.SliceChannel(gates, num_outputs=4)
            kept, forget, shown = (mx.sym.sigmoid(g) for g in (kept, forget, shown))
            c = forget * states[i].c + kept * mx.sym.tanh(new)
            states[i] = State(c, shown * mx.sym.tanh(c))
            h = states[i].h
        outputs.append(h)
    pred = mx.sym.FullyConnected(
        mx.sym.Concat(*outputs, dim=0),
        mx.sym.Variable("cls_weight"),
        mx.sym.Variable("cls_bias"),
        num_hidden=words,
    )
    label = mx.sym.transpose(mx.sym.Variable("softmax_label"))
    return mx.sym.SoftmaxOutput(pred, mx.sym.Reshape(label, target_shape=(0,)), name="softmax")


def perplexity(label, pred):
    rows = label.T.reshape(-1).astype(int)
    return np.exp(-np.log(np.maximum(1e-10, pred[np.arange(len(rows)), rows])).mean())


def test_lstm_from_scratch_predicts_the_next_word() -> None:
    rng = np.random.RandomState(0)
    net = written_lstm(steps=4, words=7, hidden=5, width=3)
    states = {f"l{i}_init_{n}": (2, 5) for i in range(2) for n in "ch"}
    sentences = rng.randint(0, 7, (8, 4))
    given = {"data": sentences, **{n: np.zeros((8, 5)) for n in states}}
    data = mx.io.NDArrayIter(given, {"softmax_label": (sentences + 1) % 7}, 2)
    shapes = {"data": (2, 4), "softmax_label": (2, 4), **states}
    start = random_parameters(net, rng, 0.3, **shapes)
    module = mx.mod.Module(net, data_names=[d[0] for d in data.provide_data])
    module.fit(
        data,
        eval_metric=mx.metric.np(perplexity),
        num_epoch=3,
        arg_params=start,
        optimizer="adagrad",
        optimizer_params={"learning_rate": 0.1, "clip_gradient": 5.0},
    )
    found = dict(module.score(data, mx.metric.np(perplexity)))["perplexity"]
    assert found == pytest.approx(4.984434, abs=1e-3)


def test_style_transfer_optimizes_the_image() -> None:
    rng = np.random.RandomState(0)
    net = mx.sym.Variable("data")
    for name, filters in (("1", 3), ("2", 4)):
        net = mx.sym.Convolution(
            net, num_filter=filters, kernel=(3, 3), pad=(1, 1), name=f"c{name}"
        )
        net = mx.sym.Activation(net, act_type="relu", name=f"r{name}")
        if name == "1":
            net = mx.sym.Pooling(
                net, pool_type="avg", kernel=(2, 2), stride=(2, 2), pooling_convention="full"
            )
    layers, losses = net.get_internals(), []
    for i, (channels, area) in enumerate(((3, 64), (4, 16))):
        rows = mx.sym.Reshape(layers[f"r{i + 1}_output"], target_shape=(channels, area))
        gram = mx.sym.FullyConnected(rows, rows, no_bias=True, num_hidden=channels)
        losses.append(mx.sym.sum(mx.sym.square(mx.sym.Variable(f"target_gram_{i}") - gram)))
    losses.append(mx.sym.sum(mx.sym.square(mx.sym.Variable("target_content") - net)))
    loss = mx.sym.Group(losses)
    found, _, _ = loss.infer_shape(data=(1, 3, 8, 8))
    arrays = {
        name: mx.nd.array(rng.randn(*shape) * 0.2)
        for name, shape in zip(loss.list_arguments(), found, strict=True)
    }
    grad = {"data": mx.nd.zeros((1, 3, 8, 8))}
    executor = loss.bind(mx.cpu(), arrays, args_grad=grad)
    optimizer = mx.optimizer.SGD(learning_rate=0.01, wd=0.0005, momentum=0.9)
    state = optimizer.create_state(0, arrays["data"])
    for _ in range(4):
        executor.forward(is_train=True)
        executor.backward([mx.nd.ones(1) * w for w in (0.1, 0.2, 1.0)])
        norm = mx.nd.norm(grad["data"]).asscalar()
        if norm > 5:
            grad["data"][:] *= 5 / norm
        optimizer.update(0, arrays["data"], grad["data"], state)
    values = [float(o.asscalar()) for o in executor.outputs]
    np.testing.assert_allclose(values, [29.509993, 0.6041037, 3.013752], rtol=1e-4)


def test_gradient_of_a_strided_1x1_convolution_in_a_residual_unit() -> None:
    data = mx.sym.Variable("data")
    wide = mx.sym.Convolution(data, kernel=(3, 3), num_filter=4, pad=(1, 1), name="c0")
    options = {"num_filter": 8, "stride": (2, 2), "no_bias": True}
    body = mx.sym.Convolution(wide, kernel=(3, 3), pad=(1, 1), name="c1", **options)
    shortcut = mx.sym.Convolution(wide, kernel=(1, 1), name="sc", **options)
    executor = mx.sym.MakeLoss(body + shortcut).simple_bind(mx.cpu(), data=(4, 3, 8, 8))
    for array in executor.arg_dict.values():
        array[:] = 0.5
    for _ in range(20):
        executor.forward(is_train=True)
        executor.backward()
    seen = wide.eval(**{n: executor.arg_dict[n] for n in wide.list_arguments()})[0].asnumpy()
    grad = executor.grad_dict["sc_weight"].asnumpy()[:, :, 0, 0]
    expected = np.broadcast_to(seen[:, :, ::2, ::2].sum((0, 2, 3)), (8, 4))
    np.testing.assert_allclose(grad, expected, rtol=1e-5)


def test_metric_with_several_values_is_logged_by_name(caplog) -> None:
    class Both(mx.metric.EvalMetric):
        def __init__(self):
            super().__init__("both")

        def update(self, labels, preds):
            self.sum_metric += 1

        def get(self):  # of Python 2, where zip gave a list
            return zip(*self.get_name_value(), strict=True)

        def get_name_value(self):
            return [("hits", 0.25), ("misses", 0.75)]

    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2)
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    data = mx.io.NDArrayIter(np.zeros((4, 3)), np.zeros(4), 2)
    with caplog.at_level(logging.INFO):
        module.fit(data, num_epoch=1, eval_metric=Both())
    assert "Train-hits=0.250000" in caplog.text
    assert "Train-misses=0.750000" in caplog.text


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=0),
        lambda: mx.sym.Convolution(mx.sym.Variable("x"), kernel=(3, 3), num_filter=0),
        lambda: mx.sym.Embedding(mx.sym.Variable("x"), input_dim=-2, output_dim=1),
        lambda: mx.sym.Dropout(mx.sym.Variable("x"), p=1.1),
        lambda: mx.nd.split(mx.nd.ones((2, 2)), num_outputs=0),
        lambda: mx.nd.zeros((2,), foo=1),
        lambda: mx.nd.ones((2, 3)).reshape((4, 2)),
        lambda: mx.sym.load("no-such-file.json"),
    ],
)
def test_invalid_calls_raise_as_in_mxnet(wrong) -> None:
    with pytest.raises(mx.base.MXNetError):
        wrong()


def test_error_types_for_wrong_keys(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="str->NDArray"):
        mx.nd.save(str(tmp_path / "x"), {1: mx.nd.ones(1)})
    with pytest.raises(ValueError, match="strings"):
        mx.sym.Variable("x", attr={"key": 1})


def test_multiple_results_are_returned_as_a_list() -> None:
    counts = mx.nd.histogram(mx.nd.array([1, 2, 2, 5]), bins=3, range=(0, 6))
    assert isinstance(counts, list)
    _, variables = mx.nd.contrib.while_loop(
        lambda i, s: i <= 3,
        lambda i, s: (s + i, (i + 1, s + i)),
        (mx.nd.array([0]), mx.nd.array([1])),
        max_iterations=6,
    )
    assert isinstance(variables, list)
    assert variables[1].asscalar() == 7
