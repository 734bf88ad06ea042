"""Symbols as old programs write them: builders with prefixes, output layers, several heads."""

from __future__ import annotations

import math
from typing import Any

import mxnet as mx
from mxnet import sym


def residual_unit(data: Any, width: int, stride: int, same: bool, name: str) -> Any:
    bn1 = sym.BatchNorm(data, fix_gamma=False, eps=2e-5, name=f"{name}_bn1")
    act1 = sym.Activation(bn1, act_type="relu", name=f"{name}_relu1")
    conv1 = sym.Convolution(act1, num_filter=width, kernel=(3, 3), stride=(stride, stride),
                            pad=(1, 1), no_bias=True, name=f"{name}_conv1")  # fmt: skip
    bn2 = sym.BatchNorm(conv1, fix_gamma=False, eps=2e-5, name=f"{name}_bn2")
    act2 = sym.Activation(bn2, act_type="relu", name=f"{name}_relu2")
    conv2 = sym.Convolution(act2, num_filter=width, kernel=(3, 3), pad=(1, 1), no_bias=True,
                            name=f"{name}_conv2")  # fmt: skip
    if same:
        shortcut = data
    else:
        shortcut = sym.Convolution(act1, num_filter=width, kernel=(1, 1), stride=(stride, stride),
                                   no_bias=True, name=f"{name}_sc")  # fmt: skip
    return conv2 + shortcut


def resnet(units: tuple = (2, 2), widths: tuple = (8, 16, 32), classes: int = 10) -> Any:
    data = sym.Variable("data")
    body = sym.BatchNorm(data, fix_gamma=True, eps=2e-5, name="bn_data")
    body = sym.Convolution(body, num_filter=widths[0], kernel=(3, 3), pad=(1, 1), no_bias=True,
                           name="conv0")  # fmt: skip
    for i, count in enumerate(units):
        for j in range(count):
            stride = 2 if i and not j else 1
            name = f"stage{i + 1}_unit{j + 1}"
            body = residual_unit(body, widths[i + 1], stride, j > 0, name)
    body = sym.BatchNorm(body, fix_gamma=False, eps=2e-5, name="bn1")
    body = sym.Activation(body, act_type="relu", name="relu1")
    body = sym.Pooling(body, global_pool=True, kernel=(7, 7), pool_type="avg", name="pool1")
    body = sym.FullyConnected(sym.Flatten(body), num_hidden=classes, name="fc1")
    return sym.SoftmaxOutput(body, name="softmax")


def conv_factory(
    data: Any, width: int, kernel: Any, name: str, pad: Any = (0, 0), stride: Any = (1, 1)
) -> Any:
    conv = sym.Convolution(data, num_filter=width, kernel=kernel, stride=stride, pad=pad,
                           no_bias=True, name=f"{name}_conv2d")  # fmt: skip
    bn = sym.BatchNorm(conv, fix_gamma=True, eps=0.001, name=f"{name}_batchnorm")
    return sym.Activation(bn, act_type="relu", name=f"{name}_relu")


def inception(classes: int = 10) -> Any:
    x = sym.Variable("data")
    x = conv_factory(x, 8, (3, 3), "conv", stride=(2, 2))
    x = conv_factory(x, 8, (3, 3), "conv_1", pad=(1, 1))
    x = sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pool_type="max", name="pool")
    for name, width in (("mixed", 4), ("mixed_1", 8), ("mixed_2", 8)):
        one = conv_factory(x, 8, (1, 1), f"{name}_conv")
        five = conv_factory(x, 6, (1, 1), f"{name}_tower_conv")
        five = conv_factory(five, 8, (5, 5), f"{name}_tower_conv_1", pad=(2, 2))
        pool = sym.Pooling(x, kernel=(3, 3), pad=(1, 1), pool_type="avg",
                           name=f"avg_pool_{name}_pool")  # fmt: skip
        pool = conv_factory(pool, width, (1, 1), f"{name}_tower_1_conv")
        x = sym.Concat(one, five, pool, name=f"ch_concat_{name}_chconcat")
    x = sym.Pooling(x, kernel=(1, 1), global_pool=True, pool_type="avg", name="global_pool")
    x = sym.FullyConnected(sym.Flatten(x, name="flatten"), num_hidden=classes, name="fc1")
    return sym.SoftmaxOutput(x, name="softmax")


