"""A model in any of the forms in which MXNet's exporter takes it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import ndarray, symbol
from ..error import InvalidType
from ..ndarray import NDArray
from ..symbol import Symbol

__all__ = ["load_parameters", "load_symbol"]


def load_symbol(model: Any) -> Symbol:
    """Return a symbol, read from a file unless it is one."""
    if isinstance(model, Symbol):
        return model
    if isinstance(model, str | os.PathLike):
        return symbol.load(str(model))
    raise InvalidType(f"sym must be a Symbol or the path of its JSON file, got {type(model)}.")


def load_parameters(params: Any) -> dict[str, NDArray]:
    """Return arrays by name, without ``arg:`` and ``aux:``.

    `params` is the path of a file, a dict, or a pair of dicts (arguments, auxiliary states).
    """
    if isinstance(params, str | os.PathLike):
        # A file without arrays, such as that of a block without parameters, loads as a list.
        params = ndarray.load(str(Path(params))) or {}
        if not isinstance(params, Mapping):
            raise InvalidType("the parameter file holds a list of arrays, not named ones.")
    if isinstance(params, Mapping):
        parts = [params]
    elif isinstance(params, Sequence) and all(isinstance(p, Mapping) for p in params):
        parts = list(params)
    else:
        raise InvalidType(
            f"params must be a file name, a dict or a list [arg_params, aux_params], got "
            f"{type(params)}."
        )
    named = {k: v for part in parts for k, v in part.items()}
    return {_bare(k): _array(k, v) for k, v in named.items()}


def _bare(name: str) -> str:
    kind, _, rest = name.partition(":")
    return rest if rest and kind in ("arg", "aux") else name


def _array(name: str, value: Any) -> NDArray:
    if isinstance(value, NDArray):
        return value
    data = getattr(value, "data", None)  # a gluon Parameter
    array = data() if callable(data) else None
    if isinstance(array, NDArray):
        return array
    raise InvalidType(f"parameter {name!r} must be an NDArray, got {type(value)}.")
