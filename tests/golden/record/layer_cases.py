"""Gluon layers, losses and cells with their options, declared once for MXNet and for us.

Only NumPy is imported: `mx` comes in as an argument, so that the same lines run in both. A case
is a block and what is called with which inputs; its parameters are filled by a formula.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Case:
    """A block to make, the inputs to call it with, and how."""

    key: str
    make: Callable
    inputs: tuple
    train: bool = False
    run: Callable | None = None
    draws_graph: bool = True
    learns: bool = True  # whether MXNet can differentiate it, here on the CPU
    input_grads: int | None = None  # how many of the inputs get a gradient; None: all
    arrays: list = field(init=False)

    def __post_init__(self):
        random = np.random.RandomState(zlib.crc32(self.key.encode()) & 0x7FFFFFFF)
        self.arrays = [made(i, random) for i in self.inputs]


FAMILIES: dict[str, list[Case]] = {"nn": [], "loss": [], "rnn": [], "contrib": []}


def made(wanted, random):
    """Return the array for a shape (normal values), or the array given."""
    if isinstance(wanted, tuple):
        return random.normal(size=wanted).astype("float32")
    return np.asarray(wanted, dtype="float32")


def case(family, key, make, *inputs, **options):
    """Add a case to a family."""
    FAMILIES[family].append(Case(f"{family}/{key}", make, inputs, **options))


def fill(mx, block):
    """Fill parameters with values that only depend on their position; variances are positive."""
    for i, p in enumerate(block.collect_params().values()):
        size = int(np.prod(p.shape))
        values = 0.4 * np.sin(np.arange(size) * (0.37 + 0.11 * (i % 7)) + i)
        if p.name.endswith(("running_var", "gamma", "alpha")):
            values = 1 + 0.5 * values
        p.set_data(mx.nd.array(values.reshape(p.shape), dtype=p.dtype))


def flat(value):
    """Return the arrays of nested lists in order."""
    if isinstance(value, (list, tuple)):
        return [array for part in value for array in flat(part)]
    return [value]


def ready(mx, the_case, hybridize=False):
    """Return a block with all shapes known and all parameters filled."""
    with mx.name.NameManager():
        block = the_case.make(mx)
    block.initialize()
    if hybridize:
        block.hybridize()
    call(mx, the_case, block, [mx.nd.array(a) for a in the_case.arrays])
    fill(mx, block)
    return block


def call(mx, the_case, block, arrays):
    """Run the case."""
    if the_case.run is not None:
        return the_case.run(mx, block, *arrays)
    return block(*arrays)


def answer(mx, the_case, hybridize=False):
    """Return {part: array}: outputs, gradients of inputs and parameters, moved statistics."""
    block = ready(mx, the_case, hybridize)
    arrays = [mx.nd.array(a) for a in the_case.arrays]
    if not the_case.learns:
        outs = flat(call(mx, the_case, block, arrays))
        return {f"out{i}": o.asnumpy() for i, o in enumerate(outs)}
    for array in arrays[: the_case.input_grads]:
        array.attach_grad()
    with mx.autograd.record(train_mode=the_case.train):
        # times one: an array may be output and state, but a head only once
        outs = [o * 1 for o in flat(call(mx, the_case, block, arrays))]
    found = {f"out{i}": o.asnumpy() for i, o in enumerate(outs)}
    heads = [mx.nd.array(np.cos(np.arange(o.size)).reshape(o.shape)) for o in outs]
    mx.autograd.backward(outs, heads, train_mode=the_case.train)
    given = enumerate(arrays[: the_case.input_grads])
    found.update({f"grad{i}": a.grad.asnumpy() for i, a in given})
    for name, p in block.collect_params().items():
        if p.grad_req != "null":
            found[f"param/{name}"] = p.grad().asnumpy()
        elif the_case.train and "running" in name:
            found[f"moved/{name}"] = p.data().asnumpy()
    return found


def description(mx, the_case):
    """Return the printed form, the parameters and, where it can be drawn, the graph."""
    with mx.name.NameManager():
        block = the_case.make(mx)
    found = {"repr": repr(block)}
    block = ready(mx, the_case)
    found["parameters"] = [[n, list(p.shape)] for n, p in block.collect_params().items()]
    found["structure"] = list(block._collect_params_with_prefix())
    if the_case.draws_graph:
        with mx.name.NameManager():
            block = the_case.make(mx)
            names = [f"x{i}" for i in range(len(the_case.arrays))]
            outs = flat(call(mx, the_case, block, [mx.sym.var(n) for n in names]))
            graph = mx.sym.Group(outs)
        found["outputs"] = graph.list_outputs()
        found["arguments"] = sorted(graph.list_arguments())
        found["operators"] = sorted(n for n in graph.get_internals().list_outputs() if "fwd" in n)
    return found


def nn(name, *args, **kwargs):
    """Return what makes a layer of `gluon.nn`."""
    return lambda mx: getattr(mx.gluon.nn, name)(*args, **kwargs)


def loss(name, **kwargs):
    """Return what makes a loss."""
    return lambda mx: getattr(mx.gluon.loss, name)(**kwargs)


def rnn(name, *args, **kwargs):
    """Return what makes a layer or cell of `gluon.rnn`."""
    return lambda mx: getattr(mx.gluon.rnn, name)(*args, **kwargs)


def contrib(module, name, *args, **kwargs):
    """Return what makes a block of `gluon.contrib`."""
    return lambda mx: getattr(getattr(mx.gluon.contrib, module), name)(*args, **kwargs)


# -- layers -----------------------------------------------------------------------------------

case("nn", "dense", nn("Dense", 3), (2, 4))
case("nn", "dense_relu", nn("Dense", 3, activation="relu", in_units=12), (2, 3, 4))
case("nn", "dense_kept", nn("Dense", 3, flatten=False, use_bias=False), (2, 3, 4))
case("nn", "dense_tanh", nn("Dense", 2, activation="tanh", bias_initializer="ones"), (1, 5))
case("nn", "flatten", nn("Flatten"), (2, 3, 4))
case("nn", "dropout_idle", nn("Dropout", 0.5, axes=(1,)), (2, 3))
case("nn", "dropout_none", nn("Dropout", 0), (2, 3), train=True, draws_graph=False)
case("nn", "embedding", nn("Embedding", 5, 3), [[1, 4, 4], [0, 2, 9]], input_grads=0)
for train in (False, True):
    end = "_train" if train else ""
    case("nn", "batch_norm" + end, nn("BatchNorm"), (4, 3, 2, 2), train=train)
    case("nn", "batch_norm_flat" + end, nn("BatchNorm", in_channels=3), (5, 3), train=train)
    case("nn", "batch_norm_last" + end, nn("BatchNorm", axis=-1), (4, 2, 3), train=train)
    options = {"scale": False, "center": False, "epsilon": 1e-2, "momentum": 0.5}
    case("nn", "batch_norm_bare" + end, nn("BatchNorm", **options), (4, 3, 2), train=train)
    make = nn("BatchNorm", use_global_stats=True)
    case("nn", "batch_norm_global" + end, make, (4, 3, 2), train=train)
    make = nn("BatchNormReLU")  # MXNet forgets outside training what was below zero
    case("nn", "batch_norm_relu" + end, make, (4, 3, 2, 2), train=train, learns=train)
case("nn", "instance_norm", nn("InstanceNorm"), (2, 3, 4))
case("nn", "instance_norm_scaled", nn("InstanceNorm", scale=True), (2, 3, 4, 2))
case("nn", "instance_norm_last", nn("InstanceNorm", axis=2, epsilon=1e-3), (2, 4, 3))
case("nn", "layer_norm", nn("LayerNorm"), (2, 3, 4))
case("nn", "layer_norm_middle", nn("LayerNorm", axis=1, scale=False), (2, 3, 4))
case("nn", "layer_norm_known", nn("LayerNorm", in_channels=4, center=False), (2, 4))
case("nn", "group_norm", nn("GroupNorm", 2), (2, 4, 3))
case("nn", "group_norm_bare", nn("GroupNorm", 1, scale=False, center=False), (2, 4, 3, 2))
for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
    case("nn", "activation_" + kind, nn("Activation", kind), (2, 5))
case("nn", "leaky_relu", nn("LeakyReLU", 0.2), (2, 5))
case("nn", "prelu", nn("PReLU"), (2, 5, 3))
case("nn", "prelu_channels", nn("PReLU", in_channels=5), (2, 5, 3))
case("nn", "elu", nn("ELU", 0.7), (2, 5))
case("nn", "selu", nn("SELU"), (2, 5))
case("nn", "gelu", nn("GELU"), (2, 5))
case("nn", "swish", nn("Swish", 1.5), (2, 5))
case("nn", "lambda", nn("HybridLambda", "tanh"), (2, 5))
case("nn", "reflection_pad", nn("ReflectionPad2D", 2), (1, 2, 4, 3))
case("nn", "reflection_pad_eight", nn("ReflectionPad2D", (0, 0, 0, 0, 1, 0, 2, 1)), (1, 2, 4, 3))
case("nn", "conv1d", nn("Conv1D", 4, 3, strides=2, padding=1), (2, 3, 7))
case("nn", "conv1d_dilated", nn("Conv1D", 4, 2, dilation=2, use_bias=False), (2, 3, 7))
case("nn", "conv2d", nn("Conv2D", 4, 3, activation="relu"), (2, 3, 5, 6))
case("nn", "conv2d_groups", nn("Conv2D", 4, (3, 2), (2, 1), (1, 0), groups=2), (1, 4, 5, 5))
case("nn", "conv2d_known", nn("Conv2D", 2, 1, in_channels=3, use_bias=False), (1, 3, 4, 4))
case("nn", "conv3d", nn("Conv3D", 2, (1, 2, 2), padding=(0, 1, 0)), (1, 2, 3, 4, 4))
case("nn", "conv1d_up", nn("Conv1DTranspose", 3, 3, strides=2, output_padding=1), (2, 2, 4))
make = nn("Conv2DTranspose", 4, 3, 2, 1, 1, groups=2, in_channels=4, activation="sigmoid")
case("nn", "conv2d_up", make, (1, 4, 3, 3))
make = nn("Conv2DTranspose", 2, 2, dilation=2, use_bias=False, in_channels=3)
case("nn", "conv2d_up_dilated", make, (1, 3, 3, 3))
case("nn", "conv3d_up", nn("Conv3DTranspose", 2, 2, strides=(1, 2, 1)), (1, 2, 2, 2, 3))
for kind in ("Max", "Avg"):
    for n, shape in ((1, (2, 3, 7)), (2, (2, 3, 7, 6)), (3, (1, 2, 4, 5, 4))):
        name = f"{kind}Pool{n}D"
        # MXNet keeps what the gradient of pooling needs only while training
        case("nn", name, nn(name), shape, train=True)
        case("nn", "Global" + name, nn("Global" + name), shape, train=True)
        learns = (kind, n) != (
            "Avg",
            3,
        )  # there MXNet's float32 gradient differs from its float64's
        options = {"train": True, "learns": learns}
        case("nn", name + "_ceil", nn(name, 3, 2, 1, ceil_mode=True), shape, **options)
    name = f"{kind}Pool2D"
    case("nn", name + "_uneven", nn(name, (3, 2), (1, 2)), (1, 2, 5, 5), train=True)
case("nn", "avg_pool_valid", nn("AvgPool2D", 3, 1, 1, count_include_pad=False), (1, 2, 4, 4))
case("nn", "avg_pool_valid_1d", nn("AvgPool1D", 3, 2, 1, count_include_pad=False), (1, 2, 6))


def small_net(mx):
    """Return a small convolutional network."""
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(3, 3, activation="relu"), nn.BatchNorm(), nn.MaxPool2D())
        net.add(nn.Flatten(), nn.Dense(4, activation="tanh"), nn.Dropout(0.0), nn.Dense(2))
    return net


case("nn", "small_net", small_net, (2, 2, 6, 6), learns=False)
case("nn", "small_net_train", small_net, (2, 2, 6, 6), train=True)

# -- losses -----------------------------------------------------------------------------------

WEIGHTS = [[0.5], [2.0], [1.5]]
SIGNS = [[1, -1], [-1, -1], [1, 1]]
BITS = [[1, 0], [0, 0], [1, 1]]
for name in ("L1Loss", "L2Loss", "HuberLoss"):
    case("loss", name, loss(name), (3, 2), (3, 2), draws_graph=False)
    case("loss", name + "_reshaped", loss(name), (3, 2), (3, 2, 1), draws_graph=False)
    make = loss(name, weight=0.3, batch_axis=1)
    case("loss", name + "_weighted", make, (3, 2), (3, 2), WEIGHTS, draws_graph=False)
case("loss", "HuberLoss_rho", loss("HuberLoss", rho=0.5), (3, 2), (3, 2), draws_graph=False)
for name, label in (
    ("HingeLoss", SIGNS),
    ("SquaredHingeLoss", SIGNS),
    ("LogisticLoss", SIGNS),
    ("SigmoidBCELoss", BITS),
):
    case("loss", name, loss(name), (3, 2), label, draws_graph=False)
    make = loss(name, weight=2, batch_axis=1)
    case("loss", name + "_weighted", make, (3, 2), label, WEIGHTS, draws_graph=False)
case("loss", "HingeLoss_margin", loss("HingeLoss", margin=2), (3, 2), SIGNS, draws_graph=False)
make = loss("LogisticLoss", label_format="binary")
case("loss", "LogisticLoss_binary", make, (3, 2), BITS, draws_graph=False)
make = loss("SigmoidBCELoss")
case("loss", "SigmoidBCELoss_positive", make, (3, 2), BITS, WEIGHTS, [[2, 0.5]], draws_graph=False)
PROBABLE = [[0.2, 0.9], [0.5, 0.4], [0.7, 0.1]]
make = loss("SigmoidBCELoss", from_sigmoid=True)
case("loss", "SigmoidBCELoss_sigmoid", make, PROBABLE, BITS, draws_graph=False)
case(
    "loss",
    "SigmoidBCELoss_sigmoid_positive",
    make,
    PROBABLE,
    BITS,
    WEIGHTS,
    [[2, 0.5]],
    draws_graph=False,
)
case("loss", "SoftmaxCELoss", loss("SoftmaxCELoss"), (3, 4), [0, 3, 1], draws_graph=False)
make = loss("SoftmaxCELoss", weight=0.5)
case("loss", "SoftmaxCELoss_weighted", make, (3, 4), [0, 3, 1], WEIGHTS, draws_graph=False)
make = loss("SoftmaxCELoss", sparse_label=False)
case("loss", "SoftmaxCELoss_dense", make, (2, 4), (2, 4), draws_graph=False)
make = loss("SoftmaxCELoss", axis=1)
case("loss", "SoftmaxCELoss_axis", make, (2, 3, 2), [[0, 2], [1, 1]], draws_graph=False)
make = loss("SoftmaxCELoss", from_logits=True)
case("loss", "SoftmaxCELoss_logits", make, (3, 4), [0, 3, 1], draws_graph=False)
SHARES = [[0.2, 0.5, 0.3], [0.1, 0.8, 0.1]]
case("loss", "KLDivLoss", loss("KLDivLoss"), (2, 3), SHARES, draws_graph=False)
make = loss("KLDivLoss", from_logits=False, weight=2)
case("loss", "KLDivLoss_scores", make, (2, 3), SHARES, [[0.5], [2]], draws_graph=False)
make = loss("KLDivLoss", from_logits=False, axis=0)
case("loss", "KLDivLoss_axis", make, (2, 3), SHARES, draws_graph=False)
options = {"draws_graph": False, "input_grads": 1}
case("loss", "CTCLoss", loss("CTCLoss"), (2, 6, 4), [[1, 2, -1], [0, 1, 1]], **options)
make = loss("CTCLoss", layout="TNC", label_layout="TN", weight=2)
LABELS, LENGTHS = [[1, 0], [2, 1], [0, 1]], ([6, 5], [2, 3])
case("loss", "CTCLoss_lengths", make, (6, 2, 4), LABELS, *LENGTHS, **options)
case("loss", "TripletLoss", loss("TripletLoss"), (3, 2), (3, 2), (3, 2), draws_graph=False)
make = loss("TripletLoss", margin=0.1, weight=3)
case("loss", "TripletLoss_margin", make, (3, 2), (3, 2), (3, 2), draws_graph=False)
COUNTS = [[2, 5], [3, 4]]
RATES = [[0.5, 2], [3, 1]]
case("loss", "PoissonNLLLoss", loss("PoissonNLLLoss"), (2, 2), COUNTS, draws_graph=False)
make = loss("PoissonNLLLoss", from_logits=False, weight=0.5)
case("loss", "PoissonNLLLoss_rates", make, RATES, COUNTS, [[1], [2]], draws_graph=False)
make = loss("PoissonNLLLoss", compute_full=True)
case("loss", "PoissonNLLLoss_full", make, (2, 2), [[1, 2], [3, 4]], learns=False, draws_graph=False)
make = loss("CosineEmbeddingLoss")
case("loss", "CosineEmbeddingLoss", make, (3, 4), (3, 4), [1, -1, -1], draws_graph=False)
make = loss("CosineEmbeddingLoss", margin=0.2, weight=2)
case(
    "loss",
    "CosineEmbeddingLoss_margin",
    make,
    (3, 4),
    (3, 4),
    [1, -1, -1],
    WEIGHTS,
    draws_graph=False,
)
case("loss", "SDMLLoss", loss("SDMLLoss"), (4, 3), (4, 3), draws_graph=False)
make = loss("SDMLLoss", smoothing_parameter=0.1)
case("loss", "SDMLLoss_sharp", make, (4, 3), (4, 3), draws_graph=False)

# -- recurrent layers -------------------------------------------------------------------------


def with_states(mx, layer, x, *states):
    """Call a layer with states."""
    return layer(x, list(states))


for name in ("RNN", "LSTM", "GRU"):
    states = ((1, 2, 3),) * (2 if name == "LSTM" else 1)
    case("rnn", name, rnn(name, 3), (4, 2, 5))
    case("rnn", name + "_states", rnn(name, 3), (4, 2, 5), *states, run=with_states)
    case("rnn", name + "_batch_first", rnn(name, 3, layout="NTC", input_size=5), (2, 4, 5))
    case("rnn", name + "_deep", rnn(name, 3, 2, bidirectional=True), (4, 2, 5))
case("rnn", "RNN_tanh", rnn("RNN", 3, activation="tanh"), (4, 2, 5))
case("rnn", "LSTM_projected", rnn("LSTM", 4, 2, projection_size=2), (4, 2, 5), learns=False)


def unrolled(steps, states=0, **options):
    """Return what unrolls a cell over a sequence, with or without states to begin with."""

    def run(mx, cell, x, *rest):
        given = dict(options)
        if states:
            given["begin_state"] = list(rest[:states])
        if len(rest) > states:
            given["valid_length"] = rest[states]
        return cell.unroll(steps, x, **given)

    return run


def stepped(mx, cell, x, *states):
    """Take two steps."""
    cell.reset()
    output, states = cell(x, list(states))
    return cell(x, states), output


for name in ("RNNCell", "LSTMCell", "GRUCell"):
    states = ((2, 3),) * (2 if name == "LSTMCell" else 1)
    make = rnn(name, 3)
    case("rnn", name + "_step", make, (2, 4), *states, run=stepped)
    case("rnn", name + "_unroll", make, (2, 3, 4), run=unrolled(3, merge_outputs=True))
    run = unrolled(3, len(states), layout="TNC", merge_outputs=False)
    case("rnn", name + "_unroll_list", make, (3, 2, 4), *states, run=run)
    run = unrolled(3, merge_outputs=True)
    case("rnn", name + "_valid", make, (2, 3, 4), [1, 3], run=run, input_grads=1)
case("rnn", "RNNCell_relu", rnn("RNNCell", 3, activation="relu"), (2, 4), (2, 3), run=stepped)
make = rnn("LSTMCell", 3, activation="relu", recurrent_activation="softsign")
case("rnn", "LSTMCell_bent", make, (2, 4), (2, 3), (2, 3), run=stepped)


def stack(hybrid):
    """Return what makes a stack of cells."""

    def make(mx):
        rnn = mx.gluon.rnn
        cells = rnn.HybridSequentialRNNCell() if hybrid else rnn.SequentialRNNCell()
        cells.add(rnn.LSTMCell(3))
        cells.add(rnn.DropoutCell(0.5))
        cells.add(rnn.ResidualCell(rnn.GRUCell(3)))
        cells.add(rnn.ZoneoutCell(rnn.RNNCell(2), 0.3, 0.2))
        return cells

    return make


STATES = ((2, 3), (2, 3), (2, 3), (2, 2))
for hybrid in (True, False):
    name = "hybrid_stack" if hybrid else "stack"
    case("rnn", name, stack(hybrid), (2, 4), *STATES, run=stepped)
    run = unrolled(3, merge_outputs=True)
    case("rnn", name + "_unroll", stack(hybrid), (2, 3, 4), run=run)
    case("rnn", name + "_valid", stack(hybrid), (2, 3, 4), [3, 2], run=run, input_grads=1)


def both_ways(mx):
    """Return a bidirectional cell."""
    rnn = mx.gluon.rnn
    return rnn.BidirectionalCell(rnn.LSTMCell(3), rnn.GRUCell(2))


for merge in (True, False, None):
    run = unrolled(3, layout="TNC", merge_outputs=merge)
    case("rnn", f"both_ways_{merge}", both_ways, (3, 2, 4), run=run)
    case("rnn", f"both_ways_valid_{merge}", both_ways, (3, 2, 4), [3, 1], run=run, input_grads=1)
make = rnn("DropoutCell", 0.5)
case("rnn", "dropout_unroll", make, (2, 3, 4), run=unrolled(3, merge_outputs=True))


def residual(mx):
    """Return a residual cell."""
    return mx.gluon.rnn.ResidualCell(mx.gluon.rnn.RNNCell(4))


for merge in (True, False):
    run = unrolled(3, merge_outputs=merge)
    case("rnn", f"residual_{merge}", residual, (2, 3, 4), run=run)
    name = f"residual_valid_{merge}"  # MXNet cannot draw it unmerged
    options = {"run": run, "draws_graph": merge, "input_grads": 1}
    case("rnn", name, residual, (2, 3, 4), [3, 1], **options)

# -- contrib ----------------------------------------------------------------------------------


def side_by_side(hybrid):
    """Return what makes layers that read the same input."""

    def make(mx):
        nn, more = mx.gluon.nn, mx.gluon.contrib.nn
        net = (more.HybridConcurrent if hybrid else more.Concurrent)(axis=1, prefix="net_")
        with net.name_scope():
            net.add(nn.Dense(2), more.Identity(), nn.Dense(3, activation="relu"))
        return net

    return make


case("contrib", "concurrent", side_by_side(False), (2, 4), draws_graph=False)
case("contrib", "hybrid_concurrent", side_by_side(True), (2, 4))
case("contrib", "shuffle_1d", contrib("nn", "PixelShuffle1D", 2), (1, 4, 3))
case("contrib", "shuffle_2d", contrib("nn", "PixelShuffle2D", (2, 3)), (1, 12, 2, 2))
make = contrib("nn", "PixelShuffle3D", (2, 1, 2))
case("contrib", "shuffle_3d", make, (1, 4, 2, 2, 1), draws_graph=False)
case("contrib", "sync_norm", contrib("nn", "SyncBatchNorm"), (4, 3, 2, 2))
case("contrib", "sync_norm_train", contrib("nn", "SyncBatchNorm"), (4, 3, 2, 2), train=True)
make = contrib("cnn", "DeformableConvolution", 4, (3, 3), padding=(1, 1), in_channels=2)
case("contrib", "deformable", make, (1, 2, 5, 5))
make = contrib("cnn", "DeformableConvolution", 4, (2, 2), use_bias=False, activation="relu")
case("contrib", "deformable_relu", make, (1, 2, 5, 5))
make = contrib("rnn", "LSTMPCell", 4, 2)
case("contrib", "projected_step", make, (2, 3), (2, 2), (2, 4), run=stepped)
run = unrolled(3, merge_outputs=True)
case("contrib", "projected_valid", make, (2, 3, 3), [1, 3], run=run, input_grads=1)
for name, layout in (("RNN", "NCW"), ("LSTM", "NCW"), ("GRU", "NCW")):
    make = contrib("rnn", f"Conv1D{name}Cell", (2, 6), 3, 3, 3, i2h_pad=1, conv_layout=layout)
    states = ((1, 3, 6),) * (2 if name == "LSTM" else 1)
    case("contrib", f"conv1d_{name}", make, (1, 2, 6), *states, run=stepped)
    make = contrib("rnn", f"Conv2D{name}Cell", (2, 5, 4), 2, (3, 2), (3, 1), activation="relu")
    states = ((1, 2, 3, 3),) * (2 if name == "LSTM" else 1)
    case("contrib", f"conv2d_{name}", make, (1, 2, 5, 4), *states, run=stepped)
make = contrib("rnn", "Conv3DGRUCell", (2, 3, 3, 3), 2, 3, 3, h2h_dilate=1, i2h_pad=1)
run = unrolled(2, layout="NTC", merge_outputs=False)
case("contrib", "conv3d_gru", make, (1, 2, 2, 3, 3, 3), run=run)


def variational(mx):
    """Return an LSTM with variational dropout."""
    cell = mx.gluon.rnn.LSTMCell(3)
    return mx.gluon.contrib.rnn.VariationalDropoutCell(cell, 0.3, 0.3, 0.3)


case("contrib", "variational", variational, (2, 3, 4), run=unrolled(3, merge_outputs=True))


def looped(**options):
    """Return what runs a cell as a loop of the graph."""

    def run(mx, cell, x, *rest):
        more = {"valid_length": rest[2]} if len(rest) > 2 else {}
        unroll = mx.gluon.contrib.rnn.rnn_cell.dynamic_unroll
        return unroll(cell, x, list(rest[:2]), **options, **more)

    return run


START = ((2, 3), (2, 3))
make = rnn("LSTMCell", 3)
case("contrib", "loop", make, (4, 2, 5), *START, run=looped(), draws_graph=False)
run = looped(layout="NTC")
options = {"run": run, "draws_graph": False, "input_grads": 3}
case("contrib", "loop_valid", make, (2, 4, 5), *START, [1, 3], **options)
