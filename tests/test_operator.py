"""Custom operators in Python, eager and in graphs, and the legacy classes."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, nd
from tests.arrays import backward, check, ones


class Scale(mx.operator.CustomOp):
    def __init__(self, factor):
        self.factor, self.calls = factor, 0

    def forward(self, is_train, req, in_data, out_data, aux):
        self.calls += 1
        self.assign(out_data[0], req[0], in_data[0] * self.factor)
        self.assign(out_data[1], req[1], in_data[0] + is_train)
        if is_train:
            aux[0][:] += 1

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * self.factor + out_grad[1])


@mx.operator.register("test_scale")
class ScaleProp(mx.operator.CustomOpProp):
    def __init__(self, factor="1"):
        super().__init__(need_top_grad=True)
        self.factor = float(factor)

    def list_outputs(self):
        return ["scaled", "other"]

    def list_auxiliary_states(self):
        return ["count"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0], in_shape[0]], [[1]]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        assert ctx == mx.cpu() and in_dtypes == [np.float32]
        return Scale(self.factor)


def test_custom_operator_on_arrays():
    x, count = nd.array([1.0, 2.0]), nd.zeros(1)
    x.attach_grad()
    with mx.autograd.record():
        scaled, other = nd.Custom(x, count, op_type="test_scale", factor=3)
        loss = scaled.sum() + 10 * other.sum()
    loss.backward()
    np.testing.assert_array_equal(scaled.asnumpy(), [3, 6])
    np.testing.assert_array_equal(other.asnumpy(), [2, 3])
    np.testing.assert_array_equal(x.grad.asnumpy(), [13, 13])
    assert count.asscalar() == 1


def test_custom_operator_in_a_graph():
    symbol = mx.sym.Custom(data=mx.sym.var("x"), op_type="test_scale", factor=2, name="s")
    assert symbol.list_arguments() == ["x"]
    assert symbol.list_auxiliary_states() == ["s_count"]
    assert symbol.list_outputs() == ["s_scaled", "s_other"]
    symbol = mx.sym.load_json(symbol.tojson())
    executor = symbol.simple_bind(mx.cpu(), x=(2,))
    executor.arg_dict["x"][:] = 5
    for step in range(3):
        outs = executor.forward(is_train=True)
        executor.backward([nd.ones(2), nd.zeros(2)])
        assert executor.aux_dict["s_count"].asscalar() == step + 1
    np.testing.assert_array_equal(outs[0].asnumpy(), [10, 10])
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), [2, 2])


def test_bound_graph_creates_one_operator_object():
    made = []

    class CountingProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            made.append(1)
            return mx.operator.CustomOp.__new__(Copy)

    class Copy(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0])

    mx.operator.register("test_counting")(CountingProp)
    executor = mx.sym.Custom(mx.sym.var("x"), op_type="test_counting").simple_bind(mx.cpu(), x=(2,))
    for is_train in (True, False, True):
        executor.forward(is_train=is_train)
    assert len(made) == 1


class Softmax(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1).reshape((x.shape[0], 1)))
        y /= y.sum(axis=1).reshape((x.shape[0], 1))
        self.assign(out_data[0], req[0], nd.array(y))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        labels = in_data[1].asnumpy().ravel().astype(int)
        y = out_data[0].asnumpy()
        y[np.arange(labels.shape[0]), labels] -= 1.0
        self.assign(in_grad[0], req[0], nd.array(y))


@mx.operator.register("test_softmax")
class SoftmaxProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return Softmax()


def test_custom_softmax_equals_softmax_output():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc")
    values = nd.random.normal(shape=(3, 5))
    found = []
    for head in (
        mx.sym.Custom(data=net, name="softmax", op_type="test_softmax"),
        mx.sym.SoftmaxOutput(net, name="softmax"),
    ):
        assert head.list_arguments() == ["data", "fc_weight", "fc_bias", "softmax_label"]
        executor = head.simple_bind(mx.cpu(), data=(3, 5))
        executor.copy_params_from({"fc_weight": nd.ones((4, 5)) * 0.1, "data": values})
        executor.arg_dict["fc_bias"][:] = nd.arange(4)
        executor.arg_dict["softmax_label"][:] = nd.array([0, 1, 2])
        executor.forward(is_train=True)
        executor.backward()
        found.append((executor.outputs[0].asnumpy(), executor.grad_dict["fc_weight"].asnumpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4, atol=1e-6)


def test_assign_respects_req():
    x = nd.ones(2)
    for req, wanted in (("null", 1), ("write", 5), ("add", 10), ("inplace", 5)):
        mx.operator.CustomOp().assign(x, req, nd.full(2, 5))
        assert x[0].asscalar() == wanted


def test_exceptions_in_custom_operators_keep_their_cause():
    class Bad(mx.operator.CustomOp):
        def forward(self, *args, **kwargs):
            raise KeyError("boom")

    @mx.operator.register("test_bad")
    class BadProp(mx.operator.CustomOpProp):
        def create_operator(self, *args):
            return Bad()

    with pytest.raises(mx.MXNetError, match="'test_bad', forward: KeyError: 'boom'") as caught:
        nd.Custom(nd.ones(2), op_type="test_bad")
    assert isinstance(caught.value.__cause__, KeyError)


def test_unknown_custom_operator_suggests_a_name():
    with pytest.raises(mx.MXNetError, match=r"Cannot find custom operator.*'test_scale'"):
        nd.Custom(nd.ones(2), op_type="test_scal")


def test_wrong_number_of_inputs_raises():
    with pytest.raises(mx.MXNetError, match="expects 2 inputs"):
        nd.Custom(nd.ones(2), op_type="test_scale")


class Tile(mx.operator.NumpyOp):
    def __init__(self, tiles):
        super().__init__(False)
        self.tiles = tiles

    def list_arguments(self):
        return ["input"]

    def infer_shape(self, in_shape):
        return [in_shape[0]], [in_shape[0] + [self.tiles]]

    def forward(self, in_data, out_data):
        out_data[0][:] = in_data[0][..., None]

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = out_grad[0].sum(axis=-1)


def test_legacy_numpy_op():
    symbol = Tile(tiles=10)(input=mx.sym.var("data"), name="tileop")
    assert symbol.list_outputs() == ["tileop_output"]
    assert symbol.infer_shape(data=(2, 3)) == ([(2, 3)], [(2, 3, 10)], [])
    executor = symbol.simple_bind(mx.cpu(), data=(2, 3))
    executor.arg_dict["data"][:] = 4
    assert executor.forward(is_train=True)[0].asnumpy().min() == 4
    executor.backward(nd.ones((2, 3, 10)))
    assert executor.grad_dict["data"].asnumpy().min() == 10


class Double(mx.operator.NDArrayOp):
    def forward(self, in_data, out_data):
        out_data[0][:] = in_data[0] * 2

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = out_grad[0] * 2


def test_legacy_ndarray_op():
    executor = Double()(mx.sym.var("data")).simple_bind(mx.cpu(), data=(3,))
    executor.arg_dict["data"][:] = 1
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == [2, 2, 2]
    executor.backward(nd.ones(3))
    assert executor.grad_dict["data"].asnumpy().tolist() == [2, 2, 2]


def test_get_all_registered_operators_and_their_arguments():
    assert "Convolution" in mx.operator.get_all_registered_operators()
    assert mx.operator.get_operator_arguments("Flatten").names == ["data"]


@pytest.mark.parametrize("train_mode", [True, False])
def test_backward_of_custom_operators_has_the_requested_mode(train_mode):
    seen = []

    class Watching(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            seen.append(mx.autograd.is_training())
            self.assign(in_grad[0], req[0], out_grad[0])

    @mx.operator.register("watching_its_mode")
    class WatchingProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Watching()

    x = mx.nd.ones((2,))
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Custom(x, op_type="watching_its_mode")
    y.backward(train_mode=train_mode)
    assert seen == [train_mode] and not mx.autograd.is_training()


def test_get_operator_arguments_describes_types_and_defaults():
    found = mx.operator.get_operator_arguments("Activation")
    assert found.types == [
        "NDArray-or-Symbol",
        "{'relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'}, required",
    ]
    found = mx.operator.get_operator_arguments("FullyConnected")
    assert found.types[3:] == [
        "int, required",
        "boolean, optional, default=0",
        "boolean, optional, default=1",
    ]
    assert mx.operator.get_operator_arguments("Concat").names == ["data", "num_args", "dim"]


class Overwrite(mx.operator.CustomOp):
    """Doubles its input, and overwrites it, in forward and in backward."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2)
        in_data[0][:] = 0.5

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        in_data[0][:] = 0.25
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("test_overwrite")
class OverwriteProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Overwrite()


