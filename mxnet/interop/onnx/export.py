"""`export_model`: a symbol and its parameters, in any of MXNet's formats, as an ONNX file."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from ... import dtypes, ndarray, symbol
from ...base import is_np_shape
from ...error import InvalidType, InvalidValue, MXNetError
from ...graph import Graph, Node
from ...libinfo import __version__
from ...ndarray import NDArray
from ...runtime.array import plain
from ...symbol import Symbol
from .builder import UNKNOWN, Builder, Shape, UnsupportedExport, onnx_dtype, rows
from .kernel_types import cast_to_kernel_types
from .library import load_onnx
from .translate import Facts, Translator, ignored_variables, infer_facts, probe_sizes, row_of

__all__ = [
    "build_model",
    "export_model",
    "get_operator_support",
    "load_parameters",
    "load_symbol",
    "write_model",
]

DEFAULT_OPSET, OLDEST_OPSET = 13, 12
# The ONNX file format of each opset, so that old runtimes can read the file.
IR_VERSIONS = {
    12: 7,
    13: 7,
    14: 7,
    15: 8,
    16: 8,
    17: 8,
    18: 8,
    19: 9,
    20: 9,
    21: 10,
    22: 10,
    23: 11,
    24: 12,
}
MAX_BYTES = 2**31 - 1
# Types that runtimes support for all operators, or cast.
ALWAYS_COMPUTED = {torch.float32, torch.float16, torch.bool, torch.int32, torch.int64}
logger = logging.getLogger(__name__)
GivenShape = Sequence[int | str | None]


def get_operator_support(opset_version: int | None = None) -> list[str]:
    """Return the names of operators that can be exported for an opset, by default 13.

    Parameters
    ----------
    opset_version
        Version of ONNX's operators.

    >>> "Convolution" in mx.onnx.get_operator_support()
    True
    """
    opset = _check_opset(DEFAULT_OPSET if opset_version is None else opset_version)
    return sorted(["null", *(name for name, row in rows().items() if row.since <= opset)])


def export_model(
    sym: Symbol | str | os.PathLike[str],
    params: Any,
    in_shapes: Sequence[GivenShape] | Mapping[str, GivenShape] | None = None,
    in_types: Any = np.float32,
    onnx_file_path: str | os.PathLike[str] = "model.onnx",
    verbose: bool = False,
    dynamic: bool = False,
    dynamic_input_shapes: Sequence[GivenShape] | None = None,
    run_shape_inference: bool = False,
    input_type: Any = None,
    input_shape: Any = None,
    opset_version: int = DEFAULT_OPSET,
    output_order: Literal["nodes", "group"] = "nodes",
) -> str:
    """Export a symbol and its parameters to an ONNX file and return its path.

    The model is checked before writing.

    Parameters
    ----------
    sym : Symbol or str
        A symbol, or the path of its JSON file.
    params : str, dict or list
        The path of a parameter file, a dict of arrays, or ``[arg_params, aux_params]``.
    in_shapes : list of tuple
        Shape of each input that is not a parameter; labels of output layers are optional. A size of
        None or a name is dynamic.
    in_types : type or list of types
        The dtype of the inputs.
    onnx_file_path : str
        Path of the file.
    verbose : bool
        Whether to log the exported graph.
    dynamic : bool
        Whether sizes are dynamic: those of `dynamic_input_shapes`, by default as many as possible:
        all, all but the channels, or the first of each input.
    dynamic_input_shapes : list of tuple, optional
        Shapes with None or a name for each dynamic size.
    run_shape_inference : bool
        Whether to add the shapes of inner values, inferred by ONNX.
    input_type, input_shape : optional
        Old names of `in_types` and `in_shapes`.
    opset_version : int
        Target opset, at least 12.
    output_order : str
        ``'nodes'``: MXNet's order of a group's outputs, by computation, then inputs and duplicates,
        which MXNet omits. ``'group'``: the order of ``sym.list_outputs()``.

    Returns
    -------
    str
        The path of the file.

    Examples
    --------
    >>> import os, tempfile
    >>> target = os.path.join(tempfile.mkdtemp(), "fc.onnx")
    >>> x = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> params = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros(2)}
    >>> path = mx.onnx.export_model(x, params, [(1, 3)], onnx_file_path=target)
    """
    shapes = in_shapes if in_shapes is not None else input_shape
    types = input_type if input_type is not None else in_types
    if shapes is None:
        raise InvalidValue("in_shapes is needed: the shape of each input that is not a parameter.")
    symbol = _order_outputs(load_symbol(sym), output_order)
    source = (symbol, load_parameters(params), shapes, types)
    if dynamic and dynamic_input_shapes is None:
        model = _build_with_dynamic_sizes(*source, opset_version)
    else:
        model = build_model(*source, dynamic_input_shapes if dynamic else None, opset_version)
    if run_shape_inference:
        model = load_onnx().shape_inference.infer_shapes(model)
    if verbose:
        logger.info("%s", load_onnx().helper.printable_graph(model.graph))
    write_model(model, onnx_file_path)
    return str(onnx_file_path)


def _order_outputs(symbol: Symbol, order: str) -> Symbol:
    if order not in ("nodes", "group"):
        raise InvalidValue(f"output_order={order!r}: use 'nodes' or 'group'.")
    heads = symbol._graph.heads
    if order == "group" or len(heads) == 1:
        return symbol
    numbers = {node: number for number, node in enumerate(symbol._graph.nodes)}
    is_extra = [
        e.node.op is None or any(e.node is o.node and e.index == o.index for o in heads[:i])
        for i, e in enumerate(heads)
    ]
    ranks = sorted(
        range(len(heads)),
        key=lambda i: (is_extra[i], 0 if is_extra[i] else numbers[heads[i].node], heads[i].index),
    )
    return Symbol([heads[i] for i in ranks])


def _build_with_dynamic_sizes(
    symbol: Symbol, params: Mapping[str, Any], in_shapes: Any, in_types: Any, opset: int
) -> Any:
    """Return a model with as many dynamic sizes as possible: all, all but channels, or groups."""
    names = list(in_shapes) if isinstance(in_shapes, Mapping) else None
    shapes = [tuple(s) for s in (in_shapes.values() if names else in_shapes)]
    refused: MXNetError | None = None

    def build(sizes: Sequence[GivenShape]) -> Any:
        nonlocal refused
        dynamic = dict(zip(names, sizes, strict=True)) if names else sizes
        try:
            return build_model(symbol, params, in_shapes, in_types, dynamic, opset)
        except MXNetError as error:
            refused = error

    for sizes in ([(None,) * len(s) for s in shapes], [_except_channels(s) for s in shapes]):
        model = build(sizes)
        if model is not None:
            return model
    model, sizes = _free_groups_of_sizes(shapes, build)
    if model is None:
        assert refused is not None
        raise refused
    logger.warning(
        "ONNX export: the model needs some sizes as numbers, its inputs are %s. Set the dynamic "
        "ones with dynamic_input_shapes. (%s)",
        ", ".join(map(str, sizes)),
        refused,
    )
    return model


def _free_groups_of_sizes(
    shapes: Sequence[GivenShape], build: Callable[[Sequence[GivenShape]], Any]
) -> tuple[Any, Sequence[GivenShape]]:
    """Return the model with all possible groups of dynamic sizes, and its shapes."""
    model, sizes = None, shapes
    for group in _group_equal_sizes(shapes):
        wider = [
            tuple(None if (i, axis) in group else n for axis, n in enumerate(shape))
            for i, shape in enumerate(sizes)
        ]
        attempt = build(wider)
        if attempt is not None:
            model, sizes = attempt, wider
    return model, sizes


def _group_equal_sizes(shapes: Sequence[GivenShape]) -> list[set[tuple[int, int]]]:
    """Return groups of (input, axis) with equal sizes, such as all batch sizes.

    First axes of all inputs come first, then sizes that are equal.
    """
    groups = [{(i, 0) for i, shape in enumerate(shapes) if shape}]
    sizes = dict.fromkeys(n for shape in shapes for n in shape)
    for size in sizes:
        group = {(i, a) for i, s in enumerate(shapes) for a, n in enumerate(s) if n == size}
        groups.append(group)
    return groups


def _except_channels(shape: GivenShape) -> GivenShape:
    return [size if axis == 1 else None for axis, size in enumerate(shape)]


def write_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a checked model atomically."""
    onnx = load_onnx()
    size = model.ByteSize()
    if size > MAX_BYTES:
        raise MXNetError(f"ONNX export: {size} bytes; the limit of an ONNX file is {MAX_BYTES}.")
    onnx.checker.check_model(model)
    target = Path(path)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False, suffix=".tmp") as file:
        scratch = Path(file.name)
    try:
        scratch.write_bytes(model.SerializeToString())
        scratch.chmod(0o644)
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)


