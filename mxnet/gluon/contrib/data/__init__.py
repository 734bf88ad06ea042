"""A sampler and data sets that are used less."""

from __future__ import annotations

from . import sampler, text
from .sampler import IntervalSampler
