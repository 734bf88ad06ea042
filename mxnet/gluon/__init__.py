"""Gluon: networks as Python objects, eager or hybrid."""

from __future__ import annotations

from . import block, parameter, utils
from .block import Block, HybridBlock, SymbolBlock
from .parameter import (
    Constant,
    DeferredInitializationError,
    Parameter,
    ParameterDict,
    tensor_types,
)
