"""Optimizers: rates, counts, lists, mixed precision, row_sparse; steps of MXNet 1.9.1."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.optimizer import optimizer as module
from tests.batches import check_each, group_by
from tests.golden import HERE
from tests.golden.record import record_optimizers as recorder


class Parameter:
    def __init__(self, lr_mult, wd_mult):
        self.lr_mult, self.wd_mult = lr_mult, wd_mult


NAMES = {0: "x", 1: "y_weight", 2: "z_bias", 3: "q_gamma", 4: "r_beta"}


def test_precedence_of_learning_rate_and_decay_multipliers():
    sgd = mx.optimizer.SGD(
        learning_rate=0.5, wd=1.0, param_dict={0: Parameter(2.0, 3.0)}, param_idx2name=NAMES
    )
    assert sgd._get_lrs(range(5)) == [1.0, 0.5, 0.5, 0.5, 0.5]
    assert sgd._get_wds(range(5)) == [3.0, 1.0, 0.0, 1.0, 0.0]
    sgd.set_lr_mult({1: 4.0, "z_bias": 3.0})
    sgd.set_wd_mult({"z_bias": 5.0, 3: 7.0})
    assert sgd._get_lrs(range(5)) == [1.0, 2.0, 1.5, 0.5, 0.5]
    assert sgd._get_wds(range(5)) == [3.0, 1.0, 5.0, 7.0, 0.0]
    assert sgd._get_lr(1) == 2.0
    assert sgd._get_wd(2) == 5.0


def test_multipliers_are_read_from_symbol_attributes():
    data = mx.sym.Variable("data")
    with mx.AttrScope(lr_mult="2.5"):
        net = mx.sym.FullyConnected(data, name="fc", num_hidden=2)
    weight = mx.sym.Variable("w2", lr_mult=4.0, wd_mult=0.25)
    net = mx.sym.FullyConnected(net, weight, name="fc2", num_hidden=2)
    names = dict(enumerate(net.list_arguments()))
    sgd = mx.optimizer.create("sgd", learning_rate=1, wd=1, sym=net, param_idx2name=names)
    assert sgd.lr_mult == {"fc_weight": 2.5, "fc_bias": 2.5, "w2": 4.0}
    assert sgd.wd_mult == {"data": 0.0, "fc_bias": 0.0, "w2": 0.25, "fc2_bias": 0.0}


def test_lars_applies_weight_decay_to_weights_only():
    lars = mx.optimizer.LARS(param_idx2name=NAMES)
    assert set(lars.wd_mult) == {"x", "z_bias", "q_gamma", "r_beta"}


def test_update_counts_per_device_start_at_begin_num_update():
    sgd = mx.optimizer.SGD(begin_num_update=7)
    sgd._update_count([0, 1])
    sgd._update_count(0)
    assert (sgd.num_update, sgd._index_update_count) == (9, {0: 9, 1: 8})
    sgd._set_current_context(3)
    assert sgd._index_update_count == {}
    sgd._update_count(0)
    assert sgd._all_index_update_counts == {0: {0: 9, 1: 8}, 3: {0: 8}}
    assert sgd.num_update == 9


def test_scheduler_is_called_with_the_number_of_updates():
    schedule = mx.lr_scheduler.FactorScheduler(2, factor=0.5, base_lr=1.0)
    sgd = mx.optimizer.SGD(lr_scheduler=schedule)
    assert (sgd.lr, sgd.learning_rate) == (None, 1.0)
    for _ in range(3):
        sgd._update_count(0)
    assert sgd.learning_rate == 0.5
    with pytest.raises(UserWarning, match="already been defined"):
        sgd.set_learning_rate(3.0)
    adam = mx.optimizer.Adam(lr_scheduler=mx.lr_scheduler.FactorScheduler(2, base_lr=1.0))
    assert adam.learning_rate == 0.001
    plain = mx.optimizer.SGD()
    plain.set_learning_rate(3.0)
    assert plain.learning_rate == 3.0


def test_optimizer_registry():
    assert set(mx.optimizer.Optimizer.opt_registry) >= {
        *("adadelta", "adagrad", "adam", "adamax", "adamw", "ccsgd", "dcasgd", "ftml", "ftrl"),
        *("groupadagrad", "lamb", "lars", "lbsgd", "nadam", "nag", "rmsprop", "sgd", "sgld"),
        *("signum", "test"),
    }
    assert type(mx.optimizer.create("AdaM")) is module.Adam is mx.optimizer.Adam
    with pytest.raises(ValueError, match=r"Cannot find optimizer adan.*adam"):
        mx.optimizer.create("adan")
    with pytest.raises(TypeError, match="is a str"):
        mx.optimizer.create(3)
    with pytest.raises(TypeError, match="learning_rat"):
        mx.optimizer.create("sgd", learning_rat=1)
    with pytest.raises(TypeError, match="param_idx2name"):
        mx.optimizer.create("sgd", param_idx2name=["a"])


def test_state_of_the_test_optimizer_is_float32():
    """As in MXNet 1.9.1, also for weights of another type."""
    optimizer, weight = mx.optimizer.Test(), mx.nd.array([1], dtype="float16")
    state = optimizer.create_state(0, weight)
    optimizer.update(0, weight, mx.nd.array([0.5], dtype="float16"), state)
    assert (state.dtype, state.asscalar()) == (np.float32, 1.5)


def test_registering_an_existing_name_warns():
    known = dict(mx.optimizer.Optimizer.opt_registry)
    try:
        with pytest.warns(UserWarning, match="overriding existing optimizer"):

            @mx.optimizer.register
            class SGD(mx.optimizer.Optimizer):
                pass

        assert type(mx.optimizer.create("sgd")) is SGD
        with pytest.raises(NotImplementedError, match="override update"):
            SGD().update(0, None, None, None)
    finally:
        mx.optimizer.Optimizer.opt_registry.clear()
        mx.optimizer.Optimizer.opt_registry.update(known)


OPTIMIZERS = sorted(n for n in mx.optimizer.Optimizer.opt_registry if not n.startswith("_"))


@pytest.mark.parametrize("name", [n for n in OPTIMIZERS if n != "sgld"])
def test_updates_of_lists_with_mixed_dtypes(name):
    shapes = [(3, 2)] * 40
    random = np.random.RandomState(0)
    start = [random.normal(size=s) for s in shapes]
    slopes = [random.normal(size=s) for s in shapes]
    kinds = ["float32", "float16", "bfloat16", "float64"] * 10
    if name == "test":
        kinds = ["float32"] * 40
    found = []
    for in_lists in (True, False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            updater = mx.optimizer.get_updater(mx.optimizer.create(name, multi_precision=True))
        weights = [mx.nd.array(w, dtype=k) for w, k in zip(start, kinds, strict=True)]
        grads = [mx.nd.array(g, dtype=k) for g, k in zip(slopes, kinds, strict=True)]
        for _ in range(3):
            if in_lists:
                updater(list(range(40)), grads, weights)
            else:
                for i in range(40):
                    updater(i, grads[i], weights[i])
        found.append(weights)
    for i, (one, other) in enumerate(zip(*found, strict=True)):
        assert one.dtype == other.dtype
        one, other = (x.astype("float64").asnumpy() for x in (one, other))
        np.testing.assert_allclose(one, other, rtol=1e-6)
        if kinds[i] == "float64":
            assert not np.allclose(one, start[i], atol=1e-9)


def test_updates_do_not_modify_gradients():
    for name, kind in mx.optimizer.Optimizer.opt_registry.items():
        if kind.__module__ not in ("mxnet.optimizer.optimizer", "mxnet.optimizer.contrib"):
            continue  # registered by an example or another test
        weight, grad = mx.nd.ones((2, 2)), mx.nd.array([[1.0, -2.0], [0.5, 3.0]])
        made = mx.optimizer.create(name, rescale_grad=0.5, clip_gradient=0.7)
        mx.optimizer.get_updater(made)([0], [grad], [weight])
        assert grad.asnumpy().tolist() == [[1.0, -2.0], [0.5, 3.0]], name


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_mixed_precision_accumulates_small_steps(dtype):
    weight, grad = mx.nd.ones(3).astype(dtype), (mx.nd.ones(3) / 1024).astype(dtype)
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5, multi_precision=True))
    for _ in range(64):
        updater([0], [grad], [weight])
    assert weight.dtype == mx.nd.ones(1).astype(dtype).dtype
    assert weight.astype("float32").asnumpy().tolist() == [1 - 32 / 1024] * 3


def test_float16_without_multi_precision_warns():
    with pytest.warns(UserWarning, match="multi_precision=True option of the SGD optimizer"):
        mx.optimizer.SGD().create_state_multi_precision(0, mx.nd.ones(2, dtype="float16"))
    with pytest.warns(UserWarning, match="multi_precision=True option of the optimizer"):
        mx.optimizer.Adam().create_state_multi_precision(0, mx.nd.ones(2, dtype="float16"))


def test_sgld_update_has_half_step_and_noise():
    sgld = mx.optimizer.SGLD(learning_rate=0.04, wd=0.5)
    weight = mx.nd.ones((100, 100))
    sgld.update(0, weight, mx.nd.ones((100, 100)), None)
    moved = weight.asnumpy() - (1 - 0.02 * 1.5)
    assert abs(moved.mean()) < 0.01
    assert abs(moved.std() - 0.2) < 0.01


def test_dcasgd_has_momentum():
    made = mx.optimizer.DCASGD(learning_rate=0.5, momentum=0.5, lamda=0.25)
    weight, grad = mx.nd.array([1.0, 2.0]), mx.nd.array([1.0, 1.0])
    state = made.create_state(0, weight)
    made.update(0, weight, grad, state)
    made.update(0, weight, grad, state)
    # moves -0.5, then 0.5 * -0.5 - 0.5 * (1 + 0.25 * -0.5)
    np.testing.assert_allclose(weight.asnumpy(), [1 - 0.5 - 0.6875, 2 - 0.5 - 0.6875])


def test_adamw_decouples_weight_decay():
    made = mx.optimizer.create("adamw", learning_rate=0.1, wd=0.5, epsilon=0)
    weight = mx.nd.array([1.0, 1.0])
    made.update(0, weight, mx.nd.array([3.0, -3.0]), made.create_state(0, weight))
    np.testing.assert_allclose(weight.asnumpy(), [0.95 - 0.1, 0.95 + 0.1], rtol=1e-6)
    start, slope = torch.tensor([1.0, -2.0]), torch.tensor([0.3, 0.1])
    theirs = torch.nn.Parameter(start.clone())
    reference = torch.optim.AdamW([theirs], lr=0.01, weight_decay=0.1, eps=0)
    made = mx.optimizer.create("adamw", learning_rate=0.01, wd=0.1, epsilon=0)
    ours = mx.nd.array(start.numpy())
    state = made.create_state(0, ours)
    for _ in range(10):
        theirs.grad = slope.clone()
        reference.step()
        made.update(0, ours, mx.nd.array(slope.numpy()), state)
    np.testing.assert_allclose(ours.asnumpy(), theirs.detach().numpy(), rtol=1e-5)


def test_adamax_does_not_move_on_zero_gradients():
    made = mx.optimizer.Adamax(learning_rate=0.5)
    weight = mx.nd.ones(2)
    made.update(0, weight, mx.nd.array([0.0, 2.0]), made.create_state(0, weight))
    np.testing.assert_allclose(weight.asnumpy(), [1.0, 0.5], rtol=1e-6)


def test_channels_last_weights_are_updated_equally():
    for name, options in (("sgd", {"momentum": 0.9}), ("adam", {}), ("nag", {"momentum": 0.9})):
        base = torch.arange(48.0).reshape(2, 2, 3, 4) / 10
        found = []
        for layout in (torch.contiguous_format, torch.channels_last):
            weight = mx.nd.NDArray(base.clone().to(memory_format=layout))
            updater = mx.optimizer.get_updater(mx.optimizer.create(name, wd=0.1, **options))
            for _ in range(3):
                updater([0], [mx.nd.NDArray(base.cos())], [weight])
            found.append(weight.asnumpy())
        np.testing.assert_allclose(*found, rtol=1e-6)


def test_mismatched_gradients_and_states_raise():
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9, param_idx2name={0: "w"}))
    weight = mx.nd.ones(3)
    with pytest.raises(mx.MXNetError, match=r"'w' is \(3,\), its gradient \(2,\)"):
        updater([0], [mx.nd.ones(2)], [weight])
    with pytest.raises(mx.MXNetError, match=r"its gradient float16"):
        updater([0], [mx.nd.ones(3, dtype="float16")], [weight])
    updater.states[0] = mx.nd.ones(2)
    with pytest.raises(mx.MXNetError, match=r"its state is \(2,\)"):
        updater([0], [mx.nd.ones(3)], [weight])
    updater.states[0] = (mx.nd.ones(3),)
    updater.states[1] = None
    updater.states_synced[1] = True
    with pytest.raises(mx.MXNetError, match="differ in structure"):
        updater([0, 1], [mx.nd.ones(3)] * 2, [weight, mx.nd.ones(3)])
    with pytest.raises(mx.MXNetError, match="the same number of each"):
        updater([0, 1], [mx.nd.ones(3)], [weight])
    mixed = mx.optimizer.SGD(multi_precision=True)
    half = mx.nd.ones(3, dtype="float16")
    with pytest.raises(mx.MXNetError, match="no 32-bit copy"):
        mixed.update_multi_precision(0, half, half, None)
    with pytest.raises(mx.MXNetError, match="not supported for GroupAdaGrad"):
        mx.optimizer.get_updater(mx.optimizer.create("groupadagrad", wd=0.1))(
            0, mx.nd.ones((2, 2)), mx.nd.ones((2, 2))
        )
    with pytest.raises(mx.MXNetError, match="matrices"):
        mx.optimizer.create("groupadagrad").create_state(0, mx.nd.ones(2))


def test_replaced_weights_and_states_are_used():
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=1.0, momentum=0.5))
    weight = mx.nd.zeros(1)
    updater([0], [mx.nd.ones(1)], [weight])
    other = mx.nd.zeros(1)
    updater([0], [mx.nd.ones(1)], [other])
    assert (weight.asscalar(), other.asscalar()) == (-1.0, -1.5)
    updater.states[0] = mx.nd.zeros(1)
    updater([0], [mx.nd.ones(1)], [other])
    assert other.asscalar() == -2.5


def test_custom_optimizers_receive_single_parameters_or_lists():
    seen = []

    class Single(mx.optimizer.Adam):
        def update(self, index, weight, grad, state):
            seen.append(index)
            weight[:] = grad

    weights, grads = [mx.nd.zeros(1) for _ in range(3)], [mx.nd.ones(1)] * 3
    mx.optimizer.get_updater(Single())([0, 1, 2], grads, weights)
    assert seen == [0, 1, 2]
    assert [w.asscalar() for w in weights] == [1.0] * 3

    class Chunks(mx.optimizer.Optimizer):
        def __init__(self):
            super().__init__()
            self.aggregate_num = 2

        def update_multi_precision(self, index, weight, grad, state):
            seen.append(list(index))

    seen.clear()
    mx.optimizer.get_updater(Chunks())([0, 1, 2], grads, weights)
    assert seen == [[0, 1], [2]]


def test_custom_optimizers_with_mixed_precision():
    class Plain(mx.optimizer.Optimizer):
        def update(self, index, weight, grad, state):
            assert weight.dtype == grad.dtype == np.float32
            weight -= grad * self._get_lr(index)

    updater = mx.optimizer.get_updater(Plain(learning_rate=0.5, multi_precision=True))
    weight = mx.nd.ones(2, dtype="float16")
    updater(0, weight * 1, weight)
    assert weight.asnumpy().tolist() == [0.5, 0.5]


@pytest.mark.parametrize("name", ["adam", "rmsprop", "nag", "lamb", "lbsgd"])
def test_subclasses_can_override_get_lr(name):
    """Wrappers override `_get_lr`; only aggregating optimizers call `_get_lrs`."""

    class Halving(mx.optimizer.Optimizer.opt_registry[name]):
        def _get_lr(self, index):
            return 0.25 if index else 0.0

        def _get_lrs(self, indices):
            return []

        def _get_wd(self, index):
            return 0.0

    weights = [mx.nd.ones(2), mx.nd.ones(2)]
    updater = mx.optimizer.get_updater(Halving(learning_rate=100.0))
    updater([0, 1], [mx.nd.ones(2), mx.nd.ones(2)], weights)
    assert weights[0].asnumpy().tolist() == [1.0, 1.0]
    assert 0.1 < weights[1].asnumpy()[0] < 0.99


@pytest.mark.parametrize("name", ["sgd", "lars"])
def test_subclasses_of_aggregating_optimizers_override_get_lrs(name):
    class Own(mx.optimizer.Optimizer.opt_registry[name]):
        def _get_lr(self, index):
            raise AssertionError("MXNet does not ask SGD for one rate")

        def _get_lrs(self, indices):
            return [0.0] * len(indices)

    weights = [mx.nd.ones(2), mx.nd.ones(2)]
    updater = mx.optimizer.get_updater(Own(learning_rate=100.0))
    updater([0, 1], [mx.nd.ones(2), mx.nd.ones(2)], weights)
    assert [w.asnumpy().tolist() for w in weights] == [[1.0, 1.0]] * 2


def calls_of(name, method, dtypes, aggregate_num=None):
    """Return with which indices an overridden method of an optimizer is called in an update."""
    calls = []

    class Own(mx.optimizer.Optimizer.opt_registry[name]):
        pass

    def record(self, index, *arrays):
        calls.append(tuple(index) if isinstance(index, list | tuple) else index)
        return getattr(super(Own, self), method)(index, *arrays)

    setattr(Own, method, record)
    optimizer = Own()
    if aggregate_num is not None:
        optimizer.aggregate_num = aggregate_num
    weights = [mx.nd.ones(2, dtype=dtype) for dtype in dtypes]
    grads = [weight * 1 for weight in weights]
    mx.optimizer.get_updater(optimizer)(list(range(len(dtypes))), grads, weights)
    assert all(weight.asnumpy()[0] < 1 for weight in weights)
    return calls


def test_overridden_methods_receive_the_same_index_lists_as_in_mxnet():
    single = [0, 1, 2, 3, 4, 5]
    alone = [(i,) for i in single]
    by_type = [(0, 2, 4, 5), (6,), (1, 3)]
    mixed = ["float32", "float64", "float32", "float64", "float32", "float32", "float32"]
    plain = ["float32"] * 6
    cases = {}
    for name in ("sgd", "lars"):
        for method in ("_get_lrs", "_get_wds", "update_multi_precision", "_update_count"):
            cases[name, method] = plain, None, [(0, 1, 2, 3), (4, 5)]
            cases[name, method, "types"] = mixed, None, by_type
            cases[name, method, 2] = plain, 2, [(0, 1), (2, 3), (4, 5)]
        for method in ("_get_lr", "_get_wd"):
            cases[name, method] = plain, None, []
    for name in ("adam", "nag"):
        for method in ("_get_lr", "_get_wd", "update_multi_precision", "_update_count"):
            cases[name, method] = plain, None, single
        for method in ("_get_lrs", "_get_wds"):
            cases[name, method] = plain, None, alone
    cases["lamb", "_get_lrs"] = plain, None, alone
    cases["lamb", "_get_lrs", "types"] = mixed, None, [(0,), (2,), (4,), (5,), (6,), (1,), (3,)]
    cases["lamb", "update_multi_precision"] = plain, None, [tuple(single)]

    def check(case):
        (name, method, *_), (dtypes, aggregate_num, expected) = case
        assert calls_of(name, method, dtypes, aggregate_num) == expected

    check_each({str(key): (key, case) for key, case in cases.items()}, check)


def test_get_lrs_can_depend_on_aggregate_num():
    class Fixed(mx.optimizer.SGD):
        def _get_lrs(self, indices):
            return [0.5] * self.aggregate_num

    weights, grads = [mx.nd.ones(2) for _ in range(8)], [mx.nd.ones(2) for _ in range(8)]
    mx.optimizer.get_updater(Fixed())(list(range(8)), grads, weights)
    assert [weight.asnumpy()[0] for weight in weights] == [0.5] * 8
    with pytest.raises(mx.MXNetError, match="2 states, 4 rates and 2 decays"):
        mx.optimizer.get_updater(Fixed())(list(range(6)), grads[:6], weights[:6])


def test_overridden_sgd_update_receives_the_float32_copy():
    class Own(mx.optimizer.SGD):
        def update(self, index, weight, grad, state):
            assert weight.dtype == grad.dtype == np.float32
            super().update(index, weight, grad, state)

    weights = [mx.nd.ones(2, dtype="float16"), mx.nd.ones(2, dtype="float16")]
    updater = mx.optimizer.get_updater(Own(0.9, learning_rate=0.5, multi_precision=True))
    for _ in range(2):
        updater([0, 1], [mx.nd.ones(2, dtype="float16")] * 2, weights)
    for weight in weights:
        np.testing.assert_allclose(weight.asnumpy(), -0.45, atol=1e-3)


LAZY = [
    *(("sgd", {}, True), ("sgd", {"momentum": 0.9}, True), ("sgd", {"lazy_update": False}, False)),
    *(("adam", {}, True), ("adam", {"lazy_update": False}, False), ("adagrad", {}, True)),
    *(("groupadagrad", {}, True), ("lbsgd", {}, True), ("lars", {"eta": 1.0}, True)),
    *(("nag", {"momentum": 0.9}, False), ("rmsprop", {}, False), ("lamb", {}, False)),
    ("nag", {}, True),
]


@pytest.mark.parametrize("kind", ["default", "row_sparse"])
@pytest.mark.parametrize(("name", "options", "lazy"), LAZY)
def test_row_sparse_gradients_equal_dense_gradients(name, options, lazy, kind):
    wd = 0.0 if name in ("adagrad", "groupadagrad") else 0.1
    values = np.array([[1, 2.0], [3, 4]], "float32")
    grad = mx.nd.sparse.row_sparse_array((values, [0, 2]), shape=(4, 2))
    found = []
    for slope in (grad, grad.tostype("default")):
        made = mx.optimizer.create(name, learning_rate=0.1, wd=wd, **options)
        weight = mx.nd.ones((4, 2)).tostype(kind if slope is grad else "default")
        state = made.create_state(0, weight)
        for _ in range(2):
            made.update(0, weight, slope, state)
        assert weight.stype == (kind if slope is grad else "default")
        found.append(weight.asnumpy())
    sparse, dense = found
    if name not in ("lars",):  # its norms depend on the decay of other rows
        np.testing.assert_allclose(sparse[[0, 2]], dense[[0, 2]], rtol=1e-6)
    if lazy:
        assert (sparse[[1, 3]] == 1).all()
    else:
        np.testing.assert_allclose(sparse, dense, rtol=1e-6)


# Weights [[1, 2], [1, 2], [3, 4]] after two steps of MXNet in mixed precision by [[1, -1]] in
# row 0, at rate 0.1 and decay 0.5 (AdaGrad 0). (optimizer, options, dtype): first row, last row.
LAZY_MIXED = {
    ("SGD", (), "float32"): ([0.707, 2.0], [3.0, 4.0]),
    ("SGD", (), "float16"): ([0.707, 2.0], [2.707, 3.609]),
    ("SGD", (("momentum", 0.5),), "float32"): ([0.633, 2.0], [3.0, 4.0]),
    ("SGD", (("momentum", 0.5),), "float16"): ([0.632, 2.0], [2.633, 3.51]),
    ("SGD", (("lazy_update", False),), "float32"): ([0.707, 2.0], [2.707, 3.61]),
    ("NAG", (), "float32"): ([0.707, 2.0], [3.0, 4.0]),
    ("NAG", (), "float16"): ([0.708, 2.0], [2.707, 3.609]),
    ("Adam", (), "float32"): ([0.8, 2.0], [3.0, 4.0]),
    ("Adam", (), "float16"): ([0.8, 2.0], [3.0, 4.0]),
    ("LBSGD", (("momentum", 0.5),), "float16"): ([0.632, 2.0], [3.0, 4.0]),
    ("LARS", (("momentum", 0.5), ("eta", 1.0)), "float32"): ([0.5066, 2.0], [3.0, 4.0]),
    ("AdaGrad", (), "float16"): ([0.829, 2.17], [3.0, 4.0]),
    ("Ftrl", (), "float32"): ([0.398, 1.064], [0.0, 0.0]),
}


def test_mixed_precision_row_sparse_updates_are_lazy():
    def check(case):
        (name, options, dtype), rows = case
        wd = 0.0 if name == "AdaGrad" else 0.5
        kind = getattr(mx.optimizer, name)
        optimizer = kind(learning_rate=0.1, wd=wd, multi_precision=True, **dict(options))
        weight = mx.nd.array([[1, 2], [1, 2], [3, 4]], dtype=dtype)
        grad = mx.nd.sparse.row_sparse_array(([[1.0, -1.0]], [0]), shape=(3, 2), dtype=dtype)
        state = optimizer.create_state_multi_precision(0, weight)
        for _ in range(2):
            optimizer.update_multi_precision(0, weight, grad, state)
        np.testing.assert_allclose(weight.asnumpy()[[0, 2]], rows, atol=2e-3)

    check_each({str(key): (key, rows) for key, rows in LAZY_MIXED.items()}, check)


# How MXNet stores the states of sparse weights: True as the weight, False dense.
SPARSE_STATES = {
    **dict.fromkeys(["Signum", "Adam", "Ftrl", "RMSProp", "AdaGrad", "LAMB"], True),
    **dict.fromkeys(["NAG", "AdaDelta", "Adamax", "Nadam", "FTML"], False),
    **dict.fromkeys(["SGD", "LARS", "LBSGD", "GroupAdaGrad"], True),
}


def test_storage_types_of_sparse_states_match_mxnet():
    def check(case):
        name, like_weight = case
        for stype in ("row_sparse", "csr"):
            options = {"momentum": 0.5} if name in ("SGD", "NAG", "LARS", "LBSGD") else {}
            optimizer = mx.optimizer.create(name, **options)
            dense = mx.nd.array([[1, 0], [0, 2], [3, 4]])
            weight = dense.tostype(stype)
            updater = mx.optimizer.get_updater(optimizer)
            updater(0, dense, weight)
            state = updater.states[0]
            parts = state if isinstance(state, tuple) else (state,)
            assert {part.stype for part in parts} == {stype if like_weight else "default"}
            assert weight.stype == stype
            # the same step as of a dense weight, and states that files keep
            expected = mx.nd.array([[1, 0], [0, 2], [3, 4]])
            of_dense = mx.optimizer.get_updater(mx.optimizer.create(name, **options))
            of_dense(0, expected * 1, expected)
            copy = mx.optimizer.get_updater(optimizer)
            copy.set_states(updater.get_states())
            copy(0, dense, weight)
            of_dense(0, dense, expected)
            np.testing.assert_allclose(weight.asnumpy(), expected.asnumpy(), rtol=1e-5)

    check_each({name: (name, like) for name, like in SPARSE_STATES.items()}, check)


def test_lars_scales_by_the_norm_of_the_whole_sparse_weight():
    values = np.array([[1, 2.0], [3, 4]], "float32")
    grad = mx.nd.sparse.row_sparse_array((values, [1, 3]), shape=(4, 2))
    weight = mx.nd.array(np.arange(1, 9).reshape(4, 2))
    updater = mx.optimizer.get_updater(mx.optimizer.LARS(learning_rate=0.1, wd=0.01, eta=1.0))
    for _ in range(2):
        updater(0, grad, weight)
    of_mxnet = [[1, 2], [2.4974, 3.0047], [5, 6], [5.5021, 6.0093]]
    np.testing.assert_allclose(weight.asnumpy(), of_mxnet, atol=1e-4)


def test_ftrl_is_lazy_for_row_sparse_weights_only():
    grad = mx.nd.sparse.row_sparse_array((np.ones((1, 2), "float32"), [0]), shape=(2, 2))
    for kind, expected in (("default", 0.0), ("row_sparse", 1.0)):
        weight = mx.nd.ones((2, 2)).tostype(kind)
        ftrl = mx.optimizer.Ftrl()
        ftrl.update(0, weight, grad, ftrl.create_state(0, weight))
        assert weight.asnumpy()[1].tolist() == [expected] * 2


def test_adagrad_with_sparse_gradients_and_weight_decay_raises():
    grad = mx.nd.sparse.row_sparse_array((np.ones((1, 2), "float32"), [0]), shape=(2, 2))
    adagrad = mx.optimizer.AdaGrad(wd=0.1)
    weight = mx.nd.ones((2, 2))
    with pytest.raises(mx.MXNetError, match="decay must be 0"):
        adagrad.update(0, weight, grad, adagrad.create_state(0, weight))
    weight = weight.tostype("csr")
    with pytest.raises(mx.MXNetError, match="needs a dense gradient"):
        adagrad.update(0, weight, grad, adagrad.create_state(0, weight))


def test_pickles_exclude_parameters_and_update_plans():
    sgd = mx.optimizer.SGD(momentum=0.9, param_dict={0: Parameter(2.0, 1.0)})
    weight = mx.nd.ones(2)
    mx.optimizer.get_updater(sgd)([0], [weight * 1], [weight])
    for again in (pickle.loads(pickle.dumps(sgd)), copy.deepcopy(sgd)):
        assert again.param_dict == {}
        assert "_plans" not in again.__dict__
        assert again._index_update_count is again._all_index_update_counts[0]
        assert (again.momentum, again.num_update) == (0.9, 1)
    assert pickle.dumps(sgd, 4).count(b"mxnet.optimizer.optimizer") == 1


@pytest.mark.parametrize("name", ["sgd", "nag", "adam", "adamw", "rmsprop", "lamb", "signum"])
def test_updates_increment_the_version_counter_of_weights(name):
    """Compiled graphs detect changed weights by torch's version counter."""
    weight = mx.nd.ones((3, 3))
    update = mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1))
    for _ in range(2):
        before = weight.to_torch()._version
        update([0], [mx.nd.ones((3, 3))], [weight])
        assert weight.to_torch()._version > before


