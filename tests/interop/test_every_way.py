"""Four kinds of checkpoints, converted to every format and back, without mxnet."""

from __future__ import annotations

import json
import pathlib
import sys
import types

import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib import onnx as contrib_onnx
from tests import without_mxnet
from tests.closeness import assert_equal_up_to_rounding
from tests.interop.onnx.running import relative_error
from tests.interop.test_convert import OLD_JSON
from tests.without_mxnet import forked_conversions  # noqa: F401

pytestmark = pytest.mark.usefixtures("forked_conversions")
WITHOUT_US = """
import json, pathlib, sys
sys.modules["mxnet"] = None  # an import would fail
import numpy, onnxruntime, safetensors.torch, torch
folder = pathlib.Path(sys.argv[1])
for kind in sys.argv[2:]:
    data = numpy.load(folder / f"{kind}.npy")
    session = onnxruntime.InferenceSession(str(folder / f"{kind}.onnx"))
    name = session.get_inputs()[0].name
    numpy.save(folder / f"{kind}-onnx.npy", session.run(None, {name: data})[0])
    program = torch.export.load(folder / f"{kind}.pt2").module()
    numpy.save(folder / f"{kind}-torch.npy", program(torch.from_numpy(data)).detach().numpy())
    stored = safetensors.torch.load_file(folder / f"{kind}.safetensors")
    sizes = {name: list(tensor.shape) for name, tensor in stored.items()}
    (folder / f"{kind}.json").write_text(json.dumps(sizes))
"""
KINDS = ("demo", "gluon", "module", "old")


def _demo_network() -> mx.gluon.HybridBlock:
    """The network of `examples/demo.py`, without its training."""
    nn = mx.gluon.nn
    net = nn.HybridSequential()
    for width in (32, 64):
        net.add(nn.Conv2D(width, 3, padding=1, activation="relu"), nn.MaxPool2D(2, 2))
    net.add(nn.Flatten(), nn.Dense(128, activation="relu"), nn.Dropout(0.3), nn.Dense(10))
    return net


def _block(kind: str) -> tuple[mx.gluon.HybridBlock, mx.nd.NDArray]:
    if kind == "demo":
        return _demo_network(), mx.nd.random.uniform(shape=(2, 1, 8, 8))
    net = mx.gluon.nn.HybridSequential(prefix="g_")
    with net.name_scope():
        net.add(mx.gluon.nn.Dense(6, activation="tanh"), mx.gluon.nn.BatchNorm())
        net.add(mx.gluon.nn.LayerNorm(), mx.gluon.nn.Dense(3))
    return net, mx.nd.random.normal(shape=(2, 5))


def _checkpoint(kind: str, folder: pathlib.Path) -> tuple[str, str, mx.nd.NDArray]:
    """Write a checkpoint and return its two files and data for it."""
    prefix = str(folder / f"{kind}-model")
    if kind in ("demo", "gluon"):
        net, data = _block(kind)
        net.initialize(mx.init.Xavier())
        net.hybridize()
        net(data)
        net.export(prefix)
        return f"{prefix}-symbol.json", f"{prefix}-0000.params", data
    data = mx.nd.random.normal(shape=(2, 4))
    params = {"fc_weight": mx.nd.random.normal(shape=(3, 4)), "fc_bias": mx.nd.ones(3)}
    if kind == "old":
        pathlib.Path(f"{prefix}-symbol.json").write_text(OLD_JSON)
        mx.nd.save(f"{prefix}-0001.params", {f"arg:{k}": v for k, v in params.items()})
        return f"{prefix}-symbol.json", f"{prefix}-0001.params", data
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(symbol, name="softmax"))
    module.bind([("data", data.shape)], [("softmax_label", (2,))])
    module.init_params(mx.init.Normal(1.0))
    module.save_checkpoint(prefix, 3)
    return f"{prefix}-symbol.json", f"{prefix}-0003.params", data


def _predicted(symbol: mx.sym.Symbol, params: dict, data: mx.nd.NDArray) -> np.ndarray:
    aux = {n: params[n] for n in symbol.list_auxiliary_states()}
    args = {n: params[n] for n in symbol.list_arguments() if n in params} | {"data": data}
    for name in set(symbol.list_arguments()) - set(args):  # labels
        args[name] = mx.nd.zeros((2,))
    executor = symbol.bind(mx.cpu(), args, aux_states=aux, grad_req="null")
    return executor.forward(is_train=False)[0].asnumpy()


