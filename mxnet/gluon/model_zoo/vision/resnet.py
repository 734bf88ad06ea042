"""ResNet, 2015 (v1), and pre-activation ResNet, 2016 (v2)."""

from __future__ import annotations

from typing import Any

from ....context import Context, cpu
from ....ops.documentation import inherits_parameters
from ... import nn
from ...block import HybridBlock
from ..model_store import load_pretrained, variant

__all__ = [
    "BasicBlockV1",
    "BasicBlockV2",
    "BottleneckV1",
    "BottleneckV2",
    "ResNetV1",
    "ResNetV2",
    "get_resnet",
    "resnet18_v1",
    "resnet18_v2",
    "resnet34_v1",
    "resnet34_v2",
    "resnet50_v1",
    "resnet50_v2",
    "resnet101_v1",
    "resnet101_v2",
    "resnet152_v1",
    "resnet152_v2",
]


def _conv3x3(channels: int, stride: int, in_channels: int) -> nn.Conv2D:
    return nn.Conv2D(
        channels,
        kernel_size=3,
        strides=stride,
        padding=1,
        use_bias=False,
        in_channels=in_channels,
    )


def _conv1x1(channels: int, stride: int = 1, in_channels: int = 0) -> nn.Conv2D:
    return nn.Conv2D(
        channels, kernel_size=1, strides=stride, use_bias=False, in_channels=in_channels
    )


class _ResidualBlock(HybridBlock):
    """A block whose input, downsampled if necessary, is added to its output.

    Parameters
    ----------
    channels
        Number of output channels.
    stride
        Step of the first convolution.
    downsample
        Whether the shortcut has a convolution that changes the size.
    in_channels
        Number of input channels; 0: inferred from the first input.
    """


class _BlockV1(_ResidualBlock):
    """A residual block with a ReLU after the addition."""

    body: HybridBlock

    def _add_downsample(self, channels: int, stride: int, in_channels: int) -> None:
        self.downsample = nn.HybridSequential(prefix="")
        self.downsample.add(_conv1x1(channels, stride, in_channels))
        self.downsample.add(nn.BatchNorm())

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        residual = x
        x = self.body(x)
        if self.downsample is not None:
            residual = self.downsample(residual)
        return F.Activation(residual + x, act_type="relu")


