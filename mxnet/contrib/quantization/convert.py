"""Convert float models to quantized models, for Module and for Gluon."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ... import dtypes, ndarray
from ...context import Context, cpu
from ...gluon import HybridBlock, SymbolBlock
from ...graph.quantization.rewriting import (
    QUANTIZE,
    Quantization,
    Storage,
    fold_parameters,
    set_ranges,
)
from ...ndarray import NDArray
from ...runtime.array import plain, wrap_plain
from ...symbol import Symbol
from .steps import (
    DTYPES,
    EXTENTS,
    MODES,
    Arrays,
    check_option,
    collect,
    is_channel_wise,
    make_collector,
    store_named,
    structures,
)

Names = Sequence[str] | None
CPU = cpu()
ENDS = (f"{QUANTIZE}_min", f"{QUANTIZE}_max")
STORED = (QUANTIZE, *ENDS)


def quantize_graph(
    sym: Symbol,
    arg_params: Arrays,
    aux_params: Arrays,
    ctx: Context = CPU,
    excluded_sym_names: Names = None,
    excluded_op_names: Names = None,
    calib_mode: str = "entropy",
    quantized_dtype: str = "int8",
    quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise",
    LayerOutputCollector: Any = None,
    logger: Any = None,
) -> tuple[Symbol, Arrays, Arrays, Any]:
    """Quantize a symbol without calibration; return it, its parameters and a collector.

    Pass the outputs named in the collector's ``include_layer`` to it, then call `calib_graph`. See
    `quantize_model` for the parameters.

    Parameters
    ----------
    sym
        Symbol of the float model.
    arg_params, aux_params
        Parameters and auxiliary states by name.
    ctx
        Device of the calibration.
    excluded_sym_names
        Names of nodes to keep in float32.
    excluded_op_names
        Names of operators to keep in float32.
    calib_mode
        ``'none'`` (ranges are computed in every run), ``'naive'`` (minimum and maximum of the
        calibration data) or ``'entropy'`` (thresholds that minimize the KL divergence).
    quantized_dtype
        ``'int8'``, ``'uint8'`` or ``'auto'``.
    quantize_mode
        ``'smart'``, or ``'full'``: operators such as pooling quantize float inputs too.
    quantize_granularity
        ``'tensor-wise'``, or ``'channel-wise'``: each filter of a layer has its own range.
    LayerOutputCollector
        A custom collector, instead of `calib_mode`.
    logger
        Logger of the collectors.

    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> params = {"fc_weight": mx.nd.ones((2, 4)), "fc_bias": mx.nd.ones(2)}
    >>> symbol, args, aux, collector = mx.contrib.quantization.quantize_graph(net, params, {})
    """
    _check_names("excluded_sym_names", excluded_sym_names)
    _check_names("excluded_op_names", excluded_op_names)
    quantized, args = _quantize(
        sym,
        arg_params,
        Quantization(
            parameters=arg_params,
            out_type=check_option("quantized_dtype", quantized_dtype, DTYPES),
            full=check_option("quantize_mode", quantize_mode, EXTENTS) == "full",
            fuse_relu=False,
            excluded=excluded_sym_names or (),
            excluded_ops=excluded_op_names or (),
            is_calibrated=calib_mode != "none" or LayerOutputCollector is not None,
        ),
        Storage(filters=is_channel_wise(quantize_granularity)),
    )
    collector = make_collector(quantized, calib_mode, quantized_dtype, LayerOutputCollector, logger)
    return quantized, args, dict(aux_params), collector


def calib_graph(
    qsym: Symbol,
    arg_params: Arrays,
    aux_params: Arrays,
    collector: Any,
    calib_mode: str = "entropy",
    quantized_dtype: str = "int8",
    logger: Any = None,
) -> tuple[Symbol, Arrays, Arrays]:
    """Set the ranges of a collector in a quantized symbol; return it and its parameters.

    Parameters
    ----------
    qsym
        The quantized symbol.
    arg_params, aux_params
        Parameters and auxiliary states by name.
    collector
        The collector of `quantize_graph`.
    calib_mode
        ``'none'`` (ranges are computed in every run), ``'naive'`` (minimum and maximum of the
        calibration data) or ``'entropy'`` (thresholds that minimize the KL divergence).
    quantized_dtype
        ``'int8'``, ``'uint8'`` or ``'auto'``.
    logger
        Logger of the collectors.

    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> params = {"fc_weight": mx.nd.ones((2, 4)), "fc_bias": mx.nd.ones(2)}
    >>> symbol, args, aux, collector = mx.contrib.quantization.quantize_graph(
    ...     net, params, {}, calib_mode="naive")
    >>> for name in collector.include_layer:
    ...     collector.collect(name, mx.nd.array([-1, 3]))
    >>> symbol, args, aux = mx.contrib.quantization.calib_graph(
    ...     symbol, args, aux, collector, calib_mode="naive")
    """
    if check_option("calibration mode", calib_mode, MODES) == "none":
        return qsym, arg_params, aux_params
    finish = getattr(collector, "post_collect", None)
    ranges = finish() if finish is not None else collector.min_max_dict
    return type(qsym)(set_ranges(qsym._graph, ranges)), arg_params, aux_params


def quantize_model(
    sym: Symbol,
    arg_params: Arrays,
    aux_params: Arrays,
    data_names: Sequence[str] = ("data",),
    label_names: Names = ("softmax_label",),
    ctx: Context = CPU,
    excluded_sym_names: Names = None,
    excluded_op_names: Names = None,
    calib_mode: str = "entropy",
    calib_data: Any = None,
    num_calib_examples: int | None = None,
    quantized_dtype: str = "int8",
    quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise",
    logger: Any = None,
) -> tuple[Symbol, Arrays, Arrays]:
    """Quantize a model to 8 bits; return symbol, arguments and auxiliary states.

    Parameters
    ----------
    sym, arg_params, aux_params
        The float model.
    data_names, label_names
        Names of the data inputs and labels.
    ctx
        Device of the calibration.
    excluded_sym_names, excluded_op_names
        Names of nodes and operators to keep in float32.
    calib_mode
        "none" (ranges are computed in every run), "naive" (minimum and maximum of the calibration
        data) or "entropy" (thresholds that minimize the KL divergence).
    calib_data
        An iterator, a loader, or batches; required unless `calib_mode` is "none".
    num_calib_examples
        Number of samples for calibration; by default all.
    quantized_dtype
        "int8", "uint8", or "auto": unsigned for nonnegative ranges.
    quantize_mode
        "smart", or "full": operators such as pooling quantize float inputs too.
    quantize_granularity
        "tensor-wise", or "channel-wise": each filter of a layer has its own range, which MXNet
        1.9.1 cannot load from files.
    logger
        Logger of the collectors.

    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> params = {"fc_weight": mx.nd.ones((2, 4)), "fc_bias": mx.nd.ones(2)}
    >>> symbol, arg_params, aux_params = mx.contrib.quantization.quantize_model(
    ...     net, params, {}, label_names=None, calib_mode="none")
    """
    quantized, args, aux, collector = quantize_graph(
        sym, arg_params, aux_params, ctx, excluded_sym_names, excluded_op_names, calib_mode,
        quantized_dtype, quantize_mode, quantize_granularity, None, logger,
    )  # fmt: skip
    if collector is not None:
        params = {**arg_params, **aux_params}
        collect(sym, params, data_names, ctx, collector, calib_data, num_calib_examples)
    return calib_graph(quantized, args, aux, collector, calib_mode, quantized_dtype, logger)


def quantize_model_mkldnn(
    sym: Symbol, arg_params: Arrays, aux_params: Arrays, *args: Any, **kwargs: Any
) -> tuple[Symbol, Arrays, Arrays]:
    """Like `quantize_model`, with batch normalizations folded into convolutions first.

    The other parameters are those of `quantize_model`.

    Parameters
    ----------
    sym
        Symbol of the float model.
    arg_params, aux_params
        Parameters and auxiliary states by name.
    args
        Further arguments of `quantize_model`.

    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> params = {"fc_weight": mx.nd.ones((2, 4)), "fc_bias": mx.nd.ones(2)}
    >>> symbol, arg_params, aux_params = mx.contrib.quantization.quantize_model_mkldnn(
    ...     net, params, {}, label_names=None, calib_mode="none")
    """
    return quantize_model(*_fold(sym, arg_params, aux_params), *args, **kwargs)


def quantize_folded(
    sym: Symbol,
    arguments: Arrays,
    auxiliary: Arrays,
    data_names: Sequence[str] = ("data",),
    quantized_dtype: str = "auto",
    quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise",
    exclude_layers: Names = None,
    exclude_layers_match: Names = None,
    exclude_operators: Names = None,
    calib_data: Any = None,
    calib_mode: str = "none",
    num_calib_examples: int | None = None,
    ctx: Context = CPU,
    LayerOutputCollector: Any = None,
    logger: Any = None,
) -> tuple[Symbol, Arrays, Arrays]:
    """Fold batch normalizations and relu into the layers of a symbol, and quantize it.

    See `quantize_net_v2`, the form for blocks, for the parameters.
    """
    check_option("calibration mode", calib_mode, MODES)
    folded, arguments, auxiliary = _fold(sym, arguments, auxiliary)
    conversion = Quantization(
        parameters=arguments,
        out_type=check_option("quantized_dtype", quantized_dtype, DTYPES),
        full=check_option("quantize_mode", quantize_mode, EXTENTS) == "full",
        fuse_relu=True,
        excluded={*(exclude_layers or ()), *_matching(folded, exclude_layers_match or ())},
        excluded_ops=exclude_operators or (),
    )
    storage = Storage(True, is_channel_wise(quantize_granularity), wide_bias=True, exact=True)
    quantized, args = _quantize(folded, arguments, conversion, storage)
    collector = make_collector(quantized, calib_mode, quantized_dtype, LayerOutputCollector, logger)
    if collector is None:
        return quantized, args, auxiliary
    params = {**arguments, **auxiliary}
    collect(folded, params, data_names, ctx, collector, calib_data, num_calib_examples)
    mode = "naive" if calib_mode == "none" else calib_mode
    return calib_graph(quantized, args, auxiliary, collector, mode)


def quantize_net_v2(
    network: HybridBlock,
    quantized_dtype: str = "auto",
    quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise",
    exclude_layers: Names = None,
    exclude_layers_match: Names = None,
    exclude_operators: Names = None,
    calib_data: Any = None,
    data_shapes: Sequence | None = None,
    calib_mode: str = "none",
    num_calib_examples: int | None = None,
    ctx: Context = CPU,
    LayerOutputCollector: Any = None,
    logger: Any = None,
) -> SymbolBlock:
    """Quantize a block to 8 bits, for inference.

    Batch normalizations are folded into convolutions, and relu into the requantization of results.
    Each filter of a convolution has its own range; so do rows of dense layers if
    `quantize_granularity` is "channel-wise". On processors without VNNI, weights are quantized to 7
    bits, for which the fast kernels are exact.

    Parameters
    ----------
    network
        An initialized HybridBlock; it is not changed.
    quantized_dtype
        ``'int8'``, ``'uint8'`` or ``'auto'``.
    quantize_mode
        ``'smart'``, or ``'full'``: operators such as pooling quantize float inputs too.
    quantize_granularity
        ``'tensor-wise'``, or ``'channel-wise'``: each filter of a layer has its own range.
    exclude_layers, exclude_layers_match
        Names of layers, and parts of names or wildcards, to keep in float32.
    exclude_operators
        Names of operators to keep in float32.
    calib_data
        An iterator, a loader, or batches; required unless `calib_mode` is ``'none'``.
    data_shapes : list of shapes or DataDesc
        Shapes of the inputs, if there is no `calib_data`.
    calib_mode
        ``'none'`` (ranges are computed in every run), ``'naive'`` (minimum and maximum of the
        calibration data) or ``'entropy'`` (thresholds that minimize the KL divergence).
    num_calib_examples
        Number of samples for calibration; by default all.
    ctx
        Device of the calibration.
    LayerOutputCollector
        A custom collector, instead of `calib_mode`. num_calib_examples, ctx, logger : see
        `quantize_model`.
    logger
        Logger of the collectors.

    >>> net = mx.gluon.nn.Dense(3, in_units=4)
    >>> net.initialize()
    >>> x = mx.nd.ones((2, 4))
    >>> small = mx.contrib.quantization.quantize_net_v2(net, calib_mode="naive", calib_data=[x])
    >>> float(abs(small(x) - net(x)).max().asscalar()) < 0.01
    True
    """
    inputs, sym, arguments, auxiliary = _trace(network, calib_data, data_shapes, ctx)
    quantized, args, states = quantize_folded(
        sym, arguments, auxiliary, [str(v.name) for v in inputs], quantized_dtype, quantize_mode,
        quantize_granularity, exclude_layers, exclude_layers_match, exclude_operators, calib_data,
        calib_mode, num_calib_examples, ctx, LayerOutputCollector, logger,
    )  # fmt: skip
    return _block(quantized, inputs, {**args, **states}, ctx)


def quantize_net(
    network: HybridBlock,
    quantized_dtype: str = "auto",
    quantize_mode: str = "full",
    exclude_layers: Names = None,
    exclude_layers_match: Names = None,
    exclude_operators: Names = None,
    calib_data: Any = None,
    data_shapes: Sequence | None = None,
    calib_mode: str = "none",
    num_calib_examples: int | None = None,
    ctx: Context = CPU,
    logger: Any = None,
) -> SymbolBlock:
    """Like `quantize_net_v2`, without its last options.

    Parameters
    ----------
    network
        An initialized hybrid block; it is not changed.
    quantized_dtype
        ``'int8'``, ``'uint8'`` or ``'auto'``.
    quantize_mode
        ``'smart'``, or ``'full'``: operators such as pooling quantize float inputs too.
    exclude_layers
        Names of layers to keep in float32.
    exclude_layers_match
        Parts of names, or wildcards, of layers to keep in float32.
    exclude_operators
        Names of operators to keep in float32.
    calib_data
        An iterator, a loader, or batches; required unless `calib_mode` is ``'none'``.
    data_shapes
        Shapes of the inputs, if there is no `calib_data`.
    calib_mode
        ``'none'`` (ranges are computed in every run), ``'naive'`` (minimum and maximum of the
        calibration data) or ``'entropy'`` (thresholds that minimize the KL divergence).
    num_calib_examples
        Number of samples for calibration; by default all.
    ctx
        Device of the calibration.
    logger
        Logger of the collectors.

    >>> net = mx.gluon.nn.Dense(2, in_units=4)
    >>> net.initialize()
    >>> small = mx.contrib.quantization.quantize_net(net, "int8", data_shapes=[(1, 4)])
    >>> small(mx.nd.ones((1, 4))).shape
    (1, 2)
    """
    return quantize_net_v2(
        network, quantized_dtype, quantize_mode, "tensor-wise", exclude_layers,
        exclude_layers_match, exclude_operators, calib_data, data_shapes, calib_mode,
        num_calib_examples, ctx, None, logger,
    )  # fmt: skip


# -- steps ------------------------------------------------------------------------------------


def _check_names(what: str, names: Names) -> None:
    if names is not None and not isinstance(names, list | tuple | set | frozenset):
        raise ValueError(
            f"{what} must be a list of strings, the names that will not be quantized, while "
            f"received type {type(names)}"
        )


def _fold(sym: Symbol, arguments: Arrays, auxiliary: Arrays) -> tuple[Symbol, Arrays, Arrays]:
    params = {n: plain(a) for n, a in {**arguments, **auxiliary}.items() if a.stype == "default"}
    heads, changed = fold_parameters(sym._graph, params)
    folded = type(sym)(heads)
    names = set(folded.list_inputs())
    arrays = {**arguments, **{n: wrap_plain(NDArray, tensor) for n, tensor in changed.items()}}
    return (
        folded,
        {n: a for n, a in arrays.items() if n in names},
        {n: a for n, a in auxiliary.items() if n in names},
    )


def _quantize(
    sym: Symbol, arguments: Arrays, conversion: Quantization, storage: Storage
) -> tuple[Symbol, Arrays]:
    quantized = type(sym)(conversion.convert(sym._graph))
    used = set(quantized.list_inputs())
    arrays: Arrays = {}
    for name, array in arguments.items():
        if name in conversion.quantized:
            arrays.update(store_named(storage, f"{name}{QUANTIZE}", array))
        if name in used:
            arrays[name] = array
    _describe(quantized, arrays)
    return quantized, arrays


def _describe(sym: Symbol, arrays: Arrays) -> None:
    """Declare types and shapes that cannot be inferred: of wide biases and filter ranges."""
    for node in sym._graph.variables:
        array = arrays.get(node.name)
        if array is None or not node.name.endswith(STORED):
            continue
        if array.dtype == np.int32:
            node.set_attribute("__dtype__", str(dtypes.BY_NAME["int32"].code))
        if node.name.endswith(ENDS) and array.shape != (1,):
            node.set_attribute("__shape__", str(array.shape))


def _trace(
    network: HybridBlock, calib_data: Any, data_shapes: Sequence | None, ctx: Context
) -> tuple[list[Symbol], Symbol, Arrays, Arrays]:
    if not isinstance(network, HybridBlock):
        raise TypeError(f"network must be a HybridBlock, got {type(network).__name__}")
    if data_shapes is not None:
        shapes = [tuple(getattr(shape, "shape", shape)) for shape in data_shapes]
        zeros = [ndarray.zeros(shape, ctx=ctx) for shape in shapes]
    elif calib_data is not None:
        zeros = _zeros_like(next(structures(calib_data)), ctx)
    else:
        raise ValueError("calib_data or data_shapes must be provided")
    inputs, sym = _graph_of(network, zeros)
    arrays = {p.name: p._reduce() for p in network.collect_params().values()}
    arguments = {n: arrays[n] for n in sym.list_arguments() if n in arrays}
    return inputs, sym, arguments, {n: arrays[n] for n in sym.list_auxiliary_states()}


def _zeros_like(items: list, ctx: Context) -> list:
    return [
        _zeros_like(i, ctx) if isinstance(i, list) else ndarray.zeros(i.shape, ctx=ctx)
        for i in items
    ]


def _graph_of(network: HybridBlock, batch: list) -> tuple[list[Symbol], Symbol]:
    """Return the graph; labels after the network's inputs in a batch are ignored."""
    if network._cached_graph:
        return network._cached_graph
    for count in range(1, len(batch) + 1):
        try:
            network(*batch[:count])  # completes the shapes of parameters
        except TypeError:
            if count == len(batch):
                raise
            continue
        return network._get_graph(*batch[:count])
    raise ValueError("a batch of calib_data holds no arrays")


def _matching(sym: Symbol, patterns: Iterable[str]) -> set[str]:
    names = [node.name for node in sym._graph.nodes]
    return {n for n in names for p in patterns if p in n or fnmatch.fnmatch(n, p)}


def _block(sym: Symbol, inputs: list[Symbol], arrays: Arrays, ctx: Context) -> SymbolBlock:
    block = SymbolBlock(sym, list(inputs))
    for name, param in block.collect_params().items():
        param.grad_req = "null"
        param.cast(arrays[name].dtype)
        param._load_init(arrays[name], ctx)
    block.hybridize(static_alloc=True, static_shape=True)
    return block
