"""Torch modules as blocks, and torch checkpoints in the model zoo."""

from __future__ import annotations

import io
import pathlib
import pickle
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import mxnet as mx
from mxnet.error import FormatError, MXNetError
from mxnet.gluon.model_zoo import vision
from mxnet.interop.to_torchvision import compare_with_torchvision, to_torchvision
from tests.interop.onnx.running import relative_error


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
def test_pretrained_loads_torch_checkpoints(
    suffix: str, theirs: ResNet18, tmp_path: pathlib.Path
) -> None:
    """Layers are matched in order."""
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


def test_checkpoints_of_different_architectures_raise(theirs: ResNet18) -> None:
    """Loading is all or nothing."""
    net = vision.resnet34_v1(classes=7)
    with pytest.raises(MXNetError, match="another architecture"):
        mx.convert.load_torch_parameters(net, theirs)
    wide = vision.resnet18_v1(classes=9)
    with pytest.raises(MXNetError, match="another architecture"):
        mx.convert.load_torch_parameters(wide, theirs)


class Bottleneck(nn.Module):
    """A bottleneck of torchvision's, which strides in its 3x3 convolution."""

    def __init__(self, inputs: int, channels: int, stride: int) -> None:
        super().__init__()
        inner = channels // 4
        self.conv1, self.bn1 = nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = nn.Conv2d(inner, channels, 1, bias=False), nn.BatchNorm2d(channels)
        shortcut = nn.Conv2d(inputs, channels, 1, stride, bias=False)
        self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn3(self.conv3(self.bn2(self.conv2(y)).relu()))
        return (y + self.downsample(x)).relu()


