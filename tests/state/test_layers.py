"""Memory sharing of layers, trainers, stores, modules, metrics, iterators and NumPy arrays.

Arrays keep their memory, passed and returned arrays are copies unless documented as views, and
results do not change if a program overwrites arrays after use.
"""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn, rnn
from tests.state.memory import check_apart, check_same, check_unrelated, named, spoil, values


def draw(seed, *shape):
    return nd.array(np.random.RandomState(seed).uniform(-1, 1, shape).astype("float32"))


def chain(*layers):
    net = nn.HybridSequential()
    net.add(*layers)
    return net


# Layers, and the shape of their input.
LAYERS = {
    "dense": (lambda: nn.Dense(4, in_units=3), (2, 3)),
    "dense with relu": (lambda: nn.Dense(4, activation="relu", in_units=3), (2, 3)),
    "wide dense": (lambda: nn.Dense(512, in_units=512, use_bias=False), (2, 512)),
    "not flattened": (lambda: nn.Dense(4, flatten=False, in_units=3), (2, 5, 3)),
    "conv": (lambda: nn.Conv2D(4, 3, in_channels=2), (2, 2, 6, 6)),
    "grouped conv": (lambda: nn.Conv2D(4, 3, groups=2, in_channels=2), (2, 2, 6, 6)),
    "conv of sequences": (lambda: nn.Conv1D(4, 3, in_channels=2), (2, 2, 6)),
    "transposed conv": (lambda: nn.Conv2DTranspose(3, 2, in_channels=2), (2, 2, 4, 4)),
    "batch norm": (lambda: nn.BatchNorm(in_channels=3), (4, 3)),
    "frozen norm": (lambda: nn.BatchNorm(in_channels=3, use_global_stats=True), (4, 3)),
    "layer norm": (lambda: nn.LayerNorm(in_channels=3), (4, 3)),
    "group norm": (lambda: nn.GroupNorm(num_groups=2), (2, 4, 3)),
    "instance norm": (lambda: nn.InstanceNorm(in_channels=3), (2, 3, 4)),
    "no dropout": (lambda: nn.Dropout(0), (2, 3)),
    "dropout": (lambda: nn.Dropout(0.5), (8, 8)),
    "embedding": (lambda: nn.Embedding(5, 3), (2, 4)),
    "prelu": (lambda: nn.PReLU(in_channels=3), (2, 3)),
    "activation": (lambda: nn.Activation("tanh"), (2, 3)),
    "leaky": (lambda: nn.LeakyReLU(0.1), (2, 3)),
    "flatten": (lambda: nn.Flatten(), (2, 3, 2)),
    "max pool": (lambda: nn.MaxPool2D(), (2, 2, 4, 4)),
    "mean pool": (lambda: nn.GlobalAvgPool2D(), (2, 2, 4, 4)),
    "lambda": (lambda: nn.HybridLambda(lambda F, x: F.reshape(x, shape=(-1,))), (2, 3)),
    "lstm layer": (lambda: rnn.LSTM(3, input_size=2), (4, 2, 2)),
    "gru layer": (lambda: rnn.GRU(3, 2, bidirectional=True, input_size=2), (4, 2, 2)),
    "rnn layer": (lambda: rnn.RNN(3, input_size=2), (4, 2, 2)),
    "chain": (
        lambda: chain(nn.Dense(4, in_units=3), nn.Dropout(0), nn.Dense(2, in_units=4)),
        (2, 3),
    ),
    "conv, norm, relu": (
        lambda: chain(
            nn.Conv2D(4, 3, in_channels=2, use_bias=False),
            nn.BatchNorm(in_channels=4),
            nn.Activation("relu"),
            nn.Flatten(),
            nn.Dense(3, in_units=64),
        ),
        (2, 2, 6, 6),
    ),
    "concurrent": (
        lambda: gluon.contrib.nn.HybridConcurrent(axis=1),
        (2, 3),
    ),
}
CELLS = {"rnn": rnn.RNNCell, "lstm": rnn.LSTMCell, "gru": rnn.GRUCell}
FLAGS = {"eager": None, "hybridized": {}, "static": {"static_alloc": True, "static_shape": True}}
each_flag = pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)


