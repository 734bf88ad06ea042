"""Conversion of the zoo's networks to torchvision's parameter names."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..error import InvalidValue
from ..gluon import Block
from ..gluon.model_zoo.vision import BottleneckV1, MobileNetV2
from ..gluon.model_zoo.weights import TORCH_WEIGHTS
from ..runtime.array import plain
from .from_torch import SPELLINGS
from .source import ConversionError, Difference, compare

Rename = Callable[[re.Match[str]], str]
TOLERANCE = 1e-5
FIRE = {"0": "squeeze", "1.0": "expand1x1", "1.1": "expand3x3"}
DENSE_LAYER = {"0": "norm1", "2": "conv1", "3": "norm2", "5": "conv2"}
# Their convolutions have no biases, because a normalization follows each.
NORMALIZED = ("resnet", "densenet", "inception")


@dataclass
class TorchvisionWeights:
    """Parameters with torchvision's names, and the differences of torchvision's network.

    `code` is Python code that loads a file of them into torchvision's network.
    """

    model: str
    options: dict[str, Any]
    state: dict[str, Tensor]
    notes: list[str] = field(default_factory=list)
    strided: list[str] = field(default_factory=list)  # units with the stride in conv1

    def code(self, file: str) -> list[str]:
        """Return the program that loads the file."""
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        read = f"torch.load({file!r}, weights_only=True)"
        if file.endswith(".safetensors"):
            read = f"safetensors.torch.load_file({file!r})"
        lines = [f"model = torchvision.models.{self.model}(weights=None{options})"]
        if self.strided:
            lines.append(f"for name in {self.strided!r}:")
            lines.append("    unit = model.get_submodule(name)")
            lines.append("    unit.conv1.stride, unit.conv2.stride = (2, 2), (1, 1)")
        return [*lines, f"model.load_state_dict({read})"]


def to_torchvision(net: Block, name: str) -> TorchvisionWeights:
    """Return the parameters of a network of the zoo under torchvision's names."""
    row = TORCH_WEIGHTS.get(name)
    if row is None:
        raise InvalidValue(f"torchvision has no network of the architecture of {name}.")
    if isinstance(net, MobileNetV2):
        raise InvalidValue(
            f"{name} does not fit torchvision's {row.model}, whose first bottleneck has one "
            "convolution less. mx port writes it as PyTorch code."
        )
    layers: dict[str, dict[str, Tensor]] = {}
    for path, parameter in net._collect_params_with_prefix().items():
        layer, _, kind = path.rpartition(".")
        layers.setdefault(layer, {})[kind] = plain(parameter._reduce()).detach().clone()
    names = _names(row.model, list(layers))
    result = TorchvisionWeights(row.model, {}, {})
    if row.model.startswith(NORMALIZED):
        _fold_biases(list(layers.values()), names, result)
    for path, layer in zip(names, layers.values(), strict=True):
        result.state |= {f"{path}.{SPELLINGS.get(k, k)}": t for k, t in layer.items()}
        if "running_var" in layer:
            result.state[f"{path}.num_batches_tracked"] = torch.tensor(0)
    _find_strides(net, result)
    _set_options(layers, result)
    return result


def _fold_biases(
    layers: Sequence[dict[str, Tensor]], names: Sequence[str], result: TorchvisionWeights
) -> None:
    """Subtract the biases of convolutions from the means of the following normalizations."""
    folded = []
    for i, layer in enumerate(layers[:-1]):
        if "bias" in layer and "running_mean" in layers[i + 1]:
            layers[i + 1]["running_mean"] -= layer.pop("bias")
            folded.append(names[i])
    if folded:
        result.notes.append(
            f"{len(folded)} convolutions ({folded[0]} to {folded[-1]}) have a bias here and none "
            "in torchvision: it is subtracted from the running mean of the normalization behind, "
            "which gives the same outputs"
        )


def _find_strides(net: Block, result: TorchvisionWeights) -> None:
    def visit(block: Block, path: str) -> None:
        if isinstance(block, BottleneckV1):
            body: Any = block.body
            if body[0]._kwargs["stride"] != (1, 1):
                result.strided.append(_rename(f"{path}.body.0", RULES["resnet"])[: -len(".conv1")])
        for name, child in block._children.items():
            visit(child, f"{path}.{name}" if path else name)

    visit(net, "")
    if result.strided:
        result.notes.append(
            f"{', '.join(result.strided)}: the stride is in conv1 here and in conv2 in "
            "torchvision; without the lines that move it the outputs are wrong"
        )


def _set_options(layers: dict[str, dict[str, Tensor]], result: TorchvisionWeights) -> None:
    """Set the arguments of torchvision's function."""
    classes = len(next(reversed(layers.values()))["bias"])
    if classes != 1000:
        result.options["num_classes"] = classes
    if result.model == "inception_v3":
        result.options |= {"aux_logits": False, "init_weights": False}
        result.notes.append("AuxLogits, which torchvision trains with, is not in the zoo's network")


# -- names ----------------------------------------------------------------------------------------


