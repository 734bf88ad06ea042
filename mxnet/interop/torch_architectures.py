"""Adapt networks of the zoo that differ from torchvision's of the same name to its weights."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from ..gluon import Block, HybridBlock, nn
from ..gluon.model_zoo.vision import BottleneckV1, MobileNetV2

Layers = dict[str, dict[str, Any]]
# The first linear bottleneck of torchvision's MobileNetV2 has no convolution that widens.
FIRST_BOTTLENECK = "features.1.conv.0.0"
CLASSIFIER = {"classifier.1.weight", "classifier.1.bias"}
BOTTLENECK = "layer1.0.conv3.weight"


@contextmanager
def fitting(net: Block, state: Mapping[str, Tensor]) -> Iterator[None]:
    """Modify a network whose torchvision counterpart has equal shapes but computes differently.

    It warns of the change, which parameter files do not contain. If loading fails, the network is
    unchanged.
    """
    units: list[BottleneckV1] = []
    net.apply(lambda b: units.append(b) if isinstance(b, BottleneckV1) else None)
    output: Any = None
    change = ""
    if (
        isinstance(net, MobileNetV2)
        and {"classifier.1.weight", "classifier.1.bias"} <= state.keys()
    ):
        output = net.output[0]
        classes, width = state["classifier.1.weight"].shape
        _replace_output(net, nn.Conv2D(classes, 1, in_channels=width, prefix=output.prefix))
        change = "the last layer has a bias, and the first bottleneck's first layer is identity"
    try:
        yield
    except Exception:
        if output is not None and isinstance(net, MobileNetV2):
            _replace_output(net, output)
        raise
    if units and BOTTLENECK in state:
        _move_strides(units)
        change = "strides are in the 3x3 convolutions of bottlenecks"
    if change:
        net.apply(lambda b: b._clear_cached_op() if isinstance(b, HybridBlock) else None)
        warnings.warn(
            f"'{net.name}' was changed to compute what torchvision's network computes: {change}. "
            "Keep it with export(); its parameters alone would be wrong in an unchanged network.",
            stacklevel=4,
        )


def _move_strides(units: list[BottleneckV1]) -> None:
    """Move the stride of each bottleneck from its first 1x1 to its 3x3 convolution."""
    for unit in units:
        layers: Any = unit.body
        first, middle = layers[0]._kwargs, layers[3]._kwargs
        if middle["stride"] == (1, 1):
            first["stride"], middle["stride"] = middle["stride"], first["stride"]


def _replace_output(net: MobileNetV2, layer: HybridBlock) -> None:
    layer.initialize()
    net.output._children["0"] = layer


def fit_layers(net: Block, layers: Layers) -> Layers:
    """Return a checkpoint's layers, with identity layers added where our network has more.

    After ReLU6, an identity convolution, a normalization by mean 0 and variance 1, and another
    ReLU6 have no effect.
    """
    if not isinstance(net, MobileNetV2) or FIRST_BOTTLENECK not in layers:
        return layers
    width = layers[FIRST_BOTTLENECK]["weight"].shape[0]
    if layers.get("features.1.conv.1", {}).get("weight", torch.empty(0)).ndim != 4:
        return layers  # the checkpoint already has three convolutions
    bottleneck: Any = net.features[3]
    epsilon = bottleneck.out[1]._kwargs["eps"]
    identity = torch.eye(width).reshape(width, width, 1, 1)
    ones, zeros = torch.ones(width), torch.zeros(width)
    normalization = {"weight": ones, "bias": zeros, "running_mean": zeros}
    normalization["running_var"] = ones - epsilon
    fitted: Layers = {}
    for name, layer in layers.items():
        if name == FIRST_BOTTLENECK:
            fitted["identity"] = {"weight": identity}
            fitted["identity_norm"] = normalization
        fitted[name] = layer
    return fitted