class SmallResNet(nn.Module):
    """A ResNet of two bottlenecks under torchvision's names."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8)
        self.layer1 = nn.Sequential(Bottleneck(8, 16, 1))
        self.layer2 = nn.Sequential(Bottleneck(16, 32, 2))
        self.fc = nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(self.bn1(self.conv1(x)).relu(), 3, 2, 1)
        return self.fc(self.layer2(self.layer1(x)).mean((2, 3)))


def test_bottleneck_strides_are_moved_to_match_torchvision() -> None:
    """Shapes agree but strides differ: the network is changed with a warning."""
    theirs = randomize(SmallResNet())
    net = vision.ResNetV1(vision.BottleneckV1, [1, 1], [8, 16, 32], classes=5)
    net.initialize()
    net.hybridize()
    data = torch.randn(1, 3, 64, 64)
    net(mx.nd.from_torch(data))
    for _ in range(2):  # the second time, nothing is moved
        with pytest.warns(UserWarning, match=r"strides are in the 3x3 convolutions.*export"):
            mx.convert.load_torch_parameters(net, theirs)
        answer = net(mx.nd.from_torch(data)).asnumpy()
        assert relative_error(answer, theirs(data).detach().numpy()) < 1e-5


def test_bottlenecks_convert_to_torchvision_names() -> None:
    """Biases are folded into running means; different strides are listed."""
    net = vision.ResNetV1(vision.BottleneckV1, [1, 1], [8, 16, 32], classes=5)
    net.initialize(mx.init.Normal(0.3))
    data = torch.randn(1, 3, 64, 64)
    net(mx.nd.from_torch(data))
    for name, parameter in net.collect_params().items():
        if name.endswith(("bias", "running_mean")):
            parameter.set_data(mx.nd.random.normal(shape=parameter.shape))
    weights = to_torchvision(net, "resnet50_v1")
    assert weights.strided == ["layer2.0"]
    assert "a bias here and none in torchvision" in weights.notes[0]
    assert "the stride is in conv1 here" in weights.notes[1]
    module: Any = SmallResNet().eval()
    torch.save(weights.state, file := io.BytesIO())
    file.seek(0)
    lines = weights.code("resnet.pth")
    models = SimpleNamespace(resnet50=lambda weights, num_classes: module)
    loader = SimpleNamespace(load=lambda path, weights_only: torch.load(file))
    exec("\n".join(lines), {"torchvision": SimpleNamespace(models=models), "torch": loader})
    answer = net(mx.nd.from_torch(data)).asnumpy()
    assert relative_error(module(data).detach().numpy(), answer) < 1e-5


def test_zoo_networks_convert_to_torchvision(theirs: ResNet18, monkeypatch) -> None:
    """Compared with torchvision if it is installed."""
    net = vision.resnet18_v1(classes=7)
    mx.convert.load_torch_parameters(net, theirs)
    weights = to_torchvision(net, "resnet18_v1")
    state = theirs.state_dict()
    for name, tensor in weights.state.items():
        assert name.endswith("tracked") or torch.equal(tensor, state[name]), name
    assert weights.state.keys() == state.keys()
    assert not weights.notes
    monkeypatch.setitem(sys.modules, "torchvision", None)
    assert compare_with_torchvision(net, weights, 64) is None
    models = SimpleNamespace(resnet18=lambda weights, num_classes: ResNet18(num_classes))
    monkeypatch.setitem(sys.modules, "torchvision", SimpleNamespace(models=models))
    difference = compare_with_torchvision(net, weights, 64)
    assert difference is not None
    assert difference.relative < 1e-5
    weights.state["bn1.running_mean"] += 1
    with pytest.raises(mx.convert.ConversionError, match="nothing was written"):
        compare_with_torchvision(net, weights, 64)


@pytest.mark.parametrize("name", ["mobilenetv2_1.0", "resnet18_v2"])
def test_networks_missing_in_torchvision_raise(name: str) -> None:
    with pytest.raises(MXNetError, match="torchvision"):
        to_torchvision(vision.get_model(name), name)


def inverted_residual(inputs: int, channels: int, stride: int, expansion: int) -> nn.Sequential:
    """Return the layers of torchvision's inverted residual, under its names."""

    def conv(before: int, after: int, kernel: int, step: int, groups: int) -> nn.Sequential:
        layer = nn.Conv2d(before, after, kernel, step, kernel // 2, groups=groups, bias=False)
        return nn.Sequential(layer, nn.BatchNorm2d(after), nn.ReLU6())

    inner = inputs * expansion
    layers = [conv(inputs, inner, 1, 1, 1)] if expansion != 1 else []
    layers += [conv(inner, inner, 3, stride, inner), nn.Conv2d(inner, channels, 1, bias=False)]
    return nn.Sequential(*layers, nn.BatchNorm2d(channels))


class Residual(nn.Module):
    def __init__(self, inputs: int, channels: int, stride: int, expansion: int) -> None:
        super().__init__()
        self.conv = inverted_residual(inputs, channels, stride, expansion)
        self.adds = stride == 1 and inputs == channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv(x) if self.adds else self.conv(x)


class MobileNet(nn.Module):
    """MobileNetV2 under torchvision's names."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        rows = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)]
        rows += [(6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
        stem = nn.Conv2d(3, 32, 3, 2, 1, bias=False)
        layers: list[nn.Module] = [nn.Sequential(stem, nn.BatchNorm2d(32), nn.ReLU6())]
        width = 32
        for expansion, channels, count, stride in rows:
            for i in range(count):
                layers.append(Residual(width, channels, 1 if i else stride, expansion))
                width = channels
        last = nn.Conv2d(width, 1280, 1, bias=False)
        layers.append(nn.Sequential(last, nn.BatchNorm2d(1280), nn.ReLU6()))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


def test_torchvision_mobilenet_checkpoint_is_loaded(tmp_path: pathlib.Path) -> None:
    """Ours has one more layer and no last bias; a mismatched checkpoint changes nothing."""
    theirs = randomize(MobileNet(4))
    path = str(tmp_path / "mobilenet_v2.pth")
    torch.save(theirs.state_dict(), path)
    with pytest.warns(UserWarning, match="the last layer has a bias"):
        net = vision.mobilenet_v2_1_0(classes=4, pretrained=path)
    data = torch.randn(1, 3, 64, 64)
    assert (
        relative_error(net(mx.nd.from_torch(data)).asnumpy(), theirs(data).detach().numpy()) < 1e-5
    )
    small = vision.mobilenet_v2_0_5(classes=4)
    small.initialize()
    names = list(small.collect_params())
    with pytest.raises(MXNetError, match="another architecture"):
        mx.convert.load_torch_parameters(small, path)
    assert list(small.collect_params()) == names


def randomize(module: nn.Module) -> nn.Module:
    """Fill all normalizations with random values; return the module in eval mode."""
    torch.manual_seed(0)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
            part.weight.data.uniform_(0.5, 1.5)
            part.bias.data.normal_(0, 0.1)
    return module.eval()


def test_torch_modules_become_blocks(theirs: ResNet18) -> None:
    """Any module that torch can export, compared on the example."""
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


def test_pickles_that_run_code_raise(tmp_path: pathlib.Path) -> None:
    """Checkpoints may contain only tensors; no code runs."""
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
