"""Operators for training: optimizer updates, derived from rules, and quantization."""

from . import adam, adaptive, large_batch, quantization, sgd

__all__ = ["adam", "adaptive", "large_batch", "quantization", "sgd"]
