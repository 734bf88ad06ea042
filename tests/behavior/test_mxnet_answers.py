"""Regression tests: short programs whose results once differed from MXNet 1.9.1."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd, npx, sym


@pytest.fixture
def numpy_mode() -> Iterator[None]:
    """Turn NumPy's shapes and arrays on for one test."""
    npx.set_np()
    yield
    npx.reset_np()


# -- images --------------------------------------------------------------------------------------


def test_cubic_resize_of_uint8_rounds_as_mxnet():
    pixels = np.random.RandomState(3).randint(0, 256, (6, 7, 3))
    resized = mx.image.imresize(nd.array(pixels, dtype="uint8"), 10, 9, interp=2)
    expected = [106, 129, 84, 0, 81, 219, 255, 174]
    assert resized.asnumpy()[:, :, 0].ravel()[:8].tolist() == expected
    operator = nd.image.resize(nd.array(pixels, dtype="uint8"), size=(10, 9), interp=2)
    np.testing.assert_array_equal(operator.asnumpy(), resized.asnumpy())


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64"])
def test_brightness_jitter_works_in_place(dtype):
    image = nd.ones((2, 2, 3), dtype=dtype)
    result = mx.image.BrightnessJitterAug(0.0)(image)
    assert result is image
    assert result.dtype == np.dtype(dtype)


@pytest.mark.parametrize(
    "augmenter",
    [
        mx.image.ContrastJitterAug(0.5),
        mx.image.SaturationJitterAug(0.5),
        mx.image.LightingAug(0.1, np.ones(3), np.eye(3)),
        mx.image.ColorNormalizeAug(nd.array([1, 2, 3]), nd.array([2, 2, 2])),
    ],
    ids=lambda augmenter: type(augmenter).__name__,
)
def test_color_augmenters_work_in_place_on_float_images(augmenter):
    image = nd.array(np.arange(12).reshape(2, 2, 3))
    assert augmenter(image) is image


def test_color_normalize_works_in_place():
    image = nd.full((2, 2, 3), 30)
    result = mx.image.color_normalize(image, nd.array([1, 2, 3]), nd.array([2, 2, 2]))
    assert result is image
    assert image.asnumpy()[0, 0].tolist() == [14.5, 14.0, 13.5]


def test_image_iterators_log_the_number_of_threads(caplog, monkeypatch):
    monkeypatch.setenv("MXNET_CPU_WORKER_NTHREADS", "3")
    with caplog.at_level(logging.INFO):
        mx.image.ImageIter(1, (3, 4, 4), imglist=[[0, "a.png"]], path_root=".")
    assert [record.getMessage() for record in caplog.records] == [
        "Using 3 threads for decoding...",
        "Set enviroment variable MXNET_CPU_WORKER_NTHREADS to a larger number to use more threads.",
        "ImageIter: loading image list...",
    ]


# -- arrays and symbols --------------------------------------------------------------------------


def test_from_numpy_shares_memory_when_called_twice():
    values = np.array([1, 2, 3])
    first, second = nd.from_numpy(values), nd.from_numpy(values)
    second[2] = 100
    assert values.tolist() == first.asnumpy().tolist() == [1, 2, 100]
    assert not values.flags.writeable


def test_from_numpy_copies_read_only_memory():
    text = b"abc"
    array = nd.from_numpy(np.frombuffer(text, np.uint8))
    array[0] = 0
    assert text == b"abc"


@pytest.mark.parametrize(
    ("index", "error"),
    [
        (slice(1, 2), IndexError),
        (slice(5, 9), IndexError),
        (slice(3, 2), TypeError),
        (slice(0, 0), TypeError),
    ],
)
def test_empty_symbol_slices_raise(index, error):
    with pytest.raises(error, match="selects none of the 1 outputs"):
        sym.Variable("x")[index]


def test_infer_type_of_where_with_mixed_dtypes_warns():
    x, y = sym.Variable("x"), sym.Variable("y")
    for symbol in (sym.where(x > 0, x, y), sym.where(x > 0, x, y) + 1):
        with pytest.warns(UserWarning, match="Cannot decide type"):
            assert symbol.infer_type(x="float32", y="int32") == (None, None, None)
    known = sym.where(sym.Variable("c"), x, y).infer_type_partial(x="float32", y="int32")
    assert known == ([None, np.float32, np.int32], [None], [])