@pytest.mark.parametrize(("name", "first"), [("ftrl", 0.02), ("sgd", 0.3)])
def test_learning_rate_overrides_base_lr_of_the_scheduler(name, first):
    schedule = mx.lr_scheduler.FactorScheduler(step=100, base_lr=0.02)
    made = mx.optimizer.create(name, learning_rate=0.3, lr_scheduler=schedule)
    assert (made.lr, schedule.base_lr, made.learning_rate) == (0.3, first, first)


def _steps(optimizer, count):
    """Return the first weight after each step along a constant gradient."""
    weight, state = mx.nd.array([1.0]), None
    made = []
    for step in range(count):
        if not step:
            state = optimizer.create_state(0, weight)
        optimizer.update(0, weight, mx.nd.array([0.5]), state)
        made.append(weight.asscalar())
    return made


@pytest.mark.parametrize("name", ["sgd", "nag", "lbsgd"])
def test_negative_momentum_is_ignored(name):
    optimizer = mx.optimizer.create(name, learning_rate=0.1, momentum=-0.5)
    np.testing.assert_allclose(_steps(optimizer, 3), [0.95, 0.9, 0.85], rtol=1e-6)


def test_lbsgd_reads_the_learning_rate_before_counting_an_update():
    """Values of MXNet 1.9.1."""
    schedule = mx.lr_scheduler.FactorScheduler(step=2, factor=0.5)
    optimizer = mx.optimizer.LBSGD(
        learning_rate=0.1, momentum=0.9, lr_scheduler=schedule, updates_per_epoch=2, warmup_epochs=1
    )
    wanted = [0.95, 0.855, 0.7195, 0.5725, 0.4153, 0.2613]
    np.testing.assert_allclose(_steps(optimizer, 6), wanted, atol=1e-4)


