"""MXNet's module of `load_module`: a symbol and its parameters from files."""

from __future__ import annotations

import os
from typing import Any

from ....ndarray import NDArray
from ....symbol import Symbol
from ..export import load_parameters, load_symbol

__all__ = ["load_module"]


def load_module(
    sym_filepath: str | os.PathLike[str], params_filepath: Any
) -> tuple[Symbol, dict[str, NDArray]]:
    """Return the symbol of a JSON file and the arrays of a parameter file, without prefixes."""
    return load_symbol(sym_filepath), dict(load_parameters(params_filepath))
