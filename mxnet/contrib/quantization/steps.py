"""The steps of `quantize_model`, partly with MXNet's names.

`_quantize_symbol` rewrites a graph, `_quantize_params` quantizes its parameters, `collect` passes
outputs of the float model to collectors, and `_calibrate_quantized_sym` sets ranges in the
quantized symbol.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ... import autograd, ndarray, symbol
from ...base import py_str
from ...context import Context
from ...error import MXNetError
from ...gluon.hybrid import leaves
from ...graph.monitored_names import hook_names
from ...graph.quantization.calibration import LayerHistogramCollector, LayerOutputMinMaxCollector
from ...graph.quantization.calibration import LayerOutputCollector as Collector
from ...graph.quantization.rewriting import (
    QUANTIZE,
    Quantization,
    Storage,
    calibrated_outputs,
    set_ranges,
)
from ...ndarray import NDArray
from ...runtime.array import plain, wrap_plain
from ...runtime.cached_op import CachedOp
from ...symbol import Symbol

Arrays = dict[str, NDArray]
MODES = ("none", "naive", "entropy")
DTYPES, EXTENTS = ("int8", "uint8", "auto"), ("full", "smart")
GRANULARITIES = ("tensor-wise", "channel-wise")


def check_option(what: str, value: str, options: Sequence[str]) -> str:
    """Return an option, or raise an error with the valid ones."""
    if value not in options:
        *front, last = (f"`{name}`" for name in options)
        expected = f"{', '.join(front)} or {last}"
        raise ValueError(f"unknown {what} {value} received, expected {expected}")
    return value


def is_channel_wise(granularity: str) -> bool:
    """Return whether each filter has its own range."""
    return check_option("quantize_granularity", granularity, GRANULARITIES) == "channel-wise"


def make_collector(sym: Symbol, mode: str, dtype: str, own: Any, logger: Any) -> Any:
    """Return the collector of the ranges of a quantized symbol; None for mode "none"."""
    include = sorted(set(calibrated_outputs(sym._graph.nodes).values()))
    if own is not None:
        collector = own() if isinstance(own, type) else own
        collector.include_layer = include
        return collector
    if check_option("calibration mode", mode, MODES) == "none":
        return None
    if mode == "naive":
        return LayerOutputMinMaxCollector(dtype, include_layer=include, logger=logger)
    return LayerHistogramCollector(include_layer=include, logger=logger, quantized_dtype=dtype)


def store_named(storage: Storage, name: str, array: NDArray) -> Arrays:
    """Return an array as integers and both ends of its range, by their names in a model."""
    parts = [wrap_plain(NDArray, part) for part in storage.store(plain(array))]
    return dict(zip((name, f"{name}_min", f"{name}_max"), parts, strict=True))


def collect(
    sym: Symbol, params: Arrays, data_names: Sequence[str], ctx: Context, collector: Collector,
    calib_data: Any, limit: int | None,
) -> None:  # fmt: skip
    """Run the float model on the calibration data, and pass its outputs to the collector."""
    if calib_data is None:
        raise ValueError("calib_data must be provided when calib_mode=naive or entropy")
    if isinstance(calib_data, np.ndarray):
        raise ValueError(
            "calib_data must be a DataIter, a DataLoader or batches of NDArrays, while received "
            f"type {type(calib_data)}; give [mx.nd.array(data)]"
        )
    include = collector.include_layer
    if not include:
        return  # no operator has an 8-bit form
    model = CachedOp(_up_to(sym, include))

    outputs = {
        hook_name: name
        for node in model._sym._graph.nodes
        if node.op is not None
        for hook_name, name in zip(hook_names(node), node.output_names(), strict=True)
    }

    def observe(hook_name: bytes, op_name: bytes, array: NDArray) -> None:
        name = outputs.get(py_str(hook_name), py_str(hook_name))
        if name in include:
            _show(collector, name, py_str(op_name), array)

    model._register_op_hook(observe)
    names, seen = model._sym.list_inputs(), 0
    params = {k: v.as_in_context(ctx) for k, v in params.items() if k in names}
    for batch in map(leaves, structures(calib_data)):  # states may be in nested lists
        if limit is not None and seen >= limit:
            break
        feed = {
            name: value.as_in_context(ctx) for name, value in zip(data_names, batch, strict=False)
        }
        for name, value in feed.items():
            observe(name.encode(), b"", value)
        with autograd.pause(train_mode=False):
            model.run([feed[n] if n in feed else params[n] for n in names])
        seen += batch[0].shape[0]
    if not seen:
        raise MXNetError("calib_data has no batches; is it an exhausted iterator?")


def _up_to(sym: Symbol, outputs: Collection[str]) -> Symbol:
    internals = sym.get_internals()
    heads = [internals[i] for i, name in enumerate(internals.list_outputs()) if name in outputs]
    group = symbol.Group(heads)
    used = {entry.node for node in group._graph.nodes for entry in node.inputs}
    return symbol.Group([head for head in heads if head._heads[0].node not in used])


def _show(collector: Any, name: str, op_name: str, array: NDArray) -> None:
    """Pass an output to a collector; collectors for MXNet 2 also take an operator's name."""
    try:
        inspect.signature(collector.collect).bind(name, array)
    except TypeError:
        collector.collect(name, op_name, array)
    else:
        collector.collect(name, array)