def build_model(
    symbol: Symbol,
    params: Mapping[str, Any],
    in_shapes: Sequence[GivenShape] | Mapping[str, GivenShape],
    in_types: Any = np.float32,
    dynamic_shapes: Sequence[GivenShape] | Mapping[str, GivenShape] | None = None,
    opset: int = DEFAULT_OPSET,
    parameters_as_inputs: bool = True,
) -> Any:
    """Return the ONNX ModelProto of a symbol; nothing is written.

    MXNet lists parameters as graph inputs too, which prevents constant folding.
    """
    opset = _check_opset(opset)
    graph = symbol._graph
    for node in graph.nodes:
        if node.op is not None:
            row_of(node, opset)
    tensors = {n.name: plain(params[n.name]) for n in graph.variables if n.name in params}
    inputs = _inputs(graph, tensors, in_shapes)
    shapes = _shapes_by_name(inputs, in_shapes)
    dynamic = shapes if dynamic_shapes is None else _shapes_by_name(inputs, dynamic_shapes)
    types = _types_by_name(inputs, in_types)
    facts = _facts(graph, tensors, shapes, dynamic, types)
    _check_types(facts, opset)
    g = Builder(opset)
    g.taken.update(n.name for n in graph.variables)
    translator = Translator(tensors, next(iter(types.values()), torch.float32))
    names = translator.run(graph, facts, g, {n: n.name for n in graph.variables})
    outputs = _outputs(g, graph, names, facts)
    model = _model(g, graph, tensors, inputs, dynamic, facts, outputs)
    if not ALWAYS_COMPUTED.issuperset(t for types in facts.dtypes.values() for t in types):
        cast_to_kernel_types(model)
    if not parameters_as_inputs:
        fed = [i for i in model.graph.input if i.name not in tensors]
        del model.graph.input[:]
        model.graph.input.extend(fed)
    return model


