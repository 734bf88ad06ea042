"""Captured training steps: equal results, invalidation, and exclusions."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import mxnet as mx
from mxnet import nd
from mxnet.graph.node import Entry, Node, variable
from mxnet.ops.declare import Op
from mxnet.runtime.capture import kernels as capture
from mxnet.runtime.capture.kernels import ATTEMPTS, Capture


def _network() -> mx.sym.Symbol:
    data = mx.sym.Variable("data")
    hidden = mx.sym.FullyConnected(data, num_hidden=5, name="fc1")
    hidden = mx.sym.Activation(hidden, act_type="tanh")
    hidden = mx.sym.FullyConnected(hidden * 2 + 1, num_hidden=3, name="fc2")
    return mx.sym.SoftmaxOutput(hidden, name="softmax")


def _bind(symbol: mx.sym.Symbol, **shapes: tuple) -> mx.executor.Executor:
    executor = symbol.simple_bind(mx.cpu(), **shapes)
    for i, array in enumerate(executor.arg_arrays):
        values = np.random.RandomState(i).uniform(-1, 1, array.shape)
        array[:] = nd.array(values if array.ndim > 1 else np.arange(len(values)) % 3)
    return executor


def _step(executor: mx.executor.Executor, *out_grads: nd.NDArray) -> list[np.ndarray]:
    outputs = executor.forward(is_train=True)
    executor.backward(list(out_grads))
    return [a.asnumpy() for a in (*outputs, *executor.grad_arrays) if a is not None]


def _captured(executor: mx.executor.Executor, *out_grads: nd.NDArray) -> mx.executor.Executor:
    for _ in range(ATTEMPTS[0] + 1):
        _step(executor, *out_grads)
    assert executor._function.repetition._step is not None
    return executor


def _is_repeated(executor: mx.executor.Executor) -> bool:
    executor.forward(is_train=True)
    return executor._function.repetition.is_repeated


def test_captured_step_equals_first_step_bit_for_bit():
    captured, new = _captured(_bind(_network(), data=(4, 6))), _bind(_network(), data=(4, 6))
    for factor in (0.3, 2.0):
        for executor in (captured, new):
            executor.arg_dict["data"][:] = nd.array(np.arange(24).reshape(4, 6) * factor)
        for one, other in zip(_step(captured), _step(new), strict=True):
            np.testing.assert_array_equal(one, other)


def test_captured_steps_use_updated_parameters():
    captured, new = _captured(_bind(_network(), data=(4, 6))), _bind(_network(), data=(4, 6))
    for _ in range(3):
        results = []
        for executor in (captured, new):
            results.append(_step(executor))
            weight, grad = executor.arg_dict["fc1_weight"], executor.grad_dict["fc1_weight"]
            nd.sgd_update(weight, grad, lr=0.5, out=weight)
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)
        new = new.reshape(data=(4, 6))  # too few steps to capture


def test_captured_backward_uses_changed_arguments():
    x = mx.sym.Variable("x")
    executor = _captured(_bind(x * x * x, x=(2, 2)), nd.ones((2, 2)))
    executor.forward(is_train=True)
    executor.arg_dict["x"][:] = 2
    executor.backward([nd.ones((2, 2))])
    new = _bind(x * x * x, x=(2, 2))
    new.forward(is_train=True)
    new.arg_dict["x"][:] = 2
    new.backward([nd.ones((2, 2))])
    np.testing.assert_array_equal(executor.grad_arrays[0].asnumpy(), new.grad_arrays[0].asnumpy())


def test_replaced_arrays_do_not_replay_the_captured_step():
    executor = _captured(_bind(mx.sym.Variable("x") * 3, x=(2,)), nd.ones(2))
    executor.arg_arrays[0] = nd.array([5, 7])
    assert not _is_repeated(executor)
    assert executor.outputs[0].asnumpy().tolist() == [15, 21]


def test_captured_outputs_and_gradients_keep_their_memory():
    executor = _captured(_bind(mx.sym.Variable("x") * 3, x=(2,)), nd.ones(2))
    output, grad = executor.outputs[0], executor.grad_arrays[0]
    views = output[0:1], grad[0:1]
    executor.arg_arrays[0][:] = 4
    _step(executor, nd.array([6, 6]))
    assert [float(v.asscalar()) for v in views] == [12, 18]


def test_captured_steps_with_grad_req_add():
    x = mx.sym.Variable("x")
    grad = nd.zeros(2)
    executor = (x * 3).bind(mx.cpu(), {"x": nd.ones(2)}, {"x": grad}, "add")
    for count in range(1, 7):
        _step(executor, nd.ones(2))
        assert grad.asnumpy().tolist() == [3 * count] * 2


def test_second_backward_does_not_replay_the_captured_step():
    x = mx.sym.Variable("x")
    executor = _bind(mx.sym.Group([x * 2, mx.sym.make_loss(x * 5)]), x=(2,))
    ones = nd.ones(2)
    _captured(executor, ones)
    assert _is_repeated(executor)
    executor.backward([ones])
    assert executor.grad_arrays[0].asnumpy().tolist() == [7, 7]
    executor.backward([ones])
    assert executor.grad_arrays[0].asnumpy().tolist() == [7, 7]
    single = _captured(_bind(mx.sym.Group([x * 2, mx.sym.BlockGrad(x)]), x=(2,)), ones)
    assert _is_repeated(single)
    with pytest.raises(mx.MXNetError, match="no out_grad was given"):
        single.backward()
    assert _is_repeated(single)
    single.backward([ones], is_train=False)
    assert single.grad_arrays[0].asnumpy().tolist() == [2, 2]


def test_captured_backward_with_non_contiguous_head_gradients():
    executor = _captured(_bind(mx.sym.Variable("x") * 3, x=(2, 3)), nd.ones((2, 3)))
    columns = nd.from_torch(torch.arange(6.0).reshape(3, 2)).T
    executor.forward(is_train=True)
    executor.backward([columns])
    assert executor.grad_arrays[0].asnumpy().tolist() == (columns.asnumpy() * 3).tolist()


def test_captured_steps_are_not_replayed_while_monitored():
    executor = _captured(_bind(_network(), data=(4, 6)))
    for scope in (
        mx.autograd.detect_anomaly(),
        torch.autocast("cpu"),
        FlopCounterMode(display=False),
    ):
        with scope:
            assert not _is_repeated(executor)
    seen = []
    executor.set_monitor_callback(lambda name, array: seen.append(name))
    assert not _is_repeated(executor)
    assert b"fc1_output" in seen


def test_captured_steps_are_not_replayed_with_different_np_shape():
    executor = _captured(_bind(mx.sym.Variable("x") * 3, x=(2,)), nd.ones(2))
    with mx.np_shape(True):
        assert not _is_repeated(executor)
    assert _is_repeated(executor)


def test_capture_attempts_of_forward_without_backward_are_bounded(monkeypatch):
    watched = []
    monkeypatch.setattr(Capture, "watching", _counted(Capture.watching, watched))
    executor = _bind(mx.sym.Variable("x") * 3, x=(2,))
    for _ in range(ATTEMPTS[0]):
        _step(executor, nd.ones(2))
    for _ in range(50):
        executor.forward(is_train=True)
    assert len(watched) == 1


def _counted(method, calls):
    def counted(self):
        calls.append(self)
        return method(self)

    return counted


def test_steps_that_read_values_on_the_host_are_not_captured():
    def read_values(data: torch.Tensor) -> torch.Tensor:
        return data * 2 if data.detach().numpy().flat[0] > 0 else data * 1

    reader = Op(
        read_values, ("reader",), repeatable=True, shape=lambda ins, outs, attrs: (ins, ins)
    )
    node = Node(reader, "reader", {}, [Entry(variable("x"))])
    executor = _bind(mx.sym.Symbol([Entry(node)]), x=(2, 2))
    for _ in range(ATTEMPTS[-1] + 3):
        _step(executor, nd.ones((2, 2)))
    assert executor._function.repetition._step is None
    executor.arg_arrays[0][:] = -3
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == [[-3, -3], [-3, -3]]


def test_random_numbers_and_large_steps_are_not_captured(monkeypatch):
    dropout = _bind(mx.sym.Dropout(mx.sym.Variable("x"), p=0.5), x=(8,))
    for _ in range(5):
        _step(dropout, nd.ones(8))
    assert dropout._function.repetition._step is None
    monkeypatch.setattr(capture, "MAX_BYTES", 100)
    large = _bind(mx.sym.Variable("x") * 3 + 1, x=(64,))
    for _ in range(5):
        _step(large, nd.ones(64))
    assert large._function.repetition._step is None
    assert _step(large, nd.ones(64))[1].tolist() == [3.0] * 64


def test_captured_steps_free_saved_tensors_after_backward():
    executor = _captured(_bind(mx.sym.tanh(mx.sym.tanh(mx.sym.Variable("x"))), x=(3,)), nd.ones(3))
    executor.forward(is_train=True)
    saved = [weakref.ref(t) for t in executor._function.repetition._saved]
    executor.backward([nd.ones(3)])
    executor.release_outputs()
    assert [r() for r in saved] == [None] * len(saved)


def test_errors_of_captured_steps_name_the_node():
    x, i = mx.sym.Variable("x"), mx.sym.Variable("i")
    executor = _bind(mx.sym.dot(x, i, name="product") + 1, x=(2, 3), i=(3, 2))
    _captured(executor, nd.ones((2, 2)))

    def fail(feed):
        raise RuntimeError("out of luck")

    repetition = executor._function.repetition
    functions = repetition._step.functions._replace(forward=fail)
    repetition._step = repetition._step._replace(functions=functions)
    _step(executor, nd.ones((2, 2)))  # the program itself runs
    assert executor._function.repetition._step is None