def structures(data: Any) -> Iterator[list]:
    """Yield each batch of a DataIter, a DataLoader or an iterable as inputs of a network."""
    if hasattr(data, "reset"):
        data.reset()
    for batch in data:
        arrays = getattr(batch, "data", None) if not isinstance(batch, NDArray) else [batch]
        if not isinstance(arrays, list | tuple):
            arrays = batch if isinstance(batch, list | tuple) else [batch]
        yield list(arrays)


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
    is_channel_wise(quantize_granularity)
    conversion = Quantization(
        parameters=offline_params or (),
        out_type=check_option("quantized_dtype", quantized_dtype, DTYPES),
        full=check_option("quantize_mode", quantize_mode, EXTENTS) == "full",
        fuse_relu=False,
        excluded=excluded_symbols or (),
        excluded_ops=excluded_operators or (),
    )
    quantized = type(sym)(conversion.convert(sym._graph))
    return quantized, list(dict.fromkeys(calibrated_outputs(quantized._graph.nodes).values()))


def _quantize_params(
    qsym: Symbol, params: Mapping[str, NDArray], th_dict: Mapping[str, Range] | None
) -> dict[str, NDArray]:
    """Return the parameters of a quantized symbol: integers with their ranges, or unchanged.

    Auxiliary states whose names are in `th_dict` become its ranges.
    """
    arrays: dict[str, NDArray] = {}
    for name in qsym.list_arguments():
        origin = name.removesuffix(QUANTIZE)
        if name.endswith(QUANTIZE) and origin in params:
            arrays.update(store_named(Storage(), name, params[origin]))
        elif name in params:
            arrays[name] = params[name]
        elif name.endswith(("_min", "_max")):
            ends = (th_dict or {}).get(name[:-4])
            if ends is not None:
                arrays[name] = ndarray.array(np.reshape(ends[name.endswith("_max")], 1))
    return arrays


def _calibrate_quantized_sym(qsym: Symbol, th_dict: Mapping[str, Range] | None) -> Symbol:
    if not th_dict:
        return qsym
    ranges = {n: (float(np.min(low)), float(np.max(high))) for n, (low, high) in th_dict.items()}
    return type(qsym)(set_ranges(qsym._graph, ranges))


def _load_sym(sym: Symbol | str | os.PathLike[str], logger: Any = None) -> Symbol:
    if isinstance(sym, Symbol):
        return sym
    if isinstance(sym, str | os.PathLike):
        return symbol.load(str(sym))
    raise ValueError(f"sym must be a Symbol or the path of its file, got {type(sym)}")


def _load_params(params: Any, logger: Any = None) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Return arguments and auxiliary states, from a file or from a pair of dicts."""
    if isinstance(params, str | os.PathLike):
        loaded: Any = ndarray.load(str(params)) or {}
        return tuple(  # type: ignore[return-value]
            {n.removeprefix(kind): a for n, a in loaded.items() if n.startswith(kind)}
            for kind in ("arg:", "aux:")
        )
    if isinstance(params, list | tuple) and len(params) == 2:
        return params[0], params[1]
    raise ValueError(
        f"params must be the path of a file or a pair (arg_params, aux_params), got {type(params)}"
    )