def _check_opset(opset: int) -> int:
    newest = min(load_onnx().defs.onnx_opset_version(), max(IR_VERSIONS))
    if not OLDEST_OPSET <= opset <= newest:
        raise InvalidValue(
            f"opset_version={opset} cannot be written: {OLDEST_OPSET} to {newest} can."
        )
    return opset


def _inputs(graph: Graph, params: Mapping[str, Any], shapes: Any) -> list[Node]:
    """Return the input variables; labels are included only if they have shapes."""
    free = [n for n in graph.variables if n.name not in params]
    ignored = ignored_variables(graph)
    needed = [n for n in free if n not in ignored]
    if isinstance(shapes, Mapping):
        return [n for n in free if n in needed or n.name in shapes]
    if len(shapes) == len(needed):
        return needed
    if len(shapes) == len(free):
        return free
    names = ", ".join(n.name for n in needed)
    raise InvalidValue(
        f"in_shapes has {len(shapes)} shapes, but the symbol has {len(needed)} inputs that are not "
        f"parameters: {names or 'none'}. Parameters that are missing in `params` are treated as "
        "inputs."
    )


def _shapes_by_name(inputs: Sequence[Node], shapes: Any) -> dict[str, GivenShape]:
    if isinstance(shapes, Mapping):
        missing = [n.name for n in inputs if n.name not in shapes]
        if missing:
            raise InvalidValue(f"in_shapes has no shape for: {', '.join(missing)}.")
        return {n.name: tuple(shapes[n.name]) for n in inputs}
    if len(shapes) != len(inputs):
        raise InvalidValue(f"{len(shapes)} shapes are given for {len(inputs)} inputs.")
    return {n.name: tuple(s) for n, s in zip(inputs, shapes, strict=True)}


def _types_by_name(inputs: Sequence[Node], types: Any) -> dict[str, torch.dtype]:
    if isinstance(types, Mapping):
        return {n.name: dtypes.to_torch(types[n.name]) for n in inputs}
    if not isinstance(types, list | tuple):
        types = [types] * len(inputs)
    if len(types) == 1:
        types = list(types) * len(inputs)
    if len(types) < len(inputs):
        raise InvalidValue(f"{len(types)} types are given for {len(inputs)} inputs.")
    return {n.name: dtypes.to_torch(t) for n, t in zip(inputs, types, strict=False)}


def _is_dynamic(size: int | str | None) -> bool:
    if not isinstance(size, int | np.integer):
        return True
    return size < 0 or (size == 0 and not is_np_shape())


