"""Calibration of a quantized symbol: run the float model, show collectors its outputs."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from ... import autograd, symbol
from ...context import Context
from ...error import MXNetError
from ...executor.cached_op import CachedOp
from ...gluon.hybrid import leaves
from ...graph import Entry
from ...graph.graph import Graph
from ...graph.interpret import interpret
from ...graph.node import Node
from ...ndarray import NDArray
from ...symbol import Symbol
from .calibration import LayerHistogramCollector, LayerOutputMinMaxCollector, Ranges
from .calibration import LayerOutputCollector as Collector
from .graph import calibrated_outputs

Arrays = dict[str, NDArray]
MODES = ("none", "naive", "entropy")


def check_option(what: str, given: str, known: Sequence[str]) -> str:
    """Return an option, or raise an error that lists the known ones."""
    if given not in known:
        *front, last = (f"`{name}`" for name in known)
        wanted = f"{', '.join(front)} or {last}"
        raise ValueError(f"unknown {what} {given} received, expected {wanted}")
    return given


def make_collector(sym: Symbol, mode: str, dtype: str, own: Any, logger: Any) -> Any:
    """Return what collects the ranges that a quantized symbol needs; None for mode "none"."""
    include = sorted(set(calibrated_outputs(sym._graph.nodes).values()))
    if own is not None:
        made = own() if isinstance(own, type) else own
        made.include_layer = include
        return made
    if check_option("calibration mode", mode, MODES) == "none":
        return None
    if mode == "naive":
        return LayerOutputMinMaxCollector(dtype, include_layer=include, logger=logger)
    return LayerHistogramCollector(include_layer=include, logger=logger, quantized_dtype=dtype)


def calibrate(sym: Symbol, ranges: Ranges) -> Symbol:
    """Return a quantized symbol with ranges, by the names of the outputs that they are of."""
    outputs = calibrated_outputs(sym._graph.nodes)

    def apply(node: Node, inputs: list[Entry]) -> list[Entry]:
        made = node.copy(inputs)
        found = ranges.get(outputs.get(node, ""))
        if found is not None:
            made.set_attribute("min_calib_range", f"{found[0]:.9g}")
            made.set_attribute("max_calib_range", f"{found[1]:.9g}")
        return [Entry(made, i) for i in range(node.outputs)]

    return type(sym)(interpret(Graph(sym._heads), Entry, apply))


def collect(
    sym: Symbol, params: Arrays, data_names: Sequence[str], ctx: Context, collector: Collector,
    calib_data: Any, limit: int | None,
) -> None:  # fmt: skip
    """Run the float model on the calibration data, and show the collector its outputs."""
    if calib_data is None:
        raise ValueError("calib_data must be provided when calib_mode=naive or entropy")
    if isinstance(calib_data, np.ndarray):
        raise ValueError(
            "calib_data must be a DataIter, a DataLoader or batches of NDArrays, while received "
            f"type {type(calib_data)}; give [mx.nd.array(data)]"
        )
    if not collector.include_layer:
        return  # nothing has an 8-bit form
    model = CachedOp(_up_to(sym, collector.include_layer))

    def observe(name: str, op_name: str, array: NDArray) -> None:
        if name in collector.include_layer:
            _show(collector, name, op_name, array)

    model._register_op_hook(observe)
    names, seen = model._sym.list_inputs(), 0
    params = {k: v.as_in_context(ctx) for k, v in params.items() if k in names}
    for batch in map(leaves, structures(calib_data)):  # states may be in lists of their own
        if limit is not None and seen >= limit:
            break
        feed = {
            name: value.as_in_context(ctx) for name, value in zip(data_names, batch, strict=False)
        }
        for name, value in feed.items():
            observe(name, "", value)
        with autograd.pause(train_mode=False):
            model.run([feed[n] if n in feed else params[n] for n in names])
        seen += batch[0].shape[0]
    if not seen:
        raise MXNetError("calib_data has no batches; is it an iterator that was used up?")


def _up_to(sym: Symbol, outputs: Collection[str]) -> Symbol:
    """Return the part of a symbol that makes some outputs of its nodes, and nothing after them."""
    internals = sym.get_internals()
    wanted = [internals[i] for i, name in enumerate(internals.list_outputs()) if name in outputs]
    made = symbol.Group(wanted)
    used = {entry.node for node in made._graph.nodes for entry in node.inputs}
    return symbol.Group([head for head in wanted if head._heads[0].node not in used])


def _show(collector: Collector, name: str, op_name: str, array: NDArray) -> None:
    """Give an output to a collector; those written for MXNet 2 take an operator's name as well."""
    try:
        inspect.signature(collector.collect).bind(name, array)
    except TypeError:
        collector.collect(name, op_name, array)
    else:
        collector.collect(name, array)


def structures(data: Any) -> Iterator[list]:
    """Yield each batch of a DataIter, a DataLoader or an iterable as it is given to a network."""
    if hasattr(data, "reset"):
        data.reset()
    for batch in data:
        arrays = getattr(batch, "data", None) if not isinstance(batch, NDArray) else [batch]
        if not isinstance(arrays, list | tuple):
            arrays = batch if isinstance(batch, list | tuple) else [batch]
        yield list(arrays)
