"""Custom operators and functions in networks, with auxiliary states, `req` and other dtypes."""

from __future__ import annotations

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd, sym
from tests.behavior.combinations import error_of, fill, ramp


class _Scale(mx.operator.CustomOp):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * self.factor)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * self.factor)


@mx.operator.register("combination_scale")
class _ScaleProp(mx.operator.CustomOpProp):
    def __init__(self, factor="2"):
        super().__init__(need_top_grad=True)
        self.factor = float(factor)

    def create_operator(self, ctx, shapes, dtypes):
        return _Scale(self.factor)


class _Count(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        if is_train:
            aux[0][:] = aux[0] + 1
        self.assign(out_data[0], req[0], in_data[0] + in_data[1])
        self.assign(out_data[1], req[1], in_data[0] * in_data[1])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] + out_grad[1] * in_data[1])
        self.assign(in_grad[1], req[1], out_grad[0] + out_grad[1] * in_data[0])


@mx.operator.register("combination_count")
class _CountProp(mx.operator.CustomOpProp):
    def list_arguments(self):
        return ["a", "b"]

    def list_outputs(self):
        return ["sum", "product"]

    def list_auxiliary_states(self):
        return ["calls"]

    def infer_shape(self, shapes):
        return shapes, [shapes[0], shapes[0]], [(1,)]

    def create_operator(self, ctx, shapes, dtypes):
        return _Count()


class _Renamed(mx.operator.CustomOp):
    def forward(self, is_train, req, inputs, outputs, aux):
        self.assign(outputs[0], req[0], inputs[0])


@mx.operator.register("combination_renamed")
class _RenamedProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return _Renamed()

    def infer_shape(self, sizes):
        return sizes, [sizes[0]], []


def _backward_of(call, *arrays):
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        out = call(*arrays)
    out.backward()
    return [out, [array.grad for array in arrays]]


def methods_get_their_arguments_by_name():
    return error_of(lambda: nd.Custom(nd.ones(2), op_type="combination_renamed"))


def custom_operator_in_a_hybridized_block():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="net_")
            self.dense = gluon.nn.Dense(2, in_units=3, prefix="dense_")

        def hybrid_forward(self, F, x):
            return F.Custom(self.dense(x), op_type="combination_scale", factor=3) + 1

    network = Net()
    network.initialize()
    fill(network.collect_params())
    results = []
    for hybrid in (False, True):
        network.hybridize(hybrid)
        with autograd.record():
            out = network(ramp((2, 3)))
        out.backward()
        results.append([out, network.dense.weight.grad()])
    return results


def custom_operator_with_added_gradients():
    x = ramp((3,))
    x.attach_grad("add")
    for _ in range(3):
        with autograd.record():
            out = nd.Custom(x * 2, op_type="combination_scale")
        out.backward()
    return x.grad


def custom_operator_with_states_and_two_outputs():
    group = sym.Custom(sym.var("a"), sym.var("b"), op_type="combination_count", name="count")
    executor = (group[0] * group[1]).simple_bind(mx.cpu(), a=(3,), b=(3,))
    executor.aux_dict["count_calls"][:] = 0
    for train in (True, False, True):
        executor.forward(is_train=train, a=ramp((3,)), b=ramp((3,), 2))
        nd.waitall()
    executor.backward(nd.ones(3))
    return [group.list_outputs(), executor.outputs, executor.grad_arrays, executor.aux_arrays]


def custom_operator_in_a_module():
    out = sym.Custom(
        sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc"),
        op_type="combination_scale",
        factor=0.5,
    )
    module = mx.mod.Module(sym.SoftmaxOutput(out, name="softmax"))
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.init_params(mx.init.Constant(0.1))
    module.init_optimizer(optimizer_params={"learning_rate": 0.5, "momentum": 0.9})
    batch = mx.io.DataBatch([ramp((4, 3))], [nd.array([0, 1, 1, 0])])
    for _ in range(3):
        module.forward_backward(batch)
        module.update()
    return module.get_params()[0]


def custom_operator_of_a_view():
    x = ramp((4, 3))
    return _backward_of(lambda a: nd.Custom(a[1:3] * 2, op_type="combination_scale").sum(), x)


def custom_operator_of_float64():
    x = ramp((3,)).astype("float64")
    return _backward_of(lambda a: nd.Custom(a, op_type="combination_scale", factor=0.1), x)


def custom_operator_inside_foreach():
    def step(x, state):
        state = nd.Custom(state + x, op_type="combination_scale", factor=0.5)
        return state, state

    x = ramp((3, 2))
    x.attach_grad()
    with autograd.record():
        outputs, state = nd.contrib.foreach(step, x, nd.zeros(2))
        loss = outputs.sum() + state.sum()
    loss.backward()
    return [outputs, state, x.grad]


def function_inside_a_block_and_a_trainer():
    class Clip(autograd.Function):
        def forward(self, x):
            return x.clip(-0.2, 0.2)

        def backward(self, dy):
            return dy * 3

    class Net(gluon.Block):
        def __init__(self):
            super().__init__(prefix="net_")
            self.dense = gluon.nn.Dense(2, in_units=3, prefix="dense_")

        def forward(self, x):
            return Clip()(self.dense(x))

    network = Net()
    network.initialize()
    fill(network.collect_params())
    trainer = gluon.Trainer(network.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(2):
        with autograd.record():
            loss = (network(ramp((2, 3))) ** 2).sum()
        loss.backward()
        trainer.step(2)
    return network.dense.weight.data()


def custom_operator_with_an_unneeded_gradient():
    x, y = ramp((3,)), ramp((3,), 1)
    x.attach_grad()
    with autograd.record():
        out = nd.Custom(x, op_type="combination_scale") * y + nd.Custom(
            y, op_type="combination_scale"
        )
    out.backward()
    return [x.grad, y.grad is None]


def custom_operator_with_integers():
    x = nd.array(np.arange(4), dtype="int32")
    return nd.Custom(x, op_type="combination_scale", factor=2)
