"""Programs that make symbols: run by real MXNet when recording, by MXNext when comparing.

Each takes `mx` and returns the symbol, the shapes and the data types that are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[Any], tuple]] = {}


def answer(mx: Any, name: str) -> dict[str, Any]:
    """Return everything that is compared of one program."""
    with mx.name.NameManager():
        symbol, shapes, types = PROGRAMS[name](mx)
    return {
        "tojson": symbol.tojson(),
        "arguments": symbol.list_arguments(),
        "outputs": symbol.list_outputs(),
        "auxiliary": symbol.list_auxiliary_states(),
        "inputs": symbol.list_inputs(),
        "internals": symbol.get_internals().list_outputs(),
        "attributes": symbol.attr_dict(),
        "debug": symbol.debug_str(),
        "repr": repr(symbol),
        "name": symbol.name,
        "shapes": _plain(symbol.infer_shape(**shapes)),
        "partial_shapes": _plain(symbol.infer_shape_partial(**shapes)),
        "types": _plain(symbol.infer_type(**types)),
        "partial_types": _plain(symbol.infer_type_partial(**types)),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value.__name__ if isinstance(value, type) else value


def program(function: Callable[[Any], tuple]) -> Callable[[Any], tuple]:
    """Remember a program under its name."""
    PROGRAMS[function.__name__] = function
    return function


@program
def automatic_names(mx):
    s = mx.sym
    x = s.Variable("data")
    x = s.Activation(s.FullyConnected(x, num_hidden=8), act_type="relu")
    x = s.FullyConnected(s.relu(x) + s.sigmoid(x), num_hidden=4)
    return s.SoftmaxOutput(x, name="softmax"), {"data": (2, 6)}, {"data": "float32"}


@program
def prefixes(mx):
    s = mx.sym
    x = s.Variable("data")
    with mx.name.Prefix("outer_"):
        x = s.FullyConnected(x, num_hidden=3, name="fc")
        with mx.name.Prefix("inner_"):
            x = s.relu(s.relu(x))
        x = s.FullyConnected(s.tanh(x), num_hidden=2)
    return s.tanh(x), {"data": (2, 6)}, {"data": "float64"}


@program
def attribute_scopes(mx):
    s = mx.sym
    with mx.AttrScope(ctx_group="dev1", lr_mult="3"):
        x = s.FullyConnected(
            s.Variable("q"), num_hidden=3, name="fa", attr={"wd_mult": "2", "__foo__": "bar"}
        )
        with mx.AttrScope(__mood__="fine", ctx_group="dev2"):
            x = s.BatchNorm(x, name="bn")
    return s.relu(x, attr={"__x__": "1"}), {"q": (2, 5)}, {"q": "float32"}


@program
def several_outputs(mx):
    s = mx.sym
    x = s.Variable("x")
    parts = s.SliceChannel(x, num_outputs=3, axis=1, name="parts")
    normed = s.BatchNorm(parts[1], output_mean_var=True, name="bn")
    return (
        s.Group([parts[2], normed, parts[0] * 2]),
        {"x": (4, 6)},
        {"x": "float32"},
    )


@program
def auxiliary_states(mx):
    s = mx.sym
    shared = s.Variable("shared_mean")
    x = s.BatchNorm(s.Variable("x"), moving_mean=shared, name="b1", fix_gamma=False, eps=1e-5)
    x = s.BatchNorm(x, moving_mean=shared, name="b2", use_global_stats=True)
    return x + s.BatchNorm(x), {"x": (2, 3, 4, 4)}, {"x": "float16"}


@program
def internals(mx):
    s = mx.sym
    x = s.FullyConnected(s.Variable("x"), num_hidden=3, name="fc")
    x = s.SoftmaxOutput(s.Activation(x, act_type="tanh", name="act"), name="softmax")
    return x.get_internals(), {"x": (2, 5)}, {"x": "float32"}


@program
def part_by_name(mx):
    s = mx.sym
    x = s.FullyConnected(s.Variable("x"), num_hidden=3, name="fc")
    x = s.SoftmaxOutput(s.Activation(x, act_type="tanh", name="act"), name="softmax")
    return s.relu(x.get_internals()["fc_output"], name="r"), {"x": (2, 5)}, {"x": "float32"}


@program
def children(mx):
    s = mx.sym
    a, b = s.Variable("a"), s.Variable("b")
    x = s.FullyConnected(a + b, num_hidden=3, name="fc")
    return s.Group([x, a * b]).get_children(), {"a": (2, 5), "b": (2, 5)}, {}


@program
def composition(mx):
    s = mx.sym
    first = s.FullyConnected(s.Variable("data"), num_hidden=4, name="first")
    head = s.FullyConnected(s.Variable("features"), num_hidden=2, name="head")
    head = s.Group([s.relu(head), head * 2])
    made = head(features=s.sigmoid(first), head_bias=s.Variable("given"))
    return made, {"data": (3, 5)}, {"data": "float32"}


@program
def renamed_composition(mx):
    s = mx.sym
    head = s.FullyConnected(s.Variable("x"), num_hidden=2, name="head")
    return head(x=s.relu(s.Variable("data")), name="again"), {"data": (3, 5)}, {}


@program
def signs_and_numbers(mx):
    s = mx.sym
    a, b = s.Variable("a"), s.Variable("b")
    x = (a + b) - (a * b) / (a - b)
    x = 2 + x - 1 + (1 - x) * 3 - 3 * x + x / 2 - 2 / x
    x = (x**2) + (2**x) + (x**a) - -x + x % 3 + 7 % x + x % b
    y = (a == b) + (a != b) + (a > b) + (a >= b) + (a < b) + (a <= b)
    z = (a == 1) + (a != 1.5) + (a > 1) + (a >= 1) + (a < 1) + (1 >= a)  # noqa: SIM300
    return s.Group([x, y, z, abs(a)]), {"a": (2, 3)}, {"b": "float64"}


@program
def numbers_and_functions(mx):
    s = mx.sym
    a, b = s.Variable("a"), s.Variable("b")
    made = [s.maximum(a, b), s.maximum(a, 2), s.maximum(2, a), s.minimum(a, b), s.minimum(1.5, a)]
    made += [s.pow(a, b), s.pow(a, 2), s.pow(2, a), s.hypot(a, b), s.hypot(a, 3)]
    return s.add_n(*made), {"b": (2, 3)}, {"a": "float32"}


@program
def variadic(mx):
    s = mx.sym
    many = [s.Variable(f"v{i}") for i in range(12)]
    x = s.Concat(*many, dim=0, name="wide")
    y = s.Concat(many[0], num_args=2, dim=0, name="half")
    z = s.add_n(many[0], many[1], many[0])
    t = s.stack(many[2], many[3], axis=1)
    shapes = {f"v{i}": (2, 3) for i in range(12)}
    return s.Group([x, y, z, t, s.concat(x, y, dim=0)]), {**shapes, "half_arg1": (4, 3)}, {}


@program
def unrolled_recurrence(mx):
    s = mx.sym
    inputs = s.SliceChannel(s.Variable("data"), num_outputs=3, axis=1, squeeze_axis=True)
    weights = {
        n: s.Variable(f"rnn_{n}") for n in ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")
    }
    state = s.zeros((0, 4), name="begin")
    outputs = []
    for t in range(3):
        i2h = s.FullyConnected(
            inputs[t],
            weight=weights["i2h_weight"],
            bias=weights["i2h_bias"],
            num_hidden=4,
            name=f"t{t}_i2h",
        )
        h2h = s.FullyConnected(
            state,
            weight=weights["h2h_weight"],
            bias=weights["h2h_bias"],
            num_hidden=4,
            name=f"t{t}_h2h",
        )
        state = s.Activation(i2h + h2h, act_type="tanh", name=f"t{t}_out")
        outputs.append(s.expand_dims(state, axis=1))
    return s.Concat(*outputs, dim=1), {"data": (2, 3, 5)}, {"data": "float32"}


@program
def long_short_term_memory(mx):
    s = mx.sym
    gates = s.FullyConnected(s.Variable("x"), num_hidden=16, name="i2h") + s.FullyConnected(
        s.Variable("h"), num_hidden=16, name="h2h"
    )
    parts = s.SliceChannel(gates, num_outputs=4, name="gates")
    c = s.sigmoid(parts[1]) * s.Variable("c") + s.sigmoid(parts[0]) * s.tanh(parts[2])
    h = s.sigmoid(parts[3]) * s.tanh(c, name="c_tanh")
    return s.Group([h, c]), {"x": (2, 3), "h": (2, 4)}, {"x": "float32"}


@program
def convolutional_network(mx):
    s = mx.sym
    x = s.Variable("data")
    x = s.Convolution(x, kernel=(3, 3), num_filter=8, pad=(1, 1), stride=(2, 2), name="c1")
    x = s.LeakyReLU(s.BatchNorm(x, name="b1"), act_type="prelu", name="p1")
    x = s.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
    x = s.Convolution(x, kernel=(3, 3), num_filter=8, num_group=4, no_bias=True)
    x = s.Deconvolution(x, kernel=(2, 2), stride=(2, 2), num_filter=4)
    x = s.LRN(s.InstanceNorm(x, name="in"), nsize=3)
    x = s.Dropout(s.L2Normalization(x), p=0.3)
    x = s.Pooling(x, kernel=(1, 1), global_pool=True, pool_type="avg")
    x = s.FullyConnected(s.Flatten(x), num_hidden=10, name="fc")
    return s.SoftmaxOutput(x, name="softmax"), {"data": (2, 3, 20, 20)}, {"data": "float32"}


@program
def unknown_batch(mx):
    s = mx.sym
    x = s.FullyConnected(s.Variable("data"), num_hidden=4, name="fc")
    x = s.SoftmaxOutput(s.BatchNorm(x, name="bn"), name="softmax")
    return x, {"data": (0, 5)}, {}


@program
def known_from_behind(mx):
    s = mx.sym
    x = s.relu(s.tanh(s.Variable("x") * 2) + 1)
    return x + s.Variable("y", shape=(3, 4), dtype="float16"), {}, {}


@program
def created_values(mx):
    s = mx.sym
    made = [s.zeros((2, 3)), s.ones((2,), dtype="int32"), s.full((2, 1), 7), s.arange(1, 7, 2)]
    made += [s.eye(3), s.linspace(0, 1, 5, name="lin"), s.zeros((0, 2), name="open")]
    made += [s.random.normal(0, 1, shape=(2, 2)), s.random.uniform(shape=(3,), name="u")]
    return s.Group(made), {}, {}


@program
def attributes_of_variables(mx):
    s = mx.sym
    x = s.Variable("x", shape=(2, 3), lr_mult=2.0, wd_mult=0, dtype="float16", init='["zero", {}]')
    w = s.Variable("w", stype="default", attr={"mood": "calm"}, __layout__="NC")
    return s.FullyConnected(x, weight=w, num_hidden=4, no_bias=True, name="fc"), {}, {}


@program
def sequences(mx):
    s = mx.sym
    x = s.Embedding(s.Variable("words"), input_dim=20, output_dim=6, name="embed")
    x = s.LayerNorm(x, name="ln")
    x = s.RNN(
        s.transpose(x, axes=(1, 0, 2)),
        state_size=5,
        num_layers=2,
        mode="lstm",
        bidirectional=True,
        state_outputs=True,
        name="lstm",
    )
    y = s.SequenceMask(x[0], use_sequence_length=True, name="mask")
    types = {"words": "int32", "mask_sequence_length": "float32"}
    return s.Group([y, x[1], x[2]]), {"words": (4, 7)}, types


@program
def methods(mx):
    s = mx.sym
    x = s.Variable("x")
    y = x.reshape((0, -1)).transpose().sum(axis=1, keepdims=True).expand_dims(0).squeeze()
    z = x.astype("float64").mean(axis=(0, 2)).clip(0, 1)
    p = x.slice_axis(axis=1, begin=0, end=2).flatten().softmax(axis=-1).argmax(axis=1)
    return s.Group([y, z, p, x.tile((2, 1, 1)).norm()]), {"x": (2, 3, 4)}, {"x": "float32"}


@program
def one_name_twice(mx):
    s = mx.sym
    x = s.Variable("a") + s.Variable("a")
    return x * s.Variable("a"), {"a": (2, 3)}, {"a": "float32"}


@program
def awkward_names(mx):
    s = mx.sym
    x = s.Variable('we"ird\n\t\\é/', attr={"__a__": 'q"\r\n'})
    return s.relu(x, name="sl/ash"), {}, {}


@program
def order_of_nodes(mx):
    s = mx.sym
    a, b = s.Variable("a"), s.Variable("b")
    x = s.FullyConnected(a, num_hidden=2, name="x")
    y = b + x
    return s.Group([y, x * y, b]), {"a": (3, 4)}, {"a": "float32"}


@program
def losses(mx):
    s = mx.sym
    x = s.FullyConnected(s.Variable("x"), num_hidden=3, name="fc")
    made = [s.LinearRegressionOutput(x, name="lin"), s.LogisticRegressionOutput(x, name="log")]
    made += [s.MAERegressionOutput(x, name="mae"), s.MakeLoss(s.square(x)), s.BlockGrad(x)]
    made += [s.softmax(x), s.log_softmax(x), s.stop_gradient(x), s.make_loss(x, name="ml")]
    return s.Group(made), {"x": (4, 5)}, {"x": "float32"}


@program
def loop_over_data(mx):
    s = mx.sym
    outer = s.relu(s.Variable("a"), name="outer")

    def body(x, states):
        h = s.FullyConnected(x, num_hidden=2, name="fc") + states[0] * outer
        return [h, x], [h, states[1]]

    states = [s.Variable("s0"), s.Variable("s1")]
    outs, last = s.contrib.foreach(body, s.Variable("data"), states)
    return s.Group([*outs, *last]), {"data": (3, 4, 5), "s1": (4, 2)}, {"data": "float32"}


@program
def loop_while(mx):
    s = mx.sym
    limit = s.Variable("limit")
    outs, last = s.contrib.while_loop(
        lambda i, x: i < limit,
        lambda i, x: ([x * 2], [i + 1, x + limit]),
        [s.Variable("i"), s.Variable("x")],
        max_iterations=4,
    )
    types = dict.fromkeys(("i", "x", "limit"), "float32")
    return s.Group([*outs, *last]), {"i": (1,), "x": (1,), "limit": (1,)}, types


@program
def branch(mx):
    s = mx.sym
    a, b = s.Variable("a"), s.Variable("b")
    parts = s.contrib.cond(a.sum() < b.sum(), lambda: [a + b, a], lambda: [a - b, b * 2])
    types = dict.fromkeys(("a", "b"), "float32")
    return s.Group(parts), {"a": (2,), "b": (2,)}, types