def prepare(make, flags):
    net = make()
    if isinstance(net, gluon.contrib.nn.HybridConcurrent):
        net.add(nn.Dense(2, in_units=3), nn.Dense(3, in_units=3))
    net.initialize(mx.init.Zero())
    if isinstance(net, nn.GroupNorm):
        net(nd.zeros((2, 4, 3)))  # the sizes of its parameters follow
    for i, p in enumerate(net.collect_params().values()):
        p.set_data(draw(i, *p.shape) * 0.5 + (1 if p.name.endswith(("gamma", "var")) else 0))
    if flags is not None:
        net.hybridize(**flags)
    return net


def step(net, inputs):
    """Run forward and backward; return outputs, head gradients and all numbers."""
    mx.random.seed(3)
    with autograd.record():
        outs = net(*inputs)
    outs = list(outs) if isinstance(outs, list | tuple) else [outs]
    outs = [o for out in outs for o in (out if isinstance(out, list | tuple) else [out])]
    heads = [draw(40 + i, *o.shape) for i, o in enumerate(outs)]
    found = values(outs)
    autograd.backward(outs, heads)
    return outs, heads, found


def check_steps(net, inputs, outputs_apart=True):
    """Train without changing parameters: each step must give the results of the first."""
    params = list(net.collect_params().values())
    trained = [p for p in params if p.grad_req != "null"]
    for x in () if isinstance(net, nn.Embedding) else inputs:
        x.attach_grad()
    data, gradients = [p.data() for p in params], [p.grad() for p in trained]
    gradients += [x.grad for x in inputs if x.grad is not None]
    numbers, fed = values(data), values(inputs)
    views = [a.reshape((-1,)) for a in (*data, *gradients)]
    first = None
    for turn in range(3):
        for array, number in zip((*data, *inputs), (*numbers, *fed), strict=True):
            array[:] = nd.array(number)
        outs, heads, found = step(net, inputs)
        found += values(gradients)
        first = first or found
        check_same(found, first, f"turn {turn}")
        for i, p in enumerate(params):
            assert p.data() is data[i] or np.array_equal(p.data().asnumpy(), data[i].asnumpy())
        owned = [a.asnumpy().reshape(-1) for a in (*data, *gradients)]
        check_same(values(views), owned, "views of parameters and gradients")
        if outputs_apart:
            check_apart(named(parameters=data, inputs=inputs, outputs=outs, gradients=gradients))
        check_apart(named(gradients=gradients, heads=heads))
        spoil([*outs, *heads, *gradients, *inputs])
    check_unrelated(*(a.shape for a in outs))
    for view, p in zip(views, params, strict=False):
        view[:] = 0.125
        assert (p.data().asnumpy() == 0.125).all()


@each_flag
@pytest.mark.parametrize(("make", "shape"), LAYERS.values(), ids=LAYERS)
def test_training_steps_of_layers_do_not_share_memory(make, shape, flags):
    net = prepare(make, flags)
    x = draw(9, *shape)
    if isinstance(net, nn.Embedding):
        x = nd.array(np.random.RandomState(1).randint(0, 5, shape).astype("float32"))
    check_steps(net, [x])


@each_flag
@pytest.mark.parametrize("kind", CELLS)
def test_training_steps_of_cells_do_not_share_memory(kind, flags):
    net = prepare(lambda: CELLS[kind](3, input_size=2), flags)
    states = [draw(20 + i, 2, 3) for i in range(2 if kind == "lstm" else 1)]

    class Unpacked:
        collect_params = net.collect_params

        def __call__(self, x, *states):
            return net(x, list(states))

    # Without hybridize, the output of a cell is its first state, as in MXNet.
    check_steps(Unpacked(), [draw(9, 2, 2), *states], outputs_apart=flags is not None)


