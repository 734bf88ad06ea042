"""MXNet's module of all cells."""

from __future__ import annotations

from ..base import numeric_types, string_types  # noqa: F401 (MXNet shows them here)
from .base_cell import BaseRNNCell, RNNParams
from .base_cell import as_sequence as _normalize_sequence  # noqa: F401
from .combined_cells import (
    BidirectionalCell,
    DropoutCell,
    FusedRNNCell,
    ModifierCell,
    ResidualCell,
    SequentialRNNCell,
    ZoneoutCell,
)
from .step_cells import (
    BaseConvRNNCell,
    ConvGRUCell,
    ConvLSTMCell,
    ConvRNNCell,
    GRUCell,
    LSTMCell,
    RNNCell,
)

__all__ = [
    "BaseConvRNNCell",
    "BaseRNNCell",
    "BidirectionalCell",
    "ConvGRUCell",
    "ConvLSTMCell",
    "ConvRNNCell",
    "DropoutCell",
    "FusedRNNCell",
    "GRUCell",
    "LSTMCell",
    "ModifierCell",
    "RNNCell",
    "RNNParams",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
]

for _name in __all__:  # module in MXNet's class names
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
