"""From torch: modules as blocks, checkpoints into the zoo, files that cannot be trusted."""

from __future__ import annotations

import pathlib
import pickle

import pytest
import torch
from torch import nn

import mxnet as mx
from mxnet.error import FormatError, MXNetError
from mxnet.gluon.model_zoo import vision
from tests.onnx.running import relative_error


class BasicBlock(nn.Module):
    """The residual block of torchvision's ResNet-18, with its names."""

    def __init__(self, width: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(
                nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """torchvision's ResNet-18, with its names."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, 2, 1)
        widths = [64, 64, 128, 256, 512]
        for i in range(4):
            first = BasicBlock(widths[i], widths[i + 1], 1 if i == 0 else 2)
            rest = BasicBlock(widths[i + 1], widths[i + 1], 1)
            setattr(self, f"layer{i + 1}", nn.Sequential(first, rest))
        self.fc = nn.Linear(512, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


@pytest.fixture(scope="module")
def theirs() -> ResNet18:
    """A ResNet-18 with moved statistics."""
    torch.manual_seed(0)
    module = ResNet18(7)
    module(torch.randn(4, 3, 64, 64))
    return module.eval()


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_checkpoint_goes_into_the_zoo(
    suffix: str, theirs: ResNet18, tmp_path: pathlib.Path
) -> None:
    """`pretrained=` names a torch checkpoint; layers are matched in order."""
    path = str(tmp_path / f"resnet18.{suffix}")
    if suffix == "pth":
        torch.save(theirs.state_dict(), path)
    else:
        import safetensors.torch

        safetensors.torch.save_file(theirs.state_dict(), path)
    net = vision.resnet18_v1(classes=7, pretrained=path)
    data = torch.randn(2, 3, 64, 64)
    found = net(mx.nd.array(data.numpy())).asnumpy()
    assert relative_error(found, theirs(data).detach().numpy()) < 1e-5


def test_other_architectures_are_refused(theirs: ResNet18) -> None:
    """Nothing is loaded unless everything fits."""
    net = vision.resnet34_v1(classes=7)
    with pytest.raises(MXNetError, match="another architecture"):
        mx.convert.load_torch_parameters(net, theirs)
    wide = vision.resnet18_v1(classes=9)
    with pytest.raises(MXNetError, match="another architecture"):
        mx.convert.load_torch_parameters(wide, theirs)


def test_bottlenecks_of_torchvision_are_refused() -> None:
    """Shapes would agree, but they stride elsewhere: numbers would be wrong."""
    state = {"layer1.0.conv3.weight": torch.ones(1)}
    with pytest.raises(MXNetError, match="strides"):
        mx.convert.load_torch_parameters(vision.resnet50_v1(), state)


def test_modules_become_blocks(theirs: ResNet18) -> None:
    """Any module that torch exports, compared on the example."""
    data = torch.randn(1, 3, 64, 64)
    block = mx.convert.from_torch(theirs, data)
    found = block(mx.nd.array(data.numpy())).asnumpy()
    assert relative_error(found, theirs(data).detach().numpy()) < 1e-5


class _Evil:
    """Its pickle would run a command."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple:
        return (pathlib.Path.mkdir, (self.folder / "executed",))


def test_pickles_that_run_code_are_refused(tmp_path: pathlib.Path) -> None:
    """A checkpoint holds tensors, or is an error; nothing in it runs."""
    for name, content in {
        "evil.pth": pickle.dumps({"w": _Evil(tmp_path)}),
        "cut.pth": b"PK\x03\x04 cut",
        "empty.pth": b"",
    }.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(FormatError, match=name):
            mx.convert.read_state_dict(path)
    torch.save({"w": _Evil(tmp_path)}, tmp_path / "saved.pth")
    with pytest.raises(FormatError):
        mx.convert.read_state_dict(tmp_path / "saved.pth")
    assert not (tmp_path / "executed").exists()
