"""Optimizers, which update weights by their gradients.

>>> sgd = mx.optimizer.create("sgd", learning_rate=0.1, momentum=0.9)
>>> updater = mx.optimizer.get_updater(sgd)
>>> weight = mx.nd.ones(2)
>>> updater([0], [mx.nd.ones(2)], [weight])
>>> weight.asnumpy()
array([0.9, 0.9], dtype=float32)
"""

from . import contrib, optimizer
from .contrib import AdamW
from .optimizer import *  # noqa: F403 (MXNet shows them all here)

__all__ = ["AdamW"]
__all__ += optimizer.__all__