@each_flag
@pytest.mark.parametrize(("make", "shape"), LAYERS.values(), ids=LAYERS)
def test_predictions_of_layers_do_not_share_memory(make, shape, flags):
    net, numbers = prepare(make, flags), draw(9, *shape).asnumpy()
    if isinstance(net, nn.Embedding):
        numbers = np.abs(numbers * 4).round()
    params = [p.data() for p in net.collect_params().values()]
    before, first = values(params), None
    for _ in range(3):
        x = nd.array(numbers)
        out = net(x)
        found = out.asnumpy()
        first = found if first is None else first
        np.testing.assert_allclose(found, first, rtol=1e-5, atol=1e-6)
        if not (isinstance(net, nn.Dropout) and flags is None):
            spoil([out])
            np.testing.assert_array_equal(x.asnumpy(), numbers)
        spoil([x, out])
        check_same(values(params), before)


OPTIMIZERS = {
    "sgd": {"momentum": 0.9},
    "nag": {"momentum": 0.9},
    "signum": {"momentum": 0.9},
    "lbsgd": {"momentum": 0.9},
    "lars": {"momentum": 0.9},
    "dcasgd": {"momentum": 0.9},
    **{name: {} for name in ("adam", "adamw", "adamax", "nadam", "adagrad", "adadelta", "ftml")},
    **{name: {} for name in ("ftrl", "rmsprop", "lamb", "groupadagrad", "sgld")},
}


def test_all_optimizers_are_covered():
    registered = mx.optimizer.Optimizer.opt_registry.items()
    # svrg's own two are registered when mx.contrib is imported.
    own = {name for name, kind in registered if kind.__module__.startswith("mxnet.optimizer")}
    assert own - {"test", "ccsgd"} == set(OPTIMIZERS)  # ccsgd is an old name of sgd


def states_of(trainer):
    found = []

    def walk(state):
        if isinstance(state, nd.NDArray):
            found.append(state)
        elif isinstance(state, list | tuple):
            for each in state:
                walk(each)

    for updater in trainer._updaters:
        for state in updater.states.values():
            walk(state)
    return found