def _in_stage(match: re.Match[str]) -> str:
    number = int(match[3])
    kind = "bn" if number % 3 else "conv"
    return f"layer{int(match[1]) - 3}.{match[2]}.{kind}{number // 3 + 1}"


RULES: dict[str, dict[str, str | Rename]] = {
    "resnet": {
        r"features\.0": "conv1",
        r"features\.1": "bn1",
        r"features\.(\d)\.(\d+)\.body\.(\d)": _in_stage,
        r"features\.(\d)\.(\d+)\.downsample\.(\d)": lambda m: (
            f"layer{int(m[1]) - 3}.{m[2]}.downsample.{m[3]}"
        ),
        "output": "fc",
    },
    "densenet": {
        r"features\.0": "features.conv0",
        r"features\.1": "features.norm0",
        r"features\.(\d+)\.(\d+)\.1\.(\d)": lambda m: (
            f"features.denseblock{int(m[1]) // 2 - 1}.denselayer{int(m[2]) + 1}.{DENSE_LAYER[m[3]]}"
        ),
        r"features\.(\d)\.(\d)": lambda m: (
            f"features.transition{int(m[1]) // 2 - 1}.{'conv' if m[2] == '2' else 'norm'}"
        ),
        r"features\.11": "features.norm5",
        "output": "classifier",
    },
    "squeezenet": {
        r"features\.0": "features.0",
        r"features\.(\d+)\.(.+)\.0": lambda m: f"features.{m[1]}.{FIRE[m[2]]}",
        r"output\.0": "classifier.1",
    },
}
ALEXNET = [f"features.{i}" for i in (0, 3, 6, 8, 10)] + [f"classifier.{i}" for i in (1, 4, 6)]
INCEPTION_A = "1x1 5x5_1 5x5_2 3x3dbl_1 3x3dbl_2 3x3dbl_3 _pool"
INCEPTION_C = "1x1 7x7_1 7x7_2 7x7_3 7x7dbl_1 7x7dbl_2 7x7dbl_3 7x7dbl_4 7x7dbl_5 _pool"
INCEPTION_E = "1x1 3x3_1 3x3_2a 3x3_2b 3x3dbl_1 3x3dbl_2 3x3dbl_3a 3x3dbl_3b _pool"
INCEPTION = {
    **{f"Mixed_5{letter}": INCEPTION_A for letter in "bcd"},
    "Mixed_6a": "3x3 3x3dbl_1 3x3dbl_2 3x3dbl_3",
    **{f"Mixed_6{letter}": INCEPTION_C for letter in "bcde"},
    "Mixed_7a": "3x3_1 3x3_2 7x7x3_1 7x7x3_2 7x7x3_3 7x7x3_4",
    **{f"Mixed_7{letter}": INCEPTION_E for letter in "bc"},
}


def _names(model: str, paths: list[str]) -> list[str]:
    """Return torchvision's names of layers, from those of the zoo in their order."""
    if model == "alexnet":
        return ALEXNET
    if model.startswith("vgg"):
        return [*paths[:-3], "classifier.0", "classifier.3", "classifier.6"]
    if model.startswith("inception"):
        units = [f"Conv2d_{name}" for name in ("1a_3x3", "2a_3x3", "2b_3x3", "3b_1x1", "4a_3x3")]
        for block, branches in INCEPTION.items():
            units += [f"{block}.branch{name}" for name in branches.split()]
        return [*(f"{unit}.{kind}" for unit in units for kind in ("conv", "bn")), "fc"]
    rules = RULES[model.rstrip("0123456789_")]
    return [_rename(path, rules) for path in paths]


def _rename(path: str, rules: dict[str, str | Rename]) -> str:
    for pattern, name in rules.items():
        match = re.fullmatch(pattern, path)
        if match is not None:
            return name if isinstance(name, str) else name(match)
    raise InvalidValue(f"torchvision has no name for the layer {path}.")


# -- comparison -----------------------------------------------------------------------------------


def compare_with_torchvision(
    net: Block, weights: TorchvisionWeights, size: int = 224
) -> Difference | None:
    """Return the difference from torchvision's network on random images, if it is installed."""
    from .. import ndarray

    try:
        models = importlib.import_module("torchvision").models
    except ImportError:
        return None
    model = getattr(models, weights.model)(weights=None, **weights.options)
    for name in weights.strided:
        unit = model.get_submodule(name)
        unit.conv1.stride, unit.conv2.stride = (2, 2), (1, 1)
    model.load_state_dict(weights.state)
    images = np.random.RandomState(0).standard_normal((2, 3, size, size)).astype(np.float32)
    with torch.no_grad():
        output = model.eval()(torch.from_numpy(images)).numpy()
    (worst,) = compare([output], [net(ndarray.array(images)).asnumpy()])
    if worst.relative > TOLERANCE:
        raise ConversionError(
            f"torchvision's {weights.model} differs by {worst.relative:.2e} with these "
            "parameters; nothing was written."
        )
    return worst
