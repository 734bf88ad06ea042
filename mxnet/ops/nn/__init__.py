"""Layers of neural networks."""

from __future__ import annotations

from . import activation
from . import attention
from . import batch_norm
from . import convolution
from . import ctc
from . import deconvolution
from . import dense
from . import dropout
from . import loss_outputs
from . import normalization
from . import pooling
from . import recurrent
from . import sequence
from . import signal
from . import softmax