@pytest.mark.parametrize("kvstore", [None, "device"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_trainers_update_weights_in_place(name, kvstore):
    finals = []
    for spoils in (False, True):
        has_bias = name != "groupadagrad"  # which takes matrices
        net = prepare(
            lambda b=has_bias: chain(
                nn.Dense(3, in_units=4, use_bias=b), nn.Dense(2, in_units=3, use_bias=b)
            ),
            {},
        )
        options = {"learning_rate": 0.01, **OPTIMIZERS[name]}
        trainer = gluon.Trainer(net.collect_params(), name, options, kvstore=kvstore)
        params = list(net.collect_params().values())
        views = [p.data().reshape((-1,)) for p in params]
        before = values(views)
        for turn in range(3):
            outs, heads, _ = step(net, [draw(turn, 2, 4)])
            trainer.step(2)
            if spoils:
                spoil([*outs, *heads, *(p.grad() for p in params)])
        weights, gradients = [p.data() for p in params], [p.grad() for p in params]
        check_same(values(views), [w.asnumpy().reshape(-1) for w in weights])
        assert all((a != b).any() for a, b in zip(values(views), before, strict=True))
        if kvstore is None:  # a store has the states
            states = states_of(trainer)
            check_apart(named(weights=weights, gradients=gradients, states=states))
        finals.append(values(weights))
    check_same(*finals, "gradients that are written over after a step")


@pytest.mark.parametrize("hybridize", [False, True])
def test_mixed_precision_trainers_update_weights_in_place(hybridize):
    net = nn.Dense(2, in_units=3)
    net.cast("float16")
    net.initialize(mx.init.One())
    if hybridize:
        net.hybridize()
    options = {"learning_rate": 0.5, "multi_precision": True}
    trainer = gluon.Trainer(net.collect_params(), "sgd", options)
    view = net.weight.data().reshape((-1,))
    with autograd.record():
        y = net(nd.ones((1, 3), dtype="float16"))
    y.backward()
    trainer.step(1)
    assert (view.asnumpy() == 0.5).all()


@pytest.mark.parametrize("kind", ["local", "device"])
def test_kvstore_copies_values_on_init_and_pull(kind):
    store, value, out = mx.kv.create(kind), nd.ones((2, 3)), nd.zeros((2, 3))
    view = out.reshape((-1,))
    store.init("w", value)
    value[:] = 7
    store.pull("w", out=out)
    assert (view.asnumpy() == 1).all()
    out[:] = 5
    store.pull("w", out=out)
    assert (view.asnumpy() == 1).all()
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
    gradient = nd.ones((2, 3)) * 2
    store.push("w", gradient)
    gradient[:] = 9
    store.pull("w", out=out)
    assert (view.asnumpy() == -1).all()
    assert (gradient.asnumpy() == 9).all()


@pytest.mark.parametrize("kind", ["local", "device"])
def test_push_does_not_modify_its_arrays(kind):
    store, out = mx.kv.create(kind), nd.zeros((2,))
    store.init(3, nd.zeros((2,)))
    parts = [nd.ones((2,)), nd.ones((2,)) * 2]
    store.push(3, parts)
    assert [p.asnumpy().tolist() for p in parts] == [[1, 1], [2, 2]]
    store.pull(3, out=out)
    assert out.asnumpy().tolist() == [3, 3]
    spoil(parts)
    store.pull(3, out=out)
    assert out.asnumpy().tolist() == [3, 3]


@pytest.mark.parametrize("kind", ["local", "device"])
def test_pushpull_outputs_do_not_share_memory(kind):
    store = mx.kv.create(kind)
    store.init(3, nd.zeros((2,)))
    parts, outs = [nd.ones((2,)), nd.ones((2,)) * 2], [nd.zeros((2,)), nd.zeros((2,))]
    store.pushpull(3, parts, out=outs)
    outs[0][:] = 9
    assert outs[1].asnumpy().tolist() == [3, 3]
    assert [p.asnumpy().tolist() for p in parts] == [[1, 1], [2, 2]]


def make_module(for_training=True):
    x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="f")
    x = mx.sym.FullyConnected(mx.sym.tanh(x), num_hidden=2, name="g")
    module = mx.mod.Module(x, label_names=None)
    module.bind([("data", (2, 4))], for_training=for_training, inputs_need_grad=for_training)
    module.init_params(mx.init.Zero())
    args, _ = module.get_params()
    module.set_params({name: draw(i, *a.shape) for i, (name, a) in enumerate(args.items())}, {})
    module.init_optimizer(optimizer_params={"learning_rate": 0.1})
    return module


def feed(seed, rows=2):
    return mx.io.DataBatch([draw(seed, rows, 4)])


def test_modules_copy_parameters_on_get_and_set():
    module = make_module()
    args, _ = module.get_params()
    before = {name: a.asnumpy() for name, a in args.items()}
    spoil(args.values())
    module.forward(feed(1), is_train=False)
    given = {name: nd.array(value) for name, value in before.items()}
    module.set_params(given, {})
    module.forward(feed(1), is_train=False)
    first = module.get_outputs()[0].asnumpy()
    spoil(given.values())
    module.forward(feed(1), is_train=False)
    np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), first, rtol=1e-6)
    for name, array in module.get_params()[0].items():
        np.testing.assert_array_equal(array.asnumpy(), before[name])


TRAINED = {  # by MXNet 1.9.1
    "f_weight": [
        *(0.09245, 0.4229, 0.19714, 0.08567, -0.17794, 0.23182, -0.13218, 0.7798, 0.92647),
        *(-0.23253, 0.57867, 0.05466),
    ],
    "f_bias": [-0.1529, 0.51134, -1.00469],
    "g_weight": [-0.09628, -0.97272, 0.15828, -0.07603, -0.17577, -0.25459],
    "g_bias": [0.02384, 0.33452],
}


@pytest.mark.parametrize("spoils", ["nothing", "batches", "outputs", "gradients", "heads"])
def test_training_steps_of_modules_do_not_share_memory(spoils):
    module = make_module()
    for turn in range(3):
        batch, head = feed(turn), draw(30 + turn, 2, 2)
        module.forward(batch, is_train=True)
        if spoils == "batches":
            spoil(batch.data)
        module.backward([head])
        gradients = module.get_input_grads()
        arrays = {"outputs": module.get_outputs(), "gradients": gradients, "heads": [head]}
        spoil(arrays.get(spoils, ()))
        module.update()
    found = module.get_params()[0]
    for name, numbers in TRAINED.items():
        np.testing.assert_allclose(found[name].asnumpy().reshape(-1), numbers, atol=1e-5)


