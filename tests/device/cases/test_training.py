"""Training on devices: optimizers, stores, parameters, files, loaders and others."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.contrib import amp
from mxnet.gluon import nn
from mxnet.runtime.array import plain
from tests.batches import check_each
from tests.device.cases.comparing import assert_close, assert_on, compare, values

RNG = np.random.default_rng(0)
OPTIMIZERS = [
    *("sgd", "nag", "adam", "adamw", "adagrad", "adadelta", "adamax", "nadam", "rmsprop", "ftrl"),
    *("ftml", "signum", "lamb", "lars", "lans", "dcasgd", "sgld", "groupadagrad", "lbsgd"),
]
INITIALIZERS = ["zeros", "ones", "uniform", "normal", "xavier", "orthogonal", "msraprelu"]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_optimizers(dtype: str, last: mx.Context) -> None:
    """One by one and in lists, with a float32 copy of float16 weights."""
    known = mx.optimizer.Optimizer.opt_registry
    names = [name for name in OPTIMIZERS if name in known]
    assert len(names) > 15

    def check(name: str) -> None:
        def run(ctx: mx.Context) -> list:
            options = {"multi_precision": True} if dtype == "float16" else {}
            wd = 0.0 if name == "groupadagrad" else 0.01
            optimizer = mx.optimizer.create(name, learning_rate=0.05, wd=wd, **options)
            updater = mx.optimizer.get_updater(optimizer)
            rng = np.random.default_rng(0)
            weights = [
                nd.array(rng.standard_normal(shape), ctx=ctx, dtype=dtype)
                for shape in ((3, 4), (5, 4), (2, 4))
            ]
            for _ in range(2):
                grads = [(w * 0.5 + 0.1).astype(dtype) for w in weights]
                if optimizer.aggregate_num > 0:
                    updater([0, 1, 2], grads, weights)
                else:
                    for i, (grad, weight) in enumerate(zip(grads, weights, strict=True)):
                        updater(i, grad, weight)
            assert_on(ctx, *_arrays(updater.states))
            return weights

        if name == "sgld":  # it draws noise
            assert_on(last, *run(last))
            return
        compare(run, last, rtol=2e-3 if dtype == "float16" else 1e-4, atol=1e-3)

    check_each({name: name for name in names}, check)


def _arrays(state: Any) -> list:
    if isinstance(state, nd.NDArray):
        return [state]
    parts = state.values() if isinstance(state, dict) else state
    return (
        [a for part in parts for a in _arrays(part)]
        if isinstance(parts, list | tuple) or (isinstance(state, dict))
        else []
    )


def test_initializers(last: mx.Context) -> None:
    """Values are drawn on the CPU, so they are equal on all devices."""

    def check(name: str) -> None:
        def run(ctx: mx.Context) -> list:
            parameter = gluon.Parameter("weight", shape=(4, 6))
            parameter.initialize(name, ctx=ctx)
            return [parameter.data(ctx)]

        compare(run, last)

    check_each({name: name for name in INITIALIZERS}, check)


@pytest.mark.parametrize("kind", ["local", "device"])
def test_kvstore_over_cpu_and_devices(kind: str, two: list[mx.Context]) -> None:
    contexts = [mx.cpu(0), *two]
    store = mx.kv.create(kind)
    store.init("w", nd.zeros((2, 3)))
    store.push("w", [nd.ones((2, 3), ctx=ctx) * (i + 1) for i, ctx in enumerate(contexts)])
    outs = [nd.zeros((2, 3), ctx=ctx) for ctx in contexts]
    store.pull("w", outs)
    for ctx, out in zip(contexts, outs, strict=True):
        assert_on(ctx, out)
        assert out.asnumpy().tolist() == np.full((2, 3), 6.0).tolist()
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    store.pushpull("w", [nd.ones((2, 3), ctx=ctx) for ctx in contexts], out=outs)
    assert {float(o[0, 0].asscalar()) for o in outs} == {4.5}
    rows = mx.nd.sparse.row_sparse_array(([[1.0, 1, 1]], [1]), shape=(2, 3), ctx=two[1])
    store.init("s", mx.nd.zeros((2, 3)).tostype("row_sparse"))
    store.push("s", rows)
    pulled = mx.nd.sparse.zeros("row_sparse", (2, 3), ctx=two[0])
    store.row_sparse_pull("s", out=pulled, row_ids=nd.array([1], ctx=two[0]))
    assert_on(two[0], pulled)


def test_gradient_compression(two: list[mx.Context]) -> None:
    store = mx.kv.create("device")
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    store.init("w", nd.zeros(4))
    store.push("w", [nd.array([1, 0.2, -1, 0], ctx=ctx) for ctx in two])
    out = nd.zeros(4, ctx=two[1])
    store.pull("w", out)
    assert out.asnumpy().tolist() == [1, 0, -1, 0]


def test_parameters_on_several_devices(two: list[mx.Context], tmp_path: Path) -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="relu"), nn.BatchNorm(), nn.Dense(2))
    net.initialize(ctx=[mx.cpu(), *two])
    outs = [net(nd.ones((2, 3), ctx=ctx)) for ctx in (mx.cpu(), *two)]
    for ctx, out in zip((mx.cpu(), *two), outs, strict=True):
        assert_on(ctx, out)
        assert_close(values([out]), values(outs[:1]))
    net.save_parameters(str(tmp_path / "net.params"))
    net.collect_params().reset_ctx(two[1])
    assert_on(two[1], *(p.data() for p in net.collect_params().values()))
    assert_close(values([net(nd.ones((2, 3), ctx=two[1]))]), values(outs[:1]))
    net.collect_params().reset_ctx(two)
    net.load_parameters(str(tmp_path / "net.params"), ctx=two)
    for ctx in two:
        assert_on(ctx, net[0].weight.data(ctx), net[0].weight.grad(ctx))
    net.hybridize()
    for ctx in two:
        assert_close(values([net(nd.ones((2, 3), ctx=ctx))]), values(outs[:1]))
    net.export(str(tmp_path / "net"))
    back = gluon.SymbolBlock.imports(
        str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"), ctx=two[0]
    )
    assert_close(values([back(nd.ones((2, 3), ctx=two[0]))]), values(outs[:1]))


def test_arrays_saved_from_a_device(last: mx.Context, tmp_path: Path) -> None:
    """Files store the device; if it is missing, arrays load to the CPU."""
    path = str(tmp_path / "arrays")
    dense = nd.array([[1, 2]], ctx=last)
    sparse = dense.tostype("row_sparse")
    nd.save(path, {"dense": dense, "sparse": sparse})
    loaded = nd.load(path)
    for name, array in (("dense", dense), ("sparse", sparse)):
        assert loaded[name].asnumpy().tolist() == array.asnumpy().tolist()


def test_sync_batch_norm(two: list[mx.Context]) -> None:
    data = RNG.standard_normal((8, 3, 4)).astype("float32")

    def run(contexts: list[mx.Context]) -> list:
        layer = gluon.contrib.nn.SyncBatchNorm(num_devices=2)
        layer.initialize(ctx=contexts)
        xs = gluon.utils.split_and_load(nd.array(data), contexts)
        for x in xs:
            x.attach_grad()
        with autograd.record():
            outs = [layer(x) for x in xs]
            losses = [(o**2).sum() for o in outs]
        autograd.backward(losses)
        return [np.concatenate(values(outs)), np.concatenate(values([x.grad for x in xs]))]

    assert_close(run(two), run([mx.cpu(0), mx.cpu(1)]), rtol=1e-3, atol=1e-4)


def test_ctx_group_on_two_devices(two: list[mx.Context]) -> None:
    """`ctx_group`: one half of a network on each device."""
    with mx.AttrScope(ctx_group="first"):
        x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="one")
    with mx.AttrScope(ctx_group="second"):
        x = mx.sym.FullyConnected(mx.sym.Activation(x, act_type="tanh"), num_hidden=3, name="two")
        net = mx.sym.SoftmaxOutput(x, name="softmax")

    def run(first: mx.Context, second: mx.Context) -> list[np.ndarray]:
        exe = net.simple_bind(
            first, data=(2, 5), group2ctx={"first": first, "second": second}, grad_req="write"
        )
        rng = np.random.default_rng(0)
        for name, array in exe.arg_dict.items():
            array[:] = rng.standard_normal(array.shape) if name != "softmax_label" else 1
        exe.forward(is_train=True)
        exe.backward()
        assert_on(second, exe.outputs[0], exe.arg_dict["two_weight"], exe.grad_dict["two_weight"])
        assert_on(first, exe.arg_dict["one_weight"], exe.grad_dict["one_weight"])
        return values([*exe.outputs, *(exe.grad_dict[n] for n in sorted(exe.grad_dict))])

    assert_close(run(*two), run(mx.cpu(0), mx.cpu(0)))


def test_sparse_arrays(last: mx.Context) -> None:
    def run(ctx: mx.Context) -> list:
        with ctx:
            dense = nd.array([[0, 2, 0], [1, 0, 0], [0, 0, 3]])
            csr, rows = dense.tostype("csr"), dense.tostype("row_sparse")
            weight = nd.ones((5, 2))
            weight.attach_grad(stype="row_sparse")
            with autograd.record():
                out = nd.Embedding(
                    nd.array([1, 3, 1]), weight, input_dim=5, output_dim=2, sparse_grad=True
                )
            out.backward()
            kept = nd.sparse.retain(rows, nd.array([0, 2]))
            products = [nd.sparse.dot(csr, dense), nd.sparse.dot(csr, dense, transpose_a=True)]
            sums = [csr + csr, rows * 2, nd.sparse.add(rows, rows), csr[1:3], csr.astype("float64")]
            return [weight.grad, kept, *products, *sums, csr.tostype("default")]

    compare(run, last)


def test_sparse_embedding_with_a_trainer(two: list[mx.Context]) -> None:
    def train(contexts: list[mx.Context]) -> np.ndarray:
        layer = gluon.contrib.nn.SparseEmbedding(7, 3)
        layer.initialize(mx.init.One(), ctx=contexts)
        trainer = gluon.Trainer(layer.collect_params(), "sgd", {"learning_rate": 0.5})
        words = gluon.utils.split_and_load(nd.array([[1, 2], [2, 5]]), contexts)
        for _ in range(2):
            with autograd.record():
                losses = [(layer(w) ** 2).sum() for w in words]
            autograd.backward(losses)
            trainer.step(2)
        parameter = layer.collect_params()[layer.weight.name]
        rows = parameter.row_sparse_data(nd.arange(7, ctx=contexts[0]))
        return rows.asnumpy()

    assert_close([train(two)], [train([mx.cpu(0), mx.cpu(1)])])


def test_numpy_arrays(last: mx.Context) -> None:
    """`mx.np` uses the current context; results are on the device of the inputs."""
    with last:
        x = mx.np.arange(6).reshape(2, 3)
        made = [mx.np.zeros(2), mx.np.eye(3), mx.np.linspace(0, 1, 3), mx.np.random.uniform(size=3)]
        results = [x @ x.T, x[x > 2], mx.np.concatenate([x, x]), mx.np.where(x > 1, x, 0 * x)]
        results += [mx.np.linalg.norm(x), mx.np.cumsum(x), x.mean(axis=0), mx.np.unique(x)]
        x[0, 1:] = 7
    assert_on(last, x, *made, *results)
    assert (x.copyto(mx.cpu()).asnumpy() == [[0, 7, 7], [3, 4, 5]]).all()
    assert_on(mx.cpu(), mx.np.zeros(2), x.as_in_ctx(mx.cpu()))


def test_random_seed_for_all_or_one_device(two: list[mx.Context]) -> None:
    def draw(ctx: mx.Context) -> list:
        return nd.random.uniform(shape=3, ctx=ctx).asnumpy().tolist()

    mx.random.seed(5)
    first = [draw(ctx) for ctx in two]
    mx.random.seed(5)
    assert [draw(ctx) for ctx in two] == first
    mx.random.seed(7, ctx=two[1])
    second, other = draw(two[1]), draw(two[0])
    mx.random.seed(7, ctx=two[1])
    assert draw(two[1]) == second and draw(two[0]) != other
    with two[1]:
        kinds = (nd.random.normal, nd.random.gamma, nd.random.poisson, nd.random.exponential)
        drawn = [kind(shape=4) for kind in kinds]
        drawn += [nd.random.randint(0, 5, 4), nd.random.shuffle(nd.arange(4))]
        drawn += [nd.random.multinomial(nd.array([0.5, 0.5])), mx.np.random.normal(size=2)]
    assert_on(two[1], *drawn)


def test_dropout_mask_is_reproduced_by_recomputation(last: mx.Context) -> None:
    def gradient(recompute: bool) -> np.ndarray:
        net = nn.HybridSequential()
        for _ in range(4):
            net.add(nn.Dense(16, in_units=16, activation="tanh"), nn.Dropout(0.5))
        net.initialize(mx.init.One(), ctx=last)
        net.hybridize(recompute=recompute)
        x = nd.ones((2, 16), ctx=last) * 0.01
        x.attach_grad()
        mx.random.seed(3)
        with autograd.record():
            out = net(x)
        out.backward()
        return x.grad.asnumpy()

    np.testing.assert_allclose(gradient(True), gradient(False), rtol=1e-5)


def test_mixed_precision(last: mx.Context) -> None:
    """A converted network runs in half precision on the device, with loss scaling in training."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, in_channels=2), nn.BatchNorm(in_channels=4), nn.Dense(3))
    net.initialize(ctx=last)
    x = nd.random.normal(shape=(2, 2, 6, 6), ctx=last)
    right = net(x).asnumpy()
    net.hybridize()
    net(x)
    half = amp.convert_hybrid_block(net, "bfloat16", ctx=last)
    out = half(x)
    assert_on(last, out, *(p.data() for p in half.collect_params().values()))
    np.testing.assert_allclose(out.astype("float32").asnumpy(), right, rtol=0.1, atol=0.1)