@pytest.mark.usefixtures("numpy_mode")
def test_tensorsolve_broadcasts_a_right_hand_side_with_more_axes():
    a = mx.np.random.uniform(size=(1, 12, 4, 1, 3))
    assert mx.np.linalg.tensorsolve(a, mx.np.ones((1, 2, 1, 2, 1, 3, 1))).shape == (4, 1, 3)


@pytest.mark.usefixtures("numpy_mode")
def test_resize_of_empty_arrays_in_a_hybridized_block():
    class Resized(gluon.HybridBlock):
        def hybrid_forward(self, F, a):
            return F.np.resize(a, (2, 2))

    block = Resized()
    block.hybridize()
    for shape in ((0,), (3, 0)):
        assert block(mx.np.zeros(shape)).asnumpy().tolist() == [[0, 0], [0, 0]]
    assert block(mx.np.arange(3)).asnumpy().tolist() == [[0, 1], [2, 0]]
    x = mx.np.arange(3)
    x.attach_grad()
    with autograd.record():
        y = block(x)
    y.backward(mx.np.array([[1, 2], [3, 4]]))
    assert x.grad.asnumpy().tolist() == [5, 2, 3]


@pytest.mark.usefixtures("numpy_mode")
def test_take_from_an_empty_axis_raises():
    with pytest.raises(IndexError, match="cannot index an axis of size 0"):
        mx.np.take(mx.np.zeros((0,)), mx.np.array([0]), mode="wrap")


@pytest.mark.usefixtures("numpy_mode")
def test_return_types_of_numpy_functions():
    assert type(mx.np.linalg.slogdet(mx.np.eye(2))) is list
    assert type(mx.np.average(mx.np.ones((2, 3)), returned=True)) is list
    assert type(mx.np.alltrue(mx.np.ones(2))) is np.bool_
    assert type(mx.np.alltrue(mx.np.ones((2, 2)), axis=0)) is mx.np.ndarray
    assert type(mx.np.count_nonzero(mx.np.ones(2))) is int


@pytest.mark.usefixtures("numpy_mode")
@pytest.mark.parametrize(
    ("shape", "axis", "start"), [((), 0, 0), ((2, 3), 2, 0), ((2, 3), 1, 3), ((2, 3), 1, -3)]
)
def test_rollaxis_with_an_invalid_axis_raises(shape, axis, start):
    with pytest.raises(np.exceptions.AxisError):
        mx.np.rollaxis(mx.np.ones(shape), axis, start)


# -- metrics -------------------------------------------------------------------------------------


def test_custom_metric_with_a_single_array_and_extra_outputs():
    metric = mx.metric.CustomMetric(lambda label, pred: label.size, allow_extra_outputs=True)
    metric.update(nd.array([0, 1, 2, 1]), nd.ones((4, 2)))
    assert metric.get()[1] == 1
    metric = mx.metric.CustomMetric(lambda label, pred: label.size)
    metric.update(nd.array([0, 1, 2, 1]), nd.ones((4, 2)))
    assert metric.get()[1] == 4


@pytest.mark.parametrize(
    ("name", "shape", "error"),
    [
        ("nll_loss", (2,), IndexError),
        ("ce", (2,), IndexError),
        ("ce", (3,), AssertionError),
        ("f1", (2,), np.exceptions.AxisError),
        ("mcc", (2,), np.exceptions.AxisError),
        ("pcc", (3,), np.exceptions.AxisError),
    ],
)
def test_metrics_raise_if_scores_lack_a_class_axis(name, shape, error):
    with pytest.raises(error):
        mx.metric.create(name).update([nd.zeros(2)], [nd.ones(shape)])


# -- monitors ------------------------------------------------------------------------------------


def test_monitor_callback_receives_names_as_bytes():
    names = []
    symbol = sym._internal._mul_scalar(sym.Variable("x"), scalar=2, name="double")
    executor = symbol.bind(mx.cpu(), {"x": nd.ones(2)})
    executor.set_monitor_callback(lambda name, array: names.append(name.decode()))
    executor.forward()
    assert names == ["double_output"]


def test_operator_hook_receives_names_as_bytes():
    calls = []
    layer = gluon.nn.Dense(2, prefix="fc_")
    layer.initialize()
    layer.hybridize()
    layer(nd.ones((1, 2)))
    layer.register_op_hook(lambda name, operator, array: calls.append((name, operator)))
    layer(nd.ones((1, 2)))
    assert calls == [(b"fc_fwd_output", b"FullyConnected")]


# -- optimizers ----------------------------------------------------------------------------------


