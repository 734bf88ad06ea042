"""DenseNet, 2016: "Densely Connected Convolutional Networks"."""

from __future__ import annotations

from typing import Any

from ....context import Context, cpu
from ... import nn
from ...block import HybridBlock
from ...contrib.nn import HybridConcurrent, Identity
from ..model_store import load_pretrained, variant

__all__ = ["DenseNet", "densenet121", "densenet161", "densenet169", "densenet201"]

# depth: channels of the first convolution, growth per layer, layers of each block
densenet_spec = {
    121: (64, 32, [6, 12, 24, 16]),
    161: (96, 48, [6, 12, 36, 24]),
    169: (64, 32, [6, 12, 32, 32]),
    201: (64, 32, [6, 12, 48, 32]),
}


def _make_dense_block(
    num_layers: int, bn_size: int, growth_rate: int, dropout: float, stage_index: int
) -> nn.HybridSequential:
    out = nn.HybridSequential(prefix=f"stage{stage_index}_")
    with out.name_scope():
        for _ in range(num_layers):
            out.add(_make_dense_layer(growth_rate, bn_size, dropout))
    return out


def _make_dense_layer(growth_rate: int, bn_size: int, dropout: float) -> HybridConcurrent:
    """Return a layer that appends `growth_rate` new channels to its input."""
    new = nn.HybridSequential(prefix="")
    new.add(nn.BatchNorm())
    new.add(nn.Activation("relu"))
    new.add(nn.Conv2D(bn_size * growth_rate, kernel_size=1, use_bias=False))
    new.add(nn.BatchNorm())
    new.add(nn.Activation("relu"))
    new.add(nn.Conv2D(growth_rate, kernel_size=3, padding=1, use_bias=False))
    if dropout:
        new.add(nn.Dropout(dropout))
    out = HybridConcurrent(axis=1, prefix="")
    out.add(Identity())
    out.add(new)
    return out


def _make_transition(num_output_features: int) -> nn.HybridSequential:
    """Return the transition between two blocks: fewer channels, half the size."""
    out = nn.HybridSequential(prefix="")
    out.add(nn.BatchNorm())
    out.add(nn.Activation("relu"))
    out.add(nn.Conv2D(num_output_features, kernel_size=1, use_bias=False))
    out.add(nn.AvgPool2D(pool_size=2, strides=2))
    return out


class DenseNet(HybridBlock):
    """Blocks in which each layer reads all previous layers; for 224 by 224 images.

    Parameters
    ----------
    num_init_features
        Number of channels after the first convolution.
    growth_rate
        Number of channels that each layer adds.
    block_config
        Number of layers of each stage.
    bn_size
        Factor of the bottleneck's channels.
    dropout
        Probability of dropout after each layer.
    classes
        Number of classes of the output layer.

    >>> len(mx.gluon.model_zoo.vision.DenseNet(8, 4, [2, 2], classes=10).features)
    11
    """

    def __init__(
        self,
        num_init_features: int,
        growth_rate: int,
        block_config: list[int],
        bn_size: int = 4,
        dropout: float = 0,
        classes: int = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(
                nn.Conv2D(num_init_features, kernel_size=7, strides=2, padding=3, use_bias=False)
            )
            self.features.add(nn.BatchNorm())
            self.features.add(nn.Activation("relu"))
            self.features.add(nn.MaxPool2D(pool_size=3, strides=2, padding=1))
            channels = num_init_features
            for i, layers in enumerate(block_config):
                if i != 0:
                    channels //= 2
                    self.features.add(_make_transition(channels))
                self.features.add(_make_dense_block(layers, bn_size, growth_rate, dropout, i + 1))
                channels += layers * growth_rate
            self.features.add(nn.BatchNorm())
            self.features.add(nn.Activation("relu"))
            self.features.add(nn.AvgPool2D(pool_size=7))
            self.features.add(nn.Flatten())
            self.output = nn.Dense(classes)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Classify images."""
        return self.output(self.features(x))


def get_densenet(
    num_layers: int,
    pretrained: bool = False,
    ctx: Context | list[Context] = cpu(),  # noqa: B008 a context is a value
    root: str | None = None,
    **kwargs: Any,
) -> DenseNet:
    """Return a DenseNet of 121, 161, 169 or 201 layers, optionally with trained parameters."""
    net = DenseNet(*densenet_spec[num_layers], **kwargs)
    return load_pretrained(net, f"densenet{num_layers}", pretrained, ctx, root)


densenet121 = variant(get_densenet, "densenet121", "DenseNet of 121 layers", 121)
densenet161 = variant(get_densenet, "densenet161", "DenseNet of 161 layers", 161)
densenet169 = variant(get_densenet, "densenet169", "DenseNet of 169 layers", 169)
densenet201 = variant(get_densenet, "densenet201", "DenseNet of 201 layers", 201)