def _facts(
    graph: Graph,
    params: Mapping[str, torch.Tensor],
    shapes: Mapping[str, GivenShape],
    dynamic: Mapping[str, GivenShape],
    types: Mapping[str, torch.dtype],
) -> Facts:
    fixed = {name: tuple(t.shape) for name, t in params.items()}
    kinds = {name: t.dtype for name, t in params.items()} | dict(types)
    default = next(iter(types.values()), torch.float32)

    def probe(add: int) -> dict[str, Shape]:
        return fixed | {n: probe_sizes(sizes, shapes[n], add) for n, sizes in dynamic.items()}

    if not any(_is_dynamic(n) for sizes in dynamic.values() for n in sizes):
        exact = {name: probe_sizes(s, None, 0) for name, s in shapes.items()}
        return infer_facts(graph, {**fixed, **exact}, None, kinds, default)
    return infer_facts(graph, probe(0), probe(2), kinds, default)


def _check_types(facts: Facts, opset: int) -> None:
    if opset < 13 and any(torch.bfloat16 in types for types in facts.dtypes.values()):
        raise UnsupportedExport(
            f"ONNX export: bfloat16 needs opset_version=13, the model is written for {opset}."
        )


def _outputs(
    g: Builder, graph: Graph, names: Sequence[str], facts: Facts
) -> list[tuple[str, Shape, torch.dtype]]:
    outputs, seen = [], set()
    produced = {name for n in g.nodes for name in n.output}
    for entry, name in zip(graph.heads, names, strict=True):
        if name not in produced or name in seen:
            g.scope = f"{name}_output"
            name = g.Identity(name)
        seen.add(name)
        outputs.append(
            (name, facts.shapes[entry.node][entry.index], facts.dtypes[entry.node][entry.index])
        )
    return outputs


def _live(g: Builder, outputs: Sequence[str]) -> list[Any]:
    """Return the nodes that outputs depend on; rows may create unused ones."""
    needed, live = set(outputs), []
    for node in reversed(g.nodes):
        if needed.intersection(node.output):
            live.append(node)
            needed.update(_read(node))
    return live[::-1]


def _read(node: Any) -> set[str]:
    names = set(node.input)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            names |= _read(inner)
        names.update(o.name for o in attribute.g.output)
    return names


def _model(
    g: Builder,
    graph: Graph,
    params: Mapping[str, torch.Tensor],
    inputs: Sequence[Node],
    dynamic: Mapping[str, GivenShape],
    facts: Facts,
    outputs: Sequence[tuple[str, Shape, torch.dtype]],
) -> Any:
    onnx = load_onnx()
    info = onnx.helper.make_tensor_value_info
    nodes = _live(g, [o[0] for o in outputs])
    read = set().union(*map(_read, nodes)) if nodes else set()
    values = []
    fed = {n.name for n in inputs}
    initializers = []
    for node in graph.variables:
        if node.name not in read and node.name not in fed:
            continue
        dtype = facts.dtypes[node][0]
        if node.name in fed:
            sizes = [_symbol(n, node.name, i) for i, n in enumerate(dynamic[node.name])]
        else:
            tensor = params[node.name].detach().contiguous()
            sizes = list(tensor.shape)
            initializers.append(_tensor(node.name, tensor))
        values.append(info(node.name, onnx_dtype(dtype), sizes))
    for name, array in g.initializers.items():
        if name in read:
            initializers.append(onnx.numpy_helper.from_array(array, name))
    results = [
        info(name, onnx_dtype(dtype), [None if n == UNKNOWN else n for n in shape])
        for name, shape, dtype in outputs
    ]
    proto = onnx.helper.make_graph(nodes, "mxnet_converted_model", values, results, initializers)
    return onnx.helper.make_model(
        proto,
        producer_name="mxnext",
        producer_version=__version__,
        opset_imports=[onnx.helper.make_opsetid("", g.opset)],
        ir_version=IR_VERSIONS[g.opset],
    )


def _symbol(size: int | str | None, name: str, axis: int) -> int | str:
    if isinstance(size, str):
        return size
    return f"{name}_{axis}" if size is None or _is_dynamic(size) else int(size)


def _tensor(name: str, tensor: torch.Tensor) -> Any:
    onnx, tensor = load_onnx(), tensor.cpu()
    if tensor.dtype is torch.bfloat16:
        raw = tensor.view(torch.uint16).numpy().tobytes()
        return onnx.helper.make_tensor(
            name, onnx.TensorProto.BFLOAT16, list(tensor.shape), raw, raw=True
        )
    return onnx.numpy_helper.from_array(tensor.numpy(), name)


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
