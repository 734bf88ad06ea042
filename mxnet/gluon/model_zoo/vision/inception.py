"""Inception v3, 2015: "Rethinking the Inception Architecture for Computer Vision"."""

from __future__ import annotations

from typing import Any

from ....context import Context, cpu
from ... import nn
from ...block import HybridBlock
from ...contrib.nn import HybridConcurrent
from ..model_store import load_pretrained

__all__ = ["Inception3", "inception_v3"]

# A convolution is (channels, kernel, strides, padding); omitted items have MXNet's defaults.
Step = tuple


def _make_basic_conv(**kwargs: Any) -> nn.HybridSequential:
    out = nn.HybridSequential(prefix="")
    out.add(nn.Conv2D(use_bias=False, **kwargs))
    out.add(nn.BatchNorm(epsilon=0.001))
    out.add(nn.Activation("relu"))
    return out


def _make_branch(use_pool: str | None, *conv_settings: Step) -> nn.HybridSequential:
    out = nn.HybridSequential(prefix="")
    if use_pool == "avg":
        out.add(nn.AvgPool2D(pool_size=3, strides=1, padding=1))
    elif use_pool == "max":
        out.add(nn.MaxPool2D(pool_size=3, strides=2))
    names = ("channels", "kernel_size", "strides", "padding")
    for setting in conv_settings:
        pairs = zip(names, setting, strict=True)
        out.add(_make_basic_conv(**{k: v for k, v in pairs if v is not None}))
    return out


def _side_by_side(prefix: str, *branches: tuple) -> HybridConcurrent:
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        for branch in branches:
            out.add(_make_branch(*branch))
    return out


def _make_A(pool_features: int, prefix: str) -> HybridConcurrent:
    return _side_by_side(
        prefix,
        (None, (64, 1, None, None)),
        (None, (48, 1, None, None), (64, 5, None, 2)),
        (None, (64, 1, None, None), (96, 3, None, 1), (96, 3, None, 1)),
        ("avg", (pool_features, 1, None, None)),
    )


def _make_B(prefix: str) -> HybridConcurrent:
    return _side_by_side(
        prefix,
        (None, (384, 3, 2, None)),
        (None, (64, 1, None, None), (96, 3, None, 1), (96, 3, 2, None)),
        ("max",),
    )


def _make_C(channels_7x7: int, prefix: str) -> HybridConcurrent:
    c = channels_7x7
    row, column = ((1, 7), None, (0, 3)), ((7, 1), None, (3, 0))
    return _side_by_side(
        prefix,
        (None, (192, 1, None, None)),
        (None, (c, 1, None, None), (c, *row), (192, *column)),
        (None, (c, 1, None, None), (c, *column), (c, *row), (c, *column), (192, *row)),
        ("avg", (192, 1, None, None)),
    )


def _make_D(prefix: str) -> HybridConcurrent:
    return _side_by_side(
        prefix,
        (None, (192, 1, None, None), (320, 3, 2, None)),
        (
            None,
            (192, 1, None, None),
            (192, (1, 7), None, (0, 3)),
            (192, (7, 1), None, (3, 0)),
            (192, 3, 2, None),
        ),
        ("max",),
    )


def _make_E(prefix: str) -> HybridConcurrent:
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        out.add(_make_branch(None, (320, 1, None, None)))
        out.add(_forked((384, 1, None, None)))
        out.add(_forked((448, 1, None, None), (384, 3, None, 1)))
        out.add(_make_branch("avg", (192, 1, None, None)))
    return out


def _forked(*stem: Step) -> nn.HybridSequential:
    """Return convolutions that end in parallel row and column filters."""
    out = nn.HybridSequential(prefix="")
    out.add(_make_branch(None, *stem))
    fork = HybridConcurrent(axis=1, prefix="")
    fork.add(_make_branch(None, (384, (1, 3), None, (0, 1))))
    fork.add(_make_branch(None, (384, (3, 1), None, (1, 0))))
    out.add(fork)
    return out


def make_aux(classes: int) -> nn.HybridSequential:
    """Return the paper's auxiliary classifier in the middle of the network."""
    out = nn.HybridSequential(prefix="")
    out.add(nn.AvgPool2D(pool_size=5, strides=3))
    out.add(_make_basic_conv(channels=128, kernel_size=1))
    out.add(_make_basic_conv(channels=768, kernel_size=5))
    out.add(nn.Flatten())
    out.add(nn.Dense(classes))
    return out


class Inception3(HybridBlock):
    """Parallel filters of several shapes; for 299 by 299 images.

    Parameters
    ----------
    classes
        Number of classes of the output layer.

    >>> len(mx.gluon.model_zoo.vision.Inception3(classes=10).features)
    20
    """

    def __init__(self, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(
                _make_basic_conv(channels=32, kernel_size=3, strides=2),
                _make_basic_conv(channels=32, kernel_size=3),
                _make_basic_conv(channels=64, kernel_size=3, padding=1),
                nn.MaxPool2D(pool_size=3, strides=2),
                _make_basic_conv(channels=80, kernel_size=1),
                _make_basic_conv(channels=192, kernel_size=3),
                nn.MaxPool2D(pool_size=3, strides=2),
                _make_A(32, "A1_"),
                _make_A(64, "A2_"),
                _make_A(64, "A3_"),
                _make_B("B_"),
                _make_C(128, "C1_"),
                _make_C(160, "C2_"),
                _make_C(160, "C3_"),
                _make_C(192, "C4_"),
                _make_D("D_"),
                _make_E("E1_"),
                _make_E("E2_"),
                nn.AvgPool2D(pool_size=8),
                nn.Dropout(0.5),
            )
            self.output = nn.Dense(classes)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Classify images."""
        return self.output(self.features(x))


def inception_v3(
    pretrained: bool = False,
    ctx: Context | list[Context] = cpu(),  # noqa: B008 a context is a value
    root: str | None = None,
    **kwargs: Any,
) -> Inception3:
    """Return Inception v3, optionally with trained parameters; `root` is the folder of model files.

    Parameters
    ----------
    pretrained
        Whether to load trained parameters; a string names a torch checkpoint that has them.
    ctx
        Device, or list of devices, to put the parameters on.
    root
        Folder of the model files.

    >>> net = mx.gluon.model_zoo.vision.inception_v3(classes=10)
    >>> type(net).__name__
    'Inception3'
    """
    return load_pretrained(Inception3(**kwargs), "inceptionv3", pretrained, ctx, root)
