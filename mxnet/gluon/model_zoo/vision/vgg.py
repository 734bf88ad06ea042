"""VGG, 2014: "Very Deep Convolutional Networks for Large-Scale Image Recognition"."""

from __future__ import annotations

from typing import Any

from ....context import Context, cpu
from ....initializer import Xavier
from ... import nn
from ...block import HybridBlock
from ..model_store import load_pretrained, variant

__all__ = [
    "VGG",
    "get_vgg",
    "vgg11",
    "vgg11_bn",
    "vgg13",
    "vgg13_bn",
    "vgg16",
    "vgg16_bn",
    "vgg19",
    "vgg19_bn",
]

# depth: convolutions of each stage, channels of each stage
vgg_spec = {
    11: ([1, 1, 2, 2, 2], [64, 128, 256, 512, 512]),
    13: ([2, 2, 2, 2, 2], [64, 128, 256, 512, 512]),
    16: ([2, 2, 3, 3, 3], [64, 128, 256, 512, 512]),
    19: ([2, 2, 4, 4, 4], [64, 128, 256, 512, 512]),
}


class VGG(HybridBlock):
    """Stages of small convolutions, each ended by a pooling, and three dense layers.

    Parameters
    ----------
    layers
        Number of blocks of each stage.
    filters
        Number of channels of each stage.
    classes
        Number of classes of the output layer.
    batch_norm
        Whether to normalize after convolutions.

    >>> net = mx.gluon.model_zoo.vision.VGG([1, 1], [4, 8], classes=10)
    >>> len(net.features)
    10
    """

    def __init__(
        self,
        layers: list[int],
        filters: list[int],
        classes: int = 1000,
        batch_norm: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        assert len(layers) == len(filters), "layers and filters must have one entry a stage"
        with self.name_scope():
            self.features = self._make_features(layers, filters, batch_norm)
            for _ in range(2):
                self.features.add(
                    nn.Dense(
                        4096,
                        activation="relu",
                        weight_initializer="normal",
                        bias_initializer="zeros",
                    )
                )
                self.features.add(nn.Dropout(rate=0.5))
            self.output = nn.Dense(classes, weight_initializer="normal", bias_initializer="zeros")

    def _make_features(
        self, layers: list[int], filters: list[int], batch_norm: bool
    ) -> nn.HybridSequential:
        features = nn.HybridSequential(prefix="")
        for count, channels in zip(layers, filters, strict=True):
            for _ in range(count):
                init = Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)
                features.add(
                    nn.Conv2D(
                        channels,
                        kernel_size=3,
                        padding=1,
                        weight_initializer=init,
                        bias_initializer="zeros",
                    )
                )
                if batch_norm:
                    features.add(nn.BatchNorm())
                features.add(nn.Activation("relu"))
            features.add(nn.MaxPool2D(strides=2))
        return features

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Classify images."""
        return self.output(self.features(x))


def get_vgg(
    num_layers: int,
    pretrained: bool = False,
    ctx: Context | list[Context] = cpu(),  # noqa: B008 a context is a value
    root: str | None = None,
    **kwargs: Any,
) -> VGG:
    """Return a VGG of 11, 13, 16 or 19 layers, optionally with trained parameters.

    Parameters
    ----------
    num_layers
        Number of layers: 11, 13, 16 or 19.
    pretrained
        Whether to load trained parameters; a string names a torch checkpoint that has them.
    ctx
        Device, or list of devices, to put the parameters on.
    root
        Folder of the model files.

    >>> net = mx.gluon.model_zoo.vision.get_vgg(11, classes=10)
    >>> type(net).__name__
    'VGG'
    """
    layers, filters = vgg_spec[num_layers]
    name = f"vgg{num_layers}" + ("_bn" if kwargs.get("batch_norm") else "")
    return load_pretrained(VGG(layers, filters, **kwargs), name, pretrained, ctx, root)


vgg11 = variant(get_vgg, "vgg11", "VGG of 11 layers", 11)
vgg13 = variant(get_vgg, "vgg13", "VGG of 13 layers", 13)
vgg16 = variant(get_vgg, "vgg16", "VGG of 16 layers", 16)
vgg19 = variant(get_vgg, "vgg19", "VGG of 19 layers", 19)
vgg11_bn = variant(
    get_vgg, "vgg11_bn", "VGG of 11 layers with batch normalization", 11, batch_norm=True
)
vgg13_bn = variant(
    get_vgg, "vgg13_bn", "VGG of 13 layers with batch normalization", 13, batch_norm=True
)
vgg16_bn = variant(
    get_vgg, "vgg16_bn", "VGG of 16 layers with batch normalization", 16, batch_norm=True
)
vgg19_bn = variant(
    get_vgg, "vgg19_bn", "VGG of 19 layers with batch normalization", 19, batch_norm=True
)
