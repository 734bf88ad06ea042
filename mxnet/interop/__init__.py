"""Conversion of models between MXNet and today's formats, with numerical verification."""

from __future__ import annotations

from .conversion import convert
from .deploy import deploy
from .from_torch import from_torch, load_torch_parameters, read_state_dict
from .port import PortReport, port
from .source import Change, ConversionError, Difference, Report
from .to_torch import UnsupportedTorch, to_torch
from .weights import load_weights

__all__ = [
    "Change",
    "ConversionError",
    "Difference",
    "PortReport",
    "Report",
    "UnsupportedTorch",
    "convert",
    "deploy",
    "from_torch",
    "load_torch_parameters",
    "load_weights",
    "port",
    "read_state_dict",
    "to_torch",
]


def __dir__() -> list[str]:
    """List the public functions; the modules can be imported by name."""
    return __all__
