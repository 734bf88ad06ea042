"""Layers of neural networks."""

from __future__ import annotations

from . import (
    activation,
    attention,
    batch_norm,
    convolution,
    ctc,
    deconvolution,
    dense,
    dropout,
    loss_outputs,
    normalization,
    pooling,
    recurrent,
    sequence,
    signal,
    softmax,
)