def test_overriding_base_lr_of_a_scheduler_prints_a_message(capsys):
    mx.optimizer.SGD(learning_rate=0.5, lr_scheduler=mx.lr_scheduler.FactorScheduler(2))
    assert capsys.readouterr().out == ""
    schedule = mx.lr_scheduler.FactorScheduler(2, base_lr=0.3)
    mx.optimizer.SGD(learning_rate=0.5, lr_scheduler=schedule)
    assert capsys.readouterr().out == (
        "learning rate from ``lr_scheduler`` has been overwritten by ``learning_rate`` in "
        "optimizer.\n"
    )


GOLDEN = np.load(HERE / "optimizers.npz")
ROWS = recorder.rows()
NUMBERS = group_by(range(len(ROWS)), lambda number: ROWS[number][0])


def _title(name, setting):
    return name + "-" + ",".join(f"{k}={v}" for k, v in setting.items())


@pytest.mark.parametrize("in_lists", [True, False], ids=["lists", "one by one"])
@pytest.mark.parametrize("optimizer", NUMBERS)
def test_steps_match_mxnet(optimizer, in_lists):
    numbers = [n for n in NUMBERS[optimizer] if in_lists or not _depends_on_lists(*ROWS[n])]
    cases = {_title(*ROWS[number]): number for number in numbers}
    check_each(cases, lambda number: _check_steps(number, in_lists))


