"""Contributed sampler and data sets."""

from __future__ import annotations

from . import sampler, text
from .sampler import IntervalSampler
