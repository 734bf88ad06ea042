"""Models as torch modules: equal numbers, plain names, readable code, no need of us."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.convert import UnsupportedTorch
from mxnet.convert.torch_rows import torch_rows
from mxnet.ops import registry
from tests.onnx.running import relative_error

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


def test_names_are_those_of_the_blocks() -> None:
    """The state dict has the names of `save_parameters`."""
    net = _net()
    module = net.to_torch()
    places = set(net._collect_params_with_prefix())
    assert set(module.state_dict()) == places
    assert {n for n, _ in module.named_buffers()} == {"1.running_mean", "1.running_var"}


def test_code_is_readable_and_serves_any_batch() -> None:
    """Layers are torch's functions in order; the batch is free."""
    net = _net()
    module = net.to_torch(shapes=[(1, 2, 8, 8)])
    for word in ("torch.conv2d", "batch_norm", "max_pool2d", "leaky_relu", "linear"):
        assert word in module.code
    assert "aten" not in module.code
    data = mx.nd.random.normal(shape=(5, 2, 8, 8))
    found = module(torch.from_numpy(data.asnumpy())).detach().numpy()
    assert relative_error(found, net(data).asnumpy()) < 1e-6


@pytest.mark.parametrize("name", ["resnet18_v1", "mobilenetv2_0.25", "squeezenet1.1"])
def test_zoo_models_are_converted(name: str) -> None:
    """Networks of the zoo compute the same in torch."""
    net = mx.gluon.model_zoo.vision.get_model(name, classes=5)
    net.initialize(mx.init.Xavier())
    size = 224 if name.startswith("squeezenet") else 64
    data = mx.nd.random.normal(shape=(1, 3, size, size))
    wanted = net(data).asnumpy()
    module = net.to_torch(shapes=[data.shape])
    found = module(torch.from_numpy(data.asnumpy())).detach().numpy()
    assert relative_error(found, wanted) < 1e-5


def test_recurrent_layers_have_weights_of_their_own() -> None:
    """The packed vector is unpacked under torch's names."""
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


def test_symbols_with_training_heads_need_no_label() -> None:
    """A Module's symbol becomes what it predicts."""
    symbol = mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc"), name="softmax"
    )
    params = {"fc_weight": mx.nd.ones((3, 2)), "fc_bias": mx.nd.array([0, 1, 2])}
    module = mx.convert.to_torch(symbol, params, shapes={"data": (1, 2)})
    found = module(torch.ones(1, 2)).detach().numpy()
    np.testing.assert_allclose(found, [[0.09003057, 0.24472848, 0.66524094]], rtol=1e-5)


def test_what_has_no_row_is_traced_for_its_shapes() -> None:
    """An operator without a row becomes the torch functions of its kernel."""
    symbol = mx.sym.topk(mx.sym.LRN(mx.sym.var("data"), nsize=3), k=2, ret_typ="value")
    with pytest.raises(UnsupportedTorch, match="shapes"):
        mx.convert.to_torch(symbol, {})
    module = mx.convert.to_torch(symbol, {}, shapes=[(1, 4, 2, 5)])
    data = mx.nd.random.normal(shape=(1, 4, 2, 5))
    wanted = mx.nd.topk(mx.nd.LRN(data, nsize=3), k=2, ret_typ="value").asnumpy()
    found = module(torch.from_numpy(data.asnumpy())).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.slow
def test_program_runs_in_a_process_without_us(tmp_path: pathlib.Path) -> None:
    """`torch.export` takes the module, and the saved program needs torch alone."""
    net = _net()
    data = mx.nd.random.normal(shape=(2, 2, 8, 8))
    program, given, result = (str(tmp_path / n) for n in ("net.pt2", "in.npy", "out.npy"))
    report = mx.convert.convert(net, to=program, shapes=[data.shape])
    assert report.passed
    np.save(given, data.asnumpy())
    command = [sys.executable, "-c", WITHOUT_US, program, given, result]
    subprocess.run(command, check=True, timeout=120, cwd=tmp_path)
    assert relative_error(np.load(result), net(data).asnumpy()) < 1e-6


def test_every_row_is_a_registered_operator() -> None:
    """The table is keyed by the first name of operators."""
    assert [n for n in torch_rows() if registry.get(n).name != n] == []
