"""Layers of neural networks."""

from __future__ import annotations

from . import activation, dense, dropout, loss_outputs, signal, softmax
from .convolutions import convolution, deconvolution, pooling
from .normalizations import batch_norm, normalization
from .sequences import attention, ctc, recurrent, sequence
