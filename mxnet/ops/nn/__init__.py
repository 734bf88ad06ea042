"""Layers of neural networks."""

from . import (
    activation,
    convolution,
    dense,
    dropout,
    loss_outputs,
    normalization,
    pooling,
    recurrent,
    sequence,
    signal,
)