# What MXNet 1.9.1 gives for x = [-1, 2, 3] and the gradient of Custom(f(x)) + f(x).
OVERWRITTEN = {
    "sigmoid": ([1.0378828, 2.261594, 2.4051483], [0.375, 0.375, 0.375]),
    "square": ([2.5, 8.5, 18.5], [-4, 8, 12]),
    "relu": ([0.5, 4.5, 6.5], [2, 2, 2]),
    "exp": ([1.2357589, 15.278112, 40.671074], [0.5, 0.5, 0.5]),
}


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_backward_uses_inputs_modified_by_custom_operators(name):
    x = nd.array([-1.0, 2.0, 3.0])
    x.attach_grad()
    with mx.autograd.record():
        between = getattr(nd, name)(x)
        y = nd.Custom(between, op_type="test_overwrite") + between
    y.backward()
    between = getattr(mx.sym, name)(mx.sym.var("x"))
    symbol = mx.sym.Custom(between, op_type="test_overwrite") + between
    executor = symbol.bind(mx.cpu(), {"x": x}, {"x": nd.zeros(3)})
    executor.forward(is_train=True)
    executor.backward(nd.ones(3))
    outputs, gradient = OVERWRITTEN[name]
    for found, expected in (
        (y, outputs),
        (x.grad, gradient),
        (executor.outputs[0], outputs),
        (executor.grad_dict["x"], gradient),
    ):
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)


@mx.operator.register("state_times_ten")
class TimesTenProp(mx.operator.CustomOpProp):
    """A custom operator that writes to its head gradient."""

    def create_operator(self, ctx, shapes, dtypes):
        class Operator(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], in_data[0] + 1)

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                out_grad[0][:] = out_grad[0] * 10
                self.assign(in_grad[0], req[0], out_grad[0])

        return Operator()


def test_custom_operator_can_write_to_its_head_gradient():
    x, w, head = ones(4), ones(4), nd.ones((4,))

    def branches():
        a = x * 1
        return nd.Custom(a, op_type="state_times_ten") + a

    backward(branches)
    check(x.grad, 11)
    backward(lambda: w * 2)
    check(w.grad, 2)
    with autograd.record():
        y = nd.Custom(x, op_type="state_times_ten") * 1
    y.backward(head)
    check(x.grad, 10)
    check(head, 1)


def test_gradients_of_custom_operators_are_written_in_place():
    x = ones(4)
    view = x.grad.reshape((2, 2))
    backward(lambda: nd.Custom(x, op_type="state_times_ten") * 1)
    check(view, 10)
    view[:] = 0
    check(x.grad, 0)