AMP_PROGRAM = """
import numpy as np
from tests.device import second_device
second_device.ensure()
import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.contrib import amp
from tests.device.cases.comparing import assert_on

amp.init()
ctx = mx.gpu(mx.context.num_gpus() - 1)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Conv2D(4, 3), gluon.nn.BatchNorm(), gluon.nn.Dense(3))
net.initialize(ctx=ctx)
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
amp.init_trainer(trainer)
x = nd.random.normal(shape=(2, 2, 6, 6), ctx=ctx)
for hybrid in (False, True):
    if hybrid:
        net.hybridize()
    with autograd.record():
        loss = (net(x) ** 2).mean()
        with amp.scale_loss(loss, trainer) as scaled:
            scaled.backward()
    trainer.step(1)
    assert net(x).dtype == np.float16
    assert_on(ctx, net(x), *(p.data() for p in net.collect_params().values()))
print("trained")
"""


def test_training_in_mixed_precision() -> None:
    """`amp.init` changes a process permanently, so it runs in a subprocess."""
    answer = subprocess.run(
        [sys.executable, "-c", AMP_PROGRAM],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.stdout.strip() == "trained", answer.stderr[-3000:]


def test_dataloader_pins_memory(last: mx.Context) -> None:
    data = gluon.data.ArrayDataset(RNG.standard_normal((6, 3)).astype("float32"))
    for workers in (0, 1):
        loader = gluon.data.DataLoader(data, 2, pin_memory=True, num_workers=workers, timeout=60)
        for batch in loader:
            assert batch.context == mx.cpu_pinned()
            assert plain(batch).is_pinned() or not mx.accelerator.can_pin()
            assert_on(last, batch.as_in_context(last))


class Scale(mx.operator.CustomOp):
    """Multiplies by 3, in the user's Python."""

    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        assert in_data[0].context == out_data[0].context
        self.assign(out_data[0], req[0], in_data[0] * 3)

    def backward(
        self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any
    ) -> None:
        assert out_grad[0].context == in_grad[0].context == in_data[0].context
        self.assign(in_grad[0], req[0], out_grad[0] * 3)


@mx.operator.register("scale_on_device")
class ScaleProp(mx.operator.CustomOpProp):
    """Declares `Scale`."""

    def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Scale:
        assert str(ctx).startswith("gpu(")
        return Scale()


def test_custom_operators(last: mx.Context) -> None:
    x = nd.ones((2, 2), ctx=last)
    x.attach_grad()
    with autograd.record():
        out = nd.Custom(x, op_type="scale_on_device")
    out.backward(train_mode=False)
    assert_on(last, out, x.grad)
    exe = mx.sym.Custom(mx.sym.var("x"), op_type="scale_on_device").simple_bind(last, x=(2, 2))
    exe.arg_dict["x"][:] = 2
    exe.forward(is_train=True)
    exe.backward([nd.ones((2, 2), ctx=last)])
    assert exe.outputs[0].asnumpy().tolist() == [[6, 6], [6, 6]]
    assert_on(last, exe.outputs[0], exe.grad_dict["x"])


def test_autograd_function_backward_has_the_modes_of_its_thread(last: mx.Context) -> None:
    """Torch would run the backward of a device in a separate thread."""
    seen = []

    class Watching(autograd.Function):
        def forward(self, x: Any) -> Any:
            return x * 2

        def backward(self, dy: Any) -> Any:
            seen.append((type(dy), autograd.is_training(), mx.current_context()))
            return dy * 2

    x = mx.np.ones(2, ctx=last)
    x.attach_grad()
    with mx.util.np_array(True), mx.gpu(0):
        with autograd.record():
            y = Watching()(x)
        y.backward(train_mode=False)
    assert seen == [(mx.np.ndarray, False, mx.gpu(0))]


def test_profiler(last: mx.Context, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    mx.profiler.set_config(profile_all=True, filename=str(path), aggregate_stats=True)
    mx.profiler.set_state("run")
    nd.dot(nd.ones((4, 4), ctx=last), nd.ones((4, 4), ctx=last)).wait_to_read()
    mx.profiler.set_state("stop")
    assert "dot" in mx.profiler.dumps()
    mx.profiler.dump()
    assert json.loads(path.read_text())["traceEvents"]


def test_checkpoint_and_resume(last: mx.Context, tmp_path: Path) -> None:
    """Resumed training equals uninterrupted training, including random states."""
    net = mx.sym.Dropout(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=6, name="a"))
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3, name="b"), name="softmax")

    def train(epochs: list[int], folder: Path) -> list[np.ndarray]:
        for end in epochs:
            mx.random.seed(1)
            module = mx.mod.Module(net, context=last)
            batches = mx.io.NDArrayIter(X, Y, 4)
            module.fit(
                batches,
                num_epoch=end,
                initializer=mx.init.Constant(0.1),
                optimizer="adam",
                resume=str(folder),
            )
        return values(module.get_params()[0].values())

    X, Y = RNG.standard_normal((8, 5)).astype("float32"), RNG.integers(0, 3, 8)
    whole, parts = train([3], tmp_path / "whole"), train([1, 3], tmp_path / "parts")
    assert_close(parts, whole)