def test_outputs_of_modules_keep_their_memory():
    module = make_module()
    module.forward(feed(1), is_train=True)
    output = module.get_outputs()[0]
    view = output.reshape((-1,))
    module.backward([nd.ones((2, 2))])
    gradient = module.get_input_grads()[0]
    flat = gradient.reshape((-1,))
    module.forward(feed(2), is_train=True)
    module.backward([nd.ones((2, 2)) * 2])
    for array, other in ((output, view), (gradient, flat)):
        np.testing.assert_array_equal(array.asnumpy().reshape(-1), other.asnumpy())
    np.testing.assert_array_equal(output.asnumpy(), module.get_outputs()[0].asnumpy())
    np.testing.assert_array_equal(gradient.asnumpy(), module.get_input_grads()[0].asnumpy())


def test_modules_reshaped_to_other_batch_sizes_share_parameters():
    module, plain = make_module(), make_module()
    for turn, rows in enumerate((2, 3, 2, 4)):
        module.forward(feed(turn, rows), is_train=True)
        module.backward([nd.ones((rows, 2))])
        kept = [*module.get_outputs(), *module.get_input_grads()]
        module.update()
        spoil(kept)
    for turn, rows in enumerate((2, 3, 2, 4)):
        plain.reshape([("data", (rows, 4))])
        plain.forward(feed(turn, rows), is_train=True)
        plain.backward([nd.ones((rows, 2))])
        plain.update()
    for name, array in module.get_params()[0].items():
        np.testing.assert_allclose(array.asnumpy(), plain.get_params()[0][name].asnumpy(), 1e-5)


