"""Operators that train: optimizer updates and quantization."""

from . import adaptive_updates, large_batch_updates, multi_updates, quantization, sgd_updates
