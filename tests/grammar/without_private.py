"""A program that needs every part of torch's private API, run without each of them in turn.

Run ``python -m tests.grammar.without_private FILE``. Torch is imported once; each run is a fork
that imports mxnet anew. FILE receives the results of all runs.
"""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # noqa: F401 (imported before the forks)
import torch

Results = dict[str, Any]


def gradients() -> Results:
    """Leaves, views, freed graphs, accumulated gradients and zeros."""
    import mxnet as mx

    x = mx.nd.array([[1.0, 2.0], [3.0, 4.0]])
    x.attach_grad("add")
    state = mx.nd.ones((2, 2))
    for _ in range(2):  # the second step continues from a freed graph
        with mx.autograd.record():
            state = mx.nd.tanh(mx.nd.dot(state, x))
            loss = (state[0:1] * x[1:2].reshape((1, 2))).sum()
        loss.backward(retain_graph=True)
        loss.backward()
    try:
        loss.backward()
        second = "no error"
    except mx.base.MXNetError as error:
        second = str(error)
    y = mx.nd.array([1.0, 2.0])
    y.attach_grad()
    with mx.autograd.record():
        z = (y**3).sum()
        first = mx.autograd.grad(z, [y], create_graph=True)[0].sum()
    first.backward()
    norm = mx.gluon.utils.clip_global_norm([x.grad.copy(), y.grad.copy()], 1.0)
    finite = mx.nd.multi_all_finite(x, y, num_arrays=2)
    return {"x": x.grad, "y": y.grad, "second": second, "norm": norm, "finite": finite}


def training() -> Results:
    """Networks trained by Gluon and by Module, one of them with captured steps."""
    import mxnet as mx

    results: Results = {}
    for name in ("sgd", "adam", "lamb"):
        mx.random.seed(1)
        net = mx.gluon.nn.HybridSequential()
        # A bias before a BatchNorm would get only rounding errors as gradient.
        net.add(mx.gluon.nn.Conv2D(4, 3, use_bias=False), mx.gluon.nn.BatchNorm())
        net.add(mx.gluon.nn.LeakyReLU(0.1), mx.gluon.nn.AvgPool2D(), mx.gluon.nn.Dense(200))
        net.initialize(mx.init.Xavier())
        net.hybridize()
        trainer = mx.gluon.Trainer(net.collect_params(), name, {"learning_rate": 0.01})
        data = mx.nd.arange(2 * 3 * 100).reshape((2, 3, 10, 10)) / 600
        loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
        for _ in range(4):
            with mx.autograd.record():
                value = loss(net(data), mx.nd.array([1, 2]))
            value.backward()
            trainer.step(2)
        results[name] = value
        results |= {f"{name} {i}": p.data() for i, p in enumerate(net.collect_params().values())}
    return results | module()


def module() -> Results:
    """Five steps of a small Module; the last ones are captured."""
    import mxnet as mx

    hidden = mx.sym.Activation(
        mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=8), act_type="relu"
    )
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(hidden, num_hidden=3), name="softmax")
    one = mx.mod.Module(net)
    one.bind([("data", (4, 5))], [("softmax_label", (4,))])
    one.init_params(mx.init.One())
    one.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    for step in range(5):
        data = mx.nd.arange(20).reshape((4, 5)) / (step + 20)
        batch = mx.io.DataBatch([data], [mx.nd.array([0, 1, 2, step % 3])])
        one.forward_backward(batch)
        one.update()
    return {f"module {name}": value for name, value in one.get_params()[0].items()}


def prediction() -> Results:
    """Layers with packed weights, 8-bit layers, recurrent layers."""
    import mxnet as mx

    mx.random.seed(2)
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(32, 3, padding=1, in_channels=32, activation="relu"))
    net.add(mx.gluon.nn.BatchNorm(in_channels=32), mx.gluon.nn.Flatten())
    net.add(mx.gluon.nn.Dense(64, in_units=32 * 32 * 32))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    data = mx.nd.arange(8 * 32 * 32 * 32).reshape((8, 32, 32, 32)) / 1e6
    results: Results = {f"packed {i}": net(data) for i in range(3)}
    for parameter in (net[0].weight, net[3].weight):  # packed weights are stale now
        parameter.set_data(parameter.data() * 2)
    results["changed"] = net(data)
    layer = mx.gluon.rnn.LSTM(6, input_size=4)
    layer.initialize(mx.init.One())
    results["lstm"] = layer(mx.nd.ones((3, 2, 4)))
    batches = mx.io.NDArrayIter(data, batch_size=8)
    quantized = mx.contrib.quantization.quantize_net(
        net, calib_data=batches, calib_mode="naive", quantized_dtype="uint8"
    )
    results["int8"] = quantized(data)
    return results


