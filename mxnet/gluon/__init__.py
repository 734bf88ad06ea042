"""Gluon: networks as Python objects, eager or hybrid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._process.on_demand import import_on_demand
from . import block, parameter, trainer, utils
from .block import Block, HybridBlock, SymbolBlock
from .parameter import (
    Constant,
    DeferredInitializationError,
    Parameter,
    ParameterDict,
    tensor_types,
)
from .trainer import Trainer

from . import data, loss, nn, rnn  # isort: skip (layers are blocks)

if TYPE_CHECKING:
    from . import contrib, model_zoo

_ON_DEMAND = {"contrib": "contrib", "model_zoo": "model_zoo"}
__getattr__, __dir__ = import_on_demand(__name__, _ON_DEMAND)
# What ``from mxnet.gluon import *`` brings.
globals()["__all__"] = [name for name in (*globals(), *_ON_DEMAND) if not name.startswith("_")]
