"""Gluon: networks as Python objects, eager or hybrid."""

from __future__ import annotations

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

from . import contrib, data, loss, model_zoo, nn, rnn  # isort: skip (layers are blocks)