def _depends_on_lists(name, setting):
    """Return whether a step depends on how many weights are updated by one call, as in MXNet."""
    return name == "lars" and setting.get("schedule") and setting.get("momentum")


def _check_steps(number, in_lists):
    name, setting = ROWS[number]
    updater, seen = recorder.run(mx, name, setting, in_lists)
    weights = np.concatenate([w.astype("float32").ravel() for step in seen for w in step])
    expected = GOLDEN[f"{number}_weights"]
    half = setting.get("float16", False)
    _assert_close(weights, expected, 1e-3 if half else 1e-5)
    # MXNet takes norms of the 16-bit weights, MXNext those of the 32-bit copies
    rough = half and name in ("lars", "lamb")
    expected = GOLDEN[f"{number}_states"]
    _assert_close(recorder.flat_states(updater), expected, 1e-3 if rough else 1e-5)


def _assert_close(found, expected, tolerance):
    """Compare relative to the largest value: small values may be differences of large ones."""
    largest = np.abs(expected).max(initial=0)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * largest)


def test_optimizer_class_defined_by_exec():
    """Such a class has no module name, as in some notebooks."""
    names = {"mx": mx}
    exec("class Own(mx.optimizer.SGD):\n    def update(self, *args):\n        pass", names)
    del names["__builtins__"]
    weight = mx.nd.ones(2)
    mx.optimizer.get_updater(names["Own"]())([0], [mx.nd.ones(2)], [weight])
    assert weight.asnumpy().tolist() == [1, 1]