def ssd(classes: int = 3) -> Any:
    """Return two scales of an SSD: class scores, box offsets and anchors."""
    x = sym.Variable("data")
    for i in (1, 2):
        x = sym.Convolution(x, num_filter=8 * i, kernel=(3, 3), pad=(1, 1), name=f"conv{i}_1")
        x = sym.Activation(x, act_type="relu", name=f"relu{i}_1")
        x = sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max", name=f"pool{i}")
    y = sym.Convolution(x, num_filter=16, kernel=(3, 3), stride=(2, 2), pad=(1, 1), name="conv3_1")
    y = sym.Activation(y, act_type="relu", name="relu3_1")
    locations, scores, anchors = [], [], []
    for i, layer in enumerate((x, y)):
        loc = sym.Convolution(layer, num_filter=8, kernel=(3, 3), pad=(1, 1), name=f"loc{i}_conv")
        loc = sym.Flatten(sym.transpose(loc, axes=(0, 2, 3, 1)))
        cls = sym.Convolution(layer, num_filter=2 * (classes + 1), kernel=(3, 3), pad=(1, 1),
                              name=f"cls{i}_conv")  # fmt: skip
        cls = sym.Flatten(sym.transpose(cls, axes=(0, 2, 3, 1)))
        locations.append(loc)
        scores.append(cls)
        anchor = sym.contrib.MultiBoxPrior(layer, sizes=(0.2, 0.4), ratios=(1,), clip=False)
        anchors.append(sym.Flatten(anchor))
    loc = sym.Concat(*locations, dim=1, name="multibox_loc_pred")
    cls = sym.Reshape(sym.Concat(*scores, dim=1), shape=(0, -1, classes + 1))
    cls = sym.transpose(cls, axes=(0, 2, 1), name="multibox_conf_pred")
    anchor = sym.Reshape(sym.Concat(*anchors, dim=1), shape=(0, -1, 4), name="multibox_anchors")
    prob = sym.softmax(cls, axis=1, name="cls_prob")
    return sym.contrib.MultiBoxDetection(prob, loc, anchor, name="detection",
                                         nms_threshold=0.5, nms_topk=20)  # fmt: skip


def face_network() -> Any:
    """Return a network like the first of MTCNN: PReLU, and two heads."""
    x = sym.Variable("data")
    for i, width in enumerate((10, 16, 32)):
        x = sym.Convolution(x, num_filter=width, kernel=(3, 3), name=f"conv{i + 1}")
        x = sym.LeakyReLU(x, act_type="prelu", name=f"prelu{i + 1}")
        if i == 0:
            x = sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max",
                            pooling_convention="full", name="pool1")  # fmt: skip
    face = sym.Convolution(x, num_filter=2, kernel=(1, 1), name="conv4_1")
    box = sym.Convolution(x, num_filter=4, kernel=(1, 1), name="conv4_2")
    return sym.Group([sym.SoftmaxActivation(face, mode="channel", name="prob1"), box])


def unrolled_lstm(steps: int = 5, hidden: int = 8, vocabulary: int = 20) -> Any:
    data = sym.Variable("data")
    embed = sym.Embedding(data, input_dim=vocabulary, output_dim=6, name="embed")
    cell = mx.rnn.LSTMCell(hidden, prefix="lstm_")
    outputs, _ = cell.unroll(steps, embed, merge_outputs=True)
    flat = sym.Reshape(outputs, shape=(-1, hidden))
    scores = sym.FullyConnected(flat, num_hidden=vocabulary, name="pred")
    label = sym.Reshape(sym.Variable("softmax_label"), shape=(-1,))
    return sym.SoftmaxOutput(scores, label, name="softmax")


def fused_lstm(steps: int = 5, hidden: int = 8, vocabulary: int = 20) -> Any:
    data = sym.Variable("data")
    embed = sym.Embedding(data, input_dim=vocabulary, output_dim=6, name="embed")
    cell = mx.rnn.FusedRNNCell(hidden, num_layers=2, mode="lstm", prefix="lstm_")
    outputs, _ = cell.unroll(steps, embed, merge_outputs=True, layout="NTC")
    flat = sym.Reshape(outputs, shape=(-1, hidden))
    scores = sym.FullyConnected(flat, num_hidden=vocabulary, name="pred")
    return sym.SoftmaxOutput(scores, name="softmax")


