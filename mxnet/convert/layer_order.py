"""The order of layers by their names, where a file does not keep it.

safetensors files sort tensors their own way. Names of the models that torchvision and timm share
say the order; of other models they do not, and such files are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

from ..error import MXNetError

__all__ = ["in_layer_order"]

WORD = re.compile(r"([A-Za-z]+?(?:\dx\d)?)(\d*)$")
# What comes first among parts of one number. In DenseNet normalization precedes convolution.
PLAIN = {"conv": 0, "bn": 1, "norm": 1, "denseblock": 2, "transition": 3, "layer": 4}
INSIDE_DENSE = {"norm": 0, "conv": 1}
SINGLE = {"features": 0, "squeeze": 1, "expand1x1": 2, "expand3x3": 3, "denselayer": 4}
LAST = {"downsample": 97, "classifier": 98, "fc": 98}


def in_layer_order(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a state dict in the order in which its layers follow each other.

    >>> names = {"fc.weight": 1, "layer1.0.conv1.weight": 2, "bn1.weight": 3, "conv1.weight": 4}
    >>> list(in_layer_order(names))
    ['conv1.weight', 'bn1.weight', 'layer1.0.conv1.weight', 'fc.weight']
    """
    return {name: state[name] for name in sorted(state, key=_place)}


def _place(path: str) -> tuple:
    *parts, name = path.split(".")
    made = []
    is_dense = False
    for part in parts:
        made.append(_part(path, part, INSIDE_DENSE if is_dense else PLAIN))
        is_dense = is_dense or part.startswith(("denselayer", "transition"))
    return (*made, (1000, 0, name))


def _part(path: str, part: str, table: dict[str, int]) -> tuple[int, int, str]:
    if part.isdigit():
        return int(part), 0, ""
    if part in LAST:
        return LAST[part], 0, ""
    found = WORD.match(part)
    word, number = found.groups() if found else (part, "")
    if word in table:
        return int(number or 0), table[word], ""
    if word in SINGLE:
        return int(number or 0), SINGLE[word], ""
    raise MXNetError(
        f"the order of layers does not follow from the name {path!r}, and safetensors files do not "
        "keep it. Give the checkpoint as a .pth file, or the module itself."
    )