def lars_weights(count, per_call):
    scheduler = mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=0.1)
    lars = mx.optimizer.create("lars", momentum=0.9, lr_scheduler=scheduler, learning_rate=0.1)
    weights = [nd.ones(1) for _ in range(count)]
    updater = mx.optimizer.get_updater(lars)
    for _ in range(4):
        for start in range(0, count, per_call):
            part = list(range(start, min(start + per_call, count)))
            grads = [nd.array([0.3]) for _ in part]
            updater(part, grads, [weights[i] for i in part])
    return [f"{w.asscalar():.7f}" for w in weights]


def test_lars_momentum_correction_in_the_first_step():
    assert lars_weights(6, 6) == ["0.9996942"] * 4 + ["0.9994606"] * 2
    assert lars_weights(2, 1) == ["0.9996942", "0.9994606"]


@pytest.mark.filterwarnings("ignore:Accumulating with float16")
@pytest.mark.parametrize("name", ["sgd", "lars", "sgld"])
def test_states_with_master_weights_load_without_multi_precision(name):
    weight = nd.ones(4, dtype="float16")
    source = mx.optimizer.get_updater(mx.optimizer.create(name, multi_precision=True))
    source(0, weight, weight)
    target = mx.optimizer.get_updater(mx.optimizer.create(name))
    target.set_states(source.get_states())
    weight[:] = 1
    mx.random.seed(0)
    target(0, weight, weight)
    reference = nd.ones(4, dtype="float16")
    mx.random.seed(0)
    mx.optimizer.get_updater(mx.optimizer.create(name))(0, reference, reference)
    assert weight.asnumpy().tolist() == reference.asnumpy().tolist()


@pytest.mark.filterwarnings("ignore:Accumulating with float16")
def test_states_of_sgd_with_momentum_do_not_load_without_multi_precision():
    weight = nd.ones(4, dtype="float16")
    sgd = mx.optimizer.SGD(momentum=0.9, multi_precision=True)
    source = mx.optimizer.get_updater(sgd)
    source(0, weight, weight)
    target = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9))
    target.set_states(source.get_states())
    with pytest.raises(ValueError, match="does it belong to a different parameter"):
        target(0, weight, weight)


@pytest.mark.filterwarnings("ignore:Accumulating with float16")
def test_nag_states_without_master_weights_load_with_multi_precision():
    weight = nd.ones(4, dtype="float16")
    source = mx.optimizer.get_updater(mx.optimizer.NAG(momentum=0.9))
    source(0, weight, weight)
    target = mx.optimizer.get_updater(mx.optimizer.NAG(momentum=0.9, multi_precision=True))
    target.set_states(source.get_states())
    target(0, weight, weight)
    np.testing.assert_allclose(weight.asnumpy(), 0.954, rtol=1e-3)


def test_group_adagrad_raises_for_vectors():
    with pytest.raises(AssertionError, match="works on matrices"):
        mx.optimizer.create("groupadagrad").create_state(0, nd.ones(3))


def test_adadelta_calls_its_scheduler_only_for_the_learning_rate():
    calls = []

    class Counting(mx.lr_scheduler.LRScheduler):
        def __call__(self, num_update):
            calls.append(num_update)
            return 1.0

    optimizer = mx.optimizer.create("adadelta", lr_scheduler=Counting())
    updater = mx.optimizer.get_updater(optimizer)
    for _ in range(3):
        updater(0, nd.ones(2), nd.ones(2))
    assert calls == []
    assert optimizer.learning_rate == 1.0
    assert calls == [3]


def test_lbsgd_set_states_logs_nothing(caplog):
    updater = mx.optimizer.get_updater(mx.optimizer.create("lbsgd"))
    states = updater.get_states(dump_optimizer=True)
    with caplog.at_level(logging.INFO):
        updater.set_states(states)
    assert not caplog.records


def test_constant_dumps_converts_its_arguments_to_lists():
    constant = mx.init.Constant(np.ones(2))
    constant.dumps()
    assert constant._kwargs == {"value": [1.0, 1.0]}


@pytest.mark.parametrize(("first", "second"), [({"centered": True}, {}), ({}, {"centered": True})])
def test_wrong_number_of_states_raises(first, second):
    weight = nd.ones(2)
    source = mx.optimizer.get_updater(mx.optimizer.RMSProp(**first))
    source(0, weight, weight)
    target = mx.optimizer.get_updater(mx.optimizer.RMSProp(**second))
    target.set_states(source.get_states())
    with pytest.raises(ValueError, match=r"RMSProp keeps \d states of a parameter"):
        target(0, weight, weight)
