"""`pretrained=` accepts files of every kind, and `mx weights` lists their sources."""

from __future__ import annotations

import importlib.util
import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.gluon.model_zoo import model_store, vision
from mxnet.gluon.model_zoo.weights import TORCH_WEIGHTS
from mxnext_cli import main

NAME = "squeezenet1.1"
IMAGE = (1, 3, 224, 224)


@pytest.fixture(scope="module")
def net() -> mx.gluon.HybridBlock:
    mx.random.seed(0)
    net = vision.get_model(NAME, classes=3)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(mx.nd.zeros(IMAGE))
    return net


def first_weight(net: mx.gluon.Block) -> np.ndarray:
    return net.features[0].weight.data().asnumpy()


def load(source: str) -> np.ndarray:
    return first_weight(vision.get_model(NAME, classes=3, pretrained=source))


def test_pretrained_accepts_files_and_folders_of_every_kind(net, tmp_path):
    expected = first_weight(net)
    net.save_parameters(f"{tmp_path}/own.params")
    (tmp_path / "exported").mkdir()
    net.export(f"{tmp_path}/exported/net", epoch=3)
    torch.save(net.as_torch().state_dict(), f"{tmp_path}/torch.pth")
    sources = ["own.params", "exported/net-0003.params", "exported", "torch.pth"]
    if importlib.util.find_spec("onnx") is not None:
        files = (f"{tmp_path}/exported/net-{end}" for end in ("symbol.json", "0003.params"))
        mx.onnx.export_model(*files, [IMAGE], onnx_file_path=f"{tmp_path}/net.onnx")
        sources.append("net.onnx")
    for source in sources:
        assert np.array_equal(load(f"{tmp_path}/{source}"), expected), source
    with pytest.raises(mx.MXNetError, match="no such file or folder"):
        load(f"{tmp_path}/absent.pth")
    (tmp_path / "empty").mkdir()
    with pytest.raises(mx.MXNetError, match=r"none of \*\.params, \*\.safetensors"):
        load(f"{tmp_path}/empty")
    (tmp_path / "two").mkdir()
    for name in ("a.pth", "b.pth"):
        (tmp_path / "two" / name).touch()
    with pytest.raises(mx.MXNetError, match=r"has a\.pth, b\.pth; name one"):
        load(f"{tmp_path}/two")


def test_hub_downloads_the_named_or_the_usual_files(net, tmp_path, monkeypatch):
    torch.save(net.as_torch().state_dict(), f"{tmp_path}/pytorch_model.bin")
    asked = []

    def hf_hub_download(repository: str, name: str) -> str:
        asked.append((repository, name))
        path = tmp_path / name
        if not path.exists():
            raise FileNotFoundError(name)
        return str(path)

    hub = types.SimpleNamespace(hf_hub_download=hf_hub_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    assert np.array_equal(load("hf://a/b"), first_weight(net))
    assert asked == [("a/b", "model.safetensors"), ("a/b", "pytorch_model.bin")]
    with pytest.raises(mx.MXNetError, match=r"hf://a/b/other\.pth could not be fetched"):
        load("hf://a/b/other.pth")
    with pytest.raises(mx.MXNetError, match="is not hf://owner/name"):
        load("hf://a")


def test_pretrained_error_names_the_torchvision_file(tmp_path, monkeypatch):
    monkeypatch.delenv("MXNET_GLUON_REPO", raising=False)
    with pytest.raises(mx.MXNetError, match=r"resnet50-0676ba61\.pth.*strides move"):
        vision.resnet50_v1(pretrained=True, root=str(tmp_path))
    with pytest.raises(mx.MXNetError, match="torchvision has no network of this architecture"):
        vision.resnet50_v2(pretrained=True, root=str(tmp_path))
    assert model_store.SHA1.keys() >= TORCH_WEIGHTS.keys()


def test_weights_command_lists_describes_and_converts(net, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["weights", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 34
    assert sum(row["torchvision"] is not None for row in rows) == len(TORCH_WEIGHTS)
    assert main(["weights", "mobilenetv2_1.0"]) == 0
    said = capsys.readouterr().out
    assert "mobilenet_v2-b0353104.pth" in said
    assert "a bias in the last layer" in said
    assert main(["weights", "resnet18_v2"]) == 0
    assert "no network of this architecture" in capsys.readouterr().out
    assert main(["weights", "resnet19"]) == 2
    torch.save(net.as_torch().state_dict(), "torch.pth")
    arguments = ["weights", NAME, "--from", "torch.pth", "-o", "new", "--classes", "3"]
    assert main(arguments) == 0
    assert main(arguments) == 1
    block = mx.gluon.SymbolBlock.imports("new-symbol.json", ["data"], "new-0000.params")
    arguments = ["weights", NAME, "--from", "torch.pth", "--classes", "3", "--to", "torchvision"]
    assert main([*arguments, "-o", "new.pth"]) == 0
    assert "squeezenet1_1(weights=None, num_classes=3)" in capsys.readouterr().out
    state = torch.load("new.pth", weights_only=True)
    assert "features.12.expand3x3.bias" in state
    assert np.array_equal(state["features.0.weight"].numpy(), first_weight(net))
    assert main([*arguments, "-o", "new.pth"]) == 1
    assert main([*arguments, "-o", "new.onnx"]) == 2
    x = mx.nd.random.normal(shape=IMAGE)
    np.testing.assert_allclose(block(x).asnumpy(), net(x).asnumpy(), rtol=1e-4, atol=1e-5)
    assert Path("new-0000.params").exists()