@inherits_parameters
class BasicBlockV1(_BlockV1):
    """Two 3x3 convolutions, for nets of 18 and 34 layers.

    >>> block = mx.gluon.model_zoo.vision.BasicBlockV1(4, stride=2, downsample=True)
    >>> block.initialize()
    >>> block(nd.ones((1, 2, 8, 8))).shape
    (1, 4, 4, 4)
    """

    def __init__(
        self,
        channels: int,
        stride: int,
        downsample: bool = False,
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.body = nn.HybridSequential(prefix="")
        self.body.add(_conv3x3(channels, stride, in_channels))
        self.body.add(nn.BatchNorm())
        self.body.add(nn.Activation("relu"))
        self.body.add(_conv3x3(channels, 1, channels))
        self.body.add(nn.BatchNorm())
        self.downsample = None
        if downsample:
            self._add_downsample(channels, stride, in_channels)


@inherits_parameters
class BottleneckV1(_BlockV1):
    """1x1, 3x3 and 1x1 convolutions, for nets of 50 layers and more.

    >>> block = mx.gluon.model_zoo.vision.BottleneckV1(8, stride=2, downsample=True)
    >>> block.initialize()
    >>> block(nd.ones((1, 2, 8, 8))).shape
    (1, 8, 4, 4)
    """

    def __init__(
        self,
        channels: int,
        stride: int,
        downsample: bool = False,
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        inner = channels // 4
        self.body = nn.HybridSequential(prefix="")
        self.body.add(nn.Conv2D(inner, kernel_size=1, strides=stride))
        self.body.add(nn.BatchNorm())
        self.body.add(nn.Activation("relu"))
        self.body.add(_conv3x3(inner, 1, inner))
        self.body.add(nn.BatchNorm())
        self.body.add(nn.Activation("relu"))
        self.body.add(nn.Conv2D(channels, kernel_size=1, strides=1))
        self.body.add(nn.BatchNorm())
        self.downsample = None
        if downsample:
            self._add_downsample(channels, stride, in_channels)


@inherits_parameters
class BasicBlockV2(_ResidualBlock):
    """Two 3x3 convolutions, each after its normalization and ReLU.

    >>> block = mx.gluon.model_zoo.vision.BasicBlockV2(4, stride=2, downsample=True)
    >>> block.initialize()
    >>> block(nd.ones((1, 2, 8, 8))).shape
    (1, 4, 4, 4)
    """

    def __init__(
        self,
        channels: int,
        stride: int,
        downsample: bool = False,
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.bn1 = nn.BatchNorm()
        self.conv1 = _conv3x3(channels, stride, in_channels)
        self.bn2 = nn.BatchNorm()
        self.conv2 = _conv3x3(channels, 1, channels)
        self.downsample = _conv1x1(channels, stride, in_channels) if downsample else None

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Transform the input."""
        residual = x
        x = F.Activation(self.bn1(x), act_type="relu")
        if self.downsample is not None:
            residual = self.downsample(x)
        x = self.conv1(x)
        x = F.Activation(self.bn2(x), act_type="relu")
        return self.conv2(x) + residual


@inherits_parameters
class BottleneckV2(_ResidualBlock):
    """1x1, 3x3 and 1x1 convolutions, each after its normalization and ReLU.

    >>> block = mx.gluon.model_zoo.vision.BottleneckV2(8, stride=2, downsample=True)
    >>> block.initialize()
    >>> block(nd.ones((1, 2, 8, 8))).shape
    (1, 8, 4, 4)
    """

    def __init__(
        self,
        channels: int,
        stride: int,
        downsample: bool = False,
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        inner = channels // 4
        self.bn1 = nn.BatchNorm()
        self.conv1 = _conv1x1(inner)
        self.bn2 = nn.BatchNorm()
        self.conv2 = _conv3x3(inner, stride, inner)
        self.bn3 = nn.BatchNorm()
        self.conv3 = _conv1x1(channels)
        self.downsample = _conv1x1(channels, stride, in_channels) if downsample else None

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Transform the input."""
        residual = x
        x = F.Activation(self.bn1(x), act_type="relu")
        if self.downsample is not None:
            residual = self.downsample(x)
        x = self.conv1(x)
        x = F.Activation(self.bn2(x), act_type="relu")
        x = self.conv2(x)
        x = F.Activation(self.bn3(x), act_type="relu")
        return self.conv3(x) + residual


class _ResNet(HybridBlock):
    """Base of both versions: stages of blocks, each half the size of the previous one.

    Parameters
    ----------
    block
        Class of the blocks.
    layers
        Number of blocks of each stage.
    channels
        Number of channels of each stage.
    classes
        Number of classes of the output layer.
    thumbnail
        Whether images are small; the first convolution then keeps their size.
    """

    features: nn.HybridSequential
    output: HybridBlock

    def _add_stages(self, block: Any, layers: list[int], channels: list[int]) -> None:
        in_channels = channels[0]
        for i, (count, width) in enumerate(zip(layers, channels[1:], strict=True)):
            stride = 1 if i == 0 else 2
            self.features.add(self._make_layer(block, count, width, stride, i + 1, in_channels))
            in_channels = width

    def _make_layer(
        self,
        block: Any,
        layers: int,
        channels: int,
        stride: int,
        stage_index: int,
        in_channels: int = 0,
    ) -> nn.HybridSequential:
        layer = nn.HybridSequential(prefix=f"stage{stage_index}_")
        with layer.name_scope():
            changes = channels != in_channels
            layer.add(block(channels, stride, changes, in_channels=in_channels, prefix=""))
            for _ in range(layers - 1):
                layer.add(block(channels, 1, False, in_channels=channels, prefix=""))
        return layer

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.output(self.features(x))


@inherits_parameters
class ResNetV1(_ResNet):
    """Residual network; `thumbnail` omits the first downsampling, for small images such as CIFAR's.

    >>> vision = mx.gluon.model_zoo.vision
    >>> net = vision.ResNetV1(vision.BasicBlockV1, [1], [4, 4], classes=3, thumbnail=True)
    >>> net.initialize()
    >>> net(nd.ones((2, 3, 8, 8))).shape
    (2, 3)
    """

    def __init__(
        self,
        block: type[HybridBlock],
        layers: list[int],
        channels: list[int],
        classes: int = 1000,
        thumbnail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        assert len(layers) == len(channels) - 1, "channels needs one entry more than layers"
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            if thumbnail:
                self.features.add(_conv3x3(channels[0], 1, 0))
            else:
                self.features.add(nn.Conv2D(channels[0], 7, 2, 3, use_bias=False))
                self.features.add(nn.BatchNorm())
                self.features.add(nn.Activation("relu"))
                self.features.add(nn.MaxPool2D(3, 2, 1))
            self._add_stages(block, layers, channels)
            self.features.add(nn.GlobalAvgPool2D())
            self.output = nn.Dense(classes, in_units=channels[-1])


@inherits_parameters
class ResNetV2(_ResNet):
    """Residual network of pre-activated blocks.

    >>> vision = mx.gluon.model_zoo.vision
    >>> net = vision.ResNetV2(vision.BasicBlockV2, [1], [4, 4], classes=3, thumbnail=True)
    >>> net.initialize()
    >>> net(nd.ones((2, 3, 8, 8))).shape
    (2, 3)
    """

    def __init__(
        self,
        block: type[HybridBlock],
        layers: list[int],
        channels: list[int],
        classes: int = 1000,
        thumbnail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        assert len(layers) == len(channels) - 1, "channels needs one entry more than layers"
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(nn.BatchNorm(scale=False, center=False))
            if thumbnail:
                self.features.add(_conv3x3(channels[0], 1, 0))
            else:
                self.features.add(nn.Conv2D(channels[0], 7, 2, 3, use_bias=False))
                self.features.add(nn.BatchNorm())
                self.features.add(nn.Activation("relu"))
                self.features.add(nn.MaxPool2D(3, 2, 1))
            self._add_stages(block, layers, channels)
            self.features.add(nn.BatchNorm())
            self.features.add(nn.Activation("relu"))
            self.features.add(nn.GlobalAvgPool2D())
            self.features.add(nn.Flatten())
            self.output = nn.Dense(classes, in_units=channels[-1])


# depth: type of block, blocks of each stage, initial channels and those of each stage
resnet_spec = {
    18: ("basic_block", [2, 2, 2, 2], [64, 64, 128, 256, 512]),
    34: ("basic_block", [3, 4, 6, 3], [64, 64, 128, 256, 512]),
    50: ("bottle_neck", [3, 4, 6, 3], [64, 256, 512, 1024, 2048]),
    101: ("bottle_neck", [3, 4, 23, 3], [64, 256, 512, 1024, 2048]),
    152: ("bottle_neck", [3, 8, 36, 3], [64, 256, 512, 1024, 2048]),
}
resnet_net_versions = [ResNetV1, ResNetV2]
resnet_block_versions = [
    {"basic_block": BasicBlockV1, "bottle_neck": BottleneckV1},
    {"basic_block": BasicBlockV2, "bottle_neck": BottleneckV2},
]


def get_resnet(
    version: int,
    num_layers: int,
    pretrained: bool = False,
    ctx: Context | list[Context] = cpu(),  # noqa: B008 a context is a value
    root: str | None = None,
    **kwargs: Any,
) -> _ResNet:
    """Return a ResNet, optionally with trained parameters.

    Parameters
    ----------
    version
        Version of the network: 1 or 2.
    num_layers
        Number of layers: 18, 34, 50, 101 or 152.
    pretrained
        Whether to load trained parameters; a string names a torch checkpoint that has them.
    ctx
        Device, or list of devices, to put the parameters on.
    root
        Folder of the model files.

    >>> net = mx.gluon.model_zoo.vision.get_resnet(1, 18, classes=10)
    >>> type(net).__name__
    'ResNetV1'
    """
    assert num_layers in resnet_spec, (
        f"Invalid number of layers: {num_layers}. Options are {resnet_spec.keys()}"
    )
    assert 1 <= version <= 2, f"Invalid resnet version: {version}. Options are 1 and 2."
    kind, layers, channels = resnet_spec[num_layers]
    block = resnet_block_versions[version - 1][kind]
    net = resnet_net_versions[version - 1](block, layers, channels, **kwargs)
    return load_pretrained(net, f"resnet{num_layers}_v{version}", pretrained, ctx, root)


resnet18_v1 = variant(get_resnet, "resnet18_v1", "ResNet v1 of 18 layers", 1, 18)
resnet34_v1 = variant(get_resnet, "resnet34_v1", "ResNet v1 of 34 layers", 1, 34)
resnet50_v1 = variant(get_resnet, "resnet50_v1", "ResNet v1 of 50 layers", 1, 50)
resnet101_v1 = variant(get_resnet, "resnet101_v1", "ResNet v1 of 101 layers", 1, 101)
resnet152_v1 = variant(get_resnet, "resnet152_v1", "ResNet v1 of 152 layers", 1, 152)
resnet18_v2 = variant(get_resnet, "resnet18_v2", "ResNet v2 of 18 layers", 2, 18)
resnet34_v2 = variant(get_resnet, "resnet34_v2", "ResNet v2 of 34 layers", 2, 34)
resnet50_v2 = variant(get_resnet, "resnet50_v2", "ResNet v2 of 50 layers", 2, 50)
resnet101_v2 = variant(get_resnet, "resnet101_v2", "ResNet v2 of 101 layers", 2, 101)
resnet152_v2 = variant(get_resnet, "resnet152_v2", "ResNet v2 of 152 layers", 2, 152)