def operators() -> Results:
    """Operators whose kernels torch has no public name for."""
    import mxnet as mx

    data = mx.nd.arange(2 * 36).reshape((1, 2, 6, 6)) % 7
    data.attach_grad()
    rois = mx.nd.array([[0, 0, 0, 3, 3], [0, 1, 1, 5, 5], [0, 5, 5, 9, 9]])
    with mx.autograd.record():
        pooled = mx.nd.ROIPooling(data, rois, pooled_size=(2, 2), spatial_scale=1.0)
    pooled.backward()
    mx.random.seed(3)
    drawn = mx.nd.random.gamma(2.0, 3.0, shape=(5,))
    view = mx.nd.array([1.0, 2.0, 3.0])[1:]
    copy = mx.nd.identity(view)
    copy += 1
    arrays = [mx.nd.ones(2), mx.nd.ones(3)]
    mx.nd.reset_arrays(*arrays, num_arrays=2)
    squares = mx.nd.multi_sum_sq(mx.nd.array([3.0, 4.0]), view, num_arrays=2)
    return {
        "pooled": pooled, "pooled grad": data.grad, "gamma": drawn, "view": view, "copy": copy,
        "reset": arrays[0], "squares": squares,
        "threads": mx.nd.ones(2) * 1.5 + 2.5,
    }  # fmt: skip


def surroundings() -> Results:
    """The profiler, custom operators, torch's modules and data loaders."""
    import mxnet as mx

    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @mx.operator.register("twice")
    class TwiceProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Twice()

    x = mx.nd.array([1.0, 2.0])
    x.attach_grad()
    mx.profiler.set_config(profile_all=True, filename=os.devnull, aggregate_stats=True)
    mx.profiler.set_state("run")
    with mx.autograd.record():
        y = mx.nd.Custom(mx.nd.relu(x), op_type="twice").sum()
    y.backward()
    mx.profiler.set_state("stop")
    block = mx.gluon.nn.TorchBlock(torch.nn.Linear(2, 1, bias=False))
    block.module.weight.data.fill_(1)
    block.initialize()
    batches = mx.gluon.data.DataLoader(
        mx.gluon.data.ArrayDataset(np.arange(6.0), np.arange(6.0)), batch_size=3, num_workers=1
    )
    parts = [part for batch in batches for part in batch]
    return {
        "custom": x.grad, "torch": block(mx.nd.ones((1, 2))), "parts": mx.nd.concat(*parts, dim=0)
    }  # fmt: skip


PROGRAMS: tuple[Callable[[], Results], ...] = (
    gradients,
    training,
    prediction,
    operators,
    surroundings,
)


def run() -> Results:
    """Return the results of all programs as NumPy arrays and text."""
    results: Results = {}
    for program in PROGRAMS:
        for name, value in program().items():
            values = value if isinstance(value, list | tuple) else [value]
            for i, each in enumerate(values):
                shown = each.asnumpy() if hasattr(each, "asnumpy") else each
                results[f"{program.__name__}: {name} {i}"] = shown
    return results


def run_in_fork(name: str, answer: int) -> None:
    """Run without a part, and write the results, and which parts were not used."""
    os.environ["MXNET_WITHOUT_TORCH_PRIVATE"] = name
    warnings.simplefilter("ignore")
    from mxnet import torch_private

    results = run()
    parts = list(torch_private.PARTS), dict(torch_private.UNAVAILABLE)
    with os.fdopen(answer, "wb") as file:
        pickle.dump((results, parts), file)


def collect(name: str) -> Any:
    """Return what a fork wrote."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            run_in_fork(name, writing)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        data = file.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None


def main(path: str) -> None:
    """Run with all parts, without each of them, and without any."""
    answers = {"": collect("")}
    parts = answers[""][1][0]
    for name in (*parts, "all"):
        answers[name] = collect(name)
    Path(path).write_bytes(pickle.dumps(answers))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1])
