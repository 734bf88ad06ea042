"""AlexNet, 2014: "One weird trick for parallelizing convolutional neural networks"."""

from __future__ import annotations

from typing import Any

from ....context import Context, cpu
from ... import nn
from ...block import HybridBlock
from ..model_store import load_pretrained

__all__ = ["AlexNet", "alexnet"]


class AlexNet(HybridBlock):
    """Five convolutions and three dense layers.

    Parameters
    ----------
    classes
        Number of classes of the output layer.

    >>> len(mx.gluon.model_zoo.vision.AlexNet(classes=10).features)
    13
    """

    def __init__(self, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            with self.features.name_scope():
                self.features.add(
                    nn.Conv2D(64, kernel_size=11, strides=4, padding=2, activation="relu"),
                    nn.MaxPool2D(pool_size=3, strides=2),
                    nn.Conv2D(192, kernel_size=5, padding=2, activation="relu"),
                    nn.MaxPool2D(pool_size=3, strides=2),
                    nn.Conv2D(384, kernel_size=3, padding=1, activation="relu"),
                    nn.Conv2D(256, kernel_size=3, padding=1, activation="relu"),
                    nn.Conv2D(256, kernel_size=3, padding=1, activation="relu"),
                    nn.MaxPool2D(pool_size=3, strides=2),
                    nn.Flatten(),
                    nn.Dense(4096, activation="relu"),
                    nn.Dropout(0.5),
                    nn.Dense(4096, activation="relu"),
                    nn.Dropout(0.5),
                )
            self.output = nn.Dense(classes)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Classify images."""
        return self.output(self.features(x))


def alexnet(
    pretrained: bool = False,
    ctx: Context | list[Context] = cpu(),  # noqa: B008 a context is a value
    root: str | None = None,
    **kwargs: Any,
) -> AlexNet:
    """Return AlexNet, optionally with trained parameters; `root` is the folder of model files.

    Parameters
    ----------
    pretrained
        Whether to load trained parameters; a string names a torch checkpoint that has them.
    ctx
        Device, or list of devices, to put the parameters on.
    root
        Folder of the model files.

    >>> net = mx.gluon.model_zoo.vision.alexnet(classes=10)
    >>> type(net).__name__
    'AlexNet'
    """
    return load_pretrained(AlexNet(**kwargs), "alexnet", pretrained, ctx, root)
