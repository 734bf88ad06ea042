"""Convert float32 models to mixed precision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ... import dtypes, ndarray
from ...context import Context, cpu, gpu, num_gpus
from ...gluon import HybridBlock, SymbolBlock
from ...module import BucketingModule
from ...ndarray import NDArray
from ...symbol import Symbol
from .casts import MixedGraph, Precision, castable
from .lists import (
    list_conditional_fp32_ops,
    list_fp32_ops,
    list_lp16_fp32_ops,
    list_lp16_ops,
    list_widest_type_cast,
)

Arrays = dict[str, NDArray]
Conditional = Sequence[tuple[str, str, Sequence[str]]]


def convert_symbol(
    sym: Symbol,
    target_dtype: Any = "float16",
    target_dtype_ops: Sequence[str] | None = None,
    fp32_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Conditional | None = None,
    excluded_sym_names: Sequence[str] | None = None,
    data_names: Sequence[str] | None = None,
    cast_optional_params: bool = False,
) -> Symbol:
    """Return a symbol with the casts of mixed precision; its outputs are in 32 bits.

    Parameters
    ----------
    sym : Symbol
        The symbol.
    target_dtype : "float16" or "bfloat16"
        ``'float16'`` or ``'bfloat16'``.
    target_dtype_ops
        Operators to run in 16 bits, instead of the default ones.
    fp32_ops
        Operators to run in 32 bits, instead of the default ones.
    conditional_fp32_ops
        Operator, attribute and values to run in 32 bits, instead of the default ones.
    excluded_sym_names
        Names of nodes to keep in 32 bits.
    data_names : list of str
        Names of the data inputs; the others are parameters.
    cast_optional_params : bool
        Whether to cast parameters that are used only by 16-bit operators.

    >>> fc = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> mx.contrib.amp.convert_symbol(fc, "bfloat16").get_internals().list_outputs()[:2]
    ['data', 'data_amp_cast_bfloat16_output']
    """
    if not isinstance(sym, Symbol):
        raise AssertionError("First argument to convert_symbol should be Symbol")
    target = _target(target_dtype)
    precision = _precision(
        target, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names
    )
    graph = sym._graph
    types: dict[str, str] = {}
    if data_names is not None:
        low = castable(graph, precision) if cast_optional_params else set()
        names = [name for name in sym.list_inputs() if name not in data_names]
        types = {name: target if name in low else "float32" for name in names}
    return type(sym)(MixedGraph(precision, types).convert(graph))


def _target(dtype: Any) -> str:
    name = dtype if isinstance(dtype, str) else dtypes.to_name(dtype)
    if name not in ("float16", "bfloat16"):
        raise AssertionError("Only target_dtype float16 and bfloat16 are supported currently")
    return name


def _precision(
    target: str,
    target_ops: Sequence[str] | None,
    full_ops: Sequence[str] | None,
    conditional: Conditional | None,
    excluded: Sequence[str] | None,
) -> Precision:
    _check_names(target_dtype_ops=target_ops, fp32_ops=full_ops, excluded_sym_names=excluded)
    rows = list_conditional_fp32_ops(target) if conditional is None else list(conditional)
    chosen_ops = {
        "target_dtype_ops": set(target_ops or ()),
        "fp32_ops": set(full_ops or ()),
        "conditional_fp32_ops": {row[0] for row in conditional or ()},
    }
    _check_known(target, set().union(*chosen_ops.values()))
    _check_apart(chosen_ops)
    chosen = chosen_ops["target_dtype_ops"] | chosen_ops["conditional_fp32_ops"]
    lower = chosen_ops["fp32_ops"] | chosen_ops["conditional_fp32_ops"]
    low = set(list_lp16_ops(target)) - lower if target_ops is None else set(target_ops)
    full = set(list_fp32_ops(target)) - chosen if full_ops is None else set(full_ops)
    widest = set(list_widest_type_cast(target)) - low - full
    return Precision(target, low, full, widest, rows, set(excluded or ()))


def _check_names(**lists: Sequence[str] | None) -> None:
    for argument, names in lists.items():
        if names is not None and not isinstance(names, list | tuple):
            raise AssertionError(f"{argument} should be a list of strs")


def _check_known(target: str, names: set[str]) -> None:
    listed_ops = {
        *list_lp16_ops(target),
        *list_fp32_ops(target),
        *list_lp16_fp32_ops(target),
        *list_widest_type_cast(target),
        *(row[0] for row in list_conditional_fp32_ops(target)),
    }
    if names - listed_ops:
        raise AssertionError(
            "Can only choose ops from the lists amp.list_lp16_ops, amp.list_fp32_ops, "
            "amp.list_lp16_fp32_ops, amp.list_widest_type_cast and "
            f"amp.list_conditional_fp32_ops. Op {sorted(names - listed_ops)} not in any of them"
        )


def _check_apart(given: Mapping[str, set[str]]) -> None:
    arguments = list(given)
    for i, first in enumerate(arguments):
        for second in arguments[i + 1 :]:
            if given[first] & given[second]:
                raise AssertionError(
                    f"Ops cannot be in two or more lists. Common ops in {first} and {second} "
                    f"{given[first] & given[second]}"
                )


def convert_model(
    sym: Symbol,
    arg_params: Mapping[str, NDArray],
    aux_params: Mapping[str, NDArray],
    target_dtype: Any = "float16",
    target_dtype_ops: Sequence[str] | None = None,
    fp32_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Conditional | None = None,
    excluded_sym_names: Sequence[str] | None = None,
    cast_optional_params: bool = False,
) -> tuple[Symbol, Arrays, Arrays]:
    """Return symbol and parameters of a model in mixed precision.

    Parameters
    ----------
    sym : Symbol
        The symbol.
    arg_params : dict of NDArray
        Parameters by name.
    aux_params : dict of NDArray
        Auxiliary states by name.
    target_dtype
        ``'float16'`` or ``'bfloat16'``.
    target_dtype_ops
        Operators to run in 16 bits, instead of the default ones.
    fp32_ops
        Operators to run in 32 bits, instead of the default ones.
    conditional_fp32_ops
        Operator, attribute and values to run in 32 bits, instead of the default ones.
    excluded_sym_names
        Names of nodes to keep in 32 bits.
    cast_optional_params : bool
        Whether to cast parameters that are used only by 16-bit operators.

    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
    >>> params = {"fc_weight": mx.nd.ones((1, 2)), "fc_bias": mx.nd.ones(1)}
    >>> symbol, arg_params, aux_params = mx.contrib.amp.convert_model(net, params, {})
    >>> sorted(arg_params)
    ['fc_bias', 'fc_weight']
    """
    if not isinstance(sym, Symbol):
        raise AssertionError("First argument to convert_model should be Symbol")
    if not isinstance(arg_params, Mapping) or not isinstance(aux_params, Mapping):
        raise AssertionError("arg_params and aux_params of convert_model should be dicts")
    data_names = [n for n in sym.list_inputs() if n not in arg_params and n not in aux_params]
    converted = convert_symbol(
        sym,
        target_dtype,
        target_dtype_ops,
        fp32_ops,
        conditional_fp32_ops,
        excluded_sym_names,
        data_names,
        cast_optional_params,
    )
    dtype = _target(target_dtype)
    low = _low_names(converted, dtype)
    return converted, _cast_some(arg_params, low, dtype), _cast_some(aux_params, low, dtype)


def _low_names(sym: Symbol, dtype: str) -> set[str]:
    code = str(dtypes.BY_NAME[dtype].code)
    nodes = sym._graph.variables
    return {node.name for node in nodes if node.extra.get("__dtype__") == code}


def _cast_some(arrays: Mapping[str, NDArray], names: Iterable[str], dtype: str) -> Arrays:
    chosen = set(names)
    return {
        name: ndarray.amp_cast(array, dtype=dtype) if name in chosen else array
        for name, array in arrays.items()
    }


def convert_hybrid_block(
    block: HybridBlock,
    target_dtype: Any = "float16",
    target_dtype_ops: Sequence[str] | None = None,
    fp32_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Conditional | None = None,
    excluded_sym_names: Sequence[str] | None = None,
    ctx: Context | Sequence[Context] | None = None,
    cast_optional_params: bool = False,
) -> SymbolBlock:
    """Convert a hybridized block to mixed precision, for inference.

    Parameters
    ----------
    block
        A block that was hybridized and called once.
    target_dtype
        ``'float16'`` or ``'bfloat16'``.
    target_dtype_ops
        Operators to run in 16 bits, instead of the default ones.
    fp32_ops
        Operators to run in 32 bits, instead of the default ones.
    conditional_fp32_ops
        Operator, attribute and values to run in 32 bits, instead of the default ones.
    excluded_sym_names
        Names of nodes to keep in 32 bits.
    ctx : Context or list of Context
        Device, or list of devices, of the new parameters; by default ``gpu(0)`` as in MXNet, or
        ``cpu()`` on a machine without a GPU.
    cast_optional_params
        Whether to cast parameters that are used only by 16-bit operators.

    >>> net = mx.gluon.nn.Dense(1, in_units=2)
    >>> net.initialize()
    >>> net.hybridize()
    >>> _ = net(mx.nd.ones((1, 2)))
    >>> half = mx.contrib.amp.convert_hybrid_block(net, "bfloat16", ctx=mx.cpu())
    >>> half(mx.nd.ones((1, 2))).shape
    (1, 1)
    """
    if not isinstance(block, HybridBlock):
        raise AssertionError("block input should be a HybridBlock")
    if not block._cached_graph:
        raise RuntimeError(
            "Please first call block.hybridize() and then run forward with this block at least "
            "once before calling export."
        )
    if ctx is None:
        ctx = gpu(0) if num_gpus() else cpu()
    inputs, sym = block._cached_graph
    arrays = {p.name: p._reduce() for p in block.collect_params().values()}
    auxiliary = set(sym.list_auxiliary_states())
    converted, args, aux = convert_model(
        sym,
        {n: arrays[n] for n in sym.list_arguments() if n in arrays},
        {n: arrays[n] for n in auxiliary},
        target_dtype,
        target_dtype_ops,
        fp32_ops,
        conditional_fp32_ops,
        excluded_sym_names,
        cast_optional_params,
    )
    result = SymbolBlock(converted, list(inputs))
    for name, param in result.collect_params().items():
        array = args[name] if name in args else aux[name]
        param.cast(array.dtype)
        param._load_init(array, ctx)
    return result


def convert_bucketing_module(
    bucketing_mod: BucketingModule,
    target_dtype: Any = "float16",
    target_dtype_ops: Sequence[str] | None = None,
    fp32_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Conditional | None = None,
    excluded_sym_names: Sequence[str] | None = None,
    cast_optional_params: bool = False,
) -> BucketingModule:
    """Convert a bucketing module to mixed precision; its parameters must be set again.

    Parameters
    ----------
    bucketing_mod : BucketingModule
    target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names,
        cast_optional_params : as in `convert_symbol`.
    """
    if not isinstance(bucketing_mod, BucketingModule):
        raise AssertionError("module should be an instance of BucketingModule")
    generate = bucketing_mod._sym_gen

    def converted(key: Any) -> tuple:
        sym, data_names, label_names = generate(key)
        inputs = [*(data_names or ()), *(label_names or ())]
        mixed = convert_symbol(
            sym,
            target_dtype,
            target_dtype_ops,
            fp32_ops,
            conditional_fp32_ops,
            excluded_sym_names,
            inputs,
            cast_optional_params,
        )
        return mixed, data_names, label_names

    return BucketingModule(
        converted,
        default_bucket_key=bucketing_mod._default_bucket_key,
        context=bucketing_mod._context,
    )
