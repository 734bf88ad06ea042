"""Initializers of parameters: ``mx.init.Xavier()``, or created by name or JSON."""

from __future__ import annotations

from .. import random  # exported by MXNet here
from .base import InitDesc, Initializer, Load, Mixed, alias, create, register
from .schemes import (
    Bilinear,
    Constant,
    FusedRNN,
    LSTMBias,
    MSRAPrelu,
    Normal,
    One,
    Orthogonal,
    Uniform,
    Xavier,
    Zero,
)

__all__ = [
    "Bilinear",
    "Constant",
    "FusedRNN",
    "InitDesc",
    "Initializer",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "Normal",
    "One",
    "Orthogonal",
    "Uniform",
    "Xavier",
    "Zero",
    "alias",
    "create",
    "register",
]

for _name in __all__:  # module in MXNet's class names
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