METRICS = {
    "accuracy": ([1, 0, 1], [[0.1, 0.9], [0.8, 0.2], [0.7, 0.3]], 2 / 3),
    "mse": ([[1.0], [2.0], [3.0]], [[1.5], [2.0], [2.0]], 1.25 / 3),
    "mae": ([[1.0], [2.0], [3.0]], [[1.5], [2.0], [2.0]], 0.5),
    "ce": ([0, 1], [[0.5, 0.5], [0.75, 0.25]], 1.0397208),
    "loss": ([0.0], [1.0, 2.0], 1.5),
    "f1": ([1, 0, 1], [[0.1, 0.9], [0.8, 0.2], [0.7, 0.3]], 2 / 3),
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_copy_values_on_update(name):
    label, pred, expected = METRICS[name]
    metric = mx.metric.create(name)
    for _ in range(2):
        labels, preds = [nd.array(label)], [nd.array(pred)]
        metric.update(labels, preds)
        np.testing.assert_allclose(preds[0].asnumpy(), np.array(pred, "float32"))
        spoil([*labels, *preds])
    assert metric.get()[1] == pytest.approx(expected, rel=1e-5)
    assert metric.get()[1] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("source", ["numpy", "array"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_iterators_copy_numpy_data(source, shuffle):
    numbers = np.arange(12, dtype="float32").reshape(6, 2)
    data = numbers if source == "numpy" else nd.array(numbers)
    iterator = mx.io.NDArrayIter(data, batch_size=2, shuffle=shuffle)
    if source == "numpy":
        numbers[:] = -1
    for _ in range(2):
        iterator.reset()
        batches = [batch.data[0].asnumpy() for batch in iterator]
        assert sorted(np.concatenate(batches).reshape(-1).tolist()) == list(range(12))


def test_batches_of_iterators_are_not_overwritten():
    iterator = mx.io.NDArrayIter(nd.arange(6).reshape((6, 1)), nd.arange(6), batch_size=2)
    batches = list(iterator)
    iterator.reset()
    spoil(next(iterator).label)
    found = [batch.data[0].asnumpy().reshape(-1).tolist() for batch in batches]
    assert found == [[0, 1], [2, 3], [4, 5]]


@pytest.fixture
def numpy_mode():
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


NUMPY_VIEWS = {
    "slice": (lambda a: a[0:1], True),
    "row": (lambda a: a[1], True),
    "whole": (lambda a: a[:], True),
    "part of a part": (lambda a: a[1][1:3], True),
    "one row of two": (lambda a: a[::2], True),
    "reshape": (lambda a: a.reshape(-1), False),
    "reshape function": (lambda a: mx.np.reshape(a, (4, 2)), False),
    "expand_dims": (lambda a: mx.np.expand_dims(a, 0), False),
    "column": (lambda a: a[:, 1], False),
    "steps": (lambda a: a[:, ::2], False),
    "backwards": (lambda a: a[::-1], False),
    "a row backwards": (lambda a: a[0:1][::-1], True),
    "mask": (lambda a: a[a > 0], False),
    "list": (lambda a: a[[0, 1]], False),
    "transpose": (lambda a: a.T, False),
    "flatten": (lambda a: a.flatten(), False),
    "squeeze": (lambda a: mx.np.squeeze(a), False),
    "copy": (lambda a: a.copy(), False),
    "array": (lambda a: mx.np.array(a), False),
    "detach": (lambda a: a.detach(), True),
    "legacy": (lambda a: a.as_nd_ndarray(), True),
    "astype": (lambda a: a.astype("float32"), False),
    "astype without copy": (lambda a: a.astype("float32", copy=False), True),
    "split": (lambda a: mx.np.split(a, 2)[0], False),
    "concatenate": (lambda a: mx.np.concatenate([a]), False),
    "broadcast_to": (lambda a: mx.np.broadcast_to(a, (2, 4)), False),
    "maximum": (lambda a: mx.np.maximum(a, a), False),
}


@pytest.mark.parametrize(
    ("function", "shares"),
    [pytest.param(*case, id=name) for name, case in NUMPY_VIEWS.items()],
)
def test_np_functions_share_memory_as_in_mxnet(numpy_mode, function, shares):
    a = mx.np.array([[1, 2, 3, 4], [5, 6, 7, 8]], dtype="float32")
    part = function(a)
    before = part.asnumpy().copy()
    a[:] = 9
    assert bool((part.asnumpy() != before).any()) == shares
    part[:] = 7
    assert bool((a.asnumpy() == 7).any()) == shares


NUMPY_WRITES = {
    "mask": (lambda a: a.__setitem__(a > 5, 0), [1, 2, 3, 4, 5, 0, 0, 0]),
    "list": (lambda a: a.__setitem__([1], 0), [1, 2, 3, 4, 0, 0, 0, 0]),
    "column": (lambda a: a.__setitem__((slice(None), 1), 0), [1, 0, 3, 4, 5, 0, 7, 8]),
    "product": (lambda a: a.__imul__(2), [2, 4, 6, 8, 10, 12, 14, 16]),
    "sum of itself": (lambda a: a.__iadd__(a), [2, 4, 6, 8, 10, 12, 14, 16]),
    "out": (lambda a: mx.np.add(a, 1, out=a), [2, 3, 4, 5, 6, 7, 8, 9]),
    "part": (lambda a: a[1].__setitem__(slice(None), a[0] * 2), [1, 2, 3, 4, 2, 4, 6, 8]),
}


@pytest.mark.parametrize(("write", "expected"), NUMPY_WRITES.values(), ids=NUMPY_WRITES)
def test_views_of_np_arrays_show_writes(numpy_mode, write, expected):
    a = mx.np.array([[1, 2, 3, 4], [5, 6, 7, 8]], dtype="float32")
    whole, row = a[:], a[1]
    write(a)
    assert a.asnumpy().reshape(-1).tolist() == expected
    assert whole.asnumpy().reshape(-1).tolist() == expected
    assert row.asnumpy().tolist() == expected[4:]


def test_gradients_of_np_arrays_keep_their_memory(numpy_mode):
    a, b = mx.np.ones((2, 2)), mx.np.ones((4,))
    for x in (a, b):
        x.attach_grad()
    views = a.grad[1], b.grad[0:2]
    for turn in (1, 2):
        with autograd.record():
            y = (a.reshape(-1) + b) * turn
        y.backward()
        a.grad[:] += 10
        assert views[0].asnumpy().tolist() == [turn + 10] * 2
        assert views[1].asnumpy().tolist() == [turn] * 2
        y[:] = 77
