"""SqueezeNet, 2016: "AlexNet-level accuracy with 50x fewer parameters"."""

from __future__ import annotations

from typing import Any

from ....context import Context, cpu
from ... import nn
from ...block import HybridBlock
from ...contrib.nn import HybridConcurrent
from ..model_store import load_pretrained, variant

__all__ = ["SqueezeNet", "squeezenet1_0", "squeezenet1_1"]

# first convolution: channels, kernel; then squeezed channels of each fire, or "pool"
SPEC = {
    "1.0": (96, 7, ["pool", 16, 16, 32, "pool", 32, 48, 48, 64, "pool", 64]),
    "1.1": (64, 3, ["pool", 16, 16, "pool", 32, 32, "pool", 48, 48, 64, 64]),
}


def _make_fire_conv(channels: int, kernel_size: int, padding: int = 0) -> nn.HybridSequential:
    out = nn.HybridSequential(prefix="")
    out.add(nn.Conv2D(channels, kernel_size, padding=padding))
    out.add(nn.Activation("relu"))
    return out


def _make_fire(
    squeeze_channels: int, expand1x1_channels: int, expand3x3_channels: int
) -> nn.HybridSequential:
    """Return a fire module: a 1x1 squeeze, then parallel 1x1 and 3x3 expansions."""
    out = nn.HybridSequential(prefix="")
    out.add(_make_fire_conv(squeeze_channels, 1))
    paths = HybridConcurrent(axis=1, prefix="")
    paths.add(_make_fire_conv(expand1x1_channels, 1))
    paths.add(_make_fire_conv(expand3x3_channels, 3, 1))
    out.add(paths)
    return out


class SqueezeNet(HybridBlock):
    """Fire modules and pooling, without dense layers; for 224 by 224 images.

    Parameters
    ----------
    version
        Version of the network.
    classes
        Number of classes of the output layer.

    >>> len(mx.gluon.model_zoo.vision.SqueezeNet("1.1", classes=10).features)
    14
    """

    def __init__(self, version: str, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        assert version in SPEC, f"Unsupported SqueezeNet version {version}: 1.0 or 1.1 expected"
        channels, kernel, rest = SPEC[version]
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(nn.Conv2D(channels, kernel_size=kernel, strides=2))
            self.features.add(nn.Activation("relu"))
            for item in rest:
                if item == "pool":
                    self.features.add(nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True))
                else:
                    self.features.add(_make_fire(item, 4 * item, 4 * item))
            self.features.add(nn.Dropout(0.5))
            self.output = nn.HybridSequential(prefix="")
            self.output.add(nn.Conv2D(classes, kernel_size=1))
            self.output.add(nn.Activation("relu"))
            self.output.add(nn.AvgPool2D(13))
            self.output.add(nn.Flatten())

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Classify images."""
        return self.output(self.features(x))


def get_squeezenet(
    version: str,
    pretrained: bool = False,
    ctx: Context | list[Context] = cpu(),  # noqa: B008 a context is a value
    root: str | None = None,
    **kwargs: Any,
) -> SqueezeNet:
    """Return a SqueezeNet of version 1.0 or 1.1, optionally with trained parameters."""
    net = SqueezeNet(version, **kwargs)
    return load_pretrained(net, f"squeezenet{version}", pretrained, ctx, root)


squeezenet1_0 = variant(get_squeezenet, "squeezenet1_0", "SqueezeNet 1.0", "1.0")
squeezenet1_1 = variant(
    get_squeezenet, "squeezenet1_1", "SqueezeNet 1.1, which computes less than half as much", "1.1"
)