def test_all_module_classes_train(two: list[mx.Context], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    x, y = RNG.standard_normal((8, 5)).astype("float32"), RNG.integers(0, 3, 8)
    layer = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    net = mx.sym.SoftmaxOutput(layer, name="softmax")

    def sequential(ctx: Any) -> mx.mod.BaseModule:
        module = mx.mod.SequentialModule()
        hidden = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="hidden")
        module.add(mx.mod.Module(hidden, label_names=[], context=ctx))
        return module.add(mx.mod.Module(net, context=ctx), take_labels=True, auto_wiring=True)

    def svrg(ctx: Any) -> mx.mod.BaseModule:
        from mxnet.contrib.svrg_optimization.svrg_module import SVRGModule

        return SVRGModule(net, update_freq=2, context=ctx)

    def run(make: Any, ctx: Any) -> list[np.ndarray]:
        mx.random.seed(0)
        np.random.seed(0)  # noqa: NPY002 (the order of the iterator)
        module = make(ctx)
        batches = mx.io.NDArrayIter(x, y, 4)
        module.fit(batches, num_epoch=2, initializer=mx.init.Constant(0.1))
        return [
            module.predict(batches).asnumpy(),
            np.array(module.score(batches, "acc")[0][1]),
        ]

    for make in (sequential, svrg):
        assert_close(run(make, two), run(make, [mx.cpu(0), mx.cpu(1)]))
    with pytest.warns(DeprecationWarning, match="FeedForward"):
        model = mx.model.FeedForward(net, ctx=two, num_epoch=1, numpy_batch_size=4)
    model.fit(x, y)
    assert model.predict(x).shape == (8, 3)


