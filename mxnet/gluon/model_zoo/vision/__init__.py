"""Image classification networks, by name or by function."""

from __future__ import annotations

import re
from typing import Any

from ....error import did_you_mean
from ...block import HybridBlock
from ..model_store import SHA1
from .alexnet import *  # noqa: F403 (all networks are public here)
from .densenet import *  # noqa: F403
from .inception import *  # noqa: F403
from .mobilenet import *  # noqa: F403
from .resnet import *  # noqa: F403
from .squeezenet import *  # noqa: F403
from .vgg import *  # noqa: F403

# Names as in file names: "mobilenetv2_0.5" is `mobilenet_v2_0_5`.
MODELS = {
    name: globals()[re.sub(r"(?<=[a-z])v(?=\d)", "_v", name).replace(".", "_")] for name in SHA1
}


def get_model(name: str, **kwargs: Any) -> HybridBlock:
    """Return a network by its name.

    Parameters
    ----------
    name
        Name of the model.

    >>> get_model("resnet18_v1", classes=10).output
    Dense(512 -> 10, linear)
    """
    name = name.lower()
    if name not in MODELS:
        options = "\n\t".join(sorted(MODELS))
        hint = f"{did_you_mean(name, MODELS)} ".lstrip()
        raise ValueError(f"Model {name} is not supported. {hint}Available options are\n\t{options}")
    return MODELS[name](**kwargs)