@pytest.mark.slow
def test_checkpoints_convert_to_every_format(tmp_path: pathlib.Path) -> None:
    """ONNX, torch and safetensors files give equal outputs without mxnet."""
    wanted, params = {}, {}
    for kind in KINDS:
        symbol, stored, data = _checkpoint(kind, tmp_path)
        np.save(tmp_path / f"{kind}.npy", data.asnumpy())
        for suffix in ("onnx", "pt2", "safetensors"):
            target = tmp_path / f"{kind}.{suffix}"
            assert mx.convert.convert(symbol, target, shapes=[data.shape], params=stored).passed
        loaded = mx.nd.load(stored)
        params[kind] = {k.partition(":")[2]: v for k, v in loaded.items()}
        wanted[kind] = _predicted(mx.sym.load(symbol), params[kind], data)
    command = [sys.executable, "-c", WITHOUT_US, str(tmp_path), *KINDS]
    without_mxnet.run(command, check=True, timeout=300, cwd=tmp_path)
    for kind in KINDS:
        for way in ("onnx", "torch"):
            assert relative_error(np.load(tmp_path / f"{kind}-{way}.npy"), wanted[kind]) < 1e-5
        sizes = json.loads((tmp_path / f"{kind}.json").read_text())
        assert sizes == {n: list(a.shape) for n, a in params[kind].items()}


def test_without_mxnet_forks_report_their_exit_status(tmp_path: pathlib.Path) -> None:
    """Other tests of converted files rely on this."""
    python, options = sys.executable, {"timeout": 60, "cwd": tmp_path}
    code = "import torch.export, sys; print(sys.argv, flush=True); import mxnet"
    done = without_mxnet.run([python, "-c", code, "a"], **options)
    assert (done.returncode, done.stdout) == (1, "['-c', 'a']\n")
    assert "import of mxnet halted" in done.stderr
    assert without_mxnet.run([python, "-c", "raise SystemExit(3)"], **options).returncode == 3
    assert without_mxnet.run([python, "-c", "import os; os.abort()"], **options).returncode == -6


@pytest.mark.parametrize("kind", KINDS)
def test_onnx_models_roundtrip_to_checkpoints(kind: str, tmp_path: pathlib.Path) -> None:
    """Exported to ONNX, imported again, and saved as MXNet's two files."""
    symbol, stored, data = _checkpoint(kind, tmp_path)
    mx.convert.convert(symbol, tmp_path / "m.onnx", shapes=[data.shape], params=stored)
    made, args, aux = contrib_onnx.import_model(tmp_path / "m.onnx")
    mx.model.save_checkpoint(str(tmp_path / "again"), 0, made, args, aux)
    again, args, aux = mx.model.load_checkpoint(str(tmp_path / "again"), 0)
    original = {k.partition(":")[2]: v for k, v in mx.nd.load(stored).items()}
    wanted = _predicted(mx.sym.load(symbol), original, data)
    assert relative_error(_predicted(again, args | aux, data), wanted) < 1e-5


def test_safetensors_roundtrip(tmp_path: pathlib.Path) -> None:
    """Saved, and loaded into a new network."""
    net, data = _block("gluon")
    net.initialize(mx.init.Xavier())
    wanted = net(data).asnumpy()
    net.save_parameters(str(tmp_path / "net.safetensors"))
    other, _ = _block("gluon")
    other.load_parameters(str(tmp_path / "net.safetensors"))
    assert_equal_up_to_rounding(other(data).asnumpy(), wanted)


def test_hf_urls_are_downloaded_by_huggingface_hub(tmp_path: pathlib.Path, monkeypatch) -> None:
    """``hf://owner/name`` downloads the file and loads it layer by layer."""
    import safetensors.torch
    import torch

    from tests.interop.test_from_torch import ResNet18

    theirs = ResNet18(4).eval()
    path = str(tmp_path / "model.safetensors")
    safetensors.torch.save_file(theirs.state_dict(), path)
    asked = []

    def hf_hub_download(repository: str, name: str) -> str:
        asked.append((repository, name))
        return path

    hub = types.SimpleNamespace(hf_hub_download=hf_hub_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    net = mx.gluon.model_zoo.vision.resnet18_v1(classes=4, pretrained="hf://somebody/resnet18")
    assert asked == [("somebody/resnet18", "model.safetensors")]
    data = torch.randn(1, 3, 64, 64)
    wanted = theirs(data).detach().numpy()
    assert relative_error(net(mx.nd.array(data.numpy())).asnumpy(), wanted) < 1e-5


def test_hf_urls_without_huggingface_hub_raise(monkeypatch) -> None:
    """The error names the package."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(mx.MXNetError, match="huggingface_hub"):
        mx.gluon.model_zoo.vision.resnet18_v1(pretrained="hf://somebody/resnet18")
