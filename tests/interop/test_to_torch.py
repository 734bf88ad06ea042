"""Models as torch modules: equal outputs, parameter names, generated code."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import pytest
import torch
from mxnet.convert import UnsupportedTorch

import mxnet as mx
from mxnet.interop.torch_rows import TORCH_ROWS
from mxnet.ops import registry
from tests import without_mxnet
from tests.golden.record.zoo_cases import SEEN
from tests.interop.onnx.running import relative_error
from tests.without_mxnet import forked_conversions  # noqa: F401

pytestmark = pytest.mark.usefixtures("forked_conversions")
WITHOUT_US = """
import sys
sys.modules["mxnet"] = None  # an import would fail
import numpy, torch
program = torch.export.load(sys.argv[1])
data = torch.from_numpy(numpy.load(sys.argv[2]))
numpy.save(sys.argv[3], program.module()(data).detach().numpy())
"""


def _net() -> mx.gluon.HybridBlock:
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(4, 3, activation="relu"), nn.BatchNorm(), nn.MaxPool2D())
        net.add(nn.LeakyReLU(0.1), nn.Dropout(0.5), nn.GlobalAvgPool2D(), nn.Dense(3))
    net.initialize(mx.init.Normal(0.5))
    net(mx.nd.ones((1, 2, 8, 8)))
    return net


def test_state_dict_names_equal_those_of_save_parameters() -> None:
    net = _net()
    module = net.to_torch()
    places = set(net._collect_params_with_prefix())
    assert set(module.state_dict()) == places
    assert {n for n, _ in module.named_buffers()} == {"1.running_mean", "1.running_var"}


def test_generated_code_uses_torch_functions_and_any_batch_size() -> None:
    net = _net()
    module = net.to_torch(shapes=[(1, 2, 8, 8)])
    for word in ("torch.conv2d", "batch_norm", "max_pool2d", "leaky_relu", "linear"):
        assert word in module.code
    assert "aten" not in module.code
    data = mx.nd.random.normal(shape=(5, 2, 8, 8))
    found = module(torch.from_numpy(data.asnumpy())).detach().numpy()
    assert relative_error(found, net(data).asnumpy()) < 1e-6


@pytest.mark.parametrize("name", ["resnet18_v1", "mobilenetv2_0.25", "squeezenet1.1"])
def test_zoo_models_convert_to_torch(name: str) -> None:
    net = mx.gluon.model_zoo.vision.get_model(name, classes=5)
    net.initialize(mx.init.Xavier())
    size = 224 if name.startswith("squeezenet") else 64
    data = mx.nd.random.normal(shape=(1, 3, size, size))
    wanted = net(data).asnumpy()
    module = net.to_torch(shapes=[data.shape])
    found = module(torch.from_numpy(data.asnumpy())).detach().numpy()
    assert relative_error(found, wanted) < 1e-5


def test_recurrent_layers_have_unpacked_torch_weights() -> None:
    """The packed vector is split under torch's names."""
    layer = mx.gluon.rnn.LSTM(5, 2, bidirectional=True, prefix="lstm_")
    layer.initialize()
    layer.hybridize()
    data = mx.nd.random.normal(shape=(4, 2, 3))
    wanted = layer(data).asnumpy()
    module = layer.to_torch(shapes=[(4, 2, 3), (4, 2, 5), (4, 2, 5)])
    assert any(n.endswith("weight_ih_l1_reverse") for n in module.state_dict())
    zeros = torch.zeros(4, 2, 5)
    found = module(torch.from_numpy(data.asnumpy()), zeros, zeros)
    found = found[0] if isinstance(found, tuple) else found
    assert relative_error(found.detach().numpy(), wanted) < 1e-6


def test_symbols_with_loss_layers_need_no_label() -> None:
    """A Module's symbol becomes its prediction."""
    symbol = mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc"), name="softmax"
    )
    params = {"fc_weight": mx.nd.ones((3, 2)), "fc_bias": mx.nd.array([0, 1, 2])}
    module = mx.convert.to_torch(symbol, params, shapes={"data": (1, 2)})
    found = module(torch.ones(1, 2)).detach().numpy()
    np.testing.assert_allclose(found, [[0.09003057, 0.24472848, 0.66524094]], rtol=1e-5)


