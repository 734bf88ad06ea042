"""The steps of `quantize_model` under the names that MXNet gives them, for programs that call them.

`_quantize_symbol` rewrites a graph, `_quantize_params` stores its parameters as integers, and
`_calibrate_quantized_sym` writes ranges into it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ... import ndarray, symbol
from ...context import Context
from ...ndarray import NDArray
from ...symbol import Symbol
from .collection import calibrate, check_option
from .convert import DTYPES, EXTENTS, is_channel_wise
from .graph import QUANTIZE, Quantization, calibrated_outputs
from .storage import Storage

Range = tuple[Any, Any]


def _quantize_symbol(
    sym: Symbol,
    ctx: Context,
    excluded_symbols: Sequence[str] | None = None,
    excluded_operators: Sequence[str] | None = None,
    offline_params: Sequence[str] | None = None,
    quantized_dtype: str = "int8",
    quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise",
) -> tuple[Symbol, list[str]]:
    """Return a quantized symbol, and the outputs of layers whose ranges it needs."""
    is_channel_wise(quantize_granularity)
    wanted = Quantization(
        parameters=offline_params or (),
        out_type=check_option("quantized_dtype", quantized_dtype, DTYPES),
        full=check_option("quantize_mode", quantize_mode, EXTENTS) == "full",
        fuse_relu=False,
        excluded=excluded_symbols or (),
        excluded_ops=excluded_operators or (),
    )
    made = type(sym)(wanted.convert(sym._graph))
    return made, list(dict.fromkeys(calibrated_outputs(made._graph.nodes).values()))


def _quantize_params(
    qsym: Symbol, params: Mapping[str, NDArray], th_dict: Mapping[str, Range] | None
) -> dict[str, NDArray]:
    """Return the parameters of a quantized symbol: integers and their ranges, or as they were.

    Auxiliary states whose names are in `th_dict` become its ranges.
    """
    made: dict[str, NDArray] = {}
    for name in qsym.list_arguments():
        origin = name.removesuffix(QUANTIZE)
        if name.endswith(QUANTIZE) and origin in params:
            made.update(Storage().store_named(name, params[origin]))
        elif name in params:
            made[name] = params[name]
        elif name.endswith(("_min", "_max")):
            found = (th_dict or {}).get(name[:-4])
            if found is not None:
                made[name] = ndarray.array(np.reshape(found[name.endswith("_max")], 1))
    return made


def _calibrate_quantized_sym(qsym: Symbol, th_dict: Mapping[str, Range] | None) -> Symbol:
    """Return a quantized symbol with the ranges of its layers, by the names of their outputs."""
    if not th_dict:
        return qsym
    ranges = {n: (float(np.min(low)), float(np.max(high))) for n, (low, high) in th_dict.items()}
    return calibrate(qsym, ranges)


def _load_sym(sym: Symbol | str | os.PathLike[str], logger: Any = None) -> Symbol:
    """Return a symbol, read from a file unless it is one."""
    if isinstance(sym, Symbol):
        return sym
    if isinstance(sym, str | os.PathLike):
        return symbol.load(str(sym))
    raise ValueError(f"sym must be a Symbol or the path of its file, got {type(sym)}")


def _load_params(params: Any, logger: Any = None) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Return arguments and auxiliary states, from a file or from a pair of dicts."""
    if isinstance(params, str | os.PathLike):
        loaded = ndarray.load(str(params)) or {}
        return tuple(  # type: ignore[return-value]
            {n.removeprefix(kind): a for n, a in loaded.items() if n.startswith(kind)}
            for kind in ("arg:", "aux:")
        )
    if isinstance(params, list | tuple) and len(params) == 2:
        return params[0], params[1]
    raise ValueError(
        f"params must be the path of a file or a pair (arg_params, aux_params), got {type(params)}"
    )
