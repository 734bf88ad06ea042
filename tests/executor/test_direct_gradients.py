"""Hybridized networks whose backward runs by formulas keep every habit of torch's graph."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from mxnet.imperative import direct_nodes

X = nd.array(np.linspace(-1, 1, 20).reshape(5, 4))
LABELS = nd.array([0, 1, 2, 1, 0])


def _network(hybrid: bool = True) -> nn.HybridSequential:
    mx.random.seed(3)
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(6, activation="relu", in_units=4), nn.Dense(3, in_units=6))
    net.initialize(mx.init.Xavier())
    if hybrid:
        net.hybridize()
        for _ in range(3):  # from the third run on there are formulas
            with autograd.record():
                net(X)
    return net


def _loss(hybrid: bool = True) -> gluon.loss.Loss:
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    if hybrid:
        loss.hybridize()
        for _ in range(3):
            with autograd.record():
                loss(X, nd.zeros(5))
    return loss


def _is_direct(array: nd.NDArray) -> bool:
    return hasattr(array._tracked.grad_fn, "is_chain")


def _gradients(net: nn.HybridSequential) -> list[np.ndarray]:
    return [p.grad().asnumpy().copy() for p in net.collect_params().values()]


def _eager(times: float = 1.0) -> list[np.ndarray]:
    net, loss = _network(False), _loss(False)
    with autograd.record():
        made = loss(net(X), LABELS)
    made.backward()
    return [g * times for g in _gradients(net)]


def _assert_equal(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_gradients_are_those_of_the_eager_network() -> None:
    net, loss = _network(), _loss()
    with autograd.record():
        out = net(X)
        made = loss(out, LABELS)
    assert _is_direct(out) and _is_direct(made)
    made.backward()
    _assert_equal(_gradients(net), _eager())


def test_the_engine_is_not_needed_for_a_network_and_its_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net, loss, wanted = _network(), _loss(), _eager()
    monkeypatch.setattr("mxnet.imperative.gradient.run_engine", None)
    with autograd.record():
        made = loss(net(X), LABELS)
    made.backward()
    _assert_equal(_gradients(net), wanted)


def test_an_eager_loss_on_a_hybridized_network() -> None:
    net, loss = _network(), _loss(False)
    with autograd.record():
        made = loss(net(X), LABELS)
    made.backward()
    _assert_equal(_gradients(net), _eager())


def test_gradients_are_written_into_the_arrays_that_users_hold() -> None:
    net, loss = _network(), _loss()
    held = [p.grad() for p in net.collect_params().values()]
    with autograd.record():
        made = loss(net(X), LABELS)
    made.backward()
    _assert_equal([h.asnumpy() for h in held], _eager())


def test_grad_req_add_sums_over_calls() -> None:
    net, loss = _network(), _loss()
    net.collect_params().setattr("grad_req", "add")
    net.collect_params().zero_grad()
    for _ in range(2):
        with autograd.record():
            made = loss(net(X), LABELS)
        assert _is_direct(made)
        made.backward()
    _assert_equal(_gradients(net), _eager(2.0))


def test_grad_req_null_leaves_a_parameter_alone() -> None:
    net, loss = _network(), _loss()
    net[0].weight.grad_req = "null"
    with autograd.record():
        made = loss(net(X), LABELS)
    made.backward()
    wanted = _eager()
    found = {p.name: p for p in net.collect_params().values()}
    np.testing.assert_allclose(found["net_dense1_weight"].grad().asnumpy(), wanted[2], rtol=1e-5)
    with pytest.raises(RuntimeError, match="grad_req='null'"):
        net[0].weight.grad()


def test_a_parameter_that_other_operators_read_gets_the_sum() -> None:
    net, loss = _network(), _loss()
    weight = net[0].weight.data()
    for order in (0, 1):
        with autograd.record():
            parts = [loss(net(X), LABELS).sum(), (weight * 3).sum()]
            total = parts[order] + parts[1 - order]
        total.backward()
        np.testing.assert_allclose(weight.grad.asnumpy(), _eager()[0] + 3, rtol=1e-5)


def test_a_network_that_is_called_twice_gets_both_gradients() -> None:
    net, loss = _network(), _loss()
    with autograd.record():
        total = loss(net(X), LABELS) + loss(net(X), LABELS)
    total.backward()
    _assert_equal(_gradients(net), _eager(2.0))


def test_an_input_gets_its_gradient() -> None:
    net, loss = _network(), _loss()
    wanted = []
    for hybrid in (False, True):
        x = X.copy()
        x.attach_grad()
        used = (_network(False), _loss(False)) if not hybrid else (net, loss)
        with autograd.record():
            made = used[1](used[0](x * 2), LABELS)
        made.backward()
        wanted.append(x.grad.asnumpy())
    np.testing.assert_allclose(wanted[1], wanted[0], rtol=1e-5, atol=1e-7)


def test_an_array_that_is_both_inputs_gets_both_gradients() -> None:
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    product = mx.nd.CachedOp(mx.sym.Variable("a") * mx.sym.Variable("b") * 3)
    for _ in range(5):
        with autograd.record():
            made = product(x, x)
        direct = _is_direct(made)
        made.backward()
    assert direct
    assert x.grad.asnumpy().tolist() == [6, 12]


def test_a_gradient_may_be_an_input() -> None:
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    product = mx.nd.CachedOp(mx.sym.Variable("a") * mx.sym.Variable("b") * 3)
    for _ in range(5):
        x.grad[:] = 5
        with autograd.record():
            made = product(x, x.grad)
        made.backward()
    assert x.grad.asnumpy().tolist() == [15, 15]


def test_a_second_backward_needs_retain_graph() -> None:
    net, loss = _network(), _loss()
    with autograd.record():
        out = net(X)
        first, second = loss(out, LABELS), loss(out, LABELS)
    first.backward(retain_graph=True)
    second.backward()
    _assert_equal(_gradients(net), _eager())
    with pytest.raises(mx.MXNetError, match="Cannot differentiate node"):
        first.backward()
    with pytest.raises(mx.MXNetError, match="Cannot differentiate node"):
        second.backward()


def test_grad_returns_gradients_and_stores_none() -> None:
    net, loss = _network(), _loss()
    net.collect_params().zero_grad()
    params = [p.data() for p in net.collect_params().values()]
    with autograd.record():
        made = loss(net(X), LABELS)
    found = autograd.grad(made, params)
    _assert_equal([g.asnumpy() for g in found], _eager())
    assert not any(g.any() for g in _gradients(net))


def test_gradients_can_be_differentiated_again() -> None:
    results = []
    for hybrid in (False, True):
        net, loss = _network(hybrid), _loss(hybrid)
        x = X.copy()
        x.attach_grad()
        with autograd.record():
            made = loss(net(x), LABELS)
            slope = autograd.grad(made, x, create_graph=True)[0]
            penalty = (slope * slope).sum()
        penalty.backward()
        results.append([x.grad.asnumpy(), *_gradients(net)[:1]])
    _assert_equal(results[1], results[0])


def test_an_input_that_changed_since_is_refused() -> None:
    net, loss = _network(), _loss()
    x = X.copy()
    with autograd.record():
        made = loss(net(x), LABELS)
    x[:] = 0
    with pytest.raises(mx.MXNetError, match="changed in place"):
        made.backward()


def test_a_step_between_two_backward_passes_is_fine() -> None:
    net, loss = _network(), _loss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    with autograd.record():
        made = loss(net(X), LABELS)
    made.backward(retain_graph=True)
    trainer.step(5)
    made.backward()
    trainer.step(5)


def test_other_watchers_of_a_gradient_still_see_it() -> None:
    net, loss = _network(), _loss()
    seen = []
    leaf = net[0].weight.data()._tracked
    handle = leaf.register_post_accumulate_grad_hook(lambda tensor: seen.append(tensor))
    with autograd.record():
        made = loss(net(X), LABELS)
    made.backward()
    handle.remove()
    assert len(seen) == 1
    _assert_equal(_gradients(net), _eager())


def test_labels_out_of_range_are_clipped() -> None:
    labels = nd.array([0, 7, -1, 1, -100])
    results = []
    for hybrid in (False, True):
        net, loss = _network(hybrid), _loss(hybrid)
        with autograd.record():
            made = loss(net(X), labels)
        made.backward()
        results.append([made.asnumpy(), *_gradients(net)])
    _assert_equal(results[1], results[0])


def test_an_error_names_the_layer() -> None:
    net = _network()
    with pytest.raises(mx.MXNetError, match="FullyConnected"), autograd.record():
        net(nd.ones((5, 9)))


def test_results_that_nobody_keeps_are_freed_at_once() -> None:
    net, loss = _network(), _loss()
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(o, direct_nodes._Node._backward_cls) for o in gc.get_objects())
        for _ in range(3):
            with autograd.record():
                loss(net(X), LABELS)
        after = sum(isinstance(o, direct_nodes._Node._backward_cls) for o in gc.get_objects())
    finally:
        gc.enable()
    assert after == before


def test_the_switch_turns_formulas_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_GRAPH_PASSES", "specialize")
    net = _network()
    with autograd.record():
        assert not _is_direct(net(X))
