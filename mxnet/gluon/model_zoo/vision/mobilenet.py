"""MobileNet, 2017, and MobileNetV2, 2018: depthwise separable convolutions."""

from __future__ import annotations

from typing import Any

from ....context import Context, cpu
from ... import nn
from ...block import HybridBlock
from ..model_store import load_pretrained, variant

__all__ = [
    "MobileNet",
    "MobileNetV2",
    "get_mobilenet",
    "get_mobilenet_v2",
    "mobilenet0_5",
    "mobilenet0_25",
    "mobilenet0_75",
    "mobilenet1_0",
    "mobilenet_v2_0_5",
    "mobilenet_v2_0_25",
    "mobilenet_v2_0_75",
    "mobilenet_v2_1_0",
]

# channels of the pointwise convolution, stride of the depthwise one before it
SEPARABLE = [
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *[(512, 1)] * 5,
    (1024, 2),
    (1024, 1),
]
# expansion, channels, repetitions, stride of the first
BOTTLENECKS = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
]


class RELU6(nn.HybridBlock):
    """Clip to the range from 0 to 6."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Clip the input."""
        return F.clip(x, 0, 6, name="relu6")


def _add_conv(
    out: nn.HybridSequential,
    channels: int = 1,
    kernel: int = 1,
    stride: int = 1,
    pad: int = 0,
    num_group: int = 1,
    active: bool = True,
    relu6: bool = False,
) -> None:
    out.add(nn.Conv2D(channels, kernel, stride, pad, groups=num_group, use_bias=False))
    out.add(nn.BatchNorm(scale=True))
    if active:
        out.add(RELU6() if relu6 else nn.Activation("relu"))


def _add_conv_dw(
    out: nn.HybridSequential,
    dw_channels: int,
    channels: int,
    stride: int,
    relu6: bool = False,
) -> None:
    _add_conv(
        out,
        channels=dw_channels,
        kernel=3,
        stride=stride,
        pad=1,
        num_group=dw_channels,
        relu6=relu6,
    )
    _add_conv(out, channels=channels, relu6=relu6)