def factorization_machine(features: int = 12, factors: int = 4) -> Any:
    x = sym.Variable("data")
    v = sym.Variable("v", shape=(features, factors))
    w = sym.Variable("w1_weight", shape=(features, 1))
    bias = sym.Variable("w1_bias", shape=(1,))
    linear = sym.broadcast_add(sym.dot(x, w), bias)
    squared = sym.sum(sym.square(sym.dot(x, v)), axis=1, keepdims=True)
    minus = sym.sum(sym.dot(sym.square(x), sym.square(v)), axis=1, keepdims=True)
    out = linear + 0.5 * (squared - minus)
    return sym.LogisticRegressionOutput(out, name="out")


def matrix_factorization(users: int = 20, items: int = 30, factors: int = 6) -> Any:
    user, item = sym.Variable("user"), sym.Variable("item")
    user = sym.Embedding(user, input_dim=users, output_dim=factors, name="user_embed")
    item = sym.Embedding(item, input_dim=items, output_dim=factors, name="item_embed")
    user = sym.FullyConnected(user, num_hidden=8, name="user_fc")
    item = sym.FullyConnected(item, num_hidden=8, name="item_fc")
    score = sym.sum(user * item, axis=1)
    return sym.LinearRegressionOutput(sym.Flatten(score), sym.Variable("score"), name="lro")


def generator(width: int = 8) -> Any:
    x = sym.Variable("rand")
    for i, (filters, stride, pad) in enumerate(((width * 2, 1, 0), (width, 2, 1))):
        x = sym.Deconvolution(x, num_filter=filters, kernel=(4, 4), stride=(stride, stride),
                              pad=(pad, pad), no_bias=True, name=f"g{i + 1}")  # fmt: skip
        x = sym.BatchNorm(x, fix_gamma=True, eps=1e-5 + 1e-12, name=f"gbn{i + 1}")
        x = sym.Activation(x, act_type="relu", name=f"gact{i + 1}")
    x = sym.Deconvolution(x, num_filter=3, kernel=(4, 4), stride=(2, 2), pad=(1, 1), no_bias=True,
                          name="g3")  # fmt: skip
    return sym.Activation(x, act_type="tanh", name="gact3")


def discriminator(width: int = 8) -> Any:
    x = sym.Variable("data")
    for i, filters in enumerate((width, width * 2)):
        x = sym.Convolution(x, num_filter=filters, kernel=(4, 4), stride=(2, 2), pad=(1, 1),
                            no_bias=True, name=f"d{i + 1}")  # fmt: skip
        x = sym.LeakyReLU(x, act_type="leaky", slope=0.2, name=f"dact{i + 1}")
    x = sym.Convolution(x, num_filter=1, kernel=(4, 4), no_bias=True, name="d3")
    return sym.LogisticRegressionOutput(sym.Flatten(x), sym.Variable("label"), name="dloss")


NETWORKS = {
    "resnet": (resnet, {"data": (2, 3, 16, 16)}),
    "inception": (inception, {"data": (2, 3, 32, 32)}),
    "face_network": (face_network, {"data": (2, 3, 24, 24)}),
    "unrolled_lstm": (unrolled_lstm, {"data": (2, 5), "softmax_label": (2, 5)}),
    "fused_lstm": (fused_lstm, {"data": (2, 5)}),
    "factorization_machine": (factorization_machine, {"data": (3, 12)}),
    "matrix_factorization": (matrix_factorization, {"user": (3,), "item": (3,)}),
    "generator": (generator, {"rand": (2, 10, 1, 1)}),
    "discriminator": (discriminator, {"data": (2, 3, 16, 16)}),
    "ssd": (ssd, {"data": (2, 3, 32, 32)}),
}  # fmt: skip


def random_parameters(symbol: Any, shapes: dict[str, tuple], seed: int = 0) -> dict[str, Any]:
    """Return parameters of plausible sizes for everything that is neither data nor a label."""
    mx.random.seed(seed)
    args, _, states = symbol.infer_shape(**shapes)
    params = {}
    for name, shape in zip(symbol.list_arguments(), args, strict=True):
        if name in shapes or name.endswith(("label", "score")):
            continue
        scale = (2.0 / max(shape[-1] if len(shape) == 2 else math.prod(shape[1:]), 1)) ** 0.5
        if name.endswith(("gamma",)):
            params[name] = mx.nd.random.uniform(0.5, 1.5, shape)
        else:
            params[name] = mx.nd.random.normal(0, scale, shape)
    for name, shape in zip(symbol.list_auxiliary_states(), states, strict=True):
        params[name] = mx.nd.random.uniform(0.5, 1.5, shape)
    return params
