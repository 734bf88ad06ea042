"""Traversal of an ONNX graph, which builds a symbol."""

from __future__ import annotations

import contextlib
import math
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .... import ndarray, symbol
from ....base import is_np_shape
from ....error import FormatError, MXNetError
from ....graph.graph import MARK
from ....ndarray import NDArray
from ....ops.interchange.shapes import MAX_ELEMENTS
from ....symbol import Symbol
from ....util import np_shape
from ..library import load_onnx
from .expansion import DOMAINS, expand_functions
from .folding import fold, infer_elements
from .integers import IntegerTypes
from .reading import infer_shapes, tensor_to_numpy
from .value import NeedsConstant, OnnxNode, SequenceValue, UnsupportedImport, Value, importers

__all__ = ["Importer"]

# Errors of rows for invalid numbers.
FAILURES = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)


# Maximum bytes of folded constants: base, and per byte of the file.
MAX_FOLDED_BYTES, FOLDED_PER_BYTE = 64 << 20, 4


class Importer:
    """Builds a symbol and its parameters from a checked ModelProto.

    `constants` are inputs of the model that become constants; a list is a sequence.
    """

    def __init__(self, model: Any, constants: Mapping[str, Any] | None = None) -> None:
        self._file_bytes, self._folded_bytes = model.ByteSize(), 0
        self.model = model = expand_functions(model)
        self.opset = next((o.version for o in model.opset_import if o.domain in DOMAINS), 0)
        self.params: dict[str, np.ndarray] = {}
        self.values: ChainMap[str, Any] = ChainMap()
        self.shapes: dict[str, tuple] = {}
        self.dims: dict[str, tuple] = {}  # the same with the names of dynamic sizes
        self.dtypes: dict[str, np.dtype] = {}
        self.stored_dtypes: dict[str, np.dtype] = {}  # types in the file, which MXNet may lack
        self.integers = IntegerTypes()
        self.inputs: list[str] = []
        self.stand_ins: dict[str, Value] = {}
        self._taken: set[str] = set()
        self._constants = dict(constants or {})
        self._note_all(infer_shapes(model).graph)

    def _note_all(self, graph: Any) -> None:
        """Record the shapes and types that ONNX infers; others stay unknown."""
        for info in (*graph.value_info, *graph.input, *graph.output):
            self._note(info)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    self._note_all(attribute.g)

    def _note(self, info: Any) -> None:
        kind = info.type.tensor_type
        if not info.type.HasField("tensor_type"):
            return
        if kind.elem_type:
            to_numpy = load_onnx().helper.tensor_dtype_to_np_dtype
            with contextlib.suppress(KeyError):
                stored = to_numpy(kind.elem_type)
                self.stored_dtypes[info.name] = stored
                self.dtypes[info.name] = self.integers.widen_type(stored)
        if kind.HasField("shape"):
            dims = [
                d.dim_value if d.HasField("dim_value") else d.dim_param or None
                for d in kind.shape.dim
            ]
            self.dims[info.name] = tuple(dims)
            self.shapes[info.name] = tuple(d if isinstance(d, int) else None for d in dims)

    def run(self) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
        """Return the symbol, its arguments and its auxiliary states."""
        graph = self.model.graph
        for tensor in graph.initializer:
            self._define(tensor.name, constant=tensor_to_numpy(tensor))
        for info in graph.input:
            if info.name not in self.values:
                self._define_input(info)
        for node in graph.node:
            self._node(node)
        heads: list[Symbol] = []
        for info in graph.output:
            result = self._lookup(info.name)
            parts = result.items if isinstance(result, SequenceValue) else [result]
            heads += [p.symbol for p in parts]
        if not heads:
            raise UnsupportedImport("ONNX import: the model returns an empty sequence only.")
        self.integers.warn()
        output = heads[0] if len(heads) == 1 else symbol.Group(heads)
        return (output, *self._parameters(output))

    def run_body(self, graph: Any, values: Mapping[str, Any]) -> list[Any]:
        """Build the nodes of a loop's or branch's body and return its outputs."""
        self.values = self.values.new_child(dict(values))
        try:
            for tensor in graph.initializer:
                self._define(tensor.name, constant=tensor_to_numpy(tensor))
            for node in graph.node:
                self._node(node)
            return [self._lookup(o.name) for o in graph.output]
        finally:
            self.values = self.values.parents

    def _lookup(self, name: str) -> Any:
        if name not in self.values:
            raise FormatError(f"ONNX import: no node computes the value {name!r}.")
        return self.values[name]

    def _define_input(self, info: Any) -> None:
        fixed = self._constants.get(info.name)
        if isinstance(fixed, list | tuple):
            items = [Value(f"{info.name}_{i}", constant=np.asarray(a)) for i, a in enumerate(fixed)]
            self.values[info.name] = SequenceValue(info.name, [self.complete(v) for v in items])
        elif info.name in self._constants:
            if fixed is None:
                self.values[info.name] = None
            else:
                self._define(info.name, constant=np.asarray(fixed))
        elif not info.type.HasField("tensor_type"):
            raise NeedsConstant(
                f"ONNX import: input {info.name!r} is not a tensor: its value is needed at import.",
                info.name,
            )
        else:
            self.inputs.append(info.name)
            self._define(info.name, output=self._input(info.name))

    def complete(self, value: Value) -> Value:
        """Return a new value with the shape and type of its symbol or constant."""
        self._define(value.name, value.symbol_or_none, value.constant)
        return self.values[value.name]

    def _input(self, name: str) -> Symbol:
        dtype = self.dtypes.get(name)
        self._taken.add(name)
        if dtype is None or dtype == np.float32:
            return symbol.Variable(name)
        return symbol.Variable(name, dtype=dtype.name)

    def _define(
        self, name: str, output: Symbol | None = None, constant: np.ndarray | None = None
    ) -> None:
        if constant is not None:
            constant = self.integers.widen(constant, name)
            shape, dtype = constant.shape, constant.dtype
        else:
            shape, dtype = self.shapes.get(name), self.dtypes.get(name)
            if output is not None and (shape is None or None in shape or dtype is None):
                shape, dtype = self._infer(output, shape, dtype)
            if shape is not None and None not in shape and math.prod(shape) > MAX_ELEMENTS:
                raise FormatError(
                    f"ONNX import: the value {name!r} has the shape {list(shape)}; an array of a "
                    f"model has at most {MAX_ELEMENTS} elements."
                )
        self.values[name] = Value(name, output, constant, shape, dtype, self)

    def depends_on(self, output: Symbol) -> list[str]:
        """Return the inputs of the model that a symbol is computed from."""
        used = set(output.list_inputs())
        return [name for name in self.inputs if name in used]

    def _infer(self, output: Symbol, shape: Any, dtype: Any) -> tuple[Any, Any]:
        """Infer by MXNext what ONNX's inference leaves unknown."""
        used = set(output.list_inputs())
        sources: dict[str, tuple[Any, Any]] = {
            n: (self.shapes.get(n), self.dtypes.get(n)) for n in self.inputs if n in used
        }
        for values in (self.params, self.stand_ins):
            sources.update({n: (v.shape, v.dtype) for n, v in values.items() if n in used})
        if any(s is None for s, _ in sources.values()):
            return shape, dtype
        shapes = {n: tuple(-1 if d is None else d for d in s) for n, (s, _) in sources.items()}
        types = {n: t.name for n, (_, t) in sources.items() if t is not None}
        with contextlib.suppress(MXNetError, TypeError):
            with np_shape(True):
                inferred = output.infer_shape_partial(**shapes)[1]
            if inferred and inferred[0] is not None:
                shape = _refine(shape, inferred[0])
            dtype = dtype or _numpy_dtype(output.infer_type(**types)[1][0])
        return shape, dtype

    def _node(self, proto: Any) -> None:
        node = OnnxNode(proto, self)
        if proto.domain not in DOMAINS:
            raise node.unsupported(f"is of the domain {proto.domain!r}, which is not known.")
        inputs = [self._lookup(n) if n else None for n in proto.input]
        if not any(isinstance(v, SequenceValue) for v in inputs):
            folded = fold(proto, inputs, self.opset)
            if folded is not None:
                self._count_folded(folded)
                for name, array in zip((n for n in proto.output if n), folded, strict=True):
                    self._define(name, constant=array)
                return
        elements = infer_elements(node, inputs)
        is_constant = elements is not None and all(isinstance(e, int) for e in elements)
        # A shape is a constant for later nodes, but still a node if it is an output.
        if elements is not None and is_constant and proto.op_type != "Shape":
            self._define_elements(proto.output[0], elements, inputs)
            return
        build = importers().get(proto.op_type)
        if build is None:
            raise node.unsupported("has no row: this ONNX operator cannot be imported.")
        try:
            output = build(node, *inputs)
        except MXNetError:
            raise
        except FAILURES as error:
            raise node.unsupported(f"could not be built: {error!r}") from error
        results = list(output) if isinstance(output, list | tuple) else [output]
        if len(results) < len([n for n in proto.output if n]):
            raise node.unsupported(f"has outputs that are not built: {list(proto.output)}.")
        for name, result in zip(proto.output, results, strict=False):
            if not name:
                continue
            if isinstance(result, Symbol):
                result = self.integers.wrap(result, proto.op_type, self.stored_dtypes.get(name))
            self._bind(name, result)
        if is_constant:
            self.values[proto.output[0]].constant = np.array(elements, dtype=np.int64)
        elif elements is not None:
            self.values[proto.output[0]].elements = elements

    def _count_folded(self, arrays: Sequence[np.ndarray]) -> None:
        """Raise if the constants of a model become much larger than its file."""
        self._folded_bytes += sum(array.nbytes for array in arrays)
        limit = MAX_FOLDED_BYTES + FOLDED_PER_BYTE * self._file_bytes
        if self._folded_bytes > limit:
            raise FormatError(
                f"ONNX import: constants that follow from others take more than {limit} bytes, too "
                f"many for a model of {self._file_bytes} bytes."
            )

    def _define_elements(self, name: str, elements: Sequence[Any], inputs: Sequence[Any]) -> None:
        shape = self.shapes.get(name)
        array = np.array(elements, dtype=self.dtypes.get(name) or np.int64)
        is_scalar = shape == () or (shape is None and len(elements) == 1 and inputs[0].shape == ())
        self._define(name, constant=array.reshape(()) if is_scalar else array)

    def _bind(self, name: str, result: Any) -> None:
        if result is None or isinstance(result, SequenceValue):
            self.values[name] = result
        elif isinstance(result, np.ndarray):
            self._define(name, constant=result)
        elif isinstance(result, Value):
            self._define(name, result.symbol_or_none, result.constant)
        else:
            self._define(name, output=result)

    def parameter(self, name: str, array: np.ndarray) -> Symbol:
        """Make a constant a parameter and return its variable."""
        unique, number = name, 0
        while unique in self._taken:
            number += 1
            unique = f"{name}_{number}"
        self._taken.add(unique)
        if array.ndim == 0 and not is_np_shape():
            array = array.reshape(1)  # MXNet's files do not support 0-d arrays
        self.params[unique] = array = self.integers.widen(array, name)
        output = symbol.Variable(unique, shape=array.shape or None)
        output._heads[0].node.extra.pop(MARK, None)  # the node is part of the model, not of a body
        return output

    def _parameters(self, output: Symbol) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        used = set(output.list_inputs())
        auxiliary = set(output.list_auxiliary_states())
        arg_params, aux_params = {}, {}
        for name, array in self.params.items():
            if name in used:
                target = aux_params if name in auxiliary else arg_params
                target[name] = _to_ndarray(array)
        return arg_params, aux_params


def _refine(shape: Any, inferred: Any) -> Any:
    ours = tuple(None if n == -1 else n for n in inferred)
    if shape is None or len(shape) != len(ours):
        return ours if shape is None else shape
    return tuple(b if a is None else a for a, b in zip(shape, ours, strict=True))


def _numpy_dtype(dtype: Any) -> np.dtype:
    """Return NumPy's dtype of an inferred type; bfloat16 is ONNX's, not MXNet's pair."""
    if np.dtype(dtype).names:
        onnx = load_onnx()
        return onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16)
    return np.dtype(dtype)


def _to_ndarray(array: np.ndarray) -> NDArray:
    if array.dtype.kind in "OSU":
        raise UnsupportedImport("ONNX import: tensors of text are not supported.")
    if array.dtype.name == "bfloat16":
        return ndarray.array(array.astype(np.float32), dtype="float32").astype("bfloat16")
    return ndarray.array(np.array(array), dtype=array.dtype)  # files are read-only
