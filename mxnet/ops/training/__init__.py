"""Operators for training: optimizer updates, derived from rules."""

from . import adam, adaptive, large_batch, sgd

__all__ = ["adam", "adaptive", "large_batch", "sgd"]
