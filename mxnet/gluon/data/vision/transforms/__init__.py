"""Transformations of images, as blocks: for `Dataset.transform_first`, and for networks.

Images come as (height, width, channels), until `ToTensor` makes (channels, height, width) of them.
Sizes are (width, height).
"""

from __future__ import annotations

import numpy as np

from ..... import image
from .....base import numeric_types
from ....block import Block, HybridBlock
from ....nn import HybridSequential, Sequential
from .basic import Cast, Compose, HybridCompose, HybridRandomApply, Normalize, RandomApply, ToTensor
from .color import (
    RandomBrightness,
    RandomColorJitter,
    RandomContrast,
    RandomGray,
    RandomHue,
    RandomLighting,
    RandomSaturation,
)
from .geometry import (
    CenterCrop,
    CropResize,
    RandomCrop,
    RandomFlipLeftRight,
    RandomFlipTopBottom,
    RandomResizedCrop,
    RandomRotation,
    Resize,
    Rotate,
)

# Pickles know the classes by this module.
for _value in list(globals().values()):
    if isinstance(_value, type) and _value.__module__.startswith(f"{__name__}."):
        _value.__module__ = __name__
