"""Networks whose `print_summary` is compared with MXNet's; run there and here."""

from __future__ import annotations

import contextlib
import io


def convolutional(mx):
    s = mx.sym
    x = s.Convolution(s.Variable("data"), kernel=(5, 5), num_filter=20, pad=(2, 2), name="conv1")
    x = s.Activation(s.BatchNorm(x, name="bn1"), act_type="tanh", name="tanh1")
    x = s.Pooling(x, pool_type="max", kernel=(2, 2), stride=(2, 2), name="pool1")
    y = s.Convolution(
        x, kernel=(3, 3), num_filter=20, pad=(1, 1), num_group=2, no_bias=True, name="c2"
    )
    x = s.Concat(s.elemwise_add(x, y, name="add"), x, name="cat")
    x = s.FullyConnected(s.Flatten(x, name="flat"), num_hidden=10, name="fc1")
    x = s.FullyConnected(s.Dropout(x, p=0.3, name="drop"), num_hidden=7, no_bias=True, name="fc2")
    return s.SoftmaxOutput(x, name="softmax")


def embedded(mx):
    s = mx.sym
    return s.Embedding(s.Variable("data"), input_dim=10, output_dim=5, name="emb")


def parts(mx):
    s = mx.sym
    split = s.SliceChannel(s.Variable("data"), num_outputs=2, name="split")
    return s.elemwise_add(split[0], split[1], name="joined")


def long_name(mx):
    return mx.sym.relu(mx.sym.Variable("data"), name="a" * 100)


def variable(mx):
    return mx.sym.Variable("data")


PICTURES = {"data": (1, 1, 28, 28)}
ROWS = {"data": (2, 4)}
PROGRAMS = {
    "convolutional": (convolutional, {}),
    "convolutional_shapes": (convolutional, {"shape": PICTURES}),
    "convolutional_narrow": (
        convolutional,
        {"shape": PICTURES, "line_length": 80, "positions": [0.3, 0.6, 0.8, 1.0]},
    ),
    "convolutional_absolute": (
        convolutional,
        {"shape": PICTURES, "line_length": 100, "positions": [30, 60, 80, 100]},
    ),
    "embedded": (embedded, {}),
    "embedded_shapes": (embedded, {"shape": ROWS}),
    "parts_shapes": (parts, {"shape": ROWS}),
    "long_name": (long_name, {"shape": ROWS}),
    "variable": (variable, {"shape": ROWS}),
}


def answer(mx, name):
    """Return what a program prints."""
    network, options = PROGRAMS[name]
    with contextlib.redirect_stdout(io.StringIO()) as text:
        mx.viz.print_summary(network(mx), **options)
    return text.getvalue()
