"""Layers of neural networks."""

from ..block import Block, HybridBlock, SymbolBlock
from . import activations, basic_layers, conv_layers, torch_block
from .activations import *  # noqa: F403 (all layers are public here)
from .basic_layers import *  # noqa: F403
from .conv_layers import *  # noqa: F403
from .torch_block import *  # noqa: F403