def test_monitors_and_estimators(last: mx.Context) -> None:
    net = nn.Dense(3, in_units=5)
    net.initialize(ctx=last)
    data = gluon.data.DataLoader(gluon.data.ArrayDataset(
        RNG.standard_normal((8, 5)).astype("float32"), RNG.integers(0, 3, 8).astype("float32")
    ), 4)  # fmt: skip
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    from mxnet.gluon.contrib.estimator import Estimator

    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    estimator = Estimator(net, loss, mx.metric.Accuracy(), trainer=trainer, context=last)
    estimator.fit(data, data, epochs=1)
    monitor = mx.monitor.Monitor(1, pattern=".*weight")
    exe = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc").simple_bind(
        last, x=(2, 3)
    )
    monitor.install(exe)
    monitor.tic()
    exe.forward()
    assert [name for _, name, _ in monitor.toc()] == ["fc_weight"]


def test_onnx_and_torch_files(last: mx.Context, tmp_path: Path) -> None:
    """A network on a device exports the same files as on the CPU."""
    pytest.importorskip("onnx")
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=4))
    net.initialize(ctx=last)
    net.hybridize()
    x = nd.ones((2, 4), ctx=last)
    right = net(x).asnumpy()
    net.export(str(tmp_path / "net"))
    path = mx.onnx.export_model(
        str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0000.params"), [(2, 4)],
        onnx_file_path=str(tmp_path / "net.onnx"),
    )  # fmt: skip
    assert Path(path).stat().st_size
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: np.ones((2, 4), "float32")}
    np.testing.assert_allclose(session.run(None, feed)[0], right, rtol=1e-4)
    net.hybridize(backend="onnxruntime")
    assert_on(last, net(x))


