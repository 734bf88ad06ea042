"""Conversion of models between MXNet and today's formats, with a check that the numbers agree."""

from __future__ import annotations

from .conversion import convert
from .from_torch import from_torch, load_torch_parameters, read_state_dict
from .source import Change, ConversionError, Difference, Report
from .to_torch import UnsupportedTorch, to_torch

__all__ = [
    "Change",
    "ConversionError",
    "Difference",
    "Report",
    "UnsupportedTorch",
    "convert",
    "from_torch",
    "load_torch_parameters",
    "read_state_dict",
    "to_torch",
]
