"""Monitors and hooks combined with other features."""

from __future__ import annotations

import mxnet as mx
from mxnet import autograd, gluon, nd, sym
from tests.behavior.combinations import fill, ramp


def _network():
    hidden = sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc1")
    hidden = sym.Activation(sym.BatchNorm(hidden, name="bn"), act_type="relu", name="act")
    return sym.SoftmaxOutput(sym.FullyConnected(hidden, num_hidden=2, name="fc2"), name="softmax")


def _module(symbol, **options):
    module = mx.mod.Module(symbol, **options)
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.init_params(mx.init.Constant(0.1))
    return module


def _batch():
    return mx.io.DataBatch([ramp((4, 3))], [nd.array([0, 1, 1, 0])])


def monitor_of_a_module_in_training():
    module = _module(_network())
    monitor = mx.mon.Monitor(1, stat_func=lambda x: x.abs().sum().reshape((1,)), sort=True)
    module.install_monitor(monitor)
    module.init_optimizer(optimizer_params={"learning_rate": 0.1})
    rows = []
    for _ in range(2):
        monitor.tic()
        module.forward_backward(_batch())
        module.update()
        shown = [(name, float(text)) for _, name, text in monitor.toc()]
        rows.append([row for row in shown if "fc1_backward" not in row[0]])
    return rows


def monitor_with_pattern_and_interval():
    module = _module(_network())
    monitor = mx.mon.Monitor(2, pattern="fc.*")
    module.install_monitor(monitor)
    names = []
    for _ in range(4):
        monitor.tic()
        module.forward(_batch(), is_train=False)
        names.append([(step, name) for step, name, _ in monitor.toc()])
    return names


def monitor_all_in_inference():
    module = _module(_network(), fixed_param_names=["fc1_weight"])
    monitor = mx.mon.Monitor(1, monitor_all=True)
    module.install_monitor(monitor)
    monitor.tic()
    module.forward(_batch(), is_train=False)
    return [name for _, name, _ in monitor.toc()]


def monitor_of_a_bucketing_module():
    def generate(key):
        data = sym.var("data")
        out = sym.FullyConnected(data, num_hidden=2, flatten=True, name="fc")
        return (
            sym.SoftmaxOutput(sym.slice_axis(out, axis=1, begin=0, end=2), name="softmax"),
            ("data",),
            ("softmax_label",),
        )

    module = mx.mod.BucketingModule(generate, default_bucket_key=3)
    module.bind([("data", (2, 3))], [("softmax_label", (2,))])
    module.init_params(mx.init.One())
    monitor = mx.mon.Monitor(1, pattern=".*output")
    module.install_monitor(monitor)
    names = []
    for _ in range(2):
        batch = mx.io.DataBatch(
            [nd.ones((2, 3))],
            [nd.zeros(2)],
            bucket_key=3,
            provide_data=[("data", (2, 3))],
            provide_label=[("softmax_label", (2,))],
        )
        monitor.tic()
        module.forward(batch)
        names.append([name for _, name, _ in monitor.toc() if name.startswith("fc")])
    return names


def monitor_beside_a_custom_operator():
    class Double(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @mx.operator.register("combination_double")
    class DoubleProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Double()

    out = sym.Custom(sym.var("x") + 1, op_type="combination_double", name="double")
    executor = sym.exp(out, name="exp").simple_bind(mx.cpu(), x=(2,))
    rows = []
    executor.set_monitor_callback(lambda name, array: rows.append(mx.base.py_str(name)))
    executor.forward(is_train=True, x=nd.array([0, 0.5]))
    executor.backward(nd.ones(2))
    nd.waitall()
    return [rows[:3], executor.outputs, executor.grad_arrays]


def operator_hooks_of_a_hybridized_network():
    network = gluon.nn.HybridSequential(prefix="net_")
    with network.name_scope():
        network.add(gluon.nn.Dense(3, in_units=2, activation="tanh"), gluon.nn.Dropout(0.5))
        network.add(gluon.nn.Dense(1, in_units=3))
    network.initialize()
    fill(network.collect_params())
    network.hybridize()
    plain = network(ramp((2, 2)))
    rows = []
    network.register_op_hook(
        lambda name, operator, array: rows.append((mx.base.py_str(name), mx.base.py_str(operator)))
    )
    watched = network(ramp((2, 2)))
    nd.waitall()
    with autograd.record():
        network(ramp((2, 2)))
    nd.waitall()
    return [rows, plain, watched]


def hooks_of_blocks_stay_after_hybridize():
    network = gluon.nn.HybridSequential(prefix="net_")
    with network.name_scope():
        network.add(gluon.nn.Dense(3, in_units=2), gluon.nn.Dense(1, in_units=3))
    network.initialize()
    calls = []
    handle = network[0].register_forward_hook(lambda block, args, out: calls.append(block.name))
    network.register_forward_pre_hook(lambda block, args: calls.append(len(args)))
    network(nd.ones((1, 2)))
    network.hybridize()
    network(nd.ones((1, 2)))
    network(nd.ones((1, 2)))
    handle.detach()
    network.hybridize(False)
    network(nd.ones((1, 2)))
    return calls


def monitor_of_shared_executors():
    x = sym.var("x")
    out = sym.FullyConnected(x, num_hidden=2, name="fc")
    first = out.simple_bind(mx.cpu(), x=(4, 3))
    second = out.simple_bind(mx.cpu(), x=(2, 3), shared_exec=first)
    monitor = mx.mon.Monitor(1, pattern="fc_output")
    for executor in (first, second):
        executor.copy_params_from(
            {"fc_weight": ramp((2, 3)), "fc_bias": ramp((2,))}, allow_extra_params=True
        )
        monitor.install(executor)
    monitor.tic()
    first.forward(x=ramp((4, 3)))
    second.forward(x=ramp((2, 3)))
    return [(name, round(float(text), 4)) for _, name, text in monitor.toc()]


def hidden_outputs_in_hooks_of_training():
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            x = F.L2Normalization(F.Dropout(x, p=0.5, name="drop"), name="l2")
            return F.LayerNorm(x, F.ones(3, name="one"), F.zeros(3, name="zero"), name="ln")

    network = Net(prefix="net_")
    network.hybridize()
    network(ramp((2, 3)))
    rows = []
    network.register_op_hook(lambda name, *_: rows.append(mx.base.py_str(name)))
    with autograd.record():
        network(ramp((2, 3)) + 1)
    nd.waitall()
    return rows[-6:]