def test_cpu_optimizations_are_off_on_devices(last: mx.Context) -> None:
    """No prepacked weights, no pointwise blocks, no oneDNN layouts."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, in_channels=4), nn.BatchNorm(in_channels=8), nn.Activation("relu"))
    net.add(nn.GlobalAvgPool2D(), nn.Dense(64, activation="relu"), nn.Dense(8))
    net.initialize(ctx=last)
    net.hybridize(static_alloc=True, static_shape=True)
    x = nd.ones((2, 4, 8, 8), ctx=last)
    for _ in range(30):  # until the graph is optimized
        out = net(x)
    assert_on(last, out)
    text = str(net.compiled(x))
    assert not any(word in text for word in ("pack_", "_fused_conv", "blocks", "channels_last"))
    chain = mx.sym.exp(mx.sym.tanh(mx.sym.var("x") * 2) + 1)
    exe = chain.simple_bind(last, x=(1024, 1024))
    exe.forward()
    assert_on(last, exe.outputs[0])
    if hasattr(torch.ops, "second_device"):
        names = torch.ops.second_device.operators()
        assert not [n for n in names if "mkldnn" in n or "onednn" in n or "quantized::" in n]


def test_memory_use_is_reported(last: mx.Context) -> None:
    index = last.device_id
    _, total = mx.context.gpu_memory_info(index)
    before = mx.accelerator.memory_use(index)[0]
    array = nd.zeros((1 << 20,), ctx=last)
    assert mx.accelerator.memory_use(index)[0] - before >= array.size * 4
    assert 0 < mx.context.gpu_memory_info(index)[0] <= total
    assert f"gpu({index}):" in mx.memory_summary()
    assert mx.util.get_gpu_memory(index)[1] == total
    last.empty_cache()
    with pytest.raises(mx.MXNetError, match=r"gpu\(99\)"):
        mx.context.gpu_memory_info(99)
    with pytest.raises(mx.MXNetError, match="this machine has"):
        nd.zeros(2, ctx=mx.gpu(99))


def test_mixing_arrays_of_different_devices_raises(two: list[mx.Context]) -> None:
    a, b = nd.ones(2, ctx=two[0]), nd.ones(2, ctx=two[1])
    for other in (b, nd.ones(2)):
        with pytest.raises(mx.MXNetError, match=r"input 0 is on gpu\(0\) and input 1 on .*\(\d\)"):
            a + other
    a[:] = b * 2  # writing copies
    assert a.asnumpy().tolist() == [2, 2]
    assert b.copyto(a) is a and a.asnumpy().tolist() == [1, 1]
    assert nd.add_n(a, b.as_in_context(two[0])).context == two[0]


def test_device_without_float64(monkeypatch: pytest.MonkeyPatch, last: mx.Context) -> None:
    """MPS has no float64: only explicit requests for it raise."""
    if not hasattr(torch.ops.second_device, "refuse"):
        pytest.skip("only the second device can refuse a type")
    kind = mx.context.torch_device(last).type
    monkeypatch.setattr(mx.accelerator, "_WITHOUT_FLOAT64", {kind})
    torch.ops.second_device.refuse("Double", True)
    try:
        for ask in (
            lambda: nd.zeros(2, ctx=last, dtype="float64"),
            lambda: nd.array([1.0], ctx=last, dtype="float64"),
            lambda: nd.ones(2, dtype="float64").as_in_context(last),
            lambda: nd.ones(2, ctx=last).astype("float64"),
        ):
            with pytest.raises(mx.MXNetError, match=r"float64|Double"):
                ask()
        metric = mx.metric.CompositeEvalMetric([mx.metric.create(m) for m in ("acc", "ce", "mae")])
        scores, labels = nd.softmax(nd.ones((4, 4), ctx=last)), nd.array([0, 1, 2, 3], ctx=last)
        for each in metric.metrics[:2]:
            each.update([labels], [scores])
            assert np.isfinite(each.get()[1])
        nd.random.multinomial(nd.array([0.2, 0.8], ctx=last), shape=3).asnumpy()
        net = nn.Dense(2, in_units=3)
        net.initialize(ctx=last)
        trainer = gluon.Trainer(net.collect_params(), "adam")
        with autograd.record():
            out = net(nd.ones((2, 3), ctx=last)).sum()
        out.backward()
        trainer.step(2)
    finally:
        torch.ops.second_device.refuse("Double", False)