class LinearBottleneck(nn.HybridBlock):
    """Expand the channels by `t`, apply a depthwise convolution, project without an activation.

    The input is added if shapes match.
    """

    def __init__(self, in_channels: int, channels: int, t: int, stride: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_shortcut = stride == 1 and in_channels == channels
        width = in_channels * t
        with self.name_scope():
            self.out = nn.HybridSequential()
            _add_conv(self.out, width, relu6=True)
            _add_conv(self.out, width, kernel=3, stride=stride, pad=1, num_group=width, relu6=True)
            _add_conv(self.out, channels, active=False, relu6=True)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Transform the input."""
        out = self.out(x)
        return F.elemwise_add(out, x) if self.use_shortcut else out


class MobileNet(HybridBlock):
    """Alternating depthwise and pointwise convolutions; `multiplier` scales all channels.

    Parameters
    ----------
    multiplier
        Factor of the number of channels.
    classes
        Number of classes of the output layer.

    >>> len(mx.gluon.model_zoo.vision.MobileNet(0.25, classes=10).features)
    83
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            with self.features.name_scope():
                width = int(32 * multiplier)
                _add_conv(self.features, width, kernel=3, pad=1, stride=2)
                for channels, stride in SEPARABLE:
                    channels = int(channels * multiplier)
                    _add_conv_dw(self.features, width, channels, stride)
                    width = channels
                self.features.add(nn.GlobalAvgPool2D())
                self.features.add(nn.Flatten())
            self.output = nn.Dense(classes)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Classify images."""
        return self.output(self.features(x))


class MobileNetV2(nn.HybridBlock):
    """Linear bottlenecks with inverted residuals; `multiplier` scales all channels.

    Parameters
    ----------
    multiplier
        Factor of the number of channels.
    classes
        Number of classes of the output layer.

    >>> len(mx.gluon.model_zoo.vision.MobileNetV2(0.25, classes=10).features)
    24
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="features_")
            with self.features.name_scope():
                width = int(32 * multiplier)
                _add_conv(self.features, width, kernel=3, stride=2, pad=1, relu6=True)
                for t, channels, repetitions, stride in BOTTLENECKS:
                    channels = int(channels * multiplier)
                    for i in range(repetitions):
                        step = stride if i == 0 else 1
                        self.features.add(LinearBottleneck(width, channels, t, step))
                        width = channels
                last = int(1280 * multiplier) if multiplier > 1.0 else 1280
                _add_conv(self.features, last, relu6=True)
                self.features.add(nn.GlobalAvgPool2D())
            self.output = nn.HybridSequential(prefix="output_")
            with self.output.name_scope():
                self.output.add(nn.Conv2D(classes, 1, use_bias=False, prefix="pred_"), nn.Flatten())

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Classify images."""
        return self.output(self.features(x))


def _suffix(multiplier: float) -> str:
    """Return the multiplier as in names of model files: 1.0, 0.75, 0.5, 0.25.

    >>> _suffix(1), _suffix(0.75), _suffix(0.5)
    ('1.0', '0.75', '0.5')
    """
    text = f"{multiplier:.2f}"
    return text[:-1] if text in ("1.00", "0.50") else text


def get_mobilenet(
    multiplier: float,
    pretrained: bool = False,
    ctx: Context | list[Context] = cpu(),  # noqa: B008 a context is a value
    root: str | None = None,
    **kwargs: Any,
) -> MobileNet:
    """Return a MobileNet, optionally with trained parameters.

    Parameters
    ----------
    multiplier
        Factor of the number of channels.
    pretrained
        Whether to load trained parameters; a string names a torch checkpoint that has them.
    ctx
        Device, or list of devices, to put the parameters on.
    root
        Folder of the model files.

    >>> net = mx.gluon.model_zoo.vision.get_mobilenet(0.5, classes=10)
    >>> type(net).__name__
    'MobileNet'
    """
    net = MobileNet(multiplier, **kwargs)
    return load_pretrained(net, f"mobilenet{_suffix(multiplier)}", pretrained, ctx, root)


def get_mobilenet_v2(
    multiplier: float,
    pretrained: bool = False,
    ctx: Context | list[Context] = cpu(),  # noqa: B008 a context is a value
    root: str | None = None,
    **kwargs: Any,
) -> MobileNetV2:
    """Return a MobileNetV2, optionally with trained parameters.

    Parameters
    ----------
    multiplier
        Factor of the number of channels.
    pretrained
        Whether to load trained parameters; a string names a torch checkpoint that has them.
    ctx
        Device, or list of devices, to put the parameters on.
    root
        Folder of the model files.

    >>> net = mx.gluon.model_zoo.vision.get_mobilenet_v2(0.5, classes=10)
    >>> type(net).__name__
    'MobileNetV2'
    """
    net = MobileNetV2(multiplier, **kwargs)
    return load_pretrained(net, f"mobilenetv2_{_suffix(multiplier)}", pretrained, ctx, root)


mobilenet1_0 = variant(get_mobilenet, "mobilenet1_0", "MobileNet with all its channels", 1.0)
mobilenet0_75 = variant(
    get_mobilenet, "mobilenet0_75", "MobileNet with three quarters of its channels", 0.75
)
mobilenet0_5 = variant(get_mobilenet, "mobilenet0_5", "MobileNet with half of its channels", 0.5)
mobilenet0_25 = variant(
    get_mobilenet, "mobilenet0_25", "MobileNet with a quarter of its channels", 0.25
)
mobilenet_v2_1_0 = variant(
    get_mobilenet_v2, "mobilenet_v2_1_0", "MobileNetV2 with all its channels", 1.0
)
mobilenet_v2_0_75 = variant(
    get_mobilenet_v2, "mobilenet_v2_0_75", "MobileNetV2 with three quarters of its channels", 0.75
)
mobilenet_v2_0_5 = variant(
    get_mobilenet_v2, "mobilenet_v2_0_5", "MobileNetV2 with half of its channels", 0.5
)
mobilenet_v2_0_25 = variant(
    get_mobilenet_v2, "mobilenet_v2_0_25", "MobileNetV2 with a quarter of its channels", 0.25
)