def test_operators_without_a_row_are_traced_for_given_shapes() -> None:
    """They become the torch functions of their kernel."""
    symbol = mx.sym.topk(mx.sym.LRN(mx.sym.var("data"), nsize=3), k=2, ret_typ="value")
    with pytest.raises(UnsupportedTorch, match="shapes"):
        mx.convert.to_torch(symbol, {})
    module = mx.convert.to_torch(symbol, {}, shapes=[(1, 4, 2, 5)])
    data = mx.nd.random.normal(shape=(1, 4, 2, 5))
    wanted = mx.nd.topk(mx.nd.LRN(data, nsize=3), k=2, ret_typ="value").asnumpy()
    found = module(torch.from_numpy(data.asnumpy())).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def _agrees(symbol: mx.sym.Symbol, arrays: dict[str, mx.nd.NDArray], exported: bool) -> str:
    """Compare a symbol with its torch module, optionally exported; return the code."""
    module = mx.convert.to_torch(symbol, {}, shapes={n: a.shape for n, a in arrays.items()})
    wanted = symbol.bind(mx.cpu(), arrays, grad_req="null").forward()
    names = [n.name for n in module.graph.nodes if n.op == "placeholder"]
    feed = tuple(torch.from_numpy(arrays[n].asnumpy()) for n in names)
    runs = [module]
    if exported:
        runs.append(torch.export.export(module, feed).module())
        runs.append(torch.compile(module, backend="eager", fullgraph=True))
    for run in runs:
        made = run(*feed)
        for a, b in zip(made if isinstance(made, tuple) else (made,), wanted, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)
    return module.code


@pytest.mark.parametrize("exported", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_loops_are_unrolled(exported: bool) -> None:
    """foreach and while_loop are unrolled; values from the outer scope become inputs."""
    w = mx.sym.var("w")
    step = lambda x, s: (mx.sym.dot(x, w) + s, x + s)  # noqa: E731
    out, last = mx.sym.contrib.foreach(step, mx.sym.var("x"), mx.sym.var("s"))
    arrays = {"x": mx.nd.random.normal(shape=(3, 2, 2)), "s": mx.nd.ones((2, 2))}
    code = _agrees(mx.sym.Group([out, last]), arrays | {"w": mx.nd.ones((2, 2))}, exported)
    assert code.count("torch.matmul") == 3
    out, last = mx.sym.contrib.while_loop(
        lambda i, v: i < 3,
        lambda i, v: (v * 10, [i + 1, v + 1]),
        [mx.sym.var("i"), mx.sym.var("v")],
        max_iterations=5,
    )
    arrays = {"i": mx.nd.zeros((1,)), "v": mx.nd.ones((2,))}
    _agrees(mx.sym.Group([out, *last]), arrays, exported)


@pytest.mark.parametrize("exported", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_branches_become_torch_cond(exported: bool) -> None:
    """Both branches are modules; the condition selects one at run time."""
    x, w = mx.sym.var("x"), mx.sym.var("w")
    branch = mx.sym.contrib.cond(x.sum() > 0, lambda: x * 2 + w, lambda: x - 1)
    for sign in (1, -1):
        arrays = {"x": mx.nd.ones((2,)) * sign, "w": mx.nd.ones((2,))}
        assert "higher_order.cond" in _agrees(branch, arrays, exported)


def test_loops_with_too_many_steps_raise() -> None:
    """Thousands of steps are not unrolled."""
    _, last = mx.sym.contrib.while_loop(
        lambda i: i < 3, lambda i: (i, [i + 1]), [mx.sym.var("i")], max_iterations=100_000
    )
    with pytest.raises(UnsupportedTorch, match="100000 steps"):
        mx.convert.to_torch(last[0], {}, shapes={"i": (1,)})


@pytest.mark.slow
@pytest.mark.parametrize("name", SEEN)
def test_zoo_models_are_exported_by_torch_export(name: str) -> None:
    """One network of each family; the code contains only torch's layers."""
    net = mx.gluon.model_zoo.vision.get_model(name, classes=5)
    net.initialize(mx.init.Xavier())
    size = max(64, SEEN[name])
    data = mx.nd.random.normal(shape=(1, 3, size, size))
    wanted = net(data).asnumpy()
    module = net.to_torch(shapes=[data.shape])
    assert "aten" not in module.code
    feed = torch.from_numpy(data.asnumpy())
    found = torch.export.export(module, (feed,)).module()(feed).detach().numpy()
    assert relative_error(found, wanted) < 1e-5


@pytest.mark.slow
def test_saved_program_runs_without_mxnet(tmp_path: pathlib.Path) -> None:
    """It needs only torch."""
    net = _net()
    data = mx.nd.random.normal(shape=(2, 2, 8, 8))
    program, given, result = (str(tmp_path / n) for n in ("net.pt2", "in.npy", "out.npy"))
    report = mx.convert.convert(net, to=program, shapes=[data.shape])
    assert report.passed
    np.save(given, data.asnumpy())
    command = [sys.executable, "-c", WITHOUT_US, program, given, result]
    without_mxnet.run(command, check=True, timeout=120, cwd=tmp_path)
    assert relative_error(np.load(result), net(data).asnumpy()) < 1e-6


def test_every_torch_row_is_a_registered_operator() -> None:
    """The table is keyed by registry names."""
    assert [n for n in TORCH_ROWS if registry.get(n).name != n] == []
